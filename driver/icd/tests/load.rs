//! Load tests: many threads, submissions and pipelines. Short by default; `SPELTER_LOAD=60` runs the threads for a
//! minute, then a million submissions and a hundred thousand pipelines.

#![allow(
    clippy::unwrap_used,
    clippy::print_stderr,
    clippy::undocumented_unsafe_blocks,
    clippy::multiple_unsafe_ops_per_block,
    reason = "every call of Vulkan is unsafe; a failing test panics; figures are to be seen"
)]

mod common;

use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

use ash::vk;
use common::{Gpu, MARK, marked};

const ADD: &str = "
    @group(0) @binding(0) var<storage, read_write> a: array<u32>;
    @compute @workgroup_size(1) fn main() { a[0] = a[0] + 1u; }";

/// A shader with [`MARK`] in it.
const MARKED: &str = "
    @group(0) @binding(0) var<storage, read_write> a: array<u32>;
    @compute @workgroup_size(1) fn main() { a[0] = a[0] + 305419896u; }";

const THREADS: usize = 64;

/// The time of the threads, and the numbers of submissions and pipelines.
fn amounts() -> (Duration, u32, u32) {
    match std::env::var("SPELTER_LOAD").ok().and_then(|text| text.parse().ok()) {
        Some(seconds) => (Duration::from_secs_f64(seconds), 1_000_000, 100_000),
        None => (Duration::from_millis(500), 20_000, 300),
    }
}

/// The resident memory of the process in bytes.
fn resident() -> u64 {
    let pages = std::fs::read_to_string("/proc/self/statm").unwrap_or_default();
    pages.split_whitespace().nth(1).and_then(|pages| pages.parse::<u64>().ok()).unwrap_or(0) * 4096
}

/// One test, so that the parts run one after the other and do not disturb each other's figures.
#[test]
fn nothing_leaks_and_nothing_hangs() {
    let gpu = Gpu::new();
    threads(&gpu);
    submissions(&gpu);
    pipelines(&gpu);
}

fn threads(gpu: &Gpu) {
    let (time, _, _) = amounts();
    let (start, rounds) = (Instant::now(), AtomicU64::new(0));
    let mut before = 0;
    for half in 0..2 {
        std::thread::scope(|scope| {
            for _ in 0..THREADS {
                scope.spawn(|| {
                    while start.elapsed() < time * (half + 1) / 2 {
                        round(gpu);
                        rounds.fetch_add(1, Ordering::Relaxed);
                    }
                });
            }
        });
        if half == 0 {
            before = resident();
        }
    }
    let grown = resident().saturating_sub(before);
    eprintln!("{THREADS} threads: {} rounds in {:?}, {grown} bytes grown", rounds.into_inner(), start.elapsed());
    assert!(grown < 64 << 20, "{grown} bytes more after the second half");
}

/// One iteration of a thread: creates, records, submits to the shared queue, destroys.
fn round(gpu: &Gpu) {
    let program = gpu.program(ADD, &[vk::DescriptorType::STORAGE_BUFFER], vk::DescriptorSetLayoutCreateFlags::empty());
    let (buffer, descriptors) = (gpu.buffer(16), gpu.descriptor_pool());
    let set = gpu.set(descriptors, &program, &[&buffer]);
    let point = vk::PipelineBindPoint::COMPUTE;
    unsafe {
        let pool = gpu.device.create_command_pool(&vk::CommandPoolCreateInfo::default(), None).unwrap();
        let info = vk::CommandBufferAllocateInfo::default().command_pool(pool).command_buffer_count(1);
        let commands = gpu.device.allocate_command_buffers(&info).unwrap();
        gpu.device.begin_command_buffer(commands[0], &vk::CommandBufferBeginInfo::default()).unwrap();
        gpu.device.cmd_bind_pipeline(commands[0], point, program.pipeline);
        gpu.device.cmd_bind_descriptor_sets(commands[0], point, program.layout, 0, &[set], &[]);
        gpu.device.cmd_dispatch(commands[0], 1, 1, 1);
        gpu.device.end_command_buffer(commands[0]).unwrap();
        let fence = gpu.device.create_fence(&vk::FenceCreateInfo::default(), None).unwrap();
        let submit = vk::SubmitInfo::default().command_buffers(&commands);
        gpu.device.queue_submit(gpu.queue, &[submit], fence).unwrap();
        gpu.device.wait_for_fences(&[fence], true, u64::MAX).unwrap();
        assert_eq!(buffer.read()[0], 1);
        gpu.device.destroy_fence(fence, None);
        gpu.device.destroy_command_pool(pool, None);
        gpu.device.destroy_descriptor_pool(descriptors, None);
    }
    gpu.destroy_program(program);
    gpu.destroy_buffer(buffer);
}

