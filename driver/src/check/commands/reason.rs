//! Why two accesses are not ordered: the first condition that fails, and what the program has in its place.

use std::collections::HashSet;

use foldhash::fast::FixedState;
use smallvec::SmallVec;

use super::events::{Barrier, SyncEvent};
use super::order::{Lack, Point};
use super::report::{CommandRace, stages};
use super::scope::{Accesses, Side, Stage, Stages};
use super::signalled::Signal;

/// A barrier between the two accesses.
#[derive(Clone, Copy)]
pub(super) struct BarrierBetween<'a> {
    barrier: &'a Barrier,
    pub(super) call: BarrierCall,
    /// Its event in the log.
    event: u64,
}

/// The command that a barrier belongs to.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum BarrierCall {
    /// `vkCmdPipelineBarrier`.
    Pipeline,
    /// `vkCmdWaitEvents` for no event that its queue has set.
    NotSet,
    /// `vkCmdWaitEvents` for an event that was set before the first access.
    SetBefore,
    /// `vkCmdWaitEvents` for an event that was set after the first access, after these stages.
    Set(Stages),
}

impl BarrierBetween<'_> {
    /// Whether its scopes have both accesses.
    fn orders(&self, first: &Point, second: &Point) -> bool {
        let is_in_scope = match self.call {
            BarrierCall::Pipeline => true,
            BarrierCall::NotSet | BarrierCall::SetBefore => false,
            BarrierCall::Set(scope) => scope.has(first.stage),
        };
        let Barrier { src, dst, .. } = self.barrier;
        is_in_scope && src.stages.has(first.stage) && dst.stages.has(second.stage)
    }

    fn name(&self) -> &'static str {
        if self.call == BarrierCall::Pipeline { "the barrier" } else { "vkCmdWaitEvents" }
    }
}

