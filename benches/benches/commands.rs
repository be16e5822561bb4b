//! Command buffers of the runtime: recording 1,000 dispatches, submitting them again unchanged, and after one rename,
//! relative to recording the same dispatches through the context. Ratios within one run; the times are the host's, and
//! the kernels run after them.

#![allow(clippy::print_stdout, reason = "a bench prints its ratios")]

use std::time::{Duration, Instant};

use criterion::{Criterion, criterion_group, criterion_main};
use spelter::{Bind, Buffer, CommandBuffer, Context, Error, Program};

const TINY: &str = "
@group(0) @binding(0) var<uniform> u: vec4<u32>;
@group(0) @binding(1) var<storage, read> a: array<u32>;
@group(0) @binding(2) var<storage, read_write> b: array<u32>;
@compute @workgroup_size(1) fn main() { b[0] = a[0] + u.x; }";

/// Dispatches: fewer than the limit of a batch.
const COUNT: usize = 1000;

/// Dispatches that use their own bindings, and the buffers that they name.
struct Stage {
    context: Context,
    program: Program,
    step: Buffer,
    /// Read by one dispatch only.
    alone: Buffer,
    from: Vec<Buffer>,
    to: Vec<Buffer>,
}

impl Stage {
    fn new(buffers: usize) -> Result<Self, Error> {
        let context = Context::builder().workers(1).build()?;
        let program = context.program_wgsl(TINY)?;
        let zeroed = || context.buffer_zeroed(64);
        let many = || (0..buffers).map(|_| zeroed()).collect::<Result<Vec<_>, _>>();
        let (step, alone, from, to) = (zeroed()?, zeroed()?, many()?, many()?);
        // Slots for the dispatches that have no bindings of their own.
        context.bind((0, 0), Bind::uniform(&step))?;
        context.bind((0, 1), Bind::storage(&from[0]))?;
        context.bind((0, 2), Bind::storage(&to[0]))?;
        Ok(Self { context, program, step, alone, from, to })
    }

    /// The buffers of a dispatch.
    fn buffers(&self, number: usize) -> [&Buffer; 3] {
        let from = if number == COUNT / 2 { &self.alone } else { &self.from[number % self.from.len()] };
        [&self.step, from, &self.to[number % self.to.len()]]
    }

    fn through_the_context(&self) -> Result<(), Error> {
        for number in 0..COUNT {
            let [u, a, b] = self.buffers(number);
            self.context.dispatch(&self.program).bind(0, 0, u).bind(0, 1, a).bind(0, 2, b).groups([1, 1, 1])?;
        }
        self.context.flush().map(drop)
    }

    fn record(&self) -> Result<CommandBuffer, Error> {
        self.context.record(|commands| {
            (0..COUNT).try_for_each(|number| {
                let [u, a, b] = self.buffers(number);
                commands.dispatch(&self.program).bind(0, 0, u).bind(0, 1, a).bind(0, 2, b).groups([1, 1, 1])
            })
        })
    }

    /// Nanoseconds per dispatch of a call, the best of several measurements; `before` is not measured.
    fn time(&self, before: impl Fn() -> Result<(), Error>, run: impl Fn() -> Result<(), Error>) -> f64 {
        let mut best = Duration::MAX;
        for _ in 0..40 {
            before().expect("it runs");
            let start = Instant::now();
            run().expect("it runs");
            best = best.min(start.elapsed());
            self.context.finish().expect("it runs");
        }
        best.as_nanos() as f64 / COUNT as f64
    }
}

fn commands(_: &mut Criterion) {
    println!("host time of {COUNT} dispatches, relative to recording them through the context:");
    println!("{:>8}  {:>11} {:>8} {:>8} {:>9} {:>9}", "buffers", "ns/dispatch", "slots", "record", "submit", "renamed");
    for buffers in [1, 8, 64, 500] {
        row(buffers).expect("it runs");
    }
}

fn row(buffers: usize) -> Result<(), Error> {
    let stage = Stage::new(buffers)?;
    let context = &stage.context;
    let commands = stage.record()?;
    let nothing = || Ok(());
    let through = stage.time(nothing, || stage.through_the_context());
    let slots = stage.time(nothing, || {
        (0..COUNT).try_for_each(|_| context.dispatch(&stage.program).groups([1, 1, 1]))?;
        context.flush().map(drop)
    });
    let record = stage.time(nothing, || stage.record().map(drop));
    let submit = stage.time(nothing, || context.submit(&commands).map(drop));
    let rename = || {
        context.copy(&stage.alone, 0, &stage.step, 0, 4)?; // in use
        context.upload(&stage.alone, &[0u32; 16]).map(drop)
    };
    let before = context.stats();
    let renamed = stage.time(rename, || context.submit(&commands).map(drop));
    let stats = context.stats().since(&before);
    let [slots, record, submit, renamed] = [slots, record, submit, renamed].map(|time| time / through);
    println!(
        "{buffers:>8}  {through:>11.0} {slots:>8.3} {record:>8.3} {submit:>9.4} {renamed:>9.3}  ({} of {COUNT} again)",
        stats.commands_rerecorded / stats.command_buffers_submitted.max(1),
    );
    Ok(())
}

criterion_group!(benches, commands);
criterion_main!(benches);
