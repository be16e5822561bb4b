//! Writes a recorded run as a Khronos test, so that a report can be examined with `spelter litmus`.
//!
//! 1. Every write gets a value of its own, and every read states the value of its source: so the reads-from of the test
//!    is that of the run. A read through another reference than its source's states none, since a name of the format
//!    has values of its own. The modification orders of the atomics are not stated.
//! 2. Comments name the events. A name of the test is a location together with a reference; `SLOC` relates those of one
//!    location.
//! 3. The format has two storage classes. If the run has two others, they take their places.
//! 4. Control barriers and threads are numbered anew; threads are ordered by their groups, which the format cannot
//!    reopen.

use std::fmt::Write;

use super::writable::Unwritable;
use super::write::write_khronos;
use crate::event::{Access, Agent, Class, Classes, Location, Operation, Trace};
use crate::names::Names;
use crate::program::{
    Barrier, Expression, Instruction, InstructionKind, Operand, Pin, PinnedSource, Place, Program, Thread,
};
use crate::relations::{Source, overlap_in_part};
use crate::slice::Slice;

/// The slice as a Khronos test with the question whether it has a consistent execution with (or without) a race, as the
/// slice is.
///
/// # Errors
///
/// If the slice has what the format does not have: a third storage class, agents of the host, several devices, bytes
/// that accesses share in part, an order of single operations by the API; or if reads-from is not that of an execution.
pub fn write_slice(slice: &Slice<'_>, names: &dyn Names) -> Result<String, Unwritable> {
    if slice.violation().is_some() {
        return Err(Unwritable("executions that violate an axiom"));
    }
    let recorded = Recorded::new(slice.trace)?;
    let program = recorded.program(&slice.choice.sources)?;
    let mut text = String::from("// A slice of a run. Its operations are:\n");
    for event in 0..slice.trace.len() {
        let (thread, at) = recorded.places[event];
        let name = names.event(event).replace(['\n', '\r'], " ");
        let _ = writeln!(text, "// thread {thread}, operation {}: {name}", at + 1);
    }
    text += &write_khronos(&program)?;
    let races = if slice.races().is_empty() { "=0" } else { ">0" };
    let _ = writeln!(text, "SATISFIABLE consistent[X] && #dr{races}");
    Ok(text)
}

/// A trace with the numbers that its events, names and classes have in a test.
struct Recorded<'a> {
    trace: &'a Trace,
    /// For each thread of the test, its thread in the trace.
    threads: Vec<usize>,
    /// For each event, its thread in the test and its number in it.
    places: Vec<(usize, usize)>,
    locations: Vec<Location>,
    /// The location (an index) and the reference of each name.
    names: Vec<(usize, u32)>,
    /// The classes in use, at most two.
    classes: Vec<Class>,
}

impl<'a> Recorded<'a> {
    fn new(trace: &'a Trace) -> Result<Self, Unwritable> {
        if overlap_in_part(trace) {
            return Err(Unwritable("accesses that overlap in part"));
        }
        let groups = |agent: Agent| match agent {
            Agent::Device { subgroup, workgroup, queue_family, device } => {
                Ok([device, queue_family, workgroup, subgroup])
            }
            Agent::Host => Err(Unwritable("agents of the host")),
        };
        let mut threads = Vec::new();
        for (thread, agent) in trace.agents.iter().enumerate() {
            if trace.events.iter().any(|event| event.thread == thread) {
                threads.push((groups(*agent)?, thread));
            }
        }
        threads.sort_unstable();
        if threads.windows(2).any(|pair| pair[0].0[0] != pair[1].0[0]) {
            return Err(Unwritable("several devices"));
        }
        let threads: Vec<_> = threads.into_iter().map(|thread| thread.1).collect();
        let mut lengths = vec![0; threads.len()];
        let mut places = Vec::new();
        let (mut locations, mut names, mut used) = (Vec::new(), Vec::new(), Classes::NONE);
        for event in &trace.events {
            let Some(thread) = threads.iter().position(|thread| *thread == event.thread) else { continue };
            places.push((thread, lengths[thread]));
            lengths[thread] += 1;
            used = event.operation.semantics.iter().fold(used, Classes::with);
            let Some(access) = event.operation.access() else { continue };
            used = used.with(access.class);
            if !locations.contains(&access.location) {
                locations.push(access.location.clone());
            }
            let location = locations.iter().position(|known| *known == access.location).unwrap_or_default();
            if !names.contains(&(location, access.reference)) {
                names.push((location, access.reference));
            }
        }
        let classes: Vec<_> = used.iter().collect();
        if classes.len() > 2 {
            return Err(Unwritable("storage classes beyond two"));
        }
        Ok(Self { trace, threads, places, locations, names, classes })
    }

