//! Races of recorded traces: each cause, edits of sites with several events, dependencies between commands, and what is
//! no slice.

#![allow(clippy::unwrap_used, reason = "the helpers of tests are tests too")]

use crate::common::traces::{Recorded, access, barrier, flag, invocation, neighbours, relay, rounds, word};
use spelter_memory_model::Model;
use spelter_memory_model::answer::{Options, answer, find_race};
use spelter_memory_model::event::{
    Action, Agent, Class, Classes, Command, Domain, Event, Operation, Scope, Site, Stage, Trace,
};
use spelter_memory_model::explain;
use spelter_memory_model::format::{Format, write_slice};
use spelter_memory_model::names::{Names, Numbers};
use spelter_memory_model::relations::{Choice, Source};
use spelter_memory_model::repair::{self, Edit, Terms, TraceEdit, TraceEffort};
use spelter_memory_model::slice::{Slice, TraceError};

/// Threads of one event list each, with a site for each event, and sources as pairs of read and write.
fn trace(threads: Vec<(Agent, Vec<Operation>)>, sources: &[(usize, usize)]) -> (Trace, Choice<u128>) {
    let mut trace = Trace::default();
    for (thread, (agent, operations)) in threads.into_iter().enumerate() {
        trace.agents.push(agent);
        for operation in operations {
            let (instance, site) = (operation.control_barrier().then_some(0), Some(Site(trace.len() as u32)));
            trace.events.push(Event { instance, site, ..Event::new(thread, operation) });
        }
    }
    let mut from = vec![None; trace.len()];
    sources.iter().for_each(|&(read, write)| from[read] = Some(Source::Write(write)));
    (trace, Choice::recorded(from, &[]).unwrap())
}

/// Kind and text of the cause of a race.
fn cause(trace: &Trace, choice: &Choice<u128>, pair: (usize, usize)) -> (&'static str, String) {
    let explanation = explain::of_trace(trace, choice, pair, Model::SPEC, &Numbers(trace)).unwrap();
    let cause = explanation.cause().unwrap();
    (cause.reason.code(), cause.because.clone())
}

/// The texts of the repairs of a race, each with its edits joined.
fn repairs(trace: &Trace, choice: &Choice<u128>, pair: (usize, usize)) -> Vec<String> {
    let found = repair::of_trace(trace, choice, pair, Model::SPEC, TraceEffort::default()).unwrap();
    assert!(found.smallest, "{found:?}");
    let text = |edits: &Vec<TraceEdit>| TraceEdit::texts(edits, (trace, pair), &Numbers(trace), |_| None).join(", ");
    found.repairs.iter().map(text).collect()
}

/// A change of an operation.
type Change<'a> = &'a dyn Fn(&mut Operation);

fn with(mut operation: Operation, change: impl Fn(&mut Operation)) -> Operation {
    change(&mut operation);
    operation
}

