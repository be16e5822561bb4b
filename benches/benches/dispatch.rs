//! What it costs to dispatch: thousands of small dispatches, one tiny one, and how work spreads over workers. The device
//! interprets kernels, so all but the kernel that does nothing are as slow as the interpreter.
//!
//! Ratios are printed first: other work on the machine makes absolute times worthless.

#![allow(
    clippy::unwrap_used,
    clippy::print_stdout,
    reason = "a bench that cannot run should say so, and prints its ratios"
)]

use std::hint::black_box;
use std::time::{Duration, Instant};

use criterion::{Criterion, Throughput, criterion_group, criterion_main};
use spelter_driver::vk::{
    AccessFlags, BufferCopy, BufferUsageFlags, CommandBufferUsageFlags, DescriptorType, PipelineStageFlags,
};
use spelter_driver::{
    Binding, Buffer, BufferInfo, CommandBuffer, ComputePipeline, DescriptorSet, Device, DeviceOptions, MemoryBarrier,
    PipelineLayout, Specialization,
};

const DISPATCHES: u64 = 10_000;

const SHADER: &str = "
@group(0) @binding(0) var<storage, read_write> out: array<u32>;

@compute @workgroup_size(1) fn tiny(@builtin(workgroup_id) id: vec3u) { out[id.x] = id.x; }

@compute @workgroup_size(64) fn busy(@builtin(global_invocation_id) id: vec3u) {
    var x = id.x;
    for (var i = 0u; i < 100u; i++) { x = x * 1664525u + 1013904223u; }
    out[id.x % 1024u] = x;
}";

/// A device with a kernel of each kind.
struct Bench {
    device: Device,
    layout: PipelineLayout,
    set: DescriptorSet,
    tiny: ComputePipeline,
    busy: ComputePipeline,
}

fn buffer(device: &Device, size: u64) -> Buffer {
    let usage = BufferUsageFlags::STORAGE_BUFFER | BufferUsageFlags::TRANSFER_SRC | BufferUsageFlags::TRANSFER_DST;
    let buffer = device.create_buffer(size, usage).unwrap();
    let memory = device.allocate_memory(buffer.requirements().size, 0).unwrap();
    buffer.bind_memory(&memory, 0).unwrap();
    buffer
}

impl Bench {
    fn new(workers: usize) -> Self {
        let device = Device::new(DeviceOptions { workers, ..DeviceOptions::default() }).unwrap();
        let ty = DescriptorType::STORAGE_BUFFER;
        let bindings = device.create_descriptor_set_layout(&[Binding { binding: 0, ty, count: 1 }]).unwrap();
        let set = device.create_descriptor_pool(1, &[(ty, 1)]).unwrap().allocate(&bindings).unwrap();
        let buffer = buffer(&device, 4096);
        set.write(0, 0, ty, &[BufferInfo { buffer: &buffer, offset: 0, range: 4096 }]).unwrap();
        let layout = device.create_pipeline_layout(&[&bindings], &[]).unwrap();
        let module = device.create_shader_module_wgsl(SHADER).unwrap();
        let pipeline = |entry| device.create_compute_pipeline(&module, entry, &Specialization::new(), &layout).unwrap();
        let (tiny, busy) = (pipeline("tiny"), pipeline("busy"));
        Self { device, layout, set, tiny, busy }
    }

    /// Records `count` dispatches of `groups` workgroups, with or without barriers between them.
    fn record(&self, pipeline: &ComputePipeline, count: u64, groups: u32, barriers: bool) -> CommandBuffer {
        let command = self.device.create_command_pool().allocate();
        command.begin(CommandBufferUsageFlags::empty()).unwrap();
        command.bind_pipeline(pipeline).unwrap();
        command.bind_descriptor_sets(&self.layout, 0, &[&self.set], &[]).unwrap();
        let stage = PipelineStageFlags::COMPUTE_SHADER;
        let barrier = MemoryBarrier { src_access: AccessFlags::SHADER_WRITE, dst_access: AccessFlags::SHADER_READ };
        for _ in 0..count {
            command.dispatch(groups, 1, 1).unwrap();
            if barriers {
                command.pipeline_barrier(stage, stage, &[barrier], &[]).unwrap();
            }
        }
        command.end().unwrap();
        command
    }

    fn run(&self, command: &CommandBuffer) {
        let queue = self.device.queue();
        queue.submit(&[command], None).unwrap();
        queue.wait_idle().unwrap();
    }
}

/// The best times of two programs that take turns: what the machine can do when nothing else disturbs it.
fn best(mut run: [&mut dyn FnMut(); 2]) -> [Duration; 2] {
    let mut best = [Duration::MAX; 2];
    for _ in 0..20 {
        for (run, best) in run.iter_mut().zip(&mut best) {
            let start = Instant::now();
            run();
            *best = start.elapsed().min(*best);
        }
    }
    best
}

