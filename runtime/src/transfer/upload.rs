//! Writing from the host: in place, to new storage, staged and copied in order, or after a wait. The rule is in [`way`].

use std::sync::Arc;

use ash::vk;

use crate::barrier::Use;
use crate::batch::Moment;
use crate::context::{Inner, State};
use crate::error::{Error, rule};
use crate::memory::{Memory, Template};
use crate::object::{Contents, ResourceObject};
use crate::replace::{self, Garbage, Invalidated, Reason};
use crate::resource::Resource;
use crate::serial::Access;

/// A buffer of this size or less is renamed however little of it is written: new storage costs next to nothing.
const SMALL: u64 = 64 << 10;
/// The most bytes of one staging buffer.
const PIECE: u64 = 4 << 20;

/// How bytes get into a buffer that is in use.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Way {
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
///    if the caller discards it.
/// 2. Else **stage**: two copies, and memory for the bytes until the batch has retired; so not what would take more than
///    a quarter of the memory that may be pending.
/// 3. Else **wait**.
///
/// Pressure: where pending memory (replaced objects and staging buffers of batches that have not retired) is above its
/// budget, one waits first for the oldest batch in flight, whose memory is then used again.
fn way(memory: &Memory, size: u64, len: u64, whole: bool, discard: bool) -> Way {
    let rename_pays = discard || size <= SMALL || size / 4 <= len;
    if whole && rename_pays {
        Way::Rename
    } else if len <= memory.budget / 4 {
        Way::Stage
    } else {
        Way::Wait
    }
}

impl Inner {
    /// Writes bytes at `offset`, which are inside; `discard`: whatever else the buffer held is not wanted.
    pub(crate) fn upload(
        &self,
        what: &str,
        resource: &Resource,
        offset: u64,
        bytes: &[u8],
        discard: bool,
    ) -> Result<(), Error> {
        let (range, counters) = (offset..offset + bytes.len() as u64, &self.share.memory().counters);
        let mut may_rename = true;
        loop {
            let mut state = self.lock();
            let mut inner = resource.state();
            let object = Arc::clone(inner.object(resource, what)?);
            if inner.maps.forbid_writes(&range) {
                let problem =
                    format!("{what}: bytes {}..{} of {} are mapped", range.start, range.end, resource.described());
                return Err(Error::resource(problem, rule::MAPPED));
            }
            if bytes.is_empty() {
                return Ok(());
            }
            let idle = !object.usage.is_busy(Access::Write);
            if idle || !inner.valid.intersects(&range) {
                if idle && discard && !inner.maps.any() {
                    replace::forget(&self.share, resource, &mut inner, resource.whole());
                }
                if !idle {
                    counters.stalls_avoided.one();
                }
                inner.valid.add(range);
                drop(inner);
                drop(state);
                return self.write_in_place(&object, offset, bytes);
            }
            let whole = discard || inner.valid.lies_in(&range);
            drop(inner);
            match way(self.share.memory(), resource.size(), bytes.len() as u64, whole && may_rename, discard) {
                Way::Rename => {
                    if let Some(oldest) = self.under_pressure(&mut state, resource.size())? {
                        drop(state);
                        counters.renames_throttled.one();
                        self.share.wait(&oldest)?;
                        continue;
                    }
                    match rename(self, &mut state, resource)? {
                        Renamed::Yes(garbage) => {
                            drop(state);
                            drop(garbage);
                            counters.stalls_avoided.one();
                        }
                        Renamed::NoMemory => {
                            drop(state);
                            counters.renames_without_memory.one();
                            // What was replaced earlier comes back, and if that is not enough, this object gets idle.
                            self.share.relieve()?;
                        }
                        Renamed::No => may_rename = false,
                    }
                }
                Way::Stage => {
                    drop(state);
                    counters.stalls_avoided.one();
                    return self.stage(what, resource, offset, bytes);
                }
                Way::Wait => {
                    drop(state);
                    self.wait_for(&object, Access::Write, |_| counters.stalls_taken.one(), what)?;
                }
            }
        }
    }

    fn write_in_place(&self, object: &ResourceObject, offset: u64, bytes: &[u8]) -> Result<(), Error> {
        let start = self.share.trace().map(|trace| trace.now());
        object.storage().write(offset, bytes)?;
        self.share.memory().counters.bytes_written.add(bytes.len() as u64);
        if let (Some(trace), Some(start)) = (self.share.trace(), start) {
            let args = serde_json::json!({ "bytes": bytes.len() });
            trace.span(self.clock.id(), "write".to_owned(), start, args);
        }
        Ok(())
    }

