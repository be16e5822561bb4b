//! Visibility to the host: the writes that barriers make visible to it, and the wait after which it may read them.
//!
//! A barrier whose second scope has accesses of the host makes values visible to the host (Vulkan, "Availability,
//! Visibility, and Domain Operations"). It is an operation of a queue: the host may read when it has waited for a
//! signal that comes after the barrier, by submission order or by a chain of dependencies. What another queue signals
//! meanwhile says nothing of it.

use super::chain::{QueueStages, add_stages, stages};
use super::events::SetEvent;
use super::scope::{Side, Stages};
use super::signalled::{Signal, SignalSet, SignalUnion};

/// A dependency to the host.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
struct HostDependency {
    /// Its event in the log.
    event: u64,
    queue: u32,
    /// Stages of queues that come after it.
    after: QueueStages,
    /// The signals whose first scope has it.
    signals: SignalSet,
    /// The same for events that are set, with the stages that came after it then.
    set: Vec<SetEvent<QueueStages>>,
    /// Whether the host has waited for one of the signals.
    is_known: bool,
}

/// The dependencies of an access to the host.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub(super) struct HostDependencies(Vec<HostDependency>);

impl HostDependency {
    /// Whether it is in the first scope of a signal. A barrier has no stage of its own, so that only signals after all
    /// commands have it directly.
    fn is_in(&self, queue: u32, scope: Stages) -> bool {
        let direct = self.queue == queue && scope == Stages::COMMANDS;
        direct || chains(&self.after, queue, scope)
    }
}

/// Whether a dependency chain leads from stages that come after something to a first scope.
fn chains(after: &QueueStages, queue: u32, scope: Stages) -> bool {
    !stages(after, queue).and(scope).is_empty()
}

impl HostDependencies {
    /// A barrier of a queue makes values visible to the host.
    pub(super) fn add(&mut self, event: u64, queue: u32, dst: &Side) {
        let place = self.0.iter().position(|known| known.event == event).unwrap_or_else(|| {
            let (after, signals, set) = (QueueStages::new(), SignalSet::default(), Vec::new());
            self.0.push(HostDependency { event, queue, after, signals, set, is_known: false });
            self.0.len() - 1
        });
        add_stages(&mut self.0[place].after, queue, dst.stages);
    }

    /// The same, unless what follows it follows an earlier one of the queue, too.
    pub(super) fn add_new(&mut self, event: u64, queue: u32, dst: &Side) {
        let has =
            |known: &HostDependency| known.queue == queue && stages(&known.after, queue).and(dst.stages) == dst.stages;
        if !self.0.iter().any(has) {
            self.add(event, queue, dst);
        }
    }

    /// Another barrier: its second scope comes after what its first scope has.
    pub(super) fn pass(&mut self, queue: u32, src: &Side, dst: &Side) {
        for known in self.0.iter_mut().filter(|known| !known.is_known) {
            if chains(&known.after, queue, src.stages) {
                add_stages(&mut known.after, queue, dst.stages);
            }
        }
    }

    /// A queue signals a semaphore or a fence after these stages.
    pub(super) fn signal(&mut self, event: u64, queue: u32, scope: Stages) {
        for known in self.0.iter_mut().filter(|known| !known.is_known) {
            if known.is_in(queue, scope) {
                known.signals.add(Signal::new(event, Some(queue), scope), false);
            }
        }
    }

    /// A queue sets an event, by its number in the log and its object, after these stages.
    pub(super) fn set(&mut self, (number, object): (u64, usize), queue: u32, scope: Stages) {
        for known in self.0.iter_mut().filter(|known| !known.is_known) {
            // Waits are for the last time that their queue set the object.
            known.set.retain(|set| (set.queue, set.object) != (Some(queue), object));
            if chains(&known.after, queue, scope) {
                known.set.push(SetEvent { number, queue: Some(queue), object, then: known.after.clone() });
            }
        }
    }

    /// A queue waits for events that were set: a barrier whose first scope ends there.
    pub(super) fn pass_from(&mut self, signals: &[Signal], queue: u32, src: &Side, dst: &Side) {
        for known in &mut self.0 {
            let is_awaited = |set: &&SetEvent<_>| signals.iter().any(|signal| signal.event == set.number);
            let then = known.set.iter().rev().find(is_awaited);
            if then.is_some_and(|set| chains(&set.then, queue, src.stages)) {
                add_stages(&mut known.after, queue, dst.stages);
            }
        }
    }

