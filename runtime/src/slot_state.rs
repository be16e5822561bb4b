//! Slot state: a part of a resource, its current object and the view through which shaders access it. This module has
//! the rules for binding to a slot; a dispatch checks whether the program accepts the slot's state
//! (`program/binding.rs`).

use std::ops::Range;
use std::sync::Arc;

use smallvec::SmallVec;
use spelter_driver::Sampler;

use crate::bind::Bind;
use crate::error::{Error, rule};
use crate::ids::{Slot, SlotKind};
use crate::memory::Template;
use crate::object::ResourceObject;
use crate::resource::Resource;
use crate::share::Share;
use crate::view::{Part, View};

/// The state of an occupied slot.
#[derive(Clone, Debug)]
pub(crate) struct SlotState {
    pub(crate) kind: SlotKind,
    /// `None` for a sampler.
    pub(crate) resource: Option<Arc<Resource>>,
    /// The object of the resource when this was bound or rebound; `None` if the resource was destroyed.
    pub(crate) object: Option<Arc<ResourceObject>>,
    pub(crate) part: Part,
    /// The bytes or subresources that are bound.
    pub(crate) ranges: SmallVec<[Range<u64>; 1]>,
    /// The view of texels; plain buffers need none.
    pub(crate) view: Option<View>,
    pub(crate) sampler: Option<Sampler>,
}

impl SlotState {
    /// Checks `bind` by the rules, and returns the slot state with the resource's current object.
    pub(crate) fn new(share: &Arc<Share>, slot: Slot, bind: &Bind) -> Result<Self, Error> {
        check(share, slot, bind)?;
        let named = |error| match (error, &bind.resource) {
            // The driver reports broken rules for views.
            (Error::Misuse(misuse), Some(resource)) => {
                Error::slot(slot, format!("{}: {} ({})", resource.described(), misuse.problem, misuse.vuid))
            }
            (error, _) => error,
        };
        Self::of(share, bind)
            .map_err(named)?
            .ok_or_else(|| Error::slot_rule(slot, format!("{} is destroyed", bind.described()), rule::DESTROYED))
    }

    /// `None` if the resource is destroyed.
    fn of(share: &Share, bind: &Bind) -> Result<Option<Self>, Error> {
        let Bind { kind, part, sampler, resource } = bind;
        let mut bound = Self {
            kind: *kind,
            resource: resource.clone(),
            object: None,
            part: part.clone(),
            ranges: SmallVec::new(),
            view: None,
            sampler: sampler.clone(),
        };
        if let Some(resource) = resource {
            bound.ranges = part.ranges(resource.template());
            let mut state = resource.state();
            // From now on the journal must report its changes.
            state.bound = true;
            let object = state.storage().cloned();
            drop(state);
            let Some(object) = object else { return Ok(None) };
            bound.view = object.view(share.device(), *kind, part)?;
            bound.object = Some(object);
        }
        Ok(Some(bound))
    }

    /// The state that `bind` has with this object of its resource; `None` for a sampler. The rules were checked before.
    pub(crate) fn over(share: &Share, bind: &Bind, object: Option<&Arc<ResourceObject>>) -> Result<Self, Error> {
        let Bind { kind, part, sampler, resource } = bind;
        let view = object.map(|object| object.view(share.device(), *kind, part)).transpose()?.flatten();
        Ok(Self {
            kind: *kind,
            resource: resource.clone(),
            object: object.cloned(),
            part: part.clone(),
            ranges: resource.as_ref().map(|resource| part.ranges(resource.template())).unwrap_or_default(),
            view,
            sampler: sampler.clone(),
        })
    }

    /// What was bound.
    pub(crate) fn bind(&self) -> Bind {
        let Self { kind, part, sampler, resource, .. } = self;
        Bind { kind: *kind, part: part.clone(), sampler: sampler.clone(), resource: resource.clone() }
    }

    /// Whether binding `bind` would change at most the object.
    pub(crate) fn is(&self, bind: &Bind) -> bool {
        let same = |a: &Option<Arc<Resource>>, b: &Option<Arc<Resource>>| match (a, b) {
            (Some(a), Some(b)) => Arc::ptr_eq(a, b),
            (a, b) => a.is_none() && b.is_none(),
        };
        let number = |sampler: &Option<Sampler>| sampler.as_ref().map(Sampler::number);
        self.kind == bind.kind
            && same(&self.resource, &bind.resource)
            && self.part == bind.part
            && number(&self.sampler) == number(&bind.sampler)
    }

    /// The bound resource, for messages.
    pub(crate) fn described(&self) -> String {
        self.resource.as_ref().map_or_else(|| "a sampler".to_owned(), |resource| resource.described())
    }
}

/// Checks that the part lies in the resource, is aligned, and belongs to the device.
fn check(share: &Arc<Share>, slot: Slot, bind: &Bind) -> Result<(), Error> {
    let Some(resource) = &bind.resource else { return Ok(()) };
    if !resource.is_of(share) {
        let problem = format!("{} is of another context's device", resource.described());
        return Err(Error::slot_rule(slot, problem, rule::DEVICE));
    }
    match (&bind.part, resource.template()) {
        (Part::Image(part), Template::Image(info)) => {
            let problem = |problem| format!("{problem} of {}", resource.described());
            part.check(info).map_err(|p| Error::slot_rule(slot, problem(p), "views lie within their images"))
        }
        (Part::Bytes(range) | Part::Texels(range, _), _) => {
            let size = resource.size();
            if range.start >= range.end || range.end > size {
                let rule = if range.end > size { "range-00342" } else { "range-00341" };
                let (Range { start, end }, what) = (range, resource.described());
                let vuid = format!("VUID-VkDescriptorBufferInfo-{rule}");
                return Err(Error::slot(slot, format!("bytes {start}..{end} of {what} ({vuid})")));
            }
            check_alignment(share, slot, bind.kind, resource, range.start)
        }
        _ => Ok(()),
    }
}

/// Checks the offset of a plain buffer; the driver checks views of texels.
fn check_alignment(share: &Share, slot: Slot, kind: SlotKind, resource: &Resource, offset: u64) -> Result<(), Error> {
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
