//! Slot state: a part of a resource, its current object and the view through which shaders access it. This module has
//! the rules for binding to a slot; a dispatch checks whether the program accepts the slot's state
//! (`program/binding.rs`).

use std::ops::Range;
use std::sync::Arc;

use smallvec::SmallVec;
use spelter_driver::Sampler;

use crate::bind::{Bind, described};
use crate::error::{Error, rule};
use crate::ids::{Slot, SlotKind};
use crate::layout::BufferType;
use crate::memory::Template;
use crate::object::ResourceObject;
use crate::resource::Resource;
use crate::share::Share;
use crate::view::{Part, View};

/// The state of an occupied slot.
#[derive(Clone, Debug)]
pub(crate) struct SlotState {
    pub(crate) kind: SlotKind,
    /// `None` for a sampler or a null descriptor.
    pub(crate) resource: Option<Arc<Resource>>,
    /// The object of the resource when this was bound or rebound; `None` if the resource was destroyed.
    pub(crate) object: Option<Arc<ResourceObject>>,
    pub(crate) part: Part,
    /// Whether the bytes extend to the end of the buffer, whatever its size (`VK_WHOLE_SIZE`).
    pub(crate) to_end: bool,
    /// The bytes or subresources that are bound.
    pub(crate) ranges: SmallVec<[Range<u64>; 1]>,
    /// The view of texels; plain buffers need none.
    pub(crate) view: Option<View>,
    pub(crate) sampler: Option<Sampler>,
    /// What a buffer holds, if the handle that was bound says it.
    pub(crate) contents: Option<BufferType>,
}

/// A resource's object, as a slot names it.
#[derive(Clone, Debug)]
pub(crate) struct Backed {
    pub(crate) object: Arc<ResourceObject>,
    pub(crate) part: Part,
    pub(crate) ranges: SmallVec<[Range<u64>; 1]>,
    pub(crate) view: Option<View>,
}

impl SlotState {
    /// What `bind` names, without an object.
    fn unbacked(bind: &Bind) -> Self {
        let Bind { kind, part, to_end, sampler, resource, contents } = bind.clone();
        Self { kind, resource, object: None, part, to_end, ranges: SmallVec::new(), view: None, sampler, contents }
    }

    /// Checks `bind` by the rules, and returns the slot state with the resource's current object.
    pub(crate) fn new(share: &Arc<Share>, slot: Slot, bind: &Bind) -> Result<Self, Error> {
        let Bind { kind, part, to_end, resource, .. } = bind;
        let mut bound = Self::unbacked(bind);
        let Some(resource) = resource else {
            if *kind == SlotKind::Sampler && bind.sampler.is_none() {
                return Err(Error::slot(slot, NO_NULL_SAMPLER));
            }
            return Ok(bound);
        };
        if !resource.is_of(share) {
            let problem = format!("{} is of another context's device", resource.described());
            return Err(Error::slot_rule(slot, problem, rule::DEVICE));
        }
        // The size is that of this object, as long as the resource is locked.
        let mut state = resource.state();
        let part = part.extended(*to_end, resource.size());
        check_part(slot, &part, resource, resource.size())?;
        check_alignment(share, slot, *kind, resource, &part)?;
        let Some(object) = state.storage().cloned() else { return Err(destroyed(slot, resource)) };
        // From now on the journal must report its changes.
        state.bound = true;
        bound.ranges = part.ranges(&resource.template());
        drop(state);
        bound.view = view(slot, *kind, &part, resource, &object)?;
        (bound.object, bound.part) = (Some(object), part);
        Ok(bound)
    }

    /// The same with another object of its resource, which may have another size.
    pub(crate) fn backed_by(
        &self,
        slot: Slot,
        resource: &Resource,
        object: &Arc<ResourceObject>,
    ) -> Result<Backed, Error> {
        let part = self.part.extended(self.to_end, object.size());
        check_part(slot, &part, resource, object.size())?;
        let ranges = part.ranges(&resource.template());
        let view = view(slot, self.kind, &part, resource, object)?;
        Ok(Backed { object: Arc::clone(object), part, ranges, view })
    }

    /// The error for a slot without an object: its resource is destroyed, or too small for what is bound.
    pub(crate) fn no_object(&self, slot: Slot) -> Error {
        let Some(resource) = &self.resource else { return Error::slot(slot, "nothing is bound to it") };
        let state = resource.state();
        let Some(object) = state.storage() else { return destroyed(slot, resource) };
        let fits = self.backed_by(slot, resource, object);
        fits.err().unwrap_or_else(|| {
            // Another thread has respecified it since.
            Error::slot_rule(slot, format!("{} was too small for what is bound", resource.described()), rule::INSIDE)
        })
    }

    /// The state that `bind` has with this object of its resource; `None` for a sampler. The resource may have another
    /// size than when `bind` was checked.
    pub(crate) fn with_object(slot: Slot, bind: &Bind, object: Option<&Arc<ResourceObject>>) -> Result<Self, Error> {
        let mut bound = Self::unbacked(bind);
        if let (Some(resource), Some(object)) = (&bind.resource, object) {
            let Backed { object, part, ranges, view } = bound.backed_by(slot, resource, object)?;
            (bound.object, bound.part, bound.ranges, bound.view) = (Some(object), part, ranges, view);
        }
        Ok(bound)
    }

