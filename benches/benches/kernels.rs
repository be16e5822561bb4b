//! The main table: each kernel on spelter and in plain Rust, with the machine's limit and the target, and the cost of
//! dispatches, submissions and pipelines. All in one run, since other load on the machine makes absolute times
//! meaningless.
//!
//! `cargo bench -p spelter-benches --bench kernels -- saxpy` runs one kernel. With `SPELTER_BENCH_JSON=1` the table is
//! also printed as JSON lines; `SPELTER_BENCH_SIZE=small` uses the sizes of the tests.

#![allow(
    clippy::unwrap_used,
    clippy::print_stdout,
    reason = "a bench that cannot run should say so, and prints its table"
)]

use std::time::Duration;

use criterion::Criterion;
use spelter_benches::engine::{Engine, engines};
use spelter_benches::kernels;
use spelter_benches::machine::Machine;
use spelter_benches::measure::Stopwatch;
use spelter_benches::overhead::{self, Overhead, Repeated};
use spelter_benches::summary::{Row, Summary};
use spelter_benches::unit::Limit;
use spelter_benches::work::{Kernel, Prepared, Size};

struct Bench {
    criterion: Criterion,
    engines: Vec<Engine>,
    machine: Machine,
    size: Size,
    summary: Summary,
}

impl Bench {
    /// Measures the kernel unless criterion's filter excludes it, and adds a row.
    fn kernel(&mut self, kernel: &Kernel) {
        let mut prepared: Vec<Option<Prepared>> = Vec::new();
        let mut times = Vec::new();
        let mut group = self.criterion.benchmark_group(kernel.name);
        for engine in &self.engines {
            let (mut work, mut watch) = (None, Stopwatch::default());
            group.bench_function(&engine.name, |bencher| {
                let work = work.get_or_insert_with(|| kernel.checked(&engine.context, self.size).unwrap());
                bencher.iter_custom(|runs| {
                    watch.time(runs, || {
                        work.record().unwrap();
                        engine.context.finish().unwrap();
                    })
                });
            });
            prepared.push(work);
            times.push(watch.seconds());
        }
        let (mut work, mut watch) = (prepared.into_iter().flatten().next(), Stopwatch::default());
        // Before and after plain Rust, since other load on the machine changes.
        let limit = |work: &Prepared| self.machine.limit(kernel.limit, kernel.unit, work.cost());
        work.as_ref().map(limit);
        group.bench_function("plain", |bencher| {
            let engine = &self.engines[0];
            let work = work.get_or_insert_with(|| kernel.checked(&engine.context, self.size).unwrap());
            bencher.iter_custom(|runs| watch.time(runs, || work.plain()));
        });
        group.finish();
        let Some(work) = work else { return };
        let cost = work.cost();
        let figure = |seconds: f64| kernel.unit.figure(cost.amount, seconds);
        self.summary.rows.push(Row {
            name: kernel.name,
            unit: kernel.unit,
            engines: times.iter().map(|seconds| seconds.map(figure)).collect(),
            plain: watch.seconds().map(figure),
            limit: limit(&work),
            bound: kernel.limit,
            target: kernel.target,
        });
    }

    fn overhead(&mut self, overhead: &Overhead) {
        let mut figures = Vec::new();
        let mut group = self.criterion.benchmark_group(overhead.name);
        for engine in &self.engines {
            let (mut repeated, mut watch): (Option<Repeated>, _) = (None, Stopwatch::default());
            group.bench_function(&engine.name, |bencher| {
                let repeated = repeated.get_or_insert_with(|| (overhead.prepare)(&engine.context, self.size).unwrap());
                bencher.iter_custom(|runs| watch.time(runs, || (repeated.run)().unwrap()));
            });
            let figure = |(repeated, seconds): (&Repeated, f64)| overhead.unit.figure(repeated.amount, seconds);
            figures.push(repeated.as_ref().zip(watch.seconds()).map(figure));
        }
        group.finish();
        if figures.iter().any(Option::is_some) {
            self.summary.rows.push(Row {
                name: overhead.name,
                unit: overhead.unit,
                engines: figures,
                plain: None,
                limit: None,
                bound: Limit::Unknown,
                target: overhead.target,
            });
        }
    }

    fn report(mut self) {
        self.criterion.final_summary();
        if self.summary.rows.is_empty() {
            return;
        }
        let [read, triad] = self.machine.memory();
        let flops = self.machine.multiply_adds();
        self.summary.machine = vec![
            ("memory, read, GB/s", read / 1e9),
            ("memory, triad, GB/s", triad / 1e9),
            ("multiply-adds, GFLOP/s", flops / 1e9),
        ];
        println!("\nBest runs. Limits of kernels are measured with working sets of their size.\n{}", self.summary);
        if std::env::var_os("SPELTER_BENCH_JSON").is_some() {
            self.summary.json_lines().iter().for_each(|line| println!("{line}"));
        }
    }
}

fn main() {
    // Without `--bench` this is `cargo test`, which checks only that benches run.
    let small = std::env::var("SPELTER_BENCH_SIZE").is_ok_and(|size| size == "small");
    let small = small || !std::env::args().any(|argument| argument == "--bench");
    let engines = engines().unwrap();
    let criterion = Criterion::default()
        .warm_up_time(Duration::from_millis(500))
        .measurement_time(Duration::from_millis(1500))
        .sample_size(10)
        .without_plots()
        .configure_from_args();
    let summary = Summary { engines: engines.iter().map(|engine| engine.name.clone()).collect(), ..Summary::default() };
    let size = if small { Size::Small } else { Size::Full };
    let mut bench = Bench { criterion, engines, machine: Machine::default(), size, summary };
    kernels::ALL.iter().for_each(|kernel| bench.kernel(kernel));
    overhead::ALL.iter().for_each(|overhead| bench.overhead(overhead));
    bench.report();
}
