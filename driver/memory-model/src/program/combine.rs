//! Instances of a program: one path through each thread, with the arrivals at its barriers matched.
//!
//! Rules for static control barriers, which the appendix leaves to SPIR-V and the tests need:
//! 1. The n-th arrivals of the invocations of one workgroup are one instance. It never includes other workgroups.
//! 2. Without a quorum it opens when every invocation of the workgroup whose code contains it has arrived or ended.
//! 3. With a quorum of q, the arrivals pass in groups of q, in every way to form them, and the members of a group
//!    synchronize with each other. Fewer than q are left over and wait for ever. The final state includes the other
//!    threads, and the registers that a waiting thread has set.
//! 4. An instance in which a thread was cut in a loop, or waits for one that was, is a prefix of an execution. Its
//!    races count; it has no final state.

use std::collections::BTreeMap;

use super::path::{End, Path, paths};
use super::{Barrier, Constraint, InstructionKind, PinnedSource, Program, Register, TooLarge, Value};
use crate::event::{Agent, Event, Site, Trace};
use crate::relations::Source;

/// One path through each thread.
#[derive(Clone, Debug)]
pub struct Instance {
    /// The events.
    pub trace: Trace,
    /// For each event, its instruction: thread and index into the code.
    pub origins: Vec<(usize, usize)>,
    /// For each event, the value that it writes, if that is known.
    pub values: Vec<Option<Value>>,
    /// For each object of a location, its initial value.
    pub initial: Vec<i64>,
    /// For each thread, the final values of its registers.
    pub registers: Vec<BTreeMap<Register, Value>>,
    /// Constraints of the path on the values of reads.
    pub constraints: Vec<Constraint>,
    /// Reads whose source is stated. A read that is listed with two different sources has none.
    pub pins: Vec<(usize, Source)>,
    /// Numbers that a value out of thin air may have, besides those of the code.
    pub guesses: Vec<i64>,
    /// For each thread, whether it waits for ever: registers that it has not set then have no value.
    pub waits: Vec<bool>,
    /// Whether every thread has ended or waits for ever: there is a final state.
    pub complete: bool,
    /// For each thread that was cut in a loop, the number of its iterations that only repeated a state.
    pub(crate) cut: Vec<Option<usize>>,
}

const MAX_INSTANCES: usize = 1 << 16;
const MAX_COMBINATIONS: u64 = 1 << 18;
const MAX_QUORUM_THREADS: usize = 12;

/// The instances of `program` with loops unrolled `bound` times; without those that do not finish, unless `unfinished`.
///
/// # Errors
///
/// If there are more paths, instructions or instances than the bound that the error names.
pub fn unroll(program: &Program, bound: u32, unfinished: bool) -> Result<Vec<Instance>, TooLarge> {
    Ok(combinations(program, bound, unfinished)?.0)
}

/// As [`unroll`], with the number of combinations of paths that were examined.
pub(crate) fn combinations(program: &Program, bound: u32, unfinished: bool) -> Result<(Vec<Instance>, u64), TooLarge> {
    let statics = |instruction: &super::Instruction| match &instruction.kind {
        InstructionKind::Execute { barrier: Some(Barrier::Static { quorum, .. }), .. } => Some(quorum.is_some()),
        _ => None,
    };
    let quorum = program.threads.iter().any(|thread| thread.code.iter().any(|at| statics(at) == Some(true)));
    if quorum && program.threads.len() > MAX_QUORUM_THREADS {
        let what = format!("it has {} threads and a barrier with a quorum", program.threads.len());
        return Err(TooLarge::new(what, MAX_QUORUM_THREADS as u64));
    }
    let unfinished = unfinished && (quorum || !program.is_straight());
    let ways: Vec<_> =
        program.threads.iter().map(|thread| paths(thread, bound, unfinished)).collect::<Result<_, _>>()?;
    let combinations = ways.iter().try_fold(1u64, |product, ways| product.checked_mul(ways.len() as u64));
    let Some(combinations) = combinations.filter(|combinations| *combinations <= MAX_COMBINATIONS) else {
        return Err(TooLarge::new("its threads' paths have too many combinations", MAX_COMBINATIONS));
    };
    let mut instances = Vec::new();
    let sites = program.sites();
    let mut chosen = vec![0; ways.len()];
    if ways.iter().any(Vec::is_empty) {
        return Ok((instances, combinations));
    }
    loop {
        let picked: Vec<_> = chosen.iter().zip(&ways).map(|(&at, ways)| &ways[at]).collect();
        combine(program, &picked, &sites, &mut instances);
        if instances.len() > MAX_INSTANCES {
            let what = format!("it has more than {MAX_INSTANCES} combinations of paths and barriers");
            return Err(TooLarge::new(what, MAX_INSTANCES as u64));
        }
        // The next combination, the last thread fastest.
        let Some(thread) = (0..chosen.len()).rev().find(|&thread| chosen[thread] + 1 < ways[thread].len()) else {
            return Ok((instances, combinations));
        };
        chosen[thread] += 1;
        chosen[thread + 1..].fill(0);
    }
}

