//! How equal work spreads over workers: two compared with one, and the same with plain threads. A ratio, since other
//! load on the machine makes absolute times meaningless.

#![allow(clippy::print_stdout, reason = "a bench prints its ratios")]

use std::hint::black_box;
use std::time::{Duration, Instant};

use criterion::{Criterion, criterion_group, criterion_main};
use spelter::{Buffer, Context, Error, Program};

const SHADER: &str = "
@group(0) @binding(0) var<storage, read_write> out: array<u32>;

@compute @workgroup_size(64) fn busy(@builtin(global_invocation_id) id: vec3u) {
    var x = id.x;
    for (var i = 0u; i < 100u; i++) { x = x * 1664525u + 1013904223u; }
    out[id.x % 1024u] = x;
}";

/// A context with the kernel.
struct Bench {
    context: Context,
    program: Program,
    out: Buffer,
}

impl Bench {
    fn new(workers: usize) -> Result<Self, Error> {
        let context = Context::builder().workers(workers).build()?;
        let (program, out) = (context.program_wgsl(SHADER)?, context.buffer_zeroed(4096)?);
        Ok(Self { context, program, out })
    }

    /// A thousand workgroups.
    fn run(&self) {
        let dispatch = self.context.dispatch(&self.program).bind(0, 0, &self.out);
        dispatch.groups([1000, 1, 1]).and_then(|()| self.context.finish()).expect("the kernel runs");
    }
}

/// The best times of two programs that run alternately.
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
    let [one, two] = [1, 2].map(|workers| Bench::new(workers).expect("a context"));
    let times = best([&mut || one.run(), &mut || two.run()]);
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
    let work = |count: u32| black_box((0..count).fold(1u32, |x, i| black_box(x.wrapping_mul(1_664_525) ^ i)));
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

criterion_group!(benches, spread);
criterion_main!(benches);
