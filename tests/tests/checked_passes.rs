//! Checked mode on random programs: what each invocation is seen to do depends neither on the optimiser nor on the
//! engine.

use std::cell::{Cell, RefCell};
use std::collections::{BTreeMap, BTreeSet};

use spelter_shaders::abi::{DispatchArgs, Outcome};
use spelter_shaders::back::x86::{self, Isa};
use spelter_shaders::back::{Code, ObservedCode, Scratch, Workgroups, interp::Program};
use spelter_shaders::check::observer::{Invocation, Observer, Target};
use spelter_shaders::compile::{Floats, lower, widen};
use spelter_shaders::ir::{InstData, Kernel, Place, Scope, Site};
use spelter_shaders::opt;
use spelter_tests::engine::{Engine, Prepare, checked};
use spelter_tests::fuzz::{Bench, Options, Tape, generate};

/// Programs.
const PROGRAMS: u64 = 400;

#[derive(Debug, PartialEq)]
enum Event {
    Access(Site, Target),
    Atomic(Site, Target, bool),
    Fence(Site),
    Arrive(Site),
    End,
}

/// The events of each invocation, in order.
#[derive(Debug, Default, PartialEq)]
struct Log(BTreeMap<Invocation, Vec<Event>>);

impl Log {
    fn add(&mut self, by: Invocation, event: Event) {
        self.0.entry(by).or_default().push(event);
    }

    /// Leaves out the accesses near an address, which each engine may see or not: each must be the access by the
    /// address that comes next.
    fn leave_out(&mut self, near: &BTreeSet<Site>) {
        for (by, events) in &mut self.0 {
            for pair in events.windows(2) {
                let [Event::Access(site, target), next] = pair else { continue };
                let is_next = matches!(next, Event::Access(_, exact) if exact == target);
                assert!(is_next || !near.contains(site), "{by:?}: {pair:?}");
            }
            events.retain(|event| !matches!(event, Event::Access(site, _) if near.contains(site)));
        }
    }
}

impl Observer for Log {
    fn access(&mut self, by: Invocation, site: Site, target: Target) {
        self.add(by, Event::Access(site, target));
    }

    fn atomic(&mut self, by: Invocation, site: Site, target: Target, wrote: bool) {
        self.add(by, Event::Atomic(site, target, wrote));
    }

    fn fence(&mut self, by: Invocation, site: Site) {
        self.add(by, Event::Fence(site));
    }

    fn arrive(&mut self, by: Invocation, site: Site) {
        self.add(by, Event::Arrive(site));
    }

    fn release(&mut self, _: u64, _: Scope, _: Option<u32>) {}

    fn end(&mut self, by: Invocation) {
        self.add(by, Event::End);
    }
}

thread_local! {
    /// Logs of this thread's runs, in order.
    static LOGS: RefCell<Vec<Log>> = const { RefCell::new(Vec::new()) };
    /// Kernels without machine code.
    static INTERPRETED: Cell<u64> = const { Cell::new(0) };
}

/// A kernel with checks whose runs are logged.
#[derive(Debug)]
struct Logged {
    code: Box<dyn ObservedCode>,
    near: BTreeSet<Site>,
}

impl Logged {
    /// The code is that of the kernel, which has checks.
    fn boxed(code: impl ObservedCode + 'static, kernel: &Kernel) -> Box<dyn Code> {
        Box::new(Self { code: Box::new(code), near: near(kernel) })
    }
}

/// The sites of loads near an address (`buffer_near`) that no branch guards, unlike those of the reader. Which address
/// range they are in is up to the engine, and another result than that of the access by the address is not used.
fn near(kernel: &Kernel) -> BTreeSet<Site> {
    let checks = kernel.layout.iter().flat_map(|&block| &kernel.blocks[block].insts);
    checks
        .filter_map(|&inst| match kernel.insts[inst] {
            InstData::Check { site, place: Place::Buffer { buffer, .. }, .. } => {
                matches!(kernel.definition(buffer), Some(InstData::BufferNear { .. })).then_some(site)
            }
            _ => None,
        })
        .collect()
}