    /// If so many bytes more would be too many to be pending: the oldest batch in flight, to be waited for.
    fn under_pressure(&self, state: &mut State, bytes: u64) -> Result<Option<Moment>, Error> {
        let memory = self.share.memory();
        // What is alone may be larger than the budget.
        let fits = || memory.pending() == 0 || memory.pending() + bytes <= memory.budget;
        if fits() {
            return Ok(None);
        }
        state.timeline.flush()?;
        if fits() {
            return Ok(None);
        }
        Ok(self.clock.oldest().map(|serial| Moment { clock: Arc::clone(&self.clock), serial }))
    }

    /// Copies bytes to staging buffers, and from there in order.
    fn stage(&self, what: &str, resource: &Resource, offset: u64, bytes: &[u8]) -> Result<(), Error> {
        for (piece, bytes) in (0u64..).zip(bytes.chunks(PIECE as usize)) {
            let staging = self.staging(bytes.len() as u64)?;
            staging.storage().write(0, bytes)?;
            self.share.memory().counters.bytes_staged.add(bytes.len() as u64);
            self.copy_staged(what, &staging, 0, resource, offset + piece * PIECE, bytes.len() as u64)?;
        }
        Ok(())
    }

    /// A staging buffer of at least so many bytes. Waits for the oldest batch if too much is pending.
    pub(crate) fn staging(&self, bytes: u64) -> Result<Arc<ResourceObject>, Error> {
        let pressure = self.under_pressure(&mut self.lock(), bytes)?;
        if let Some(oldest) = pressure {
            self.share.wait(&oldest)?;
            self.lock().timeline.retire();
        }
        let memory = self.share.memory();
        let (size, spares) = memory.staging(bytes);
        let make = || ResourceObject::new(memory, &Template::Buffer(size), Contents::Undefined, spares);
        let staging = self.share.with_pressure_relieved(make)?;
        staging.leave_to(spares);
        Ok(Arc::new(staging))
    }

    /// Records a copy from a staging buffer.
    pub(super) fn copy_staged(
        &self,
        what: &str,
        staging: &Arc<ResourceObject>,
        from: u64,
        resource: &Resource,
        to: u64,
        bytes: u64,
    ) -> Result<(), Error> {
        self.record(|state| {
            let object = Arc::clone(resource.state().object(resource, what)?);
            let region = vk::BufferCopy { src_offset: from, dst_offset: to, size: bytes };
            let read = Use { object: staging, range: from..from + bytes, access: Access::Read };
            let write = Use { object: &object, range: to..to + bytes, access: Access::Write };
            let (a, b) = (staging.buffer()?, object.buffer()?);
            state.transfer(&[read, write], |commands| commands.copy_buffer(a, b, &[region]))?;
            if let Some(batch) = state.timeline.open() {
                batch.owe(bytes);
            }
            resource.state().valid.add(to..to + bytes);
            Ok(())
        })
    }
}

/// What came of an attempt to rename.
pub(super) enum Renamed {
    /// The object is idle now. To be dropped when no lock is held.
    Yes(Option<Garbage>),
    /// There is no memory for a new object.
    NoMemory,
    /// It must keep its object.
    No,
}

/// Makes the resource's object an idle one, its contents forgotten.
pub(super) fn rename(inner: &Inner, state: &mut State, resource: &Resource) -> Result<Renamed, Error> {
    Ok(match replace::invalidate(&inner.share, state, resource)? {
        Invalidated::Replaced(garbage) => {
            // The open batch may be what keeps the old object.
            if let Some(batch) = state.timeline.open() {
                batch.owe(resource.size());
            }
            Renamed::Yes(Some(garbage))
        }
        Invalidated::Forgotten | Invalidated::NothingValid => Renamed::Yes(None),
        Invalidated::Kept(Reason::Memory) => Renamed::NoMemory,
        Invalidated::Kept(Reason::Mapped | Reason::Rest) => Renamed::No,
    })
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
        let way = |size, len, whole, discard| way(&memory, size, len, whole, discard);
        assert_eq!(way(1 << 20, 1 << 20, true, false), Way::Rename);
        assert_eq!(way(60 << 10, 4, true, false), Way::Rename);
        assert_eq!(way(1 << 20, 4, true, false), Way::Stage);
        assert_eq!(way(1 << 20, 4, true, true), Way::Rename);
        assert_eq!(way(1 << 20, 1 << 19, false, false), Way::Stage);
        assert_eq!(way(32 << 20, 16 << 20, false, false), Way::Wait);
    }
}
