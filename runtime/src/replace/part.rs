//! Invalidation of some levels and layers of an image, while others hold data.
//!
//! An idle image forgets them in place. For an image in use there are two methods, neither of which waits:
//!
//! - If the kept levels have no more texels than the forgotten ones (of this call and of earlier calls while the image
//!   was in use), the image gets a new object and the kept levels are copied over, in order.
//! - Otherwise that copy would cost more than it gains. The image keeps its object. The part holds no defined data from
//!   now on, and later writes to it are ordered after its current users; host writes are staged for that.

use std::ops::Range;
use std::sync::Arc;

use ash::vk;
use smallvec::SmallVec;
use spelter_driver::ImageInfo;

use super::{Fate, Garbage, Invalidated, Room, another, forget, forget_in_use, invalidate, swap};
use crate::barrier::Use;
use crate::batch::Refusal;
use crate::context_state::ContextState;
use crate::events::Event;
use crate::ids::{Access, CommandKind};
use crate::object::ResourceObject;
use crate::outcome::Action;
use crate::resource::Resource;
use crate::share::Share;
use crate::view;

/// Invalidates `part` of an image, by the rule above. With poisoning, `junk` has the part's new contents.
pub(crate) fn invalidate_part(
    share: &Share,
    state: &mut ContextState,
    resource: &Resource,
    (part, junk): (&[Range<u64>], Option<&Arc<ResourceObject>>),
    room: Room,
) -> Result<Invalidated, Refusal> {
    // Before the resource is locked, since this may submit.
    state.timeline.batch()?;
    let counters = &share.memory().counters;
    let mut inner = resource.state();
    let old = Arc::clone(inner.object(resource, "invalidate")?);
    let info = old.image()?.info();
    let mut kept = inner.valid().clone();
    part.iter().for_each(|range| kept.remove(range.clone()));
    if kept == *inner.valid() {
        counters.invalidations_empty.one();
        return Ok(Invalidated::Done(Action::NothingValid, Garbage::default()));
    }
    if kept.is_empty() {
        return Ok(invalidate(share, state, (resource, &mut inner), room)?);
    }
    if inner.fate() == Fate::Idle {
        part.iter().try_for_each(|range| forget(share, resource, &mut inner, range.clone()))?;
        counters.invalidations_idle.one();
        state.log.note(|| Event::Forgotten { resource: resource.id(), in_order: false });
        return Ok(Invalidated::Done(Action::Forgotten, Garbage::default()));
    }
    let texels = |range: Range<u64>| range.map(|number| view::subresource(info, number).1).map(texels_of).sum::<u64>();
    let mut forgotten = inner.forgotten_in_use().clone();
    part.iter().for_each(|range| forgotten.add(range.clone()));
    let is_small = kept.iter().map(texels).sum::<u64>() > forgotten.iter().map(texels).sum();
    if is_small || room == Room::Never {
        if let Some(junk) = junk {
            overwrite(state, (&old, info), part, junk)?;
        }
        forget_in_use(share, (resource, &mut inner), part, &state.log);
        return Ok(Invalidated::Done(Action::ForgottenInOrder, Garbage::default()));
    }
    if kept.iter().any(|range| inner.is_copied(&range, Access::Read)) {
        // Wait for the host's copies before these levels are copied over.
        return Err(Refusal::Copying(share.gate().count(), Some(resource.id())));
    }
    let new = match another(share, (resource, &old), room)? {
        Ok(new) => new,
        Err(reason) => return Ok(Invalidated::Kept(reason)),
    };
    // The resource is locked.
    let uses = |object, access| kept.iter().map(move |range| Use::own(object, range, access));
    let uses: SmallVec<[_; 4]> = uses(&old, Access::Read).chain(uses(&new, Access::Write)).collect();
    let regions: Vec<_> = kept.iter().flatten().map(|number| whole(info, number)).collect();
    let (from, to) = (old.image()?, new.image()?);
    state.transfer(CommandKind::Copy, &uses, |commands| commands.copy_image(from, to, &regions))?;
    drop(uses);
    counters.renames.one();
    let (action, garbage) = swap(share, state, (resource, &mut inner), (new, kept));
    Ok(Invalidated::Done(action, garbage))
}

/// Records that levels are overwritten with junk; `junk` is as large as the largest level, or the image was respecified
/// meanwhile and the driver rejects the copy.
fn overwrite(
    state: &mut ContextState,
    (object, info): (&Arc<ResourceObject>, &ImageInfo),
    part: &[Range<u64>],
    junk: &Arc<ResourceObject>,
) -> Result<(), Refusal> {
    let written = part.iter().map(|range| Use::own(object, range.clone(), Access::Write));
    let uses: SmallVec<[_; 4]> = written.chain([Use::own(junk, 0..junk.size(), Access::Read)]).collect();
    let regions: Vec<_> = part
        .iter()
        .cloned()
        .flatten()
        .map(|number| view::subresource(info, number))
        .map(|(image_subresource, image_extent)| vk::BufferImageCopy {
            image_subresource,
            image_extent,
            ..Default::default()
        })
        .collect();
    let (from, to) = (junk.buffer()?, object.image()?);
    state.transfer(CommandKind::Copy, &uses, |commands| commands.copy_buffer_to_image(from, to, &regions))
}

fn texels_of(size: vk::Extent3D) -> u64 {
    u64::from(size.width) * u64::from(size.height) * u64::from(size.depth)
}

/// A copy of a whole subresource to the same one of another image.
fn whole(info: &ImageInfo, number: u64) -> vk::ImageCopy {
    let (layers, extent) = view::subresource(info, number);
    vk::ImageCopy { src_subresource: layers, dst_subresource: layers, extent, ..Default::default() }
}
