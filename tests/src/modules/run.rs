//! One kernel on every engine, with the same random memory.

use std::sync::Arc;
use std::sync::atomic::{AtomicU32, AtomicU64, Ordering::Relaxed};
use std::time::{Duration, Instant};

use spelter_shaders::abi::{DispatchArgs, Outcome};
use spelter_shaders::back::x86::Isa;
use spelter_shaders::back::{Code, Scratch};
use spelter_shaders::compile::{self, Backend, Floats};
use spelter_shaders::ir::{Kernel, Scope, verify};

use super::Subject;
use super::compare::{Tolerance, compare};
use super::memory::{Arena, Memory};
use crate::engine::{self, Engine, engines};
use crate::fuzz::{Finding, caught, finding, is_exact, lowered, optimized, uncontracted};
use crate::mirror::mirrored;

/// What is known of a kernel after all seeds.
#[derive(Clone, Debug, Default)]
pub struct Report {
    /// Instructions of the scalar form, as it was read.
    pub instructions: usize,
    /// Milliseconds from the scalar form to machine code for the best instruction set. Of a release build only.
    pub compile_ms: f64,
    /// Why there is no machine code.
    pub fallback: Option<String>,
    /// Seeds for which all engines gave the same, every byte.
    pub agreed: u32,
    /// Seeds for which all gave the same but for bytes that depend on the order of invocations.
    pub raced: u32,
    /// Seeds for which bytes depend on the order of invocations, and more differ.
    pub raced_apart: u32,
    /// Seeds that took too long.
    pub stopped: u32,
    /// Whether any byte was changed.
    pub wrote: bool,
    /// What engines disagree about, and what failed.
    pub findings: Vec<Finding>,
}

/// How long the interpreter may take, and how long whatever comes after it.
const PATIENCE: [Duration; 2] = [Duration::from_secs(3), Duration::from_secs(40)];

/// What machine code is made with: all that the lowered kernel shows.
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

/// A way to run the kernel, made ready.
struct Ready {
    name: String,
    code: Box<dyn Code>,
    /// The number of the way whose memory it must give, and how nearly.
    like: Option<(usize, Tolerance)>,
}

/// Orders of invocations that show races, the first of the ways.
const ORDERS: usize = 4;

impl Runner {
    /// On the compiled engines whose name contains `engine`; dispatches have so many workgroups.
    pub fn new(engine: &str, groups: [u32; 3]) -> Self {
        let engines =
            engines().into_iter().filter(|other| other.is_compiled() && other.name.contains(engine)).collect();
        Self { engines, arena: Arena::default(), scratch: Scratch::default(), groups, watch: Watch::begin() }
    }

    /// Compiles the kernel and runs it with so many seeds.
    pub fn examine(&mut self, subject: &Subject, seeds: u64) -> Report {
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
        for seed in 0..seeds {
            let Some(memory) = Memory::new(self.arena, subject, seed) else {
                report.findings.push(finding("memory does not fit", ""));
                return report;
            };
            if let Err(finding) = self.seed(&ways, &memory, &mut report) {
                let detail = format!("seed {seed}: {}", finding.detail);
                report.findings.push(Finding { detail, ..finding });
            }
        }
        report
    }

