//! Writing from the host: in place, to new storage, staged and copied in order, or after a wait. The rule is in
//! [`write_strategy`].

use std::ops::Range;
use std::sync::Arc;

use ash::vk;
use smallvec::SmallVec;

use super::target::{Target, region};
use crate::barrier::Use;
use crate::context::ContextInner;
use crate::error::{Error, rule};
use crate::ids::Access;
use crate::image::Image;
use crate::maps::By;
use crate::memory::{Memory, Template};
use crate::object::{Contents, ResourceObject};
use crate::replace::{self, Invalidated, KeptReason, Room};
use crate::resource::{HostCopyGuard, Resource, ResourceState};

/// A buffer of this size or less is renamed however little of it is written: new storage costs next to nothing.
const SMALL: u64 = 64 << 10;
/// The most bytes of one staging buffer.
const STAGING_CHUNK: usize = 4 << 20;

/// How bytes get into a buffer that is in use.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum WriteStrategy {
    /// The resource gets a new object, and that the bytes.
    Rename,
    /// The bytes go to a staging buffer, and from there in order.
    Stage,
    /// The host waits until the object is idle.
    Wait,
}

/// The rule for `len` bytes to a buffer of `size` bytes that is in use.
///
/// 1. Where nothing is lost by it (`whole`: all defined bytes are overwritten or discarded), **rename**. It costs one
///    copy by the host, and storage for the whole buffer; so a large buffer of which little is written is renamed only
///    if the caller discards it, or if it is too much to be staged.
/// 2. Else **stage**: two copies, and memory for the bytes until the batch has retired; so not what would take more
///    than a quarter of the memory that may be pending.
/// 3. Else **wait**. So it is if there is no memory for staging.
///
/// Pressure: where pending memory (replaced objects and staging buffers of batches that have not retired) is above its
/// budget, one waits first for the batches, of whatever context, that use the oldest of it: it is then used again.
fn write_strategy(memory: &Memory, size: u64, len: u64, whole: bool, discard: bool) -> WriteStrategy {
    let rename_pays = discard || size <= SMALL || size / 4 <= len;
    let can_stage = len <= memory.budget / 4;
    match (whole, can_stage) {
        (true, _) if rename_pays => WriteStrategy::Rename,
        (_, true) => WriteStrategy::Stage,
        (true, false) => WriteStrategy::Rename,
        (false, false) => WriteStrategy::Wait,
    }
}

impl ContextInner {
    /// Writes bytes, which fit in; `discard`: whatever else the resource held is not wanted.
    pub(super) fn upload(
        &self,
        what: &str,
        resource: &Resource,
        target: Target<'_>,
        bytes: &[u8],
        discard: bool,
    ) -> Result<(), Error> {
        let (mut may_rename, mut may_stage, mut room) = (true, true, Room::Wanted);
        // Whether the object was found in use, and whether the host waited.
        let (mut busy, mut waited) = (false, false);
        loop {
            let mut state = self.lock();
            let mut inner = resource.state();
            let object = Arc::clone(inner.object(resource, what)?);
            let range = target.range(bytes.len() as u64);
            check_writable(what, resource, &inner, &range)?;
            if bytes.is_empty() {
                return Ok(());
            }
            if inner.is_copied(&range, Access::Write) {
                let ended = self.share.gate().count();
                drop((inner, state));
                self.share.gate().wait(ended);
                continue;
            }
            let idle = !inner.is_busy();
            busy |= !idle;
            if idle || !inner.write_must_wait(&range) {
                drop(state);
                if idle && discard && !inner.maps.any() {
                    replace::forget(&self.share, resource, &mut inner, resource.whole())?;
                }
                // Who uses the bytes, or replaces the object, comes after this, and waits for it if he must.
                let copying = HostCopyGuard::new(resource, &mut inner, range);
                drop(inner);
                self.write_in_place(&object, target, bytes)?;
                drop(copying);
                break;
            }
            let whole = discard || inner.valid().lies_in(&range);
            match write_strategy(self.share.memory(), resource.size(), bytes.len() as u64, whole && may_rename, discard)
            {
                WriteStrategy::Rename => {
                    match replace::invalidate(&self.share, &mut state, (resource, &mut inner), room)? {
                        Invalidated::Done(garbage) => {
                            // In the same step as the invalidation: a thread that looks from now on finds a copy to these bytes.
                            let claimed = idle_object(&inner)
                                .map(|object| (object, HostCopyGuard::new(resource, &mut inner, range)));
                            drop((inner, state));
                            drop(garbage);
                            if let Some((object, copying)) = claimed {
                                self.write_in_place(&object, target, bytes)?;
                                drop(copying);
                                break;
                            }
                            // Other contexts use it again.
                            may_rename = false;
                        }
                        Invalidated::Kept(KeptReason::Room) => {
                            drop((inner, state));
                            waited |= self.room_for(resource.size())?;
                            room = Room::Made;
                        }
                        Invalidated::Kept(KeptReason::Memory(object)) => {
                            drop((inner, state));
                            waited |= self.wait_without_memory(&object)?;
                            // The object stays, and discarded contents are forgotten in place. If other contexts use it again,
                            // these bytes are ordered after those uses.
                            (may_rename, room) = (discard, Room::Never);
                        }
                        Invalidated::Kept(KeptReason::Mapped) => may_rename = false,
                    }
                }
                WriteStrategy::Stage if may_stage => {
                    drop((inner, state));
                    match self.stage(target, bytes, &mut waited) {
                        Ok(pieces) => {
                            match target {
                                Target::Bytes(_) => self.copy_staged((what, By::Host), resource, &pieces)?,
                                Target::Level(image, level, layer) => {
                                    self.copy_level(what, &pieces, (image, level, layer))?;
                                }
                            }
                            break;
                        }
                        // The bytes that are there have room for these: in place, after a wait.
                        Err(Error::OutOfMemory(_)) => may_stage = false,
                        Err(error) => return Err(error),
                    }
                }
                WriteStrategy::Stage | WriteStrategy::Wait => {
                    // Written down first: nobody begins to use these bytes meanwhile, however many there are who would.
                    let copying = HostCopyGuard::new(resource, &mut inner, range);
                    drop((inner, state));
                    waited |= self.wait_for(&object, Access::Write, what)?;
                    self.write_in_place(&object, target, bytes)?;
                    drop(copying);
                    break;
                }
            }
        }
        self.count_stall(busy, waited);
        Ok(())
    }