/// Arrivals at one instance of a static barrier.
struct Rendezvous {
    id: u32,
    workgroup: Option<u32>,
    quorum: Option<u32>,
    /// Events, and whether their thread waits there.
    arrivals: Vec<(usize, bool)>,
}

fn workgroup(agent: Agent) -> Option<u32> {
    if let Agent::Device { workgroup, .. } = agent { Some(workgroup) } else { None }
}

fn combine(program: &Program, picked: &[&Path], sites: &[Vec<Site>], instances: &mut Vec<Instance>) {
    let mut trace = Trace { agents: program.threads.iter().map(|thread| thread.agent).collect(), ..Trace::default() };
    let (mut origins, mut values, mut registers, mut constraints) = (vec![], vec![], vec![], vec![]);
    let mut rendezvous_list: BTreeMap<(u32, Option<u32>, u32), Rendezvous> = BTreeMap::new();
    let mut ranges = Vec::new();
    for (thread, path) in picked.iter().enumerate() {
        let first = trace.events.len();
        for (step, taken) in path.steps.iter().enumerate() {
            let InstructionKind::Execute { operation, barrier, .. } = &program.threads[thread].code[taken.at].kind
            else {
                continue;
            };
            let mut instance = None;
            match *barrier {
                Some(Barrier::Dynamic(number)) => instance = Some(number),
                Some(Barrier::Static { id, quorum }) => {
                    let workgroup = workgroup(program.threads[thread].agent);
                    let rendezvous = rendezvous_list
                        // Each round of a loop meets at an instance of its own.
                        .entry((id, workgroup, taken.round))
                        .or_insert_with(|| Rendezvous { id, workgroup, quorum, arrivals: vec![] });
                    let waits = path.end == End::Waiting && step + 1 == path.steps.len();
                    rendezvous.arrivals.push((first + step, waits));
                }
                None => {}
            }
            let site = Some(sites[thread][taken.at]);
            trace.events.push(Event { thread, operation: operation.clone(), instance, site });
            origins.push((thread, taken.at));
            values.push(taken.value.as_ref().map(|value| value.shifted(first)));
        }
        registers.push(path.registers.iter().map(|(name, value)| (name.clone(), value.shifted(first))).collect());
        constraints.extend(path.constraints.iter().map(|constraint| Constraint {
            left: constraint.left.shifted(first),
            right: constraint.right.shifted(first),
            ..constraint.clone()
        }));
        ranges.push(first..trace.events.len());
    }
    for &(a, b) in &program.system {
        for x in ranges[a].clone() {
            trace.system.extend(ranges[b].clone().map(|y| (x, y)));
        }
    }
    let event = |at: (usize, usize)| origins.iter().position(|origin| *origin == at);
    let mut pins = Vec::new();
    for pin in &program.pins {
        let source = match pin.source {
            PinnedSource::Initial => Some(Source::Initial),
            PinnedSource::Write(write) => event(write).map(Source::Write),
        };
        pins.extend(event(pin.read).zip(source));
    }
    let at_quorum = |thread: usize| {
        let last = picked[thread].steps.last().map(|step| &program.threads[thread].code[step.at].kind);
        matches!(last, Some(InstructionKind::Execute { barrier: Some(Barrier::Static { quorum: Some(_), .. }), .. }))
    };
    let waits: Vec<_> =
        (0..picked.len()).map(|thread| picked[thread].end == End::Waiting && at_quorum(thread)).collect();
    let complete = (0..picked.len()).all(|thread| picked[thread].end == End::Finished || waits[thread]);
    let repeated = |path: &&Path| if let End::Cut { repeated, .. } = path.end { Some(repeated) } else { None };
    let cut = picked.iter().map(repeated).collect();
    let guesses = program.numbers.clone();
    let initial = program.locations.iter().map(|location| location.1).collect();
    let instance =
        Instance { trace, origins, values, initial, registers, constraints, pins, guesses, waits, complete, cut };
    let ended = |thread: usize| picked[thread].end == End::Finished;
    open(program, instance, &rendezvous_list.into_values().collect::<Vec<_>>(), &ended, 0, instances);
}