fn spread(_: &mut Criterion) {
    let (one, two) = (Bench::new(1), Bench::new(2));
    let [of_one, of_two] = [&one, &two].map(|bench| bench.record(&bench.busy, 1, 1000, false));
    let times = best([&mut || one.run(&of_one), &mut || two.run(&of_two)]);
    let ratio = |[one, two]: [Duration; 2]| two.as_secs_f64() / one.as_secs_f64();
    let (ours, plain) = (ratio(times), ratio(plain_threads()));
    println!(
        "1,000 equal workgroups: 1 worker {:?}, 2 workers {:?}, ratio {ours:.3} (at most 0.6)",
        times[0], times[1]
    );
    println!("the same with plain threads: ratio {plain:.3}; if this is far from 0.5 the machine is busy");
}

/// A loop on one thread, and half of it on each of two.
fn plain_threads() -> [Duration; 2] {
    let work = |trips: u32| black_box((0..trips).fold(1u32, |x, i| black_box(x.wrapping_mul(1_664_525) ^ i)));
    let mut one = || {
        work(60_000_000);
    };
    let mut two = || {
        std::thread::scope(|scope| {
            scope.spawn(|| work(30_000_000));
            scope.spawn(|| work(30_000_000));
        });
    };
    best([&mut one, &mut two])
}

/// Copies as the device makes them, against plain slices copied by as many threads.
fn copy(_: &mut Criterion) {
    const SIZE: usize = 256 << 20;
    let workers = std::thread::available_parallelism().map_or(1, usize::from);
    let bench = Bench::new(workers);
    let (from, to) = (buffer(&bench.device, SIZE as u64), buffer(&bench.device, SIZE as u64));
    let command = |record: &dyn Fn(&CommandBuffer)| {
        let command = bench.device.create_command_pool().allocate();
        command.begin(CommandBufferUsageFlags::empty()).unwrap();
        record(&command);
        command.end().unwrap();
        command
    };
    bench.run(&command(&|command| command.fill_buffer(&from, 0, SIZE as u64, 7).unwrap()));
    let region = BufferCopy { src_offset: 0, dst_offset: 0, size: SIZE as u64 };
    let copy = command(&|command| command.copy_buffer(&from, &to, &[region]).unwrap());

    let (source, mut target) = (vec![7u8; SIZE], vec![8u8; SIZE]);
    let chunk = SIZE.div_ceil(workers);
    let mut plain = || {
        std::thread::scope(|scope| {
            for (from, to) in source.chunks(chunk).zip(target.chunks_mut(chunk)) {
                scope.spawn(|| to.copy_from_slice(black_box(from)));
            }
        });
    };
    let [ours, plain] = best([&mut || bench.run(&copy), &mut plain]);
    let rate = |time: Duration| SIZE as f64 / time.as_secs_f64() / 1e9;
    let ratio = plain.as_secs_f64() / ours.as_secs_f64();
    println!("copy of 256 MiB: {:.1} GB/s, plain threads {:.1} GB/s, ratio {ratio:.2}", rate(ours), rate(plain));
}

fn dispatches(criterion: &mut Criterion) {
    let bench = Bench::new(std::thread::available_parallelism().map_or(1, usize::from));
    let mut group = criterion.benchmark_group("10,000 dispatches of one workgroup");
    group.throughput(Throughput::Elements(DISPATCHES)).sample_size(20);
    for (name, barriers) in [("no barriers", false), ("a barrier after each", true)] {
        let command = bench.record(&bench.tiny, DISPATCHES, 1, barriers);
        group.bench_function(name, |bencher| bencher.iter(|| bench.run(&command)));
    }
    group.finish();
}

fn latency(criterion: &mut Criterion) {
    let bench = Bench::new(std::thread::available_parallelism().map_or(1, usize::from));
    let mut group = criterion.benchmark_group("submit and wait");
    let empty = bench.record(&bench.tiny, 0, 1, false);
    group.bench_function("nothing", |bencher| bencher.iter(|| bench.run(&empty)));
    let command = bench.record(&bench.tiny, 1, 1, false);
    group.bench_function("one tiny dispatch, wait idle", |bencher| bencher.iter(|| bench.run(&command)));
    let fence = bench.device.create_fence(false);
    group.bench_function("one tiny dispatch, fence", |bencher| {
        bencher.iter(|| {
            bench.device.queue().submit(&[&command], Some(&fence)).unwrap();
            fence.wait(None).unwrap();
            fence.reset().unwrap();
        });
    });
    group.finish();
}

criterion_group!(benches, spread, copy, dispatches, latency);
criterion_main!(benches);
