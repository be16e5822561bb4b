//! What invalidation saves: streams of uploads into one buffer that every dispatch reads, by rename, by waiting and by
//! staged copy; and the tracker's cost before a kernel runs. Ratios within one run, since other load on the machine
//! makes absolute times meaningless.

#![allow(clippy::print_stdout, reason = "a bench prints its ratios")]

use std::time::{Duration, Instant};

use criterion::{Criterion, criterion_group, criterion_main};
use spelter::{Bind, Buffer, Context, Error, Program};
use spelter_driver::{Binding, BufferInfo, MemoryBarrier, Specialization, vk};

/// Reads the whole buffer, with some arithmetic per word.
const READ: &str = "
@group(0) @binding(0) var<storage, read> source: array<u32>;
@group(0) @binding(1) var<storage, read_write> to: array<u32>;
@compute @workgroup_size(256) fn main(@builtin(global_invocation_id) id: vec3u) {
    var x = source[id.x];
    for (var i = 0u; i < 500u; i++) { x = x * 1664525u + 1013904223u; }
    to[id.x] = x;
}";

/// How new data get into the buffer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Way {
    Nothing,
    Rename,
    Stage,
    Wait,
}

/// A context on a device with this number of workers.
fn context(workers: usize) -> Context {
    Context::builder().workers(workers).build().expect("a context")
}

struct Stream {
    context: Context,
    program: Program,
    source: Buffer,
    values: Vec<u32>,
}

impl Stream {
    fn new(bytes: u64) -> Result<Self, Error> {
        // The host gets its own core if there is one: the measurement is about waits between host and workers.
        let cores = std::thread::available_parallelism().map_or(1, usize::from);
        let context = context(cores.saturating_sub(1).max(1));
        let program = context.program_wgsl(READ)?;
        // The last bytes stay defined: without a wait only a staged copy is possible, unless they are discarded.
        let (source, to) = (context.buffer_zeroed(bytes + 64)?, context.buffer_zeroed(bytes)?);
        context.bind((0, 0), Bind::storage(source.slice(..bytes)))?;
        context.bind((0, 1), Bind::storage(&to))?;
        Ok(Self { context, program, source, values: vec![1; bytes as usize / 4] })
    }

    /// The time of `count` uploads, each read by a dispatch.
    fn run(&self, way: Way, count: u32) -> Result<Duration, Error> {
        let start = Instant::now();
        for _ in 0..count {
            match way {
                Way::Nothing => {}
                Way::Rename => {
                    self.context.upload(&self.source, &self.values)?;
                }
                Way::Stage => {
                    self.context.write(&self.source, 0, &self.values)?;
                }
                Way::Wait => {
                    self.context.finish()?;
                    self.context.write(&self.source, 0, &self.values)?;
                }
            }
            self.context.dispatch(&self.program).invocations([self.values.len() as u32, 1, 1])?;
            self.context.flush()?;
        }
        self.context.finish()?;
        Ok(start.elapsed())
    }
}

fn streams(_: &mut Criterion) {
    println!("throughput of dispatches that read a buffer which is uploaded before each, relative to no uploads:");
    println!("{:>10}  {:>7} {:>7} {:>7}   storage", "bytes", "rename", "staged", "wait");
    for bytes in [64 << 10, 256 << 10, 1 << 20, 4 << 20, 16 << 20] {
        stream(bytes).expect("the stream runs");
    }
}

fn stream(bytes: u64) -> Result<(), Error> {
    let stream = Stream::new(bytes)?;
    let count = ((64 << 20) / bytes).clamp(8, 64) as u32;
    let ways = [Way::Nothing, Way::Rename, Way::Stage, Way::Wait];
    let mut best = [Duration::MAX; 4];
    stream.run(Way::Rename, count)?; // compiled and measured once
    let before = stream.context.stats();
    for _ in 0..7 {
        for (way, best) in ways.into_iter().zip(&mut best) {
            *best = stream.run(way, count)?.min(*best);
        }
    }
    let stats = stream.context.stats().since(&before);
    let share = |way: usize| best[0].as_secs_f64() / best[way].as_secs_f64() * 100.0;
    let made = stats.objects_created - stats.objects_recycled;
    println!(
        "{bytes:>10}  {:>6.1}% {:>6.1}% {:>6.1}%   {} renames in {made} new storages",
        share(1),
        share(2),
        share(3),
        stats.renames
    );
    Ok(())
}

/// Nanoseconds of one call, the best of several measurements.
fn nanoseconds(mut run: impl FnMut() -> Result<(Duration, u32), Error>) -> f64 {
    let mut best = f64::MAX;
    for _ in 0..60 {
        let (time, count) = run().expect("it runs");
        best = best.min(time.as_nanos() as f64 / f64::from(count));
    }
    best
}

const TINY: &str = "
@group(0) @binding(0) var<uniform> u: vec4<u32>;
@group(0) @binding(1) var<storage, read> a: array<u32>;
@group(0) @binding(2) var<storage, read_write> b: array<u32>;
@compute @workgroup_size(1) fn main() { b[0] = a[0] + u.x; }";

/// Dispatches in a batch: fewer than its limit.
const BATCH: u32 = 1000;

