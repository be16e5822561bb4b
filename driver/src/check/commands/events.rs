//! The log of dependencies: what the program says of the order of its commands, in the order in which it took effect.

use std::collections::VecDeque;
use std::ops::Range;
use std::sync::Arc;

use smallvec::{SmallVec, smallvec};

use super::scope::{Side, Stages};
use super::signalled::Signal;
use crate::exec::OwnershipTransfer;

/// A memory barrier, or an execution dependency if its accesses are empty.
#[derive(Clone, Debug)]
pub(super) struct Barrier {
    pub(super) src: Side,
    pub(super) dst: Side,
    /// The addresses whose values it makes available and visible; `None` is all memory.
    pub(super) memory: Option<Arc<[Range<u64>]>>,
    /// For reports.
    pub(super) ownership: Option<OwnershipTransfer>,
}

impl Barrier {
    /// A barrier without an ownership transfer.
    pub(super) fn new(src: Side, dst: Side, memory: Option<Arc<[Range<u64>]>>) -> Self {
        Self { src, dst, memory, ownership: None }
    }

    /// Whether it is for a byte of a range.
    pub(super) fn covers(&self, range: &Range<u64>) -> bool {
        self.memory.as_ref().is_none_or(|ranges| ranges.iter().any(|of| of.start < range.end && range.start < of.end))
    }
}

/// A dependency in the log.
#[derive(Clone, Debug)]
pub(super) enum SyncEvent {
    /// A batch is submitted: what the host did before comes before the batch. For reports, the values of the timeline
    /// semaphores that it waits for; `None` is a binary semaphore.
    Submission { waits: Box<[Option<u64>]> },
    /// `vkCmdPipelineBarrier`, in submission order of its queue.
    Barrier { queue: u32, submitted: u64, barriers: Arc<[Barrier]> },
    /// A semaphore or fence is signalled after these stages of a queue's commands so far, or by the host (`None`).
    Signal { queue: Option<u32>, submitted: u64, stages: Stages },
    /// `vkCmdSetEvent` of an object, by its address, after these stages of the queue's commands so far, or `vkSetEvent`
    /// (`None`).
    Set { queue: Option<u32>, object: usize, submitted: u64, stages: Stages },
    /// A queue's later commands, in these stages, or the host (`None`), wait for one of these signals. Values are then
    /// available and visible to all their accesses.
    Wait { queue: Option<u32>, stages: Stages, signals: SmallVec<[Signal; 2]> },
    /// `vkCmdWaitEvents`: barriers whose first scope ends at the signal.
    WaitEvents { queue: u32, signals: SmallVec<[Signal; 2]>, barriers: Arc<[Barrier]> },
}

impl SyncEvent {
    /// The queue; `None` is the host.
    pub(super) fn queue(&self) -> Option<u32> {
        match self {
            Self::Submission { .. } => None,
            Self::Barrier { queue, .. } | Self::WaitEvents { queue, .. } => Some(*queue),
            Self::Set { queue, .. } | Self::Signal { queue, .. } | Self::Wait { queue, .. } => *queue,
        }
    }
}

/// An event that a queue, or the host (`None`), set after an access or a dependency.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(super) struct SetEvent<T> {
    /// Number in the log.
    pub(super) number: u64,
    pub(super) queue: Option<u32>,
    pub(super) object: usize,
    /// How far that had come then: what comes between this and the wait does not count. Nothing for the host, which has
    /// waited for all that comes before.
    pub(super) then: T,
}

/// The dependencies, numbered. Those before the oldest access that is kept are dropped.
#[derive(Debug, Default)]
pub(super) struct SyncLog {
    /// Number of the first one that is kept.
    first: u64,
    list: VecDeque<SyncEvent>,
}

impl SyncLog {
    /// None, of which the first one gets this number.
    pub(super) fn starting_at(first: u64) -> Self {
        Self { first, list: VecDeque::new() }
    }

    /// The number of the next event.
    pub(super) fn next(&self) -> u64 {
        self.first + self.list.len() as u64
    }

    /// The number of events that are kept.
    pub(super) fn len(&self) -> usize {
        self.list.len()
    }

    /// Adds an event. Returns its number.
    pub(super) fn push(&mut self, event: SyncEvent) -> u64 {
        self.list.push_back(event);
        self.next() - 1
    }

    /// The event with a number, if it is kept.
    pub(super) fn get(&self, number: u64) -> Option<&SyncEvent> {
        self.list.get(number.checked_sub(self.first)? as usize)
    }

    /// The events from a number on, with their numbers.
    pub(super) fn from(&self, number: u64) -> impl Iterator<Item = (u64, &SyncEvent)> {
        let skip = number.saturating_sub(self.first);
        (self.first + skip..).zip(self.list.iter().skip(skip as usize))
    }

    /// Whether waits lead from what a queue, or the host (`None`), did before event `from` to what another one does
    /// now, in whatever stages.
    pub(super) fn lead(&self, from: u64, one: Option<u32>, other: Option<u32>) -> bool {
        // From which event on all that a queue or the host does comes after it.
        let mut after: SmallVec<[(Option<u32>, u64); 4]> = smallvec![(one, from)];
        for (number, event) in self.from(from) {
            let is_after = |queue, event| after.iter().any(|(of, since)| *of == queue && *since <= event);
            let is_awaited = |signals: &[Signal]| signals.iter().any(|signal| is_after(signal.queue, signal.event));
            let next = match event {
                SyncEvent::Wait { queue, signals, .. } if is_awaited(signals) => *queue,
                SyncEvent::WaitEvents { queue, signals, .. } if is_awaited(signals) => Some(*queue),
                // The host submitted it afterwards.
                SyncEvent::Signal { queue, submitted, .. } if is_after(None, *submitted) => *queue,
                _ => continue,
            };
            if !is_after(next, number) {
                after.push((next, number));
            }
        }
        after.iter().any(|(queue, _)| *queue == other)
    }

    /// Drops the events before this number.
    pub(super) fn drop_before(&mut self, number: u64) {
        let drop = number.saturating_sub(self.first).min(self.list.len() as u64);
        self.list.drain(..drop as usize);
        self.first += drop;
    }
}
