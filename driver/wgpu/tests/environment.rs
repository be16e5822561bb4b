//! What the environment changes: checked mode. Its variable is one of the process, so the test runs this program again.

#![allow(clippy::unwrap_used, reason = "tests and their helpers")]

use std::process::{Command, Output};

use crate::common::Gpu;

const RACY: &str = "
    @group(0) @binding(0) var<storage, read_write> sum: u32;
    @compute @workgroup_size(2) fn main() { sum += 1u; }";

/// A test of a user that knows nothing of checked mode.
#[test]
#[ignore = "`races_are_failures_if_the_environment_says_so` runs it with and without checked mode"]
fn racy() {
    let gpu = Gpu::of(&spelter_wgpu::Options::from_env());
    let usage = wgpu::BufferUsages::STORAGE | wgpu::BufferUsages::COPY_SRC;
    let sum = gpu.device.create_buffer(&wgpu::BufferDescriptor {
        label: Some("the sum"),
        size: 4,
        usage,
        mapped_at_creation: false,
    });
    let pipeline = gpu.pipeline(RACY, &[]);
    let group = gpu.group(&pipeline, &[sum.as_entire_binding()]);
    gpu.dispatch(&pipeline, &group, [1, 1, 1]);
    assert_eq!(gpu.read_words(&sum).len(), 1);
}

#[test]
fn races_are_failures_if_the_environment_says_so() {
    let run = |value: &str| -> Output {
        let mut command = Command::new(std::env::current_exe().unwrap());
        command.args(["--ignored", "--exact", "environment::racy", "--nocapture"]).env("SPELTER_CHECK", value);
        command.output().unwrap()
    };
    let text = |output: &Output| String::from_utf8_lossy(&output.stderr).into_owned();
    let unchecked = run("0");
    assert!(unchecked.status.success(), "{}", text(&unchecked));
    let checked = run("1");
    assert!(!checked.status.success());
    let said = text(&checked);
    assert!(said.contains("checked mode (SPELTER_CHECK) found 1 error"), "{said}");
    assert!(said.contains("sum"), "{said}");
    // The device is refused, with the reason on standard error: there is no logger.
    let wrong = run("perhaps");
    assert!(!wrong.status.success());
    assert!(text(&wrong).contains("spelter: SPELTER_CHECK: "), "{}", text(&wrong));
}

/// What the adapter records for a call must need no barrier of the program.
#[test]
fn the_adapter_itself_causes_no_race() {
    let options = spelter_wgpu::Options::new().driver(|options| options.check = Some(Default::default()));
    let gpu = Gpu::of(&options);
    let set = gpu.device.create_query_set(&wgpu::QuerySetDescriptor {
        label: None,
        ty: wgpu::QueryType::Timestamp,
        count: 2,
    });
    let usage = wgpu::BufferUsages::QUERY_RESOLVE | wgpu::BufferUsages::COPY_SRC;
    let times =
        gpu.device.create_buffer(&wgpu::BufferDescriptor { label: None, size: 16, usage, mapped_at_creation: false });
    let mut encoder = gpu.encoder();
    encoder.write_timestamp(&set, 0);
    encoder.write_timestamp(&set, 1);
    encoder.resolve_query_set(&set, 0..2, &times, 0);
    gpu.queue.submit([encoder.finish()]);
    assert_eq!(gpu.read(&times).len(), 16);
    let findings = spelter_wgpu::driver_device(&gpu.device).unwrap().take_findings();
    assert!(findings.is_empty(), "{findings:?}");
}
