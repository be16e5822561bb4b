//! Host writes: in place, to new storage, staged and copied in order, or after a wait. [`write_strategy`] has the rule.

use std::ops::Range;
use std::sync::Arc;

use ash::vk;
use smallvec::SmallVec;

use super::target::{Target, check_inside, region};
use crate::barrier::Use;
use crate::context::{Attempt, ContextInner, Renaming};
use crate::error::{Error, rule};
use crate::events::Event;
use crate::ids::{Access, CommandKind};
use crate::image::Image;
use crate::mappings::UseOrigin;
use crate::memory::{Memory, Template};
use crate::object::{InitialContents, ResourceObject};
use crate::outcome::{Action, Outcome, Waits};
use crate::replace;
use crate::resource::{HostCopyGuard, Resource, ResourceState};
use crate::trace::About;

/// A buffer of at most this size is renamed even if little of it is written: new storage for it costs almost nothing.
const MAX_RENAMED_WHOLE: u64 = 64 << 10;
/// The largest staging buffer, in bytes.
const STAGING_CHUNK: usize = 4 << 20;

/// How bytes are written to a buffer that is in use.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum WriteStrategy {
    /// The resource gets a new object, and the bytes are written to that.
    Rename,
    /// The bytes are written to a staging buffer and copied from there in order.
    Stage,
    /// The host waits until the object is idle.
    Wait,
}

/// The rule for a write of `len` bytes to a buffer of `size` bytes that is in use.
///
/// 1. **Rename** if no defined byte is lost (`whole`: all of them are overwritten or discarded). That costs one copy by
///    the host and storage for the whole buffer. So a large buffer of which little is written is renamed only if the
///    caller discards it, or if the bytes are too many to be staged.
/// 2. Else **stage**. That costs two copies, and memory for the bytes until the batch has retired. So bytes that would
///    take more than a quarter of the budget of pending memory are not staged.
/// 3. Else **wait**; also if there is no memory for staging.
///
/// Memory pressure: if pending memory (replaced objects and staging buffers of batches that have not retired) is above
/// its budget, the host first waits for the batches, of any context, that use the oldest of it, and reuses it.
fn write_strategy(memory: &Memory, size: u64, len: u64, whole: bool, discard: bool) -> WriteStrategy {
    let rename_pays = discard || size <= MAX_RENAMED_WHOLE || size / 4 <= len;
    let can_stage = len <= memory.budget / 4;
    match (whole, can_stage) {
        (true, _) if rename_pays => WriteStrategy::Rename,
        (_, true) => WriteStrategy::Stage,
        (true, false) => WriteStrategy::Rename,
        (false, false) => WriteStrategy::Wait,
    }
}

impl ContextInner {
    /// Writes bytes. The caller has checked that they fit. `discard`: all other contents of the resource become
    /// undefined.
    pub(super) fn upload(
        &self,
        what: &str,
        resource: &Resource,
        target: Target<'_>,
        bytes: &[u8],
        discard: bool,
    ) -> Result<Outcome, Error> {
        let (mut renaming, mut may_stage) = (Renaming::new(self, resource, discard), true);
        let action = loop {
            let (state, mut inner) = (self.lock(), resource.state());
            let object = Arc::clone(inner.object(resource, what)?);
            let range = target.range(bytes.len() as u64);
            target.check(what, resource, &object, bytes.len() as u64)?;
            check_writable(what, resource, &inner, &range)?;
            if bytes.is_empty() {
                break Action::Nothing;
            }
            if inner.is_copied(&range, Access::Write) {
                let ended = self.share.gate().count();
                drop((inner, state));
                renaming.waits |= self.wait_for_copy(ended, (Some(resource.id()), || resource.described()));
                continue;
            }
            let idle = !inner.is_busy();
            renaming.busy |= !idle;
            if idle || !inner.write_must_wait(&range) {
                drop(state);
                if idle && discard && !inner.mappings.any() {
                    replace::forget(&self.share, resource, &mut inner, resource.whole())?;
                }
                // A later command, or a thread that replaces the object, finds the copy and waits for it if it
                // overlaps.
                let copying = HostCopyGuard::new(resource, &mut inner, range);
                drop(inner);
                self.write_in_place((resource, &object), target, bytes, copying)?;
                break Action::InPlace;
            }
            let whole = renaming.may_rename && (discard || inner.valid().lies_in(&range));
            match write_strategy(self.share.memory(), resource.size(), bytes.len() as u64, whole, discard) {
                WriteStrategy::Rename => {
                    let claim =
                        |object, inner: &mut ResourceState| (object, HostCopyGuard::new(resource, inner, range));
                    if let Attempt::Claimed(action, (object, copying)) = renaming.attempt((state, inner), claim)? {
                        self.write_in_place((resource, &object), target, bytes, copying)?;
                        break if action.is_replaced() { action } else { Action::InPlace };
                    }
                }
                WriteStrategy::Stage if may_stage => {
                    drop((inner, state));
                    // Without memory for it: in place, after a wait.
                    may_stage = self.write_staged(what, (resource, target), bytes, &mut renaming.waits)?;
                    if may_stage {
                        break Action::Staged { bytes: bytes.len() as u64 };
                    }
                }
                WriteStrategy::Stage | WriteStrategy::Wait => {
                    // Noted before the wait: no new use of these bytes begins, so the wait ends however many threads
                    // record.
                    let copying = HostCopyGuard::new(resource, &mut inner, range);
                    drop((inner, state));
                    let waited = self.wait_for((resource, &object), Access::Write, (Waits::USERS, what))?;
                    renaming.waits.note(Waits::USERS, waited);
                    self.write_in_place((resource, &object), target, bytes, copying)?;
                    break Action::InPlace;
                }
            }
        };
        Ok(renaming.finish(action))
    }

