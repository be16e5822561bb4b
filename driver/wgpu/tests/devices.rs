//! Devices are cheap: what a test opens is gone afterwards, and idle devices have no threads. Alone in its process,
//! since it counts what the process has.

#![allow(clippy::unwrap_used, reason = "tests and their helpers")]

mod common;

use common::Gpu;

/// What a process has.
#[derive(Clone, Copy, Debug)]
struct Has {
    threads: u64,
    /// Bytes of address space.
    bytes: u64,
    mappings: usize,
}

impl Has {
    fn now() -> Self {
        let status = std::fs::read_to_string("/proc/self/status").unwrap();
        let field = |name: &str| -> u64 {
            let line = status.lines().find(|line| line.starts_with(name)).unwrap();
            line.split_whitespace().nth(1).unwrap().parse().unwrap()
        };
        let mappings = std::fs::read_to_string("/proc/self/maps").unwrap().lines().count();
        Self { threads: field("Threads:"), bytes: field("VmSize:") << 10, mappings }
    }

    /// After threads that end have ended.
    fn settled(threads: u64) -> Self {
        for _ in 0..200 {
            if Self::now().threads <= threads {
                break;
            }
            std::thread::sleep(std::time::Duration::from_millis(50));
        }
        Self::now()
    }

    /// Fails if the process has more than it had, except for what the C library keeps: it moves the ends of its heaps.
    fn is_as(self, before: Self, after: &str) {
        assert!(self.threads <= before.threads, "{self:?} after {after}, {before:?} before");
        assert!(self.bytes <= before.bytes + KEPT, "{self:?} after {after}, {before:?} before");
        assert!(self.mappings <= before.mappings + KEPT_MAPPINGS, "{self:?} after {after}, {before:?} before");
    }
}

fn is_working(gpu: &Gpu, number: u32) {
    let source = "@group(0) @binding(0) var<storage, read_write> to: array<u32>;
        @compute @workgroup_size(64) fn main(@builtin(global_invocation_id) id: vec3<u32>) { to[id.x] += id.x; }";
    let results = gpu.run(source, &[&[number; 256]], [4, 1, 1]);
    assert_eq!(results[0], (0..256).map(|n| n + number).collect::<Vec<u32>>());
}

/// Bytes of addresses that each device reserves here: what one device leaves is more than the C library may keep.
const RESERVED: u64 = 4 << 30;
/// Bytes and mappings that the C library may have more of: one of its heaps, and few parts.
const KEPT: u64 = 64 << 20;
const KEPT_MAPPINGS: usize = 32;

fn open() -> Gpu {
    Gpu::of(&spelter_wgpu::Options::new().driver(|options| options.heap_size = RESERVED))
}

/// A hundred devices at once, each of which works on a thread of its own.
fn hundred_at_once() {
    let all: Vec<_> = (0..100).map(|_| open()).collect();
    std::thread::scope(|scope| {
        for (number, gpu) in all.iter().enumerate() {
            scope.spawn(move || is_working(gpu, number as u32));
        }
    });
}

#[test]
#[cfg(target_os = "linux")]
fn devices_leave_nothing() {
    // The first ones bring what the process keeps: log, code, and the C library's heaps, one for each of many threads.
    hundred_at_once();
    let before = Has::settled(2);
    for number in 0..1000 {
        let gpu = open();
        if number % 10 == 0 {
            is_working(&gpu, number);
        }
    }
    Has::settled(before.threads).is_as(before, "1000 devices");
    hundred_at_once();
    Has::settled(before.threads).is_as(before, "100 devices at once");
}
