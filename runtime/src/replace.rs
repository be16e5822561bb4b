//! The only place where a resource changes storage, and what follows from that.
//!
//! Zink's rules. Nothing valid: nothing to do. Idle: the contents are forgotten, the object stays. In use: a new object
//! made like the old one, all slots rebound, cached descriptor sets that name the old object dropped. The old object lives
//! until the last batch that uses it has retired; then its storage is spare.

use std::ops::Range;
use std::sync::Arc;

use ash::vk;
use parking_lot::MutexGuard;
use smallvec::SmallVec;
use spelter_driver::ImageInfo;

use crate::barrier::Use;
use crate::batch::Refusal;
use crate::context::State;
use crate::error::Error;
use crate::journal::{Event, News};
use crate::memory::Template;
use crate::object::{Contents, ResourceObject};
use crate::resource::{self, Resource, ResourceId};
use crate::serial::Access;
use crate::share::Share;
use crate::slot::SlotKind;
use crate::valid::Valid;
use crate::view;

/// What an invalidation did.
#[derive(Debug)]
#[must_use = "the old object is dropped when no lock is held"]
pub(crate) enum Invalidated {
    /// No byte held defined data.
    NothingValid,
    /// It was idle: the contents are forgotten, the object stayed.
    Forgotten,
    /// It was in use: it has a new object now.
    Replaced(Garbage),
    /// It is in use and must not be replaced, or there is no memory for a new object. Nothing has changed.
    Kept(Reason),
}

/// Why an object stayed, though it is in use.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Reason {
    /// The host has it mapped.
    Mapped,
    /// No memory could be had.
    Memory,
    /// Replaced objects have too much memory: the caller makes room first ([`Inner::room_for`](crate::context::Inner)),
    /// when no lock is held.
    Room,
    /// What would have to be kept is larger than what is forgotten.
    Rest,
}

/// Whether a rename asks if there is room for what it leaves pending.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Room {
    /// If there is none, nothing is done.
    Wanted,
    /// The caller has waited for it. It may have gone to others since; nobody waits twice.
    Made,
}

/// Handles that are dropped when no lock is held: the last one frees memory.
#[derive(Debug, Default)]
pub(crate) struct Garbage {
    _objects: Vec<Arc<ResourceObject>>,
}

