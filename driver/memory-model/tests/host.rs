//! The host and its domain. The text formats do not have them, so programs are built here: threads of the host,
//! commands of the API, and the order between them.

#![allow(clippy::unwrap_used, reason = "the helpers of tests are tests too")]

use spelter_memory_model::Model;
use spelter_memory_model::answer::{Options, find_race, summarize};
use spelter_memory_model::dot::dot;
use spelter_memory_model::event::{Access, Action, Agent, Class, Classes, Domain, Location, Operation, Scope};
use spelter_memory_model::explain::explain;
use spelter_memory_model::format::write_khronos;
use spelter_memory_model::program::{
    Expression, Instruction, InstructionKind, Operand, Pin, PinnedSource, Place, Program, Thread,
};
use spelter_memory_model::repair::{Effort, repair};

const DEVICE: Agent = Agent::Device { subgroup: 0, workgroup: 0, queue_family: 0, device: 0 };

/// An operation and the value that it writes.
type Step = (Operation, Option<i64>);

/// A private access of `x` by the host (reference 0) or a shader (reference 1), and the value that it writes.
fn access(reference: u32, written: Option<i64>) -> Step {
    let action = Action::Access(Access {
        reads: written.is_none(),
        writes: written.is_some(),
        atomic: false,
        non_private: false,
        available: false,
        visible: false,
        class: Class::Uniform,
        reference,
        location: Location::whole(0),
    });
    (Operation::new(action), written)
}

fn api(action: Action) -> Step {
    (Operation::new(action), None)
}

/// Threads, each of which system-synchronizes with the next.
fn program(threads: Vec<(Agent, Vec<Step>)>) -> Program {
    let system = (1..threads.len()).map(|at| (at - 1, at)).collect();
    let threads = threads.into_iter().enumerate().map(|(number, (agent, operations))| {
        let code = operations.into_iter().map(|(operation, written)| {
            let value = written.map(|written| Expression::Operand(Operand::Constant(written)));
            let kind = InstructionKind::Execute { operation, destination: None, value, barrier: None };
            Instruction { place: Place::default(), kind }
        });
        Thread { name: format!("T{number}"), agent, code: code.collect(), registers: vec![] }
    });
    Program {
        name: "host".to_owned(),
        threads: threads.collect(),
        references: vec!["pointer".to_owned(), "buffer".to_owned()],
        locations: vec![("x".to_owned(), 0)],
        system,
        ..Program::default()
    }
}

/// The host writes, flushes and submits; a shader reads. `without` omits one of the three operations.
fn upload(without: usize) -> Program {
    let mut host = vec![access(0, Some(7))];
    let mut submit = Vec::new();
    if without != 0 {
        host.push(api(Action::Available(Domain::Host)));
    }
    if without != 1 {
        submit.push(api(Action::Transfer { from: Domain::Host, to: Domain::Device }));
    }
    if without != 2 {
        submit.push(api(Action::Visible(Domain::Device)));
    }
    program(vec![(Agent::Host, host), (DEVICE, submit), (DEVICE, vec![access(1, None)])])
}

/// A shader writes, a barrier makes the writes available to the host domain, and the host reads after a wait.
fn download(without: usize) -> Program {
    let mut barrier = vec![
        api(Action::Available(Domain::Device)),
        api(Action::Transfer { from: Domain::Device, to: Domain::Host }),
        api(Action::Visible(Domain::Host)),
    ];
    if without < barrier.len() {
        barrier.remove(without);
    }
    program(vec![(DEVICE, vec![access(1, Some(7))]), (DEVICE, barrier), (Agent::Host, vec![access(0, None)])])
}

#[test]
fn each_operation_between_host_and_device_is_needed() {
    let options = Options::default();
    for build in [upload, download] {
        let whole = build(3);
        assert!(find_race(&whole, None, &options).unwrap().is_none());
        let summary = summarize(&whole, &options, 10).unwrap();
        assert_eq!(summary.outcomes.keys().map(|outcome| outcome.ends_with("=7")).collect::<Vec<_>>(), [true]);
        for without in 0..3 {
            let race = find_race(&build(without), None, &options).unwrap();
            assert!(race.is_some(), "{without} is not needed");
        }
    }
}