fn submissions(gpu: &Gpu) {
    let (_, count, _) = amounts();
    let program = gpu.program(ADD, &[vk::DescriptorType::STORAGE_BUFFER], vk::DescriptorSetLayoutCreateFlags::empty());
    let (buffer, descriptors) = (gpu.buffer(16), gpu.descriptor_pool());
    let set = gpu.set(descriptors, &program, &[&buffer]);
    let point = vk::PipelineBindPoint::COMPUTE;
    let info = vk::CommandBufferAllocateInfo::default().command_pool(gpu.pool).command_buffer_count(1);
    let (start, before) = (Instant::now(), resident());
    unsafe {
        let commands = gpu.device.allocate_command_buffers(&info).unwrap();
        let begin = vk::CommandBufferBeginInfo::default().flags(vk::CommandBufferUsageFlags::SIMULTANEOUS_USE);
        gpu.device.begin_command_buffer(commands[0], &begin).unwrap();
        gpu.device.cmd_bind_pipeline(commands[0], point, program.pipeline);
        gpu.device.cmd_bind_descriptor_sets(commands[0], point, program.layout, 0, &[set], &[]);
        gpu.device.cmd_dispatch(commands[0], 1, 1, 1);
        gpu.device.end_command_buffer(commands[0]).unwrap();
        for _ in 0..count {
            let submit = vk::SubmitInfo::default().command_buffers(&commands);
            gpu.device.queue_submit(gpu.queue, &[submit], vk::Fence::null()).unwrap();
        }
        gpu.device.queue_wait_idle(gpu.queue).unwrap();
        assert_eq!(buffer.read()[0], count);
        gpu.device.destroy_descriptor_pool(descriptors, None);
    }
    let (took, grown) = (start.elapsed(), resident().saturating_sub(before));
    eprintln!("{count} submissions: {took:?}, {:?} each, {grown} bytes grown", took / count);
    assert!(grown < 64 << 20, "{grown} bytes more");
    gpu.destroy_program(program);
    gpu.destroy_buffer(buffer);
}

fn pipelines(gpu: &Gpu) {
    let (_, _, count) = amounts();
    let program = gpu.program(ADD, &[vk::DescriptorType::STORAGE_BUFFER], vk::DescriptorSetLayoutCreateFlags::empty());
    let words = common::spirv(MARKED);
    assert!(words.contains(&MARK));
    let start = Instant::now();
    let mut before = 0;
    for index in 0..count {
        // Each shader has another number in it, so that no pipeline is shared.
        let info = vk::ComputePipelineCreateInfo::default().layout(program.layout);
        let made = gpu.pipeline_of(vk::PipelineCache::null(), &marked(&words, index), info).unwrap();
        unsafe { gpu.device.destroy_pipeline(made, None) };
        if index == count / 10 {
            before = resident();
        }
    }
    let (took, grown) = (start.elapsed(), resident().saturating_sub(before));
    eprintln!("{count} pipelines: {took:?}, {:?} each, {grown} bytes grown", took / count);
    assert!(grown < 64 << 20, "{grown} bytes more");
    gpu.destroy_program(program);
}
