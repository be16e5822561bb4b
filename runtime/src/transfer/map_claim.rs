//! The first steps of a mapping: contents that it discards are invalidated, its range is recorded as mapped, and it is
//! decided how the bytes are accessed. All of that is under the buffer's lock.

use std::ops::Range;
use std::sync::Arc;

use super::flags::MapFlags;
use super::mapped_range::MappedRange;
use super::target::check_inside;
use crate::context::{Attempt, ContextInner, Renaming};
use crate::error::{Error, rule};
use crate::ids::Access;
use crate::memory::Memory;
use crate::object::ResourceObject;
use crate::outcome::Action;
use crate::replace;
use crate::resource::{Resource, ResourceState};

/// How a mapping accesses the bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum MapStrategy {
    /// The object is accessed in place, without a wait.
    Direct,
    /// Writes go to a staging buffer and are copied in order by `unmap`.
    Stage,
    /// The object is accessed in place, after a wait for the batches that conflict with this access.
    Wait(Access),
}

impl MapStrategy {
    /// The rule for `bytes` bytes of an object. `holds`: writes to them must be ordered after the object's users.
    fn new(memory: &Memory, object: &ResourceObject, bytes: u64, flags: MapFlags, holds: bool) -> Self {
        match conflicting_access(object, flags, holds) {
            None => Self::Direct,
            Some(access) if flags.intersects(MapFlags::READ | MapFlags::PERSISTENT) => Self::Wait(access),
            Some(_) if bytes <= memory.budget / 4 => Self::Stage,
            Some(access) => Self::Wait(access),
        }
    }
}

/// A range that its resource records as mapped from now on.
pub(super) struct MapClaim {
    pub(super) mapped: MappedRange,
    pub(super) object: Arc<ResourceObject>,
    pub(super) strategy: MapStrategy,
    /// The replacement of the object, if it was replaced.
    pub(super) replaced: Option<Action>,
}

impl MapClaim {
    /// Invalidates the buffer if the flags discard all that it holds, and records the mapping in the same step.
    pub(super) fn new(
        (context, resource): (&ContextInner, &Arc<Resource>),
        range: &Range<u64>,
        flags: MapFlags,
        renaming: &mut Renaming<'_>,
    ) -> Result<Self, Error> {
        let unsynchronized = flags.contains(MapFlags::UNSYNCHRONIZED);
        loop {
            let (state, mut inner) = (context.lock(), resource.state());
            let object = Arc::clone(inner.object(resource, "map")?);
            check_inside("map", resource, &object, range)?;
            check_unmapped(resource, &inner, range)?;
            if !unsynchronized && inner.is_copied(range, access_of(flags)) {
                let ended = context.share.gate().count();
                drop((inner, state));
                renaming.waits |= context.wait_for_copy(ended, (Some(resource.id()), || resource.described()));
                continue;
            }
            if !unsynchronized && renaming.may_rename && discards_all(flags, range, &inner) {
                renaming.busy |= inner.is_busy();
                let claim = |object, inner: &mut ResourceState| {
                    (object, MappedRange::new(context, resource, inner, range, flags))
                };
                if let Attempt::Claimed(action, (object, mapped)) = renaming.attempt((state, inner), claim)? {
                    let replaced = action.is_replaced().then_some(action);
                    return Ok(Self { mapped, object, strategy: MapStrategy::Direct, replaced });
                }
                continue;
            }
            drop(state);
            let (bytes, holds) = (range.end - range.start, inner.write_must_wait(range));
            let strategy = MapStrategy::new(context.share.memory(), &object, bytes, flags, holds);
            if flags.contains(MapFlags::DISCARD_RANGE) && !inner.is_busy() {
                replace::forget(&context.share, resource, &mut inner, range.clone())?;
            }
            // Before the lock is released: from here on no thread maps the same bytes or replaces the object.
            let mapped = MappedRange::new(context, resource, &mut inner, range, flags);
            return Ok(Self { mapped, object, strategy, replaced: None });
        }
    }
}

/// The access that conflicts with unfinished batches, if any. `holds`: writes to the range must be ordered after the
/// object's users.
fn conflicting_access(object: &ResourceObject, flags: MapFlags, holds: bool) -> Option<Access> {
    if flags.contains(MapFlags::UNSYNCHRONIZED) || !holds {
        return None;
    }
    let access = access_of(flags);
    object.usage.is_busy(access).then_some(access)
}

fn access_of(flags: MapFlags) -> Access {
    if flags.contains(MapFlags::WRITE) { Access::Write } else { Access::Read }
}

/// Whether the flags of a mapping of this range discard all that the buffer holds, and it holds something.
fn discards_all(flags: MapFlags, range: &Range<u64>, state: &ResourceState) -> bool {
    let whole = flags.contains(MapFlags::DISCARD_WHOLE)
        || (flags.contains(MapFlags::DISCARD_RANGE) && state.valid().lies_in(range));
    whole && !state.valid().is_empty()
}

/// Checks that no byte of the range is mapped.
fn check_unmapped(resource: &Resource, state: &ResourceState, range: &Range<u64>) -> Result<(), Error> {
    let Some(other) = state.mappings.overlapping(range) else { return Ok(()) };
    let (Range { start, end }, of) = (range, resource.described());
    let problem = format!("map: bytes {start}..{end} of {of}: bytes {}..{} are mapped", other.start, other.end);
    Err(Error::resource(problem, rule::MAPPED_TWICE))
}