impl CommandRace<'_> {
    /// The barriers of a queue between the two accesses, the last one first.
    pub(super) fn barriers(&self, of: Option<u32>) -> Vec<BarrierBetween<'_>> {
        let mut list = Vec::new();
        for (number, event) in self.events_between().filter(|(_, event)| event.queue() == of) {
            let (barriers, call) = match event {
                SyncEvent::Barrier { barriers, .. } => (barriers, BarrierCall::Pipeline),
                SyncEvent::WaitEvents { barriers, signals, .. } => (barriers, self.call_of_wait(signals)),
                _ => continue,
            };
            list.extend(barriers.iter().map(|barrier| BarrierBetween { barrier, call, event: number }));
        }
        list.reverse();
        list
    }

    /// What a wait for events that were set is to the first access.
    fn call_of_wait(&self, signals: &[Signal]) -> BarrierCall {
        let last = signals.iter().map(|signal| signal.event).max();
        let Some(last) = last else { return BarrierCall::NotSet };
        let of_last = self.events_between().find_map(|(number, event)| match event {
            SyncEvent::Set { stages, .. } if number == last => Some(*stages),
            _ => None,
        });
        of_last.map_or(BarrierCall::SetBefore, BarrierCall::Set)
    }

    /// The signals of the last wait of the second access's queue for an event that the host set between the two.
    pub(super) fn events_of_host(&self) -> Option<&SmallVec<[Signal; 2]>> {
        let by_host = |signal: &Signal| signal.queue.is_none() && signal.event >= self.between.start;
        let waits = self.events_between().filter_map(|(_, event)| match event {
            SyncEvent::WaitEvents { queue, signals, .. } if Some(*queue) == self.points.1.queue => Some(signals),
            _ => None,
        });
        waits.filter(|signals| signals.iter().any(by_host)).last()
    }

    /// Whether the queue of the second access sets an event between the two.
    fn sets_event(&self) -> bool {
        let queue = self.points.1.queue;
        self.events_between().any(|(_, event)| matches!(event, SyncEvent::Set { .. }) && event.queue() == queue)
    }

    /// What is missing. Ownership transfers between them are named, since they do not replace a dependency.
    pub(super) fn reason(&self) -> String {
        let lack = self.what_lacks();
        let barriers = self.barriers(self.points.1.queue);
        let mut covering = barriers.iter().map(|of| of.barrier).filter(|barrier| barrier.covers(&self.bytes));
        match covering.find_map(|barrier| barrier.ownership) {
            Some(of) => format!("{lack}; a barrier between them transfers ownership from {of}"),
            None => lack,
        }
    }

    fn what_lacks(&self) -> String {
        let (first, second) = self.points;
        let (was, is) = (first.access.name(), second.access.name());
        // The last barrier is the one that a program meant for the second access, so its fault is the cause.
        let last = || self.barriers(second.queue).into_iter().find(|barrier| barrier.orders(&first, &second));
        match self.lack {
            Lack::Order if second.queue.is_none() => match self.scope_of_signal() {
                Some(scope) => format!(
                    "the host waited for a semaphore that is signalled after {}, not after {}",
                    stages(scope),
                    first.stage.name()
                ),
                None => "the host has not waited for the command".to_owned(),
            },
            Lack::Order if first.queue.is_none() && self.events_of_host().is_some() => self.what_lacks_in_queue(),
            Lack::Order if first.queue.is_none() => {
                "the command was submitted before the host accessed the memory, and nothing orders them".to_owned()
            }
            Lack::Order if first.queue != second.queue => self.what_lacks_between_queues(),
            Lack::Order => self.what_lacks_in_queue(),
            Lack::Availability => match last() {
                Some(of) if !of.barrier.src.accesses.has(first.access) => format!(
                    "{} between them does not make the write available: srcAccessMask lacks {was} (it has {})",
                    of.name(),
                    of.barrier.src.accesses.name()
                ),
                Some(of) if !of.barrier.covers(&self.bytes) => {
                    format!("{} between them is for other memory", of.name())
                }
                _ => "they are ordered, but no dependency makes the write available".to_owned(),
            },
            Lack::Visibility => match last() {
                Some(of) if !of.barrier.dst.accesses.has(second.access) => format!(
                    "{} between them does not make the write visible: dstAccessMask lacks {is} (it has {})",
                    of.name(),
                    of.barrier.dst.accesses.name()
                ),
                _ => "the write is available, but no dependency makes it visible to the later access".to_owned(),
            },
            Lack::HostDomain => match self.queue_of_host_barrier() {
                Some(queue) => format!(
                    "a barrier of queue {queue} makes the write visible to the host, which has not waited for that \
                     queue since"
                ),
                None => format!("the host waited for the command, but {}", self.what_lacks_to_host()),
            },
        }
    }

    /// Why nothing orders two accesses of one queue.
    fn what_lacks_in_queue(&self) -> String {
        let (first, second) = self.points;
        if self.is_of_one_call() {
            return "both are regions of one call, which nothing orders".to_owned();
        }
        let barriers = self.barriers(second.queue);
        let Some(last) = barriers.first().copied() else {
            let event = if self.sets_event() { ", and nothing waits for the event that is set there" } else { "" };
            return format!("no barrier is between them{event}");
        };
        let name = match last.call {
            BarrierCall::NotSet => {
                return "vkCmdWaitEvents between them waits for an event that this queue has not set".to_owned();
            }
            BarrierCall::SetBefore => {
                return "vkCmdWaitEvents between them waits for an event that was set before the first".to_owned();
            }
            BarrierCall::Set(scope) if !scope.has(first.stage) => {
                let stage = first.stage.name();
                return format!("vkCmdSetEvent between them has only {} before it, not {stage}", stages(scope));
            }
            BarrierCall::Set(_) => "vkCmdWaitEvents",
            BarrierCall::Pipeline => "the last barrier",
        };
        // A layout transition is between the scopes of its own barrier.
        let transition = Stages::of(Stage::LayoutTransition);
        let Side { named, .. } = last.barrier.dst;
        if second.stage == Stage::LayoutTransition && named == transition {
            let (has, lacks) = (stages(last.barrier.src.mask()), first.stage.name());
            return format!("the barrier of the layout transition has {has} before it, not {lacks}");
        }
        let mut own = barriers.iter().filter(|of| of.event == last.event && of.barrier.memory.is_some());
        let is_only = barriers.iter().all(|of| of.event == last.event || of.barrier.dst.named == transition);
        if first.stage == Stage::LayoutTransition
            && is_only
            && let Some(own) = own.find(|of| of.barrier.covers(&self.bytes))
        {
            let (has, lacks) = (stages(own.barrier.dst.mask()), second.stage.name());
            return format!("the barrier of the layout transition has {has} after it, not {lacks}");
        }
        format!(
            "{name} between them orders {} before {}, not {} before {}",
            stages(last.barrier.src.mask()),
            stages(last.barrier.dst.mask()),
            first.stage.name(),
            second.stage.name()
        )
    }

    /// The first scope of a signal of the first access's queue for which the queue of the second one waits, or the
    /// host, between the two: it lacks the first access, if that is not ordered.
    fn scope_of_signal(&self) -> Option<Stages> {
        let (first, second) = self.points;
        let waits = self.events_between().filter_map(|(_, event)| match event {
            SyncEvent::Wait { queue, signals, .. } if *queue == second.queue => Some(signals),
            _ => None,
        });
        let awaited: HashSet<u64, FixedState> = waits.flatten().map(|signal| signal.event).collect();
        self.events_between().find_map(|(number, event)| match event {
            SyncEvent::Signal { queue, stages, .. } if *queue == first.queue && awaited.contains(&number) => {
                Some(*stages)
            }
            _ => None,
        })
    }

    /// Why nothing orders two accesses of different queues.
    fn what_lacks_between_queues(&self) -> String {
        let (first, second) = self.points;
        let waits = self.events_between().filter_map(|(_, event)| match event {
            SyncEvent::Wait { queue, stages, signals } if *queue == second.queue => Some((*stages, signals)),
            _ => None,
        });
        let waits: Vec<_> = waits.collect();
        let is_after = |signals: &[Signal]| signals.iter().any(|signal| self.order.has_signal(signal));
        let after = "the second waits for a semaphore that is signalled after the first, but only";
        if let Some((scope, _)) = waits.iter().rfind(|(_, signals)| is_after(signals)) {
            return format!("{after} in {}, not in {}", stages(*scope), second.stage.name());
        }
        if let Some(scope) = self.scope_of_signal() {
            return format!("{after} after {}, not after {}", stages(scope), first.stage.name());
        }
        let awaited = self.events.from(second.submitted).next().and_then(|(number, event)| match event {
            SyncEvent::Submission { waits } if number == second.submitted => Some(&**waits),
            _ => None,
        });
        let why = match awaited.unwrap_or_default() {
            [] => String::new(),
            [Some(value)] => {
                format!("; the timeline semaphore that the second waits for had value {value} without the first")
            }
            [None] => "; the semaphore that the second waits for is signalled without the first".to_owned(),
            _ => "; the semaphores that the second waits for are signalled without the first".to_owned(),
        };
        format!("they are on different queues, and no semaphore or fence orders them{why}")
    }

    /// Why a write is not visible to the host.
    fn what_lacks_to_host(&self) -> String {
        let first = self.points.0;
        let barriers = self.barriers(first.queue);
        let to_host = || barriers.iter().filter(|of| of.barrier.dst.named.has(Stage::Host));
        let reads = to_host().find(|of| of.barrier.dst.accesses.has(Accesses::HOST_READ));
        let Some(of) = reads.or_else(|| to_host().next()) else {
            return "no dependency makes the write visible to the host".to_owned();
        };
        let (Barrier { src, dst, .. }, name) = (of.barrier, of.name());
        match () {
            () if !dst.accesses.has(Accesses::HOST_READ) => {
                let has = dst.accesses.name();
                format!("{name} to HOST does not make the write visible: dstAccessMask lacks HOST_READ (it has {has})")
            }
            () if !of.orders(&first, &Point { stage: Stage::Host, ..first }) => {
                format!("{name} to HOST has {} before it, not {}", stages(src.mask()), first.stage.name())
            }
            () if !src.accesses.has(first.access) => format!(
                "{name} to HOST does not make the write available: srcAccessMask lacks {} (it has {})",
                first.access.name(),
                src.accesses.name()
            ),
            () if !of.barrier.covers(&self.bytes) => format!("{name} to HOST is for other memory"),
            () => "no dependency makes the write visible to the host".to_owned(),
        }
    }
}