impl Code for Logged {
    fn run_all(&self, args: &DispatchArgs<'_>, workgroups: Workgroups, scratch: &mut Scratch) -> Outcome {
        let mut log = Log::default();
        let outcome = self.code.run_observed(args, workgroups, scratch, &mut log);
        log.leave_out(&self.near);
        LOGS.with_borrow_mut(|logs| logs.push(log));
        outcome
    }
}

fn logged(kernel: &Kernel) -> Box<dyn Code> {
    let kernel = checked(kernel);
    Logged::boxed(Program::new(&kernel), &kernel)
}

fn logged_after_passes(kernel: &Kernel) -> Box<dyn Code> {
    let before = checked(kernel);
    let mut kernel = before.clone();
    opt::optimize(&mut kernel, |_, _| {});
    Logged::boxed(Program::new(&kernel), &before)
}

/// The machine code of a kernel that is lowered before checks are inserted: its floats stay as they are. Kernels with
/// barriers that may be in divergent control flow are interpreted.
fn machine_code(kernel: &Kernel, isa: Isa) -> Box<dyn Code> {
    let before = checked(kernel);
    let kernel = lower(&before, Floats::EXACT, |_, _| {});
    match widen(&kernel, isa) {
        Ok(wide) => {
            let code = x86::compile(&wide, isa).unwrap_or_else(|error| panic!("{error}\n{kernel}\n{wide}"));
            Logged::boxed(code, &before)
        }
        Err(error) => {
            let error = error.to_string();
            let known = ["control barrier that may be in divergent control flow", "not multiples of 4"];
            assert!(known.iter().any(|known| error.contains(known)), "{error}\n{kernel}");
            INTERPRETED.set(INTERPRETED.get() + 1);
            Logged::boxed(Program::new(&kernel), &before)
        }
    }
}

fn compiled() -> Vec<Engine> {
    // The reference runs the kernel as it was read, and also the lowered one that these run.
    let engine = |name, of_lowered: Prepare| Engine { name, prepare: logged, of_lowered: Some(of_lowered) };
    let of = |isa| match isa {
        Isa::Avx512 => engine("avx512", |kernel| machine_code(kernel, Isa::Avx512)),
        Isa::Avx2 => engine("avx2", |kernel| machine_code(kernel, Isa::Avx2)),
    };
    Isa::available().map(of).collect()
}

#[test]
fn every_engine_sees_random_programs_do_the_same() {
    let engine = |name, prepare: Prepare| Engine { name, prepare, of_lowered: None };
    let compiled = compiled();
    let count = compiled.len();
    let interpreters = [engine("as read", logged), engine("after passes", logged_after_passes)];
    let mut bench = Bench::new(interpreters.into_iter().chain(compiled).collect());
    let mut events = 0;
    for seed in 0..PROGRAMS {
        let program = generate(Tape::random(seed), Options::ALL).0.program;
        LOGS.take();
        if let Err(finding) = bench.check(&program) {
            panic!("seed {seed}: {}: {}", finding.what, finding.detail);
        }
        let logs = LOGS.take();
        assert!(logs.len() >= 3 + count, "seed {seed}");
        assert_eq!(logs[0], logs[1], "seed {seed}");
        // Last come the lowered kernel in the interpreter, and its machine code.
        let (reference, machine) = logs[logs.len() - count - 1..].split_first().expect("it has run");
        machine.iter().for_each(|log| assert_eq!(log, reference, "seed {seed}"));
        events += logs[0].0.values().map(Vec::len).sum::<usize>();
    }
    assert!(events > 100_000, "{events} events are few");
    let interpreted = INTERPRETED.get();
    assert!(interpreted < PROGRAMS * count as u64 / 2, "{interpreted} kernels have no machine code");
}
