//! Dispatches for command buffers, and dispatches whose number of workgroups is in a buffer.

use std::fmt;

use super::Dispatch;
use crate::bind::Bind;
use crate::buffer::Buffer;
use crate::context::Context;
use crate::descriptors::{check_mapped, checked};
use crate::error::Error;
use crate::ids::{Access, Slot};
use crate::program::{BindingInfo, Program, SetLayout};
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
    /// multiple of 4.
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
    pub fn indirect(self, buffer: &Buffer, offset: u64) -> Result<(), Error> {
        self.context.check_range("dispatch", buffer, &(offset..offset.saturating_add(INDIRECT_BYTES)))?;
        self.run(Counts::Indirect(buffer, offset))
    }

    pub(crate) fn context(&self) -> &'a Context {
        self.context
    }

    pub(crate) fn program(&self) -> &'a Program {
        self.program
    }

    /// The push constants, as the program declares them.
    pub(crate) fn pushed(&self) -> &[u8] {
        &self.push
    }

    /// All bindings of the program, by set, in the layout's order, for a dispatch that uses no slots of a context.
    pub(crate) fn own_bindings(&self) -> Result<Vec<Vec<(Bind, Access)>>, Error> {
        let own = |info: BindingInfo, slot: Slot| {
            let of = (self.program, info);
            let bind = self.bound.get(&slot).map(|own| own.bind(slot, of)).transpose()?;
            let bound = bind.as_ref().map(|bind| SlotState::new(self.context.share(), slot, bind)).transpose()?;
            checked(self.program, slot, info, bound.as_ref())?;
            check_mapped(slot, bound.as_ref())?;
            let bind = bind.ok_or_else(|| Error::slot(slot, "nothing is bound to it"))?;
            Ok((bind, info.access()))
        };
        let slots = |set: &SetLayout| {
            let infos = set.bindings.clone().into_iter();
            infos.flat_map(|info| info.slots().map(move |slot| (info, slot))).collect::<Vec<_>>()
        };
        let sets = self.program.sets().iter().map(slots);
        sets.map(|set| set.into_iter().map(|(info, slot)| own(info, slot)).collect()).collect()
    }
}
