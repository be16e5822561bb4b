//! What a dispatch binds for itself, and which binding each of its descriptors takes.

use std::ops::Range;
use std::sync::Arc;

use super::Dispatch;
use super::sets::SetOfGroup;
use crate::bind::Bind;
use crate::buffer::Buffer;
use crate::context_state::ContextState;
use crate::descriptors::{check_mapped, checked, wrong_kind};
use crate::error::{Error, rule};
use crate::ids::{Slot, SlotKind};
use crate::program::{BindingInfo, Program};
use crate::share::Share;
use crate::slot_state::SlotState;

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
    pub(super) fn described(&self) -> String {
        match self {
            Self::Bytes(buffer, _) => buffer.resource().described(),
            Self::Bind(bind) => bind.described(),
        }
    }

    pub(super) fn bound(
        &self,
        share: &Arc<Share>,
        slot: Slot,
        (program, info): (&Program, BindingInfo),
    ) -> Result<SlotState, Error> {
        match self {
            Self::Bytes(..) => SlotState::new(share, slot, &self.bind(slot, (program, info))?),
            Self::Bind(bind) => SlotState::new(share, slot, bind),
        }
    }

    /// What is bound, as the kind that the program declares.
    pub(super) fn bind(&self, slot: Slot, (program, info): (&Program, BindingInfo)) -> Result<Bind, Error> {
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
    /// The checked state of a descriptor: its own binding, or that of the group's set, or the context's slot. `from` is
    /// the set, with the number of the descriptor in the group.
    pub(super) fn found(
        &self,
        state: &mut ContextState,
        info: BindingInfo,
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
        let bindings = self.program.bindings();
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
        let list: Vec<_> = self.program.bindings().iter().map(|b| format!("{}.{}", b.group, b.binding)).collect();
        match list.as_slice() {
            [] => format!("{:?} uses no bindings", self.program.entry()),
            _ => format!("{:?} does not use it; it uses {}", self.program.entry(), list.join(", ")),
        }
    }
}