#[test]
fn the_missing_command_is_named() {
    let because = |program: &Program| {
        let race = find_race(program, None, &Options::default()).unwrap().unwrap();
        explain(program, &race, Model::SPEC, 0).unwrap().cause().unwrap().because.clone()
    };
    assert_eq!(because(&upload(0)), "no command makes T0:1 available to the host domain");
    let message = "T1:1 makes T0:1 available to the device domain, but no command makes that visible to T2:1";
    assert_eq!(because(&upload(2)), message);
    assert_eq!(because(&download(0)), "no command makes T0:1 available to the device domain");
}

#[test]
fn programs_with_hosts_are_explained_and_drawn_but_have_no_text() {
    let program = upload(1);
    let race = find_race(&program, None, &Options::default()).unwrap().unwrap();
    let explanation = explain(&program, &race, Model::SPEC, 0).unwrap();
    let cause = explanation.cause().unwrap();
    assert_eq!(cause.question, "by the API");
    assert_eq!(
        cause.because,
        "T0:2 makes T0:1 available to the host domain, from which no memory domain operation takes it to the device domain"
    );
    assert!(dot(&program, &race, Model::SPEC).contains("T0: host"));
    assert_eq!(write_khronos(&program).unwrap_err().to_string(), "the format has no agents of the host");
    // A command of the API is missing, which no edit of a shader can replace.
    assert!(repair(&program, None, &Options::default(), Effort::default()).unwrap().is_none());
}

/// A host that overwrites what a shader has read needs only the wait.
#[test]
fn a_write_of_the_host_after_a_read_needs_order_only() {
    let program = program(vec![(DEVICE, vec![access(1, None)]), (Agent::Host, vec![access(0, Some(1))])]);
    assert!(find_race(&program, None, &Options::default()).unwrap().is_none());
}

/// An atomic access of the flag with these semantics, by the host (all devices) or a shader (its device).
fn flag(agent: Agent, written: Option<i64>, ordered: bool) -> Step {
    let (mut operation, written) = access(0, written);
    let on_host = agent == Agent::Host;
    let access = operation.access_mut().unwrap();
    (access.atomic, access.location) = (true, Location::whole(1));
    operation.scope = Some(if on_host { Scope::CrossDevice } else { Scope::Device });
    if ordered {
        (operation.release, operation.acquire) = (written.is_some(), written.is_none());
        operation.semantics = Classes::ALL;
    }
    operation.complete();
    (operation, written)
}

/// A program whose threads nothing synchronizes but their atomics. The second thread sees the first one's flag, if both
/// have one.
fn by_atomics(threads: [(Agent, Vec<Step>); 2], flags: Option<[usize; 2]>) -> Program {
    let pins = flags.map(|[set, seen]| Pin { read: (1, seen), source: PinnedSource::Write((0, set)) });
    let locations = [("x".to_owned(), 0), ("flag".to_owned(), 0)].to_vec();
    Program { system: vec![], pins: pins.into_iter().collect(), locations, ..program(threads.to_vec()) }
}

/// "A and B are both host operations and A inter-thread-happens-before B as defined in the host language": atomics of
/// two host threads order the flush of the one before the invalidation of the other.
#[test]
fn atomics_of_host_threads_order_what_the_threads_do() {
    let races = |release: bool, acquire: bool, flush: bool| {
        let mut first = vec![access(0, Some(7))];
        if flush {
            first.push(api(Action::Available(Domain::Host)));
        }
        first.push(flag(Agent::Host, Some(1), release));
        let second = vec![flag(Agent::Host, None, acquire), api(Action::Visible(Domain::Host)), access(0, None)];
        let set = first.len() - 1;
        let program = by_atomics([(Agent::Host, first), (Agent::Host, second)], Some([set, 0]));
        find_race(&program, None, &Options::default()).unwrap()
    };
    assert!(races(true, true, true).is_none());
    for (release, acquire, flush) in [(false, true, true), (true, false, true), (true, true, false)] {
        assert!(races(release, acquire, flush).is_some(), "{release} {acquire} {flush}");
    }
}

/// Atomics of host and device are never mutually ordered: neither is in the other's scope. The driver gives more
/// (`driver/icd/tests/host_atomics.rs`).
#[test]
fn atomics_of_host_and_device_race() {
    let races = |one: Agent, other: Agent| {
        let threads = [(one, vec![flag(one, Some(1), true)]), (other, vec![flag(other, Some(2), true)])];
        find_race(&by_atomics(threads, None), None, &Options::default()).unwrap().is_some()
    };
    assert!(!races(Agent::Host, Agent::Host));
    assert!(!races(DEVICE, DEVICE));
    assert!(races(Agent::Host, DEVICE));
}