    /// Writes bytes to the object itself; `copying` is the claim on them.
    fn write_in_place(
        &self,
        (resource, object): (&Resource, &ResourceObject),
        target: Target<'_>,
        bytes: &[u8],
        copying: HostCopyGuard<'_>,
    ) -> Result<(), Error> {
        let start = self.share.trace().map(|trace| trace.now());
        target.write(object, bytes)?;
        self.share.memory().counters.bytes_written.add(bytes.len() as u64);
        if let (Some(trace), Some(start)) = (self.share.trace(), start) {
            let of = resource.described();
            let about = About { resource: Some(&of), bytes: Some(bytes.len() as u64), batch: None };
            trace.call("write", self.clock.id(), about, start);
        }
        drop(copying);
        Ok(())
    }

    /// Writes bytes to staging buffers and records their copies. Returns false if there is no memory for that.
    fn write_staged(
        &self,
        what: &str,
        (resource, target): (&Resource, Target<'_>),
        bytes: &[u8],
        waits: &mut Waits,
    ) -> Result<bool, Error> {
        let pieces = match self.stage((resource, target), bytes, waits) {
            Err(Error::OutOfMemory(_)) => return Ok(false),
            pieces => pieces?,
        };
        match target {
            Target::Bytes(_) => self.copy_staged((what, UseOrigin::Host), resource, &pieces, waits)?,
            Target::Level(image, level, layer) => self.copy_level(what, &pieces, (image, level, layer), waits)?,
        }
        Ok(true)
    }

    /// A staging buffer of at least `bytes` bytes. Waits for the oldest batches if too much memory is pending, and for
    /// all batches if there is no memory; adds the reasons to `waits`.
    pub(crate) fn staging(
        &self,
        resource: &Resource,
        bytes: u64,
        waits: &mut Waits,
    ) -> Result<Arc<ResourceObject>, Error> {
        waits.note(Waits::BUDGET, self.room_for(resource, bytes)?);
        let memory = self.share.memory();
        let (size, spares) = memory.staging(bytes);
        let make = || ResourceObject::new(memory, None, &Template::Buffer(size), InitialContents::Undefined, spares);
        let mut waited = false;
        let made = self.share.noting_pressure(&mut waited, make);
        waits.note(Waits::PRESSURE, waited);
        let staging = Arc::new(made?);
        staging.recycle_into(spares);
        Ok(staging)
    }

    /// Writes the bytes to staging buffers. Bytes for a buffer are split into chunks of limited size, so that their
    /// staging buffers can be recycled.
    fn stage(
        &self,
        (resource, target): (&Resource, Target<'_>),
        bytes: &[u8],
        waits: &mut Waits,
    ) -> Result<Vec<Staged>, Error> {
        let (max_bytes, mut to) = match target {
            Target::Bytes(offset) => (STAGING_CHUNK, offset),
            Target::Level(..) => (bytes.len(), 0),
        };
        let mut pieces = Vec::new();
        for piece in bytes.chunks(max_bytes) {
            let (size, staging) = (piece.len() as u64, self.staging(resource, piece.len() as u64, waits)?);
            staging.storage().write(0, piece)?;
            pieces.push((staging, vec![vk::BufferCopy { src_offset: 0, dst_offset: to, size }]));
            to += size;
        }
        let bytes = bytes.len() as u64;
        self.share.memory().counters.bytes_staged.add(bytes);
        self.log.note(|| Event::Staged { resource: resource.id(), bytes });
        Ok(pieces)
    }

    /// Records copies from staging buffers to a resource, as one command, so that no other command comes in between.
    pub(super) fn copy_staged(
        &self,
        (what, origin): (&str, UseOrigin),
        resource: &Resource,
        pieces: &[Staged],
        waits: &mut Waits,
    ) -> Result<(), Error> {
        let regions =
            || pieces.iter().flat_map(|(staging, regions)| regions.iter().map(move |region| (staging, region)));
        let target = |region: &vk::BufferCopy| region.dst_offset..region.dst_offset + region.size;
        self.record_noting(waits, |state| {
            let inner = resource.state();
            let object = Arc::clone(inner.object(resource, what)?);
            regions().try_for_each(|(_, region)| check_inside(what, resource, &object, &target(region)))?;
            if origin == UseOrigin::Host {
                regions().try_for_each(|(_, region)| check_writable(what, resource, &inner, &target(region)))?;
            }
            // `transfer` takes the lock of each resource itself.
            drop(inner);
            let read = |staging, region: &vk::BufferCopy| {
                Use::own(staging, region.src_offset..region.src_offset + region.size, Access::Read)
            };
            let write = |region| Use { origin, ..Use::of(resource, &object, target(region), Access::Write) };
            let uses = regions().flat_map(|(staging, region)| [read(staging, region), write(region)]);
            let (uses, to) = (uses.collect::<SmallVec<[_; 4]>>(), object.buffer()?);
            let froms = pieces.iter().map(|(staging, _)| staging.buffer()).collect::<Result<SmallVec<[_; 4]>, _>>()?;
            state.transfer(CommandKind::Write, &uses, |commands| {
                let mut copies = froms.iter().zip(pieces);
                copies.try_for_each(|(from, (_, regions))| commands.copy_buffer(from, to, regions))
            })?;
            if let Some(batch) = state.timeline.open() {
                // They count as pending memory until the batch has retired, so that a loop of writes cannot exhaust
                // memory.
                batch.retain_bytes(regions().map(|(_, region)| region.size).sum());
            }
            Ok(())
        })
    }

    /// Records a copy of a staging buffer to a level of a layer. `pieces` has one element.
    fn copy_level(
        &self,
        what: &str,
        pieces: &[Staged],
        (image, level, layer): (&Image, u32, u32),
        waits: &mut Waits,
    ) -> Result<(), Error> {
        let Some((staging, bytes)) = pieces.iter().find_map(|(staging, to)| Some((staging, to.first()?.size))) else {
            return Ok(());
        };
        let (resource, target) = (image.resource(), Target::Level(image, level, layer));
        let range = target.range(bytes);
        self.record_noting(waits, |state| {
            let object = resource.object_for_command(what)?;
            target.check(what, resource, &object, bytes)?;
            let (from, to) = (staging.buffer()?, object.image()?);
            let read = Use::own(staging, 0..bytes, Access::Read);
            let write = Use::of(resource, &object, range.clone(), Access::Write);
            let regions = [region(to.info(), level, layer)];
            state.transfer(CommandKind::Write, &[read, write], |commands| {
                commands.copy_buffer_to_image(from, to, &regions)
            })?;
            if let Some(batch) = state.timeline.open() {
                batch.retain_bytes(bytes);
            }
            Ok(())
        })
    }
}

/// A staging buffer, and the regions of it to be copied to a buffer.
pub(super) type Staged = (Arc<ResourceObject>, Vec<vk::BufferCopy>);

/// Checks that no mapping forbids host writes to the range.
fn check_writable(what: &str, resource: &Resource, state: &ResourceState, range: &Range<u64>) -> Result<(), Error> {
    if !state.mappings.forbid_writes(range) {
        return Ok(());
    }
    let (Range { start, end }, of) = (range, resource.described());
    Err(Error::resource(format!("{what}: bytes {start}..{end} of {of} are mapped"), rule::MAPPED))
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
        // Too many bytes to be staged, but a rename loses nothing.
        assert_eq!(write_strategy(12 << 20, (5 << 20) / 2, true, false), WriteStrategy::Rename);
    }
}