/// Decides the rendezvous from the `next`-th.
fn open(
    program: &Program,
    mut instance: Instance,
    rendezvous_list: &[Rendezvous],
    ended: &impl Fn(usize) -> bool,
    next: usize,
    instances: &mut Vec<Instance>,
) {
    // One above the limit is enough to reject the program.
    if instances.len() > MAX_INSTANCES {
        return;
    }
    let Some(rendezvous) = rendezvous_list.get(next) else {
        instances.push(instance);
        return;
    };
    // Numbers of static instances are above those of dynamic ones.
    let number = 1 << 31 | next as u32;
    let arrived =
        |thread: usize| rendezvous.arrivals.iter().any(|&(event, _)| instance.trace.events[event].thread == thread);
    let opens = (0..program.threads.len()).all(|thread| {
        let here = workgroup(program.threads[thread].agent) == rendezvous.workgroup;
        let holds = program.threads[thread].code.iter().any(|instruction| {
            matches!(instruction.kind, InstructionKind::Execute { barrier: Some(Barrier::Static { id, .. }), .. }
                if id == rendezvous.id)
        });
        !here || !holds || arrived(thread) || ended(thread)
    });
    let waiting = rendezvous.arrivals.iter().filter(|arrival| arrival.1).count();
    let passing: Vec<_> = rendezvous.arrivals.iter().filter(|arrival| !arrival.1).map(|arrival| arrival.0).collect();
    let Some(quorum) = rendezvous.quorum else {
        // All wait, or none.
        if (if opens { waiting } else { passing.len() }) == 0 {
            passing.iter().for_each(|&event| instance.trace.events[event].instance = Some(number));
            open(program, instance, rendezvous_list, ended, next + 1, instances);
        }
        return;
    };
    let quorum = quorum as usize;
    if waiting < quorum && passing.len().is_multiple_of(quorum) {
        group(instance, &passing, quorum, number, &mut |instance| {
            open(program, instance, rendezvous_list, ended, next + 1, instances);
        });
    }
}

/// Every partition of `passing` into groups of `quorum`, each its own instance.
fn group(mut instance: Instance, passing: &[usize], quorum: usize, number: u32, found: &mut dyn FnMut(Instance)) {
    let Some((&first, rest)) = passing.split_first() else { return found(instance) };
    // Each group needs a unique number, derived from its first member's event.
    let own = number ^ (first as u32 + 1) << 12;
    instance.trace.events[first].instance = Some(own);
    for others in 0u32..1 << rest.len() {
        if others.count_ones() as usize + 1 == quorum {
            let mut instance = instance.clone();
            let mut left = Vec::new();
            for (at, &event) in rest.iter().enumerate() {
                if others >> at & 1 != 0 {
                    instance.trace.events[event].instance = Some(own);
                } else {
                    left.push(event);
                }
            }
            group(instance, &left, quorum, number, found);
        }
    }
}
