//! Dispatches for command buffers, and dispatches whose number of workgroups is in a buffer.

use std::fmt;

use spelter_driver::CommandBuffer;

use super::Dispatch;
use super::sets::SetOfGroup;
use crate::bind::Bind;
use crate::buffer::Buffer;
use crate::context::Context;
use crate::descriptors::{check_mapped, checked};
use crate::error::Error;
use crate::ids::{Access, Slot};
use crate::program::{Declared, Program, SetLayout};
use crate::set::{GroupSets, Looked};
use crate::slot_state::SlotState;

/// Bytes of the counts of an indirect dispatch (`VkDispatchIndirectCommand`).
pub(crate) const INDIRECT_BYTES: u64 = 12;

/// The number of workgroups of a dispatch.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Counts<'a> {
    Direct([u32; 3]),
    /// Three words of a buffer, at this offset.
    Indirect(&'a Buffer, u64),
}

impl Counts<'_> {
    /// Whether it is known that no workgroup runs.
    #[inline]
    pub(crate) fn run_nothing(self) -> bool {
        matches!(self, Self::Direct(groups) if groups.contains(&0))
    }

    /// Checks the numbers of workgroups, or the place of the counts in their buffer. Whether that is destroyed or
    /// mapped is checked when the dispatch is recorded.
    #[inline]
    pub(super) fn check(self, context: &Context) -> Result<(), Error> {
        match self {
            Self::Direct(groups) => Ok(CommandBuffer::check_groups(groups)?),
            Self::Indirect(buffer, offset) => {
                context.check_range("dispatch", buffer, &(offset..offset.saturating_add(INDIRECT_BYTES)))?;
                Ok(CommandBuffer::check_indirect_offset(offset)?)
            }
        }
    }

    /// All their errors.
    pub(super) fn errors(self, context: &Context) -> impl Iterator<Item = Error> + use<> {
        let checks = match self {
            Self::Direct(_) => [self.check(context), Ok(()), Ok(())],
            Self::Indirect(buffer, offset) => [
                context.check_range("dispatch", buffer, &(offset..offset.saturating_add(INDIRECT_BYTES))),
                CommandBuffer::check_indirect_offset(offset).map_err(Error::from),
                buffer.resource().object_for_command("dispatch").map(drop),
            ],
        };
        checks.into_iter().filter_map(Result::err)
    }
}

/// What records dispatches in place of a context: a command buffer.
pub(crate) trait RecordsDispatches: fmt::Debug + Send + Sync {
    /// Records a dispatch with its own bindings, whose push constants are checked.
    fn dispatch(&mut self, dispatch: &Dispatch<'_>, counts: Counts<'_>) -> Result<(), Error>;
}

impl<'a> Dispatch<'a> {
    /// For a command buffer.
    pub(crate) fn recorded(
        context: &'a Context,
        program: &'a Program,
        recording: &'a mut dyn RecordsDispatches,
    ) -> Self {
        Self { recording: Some(recording), ..Self::new(context, program) }
    }

    /// Records the dispatch of as many workgroups as three words at `offset` in a buffer hold when it runs: one count
    /// for each direction. Counts above the device's limits run nothing.
    ///
    /// Errors are those of [`Dispatch::groups`], and [`Error::Range`] if the words are not in the buffer,
    /// [`Error::Resource`] if it is destroyed, mapped or of another device, [`Error::Misuse`] if `offset` is not a
    /// multiple of 4, [`Error::Several`] with all of these, if there are several.
    ///
    /// ```
    /// # fn main() -> Result<(), spelter::Error> {
    /// # let context = spelter::Context::new()?;
    /// # let program = context.program_wgsl(
    /// #     "@group(0) @binding(0) var<storage, read_write> data: array<u32>;
    /// #      @compute @workgroup_size(4)
    /// #      fn main(@builtin(global_invocation_id) id: vec3<u32>) { data[id.x] *= 2u; }",
    /// # )?;
    /// let data = context.buffer_from(&[1u32; 8])?;
    /// let counts = context.buffer_from(&[1u32, 1, 1])?;
    /// context.dispatch(&program).bind(0, 0, &data).indirect(&counts, 0)?;
    /// assert_eq!(context.read::<u32>(&data)?, [2, 2, 2, 2, 1, 1, 1, 1]);
    /// # Ok(())
    /// # }
    /// ```
    pub fn indirect(mut self, buffer: &Buffer, offset: u64) -> Result<(), Error> {
        self.run(Counts::Indirect(buffer, offset))
    }

    pub(crate) fn context(&self) -> &'a Context {
        self.context
    }

    pub(crate) fn program(&self) -> &'a Program {
        self.program
    }

    /// Its label.
    pub(crate) fn own_label(&self) -> Option<&str> {
        self.label
    }

    /// The push constants, as the program declares them.
    pub(crate) fn pushed(&self) -> &[u8] {
        &self.push
    }

    /// The sets of its groups.
    pub(crate) fn group_sets(&self) -> &GroupSets {
        &self.sets
    }

    /// Its own bindings, each as the kind that the program declares.
    pub(crate) fn own_binds(&self) -> Result<Vec<(Slot, Bind)>, Error> {
        let info = |slot: &Slot| {
            let is_it = |info: &&Declared| (info.group, info.binding) == (slot.group, slot.binding);
            self.program.declared().iter().find(is_it).copied()
        };
        let known = self.bound.iter().filter_map(|(slot, own)| Some((*slot, own, info(slot)?)));
        known.map(|(slot, own, info)| Ok((slot, own.bind(slot, (self.program, info))?))).collect()
    }

    /// All bindings of the program, by group, in the layout's order, for a dispatch that uses no slots of a context:
    /// its own ones, and for the others what the groups' sets name now.
    pub(crate) fn own_bindings(&self) -> Result<Vec<Vec<(Bind, Access)>>, Error> {
        (0u32..).zip(self.program.sets()).map(|(group, layout)| self.own_bindings_of(group, layout)).collect()
    }

    fn own_bindings_of(&self, group: u32, layout: &SetLayout) -> Result<Vec<(Bind, Access)>, Error> {
        let mut looked = Looked::default();
        let look = |set| SetOfGroup::look(set, (self.program, group, layout), &mut looked);
        let from = self.sets.get(group).map(look).transpose()?;
        let slots = layout.bindings.iter().flat_map(|info| info.slots().map(move |slot| (*info, slot)));
        let own = |(at, (info, slot))| self.own_binding(info, slot, from.as_ref().map(|from| (from, at)));
        slots.enumerate().map(own).collect()
    }

    /// A binding of a dispatch that uses no slots of a context: its own one, or that of the group's set. `from` is the
    /// set, with the number of the descriptor in the group.
    pub(super) fn own_binding(
        &self,
        info: Declared,
        slot: Slot,
        from: Option<(&SetOfGroup<'_>, usize)>,
    ) -> Result<(Bind, Access), Error> {
        let bind = match (self.bound.get(&slot), from) {
            (Some(own), _) => own.bind(slot, (self.program, info))?,
            (None, Some((from, at))) => from.found(self.program, info, slot, at)?.to_bind(),
            (None, None) => {
                checked(self.program, slot, info, None)?;
                return Err(Error::slot(slot, "nothing is bound to it"));
            }
        };
        let state = SlotState::new(self.context.share(), slot, &bind)?;
        checked(self.program, slot, info, Some(&state))?;
        check_mapped(slot, Some(&state))?;
        Ok((bind, info.access()))
    }
}
