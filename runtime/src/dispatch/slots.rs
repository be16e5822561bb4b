//! Dispatches that bind nothing themselves: their bindings are in the slots of the context, whose state per program is
//! known from earlier dispatches, or in the sets of the groups.

use crate::barrier::Fresh;
use crate::batch::Refusal;
use crate::context_state::ContextState;
use crate::ids::CommandKind;
use crate::program::Program;
use crate::set::{GroupSets, Looked};

impl ContextState {
    /// Records a dispatch with the resources in the slots, and in the sets of the groups that have one: `own`, or the
    /// context's. It may be called again for the same command: sets and slots are looked at each time.
    pub(crate) fn dispatch(
        &mut self,
        program: &Program,
        push: &[u8],
        groups: [u32; 3],
        own: &GroupSets,
        looked: &mut Option<Looked>,
    ) -> Result<(), Refusal> {
        if own.is_empty() && self.group_sets.is_empty() {
            self.dispatch_slots(program, push, groups)
        } else {
            self.dispatch_sets((program, push, groups), own, looked.get_or_insert_default())
        }
    }

    /// Records a dispatch with the resources in the slots.
    fn dispatch_slots(&mut self, program: &Program, push: &[u8], groups: [u32; 3]) -> Result<(), Refusal> {
        let Self { share, clock, timeline, bindings, sets, programs, journal_seen, .. } = self;
        let batch = timeline.batch()?;
        let state = programs.of(program, bindings, sets);
        if state.is_current(bindings, batch.serial())
            && batch.repeats(state.number)
            && batch.has_program(program, push)
            && !share.has_mappings()
        {
            // The same dispatch again: no object, set or hazard has to be looked at.
            if state.writes {
                batch.barrier(CommandKind::Dispatch, || state.touches().find(|touch| touch.access.writes()))?;
            }
            return Ok(batch.dispatch(groups, Some(state.number))?);
        }
        state.update(program, bindings, share)?;
        // Ranges that kernels can write through slots are valid since they were bound, so no use is fresh, and there is
        // nothing to take back if the command is refused.
        let _ = batch.enter(clock, state.new_uses(bindings, batch.serial()))?;
        if share.journal().count() != *journal_seen {
            // An object that the batch entered earlier may have been replaced before the last one was entered.
            return Err(Refusal::Again);
        }
        state.entered(batch.serial());
        batch.bind_program(program, push)?;
        for (group, layout) in program.sets().iter().enumerate() {
            let bound = state.set_number(group).is_some_and(|number| batch.has_set(group as u32, number));
            if state.uses_group(group) && !bound {
                let set = state.set((group, layout), bindings, sets, share)?;
                batch.bind_set(program, group as u32, &set.set, set.number)?;
            }
        }
        let barrier = batch.order(CommandKind::Dispatch, state.touches(), Fresh::default())?;
        // See `Batch::dispatch`.
        let may_repeat = barrier || !state.writes;
        Ok(batch.dispatch(groups, may_repeat.then_some(state.number))?)
    }
}