    /// The interpreter in some orders; passes without machine code; machine code.
    fn ways(&self, kernel: &Kernel, machine_code: bool) -> Result<Vec<Ready>, Finding> {
        verify(kernel).map_err(|error| finding("the reader makes a bad kernel", error))?;
        let interpret = |name: &str, kernel: &Kernel, like| {
            let code = caught(name, "panics when it prepares", || compile::interpret(kernel))?;
            Ok(Ready { name: name.into(), code, like })
        };
        let plain = uncontracted(kernel);
        let exact = if is_exact(&plain) { Tolerance::Nan } else { Tolerance::Rough };
        // Where subgroups do something together, nobody can change places.
        let mirror = mirrored(kernel);
        let mut ways = vec![
            interpret("interpreter", kernel, None)?,
            interpret("the last first", mirror.as_ref().unwrap_or(kernel), None)?,
            interpret("subgroups in turns", &engine::interleaved(kernel, Scope::Subgroup), None)?,
            interpret("workgroups in turns", &engine::interleaved(kernel, Scope::Workgroup), None)?,
            interpret("optimisation", &optimized(&plain)?, Some((0, Tolerance::Nan)))?,
            interpret("lowering", &lowered(&plain, Floats::EXACT)?, Some((0, exact)))?,
        ];
        for isa in Isa::available().filter(|_| machine_code) {
            let last = lowered(kernel, FLOATS.on(isa))?;
            let base = ways.len();
            ways.push(interpret(&format!("lowering for {}", isa.name()), &last, Some((0, Tolerance::Rough)))?);
            for engine in self.engines.iter().filter(|engine| engine.isa() == Some(isa)) {
                let Some(prepare) = engine.of_lowered else { continue };
                let code = caught(engine.name, "panics when it prepares", || prepare(&last))?;
                ways.push(Ready { name: engine.name.into(), code, like: Some((base, Tolerance::Nan)) });
            }
        }
        Ok(ways)
    }

    /// All ways with the same memory; the first that gives something else.
    fn seed(&mut self, ways: &[Ready], memory: &Memory, report: &mut Report) -> Result<(), Finding> {
        let mut results: Vec<Vec<u8>> = Vec::new();
        let mut racing: Vec<bool> = Vec::new();
        for (number, way) in ways.iter().enumerate() {
            let patience = PATIENCE[usize::from(number > 0)];
            let Some(got) = self.run(way, memory, patience)? else {
                if number < ORDERS {
                    report.stopped += 1;
                    return Ok(());
                }
                return Err(finding(&format!("{}: takes too long", way.name), ""));
            };
            if number < ORDERS {
                racing.resize(got.len(), false);
                let first = results.first().unwrap_or(&got);
                racing.iter_mut().zip(first.iter().zip(&got)).for_each(|(racing, (a, b))| *racing |= a != b);
            }
            if let Some((like, tolerance)) = way.like {
                match compare(memory, &way.name, &results[like], &got, &racing, tolerance) {
                    Ok(()) => {}
                    // What is read where others write may go anywhere.
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
        match racing.contains(&true) {
            false => report.agreed += 1,
            true => report.raced += 1,
        }
        Ok(())
    }

    /// What memory holds after a run; `None` if it had to be stopped.
    fn run(&mut self, way: &Ready, memory: &Memory, patience: Duration) -> Result<Option<Vec<u8>>, Finding> {
        memory.load();
        let watch = Arc::clone(&self.watch);
        let args = DispatchArgs {
            buffers: &memory.buffers,
            images: &memory.images,
            push: &memory.push,
            num_workgroups: self.groups,
            stop: &watch.stop,
        };
        watch.set(Some(patience));
        let outcome =
            caught(&way.name, "panics when it runs", || engine::dispatch(&*way.code, &args, &mut self.scratch));
        watch.set(None);
        Ok((outcome? == Outcome::Done).then(|| memory.read()))
    }
}

fn instructions(kernel: &Kernel) -> usize {
    kernel.layout.iter().map(|&block| kernel.blocks[block].insts.len()).sum()
}

/// Stops runs that take too long.
#[derive(Debug)]
struct Watch {
    stop: AtomicU32,
    start: Instant,
    /// Milliseconds after the start at which to stop; 0 for never.
    until: AtomicU64,
}

impl Watch {
    fn begin() -> Arc<Self> {
        let watch = Arc::new(Self { stop: AtomicU32::new(0), start: Instant::now(), until: AtomicU64::new(0) });
        let weak = Arc::downgrade(&watch);
        std::thread::spawn(move || {
            while let Some(watch) = weak.upgrade() {
                let until = watch.until.load(Relaxed);
                if until != 0 && watch.start.elapsed().as_millis() as u64 > until {
                    watch.stop.store(1, Relaxed);
                }
                drop(watch);
                std::thread::sleep(Duration::from_millis(20));
            }
        });
        watch
    }

    fn set(&self, patience: Option<Duration>) {
        let until = patience.map_or(0, |patience| (self.start.elapsed() + patience).as_millis() as u64);
        self.until.store(until, Relaxed);
        self.stop.store(0, Relaxed);
    }
}