    /// A queue's later commands in these stages, or the host (`None`), wait for one of these signals. Returns whether
    /// the host knows of a dependency by it.
    pub(super) fn wait(&mut self, queue: Option<u32>, scope: Stages, signals: &[Signal]) -> bool {
        let mut is_known = false;
        for known in self.0.iter_mut().filter(|known| known.signals.has_any(signals)) {
            match queue {
                Some(queue) => add_stages(&mut known.after, queue, scope),
                None => (known.is_known, is_known) = (true, true),
            }
        }
        is_known
    }

    /// Bytes of host memory that they occupy, about.
    pub(super) fn bytes(&self) -> u64 {
        let of = |known: &HostDependency| size_of::<HostDependency>() + size_of_val(&*known.set);
        self.0.iter().map(|known| of(known) as u64).sum()
    }

    /// Whether the host may read what the barrier of this event made visible.
    pub(super) fn is_known(&self, event: u64) -> bool {
        self.0.iter().any(|known| known.event == event && known.is_known)
    }

    /// Adds the signals that the host may still wait for, and those that lead to them.
    pub(super) fn add_signals(&self, to: &mut SignalUnion) {
        for known in self.0.iter().filter(|known| !known.is_known) {
            to.add(&known.signals);
            known.set.iter().for_each(|set| to.add_event(set.number));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::check::commands::scope::{Accesses, Stage};

    fn side(stage: Stage) -> Side {
        Side::of(stage, Accesses::NONE)
    }

    /// A barrier of queue 0 to the host, as event 1.
    fn visible() -> HostDependencies {
        let mut host = HostDependencies::default();
        host.add(1, 0, &Side::of(Stage::Host, Accesses::HOST_READ));
        host
    }

    #[test]
    fn signals_of_its_own_queue_tell_the_host() {
        for (queue, scope, is_known) in [
            (0, Stages::COMMANDS, true),
            (1, Stages::COMMANDS, false),
            // A barrier is no command of that stage.
            (0, Stages::of(Stage::ComputeShader), false),
        ] {
            let mut host = visible();
            host.signal(2, queue, scope);
            host.wait(None, Stages::NONE, &[Signal::new(2, Some(queue), scope)]);
            assert_eq!(host.is_known(1), is_known, "{queue} {scope:?}");
        }
    }

    #[test]
    fn another_queue_tells_the_host_if_it_waited() {
        let run = |stages, last| {
            let mut host = visible();
            host.signal(2, 0, Stages::COMMANDS);
            host.wait(Some(1), stages, &[Signal::new(2, Some(0), Stages::COMMANDS)]);
            host.signal(3, 1, last);
            host.wait(None, Stages::NONE, &[Signal::new(3, Some(1), last)]);
            host.is_known(1)
        };
        let (copy, compute) = (Stages::of(Stage::Copy), Stages::of(Stage::ComputeShader));
        assert!(run(copy, copy) && run(copy, Stages::COMMANDS));
        assert!(!run(copy, compute));
    }

    #[test]
    fn chains_lead_through_barriers_and_events() {
        let all = Side { stages: Stages::COMMANDS, named: Stages::COMMANDS, accesses: Accesses::NONE };
        let (copy, clear) = (Stages::of(Stage::Copy), Stages::of(Stage::Clear));
        let mut host = visible();
        host.set((2, 0), 0, Stages::COMMANDS);
        host.pass(0, &all, &side(Stage::Copy));
        host.signal(3, 0, copy);
        assert!(
            !host.0[0].signals.has(&Signal::new(3, Some(0), copy)),
            "a barrier is in no first scope of another one"
        );
        // The barrier has another scope, and a chain leads from there to the copy.
        host.add(1, 0, &side(Stage::ComputeShader));
        host.set((2, 0), 0, Stages::COMMANDS);
        host.pass(0, &side(Stage::ComputeShader), &side(Stage::Copy));
        host.signal(3, 0, copy);
        host.pass_from(&[Signal::new(2, Some(0), Stages::COMMANDS)], 0, &all, &side(Stage::Clear));
        host.signal(4, 0, clear);
        host.pass(0, &all, &side(Stage::Copy));
        host.signal(5, 0, copy);
        let mut union = SignalUnion::default();
        host.add_signals(&mut union);
        let has = [(2, Stages::COMMANDS), (3, copy), (4, clear), (5, copy)];
        let has = has.map(|(event, stages)| union.has(&Signal::new(event, Some(0), stages)));
        assert_eq!(has, [true; 4]);
    }
}
