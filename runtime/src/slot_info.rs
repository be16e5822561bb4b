//! Public information about a slot: the resource in it, the object that it names, and the bound part.

use std::ops::Range;
use std::sync::Arc;

use crate::buffer::Buffer;
use crate::context::Context;
use crate::ids::{ObjectId, ResourceId, SetId, Slot, SlotKind};
use crate::image::Image;
use crate::named_by::NamedBy;
use crate::resource::Resource;
use crate::set::DescriptorSet;
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
    /// The set from which dispatches take the descriptor ([`Context::bind_set`]); none if it is the slot's own.
    pub set: Option<SetId>,
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
    fn of(slot: Slot, set: Option<SetId>, bound: &SlotState) -> Self {
        Self {
            slot,
            set,
            kind: bound.kind,
            resource: bound.resource.as_ref().map(|resource| resource.id()),
            label: bound.resource.as_ref().and_then(|resource| resource.label().map(str::to_owned)),
            object: bound.object.as_ref().map(|object| object.id()),
            ranges: bound.ranges.to_vec(),
        }
    }
}

impl Context {
    /// What is bound to a slot of this context, or named for it by the set of its group ([`Context::bind_set`]), which
    /// goes before; `None` if nothing is. Renames by other contexts count, as for a dispatch.
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
        let (own, set) = self.inner().with_current_state(|state| {
            let own = state.bindings.find(slot).map(|bound| SlotInfo::of(slot, None, bound));
            (own, state.group_sets.get(slot.group).cloned())
        });
        match set {
            Some(set) => named_in(slot.group, &set).into_iter().find(|info| info.slot == slot),
            None => own,
        }
    }

    /// The slots of this context that a buffer is bound to, in order, also by the sets of its groups
    /// ([`Context::bind_set`]): then [`SlotInfo::set`] is the set. [`Buffer::named_by`] has the sets and command
    /// buffers of the whole device.
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

    /// The slots of this context that an image is bound to, in order, as [`Context::slots_of`].
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
        let (mut slots, sets): (Vec<_>, Vec<_>) = self.inner().with_current_state(|state| {
            let of = SlotKind::ALL.into_iter().flat_map(|kind| state.bindings.slots_of(id, kind));
            let info = of.filter_map(|at| {
                let bound = state.bindings.slot_state(*at)?;
                Some(SlotInfo::of(state.bindings.slot(*at), None, bound))
            });
            (info.collect(), state.group_sets.iter().cloned().collect())
        });
        let named = sets.iter().flat_map(|(group, set)| named_in(*group, set));
        slots.extend(named.filter(|info| info.resource == Some(id)));
        slots.sort_unstable_by_key(|info| (info.slot, info.set));
        slots
    }
}

/// What a set names for a group. The caller holds no lock.
fn named_in(group: u32, set: &DescriptorSet) -> Vec<SlotInfo> {
    let (names, _replaced) = set.inner().look();
    let all = set.inner().descriptors(&names);
    all.map(|(binding, element, state)| SlotInfo::of(Slot { group, binding, element }, Some(set.id()), state)).collect()
}

impl Buffer {
    /// The descriptor sets and command buffers of the device that name the buffer, each kind in the order in which they
    /// were made. Slots of contexts are those of [`Context::slots_of`].
    ///
    /// ```
    /// use spelter::NamedBy;
    ///
    /// # fn main() -> Result<(), spelter::Error> {
    /// # let context = spelter::Context::new()?;
    /// let data = context.buffer_zeroed(16)?;
    /// let commands = context.record(|commands| commands.fill(&data, 1))?;
    /// assert_eq!(data.named_by(), [NamedBy::Commands { commands: commands.id(), label: None, count: 1 }]);
    /// drop(commands);
    /// assert_eq!(data.named_by(), []);
    /// # Ok(())
    /// # }
    /// ```
    pub fn named_by(&self) -> Vec<NamedBy> {
        self.resource().share().named_by(self.resource().id())
    }
}

impl Image {
    /// The descriptor sets and command buffers of the device that name the image: see [`Buffer::named_by`].
    ///
    /// ```
    /// use spelter::{ClearColor, vk};
    ///
    /// # fn main() -> Result<(), spelter::Error> {
    /// # let context = spelter::Context::new()?;
    /// let image = context.image(vk::Format::R32_UINT, [2, 1, 1]).build()?;
    /// let commands = context.record(|commands| commands.clear_image(&image, ClearColor::Uint([7, 0, 0, 0])))?;
    /// assert_eq!(image.named_by().len(), 1);
    /// # Ok(())
    /// # }
    /// ```
    pub fn named_by(&self) -> Vec<NamedBy> {
        self.resource().share().named_by(self.resource().id())
    }
}