/// Forgets what a resource holds. The slots of `state`'s context name the new object at once, those of other contexts at
/// their next dispatch. The resource is locked by the caller: why it may be replaced is still so.
pub(crate) fn invalidate(
    share: &Share,
    state: &mut State,
    (resource, mut inner): (&Resource, MutexGuard<'_, resource::State>),
    room: Room,
) -> Result<Invalidated, Error> {
    let counters = &share.memory().counters;
    let old = Arc::clone(inner.object(resource, "invalidate")?);
    if inner.valid.is_empty() {
        counters.invalidations_empty.one();
        return Ok(Invalidated::NothingValid);
    }
    if inner.maps.any() {
        counters.invalidations_refused.one();
        return Ok(Invalidated::Kept(Reason::Mapped));
    }
    if !old.usage.is_busy(Access::Write) {
        forget(share, resource, &mut inner, resource.whole())?;
        counters.invalidations_idle.one();
        return Ok(Invalidated::Forgotten);
    }
    // What has retired meanwhile gives its storage.
    state.timeline.retire();
    let new = match another(share, resource, room)? {
        Ok(new) => new,
        Err(reason) => return Ok(Invalidated::Kept(reason)),
    };
    Ok(Invalidated::Replaced(swap(share, state, (resource, inner), new, Valid::new())))
}

/// As [`invalidate`] for subresources of an image, where others hold data. In use, the image is replaced if what is kept is
/// no larger than what is forgotten: it is copied over, in order. If it is larger nothing is done.
pub(crate) fn invalidate_part(
    share: &Share,
    state: &mut State,
    (resource, info): (&Resource, &ImageInfo),
    part: &[Range<u64>],
    room: Room,
) -> Result<Invalidated, Refusal> {
    // Before the resource is locked: this may submit.
    state.timeline.batch()?;
    let counters = &share.memory().counters;
    let mut inner = resource.state();
    let old = Arc::clone(inner.object(resource, "invalidate")?);
    let mut kept = inner.valid.clone();
    part.iter().for_each(|range| kept.remove(range.clone()));
    if kept == inner.valid {
        counters.invalidations_empty.one();
        return Ok(Invalidated::NothingValid);
    }
    if kept.is_empty() {
        return Ok(invalidate(share, state, (resource, inner), room)?);
    }
    if !old.usage.is_busy(Access::Write) {
        part.iter().try_for_each(|range| forget(share, resource, &mut inner, range.clone()))?;
        counters.invalidations_idle.one();
        return Ok(Invalidated::Forgotten);
    }
    let texels = |range: Range<u64>| range.map(|number| view::subresource(info, number).1).map(texels_of).sum::<u64>();
    if kept.iter().map(texels).sum::<u64>() > part.iter().cloned().map(texels).sum() {
        counters.invalidations_refused.one();
        return Ok(Invalidated::Kept(Reason::Rest));
    }
    let new = match another(share, resource, room)? {
        Ok(new) => new,
        Err(reason) => return Ok(Invalidated::Kept(reason)),
    };
    // The resource is locked.
    let uses = |object, access| kept.iter().map(move |range| Use::own(object, range, access));
    let uses: SmallVec<[_; 4]> = uses(&old, Access::Read).chain(uses(&new, Access::Write)).collect();
    let regions: Vec<_> = kept.iter().flatten().map(|number| whole(info, number)).collect();
    let (from, to) = (old.image()?, new.image()?);
    state.transfer(&uses, |commands| commands.copy_image(from, to, &regions))?;
    drop(uses);
    Ok(Invalidated::Replaced(swap(share, state, (resource, inner), new, kept)))
}

fn texels_of(size: vk::Extent3D) -> u64 {
    u64::from(size.width) * u64::from(size.height) * u64::from(size.depth)
}

/// A copy of a whole subresource to the same one of another image.
fn whole(info: &ImageInfo, number: u64) -> vk::ImageCopy {
    let (layers, extent) = view::subresource(info, number);
    vk::ImageCopy { src_subresource: layers, dst_subresource: layers, extent, ..Default::default() }
}

/// A new object like the one that a resource has, or why there is none: no memory, or too much that is pending.
fn another(share: &Share, resource: &Resource, room: Room) -> Result<Result<Arc<ResourceObject>, Reason>, Error> {
    if room == Room::Wanted && !share.memory().has_room(resource.size()) {
        return Ok(Err(Reason::Room));
    }
    match ResourceObject::new(share.memory(), resource.template(), Contents::Undefined, &resource.spares) {
        Ok(new) => Ok(Ok(Arc::new(new))),
        Err(Error::OutOfMemory(_)) => {
            share.memory().counters.renames_without_memory.one();
            Ok(Err(Reason::Memory))
        }
        Err(error) => Err(error),
    }
}

/// Gives a resource another object, of which that much is valid, and whoever names the old one the new one.
fn swap(
    share: &Share,
    state: &mut State,
    (resource, mut inner): (&Resource, MutexGuard<'_, resource::State>),
    new: Arc<ResourceObject>,
    valid: Valid,
) -> Garbage {
    let counters = &share.memory().counters;
    inner.valid = valid;
    let old = inner.object.replace(new);
    inner.generation += 1;
    counters.renames.one();
    let old_id = old.as_ref().map(|old| old.id());
    if inner.bound {
        // Under the lock: who finds the new object finds the event.
        let number = share.journal().note(Event { resource: resource.id(), lost: old_id });
        if state.journal_seen + 1 == number {
            state.journal_seen = number;
        }
    }
    drop(inner);
    old.iter().for_each(|old| old.leave_to(&resource.spares));
    // The open batch may be what keeps the old object: one that keeps much is submitted early.
    if let Some(batch) = state.timeline.open() {
        batch.owe(resource.size());
    }
    state.trace_instant(|| format!("rename {}", resource.described()));
    let mut garbage = rebind(share, state, resource);
    old_id.inspect(|old| state.sets.drop_object(*old, counters));
    garbage._objects.extend(old);
    garbage
}

/// Bytes of an idle resource hold nothing any more. What is bound where kernels can write is valid again from the next
/// dispatch on: its context reads so in the journal.
///
/// Poisoning overwrites them.
pub(crate) fn forget(
    share: &Share,
    resource: &Resource,
    state: &mut resource::State,
    range: Range<u64>,
) -> Result<(), Error> {
    if state.valid.intersects(&range) {
        if let Some(object) = state.object.as_ref().filter(|_| share.memory().poison) {
            match resource.template() {
                Template::Buffer(_) => object.storage().poison_range(range.clone())?,
                Template::Image(info) => range.clone().try_for_each(|number| poison(object, info, number))?,
            }
        }
        state.valid.remove(range);
        if state.bound {
            share.journal().note(Event { resource: resource.id(), lost: None });
        }
    }
    Ok(())
}

/// Overwrites a level of a layer of an image.
fn poison(object: &ResourceObject, info: &ImageInfo, number: u64) -> Result<(), Error> {
    let (vk::ImageSubresourceLayers { mip_level, base_array_layer, .. }, _) = view::subresource(info, number);
    let vk::SubresourceLayout { offset, size, .. } = object.image()?.subresource_layout(mip_level, base_array_layer);
    object.storage().poison_range(offset..offset + size)
}

/// Makes the slots that a resource occupies in this context name its object: what binding it did, once more.
#[must_use = "dropped when no lock is held"]
pub(crate) fn rebind(share: &Share, state: &mut State, resource: &Resource) -> Garbage {
    let counters = &share.memory().counters;
    let mut inner = resource.state();
    let object = inner.object.clone();
    let mut garbage = Garbage::default();
    for kind in SlotKind::ALL {
        for at in 0..state.bindings.slots_of(resource.id(), kind).len() {
            let id = state.bindings.slots_of(resource.id(), kind)[at];
            let Some(bound) = state.bindings.bound(id) else { continue };
            if kind.can_write() && object.is_some() {
                // The kernel may write there, so it counts as written.
                bound.ranges.iter().for_each(|range| inner.valid.add(range.clone()));
            }
            if bound.object.as_ref().map(|object| object.id()) == object.as_ref().map(|object| object.id()) {
                continue;
            }
            match kind {
                SlotKind::UniformBuffer => counters.rebinds_uniform.one(),
                SlotKind::StorageBuffer => counters.rebinds_storage.one(),
                SlotKind::SamplerView => counters.rebinds_sampler_view.one(),
                SlotKind::StorageImage => counters.rebinds_image.one(),
                SlotKind::Sampler => {}
            }
            let (object, view) = match &object {
                Some(object) => (Some(object), bound.part.view(share.device(), kind, object)),
                None => (None, Ok(None)),
            };
            // Views of an object like the old one can be made as those of the old one were.
            let view = view.ok().flatten();
            garbage._objects.extend(state.bindings.rename(id, object, view));
        }
    }
    garbage
}

/// Takes notice of what happened to resources elsewhere, if anything did.
#[must_use = "dropped when no lock is held"]
pub(crate) fn catch_up(share: &Share, state: &mut State) -> Option<Garbage> {
    if share.journal().count() == state.journal_seen {
        return None;
    }
    let (seen, news) = share.journal().since(state.journal_seen);
    state.journal_seen = seen;
    let resources: Vec<ResourceId> = match news {
        News::Events(events) => {
            for lost in events.iter().filter_map(|event| event.lost) {
                state.sets.drop_object(lost, &share.memory().counters);
            }
            let mut resources: Vec<_> = events.into_iter().map(|event| event.resource).collect();
            resources.sort_unstable();
            resources.dedup();
            resources
        }
        News::TooMany => {
            state.sets.clear(&share.memory().counters);
            state.bindings.resources()
        }
    };
    let mut garbage = Garbage::default();
    for id in resources {
        if let Some(resource) = state.bindings.resource(id).cloned() {
            garbage._objects.append(&mut rebind(share, state, &resource)._objects);
        }
    }
    Some(garbage)
}