    /// The host wrote what was in use, or was not.
    pub(super) fn count_stall(&self, busy: bool, waited: bool) {
        let counters = &self.share.memory().counters;
        match (busy, waited) {
            (_, true) => counters.stalls_taken.one(),
            (true, false) => counters.stalls_avoided.one(),
            (false, false) => {}
        }
    }

    fn write_in_place(&self, object: &ResourceObject, target: Target<'_>, bytes: &[u8]) -> Result<(), Error> {
        let start = self.share.trace().map(|trace| trace.now());
        target.write(object, bytes)?;
        self.share.memory().counters.bytes_written.add(bytes.len() as u64);
        if let (Some(trace), Some(start)) = (self.share.trace(), start) {
            let args = serde_json::json!({ "bytes": bytes.len() });
            trace.span(self.clock.id(), "write".to_owned(), start, args);
        }
        Ok(())
    }

    /// A staging buffer of at least so many bytes. Waits for the oldest batches if too much is pending, and for all if
    /// there is no memory; `waited` tells.
    pub(crate) fn staging(&self, bytes: u64, waited: &mut bool) -> Result<Arc<ResourceObject>, Error> {
        *waited |= self.room_for(bytes)?;
        let memory = self.share.memory();
        let (size, spares) = memory.staging(bytes);
        let make = || ResourceObject::new(memory, &Template::Buffer(size), Contents::Undefined, spares);
        let staging = Arc::new(self.share.noting_pressure(waited, make)?);
        staging.recycle_into(spares);
        Ok(staging)
    }

    /// Bytes in staging buffers, each with where it goes: several for those of a buffer, so that they are used again.
    fn stage(&self, target: Target<'_>, bytes: &[u8], waited: &mut bool) -> Result<Vec<Staged>, Error> {
        let (most, mut to) = match target {
            Target::Bytes(offset) => (STAGING_CHUNK, offset),
            Target::Level(..) => (bytes.len(), 0),
        };
        let mut pieces = Vec::new();
        for piece in bytes.chunks(most) {
            let (size, staging) = (piece.len() as u64, self.staging(piece.len() as u64, waited)?);
            staging.storage().write(0, piece)?;
            pieces.push((staging, vec![vk::BufferCopy { src_offset: 0, dst_offset: to, size }]));
            to += size;
        }
        self.share.memory().counters.bytes_staged.add(bytes.len() as u64);
        Ok(pieces)
    }

