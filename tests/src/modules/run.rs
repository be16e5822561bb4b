//! One kernel on every engine, with the same random memory.

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, AtomicU64, Ordering::Relaxed};
use std::time::{Duration, Instant};

use spelter_shaders::abi::{DispatchArgs, Outcome};
use spelter_shaders::back::x86::Isa;
use spelter_shaders::back::{Code, Scratch, Workgroups};
use spelter_shaders::compile::{self, Backend, Floats};
use spelter_shaders::ir::{InstData, Kernel, Place, Scope, verify};

use super::Subject;
use super::compare::{Tolerance, compare};
use super::families::Settings;
use super::memory::{Arena, Memory, SCALES};
use crate::engine::{self, Engine, engines};
use crate::fuzz::{Finding, caught, finding, is_exact, lowered, optimized, uncontracted};
use crate::mirror::mirrored;

/// The results of a kernel for all seeds.
#[derive(Clone, Debug, Default)]
pub struct Report {
    /// Instructions of the scalar IR, before optimisation.
    pub instructions: usize,
    /// Milliseconds from the scalar IR to machine code for the best instruction set. Meaningful in a release build
    /// only.
    pub compile_ms: f64,
    /// Why it has no machine code.
    pub fallback: Option<String>,
    /// Seeds for which all engines gave the same bytes.
    pub agreed: u32,
    /// Seeds for which all gave the same except for bytes that depend on the order of invocations.
    pub raced: u32,
    /// Seeds with bytes that depend on the order of invocations, and further differences.
    pub raced_apart: u32,
    /// Seeds that took too long.
    pub stopped: u32,
    /// Whether any byte was changed.
    pub wrote: bool,
    /// Differences between engines, and failures.
    pub findings: Vec<Finding>,
}

/// CPU time limit of the interpreter, and of everything after it: CPU time, since other programs share the machine.
const PATIENCE: [Duration; 2] = [Duration::from_secs(3), Duration::from_secs(40)];

/// Floating-point freedoms of machine code: those that are visible in the lowered kernel.
const FLOATS: Floats = Floats { contract: true, ..Floats::EXACT };

/// Runs kernels one after the other.
#[derive(Debug)]
pub struct Runner {
    engines: Vec<Engine>,
    arena: Arena,
    scratch: Scratch,
    groups: [u32; 3],
    watch: Arc<Watch>,
}

/// Workgroups in z for kernels that write nothing with fewer: some use it as the index of a matrix.
const DEEP: u32 = 6;

/// A variant of execution: the code and what its memory is compared with.
struct Ready {
    name: String,
    code: Box<dyn Code>,
    /// The index of the variant to compare with, and the tolerance. `None` for variants that expose races: orders of
    /// invocations.
    like: Option<(usize, Tolerance)>,
    /// Whether each workgroup starts from the initial memory, as if no other workgroup had run.
    alone: bool,
}

impl Runner {
    /// On the compiled engines whose name contains `engine`; dispatches have this number of workgroups where nothing
    /// else is set.
    pub fn new(engine: &str, groups: [u32; 3]) -> Self {
        let engines =
            engines().into_iter().filter(|other| other.is_compiled() && other.name.contains(engine)).collect();
        Self { engines, arena: Arena::default(), scratch: Scratch::default(), groups, watch: Watch::begin() }
    }

    /// Compiles the kernel and runs it with `seeds` seeds; a kernel that wrote nothing also runs with each scale of
    /// numbers, and with more workgroups.
    pub fn examine(&mut self, subject: &Subject, seeds: u64, settings: &Settings) -> Report {
        let kernel = &subject.kernel;
        let mut report = Report { instructions: instructions(kernel), ..Report::default() };
        let start = Instant::now();
        match caught("compiling", "panics", || compile::compile(kernel, Backend::best())) {
            Ok(compiled) => report.fallback = compiled.fallback,
            Err(finding) => report.findings.push(finding),
        }
        report.compile_ms = start.elapsed().as_secs_f64() * 1e3;
        let ways = match self.ways(kernel, report.fallback.is_none()) {
            Ok(ways) => ways,
            Err(finding) => {
                report.findings.push(finding);
                return report;
            }
        };
        let plain = settings.groups.unwrap_or(self.groups);
        for seed in 0..seeds.max(SCALES) {
            let mut groups = plain;
            if seed >= seeds {
                if report.wrote || !report.findings.is_empty() || report.stopped > 1 {
                    break;
                }
                if settings.groups.is_none() {
                    groups[2] = groups[2].max(DEEP);
                }
            }
            let Some(memory) = Memory::new(self.arena, subject, settings, seed) else {
                report.findings.push(finding("memory does not fit", ""));
                return report;
            };
            if let Err(finding) = self.seed(&ways, &memory, groups, &mut report) {
                let detail = format!("seed {seed}: {}", finding.detail);
                report.findings.push(Finding { detail, ..finding });
            }
        }
        report
    }

