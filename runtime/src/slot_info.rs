//! What programs can see of a slot: the resource in it, the object that it names, and the bound part.

use std::ops::Range;
use std::sync::Arc;

use crate::buffer::Buffer;
use crate::context::Context;
use crate::ids::{ObjectId, ResourceId, Slot, SlotKind};
use crate::image::Image;
use crate::resource::Resource;
use crate::slot_state::SlotState;

/// The content of a slot at the time of the call: [`Context::slot`].
///
/// ```
/// use spelter::{Bind, SlotKind};
///
/// # fn main() -> Result<(), spelter::Error> {
/// # let context = spelter::Context::new()?;
/// let buffer = context.buffer(64).label("particles").zeroed()?;
/// context.bind((0, 1), Bind::storage(buffer.slice(16..48)))?;
/// let info = context.slot((0, 1)).expect("something is bound");
/// assert_eq!((info.kind, info.resource), (SlotKind::StorageBuffer, Some(buffer.id())));
/// assert_eq!((info.object, info.ranges), (Some(buffer.object()?.id), vec![16..48]));
/// # Ok(())
/// # }
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct SlotInfo {
    /// The slot.
    pub slot: Slot,
    /// How it uses the resource.
    pub kind: SlotKind,
    /// The resource in it; none for a sampler or a null descriptor.
    pub resource: Option<ResourceId>,
    /// The label of the resource.
    pub label: Option<String>,
    /// The object that dispatches find there. None without a resource, or if the resource is destroyed or was
    /// respecified with a size that is too small for what is bound: dispatches that use the slot are errors then.
    pub object: Option<ObjectId>,
    /// The bytes of the buffer, or the numbers of the image's subresources, ordered by layer, then by level.
    pub ranges: Vec<Range<u64>>,
}

impl SlotInfo {
    fn of(slot: Slot, bound: &SlotState) -> Self {
        Self {
            slot,
            kind: bound.kind,
            resource: bound.resource.as_ref().map(|resource| resource.id()),
            label: bound.resource.as_ref().and_then(|resource| resource.label().map(str::to_owned)),
            object: bound.object.as_ref().map(|object| object.id()),
            ranges: bound.ranges.to_vec(),
        }
    }
}

impl Context {
    /// What is bound to a slot of this context; `None` if nothing is. Renames by other contexts count, as for a
    /// dispatch.
    ///
    /// ```
    /// use spelter::Bind;
    ///
    /// # fn main() -> Result<(), spelter::Error> {
    /// let context = spelter::Context::new()?;
    /// let buffer = context.buffer_zeroed(64)?;
    /// context.bind((0, 0), Bind::storage(&buffer))?;
    /// context.fill(&buffer, 1)?; // in use
    /// context.sibling().invalidate(&buffer)?;
    /// assert_eq!(context.slot((0, 0)).and_then(|info| info.object), Some(buffer.object()?.id));
    /// assert_eq!(context.slot((0, 1)), None);
    /// # Ok(())
    /// # }
    /// ```
    pub fn slot(&self, slot: impl Into<Slot>) -> Option<SlotInfo> {
        let slot = slot.into();
        self.inner().caught_up(|state| state.bindings.find(slot).map(|bound| SlotInfo::of(slot, bound)))
    }

    /// The slots of this context that a buffer is bound to, in order.
    ///
    /// ```
    /// use spelter::Bind;
    ///
    /// # fn main() -> Result<(), spelter::Error> {
    /// # let context = spelter::Context::new()?;
    /// let buffer = context.buffer_zeroed(64)?;
    /// context.bind((0, 1), Bind::storage(&buffer))?;
    /// context.bind((0, 0), Bind::uniform(buffer.slice(..16)))?;
    /// let slots: Vec<_> = context.slots_of(&buffer).into_iter().map(|info| info.slot.to_string()).collect();
    /// assert_eq!(slots, ["binding 0.0", "binding 0.1"]);
    /// # Ok(())
    /// # }
    /// ```
    pub fn slots_of(&self, buffer: &Buffer) -> Vec<SlotInfo> {
        self.slots_with(buffer.resource())
    }

    /// The slots of this context that an image is bound to, in order.
    ///
    /// ```
    /// use spelter::{Bind, vk};
    ///
    /// # fn main() -> Result<(), spelter::Error> {
    /// # let context = spelter::Context::new()?;
    /// let image = context.image(vk::Format::R32_UINT, [4, 4, 1]).levels(2).build()?;
    /// context.bind((1, 0), Bind::sampled(image.level(1)))?;
    /// assert_eq!(context.slots_of_image(&image)[0].ranges, [1..2]);
    /// # Ok(())
    /// # }
    /// ```
    pub fn slots_of_image(&self, image: &Image) -> Vec<SlotInfo> {
        self.slots_with(image.resource())
    }

    fn slots_with(&self, resource: &Arc<Resource>) -> Vec<SlotInfo> {
        let id = resource.id();
        let mut slots: Vec<_> = self.inner().caught_up(|state| {
            let of = SlotKind::ALL.into_iter().flat_map(|kind| state.bindings.slots_of(id, kind));
            let info = of.filter_map(|at| {
                let bound = state.bindings.slot_state(*at)?;
                Some(SlotInfo::of(state.bindings.slot(*at), bound))
            });
            info.collect()
        });
        slots.sort_unstable_by_key(|info| info.slot);
        slots
    }
}
