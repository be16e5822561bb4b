//! Dispatches with bindings of their own, which are checked and resolved for this one command. What they do not bind
//! themselves comes from the set of the group, or from the slots of the context.

use std::ops::Range;
use std::sync::Arc;

use smallvec::SmallVec;

use super::sets::{ResolvedSet, SetOfGroup};
use super::{Counts, Dispatch, INDIRECT_BYTES};
use crate::barrier::Use;
use crate::batch::Refusal;
use crate::bind::Bind;
use crate::buffer::Buffer;
use crate::context_state::ContextState;
use crate::descriptors::{check_mapped, checked, resolve, used, wrong_kind};
use crate::error::{Error, rule};
use crate::ids::{Access, CommandKind, Slot, SlotKind};
use crate::program::{Declared, Program};
use crate::set::{DescriptorSet, Looked};
use crate::share::Share;
use crate::slot_state::SlotState;
use crate::transfer::check_inside;

/// A binding for one dispatch.
#[derive(Debug)]
pub(super) enum DispatchBinding {
    /// Bytes of a buffer, or all of them, as the kind that the program declares.
    Bytes(Buffer, Option<Range<u64>>),
    /// Of the given kind.
    Bind(Bind),
}

impl DispatchBinding {
    /// The resource, for messages.
    fn described(&self) -> String {
        match self {
            Self::Bytes(buffer, _) => buffer.resource().described(),
            Self::Bind(bind) => bind.described(),
        }
    }

    fn bound(&self, share: &Arc<Share>, slot: Slot, (program, info): (&Program, Declared)) -> Result<SlotState, Error> {
        match self {
            Self::Bytes(..) => SlotState::new(share, slot, &self.bind(slot, (program, info))?),
            Self::Bind(bind) => SlotState::new(share, slot, bind),
        }
    }

    /// What is bound, as the kind that the program declares.
    pub(super) fn bind(&self, slot: Slot, (program, info): (&Program, Declared)) -> Result<Bind, Error> {
        match self {
            Self::Bytes(buffer, range) => {
                let slice = range.as_ref().map_or_else(|| buffer.into(), |range| buffer.slice(range.clone()));
                match info.slot_kind() {
                    SlotKind::StorageBuffer => Ok(Bind::storage(slice)),
                    SlotKind::UniformBuffer => Ok(Bind::uniform(slice)),
                    _ => Err(wrong_kind(slot, info, program, &self.described(), "buffer")),
                }
            }
            Self::Bind(bind) => Ok(bind.clone()),
        }
    }
}

