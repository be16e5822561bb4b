//! Checked mode on random programs: what each invocation is seen to do does not depend on the optimiser.

use std::cell::RefCell;
use std::collections::BTreeMap;

use spelter_shaders::abi::{DispatchArgs, Outcome};
use spelter_shaders::back::{Code, ObservedCode, Scratch, Workgroups, interp::Program};
use spelter_shaders::check::observer::{Invocation, Observer, Target};
use spelter_shaders::ir::{Kernel, Scope, Site};
use spelter_shaders::opt;
use spelter_tests::engine::{Engine, Prepare, checked};
use spelter_tests::fuzz::{Bench, Options, Tape, generate};

/// Programs.
const PROGRAMS: u64 = 1000;

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
}

/// A kernel with checks whose runs are logged.
#[derive(Debug)]
struct Logged(Program);

impl Code for Logged {
    fn run_all(&self, args: &DispatchArgs<'_>, workgroups: Workgroups, scratch: &mut Scratch) -> Outcome {
        let mut log = Log::default();
        let outcome = self.0.run_observed(args, workgroups, scratch, &mut log);
        LOGS.with_borrow_mut(|logs| logs.push(log));
        outcome
    }
}

fn logged(kernel: &Kernel) -> Box<dyn Code> {
    Box::new(Logged(Program::new(&checked(kernel))))
}

fn logged_after_passes(kernel: &Kernel) -> Box<dyn Code> {
    let mut kernel = checked(kernel);
    opt::optimize(&mut kernel, |_, _| {});
    Box::new(Logged(Program::new(&kernel)))
}

#[test]
fn passes_keep_what_random_programs_are_seen_to_do() {
    let engine = |name, prepare: Prepare| Engine { name, prepare, of_lowered: None };
    let mut bench = Bench::new(vec![engine("as read", logged), engine("after passes", logged_after_passes)]);
    let mut events = 0;
    for seed in 0..PROGRAMS {
        let program = generate(Tape::random(seed), Options::ALL).0.program;
        LOGS.take();
        if let Err(finding) = bench.check(&program) {
            panic!("seed {seed}: {}: {}", finding.what, finding.detail);
        }
        let logs = LOGS.take();
        assert!(logs.len() >= 2, "seed {seed}");
        assert_eq!(logs[0], logs[1], "seed {seed}");
        events += logs[0].0.values().map(Vec::len).sum::<usize>();
    }
    assert!(events > 100_000, "{events} events are few");
}