    /// The interpreter in several orders; passes without machine code; machine code.
    fn ways(&self, kernel: &Kernel, machine_code: bool) -> Result<Vec<Ready>, Finding> {
        verify(kernel).map_err(|error| finding("the reader makes a bad kernel", error))?;
        let interpret = |name: &str, kernel: &Kernel, like| {
            let code = caught(name, "panics when it prepares", || compile::interpret(kernel))?;
            Ok(Ready { name: name.into(), code, like, alone: false })
        };
        let plain = uncontracted(kernel);
        let exact = if is_exact(&plain) { Tolerance::Nan } else { Tolerance::Rough };
        // With subgroup operations, invocations cannot change places.
        let mirror = mirrored(kernel);
        let mut ways = vec![
            interpret("interpreter", kernel, None)?,
            interpret("the last first", mirror.as_ref().unwrap_or(kernel), None)?,
            interpret("subgroups in turns", &engine::interleaved(kernel, Scope::Subgroup), None)?,
            interpret("workgroups in turns", &engine::interleaved(kernel, Scope::Workgroup), None)?,
        ];
        if !shares(kernel) {
            ways.push(Ready { alone: true, ..interpret("workgroups alone", kernel, None)? });
        }
        ways.push(interpret("optimisation", &optimized(&plain)?, Some((0, Tolerance::Nan)))?);
        ways.push(interpret("lowering", &lowered(&plain, Floats::EXACT)?, Some((0, exact)))?);
        for isa in Isa::available().filter(|_| machine_code) {
            let last = lowered(kernel, FLOATS.on(isa))?;
            let base = ways.len();
            ways.push(interpret(&format!("lowering for {}", isa.name()), &last, Some((0, Tolerance::Rough)))?);
            for engine in self.engines.iter().filter(|engine| engine.isa() == Some(isa)) {
                let Some(prepare) = engine.of_lowered else { continue };
                let code = caught(engine.name, "panics when it prepares", || prepare(&last))?;
                let like = Some((base, Tolerance::Nan));
                ways.push(Ready { name: engine.name.into(), code, like, alone: false });
            }
        }
        Ok(ways)
    }

    /// Runs all variants with the same memory; returns the first that differs.
    fn seed(&mut self, ways: &[Ready], memory: &Memory, groups: [u32; 3], report: &mut Report) -> Result<(), Finding> {
        let mut results: Vec<Vec<u8>> = Vec::new();
        let mut racing: Vec<bool> = Vec::new();
        // Whether any of the compared variants exposes a race.
        let mut seen = false;
        for (number, way) in ways.iter().enumerate() {
            let patience = PATIENCE[usize::from(number > 0)];
            let Some(got) = self.run(way, memory, groups, patience)? else {
                if way.like.is_none() {
                    report.stopped += 1;
                    return Ok(());
                }
                return Err(finding(&format!("{}: takes too long", way.name), ""));
            };
            if way.like.is_none() {
                racing.resize(got.len(), false);
                let first = results.first().unwrap_or(&got);
                racing.iter_mut().zip(first.iter().zip(&got)).for_each(|(racing, (a, b))| *racing |= a != b);
            }
            if let Some((like, tolerance)) = way.like {
                let whole = compare(memory, &way.name, &results[like], &got, None, tolerance);
                seen |= whole.is_err();
                match whole.or_else(|_| compare(memory, &way.name, &results[like], &got, Some(&racing), tolerance)) {
                    Ok(()) => {}
                    // An index that is read from racing memory may be anything.
                    Err(_) if racing.contains(&true) => {
                        report.raced_apart += 1;
                        return Ok(());
                    }
                    Err(finding) => return Err(finding),
                }
            }
            results.push(got);
        }
        report.wrote |= memory.differs(&results[0]);
        match seen {
            false => report.agreed += 1,
            true => report.raced += 1,
        }
        Ok(())
    }