    /// Records copies from staging buffers to a resource, as one command: nobody comes between them.
    pub(super) fn copy_staged(
        &self,
        (what, by): (&str, By),
        resource: &Resource,
        pieces: &[Staged],
    ) -> Result<(), Error> {
        let regions =
            || pieces.iter().flat_map(|(staging, regions)| regions.iter().map(move |region| (staging, region)));
        let target = |region: &vk::BufferCopy| region.dst_offset..region.dst_offset + region.size;
        self.record(|state| {
            let inner = resource.state();
            let object = Arc::clone(inner.object(resource, what)?);
            if by == By::Host {
                regions().try_for_each(|(_, region)| check_writable(what, resource, &inner, &target(region)))?;
            }
            drop(inner);
            let read = |staging, region: &vk::BufferCopy| {
                Use::own(staging, region.src_offset..region.src_offset + region.size, Access::Read)
            };
            let write = |region| Use { by, ..Use::of(resource, &object, target(region), Access::Write) };
            let uses = regions().flat_map(|(staging, region)| [read(staging, region), write(region)]);
            let (uses, to) = (uses.collect::<SmallVec<[_; 4]>>(), object.buffer()?);
            let froms = pieces.iter().map(|(staging, _)| staging.buffer()).collect::<Result<SmallVec<[_; 4]>, _>>()?;
            state.transfer(&uses, |commands| {
                let mut copies = froms.iter().zip(pieces);
                copies.try_for_each(|(from, (_, regions))| commands.copy_buffer(from, to, regions))
            })?;
            if let Some(batch) = state.timeline.open() {
                batch.retain_bytes(regions().map(|(_, region)| region.size).sum());
            }
            Ok(())
        })
    }

    /// Records a copy of a staging buffer, which is all of them, to a level of a layer.
    fn copy_level(
        &self,
        what: &str,
        pieces: &[Staged],
        (image, level, layer): (&Image, u32, u32),
    ) -> Result<(), Error> {
        let Some((staging, bytes)) = pieces.iter().find_map(|(staging, to)| Some((staging, to.first()?.size))) else {
            return Ok(());
        };
        let (resource, range) = (image.resource(), Target::Level(image, level, layer).range(bytes));
        self.record(|state| {
            let object = resource.object_for_command(what)?;
            let (from, to) = (staging.buffer()?, object.image()?);
            let read = Use::own(staging, 0..bytes, Access::Read);
            let write = Use::of(resource, &object, range.clone(), Access::Write);
            let regions = [region(image, level, layer)];
            state.transfer(&[read, write], |commands| commands.copy_buffer_to_image(from, to, &regions))?;
            if let Some(batch) = state.timeline.open() {
                batch.retain_bytes(bytes);
            }
            Ok(())
        })
    }
}

/// A staging buffer, and what of it goes where in a buffer.
pub(super) type Staged = (Arc<ResourceObject>, Vec<vk::BufferCopy>);

/// The bytes are not mapped, or persistently.
fn check_writable(what: &str, resource: &Resource, state: &ResourceState, range: &Range<u64>) -> Result<(), Error> {
    if !state.maps.forbid_writes(range) {
        return Ok(());
    }
    let (Range { start, end }, of) = (range, resource.described());
    Err(Error::resource(format!("{what}: bytes {start}..{end} of {of} are mapped"), rule::MAPPED))
}

/// The object of a resource that no batch uses.
pub(super) fn idle_object(state: &ResourceState) -> Option<Arc<ResourceObject>> {
    if state.is_busy() { None } else { state.storage().cloned() }
}

#[cfg(test)]
mod tests {
    use spelter_driver::{Device, DeviceOptions};

    use super::*;

    #[test]
    fn the_rule_weighs_size() {
        let options = DeviceOptions { workers: 1, heap_size: 64 << 20, ..DeviceOptions::default() };
        let memory = Memory::new(&Device::new(options).unwrap(), false);
        assert_eq!(memory.budget, 8 << 20);
        let write_strategy = |size, len, whole, discard| write_strategy(&memory, size, len, whole, discard);
        assert_eq!(write_strategy(1 << 20, 1 << 20, true, false), WriteStrategy::Rename);
        assert_eq!(write_strategy(60 << 10, 4, true, false), WriteStrategy::Rename);
        assert_eq!(write_strategy(1 << 20, 4, true, false), WriteStrategy::Stage);
        assert_eq!(write_strategy(1 << 20, 4, true, true), WriteStrategy::Rename);
        assert_eq!(write_strategy(1 << 20, 1 << 19, false, false), WriteStrategy::Stage);
        assert_eq!(write_strategy(32 << 20, 16 << 20, false, false), WriteStrategy::Wait);
        // Too much to be staged, but nothing is lost by a rename.
        assert_eq!(write_strategy(12 << 20, (5 << 20) / 2, true, false), WriteStrategy::Rename);
    }
}
