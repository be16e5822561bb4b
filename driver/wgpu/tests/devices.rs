//! Devices are cheap: what a test opens is gone afterwards, and idle devices have no threads. Alone in its process,
//! since it counts what the process has.

#![allow(clippy::unwrap_used, reason = "tests and their helpers")]

mod common;

use common::Gpu;

/// Threads and bytes of address space of this process.
fn own() -> (usize, u64) {
    let status = std::fs::read_to_string("/proc/self/status").unwrap();
    let field = |name: &str| -> u64 {
        let line = status.lines().find(|line| line.starts_with(name)).unwrap();
        line.split_whitespace().nth(1).unwrap().parse().unwrap()
    };
    (field("Threads:") as usize, field("VmSize:") << 10)
}

fn is_working(gpu: &Gpu, number: u32) {
    let source = "@group(0) @binding(0) var<storage, read_write> to: array<u32>;
        @compute @workgroup_size(64) fn main(@builtin(global_invocation_id) id: vec3<u32>) { to[id.x] += id.x; }";
    let results = gpu.run(source, &[&[number; 256]], [4, 1, 1]);
    assert_eq!(results[0], (0..256).map(|n| n + number).collect::<Vec<u32>>());
}

/// Waits until threads that end have ended, and returns what the process has.
fn settled(at_most: usize) -> (usize, u64) {
    for _ in 0..200 {
        if own().0 <= at_most {
            break;
        }
        std::thread::sleep(std::time::Duration::from_millis(50));
    }
    own()
}

/// Bytes of addresses that each device reserves here: more than the C library keeps for the memory of threads.
const RESERVED: u64 = 32 << 30;

fn open() -> Gpu {
    Gpu::of(&spelter_wgpu::Options::new().driver(|options| options.heap_size = RESERVED))
}

#[test]
#[cfg(target_os = "linux")]
fn devices_leave_nothing() {
    // The first device brings what the process keeps: log, thread-local memory, code.
    is_working(&open(), 0);
    let (threads, bytes) = settled(2);
    for number in 0..1000 {
        let gpu = open();
        if number % 10 == 0 {
            is_working(&gpu, number);
        }
    }
    let (now, size) = settled(threads);
    assert!(now <= threads, "{now} threads after 1000 devices, {threads} before");
    assert!(size < bytes + RESERVED, "{size} bytes of addresses after 1000 devices, {bytes} before");

    let all: Vec<_> = (0..100).map(|_| open()).collect();
    std::thread::scope(|scope| {
        for (number, gpu) in all.iter().enumerate() {
            scope.spawn(move || is_working(gpu, number as u32));
        }
    });
    drop(all);
    let (now, size) = settled(threads);
    assert!(now <= threads, "{now} threads after 100 devices at once, {threads} before");
    assert!(size < bytes + RESERVED, "{size} bytes of addresses after 100 devices at once, {bytes} before");
}