/// Message passing between two workgroups by a flag, with changes of the four operations.
fn passing(changes: [Change<'_>; 4]) -> (Trace, Choice<u128>) {
    let operations = [access(true, 0, word(0)), flag(true, 0), flag(false, 0), access(false, 0, word(0))];
    let mut changed = operations.into_iter().zip(changes).map(|(operation, change)| with(operation, change));
    let mut two = || vec![changed.next().unwrap(), changed.next().unwrap()];
    let threads = vec![(invocation(0, 1), two()), (invocation(1, 1), two())];
    trace(threads, &[(2, 1), (3, 0)])
}

fn keep(_: &mut Operation) {}

#[test]
fn the_cause_is_the_first_condition_that_fails() {
    let (whole, choice) = passing([&keep; 4]);
    assert!(!Slice::new(&whole, &choice, Model::SPEC).unwrap().is_race(0, 3));
    let private = |operation: &mut Operation| operation.access_mut().unwrap().non_private = false;
    let other = |operation: &mut Operation| operation.access_mut().unwrap().reference = 7;
    let relaxed = |operation: &mut Operation| {
        (operation.release, operation.acquire, operation.semantics) = (false, false, Classes::NONE);
        (operation.make_available, operation.make_visible) = (false, false);
    };
    let in_workgroup = |operation: &mut Operation| operation.scope = Some(Scope::Workgroup);
    let of_workgroup_memory = |operation: &mut Operation| operation.semantics = Classes::NONE.with(Class::Workgroup);
    let unavailable = |operation: &mut Operation| operation.make_available = false;
    let invisible = |operation: &mut Operation| operation.make_visible = false;
    let cases: [([Change<'_>; 4], &str, &str, &str); 8] = [
        ([&private, &keep, &keep, &keep], "private", "T0:1 is private", "NonPrivatePointer on site 0"),
        ([&keep, &keep, &keep, &other], "different-reference", "r0 and r7 are one location, but two references", ""),
        (
            [&keep, &relaxed, &keep, &keep],
            "no-release",
            "T1:1 reads from T0:2, but T0:2 does not release, nor does a barrier next to it",
            "Release|UniformMemory|MakeAvailable on site 1",
        ),
        (
            [&keep, &keep, &relaxed, &keep],
            "no-acquire",
            "T1:1 reads from T0:2, but T1:1 does not acquire, nor does a barrier next to it",
            "Acquire|UniformMemory|MakeVisible on site 2",
        ),
        (
            [&keep, &in_workgroup, &keep, &keep],
            "scope",
            "T1:1 reads from T0:2, but T1:1 is outside of T0:2's Workgroup scope",
            "QueueFamily scope on site 1",
        ),
        (
            [&keep, &of_workgroup_memory, &keep, &keep],
            "storage-class",
            "T1:1 reads from T0:2, but the semantics of T0:2 lack UniformMemory",
            "UniformMemory on site 1",
        ),
        (
            [&keep, &unavailable, &keep, &keep],
            "not-available",
            "no operation makes T0:1 available to the queue family instance domain or a wider one",
            "MakeAvailable on site 1",
        ),
        (
            [&keep, &keep, &invisible, &keep],
            "not-visible",
            "no operation makes the queue family instance domain or a wider one visible to T1:2",
            "MakeVisible on site 2",
        ),
    ];
    for (changes, code, because, edit) in cases {
        let (trace, choice) = passing(changes);
        assert_eq!(cause(&trace, &choice, (0, 3)), (code, because.to_owned()));
        let found = repairs(&trace, &choice, (3, 0));
        assert_eq!(found.first().map_or("", |first| first.as_str()), edit, "{found:?}");
    }
}

/// A value goes through a workgroup in between, whose flag has the wrong class.
#[test]
fn the_cause_may_be_in_a_thread_between_the_two() {
    let mut recorded = relay(12);
    recorded.trace.events[7].operation.semantics = Classes::NONE.with(Class::Workgroup);
    recorded.sources[9] = Some(Source::Write(2));
    // The second thread does not write.
    recorded.trace.events[6].operation = access(false, 0, word(0));
    recorded.sources[6] = Some(Source::Write(2));
    let choice = Choice::recorded(recorded.sources, &[]).unwrap();
    let because = "T2:1 reads from T1:4, but the semantics of T1:4 lack UniformMemory";
    assert_eq!(cause(&recorded.trace, &choice, (2, 9)), ("storage-class", because.to_owned()));
    // All flags are one site.
    assert_eq!(repairs(&recorded.trace, &choice, (2, 9))[0], "UniformMemory on site 3");
}

#[test]
fn two_atomics_in_narrow_scopes_are_not_mutually_ordered() {
    let narrow = |number| {
        with(flag(true, number), |operation| {
            operation.scope = Some(Scope::Workgroup);
        })
    };
    let threads = vec![(invocation(0, 1), vec![narrow(0)]), (invocation(1, 1), vec![narrow(0)])];
    let (trace, choice) = trace(threads, &[]);
    let because = "T1:1 is outside of T0:1's Workgroup scope, and T0:1 is outside of T1:1's Workgroup scope";
    assert_eq!(cause(&trace, &choice, (0, 1)), ("scope", because.to_owned()));
    let wider = "QueueFamily scope on site 0, QueueFamily scope on site 1";
    assert_eq!(repairs(&trace, &choice, (0, 1)), [wider, "atomic accesses (QueueFamily) at site 0 and site 1"]);
}

#[test]
fn nothing_in_common_is_repaired_by_a_barrier_or_by_atomics() {
    let one = |operation| vec![operation];
    let same = [invocation(0, 2), invocation(1, 2)];
    let threads = vec![(same[0], one(access(true, 0, word(0)))), (same[1], one(access(false, 0, word(0))))];
    let (trace, choice) = trace(threads, &[(1, 0)]);
    assert_eq!(cause(&trace, &choice, (0, 1)).0, "not-synchronized");
    assert_eq!(
        repairs(&trace, &choice, (0, 1)),
        [
            "a control barrier for UniformMemory after site 0 and before site 1",
            "a control barrier for UniformMemory after site 1 and before site 0",
            "atomic accesses (Subgroup) at site 0 and site 1"
        ]
    );
}

/// A loop whose barrier lacks the class: one edit changes all of its events.
#[test]
fn an_edit_of_a_site_changes_all_of_its_events() {
    let mut recorded = rounds(96);
    for event in &mut recorded.trace.events {
        if event.operation.control_barrier() {
            event.operation.semantics = Classes::NONE.with(Class::Workgroup);
            event.site = Some(Site(1));
        }
    }
    let choice = Choice::recorded(recorded.sources, &[]).unwrap();
    let found = repairs(&recorded.trace, &choice, recorded.pair);
    assert_eq!(found[0], "UniformMemory on site 1");
    let (code, because) = cause(&recorded.trace, &choice, recorded.pair);
    assert_eq!(code, "storage-class");
    assert_eq!(because, "T1:2 and T0:2 wait for each other, but the semantics of T1:2 lack UniformMemory");
}

/// In a loop without barriers, one barrier orders a round's write before its read, and another one the read before the
/// next round's write.
#[test]
fn a_barrier_is_inserted_in_every_iteration() {
    let mut trace = Trace { agents: vec![invocation(0, 2), invocation(1, 2)], ..Trace::default() };
    let mut sources = Vec::new();
    for thread in 0..2 {
        for _ in 0..3 {
            for (site, operation) in [(0, access(true, 0, word(thread))), (1, access(false, 0, word(1 - thread)))] {
                trace.events.push(Event { site: Some(Site(site)), ..Event::new(thread, operation) });
            }
            sources.extend([None, Some(Source::Initial)]);
        }
    }
    let choice = Choice::recorded(sources, &[]).unwrap();
    // The second write of thread 0 and the second read of thread 1.
    let found = repairs(&trace, &choice, (2, 9));
    assert_eq!(found[0], "a control barrier for UniformMemory after site 0 and before site 1", "{found:?}");
    // The first read of thread 0 and the second write of thread 1.
    let found = repairs(&trace, &choice, (1, 8));
    assert!(found.iter().any(|text| text.ends_with("after site 1 and before site 0")), "{found:?}");
}

fn plain(writes: bool, reference: u32) -> Operation {
    with(access(writes, 0, word(0)), |operation| {
        let access = operation.access_mut().unwrap();
        (access.non_private, access.reference) = (false, reference);
    })
}

/// Two accesses by two commands, the second of which reads from the first if it reads; and whether the first command is
/// executed before the second.
fn commands(first: (Stage, bool), second: (Stage, bool), ordered: bool) -> (Trace, Choice<u128>) {
    let agent = |stage, number| if stage == Stage::Host { Agent::Host } else { invocation(number, 1) };
    let threads = vec![(agent(first.0, 0), vec![plain(first.1, 0)]), (agent(second.0, 1), vec![plain(second.1, 1)])];
    let sources: &[(usize, usize)] = if first.1 && !second.1 { &[(1, 0)] } else { &[] };
    let (mut trace, choice) = trace(threads, sources);
    trace.commands = vec![Command { number: 7, stage: first.0 }, Command { number: 9, stage: second.0 }];
    trace.system.extend(ordered.then_some((0, 1)));
    (trace, choice)
}

#[test]
fn a_dependency_between_two_commands_has_what_the_accesses_need() {
    use Stage::{ComputeShader, DrawIndirect, Transfer};
    let first = |first, second, ordered| {
        let (trace, choice) = commands(first, second, ordered);
        repairs(&trace, &choice, (1, 0)).remove(0)
    };
    assert_eq!(
        first((ComputeShader, true), (ComputeShader, false), false),
        "a dependency from command 7 (COMPUTE_SHADER, SHADER_STORAGE_WRITE) to command 9 (COMPUTE_SHADER, \
         SHADER_STORAGE_READ)"
    );
    assert_eq!(
        first((Transfer, true), (DrawIndirect, false), true),
        "a dependency from command 7 (ALL_TRANSFER, TRANSFER_WRITE) to command 9 (DRAW_INDIRECT, \
         INDIRECT_COMMAND_READ)"
    );
    assert_eq!(
        first((ComputeShader, true), (Transfer, true), false),
        "a dependency from command 7 (COMPUTE_SHADER, SHADER_STORAGE_WRITE) to command 9 (ALL_TRANSFER)"
    );
    assert_eq!(
        first((ComputeShader, false), (Transfer, true), false),
        "an execution dependency from command 7 (COMPUTE_SHADER) to command 9 (ALL_TRANSFER)"
    );
    // Executed in order, a write after a read is no race.
    let (trace, choice) = commands((ComputeShader, false), (Transfer, true), true);
    assert!(!Slice::new(&trace, &choice, Model::SPEC).unwrap().is_race(0, 1));
    // A1: a write after a write needs visibility by this reading.
    let (trace, choice) = commands((ComputeShader, true), (ComputeShader, true), false);
    let model: Model = "spec,overwrite=api-visibility".parse().unwrap();
    let found = repair::of_trace(&trace, &choice, (0, 1), model, TraceEffort::default()).unwrap();
    assert!(found.repairs[0][0].text(&trace, (0, 1), &Numbers(&trace)).ends_with("SHADER_STORAGE_WRITE)"));
}

#[test]
fn the_host_needs_its_domain() {
    use Stage::{ComputeShader, Host};
    let (trace, choice) = commands((ComputeShader, true), (Host, false), true);
    assert_eq!(cause(&trace, &choice, (0, 1)).0, "api-not-available");
    let read = "a dependency from command 7 (COMPUTE_SHADER, SHADER_STORAGE_WRITE) to the host (HOST, HOST_READ)";
    assert_eq!(repairs(&trace, &choice, (0, 1)), [format!("{read}, before that for which the host waits")]);
    let (trace, choice) = commands((ComputeShader, true), (Host, false), false);
    let found = repairs(&trace, &choice, (0, 1));
    assert_eq!(found[0], format!("{read}, and a wait of the host for command 7"));
    let (trace, choice) = commands((Host, true), (ComputeShader, false), true);
    assert_eq!(
        repairs(&trace, &choice, (0, 1)),
        ["the host flushes what it wrote (vkFlushMappedMemoryRanges) before it submits command 9"]
    );
    let (trace, choice) = commands((Host, true), (ComputeShader, false), false);
    assert!(repairs(&trace, &choice, (0, 1)).contains(&"the host writes before it submits command 9".to_owned()));
    // With the operations of a barrier for HOST_READ in the trace, there is no race.
    let (mut trace, _) = commands((ComputeShader, true), (Host, false), true);
    trace.agents.push(invocation(2, 1));
    trace.commands.push(Command { number: 8, stage: Stage::Transfer });
    let (device, host) = (Domain::Device, Domain::Host);
    for action in [Action::Available(device), Action::Transfer { from: device, to: host }, Action::Visible(host)] {
        trace.system.extend([(0, trace.len()), (trace.len(), 1)]);
        trace.events.push(Event::new(2, Operation::new(action)));
    }
    let sources = [None, Some(Source::Write(0)), None, None, None].to_vec();
    let choice = Choice::recorded(sources, &[]).unwrap();
    assert!(!Slice::new(&trace, &choice, Model::SPEC).unwrap().is_race(0, 1));
}

#[test]
fn in_the_terms_of_languages_repairs_have_whole_orders() {
    let private = |operation: &mut Operation| operation.access_mut().unwrap().non_private = false;
    let relaxed = |operation: &mut Operation| {
        (operation.release, operation.acquire, operation.semantics) = (false, false, Classes::NONE);
        (operation.make_available, operation.make_visible) = (false, false);
    };
    let (trace, choice) = passing([&private, &relaxed, &relaxed, &private]);
    let found = |atomics: bool| {
        let effort = TraceEffort { terms: Terms::Whole { atomics }, ..TraceEffort::default() };
        repair::of_trace(&trace, &choice, (0, 3), Model::SPEC, effort).unwrap().repairs
    };
    let order = |site: u32| TraceEdit::Code(Edit::Order(Site(site), Class::Uniform));
    let coherent = TraceEdit::Code(Edit::Coherent(Site(0), Site(3), Scope::QueueFamily));
    let atomic = TraceEdit::Code(Edit::Atomic(Site(0), Site(3), Scope::QueueFamily));
    assert_eq!(found(true), [vec![order(1), order(2), coherent], vec![atomic]]);
    // Where atomics cannot order other memory, none is left but that both accesses are atomic.
    assert_eq!(found(false), [[atomic]]);
}

/// Names that a caller gives are used as they are.
struct Lines;

impl Names for Lines {
    fn place(&self, event: usize) -> String {
        format!("scan.comp:{}", 41 + event)
    }

    fn event(&self, event: usize) -> String {
        format!("{} an access", self.place(event))
    }

    fn reference(&self, _: usize) -> String {
        "partial".to_owned()
    }

    fn site(&self, site: Site) -> String {
        format!("scan.comp:{}", 41 + site.0)
    }

    fn command(&self, command: Command) -> String {
        format!("dispatch #{}", command.number)
    }

    fn access_flag(&self, event: usize) -> Option<String> {
        (event == 1).then(|| "UNIFORM_READ".to_owned())
    }
}

#[test]
fn names_are_those_of_the_caller() {
    let (trace, choice) = commands((Stage::ComputeShader, true), (Stage::ComputeShader, false), false);
    let explanation = explain::of_trace(&trace, &choice, (0, 1), Model::SPEC, &Lines).unwrap();
    assert_eq!(explanation.first, "scan.comp:41 an access (private, Uniform)");
    let because = &explanation.cause().unwrap().because;
    assert_eq!(because, "nothing that scan.comp:42 waits for or reads follows scan.comp:41");
    let found = repair::of_trace(&trace, &choice, (0, 1), Model::SPEC, TraceEffort::default()).unwrap();
    assert_eq!(
        found.repairs[0][0].text(&trace, (0, 1), &Lines),
        "a dependency from dispatch #7 (COMPUTE_SHADER, SHADER_STORAGE_WRITE) to dispatch #9 (COMPUTE_SHADER, \
         UNIFORM_READ)"
    );
}

/// The verdict of a trace of `neighbours`.
fn sliced(recorded: &Recorded) -> Result<bool, TraceError> {
    let choice = Choice::recorded(recorded.sources.clone(), &[])?;
    Ok(Slice::new(&recorded.trace, &choice, Model::SPEC)?.is_race(recorded.pair.0, recorded.pair.1))
}

#[test]
fn a_slice_has_at_most_128_events() {
    for events in [64, 96, 124, 128] {
        assert_eq!(sliced(&relay(events)), Ok(false));
        assert_eq!(sliced(&rounds(events)), Ok(false));
    }
    let large = relay(132);
    let error = sliced(&large).unwrap_err();
    assert_eq!(error, TraceError::TooLarge { events: 132, bound: 128 });
    assert_eq!(error.to_string(), "the trace is too large: it has 132 events, and the bound is 128");
    // Neither does a choice of fitting size help.
    let choice = Choice::recorded(vec![None; 64], &[]).unwrap();
    let repaired = repair::of_trace(&large.trace, &choice, (0, 1), Model::SPEC, TraceEffort::default());
    assert_eq!(repaired.unwrap_err(), error);
    // A repair that inserts more than fits is no repair.
    let full = neighbours(42, 42, Class::Workgroup);
    let choice = Choice::recorded(full.sources, &[]).unwrap();
    assert_eq!(repairs(&full.trace, &choice, full.pair)[0], "UniformMemory on site 1");
}

#[test]
fn what_is_no_slice_is_an_error() {
    let (trace, choice) = passing([&keep; 4]);
    let error = |trace: &Trace, choice: &Choice<u128>| Slice::new(trace, choice, Model::SPEC).unwrap_err().to_string();
    let explained =
        |pair| explain::of_trace(&trace, &choice, pair, Model::SPEC, &Numbers(&trace)).unwrap_err().to_string();
    let none = "event 4: there is no event with this number";
    assert_eq!(explained((0, 4)), none);
    let alone = "events 0 and 1 do not conflict: a race is of two accesses of common bytes, one of them a write";
    assert_eq!(explained((0, 1)), alone);
    assert_eq!(explained((3, 3)), alone.replace("0 and 1", "3 and 3"));

    let from = |sources: &[Option<Source>]| Choice::recorded(sources.to_vec(), &[]).unwrap();
    assert_eq!(error(&trace, &from(&[None])), "the trace has 4 events, but 1 sources");
    let write = |write| Some(Source::Write(write));
    assert_eq!(error(&trace, &from(&[None, None, None, write(9)])), none.replace('4', "9"));
    assert_eq!(error(&trace, &from(&[None, None, None, write(1)])), "event 3: its source writes none of its bytes");
    assert_eq!(error(&trace, &from(&[write(0), None, None, None])), "event 0: only a read has a source");
    assert!(Choice::recorded(vec![None; 4], &[(0, 4)]).is_err());
    let ordered = |pairs: &[(usize, usize)]| Choice::recorded(vec![None; 4], pairs).unwrap();
    let rule = "event 0: a modification order is one of mutually ordered atomic writes";
    assert_eq!(error(&trace, &ordered(&[(0, 1)])), rule);

    let two = vec![(invocation(0, 1), vec![flag(true, 0)]), (invocation(1, 1), vec![flag(true, 0)])];
    let (two, open) = self::trace(two, &[]);
    assert_eq!(error(&two, &open), "event 0: two writes that are mutually ordered are in a modification order");
    let circle = Choice::recorded(vec![None; 2], &[(0, 1), (1, 0)]).unwrap();
    assert_eq!(error(&two, &circle), "event 0: a modification order is one of mutually ordered atomic writes");

    let homeless = Trace { agents: vec![], ..trace.clone() };
    assert_eq!(error(&homeless, &choice), "event 0: its thread has no agent");
    let commands = vec![Command { number: 0, stage: Stage::ComputeShader }];
    assert_eq!(error(&Trace { commands, ..trace.clone() }, &choice), "the trace has 2 threads, but 1 commands");
    assert_eq!(error(&Trace { system: vec![(0, 4)], ..trace.clone() }, &choice), none);
    let mut unscoped = trace.clone();
    unscoped.events[1].operation.scope = None;
    assert!(error(&unscoped, &choice).starts_with("event 1: an atomic, a barrier"), "{}", error(&unscoped, &choice));
}

#[test]
fn an_explanation_of_ordered_accesses_has_no_cause() {
    let (trace, choice) = passing([&keep; 4]);
    let found = explain::of_trace(&trace, &choice, (3, 0), Model::SPEC, &Numbers(&trace)).unwrap();
    assert_eq!((found.pair, found.cause()), ((0, 3), None));
    let path = "T0:1 -po-> T0:2 rel[U,dev,av] -sw-> T1:1 acq[U,dev,vis] -po-> T1:2";
    assert_eq!(found.conjuncts[0].because, path);
    assert_eq!(found.conjuncts[0].reason.events(), [1, 2, 3]);
    let threads = vec![
        (invocation(0, 2), vec![access(true, 0, word(0)), barrier(Class::Uniform)]),
        (invocation(1, 2), vec![barrier(Class::Uniform), access(false, 0, word(0))]),
    ];
    let (trace, choice) = self::trace(threads, &[(3, 0)]);
    assert!(!Slice::new(&trace, &choice, Model::SPEC).unwrap().is_race(0, 3));
}

/// A slice as a test, read and decided again.
fn replayed(trace: &Trace, choice: &Choice<u128>) -> (String, bool) {
    let slice = Slice::new(trace, choice, Model::SPEC).unwrap();
    let text = write_slice(&slice, &Numbers(trace)).unwrap();
    let test = Format::Khronos.read("replay", &text).unwrap_or_else(|error| panic!("{error}\n{text}"));
    assert_eq!(test.warnings, []);
    let answer = answer(&test.program, &test.questions[0], &Options::default()).unwrap();
    assert_eq!((answer.holds, answer.expected), (true, Some(true)), "{text}");
    let race = find_race(&test.program, None, &Options::default()).unwrap();
    assert_eq!(race.is_some(), !slice.races().is_empty(), "{text}");
    (text, race.is_some())
}

#[test]
fn a_slice_is_written_as_a_test() {
    let (trace, choice) = passing([&keep, &|flag: &mut Operation| flag.make_available = false, &keep, &keep]);
    let text = "\
// A slice of a run. Its operations are:
// thread 0, operation 1: T0:1 st r0
// thread 0, operation 2: T0:2 st.atom r1 rel[U,dev]
// thread 1, operation 1: T1:1 ld.atom r1 acq[U,dev,vis]
// thread 1, operation 2: T1:2 ld r0
NEWTHREAD 0
st.nonpriv.sc0 x0 = 1
st.atom.sc0.rel.semsc0.scopedev x1 = 2
NEWWG
NEWSG
NEWTHREAD 1
ld.atom.sc0.acq.semvis.semsc0.scopedev x1 = 2
ld.nonpriv.sc0 x0 = 1
SATISFIABLE consistent[X] && #dr>0
";
    assert_eq!(replayed(&trace, &choice), (text.to_owned(), true));
    for recorded in [rounds(32), relay(48), neighbours(8, 4, Class::Image), neighbours(8, 8, Class::Uniform)] {
        let choice = Choice::recorded(recorded.sources, &[]).unwrap();
        replayed(&recorded.trace, &choice);
    }
    let (host, choice) = commands((Stage::ComputeShader, true), (Stage::Host, false), true);
    let slice = Slice::new(&host, &choice, Model::SPEC).unwrap();
    let error = write_slice(&slice, &Numbers(&host)).unwrap_err().to_string();
    assert_eq!(error, "the format has no agents of the host");
    let (dispatches, choice) = commands((Stage::ComputeShader, true), (Stage::ComputeShader, false), true);
    assert!(replayed(&dispatches, &choice).0.contains("\nSSW 0 1\nSLOC x0 x0r1\n"));
}
