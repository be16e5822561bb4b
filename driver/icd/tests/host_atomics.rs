//! Atomics of host threads on mapped memory, while a kernel does atomics on the same words.
//!
//! The specification orders atomics of host and device only by synchronization of the API. This device shares the
//! host's memory, so that they are atomic with respect to each other, too; programs for unified memory rely on it.

#![allow(
    clippy::unwrap_used,
    clippy::undocumented_unsafe_blocks,
    clippy::multiple_unsafe_ops_per_block,
    reason = "every call of Vulkan is unsafe; a failing test panics"
)]

use std::sync::atomic::{AtomicU32, Ordering};

use crate::common::{Buffer, Gpu};
use ash::vk;

/// The word that is counted.
const COUNT: usize = 0;
/// The kernel sets it when it runs.
const RUNS: usize = 1;
/// The host sets it when the kernel may end.
const GO: usize = 2;
const LOCK: usize = 3;
/// The count that the lock protects.
const LOCKED: usize = 4;

const GROUPS: u32 = 64;

/// The first invocation tells that it runs and waits for the host; all count.
const COUNTERS: &str = "
    @group(0) @binding(0) var<storage, read_write> words: array<atomic<u32>>;
    @compute @workgroup_size(64) fn main(@builtin(global_invocation_id) id: vec3<u32>) {
        if id.x == 0u {
            atomicStore(&words[1], 1u);
            while atomicLoad(&words[2]) == 0u {}
        }
        for (var i = 0u; i < 32u; i++) { atomicAdd(&words[0], 1u); }
    }";

/// Increments a word by a load and a store, with a lock around them.
const LOCKER: &str = "
    @group(0) @binding(0) var<storage, read_write> words: array<atomic<u32>>;
    @compute @workgroup_size(1) fn main(@builtin(global_invocation_id) id: vec3<u32>) {
        if id.x == 0u {
            atomicStore(&words[1], 1u);
            while atomicLoad(&words[2]) == 0u {}
        }
        for (var i = 0u; i < 100u; i++) {
            while !atomicCompareExchangeWeak(&words[3], 0u, 1u).exchanged {}
            atomicStore(&words[4], atomicLoad(&words[4]) + 1u);
            atomicStore(&words[3], 0u);
        }
    }";

fn word(buffer: &Buffer, index: usize) -> &AtomicU32 {
    assert!(index < buffer.words);
    unsafe { AtomicU32::from_ptr(buffer.mapped.add(index)) }
}

/// Runs a kernel while the host executes `step` again and again, often before the kernel may end. Returns the words
/// and how often the host did.
fn while_running(kernel: &str, step: impl Fn(&Buffer)) -> (Vec<u32>, u32) {
    let gpu = Gpu::new();
    let types = [vk::DescriptorType::STORAGE_BUFFER];
    let program = gpu.program(kernel, &types, vk::DescriptorSetLayoutCreateFlags::empty());
    let (buffer, pool) = (gpu.buffer(8), gpu.descriptor_pool());
    let set = gpu.set(pool, &program, &[&buffer]);
    let commands = [gpu.dispatch(program.pipeline, program.layout, set, GROUPS)];
    let fence = unsafe { gpu.device.create_fence(&vk::FenceCreateInfo::default(), None).unwrap() };
    let mut steps = 0;
    std::thread::scope(|scope| {
        // A submission may run on the submitting thread.
        scope.spawn(|| unsafe {
            let submit = vk::SubmitInfo::default().command_buffers(&commands);
            gpu.device.queue_submit(gpu.queue, &[submit], fence).unwrap();
        });
        while word(&buffer, RUNS).load(Ordering::Acquire) == 0 {
            std::thread::yield_now();
        }
        let mut step = || {
            step(&buffer);
            steps += 1;
        };
        (0..1000).for_each(|_| step());
        word(&buffer, GO).store(1, Ordering::Release);
        while !unsafe { gpu.device.get_fence_status(fence).unwrap() } {
            step();
        }
    });
    let words = buffer.read();
    unsafe {
        gpu.device.destroy_fence(fence, None);
        gpu.device.destroy_descriptor_pool(pool, None);
    }
    gpu.destroy_buffer(buffer);
    gpu.destroy_program(program);
    (words, steps)
}

#[test]
fn additions_of_host_and_kernel_are_all_counted() {
    let (words, steps) = while_running(COUNTERS, |buffer| _ = word(buffer, COUNT).fetch_add(1, Ordering::Relaxed));
    assert_eq!(words[COUNT], GROUPS * 64 * 32 + steps);
}

#[test]
fn a_lock_excludes_host_and_kernel_from_each_other() {
    let (words, steps) = while_running(LOCKER, |buffer| {
        while word(buffer, LOCK).compare_exchange_weak(0, 1, Ordering::Acquire, Ordering::Relaxed).is_err() {
            std::hint::spin_loop();
        }
        let count = word(buffer, LOCKED).load(Ordering::Relaxed);
        word(buffer, LOCKED).store(count + 1, Ordering::Relaxed);
        word(buffer, LOCK).store(0, Ordering::Release);
    });
    assert_eq!(words[LOCKED], GROUPS * 100 + steps);
    assert_eq!(words[LOCK], 0);
}
