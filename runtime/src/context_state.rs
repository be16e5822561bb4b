//! The mutable state of a context: its slots, caches and batches. The context's lock protects all of it.

use std::sync::Arc;

use spelter_driver::{CommandBuffer, Queue};

use crate::barrier::Use;
use crate::batch::{Refusal, Timeline};
use crate::bindings::Bindings;
use crate::descriptors::{ProgramStates, SetCache};
use crate::events::EventLog;
use crate::ids::CommandKind;
use crate::set::{GroupSets, SetStates};
use crate::share::Share;
use crate::submission::Clock;

/// The mutable part of a context.
pub(crate) struct ContextState {
    pub(crate) share: Arc<Share>,
    pub(crate) clock: Arc<Clock>,
    pub(crate) timeline: Timeline,
    pub(crate) bindings: Bindings,
    pub(crate) sets: SetCache,
    pub(crate) programs: ProgramStates,
    /// The sets that groups take their descriptors from, in place of slots.
    pub(crate) group_sets: GroupSets,
    pub(crate) set_states: SetStates,
    /// The number of the last event of the journal that was handled.
    pub(crate) journal_seen: u64,
    pub(crate) log: Arc<EventLog>,
}

impl ContextState {
    pub(crate) fn new(share: &Arc<Share>, queue: Queue, clock: &Arc<Clock>, log: &Arc<EventLog>) -> Self {
        Self {
            share: Arc::clone(share),
            clock: Arc::clone(clock),
            timeline: Timeline::new(share, queue, clock, log),
            bindings: Bindings::default(),
            sets: SetCache::default(),
            programs: ProgramStates::default(),
            group_sets: GroupSets::default(),
            set_states: SetStates::default(),
            journal_seen: share.journal().count(),
            log: Arc::clone(log),
        }
    }

    /// Adds an instant to the context's track of the timeline.
    pub(crate) fn trace_instant(&self, name: impl FnOnce() -> String) {
        if let Some(trace) = self.share.trace() {
            trace.instant(self.clock.id(), &name());
        }
    }

    /// Records a transfer: notes its uses, adds a barrier if one is needed, then calls `command`.
    pub(crate) fn transfer(
        &mut self,
        what: CommandKind,
        uses: &[Use<'_>],
        command: impl FnOnce(&CommandBuffer) -> Result<(), spelter_driver::Error>,
    ) -> Result<(), Refusal> {
        let batch = self.timeline.batch()?;
        let entries = batch.enter(&self.clock, uses.iter().cloned())?;
        let ordered = batch.order(what, uses.iter().cloned().map(Use::touch), entries.fresh);
        let recorded = ordered.and_then(|_| batch.transfer(command));
        Ok(recorded.inspect_err(|_| entries.take_back())?)
    }
}
