//! Dispatches whose groups take their descriptors from sets.

use std::sync::Arc;

use super::Dispatch;
use crate::batch::Refusal;
use crate::context_state::ContextState;
use crate::descriptors::{check_mapped, checked};
use crate::error::{Error, rule};
use crate::events::EventLog;
use crate::ids::{CommandKind, Serial, Slot};
use crate::program::{Declared, Program, SetLayout};
use crate::set::{DescriptorSet, GroupSets, Looked, Names, Wanted};
use crate::slot_state::SlotState;
use crate::submission::Clock;

impl Dispatch<'_> {
    /// Takes the descriptors of a group from a set, for this dispatch. [`Dispatch::bind`] and [`Dispatch::with`] go
    /// before: what they bind in the group is used in place of the set's.
    ///
    /// The set has each descriptor that the program declares in the group; it may have more. Errors are those of
    /// [`Dispatch::groups`], and name the set.
    ///
    /// ```
    /// # fn main() -> Result<(), spelter::Error> {
    /// # let context = spelter::Context::new()?;
    /// # let program = context.program_wgsl(
    /// #     "@group(0) @binding(0) var<storage, read_write> data: array<u32>;
    /// #      @compute @workgroup_size(4)
    /// #      fn main(@builtin(global_invocation_id) id: vec3<u32>) { data[id.x] *= 2u; }",
    /// # )?;
    /// let data = context.buffer_from(&[1u32, 2, 3, 4])?;
    /// let set = context.descriptor_set(&program, 0).bind(0, &data).build()?;
    /// context.dispatch(&program).set(0, &set).groups([1, 1, 1])?;
    /// assert_eq!(context.read::<u32>(&data)?, [2, 4, 6, 8]);
    /// # Ok(())
    /// # }
    /// ```
    pub fn set(mut self, group: u32, set: &DescriptorSet) -> Self {
        // The caller has a handle of an earlier set, so this drops none.
        let _ = self.sets.put(group, Some(set.clone()));
        self
    }

    /// Checks that a set is of the device and that the program uses its group.
    pub(super) fn check_set(&self, group: u32, set: &DescriptorSet) -> Result<(), Error> {
        let described = set.inner().described();
        if !set.inner().is_of(self.context.share()) {
            let problem = format!("dispatch: {described} is of another context's device");
            return Err(Error::resource(problem, rule::DEVICE));
        }
        let uses = |layout: &SetLayout| !layout.bindings.is_empty();
        if self.program.sets().get(group as usize).is_some_and(uses) {
            return Ok(());
        }
        let problem = format!("dispatch: {described} for group {group}: {} has no bindings there", self.program);
        Err(Error::resource(problem, rule::DECLARED))
    }
}

/// A driver set to be bound, and its number.
pub(super) type ResolvedSet = (spelter_driver::DescriptorSet, u64);

/// A set for a group of a program, and what it names.
pub(super) struct SetOfGroup<'a> {
    set: &'a DescriptorSet,
    names: Arc<Names>,
    places: Box<[u32]>,
}

impl<'a> SetOfGroup<'a> {
    pub(super) fn look(
        set: &'a DescriptorSet,
        (program, group, layout): (&Program, u32, &SetLayout),
        looked: &mut Looked,
    ) -> Result<Self, Error> {
        let places = set.inner().places(program, group, layout)?;
        Ok(Self { set, names: looked.at(set.inner()), places })
    }

    /// The checked state of a descriptor, by its number in the group.
    pub(super) fn found(&self, program: &Program, info: Declared, slot: Slot, at: usize) -> Result<SlotState, Error> {
        let state = self.names.state(self.places[at]);
        let found = checked(program, slot, info, state).and_then(|found| check_mapped(slot, state).map(|()| found));
        found.cloned().map_err(|error| self.set.inner().named(error))
    }

    /// Notes the descriptors that name other objects than before.
    pub(super) fn note_rebound(&self, log: &EventLog) {
        self.set.inner().note_rebound(&self.names, log);
    }

    /// The driver set for the group.
    pub(super) fn resolve(
        &self,
        layout: &SetLayout,
        batch: (&Arc<Clock>, Serial),
        log: &EventLog,
    ) -> Result<ResolvedSet, Refusal> {
        self.set.inner().resolve(&self.names, Wanted { layout, places: &self.places }, batch, log)
    }
}

impl ContextState {
    /// Records a dispatch with the sets of its groups, and with the slots where a group has none.
    pub(super) fn dispatch_sets(
        &mut self,
        (program, push, groups): (&Program, &[u8], [u32; 3]),
        own: &GroupSets,
        looked: &mut Looked,
    ) -> Result<(), Refusal> {
        let Self { share, clock, timeline, bindings, sets, set_states, group_sets, journal_seen, log, .. } = self;
        let batch = timeline.batch()?;
        let serial = batch.serial();
        let of_groups = own.of_program(group_sets, program);
        let state = set_states.of(program, &of_groups, bindings, sets)?;
        if let Some(number) = state.current(&of_groups, bindings, serial, share)
            && batch.repeats(number)
            && batch.has_program(program, push)
            && !share.has_mappings()
        {
            // The same dispatch again: no object, set or hazard has to be looked at.
            if state.writes {
                batch.barrier(CommandKind::Dispatch, || state.touches().find(|touch| touch.access.writes()))?;
            }
            return Ok(batch.dispatch(groups, Some(number))?);
        }
        state.update(program, &of_groups, bindings, (share, log), looked)?;
        let resolved = state.resolve(program, &of_groups, looked, (clock, serial), log)?;
        let (entries, fresh) = state.enter(batch, clock, bindings, looked)?;
        if share.journal().count() != *journal_seen {
            // An object that the batch entered earlier may have been replaced before the last one was entered.
            entries.take_back();
            return Err(Refusal::Again);
        }
        let mut record = || -> Result<(), Error> {
            batch.bind_program(program, push)?;
            for (group, set, number) in &resolved {
                if !batch.has_set(*group, *number) {
                    batch.bind_set(program, *group, set, *number)?;
                }
            }
            let slots = state.slots();
            for (group, layout) in program.sets().iter().enumerate().filter(|(_, layout)| !layout.bindings.is_empty()) {
                let bound = slots.set_number(group).is_some_and(|number| batch.has_set(group as u32, number));
                if slots.uses_group(group) && !bound {
                    let set = slots.set((group, layout), bindings, sets, share)?;
                    batch.bind_set(program, group as u32, &set.set, set.number)?;
                }
            }
            let barrier = batch.order(CommandKind::Dispatch, state.touches(), fresh)?;
            // See `Batch::dispatch`.
            let may_repeat = barrier || !state.writes;
            batch.dispatch(groups, may_repeat.then_some(state.number()))
        };
        record().inspect_err(|_| entries.take_back())?;
        state.entered(serial, looked);
        Ok(())
    }
}
