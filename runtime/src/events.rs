//! The log of what the tracker does for a context: renames, rebinds, barriers, staged copies and waits, in order.
//!
//! It is off until [`Context::record_events`](crate::Context::record_events); then tests and tools drain it. While it
//! is off, a place that would note an event costs one load.

use std::collections::{HashMap, VecDeque};
use std::ops::Range;

use crate::ids::{
    BatchId, CommandBufferId, CommandKind, ContextId, ObjectId, ResourceId, Serial, SetId, Slot, SlotKind,
};
use crate::outcome::Waits;
use crate::sync::{AtomicBool, Mutex, Ordering};

/// Events that are kept; older ones are dropped and counted.
const KEPT: usize = 1 << 16;

/// What the tracker did for a context.
///
/// ```
/// use spelter::{Bind, Event};
///
/// # fn main() -> Result<(), spelter::Error> {
/// # let context = spelter::Context::new()?;
/// let (frame, copy) = (context.buffer_from(&[1u32])?, context.buffer_zeroed(4)?);
/// context.bind((0, 0), Bind::storage(&frame))?;
/// context.copy(&frame, 0, &copy, 0, 4)?; // recorded: the buffer is in use
/// context.record_events(true);
/// context.invalidate(&frame)?;
/// let events = context.events();
/// assert!(matches!(events[0], Event::Replaced { resource, .. } if resource == frame.id()));
/// assert!(matches!(events[1], Event::Rebound { slot, .. } if slot == (0, 0).into()));
/// assert_eq!(events.len(), 2);
/// # Ok(())
/// # }
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Event {
    /// Earlier events were dropped, since they were not drained.
    Lost {
        /// Their number.
        events: u64,
    },
    /// A resource got another object: it was in use, or was respecified with another size.
    Replaced {
        /// The resource.
        resource: ResourceId,
        /// The object that it had before.
        old: ObjectId,
        /// The object that it has now.
        new: ObjectId,
    },
    /// Contents were forgotten and the object stays.
    Forgotten {
        /// The resource.
        resource: ResourceId,
        /// Whether the object is in use: then later writes come after its users.
        in_order: bool,
    },
    /// A slot of this context names another object than before.
    Rebound {
        /// The slot.
        slot: Slot,
        /// Its kind.
        kind: SlotKind,
        /// The resource in it.
        resource: ResourceId,
        /// The object that it names now; none if the resource is destroyed, or too small for what is bound.
        object: Option<ObjectId>,
    },
    /// Cached descriptor sets were dropped, since they name an object that its resource lost.
    SetsDropped {
        /// The lost object.
        object: ObjectId,
        /// The number of sets.
        sets: u64,
    },
    /// A descriptor of a set names another object than when this context last used the set. Noted by the command that
    /// finds it, like the events of slots that another context's rename changes.
    SetRebound {
        /// The set.
        set: SetId,
        /// The binding.
        binding: u32,
        /// The element of an array of descriptors; else 0.
        element: u32,
        /// The kind of descriptor.
        kind: SlotKind,
        /// The resource that it names.
        resource: ResourceId,
        /// The object that it names now; none if the resource is destroyed, or too small for what is named.
        object: Option<ObjectId>,
    },
    /// The driver's set of a descriptor set was not current any more, and a command needed it.
    SetWritten {
        /// The set.
        set: SetId,
        /// Whether no batch used it, so that it was written again. Else it was dropped, and another one written.
        in_place: bool,
    },
    /// A barrier was recorded before a command of a batch, since the command and one before it access the same bytes
    /// and one of them writes.
    Barrier {
        /// The batch that holds it.
        batch: BatchId,
        /// The command.
        command: CommandKind,
        /// The resource of the first access that needs the barrier; none for a staging buffer.
        resource: Option<ResourceId>,
        /// What the command accesses: bytes of a buffer, or numbers of an image's subresources, ordered by layer, then
        /// by level.
        range: Range<u64>,
    },
    /// A barrier was recorded before a command of a command buffer; each submission runs it.
    BarrierRecorded {
        /// The command buffer.
        commands: CommandBufferId,
        /// The number of the command, counted from 0 on.
        number: usize,
        /// The command.
        command: CommandKind,
        /// The resource of the first access that needs the barrier.
        resource: ResourceId,
        /// What the command accesses, as in [`Event::Barrier`]. An end of `u64::MAX` is the end of the buffer, whatever
        /// its size.
        range: Range<u64>,
    },
    /// A submission recorded commands of a command buffer again, since a resource has another object than they name.
    Rerecorded {
        /// The command buffer.
        commands: CommandBufferId,
        /// The resource.
        resource: ResourceId,
        /// The object that they name now.
        object: ObjectId,
        /// The number of commands: those that name the resource, and some near them.
        count: usize,
    },
    /// A submission recorded all commands of a command buffer again, since a descriptor set that dispatches of it use
    /// was written.
    RecordedForSets {
        /// The command buffer.
        commands: CommandBufferId,
        /// The number of commands.
        count: usize,
    },
    /// A command buffer was submitted; a nested one has its own event, before that of the one that executes it.
    CommandsSubmitted {
        /// The command buffer.
        commands: CommandBufferId,
        /// The batch that runs it.
        batch: BatchId,
        /// The number of its commands that this submission recorded again.
        rerecorded: u64,
    },
    /// Bytes of a host write were put into staging buffers.
    Staged {
        /// The resource that they are copied to.
        resource: ResourceId,
        /// Their number.
        bytes: u64,
    },
    /// The host begins to wait; [`Event::Waited`] follows.
    WaitBegan {
        /// The reason.
        why: Waits,
        /// The resource whose use it waits for, if it waits for one.
        resource: Option<ResourceId>,
        /// The batches that it waits for, as far as they are known.
        batches: Vec<BatchId>,
    },
    /// The host has waited.
    Waited {
        /// The reason.
        why: Waits,
        /// The resource, as in [`Event::WaitBegan`].
        resource: Option<ResourceId>,
    },
    /// A batch was submitted.
    Submitted {
        /// The batch.
        batch: BatchId,
    },
}

