//! Binding resources to the slots of a context.

use super::Context;
use crate::bind::Bind;
use crate::error::{Error, rule};
use crate::ids::Slot;
use crate::resource::Resource;
use crate::slot_state::SlotState;

impl Context {
    /// Binds a resource to a slot; dispatches use it until something else is bound there. The slot keeps the resource
    /// alive. Bytes that kernels can write through the slot count as valid from now on.
    ///
    /// Any binding number is allowed, as in Vulkan. A dispatch checks whether the resource is what its program declares
    /// there: its kind, an image's dimensions and format, the size of a buffer.
    ///
    /// [`Error::Binding`] if the slot is outside the device's limits, or the range outside the buffer or not aligned,
    /// or if the resource is destroyed or of another device.
    ///
    /// ```
    /// use spelter::Bind;
    ///
    /// # fn main() -> Result<(), spelter::Error> {
    /// let context = spelter::Context::new()?;
    /// let program = context.program_wgsl(
    ///     "@group(0) @binding(0) var<uniform> step: u32;
    ///      @group(0) @binding(1) var<storage, read_write> sum: u32;
    ///      @compute @workgroup_size(1) fn main() { sum += step; }",
    /// )?;
    /// let (step, sum) = (context.buffer_from(&[5u32])?, context.buffer_zeroed(4)?);
    /// context.bind((0, 0), Bind::uniform(&step))?;
    /// context.bind((0, 1), Bind::storage(&sum))?;
    /// for _ in 0..3 {
    ///     context.dispatch(&program).groups([1, 1, 1])?;
    /// }
    /// assert_eq!(context.read::<u32>(&sum)?, [15]);
    /// # Ok(())
    /// # }
    /// ```
    pub fn bind(&self, slot: impl Into<Slot>, what: Bind) -> Result<(), Error> {
        let slot = slot.into();
        self.check_slot(slot, what.resource.as_deref())?;
        let mut state = self.inner.lock();
        let id = state.bindings.id(slot);
        if let (Some(current), Some(resource)) = (state.bindings.slot_state(id), &what.resource)
            && current.binds_alike(&what)
        {
            // The binding is unchanged, but ranges that kernels can write may have been invalidated since.
            let mut inner = resource.state();
            // Without an object the resource is destroyed, which `SlotState::new` reports.
            if current.object.as_ref().is_some_and(|object| inner.has(object)) {
                if what.kind.can_write() {
                    current.ranges.iter().for_each(|range| inner.add(range.clone()));
                }
                return Ok(());
            }
        }
        let bound = SlotState::new(&self.inner.share, slot, &what)?;
        if let (Some(resource), Some(object)) = (&bound.resource, &bound.object)
            && bound.kind.can_write()
            && let mut inner = resource.state()
            // Otherwise it was replaced meanwhile, and the journal tells this context to rebind the slot.
            && inner.has(object)
        {
            bound.ranges.iter().for_each(|range| inner.add(range.clone()));
        }
        let old = state.bindings.put(id, Some(bound));
        drop(state);
        drop((old, what)); // when no lock is held
        Ok(())
    }

    /// Unbinds a slot. [`Error::Binding`] if it is outside the device's limits.
    ///
    /// ```
    /// # fn main() -> Result<(), spelter::Error> {
    /// # let context = spelter::Context::new()?;
    /// let buffer = context.buffer_zeroed(64)?;
    /// context.bind((0, 0), spelter::Bind::storage(&buffer))?;
    /// context.unbind((0, 0))?;
    /// assert_eq!(context.occupied_slots(), 0);
    /// # Ok(())
    /// # }
    /// ```
    pub fn unbind(&self, slot: impl Into<Slot>) -> Result<(), Error> {
        let slot = slot.into();
        self.check_slot(slot, None)?;
        let mut state = self.inner.lock();
        let id = state.bindings.id(slot);
        let old = if state.bindings.slot_state(id).is_some() { state.bindings.put(id, None) } else { None };
        drop(state);
        drop(old); // when no lock is held
        Ok(())
    }

    /// The number of slots with something bound.
    ///
    /// ```
    /// # fn main() -> Result<(), spelter::Error> {
    /// # let context = spelter::Context::new()?;
    /// let buffer = context.buffer_zeroed(64)?;
    /// context.bind((0, 0), spelter::Bind::storage(&buffer))?;
    /// context.bind((0, 1), spelter::Bind::uniform(&buffer))?;
    /// assert_eq!(context.occupied_slots(), 2);
    /// # Ok(())
    /// # }
    /// ```
    pub fn occupied_slots(&self) -> usize {
        self.inner.lock().bindings.occupied()
    }

    /// Checks that the slot is within the device's limits. `what` is to be bound there; errors name it.
    fn check_slot(&self, slot: Slot, what: Option<&Resource>) -> Result<(), Error> {
        let limits = self.device().limits();
        let (groups, max_elements) = (limits.max_bound_descriptor_sets, limits.max_per_set_descriptors);
        let of = || what.map(|resource| format!("{}: ", resource.described())).unwrap_or_default();
        if slot.group >= groups {
            let problem = format!("{}groups are numbered 0 to {}", of(), groups - 1);
            return Err(Error::slot_rule(slot, problem, rule::SLOT));
        }
        if slot.element >= max_elements {
            let problem = format!("{}there are at most {max_elements} elements", of());
            return Err(Error::slot_rule(Slot { element: 0, ..slot }, problem, rule::SLOT));
        }
        Ok(())
    }
}