    /// The class of the test in the place of one of the trace.
    fn class(&self, class: Class) -> Class {
        let basic = [Class::Uniform, Class::Workgroup];
        if self.classes.iter().all(|class| basic.contains(class)) {
            return class;
        }
        basic[self.classes.iter().position(|known| *known == class).unwrap_or_default().min(1)]
    }

    fn name(&self, access: &Access) -> usize {
        let is_own = |name: &(usize, u32)| self.locations[name.0] == access.location && name.1 == access.reference;
        self.names.iter().position(is_own).unwrap_or_default()
    }

    fn same_name(&self, a: usize, b: usize) -> bool {
        let name = |event: usize| self.trace.operation(event).access().map(|access| self.name(access));
        name(a) == name(b)
    }

    fn operation(&self, event: usize) -> Operation {
        let mut operation = self.trace.operation(event).clone();
        operation.semantics = operation.semantics.iter().map(|class| self.class(class)).collect();
        if let Some(access) = operation.access_mut() {
            let name = self.name(access);
            access.class = self.class(access.class);
            (access.reference, access.location) = (name as u32, Location::whole(self.names[name].0 as u32));
        }
        operation
    }

    fn program(&self, sources: &[Option<Source>]) -> Result<Program, Unwritable> {
        let thread = |(number, thread): (usize, &usize)| Thread {
            name: format!("T{number}"),
            agent: self.trace.agents[*thread],
            code: Vec::new(),
            registers: Vec::new(),
        };
        let own = |at: usize| {
            let (location, _) = self.names[at];
            let earlier = self.names[..at].iter().filter(|name| name.0 == location).count();
            if earlier == 0 { format!("x{location}") } else { format!("x{location}r{earlier}") }
        };
        let mut program = Program {
            name: "recorded".to_owned(),
            threads: self.threads.iter().enumerate().map(thread).collect(),
            references: (0..self.names.len()).map(own).collect(),
            locations: (0..self.locations.len()).map(|at| (format!("x{at}"), 0)).collect(),
            system: self.system()?,
            ..Program::default()
        };
        // Instances are numbered from 0; one that waits for no other event has a number of its own.
        let mut instances: Vec<Option<u32>> = Vec::new();
        for (event, &(thread, _)) in self.places.iter().enumerate() {
            let operation = self.operation(event);
            let value = operation.writes().then(|| Expression::Operand(Operand::Constant(event as i64 + 1)));
            let barrier = operation.control_barrier().then(|| {
                let instance = self.trace.events[event].instance;
                let known = instances.iter().position(|known| known.is_some() && *known == instance);
                Barrier::Dynamic(known.unwrap_or_else(|| {
                    instances.push(instance);
                    instances.len() - 1
                }) as u32)
            });
            let kind = InstructionKind::Execute { operation, destination: None, value, barrier };
            program.threads[thread].code.push(Instruction { place: Place::default(), kind });
            let source = match sources[event] {
                Some(Source::Initial) => PinnedSource::Initial,
                Some(Source::Write(write)) if self.same_name(write, event) => PinnedSource::Write(self.places[write]),
                _ => continue,
            };
            program.pins.push(Pin { read: self.places[event], source });
        }
        Ok(program)
    }

    /// System-synchronizes-with between whole threads.
    fn system(&self) -> Result<Vec<(usize, usize)>, Unwritable> {
        let mut pairs: Vec<_> = self.trace.system.iter().map(|&(a, b)| (self.places[a].0, self.places[b].0)).collect();
        pairs.sort_unstable();
        pairs.dedup();
        let of = |thread: usize| (0..self.places.len()).filter(move |&event| self.places[event].0 == thread);
        let whole =
            |&(a, b): &(usize, usize)| a != b && of(a).all(|x| of(b).all(|y| self.trace.system.contains(&(x, y))));
        if pairs.iter().all(whole) { Ok(pairs) } else { Err(Unwritable("order of single operations by the API")) }
    }
}