/// The events of a context.
#[derive(Debug)]
pub(crate) struct EventLog {
    context: ContextId,
    on: AtomicBool,
    /// A leaf lock.
    events: Mutex<LoggedEvents>,
}

#[derive(Debug, Default)]
struct LoggedEvents {
    list: VecDeque<Event>,
    lost: u64,
    sets: SeenSets,
}

/// Up to which events of the journal the rebinding of sets was noted: all, when the log was switched on, and each set
/// since.
#[derive(Debug, Default)]
struct SeenSets {
    all: u64,
    each: HashMap<SetId, u64>,
}

impl EventLog {
    pub(crate) fn new(context: ContextId) -> Self {
        Self { context, on: AtomicBool::new(false), events: Mutex::new(LoggedEvents::default()) }
    }

    /// The context's batch with that serial.
    pub(crate) fn batch(&self, serial: Serial) -> BatchId {
        BatchId { context: self.context, serial }
    }

    /// Switches the log on or off, after the first `journal` events of the journal.
    pub(crate) fn record(&self, on: bool, journal: u64) {
        if !self.is_on() || !on {
            self.events.lock().sets = SeenSets { all: journal, each: HashMap::new() };
        }
        // Relaxed: the list has its lock; a thread that sees an old value notes, or leaves out, a concurrent event.
        self.on.store(on, Ordering::Relaxed);
    }

    pub(crate) fn is_on(&self) -> bool {
        // Relaxed: as in `record`.
        self.on.load(Ordering::Relaxed)
    }

    /// The journal's event up to which the rebinding of a set was noted; from now on that is `until`. `None` if there
    /// is nothing to note.
    pub(crate) fn seen_of_set(&self, set: SetId, until: u64) -> Option<u64> {
        if !self.is_on() {
            return None;
        }
        let sets = &mut self.events.lock().sets;
        let seen = sets.each.insert(set, until).unwrap_or(sets.all);
        (seen < until).then_some(seen)
    }

    /// Adds an event, if the log is on.
    #[inline]
    pub(crate) fn note(&self, event: impl FnOnce() -> Event) {
        if self.is_on() {
            self.add(event());
        }
    }

    #[cold]
    fn add(&self, event: Event) {
        let mut events = self.events.lock();
        if events.list.len() == KEPT {
            events.list.pop_front();
            events.lost += 1;
        }
        events.list.push_back(event);
    }

    /// Removes and returns the events so far.
    pub(crate) fn drain(&self) -> Vec<Event> {
        let (list, lost) = {
            let mut events = self.events.lock();
            (std::mem::take(&mut events.list), std::mem::take(&mut events.lost))
        };
        let lost = (lost > 0).then_some(Event::Lost { events: lost });
        lost.into_iter().chain(list).collect()
    }
}

#[cfg(all(test, not(loom)))]
mod tests {
    use super::*;

    fn staged(bytes: u64) -> Event {
        Event::Staged { resource: ResourceId(1), bytes }
    }

    #[test]
    fn a_log_that_is_off_makes_no_event() {
        let log = EventLog::new(ContextId(1));
        log.note(|| panic!("it is off"));
        assert!(log.drain().is_empty());
    }

    #[test]
    fn the_rebinding_of_a_set_is_noted_once() {
        let (log, set) = (EventLog::new(ContextId(1)), SetId(1));
        assert_eq!(log.seen_of_set(set, 9), None, "it is off");
        log.record(true, 5);
        assert_eq!([5, 7, 7, 8].map(|until| log.seen_of_set(set, until)), [None, Some(5), None, Some(7)]);
        log.record(true, 9); // it is on already
        assert_eq!(log.seen_of_set(SetId(2), 6), Some(5));
    }

    #[test]
    fn the_oldest_events_are_dropped_and_counted() {
        let log = EventLog::new(ContextId(1));
        log.record(true, 0);
        (0..KEPT as u64 + 3).for_each(|bytes| log.note(|| staged(bytes)));
        let events = log.drain();
        assert_eq!((events.len(), &events[..2]), (KEPT + 1, &[Event::Lost { events: 3 }, staged(3)][..]));
        assert!(log.drain().is_empty());
    }
}
