//! The cost of checked mode: each kernel of the main table with checks and without, by one worker of each back end, as
//! a ratio in one run.
//!
//! `cargo bench -p spelter-benches --bench checked -- saxpy` runs the kernels whose names contain the word. With
//! `SPELTER_BENCH_JSON=1` the table is also printed as JSON lines; `SPELTER_BENCH_SIZE=small` uses the sizes of the
//! tests.

#![allow(
    clippy::unwrap_used,
    clippy::print_stdout,
    reason = "a bench that cannot run should say so, and prints its table"
)]

use std::time::{Duration, Instant};

use spelter::check::{CheckOptions, CheckStats, Severity};
use spelter::{Backend, Buffer, Context, Program};
use spelter_benches::measure::Stopwatch;
use spelter_benches::unit::{Limit, Target, Unit, Yardstick};
use spelter_benches::work::{Cost, Kernel, Prepared, Size, Work};
use spelter_benches::{Error, kernels};

/// Time for the runs of one kernel in one mode, after the first one.
const PERIOD: Duration = Duration::from_millis(600);

/// Accesses of less than a word, of which the main table has none: storage of 16 bits.
const SAXPY_F16: Kernel = Kernel {
    name: "saxpy_f16",
    unit: Unit::Bytes,
    limit: Limit::Triad,
    target: Target { factor: 1.0, of: Yardstick::Limit },
    prepare: |context, size| Ok(Box::new(Halves::new(context, size)?)),
};

const HALVES: &str = "enable f16;
@group(0) @binding(0) var<storage, read> x: array<f16>;
@group(0) @binding(1) var<storage, read_write> y: array<f16>;
@compute @workgroup_size(256) fn main(@builtin(global_invocation_id) id: vec3u) {
    y[id.x] = 0.5h * y[id.x] + x[id.x];
}";

struct Halves {
    context: Context,
    program: Program,
    buffers: [Buffer; 2],
    count: u32,
}

impl Halves {
    fn new(context: &Context, size: Size) -> Result<Self, Error> {
        let count = if size == Size::Small { 1024 } else { 8 << 20 };
        let zeros = vec![0u16; count as usize];
        let buffers = [context.buffer_from(&zeros)?, context.buffer_from(&zeros)?];
        Ok(Self { program: context.program_wgsl(HALVES)?, buffers, context: context.clone(), count })
    }
}

impl Work for Halves {
    fn cost(&self) -> Cost {
        let bytes = f64::from(self.count) * 6.0;
        Cost { amount: bytes, bytes, working_set: self.count as usize * 4 }
    }

    fn record(&self) -> Result<(), Error> {
        let [x, y] = &self.buffers;
        let dispatch = self.context.dispatch(&self.program).bind(0, 0, x).bind(0, 1, y);
        Ok(dispatch.invocations([self.count, 1, 1])?)
    }

    fn plain(&mut self) {}

    fn compare(&self) -> Result<(), Error> {
        Ok(())
    }
}

/// What was measured of a kernel.
struct Row {
    kernel: &'static str,
    backend: Backend,
    /// Seconds without checks and with them.
    seconds: [f64; 2],
    stats: CheckStats,
}

impl Row {
    fn ratio(&self) -> f64 {
        self.seconds[1] / self.seconds[0]
    }
}

/// A kernel that is ready to run in a context.
struct Ready {
    context: Context,
    work: Prepared,
    watch: Stopwatch,
}

impl Ready {
    fn new(kernel: &Kernel, context: Context, size: Size) -> Self {
        let work = (kernel.prepare)(&context, size).unwrap();
        Self { context, work, watch: Stopwatch::default() }
    }

    fn run(&mut self) {
        let Self { context, work, watch } = self;
        watch.time(1, || {
            work.record().unwrap();
            context.finish().unwrap();
        });
    }
}

fn measure(kernel: &Kernel, backend: Backend, size: Size) -> Row {
    let builder = || Context::builder().backend(backend).workers(1).time_limit(Duration::from_secs(600));
    let contexts = [builder().build().unwrap(), builder().check(CheckOptions::default()).build().unwrap()];
    let mut both = contexts.map(|context| Ready::new(kernel, context, size));
    // Alternately, since other load on the machine changes. The first run of a kernel touches its memory.
    both.iter_mut().for_each(Ready::run);
    both.iter_mut().for_each(|ready| ready.watch = Stopwatch::default());
    let start = Instant::now();
    loop {
        both.iter_mut().for_each(Ready::run);
        if start.elapsed() > 2 * PERIOD || size == Size::Small {
            break;
        }
    }
    let findings = both[1].context.findings().unwrap();
    assert!(findings.iter().all(|finding| finding.severity != Severity::Error), "{}: {findings:?}", kernel.name);
    let seconds = both.each_ref().map(|ready| ready.watch.seconds().unwrap());
    Row { kernel: kernel.name, backend, seconds, stats: both[1].context.check_stats() }
}

fn main() {
    // Without `--bench` this is `cargo test`, which checks only that benches run.
    let small = std::env::var("SPELTER_BENCH_SIZE").is_ok_and(|size| size == "small");
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let small = small || !arguments.iter().any(|argument| argument == "--bench");
    let size = if small { Size::Small } else { Size::Full };
    let words: Vec<&String> = arguments.iter().filter(|argument| !argument.starts_with('-')).collect();
    let wanted = |kernel: &&Kernel| words.is_empty() || words.iter().any(|word| kernel.name.contains(word.as_str()));
    for backend in Backend::available().filter(|&backend| backend != Backend::Interpreter) {
        println!("{:<24} {:>12} {:>12} {:>8}  {backend}", "kernel", "plain, ms", "checked, ms", "ratio");
        let mut ratios = Vec::new();
        for kernel in kernels::ALL.iter().chain([&SAXPY_F16]).filter(wanted) {
            let row = measure(kernel, backend, size);
            let [plain, checked] = row.seconds.map(|seconds| seconds * 1e3);
            println!("{:<24} {plain:>12.3} {checked:>12.3} {:>8.2}", row.kernel, row.ratio());
            if std::env::var_os("SPELTER_BENCH_JSON").is_some() {
                let Row { kernel, backend, stats, .. } = &row;
                println!(
                    "{{\"kernel\":\"{kernel}\",\"backend\":\"{backend}\",\"plain_ms\":{plain},\"checked_ms\":{checked},\
                     \"suspicions\":{}}}",
                    stats.suspicions
                );
            }
            ratios.push(row.ratio());
        }
        let mean = (ratios.iter().map(|ratio| ratio.ln()).sum::<f64>() / ratios.len() as f64).exp();
        let most = ratios.iter().copied().fold(0.0, f64::max);
        println!("geometric mean {mean:.2}, greatest {most:.2}\n");
    }
}
