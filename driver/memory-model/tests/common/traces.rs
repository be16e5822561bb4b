//! Traces as a race detector records them, of any number of events; with the reads-from that it saw.

use spelter_memory_model::event::{
    Access, Action, Agent, Class, Classes, Event, Location, Operation, Scope, Site, Trace,
};
use spelter_memory_model::relations::Source;

/// A trace, the source of each read, and a pair of accesses that conflict.
pub(crate) struct Recorded {
    pub(crate) trace: Trace,
    pub(crate) sources: Vec<Option<Source>>,
    pub(crate) pair: (usize, usize),
}

pub(crate) fn access(writes: bool, object: u32, bytes: std::ops::Range<u64>) -> Operation {
    let mut operation = Operation::new(Action::Access(Access {
        reads: !writes,
        writes,
        atomic: false,
        non_private: true,
        available: false,
        visible: false,
        class: Class::Uniform,
        reference: object,
        location: Location { object, bytes },
    }));
    operation.complete();
    operation
}

/// A control barrier of a workgroup with all semantics for `class`.
pub(crate) fn barrier(class: Class) -> Operation {
    let mut operation = Operation::new(Action::ControlBarrier { execution: Scope::Workgroup });
    operation.acquire = true;
    operation.release = true;
    operation.semantics = Classes::NONE.with(class);
    operation.make_available = true;
    operation.make_visible = true;
    operation.scope = Some(Scope::Workgroup);
    operation
}

/// An atomic access of a flag that releases or acquires, with all semantics, for its device.
pub(crate) fn flag(writes: bool, number: u64) -> Operation {
    let mut operation = access(writes, 1, 4 * number..4 * number + 4);
    operation.access_mut().into_iter().for_each(|access| access.atomic = true);
    (operation.release, operation.acquire) = (writes, !writes);
    operation.semantics = Classes::NONE.with(Class::Uniform);
    (operation.make_available, operation.make_visible) = (writes, !writes);
    operation.scope = Some(Scope::Device);
    operation.complete();
    operation
}

pub(crate) fn word(at: usize) -> std::ops::Range<u64> {
    4 * at as u64..4 * at as u64 + 4
}

/// An invocation of a subgroup of 16 and a workgroup of `workgroup`.
pub(crate) fn invocation(thread: usize, workgroup: usize) -> Agent {
    let (subgroup, group) = ((thread / workgroup.min(16)) as u32, (thread / workgroup) as u32);
    Agent::Device { subgroup, workgroup: group, queue_family: 0, device: 0 }
}

/// Each invocation writes its word, executes the barrier, and reads the word of its neighbour in the same workgroup.
pub(crate) fn neighbours(invocations: usize, workgroup: usize, class: Class) -> Recorded {
    let mut trace = Trace::default();
    let mut sources = Vec::new();
    for thread in 0..invocations {
        trace.agents.push(invocation(thread, workgroup));
        let first = thread / workgroup * workgroup;
        let neighbour = first + (thread + 1 - first) % workgroup.min(invocations - first);
        let group = (thread / workgroup) as u32;
        for (site, operation, instance) in [
            (0, access(true, 0, word(thread)), None),
            (1, barrier(class), Some(group)),
            (2, access(false, 0, word(neighbour)), None),
        ] {
            let site = Some(Site(site));
            trace.events.push(Event { instance, site, ..Event::new(thread, operation) });
        }
        sources.extend([None, None, Some(Source::Write(neighbour * 3))]);
    }
    Recorded { trace, sources, pair: (3 % (3 * invocations), 2) }
}

/// `rounds` of neighbours in one workgroup of 8, with a barrier before and after each reading: most pairs are ordered.
pub(crate) fn rounds(events: usize) -> Recorded {
    const THREADS: usize = 8;
    let mut trace = Trace { agents: (0..THREADS).map(|at| invocation(at, THREADS)).collect(), ..Trace::default() };
    let mut sources = Vec::new();
    let each = events / THREADS;
    for thread in 0..THREADS {
        for at in 0..each {
            let neighbour = (thread + 1) % THREADS;
            let (operation, source) = match at % 4 {
                0 => (access(true, 0, word(thread)), None),
                2 => (access(false, 0, word(neighbour)), Some(Source::Write(neighbour * each + at - 2))),
                _ => (barrier(Class::Uniform), None),
            };
            let instance = operation.control_barrier().then_some(at as u32);
            trace.events.push(Event { instance, site: Some(Site(at as u32 % 4)), ..Event::new(thread, operation) });
            sources.push(source);
        }
    }
    Recorded { trace, sources, pair: (each, 2) }
}

/// A value that goes from workgroup to workgroup, by a flag for each: every event is ordered after all before it.
pub(crate) fn relay(events: usize) -> Recorded {
    let mut trace = Trace::default();
    let mut sources = Vec::new();
    for thread in 0..events / 4 {
        trace.agents.push(invocation(thread, 1));
        let before = thread.wrapping_sub(1);
        let from = |at: usize| Some(if thread == 0 { Source::Initial } else { Source::Write(4 * before + at) });
        for (site, operation, source) in [
            (0, flag(false, thread as u64), from(3)),
            (1, access(false, 0, word(0)), from(2)),
            (2, access(true, 0, word(0)), None),
            (3, flag(true, thread as u64 + 1), None),
        ] {
            trace.events.push(Event { site: Some(Site(site)), ..Event::new(thread, operation) });
            sources.push(source);
        }
    }
    Recorded { trace, sources, pair: (2, 5) }
}
