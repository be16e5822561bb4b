//! Benchmark of invalidation: streams of uploads into one buffer that every dispatch reads, by rename, by waiting and
//! by staged copy; and the tracker's cost before a kernel runs, with slots and with descriptor sets. Ratios within one
//! run, since other load on the machine makes absolute times meaningless.

#![allow(clippy::print_stdout, reason = "a bench prints its ratios")]

use std::time::{Duration, Instant};

use criterion::{Criterion, criterion_group, criterion_main};
use spelter::{Bind, Buffer, Context, DescriptorSet, Error, Program};
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

fn upload_streams(_: &mut Criterion) {
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

/// Nanoseconds to record one command of a batch that `record` fills.
fn timed(context: &Context, record: &dyn Fn(u32) -> Result<(), Error>) -> f64 {
    nanoseconds(|| {
        record(0)?;
        let start = Instant::now();
        (1..BATCH).try_for_each(record)?;
        let time = start.elapsed();
        context.finish()?;
        context.events();
        Ok((time, BATCH - 1))
    })
}

fn dispatches(_: &mut Criterion) {
    let context = context(1);
    let program = context.program_wgsl(TINY).expect("a program");
    let buffers: Vec<_> = (0..4).map(|_| context.buffer_zeroed(64).expect("a buffer")).collect();
    context.bind((0, 0), Bind::uniform(&buffers[0])).expect("bound");
    context.bind((0, 1), Bind::storage(&buffers[1])).expect("bound");
    context.bind((0, 2), Bind::storage(&buffers[2])).expect("bound");
    let same = timed(&context, &|_| context.dispatch(&program).groups([1, 1, 1]));
    let changed = timed(&context, &|iteration| {
        context.bind((0, 1), Bind::storage(&buffers[if iteration % 2 == 0 { 1 } else { 3 }]))?;
        context.dispatch(&program).groups([1, 1, 1])
    });
    let own = timed(&context, &|_| {
        let dispatch = context.dispatch(&program).bind(0, 0, &buffers[0]).bind(0, 1, &buffers[1]);
        dispatch.bind(0, 2, &buffers[2]).groups([1, 1, 1])
    });
    context.record_events(true);
    let logged = timed(&context, &|_| context.dispatch(&program).groups([1, 1, 1]));
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

/// An array of buffers, of which a program reads one word each of the first two.
struct Arrays {
    context: Context,
    program: Program,
    buffers: Vec<Buffer>,
    set: DescriptorSet,
}

impl Arrays {
    fn new(count: u32) -> Result<Self, Error> {
        let context = context(1);
        let text = format!(
            "enable wgpu_binding_array; struct Words {{ w: array<u32> }}
            @group(0) @binding(0) var<storage, read> parts: binding_array<Words, {count}>;
            @group(0) @binding(1) var<storage, read_write> to: u32;
            @compute @workgroup_size(1) fn main() {{ to = parts[0].w[0] + parts[1].w[0]; }}"
        );
        let program = context.program_wgsl(&text)?;
        // Two more, to take the place of the first.
        let buffers: Vec<_> = (0..count + 2).map(|_| context.buffer_zeroed(64)).collect::<Result<_, _>>()?;
        let to = context.buffer_zeroed(4)?;
        let parts = || buffers.iter().take(count as usize).map(Bind::storage);
        for (element, part) in (0..).zip(parts()) {
            context.bind((0, 0, element), part)?;
        }
        context.bind((0, 1), Bind::storage(&to))?;
        let set = context.descriptor_set(&program, 0).with_array(0, 0, parts()).bind(1, &to).updatable().build()?;
        Ok(Self { context, program, buffers, set })
    }

    fn dispatch(&self, set: bool) -> Result<(), Error> {
        let dispatch = self.context.dispatch(&self.program);
        if set { dispatch.set(0, &self.set) } else { dispatch }.groups([1, 1, 1])
    }

    /// The buffer that is the first in this iteration.
    fn first(&self, iteration: u32) -> Bind {
        Bind::storage(&self.buffers[self.buffers.len() - 1 - iteration as usize % 2])
    }

    fn same(&self, set: bool) -> f64 {
        timed(&self.context, &|_| self.dispatch(set))
    }

    /// Another buffer is bound before each dispatch. Batches use the driver sets, so each is a new or cached one.
    fn changed(&self, set: bool) -> f64 {
        timed(&self.context, &|iteration| {
            if set {
                self.set.write(0, self.first(iteration))
            } else {
                self.context.bind((0, 0, 0), self.first(iteration))
            }?;
            self.dispatch(set)
        })
    }

    /// A buffer is invalidated before each dispatch, and is in use by the one before: the time of both.
    fn renamed(&self, set: bool) -> f64 {
        timed(&self.context, &|_| {
            self.context.upload(&self.buffers[1], &[1u32; 16])?;
            self.dispatch(set)
        })
    }

    /// The set is written while no batch uses it: the driver set is written again in place.
    fn rewritten(&self) -> f64 {
        nanoseconds(|| {
            let mut time = Duration::ZERO;
            for iteration in 0..20 {
                let first = self.first(iteration);
                let start = Instant::now();
                self.set.write(0, first)?;
                self.dispatch(true)?;
                time += start.elapsed();
                self.context.finish()?;
            }
            Ok((time, 20))
        })
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
        for iteration in 1..BATCH as usize {
            if changing {
                commands.bind_descriptor_sets(&layout, 0, &[&sets[iteration % 2]], &[])?;
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

fn sets(_: &mut Criterion) {
    println!("recording a dispatch that takes an array of N buffers from slots or from a set, in nanoseconds:");
    println!(
        "  {:>5}  {:>15}  {:>15}  {:>15}  {:>15}",
        "", "nothing changed", "one changed", "one renamed", "one, set idle"
    );
    println!(
        "  {:>5}  {:>7} {:>7}  {:>7} {:>7}  {:>7} {:>7}  {:>15}",
        "N", "slots", "set", "slots", "set", "slots", "set", "set"
    );
    for count in [4, 16, 64, 256] {
        let stage = Arrays::new(count).expect("an array of buffers");
        let [same, changed, renamed] = [Arrays::same, Arrays::changed, Arrays::renamed]
            .map(|times| [false, true].map(|set| times(&stage, set)))
            .map(|[slots, set]| format!("{slots:>7.0} {set:>7.0}"));
        println!("  {count:>5}  {same}  {changed}  {renamed}  {:>15.0}", stage.rewritten());
    }
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

criterion_group!(benches, dispatches, sets, rebinds, upload_streams);
criterion_main!(benches);