fn dispatches(_: &mut Criterion) {
    let context = context(1);
    let program = context.program_wgsl(TINY).expect("a program");
    let buffers: Vec<_> = (0..4).map(|_| context.buffer_zeroed(64).expect("a buffer")).collect();
    context.bind((0, 0), Bind::uniform(&buffers[0])).expect("bound");
    context.bind((0, 1), Bind::storage(&buffers[1])).expect("bound");
    context.bind((0, 2), Bind::storage(&buffers[2])).expect("bound");
    let timed = |record: &dyn Fn(u32) -> Result<(), Error>| {
        nanoseconds(|| {
            record(0)?;
            let start = Instant::now();
            (1..BATCH).try_for_each(record)?;
            let time = start.elapsed();
            context.finish()?;
            context.events();
            Ok((time, BATCH - 1))
        })
    };
    let same = timed(&|_| context.dispatch(&program).groups([1, 1, 1]));
    let changed = timed(&|turn| {
        context.bind((0, 1), Bind::storage(&buffers[if turn % 2 == 0 { 1 } else { 3 }]))?;
        context.dispatch(&program).groups([1, 1, 1])
    });
    let own = timed(&|_| {
        let dispatch = context.dispatch(&program).bind(0, 0, &buffers[0]).bind(0, 1, &buffers[1]);
        dispatch.bind(0, 2, &buffers[2]).groups([1, 1, 1])
    });
    context.record_events(true);
    let logged = timed(&|_| context.dispatch(&program).groups([1, 1, 1]));
    context.record_events(false);
    let [idle, changing] = [false, true].map(|changing| driver_alone(&context, changing));
    println!("recording a dispatch with a barrier before it, in nanoseconds:");
    println!("  {:26} {:>7} {:>7} {:>8}", "", "all", "driver", "tracker");
    for (what, time, driver, most) in [
        ("nothing changed", same, idle, "at most 200"),
        ("the same, events on", logged, idle, ""),
        ("one binding changed", changed, changing, "at most 500"),
        ("three bindings of its own", own, changing, ""),
    ] {
        println!("  {what:26} {time:7.0} {driver:7.0} {:8.0}  {most}", time - driver);
    }
}

/// The driver's time for the same commands: a barrier and a dispatch, with the same descriptor set or another one each
/// time.
fn driver_alone(context: &Context, changing: bool) -> f64 {
    let device = context.device();
    let storage = vk::DescriptorType::STORAGE_BUFFER;
    let types = [vk::DescriptorType::UNIFORM_BUFFER, storage, storage];
    let bindings: Vec<_> = (0..).zip(types).map(|(binding, ty)| Binding { binding, ty, count: 1 }).collect();
    let set_layout = device.create_descriptor_set_layout(&bindings).expect("a layout");
    let layout = device.create_pipeline_layout(&[&set_layout], &[]).expect("a layout");
    let module = device.create_shader_module_wgsl(TINY).expect("a module");
    let pipeline = device.create_compute_pipeline(&module, "main", &Specialization::default(), &layout);
    let pipeline = pipeline.expect("a pipeline");
    let usage = vk::BufferUsageFlags::STORAGE_BUFFER | vk::BufferUsageFlags::UNIFORM_BUFFER;
    let buffer = device.create_buffer(64, usage).expect("a buffer");
    let memory = device.allocate_memory(64, 0).expect("memory");
    buffer.bind_memory(&memory, 0).expect("bound");
    let pool = device.create_descriptor_pool(2, &[(types[0], 2), (storage, 4)]).expect("a pool");
    let sets: Vec<_> = (0..2).map(|_| pool.allocate(&set_layout).expect("a set")).collect();
    for set in &sets {
        for (binding, ty) in (0..).zip(types) {
            set.write(binding, 0, ty, &[BufferInfo { buffer: &buffer, offset: 0, range: 64 }]).expect("written");
        }
    }
    let stages = vk::PipelineStageFlags::ALL_COMMANDS;
    let (src_access, dst_access) = (vk::AccessFlags::MEMORY_WRITE, vk::AccessFlags::MEMORY_READ);
    let barrier = MemoryBarrier { src_access, dst_access };
    let commands = device.create_command_pool().allocate();
    nanoseconds(|| {
        commands.begin(vk::CommandBufferUsageFlags::ONE_TIME_SUBMIT)?;
        commands.bind_pipeline(&pipeline)?;
        commands.bind_descriptor_sets(&layout, 0, &[&sets[0]], &[])?;
        commands.dispatch(1, 1, 1)?;
        let start = Instant::now();
        for turn in 1..BATCH as usize {
            if changing {
                commands.bind_descriptor_sets(&layout, 0, &[&sets[turn % 2]], &[])?;
            }
            commands.pipeline_barrier(stages, stages, &[barrier], &[])?;
            commands.dispatch(1, 1, 1)?;
        }
        let time = start.elapsed();
        commands.end()?;
        device.queue().submit(&[&commands], None)?;
        device.queue().wait_idle()?;
        Ok((time, BATCH - 1))
    })
}

fn rebinds(_: &mut Criterion) {
    println!("renaming a buffer that is in one slot, in nanoseconds, by the number of bound slots:");
    let mut first = 0.0;
    for (slots, events) in [(1, false), (10, false), (100, false), (1000, false), (1, true)] {
        let context = context(1);
        context.record_events(events);
        let (buffer, other) =
            (context.buffer_zeroed(64).expect("a buffer"), context.buffer_zeroed(64).expect("a buffer"));
        for binding in 1..slots {
            context.bind((0, binding), Bind::storage(&other)).expect("bound");
        }
        context.bind((0, 0), Bind::storage(&buffer)).expect("bound");
        let time = nanoseconds(|| {
            let mut time = Duration::ZERO;
            for _ in 0..100 {
                context.copy(&buffer, 0, &other, 0, 64)?; // in use
                let start = Instant::now();
                context.invalidate(&buffer)?;
                time += start.elapsed();
            }
            context.finish()?;
            context.events();
            Ok((time, 100))
        });
        first = if slots == 1 && !events { time } else { first };
        let log = if events { ", events on" } else { "" };
        println!("  {slots:5} slots  {time:6.0}  {:.2} of one{log}", time / first);
    }
}

criterion_group!(benches, dispatches, rebinds, streams);
criterion_main!(benches);