impl Dispatch<'_> {
    /// Records the dispatch with its own bindings, and for the others the groups' sets and the context's slots.
    pub(super) fn dispatch_bound(
        &self,
        state: &mut ContextState,
        counts: Counts<'_>,
        looked: &mut Looked,
    ) -> Result<(), Refusal> {
        let program = self.program;
        let share = Arc::clone(&state.share);
        let mut sets = SmallVec::<[SmallVec<[SlotState; 4]>; 4]>::new();
        let mut accesses = SmallVec::<[Access; 8]>::new();
        let mut resolved = SmallVec::<[(u32, ResolvedSet); 1]>::new();
        let mut of_groups = SmallVec::<[Option<DescriptorSet>; 4]>::new();
        if !self.sets.is_empty() || !state.group_sets.is_empty() {
            of_groups.extend(self.sets.of_program(&state.group_sets, program).into_iter().map(|set| set.cloned()));
            looked.restart();
        }
        for (group, set) in (0u32..).zip(program.sets()) {
            let from = of_groups.get(group as usize).and_then(Option::as_ref);
            let from = from.map(|from| SetOfGroup::look(from, (program, group, set), looked)).transpose()?;
            from.iter().for_each(|from| from.note_rebound(&state.log));
            let mut found = SmallVec::new();
            let slots = set.bindings.iter().flat_map(|info| info.slots().map(move |slot| (info, slot)));
            for (at, (info, slot)) in slots.enumerate() {
                found.push(self.found(state, *info, slot, from.as_ref().map(|from| (from, at)))?);
                accesses.push(info.access());
            }
            sets.push(found);
            let is_whole = || !self.bound.keys().any(|slot| slot.group == group);
            if let Some(from) = from.filter(|_| !counts.run_nothing() && is_whole()) {
                let serial = state.timeline.batch()?.serial();
                resolved.push((group, from.resolve(set, (&state.clock, serial), &state.log)?));
            }
        }
        if counts.run_nothing() {
            return Ok(()); // checked; a dispatch that runs nothing uses nothing
        }
        let indirect = match counts {
            Counts::Direct(_) => None,
            Counts::Indirect(buffer, offset) => {
                let (resource, range) = (buffer.resource(), offset..offset + INDIRECT_BYTES);
                let object = resource.object_for_command("dispatch")?;
                check_inside("dispatch", resource, &object, &range)?;
                Some((resource, object, offset))
            }
        };
        let counted = indirect.as_ref().map(|(resource, object, offset)| {
            Use::of(resource, object, *offset..offset + INDIRECT_BYTES, Access::Read)
        });
        let uses = || sets.iter().flatten().zip(accesses.iter().copied()).flat_map(used).chain(counted.clone());
        let batch = state.timeline.batch()?;
        let entries = batch.enter(&state.clock, uses())?;
        let (fresh, set_cache) = (entries.fresh, &mut state.sets);
        let mut record = || -> Result<(), Error> {
            batch.bind_program(program, &self.push)?;
            for (group, (layout, found)) in (0u32..).zip(program.sets().iter().zip(&sets)) {
                match resolved.iter().find(|(at, _)| *at == group) {
                    _ if found.is_empty() => {}
                    Some((_, (_, number))) if batch.has_set(group, *number) => {}
                    Some((_, (set, number))) => batch.bind_set(program, group, set, *number)?,
                    None => {
                        let set = resolve(layout, found, set_cache, &share)?;
                        if !batch.has_set(group, set.number) {
                            batch.bind_set(program, group, &set.set, set.number)?;
                        }
                    }
                }
            }
            batch.order(CommandKind::Dispatch, uses().map(Use::touch), fresh)?;
            batch.label_next(self.label)?;
            let recorded = match (counts, &indirect) {
                (Counts::Direct(groups), _) => batch.dispatch(groups, None),
                (_, Some((_, object, offset))) => {
                    object.buffer().and_then(|buffer| batch.dispatch_indirect(buffer, *offset))
                }
                (_, None) => Ok(()),
            };
            recorded.and(batch.label_next(None))
        };
        Ok(record().inspect_err(|_| entries.take_back())?)
    }

    /// The checked state of a descriptor: its own binding, or that of the group's set, or the context's slot. `from` is
    /// the set, with the number of the descriptor in the group.
    pub(super) fn found(
        &self,
        state: &mut ContextState,
        info: Declared,
        slot: Slot,
        from: Option<(&SetOfGroup<'_>, usize)>,
    ) -> Result<SlotState, Error> {
        let bound = match (self.bound.get(&slot), from) {
            (Some(own), _) => Some(own.bound(&state.share, slot, (self.program, info))?),
            (None, Some((from, at))) => return from.found(self.program, info, slot, at),
            (None, None) => {
                let id = state.bindings.id(slot);
                state.bindings.slot_state(id).cloned()
            }
        };
        checked(self.program, slot, info, bound.as_ref())?;
        check_mapped(slot, bound.as_ref())?;
        bound.ok_or_else(|| Error::slot(slot, "nothing is bound to it"))
    }

    pub(super) fn check_known(&self, slot: Slot, own: &DispatchBinding) -> Result<(), Error> {
        let Slot { group, binding, element } = slot;
        let bindings = self.program.declared();
        let problem = match bindings.iter().find(|b| (b.group, b.binding) == (group, binding)) {
            None => self.unknown(),
            Some(info) if element >= info.count => {
                format!("it has {} elements, there is no element {element}", info.count)
            }
            Some(_) => return Ok(()),
        };
        let problem = format!("{}: {problem}", own.described());
        Err(Error::slot_rule(Slot { element: 0, ..slot }, problem, rule::DECLARED))
    }

    fn unknown(&self) -> String {
        let list: Vec<_> = self.program.declared().iter().map(|b| format!("{}.{}", b.group, b.binding)).collect();
        match list.as_slice() {
            [] => format!("{} uses no bindings", self.program),
            _ => format!("{} does not use it; it uses {}", self.program, list.join(", ")),
        }
    }
}
