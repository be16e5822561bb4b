//! A process that is stopped for longer than its time limit, as by a debugger or Ctrl-Z, continues afterwards.
#![cfg(target_os = "linux")]
#![allow(
    clippy::unwrap_used,
    clippy::print_stdout,
    reason = "a failing test panics; a child tells its parent on standard output"
)]

use std::io::{BufRead, BufReader, Write};
use std::process::{Command, Stdio};
use std::time::Duration;

use crate::common::{Kernel, STORAGE, Words, options, recorded};
use spelter_driver::vk::CommandBufferUsageFlags as Flags;
use spelter_driver::{Device, DeviceOptions};

const LIMIT: Duration = Duration::from_secs(2);

/// What the child prints when its kernel runs.
const RUNNING: &str = "the kernel runs";

/// Set in the child.
const CHILD: &str = "SPELTER_TEST_STOPPED";

#[test]
fn a_stopped_process_does_not_lose_its_device() {
    if std::env::var_os(CHILD).is_some() {
        return child();
    }
    let test = "stopped::a_stopped_process_does_not_lose_its_device";
    let mut child = Command::new(std::env::current_exe().unwrap())
        .args([test, "--exact", "--nocapture"])
        .env(CHILD, "1")
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    let mut lines = BufReader::new(child.stdout.take().unwrap()).lines().map(Result::unwrap);
    assert!(lines.any(|line| line.contains(RUNNING)));
    let signal = |name: &str| {
        let command = format!("kill -{name} {}", child.id());
        assert!(Command::new("sh").args(["-c", &command]).status().unwrap().success());
    };
    signal("STOP");
    std::thread::sleep(2 * LIMIT);
    signal("CONT");
    // The kernel continues, and ends when the word is set.
    std::thread::sleep(LIMIT / 8);
    writeln!(child.stdin.take().unwrap(), "end").unwrap();
    let rest: Vec<String> = lines.collect();
    assert!(child.wait().unwrap().success(), "{rest:?}");
}

fn child() {
    let device = Device::new(DeviceOptions { time_limit: LIMIT, ..options() }).unwrap();
    let words = Words::zeros(&device, 2);
    let wgsl = "
        @group(0) @binding(0) var<storage, read_write> words: array<atomic<u32>>;
        @compute @workgroup_size(1) fn main() {
            atomicStore(&words[1], 1u);
            while atomicLoad(&words[0]) == 0u {}
        }";
    let kernel = Kernel::new(&device, wgsl, &[(STORAGE, 1)], 0);
    let set = kernel.set(&device, STORAGE, &[&words]);
    let command = recorded(&device, Flags::empty(), |command| {
        command.bind_pipeline(&kernel.pipeline).unwrap();
        command.bind_descriptor_sets(&kernel.layout, 0, &[&set], &[]).unwrap();
        command.dispatch(1, 1, 1).unwrap();
    });
    let fence = device.create_fence(false);
    device.queue().submit(&[&command], Some(&fence)).unwrap();
    while words.read()[1] == 0 {
        std::thread::yield_now();
    }
    println!("{RUNNING}");
    std::io::stdin().read_line(&mut String::new()).unwrap();
    let _words = words.write(&[1]);
    assert_eq!(fence.wait(None), Ok(true));
}