    /// What was bound.
    pub(crate) fn to_bind(&self) -> Bind {
        let Self { kind, part, to_end, sampler, resource, .. } = self;
        let (part, sampler, resource) = (part.clone(), sampler.clone(), resource.clone());
        Bind { kind: *kind, part, to_end: *to_end, sampler, resource, contents: self.contents }
    }

    /// Whether binding `bind` would change at most the object.
    pub(crate) fn binds_alike(&self, bind: &Bind) -> bool {
        let same = |a: &Option<Arc<Resource>>, b: &Option<Arc<Resource>>| match (a, b) {
            (Some(a), Some(b)) => Arc::ptr_eq(a, b),
            (a, b) => a.is_none() && b.is_none(),
        };
        let number = |sampler: &Option<Sampler>| sampler.as_ref().map(Sampler::number);
        self.kind == bind.kind
            && same(&self.resource, &bind.resource)
            && self.to_end == bind.to_end
            && (self.part == bind.part || (self.to_end && self.part.begins_as(&bind.part)))
            && number(&self.sampler) == number(&bind.sampler)
            && self.contents == bind.contents
    }

    /// Whether it is a null descriptor.
    pub(crate) fn is_null(&self) -> bool {
        self.resource.is_none() && self.kind != SlotKind::Sampler
    }

    /// The bound resource, for messages.
    pub(crate) fn described(&self) -> String {
        described(self.resource.as_deref(), self.kind)
    }
}

/// The problem of a null descriptor for a sampler.
const NO_NULL_SAMPLER: &str = "a sampler cannot be null (VUID-VkWriteDescriptorSet-descriptorType-00325)";

fn destroyed(slot: Slot, resource: &Resource) -> Error {
    Error::slot_rule(slot, format!("{} is destroyed", resource.described()), rule::DESTROYED)
}

/// A view of the part, if shaders need one. Errors name the resource.
fn view(
    slot: Slot,
    kind: SlotKind,
    part: &Part,
    resource: &Resource,
    object: &ResourceObject,
) -> Result<Option<View>, Error> {
    object.view(resource.share().device(), kind, part).map_err(|error| match error {
        // The driver reports broken rules for views.
        Error::Misuse(misuse) => {
            Error::slot(slot, format!("{}: {} ({})", resource.described(), misuse.problem, misuse.vuid))
        }
        error => error,
    })
}

/// Checks that the part lies in an object of the resource; `size` is the object's.
fn check_part(slot: Slot, part: &Part, resource: &Resource, size: u64) -> Result<(), Error> {
    match (part, resource.template()) {
        (Part::Image(part), Template::Image(info)) => {
            let problem = |problem| format!("{problem} of {}", resource.described());
            part.check(&info).map_err(|p| Error::slot_rule(slot, problem(p), "views lie within their images"))
        }
        (Part::Bytes(range) | Part::Texels(range, _), _) => {
            let is_view = matches!(part, Part::Texels(..));
            match broken_rule(range, size, is_view) {
                Some(vuid) => {
                    let (Range { start, end }, what) = (range, resource.described());
                    Err(Error::slot(slot, format!("bytes {start}..{end} of {what} ({vuid})")))
                }
                None => Ok(()),
            }
        }
        _ => Ok(()),
    }
}

/// The rule that a range of a buffer of `size` bytes breaks, as a descriptor's or as a view's.
fn broken_rule(Range { start, end }: &Range<u64>, size: u64, is_view: bool) -> Option<&'static str> {
    let [offset, empty, beyond] = if is_view {
        [
            "VUID-VkBufferViewCreateInfo-offset-00925",
            "VUID-VkBufferViewCreateInfo-range-00928",
            "VUID-VkBufferViewCreateInfo-offset-00931",
        ]
    } else {
        [
            "VUID-VkDescriptorBufferInfo-offset-00340",
            "VUID-VkDescriptorBufferInfo-range-00341",
            "VUID-VkDescriptorBufferInfo-range-00342",
        ]
    };
    match () {
        () if *start >= size => Some(offset),
        () if start >= end => Some(empty),
        () if *end > size => Some(beyond),
        () => None,
    }
}

/// Checks the offset of a plain buffer; the driver checks views of texels.
fn check_alignment(share: &Share, slot: Slot, kind: SlotKind, resource: &Resource, part: &Part) -> Result<(), Error> {
    let Part::Bytes(Range { start: offset, .. }) = *part else { return Ok(()) };
    let limits = share.device().limits();
    let (alignment, vuid) = match kind {
        SlotKind::UniformBuffer => {
            (limits.min_uniform_buffer_offset_alignment, "VUID-VkWriteDescriptorSet-descriptorType-00327")
        }
        SlotKind::StorageBuffer => {
            (limits.min_storage_buffer_offset_alignment, "VUID-VkWriteDescriptorSet-descriptorType-00328")
        }
        _ => return Ok(()),
    };
    if offset.is_multiple_of(alignment) {
        return Ok(());
    }
    let of = resource.label().map(|label| format!(" of buffer `{label}`")).unwrap_or_default();
    Err(Error::slot(slot, format!("offset {offset}{of} is no multiple of {alignment} ({vuid})")))
}