    /// The memory after a run; `None` if it had to be stopped.
    fn run(
        &mut self,
        way: &Ready,
        memory: &Memory,
        groups: [u32; 3],
        patience: Duration,
    ) -> Result<Option<Vec<u8>>, Finding> {
        memory.load();
        let watch = Arc::clone(&self.watch);
        let count: u64 = groups.iter().map(|&count| u64::from(count)).product();
        let args = DispatchArgs {
            buffers: &memory.buffers,
            images: &memory.images,
            push: &memory.push,
            num_workgroups: groups,
            stop: &watch.stop,
        };
        watch.set(Some(patience));
        let got = caught(&way.name, "panics when it runs", || {
            if !way.alone {
                let outcome = engine::dispatch(&*way.code, &args, &mut self.scratch);
                return (outcome == Outcome::Done).then(|| memory.read());
            }
            let mut all = memory.read();
            // The first workgroup comes last; in all other variants it comes first.
            for number in (0..count).rev() {
                memory.load();
                let one = Workgroups::new(number..number + 1, groups, [0; 3]);
                if way.code.run_all(&args, one, &mut self.scratch) != Outcome::Done {
                    return None;
                }
                memory.take_changes(&mut all);
            }
            Some(all)
        });
        watch.set(None);
        got
    }
}

/// Whether workgroups may depend on each other: they have atomics.
fn shares(kernel: &Kernel) -> bool {
    let mut insts = kernel.layout.iter().flat_map(|&block| &kernel.blocks[block].insts);
    insts.any(|&inst| matches!(kernel.insts[inst], InstData::Atomic { place: Place::Buffer { .. }, .. }))
}

fn instructions(kernel: &Kernel) -> usize {
    kernel.layout.iter().map(|&block| kernel.blocks[block].insts.len()).sum()
}

/// Stops runs that take too long, on the thread that created it.
#[derive(Debug)]
struct Watch {
    stop: AtomicU32,
    start: Instant,
    /// The system's file with the thread's CPU time.
    times: Option<PathBuf>,
    /// Value of [`Watch::spent`] at which to stop, in nanoseconds; 0 for never.
    until: AtomicU64,
}

impl Watch {
    fn begin() -> Arc<Self> {
        let thread = std::fs::read_link("/proc/thread-self").ok();
        let times = thread.map(|thread| Path::new("/proc").join(thread).join("schedstat"));
        let (stop, until) = (AtomicU32::new(0), AtomicU64::new(0));
        let watch = Arc::new(Self { stop, start: Instant::now(), times, until });
        let weak = Arc::downgrade(&watch);
        std::thread::spawn(move || {
            while let Some(watch) = weak.upgrade() {
                let until = watch.until.load(Relaxed);
                if until != 0 && watch.spent() > until {
                    watch.stop.store(1, Relaxed);
                }
                drop(watch);
                std::thread::sleep(Duration::from_millis(20));
            }
        });
        watch
    }

    /// CPU time of the thread in nanoseconds; wall-clock time since the start if the system does not report it.
    fn spent(&self) -> u64 {
        let text = self.times.as_ref().and_then(|times| std::fs::read_to_string(times).ok());
        let first = text.as_ref().and_then(|text| text.split_whitespace().next()?.parse().ok());
        first.unwrap_or_else(|| self.start.elapsed().as_nanos() as u64)
    }

    fn set(&self, patience: Option<Duration>) {
        let until = patience.map_or(0, |patience| self.spent() + patience.as_nanos() as u64);
        self.until.store(until, Relaxed);
        self.stop.store(0, Relaxed);
    }
}
