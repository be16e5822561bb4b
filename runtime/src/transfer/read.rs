//! Reading back: host reads of what commands wrote.
//!
//! A read into a slice of the caller is one copy. A read of values of any type is one copy of memory and one of a piece
//! that stays in the processor's first cache, since a value may have padding and Rust then has no bytes to copy to.

use std::ops::Range;
use std::sync::Arc;

use bytemuck::AnyBitPattern;
use spelter_driver::host_memory;

use super::target::check_inside;
use crate::context::ContextInner;
use crate::error::{Error, rule};
use crate::ids::Access;
use crate::memory::Storage;
use crate::object::ResourceObject;
use crate::outcome::Waits;
use crate::resource::{HostCopyGuard, Resource};

impl ContextInner {
    /// Gives `read` the storage of a buffer after all commands that write this range, which lies in it.
    pub(crate) fn read<R>(
        &self,
        resource: &Resource,
        range: &Range<u64>,
        read: impl FnOnce(&Storage) -> Result<R, Error>,
    ) -> Result<R, Error> {
        let (object, _reading) = self.for_reading(resource, range)?;
        check_inside("read", resource, &object, range)?;
        self.share.memory().counters.bytes_read.add(range.end - range.start);
        read(object.storage())
    }

    /// The object of a resource, after all commands that write it; at once if the range holds no defined data. Writes
    /// to the range wait while the returned guard is held.
    pub(crate) fn for_reading<'a>(
        &self,
        resource: &'a Resource,
        range: &Range<u64>,
    ) -> Result<(Arc<ResourceObject>, HostCopyGuard<'a>), Error> {
        self.share.check_alive()?;
        let mut waited = false;
        loop {
            let mut state = resource.state();
            let object = Arc::clone(state.object(resource, "read")?);
            if state.is_copied(range, Access::Read) {
                // Read under the resource's lock, so that the end of this copy is not missed.
                let ended = self.share.gate().count();
                drop(state);
                self.wait_for_copy(ended, (Some(resource.id()), || resource.described()));
                continue;
            }
            let busy = state.valid().intersects(range) && object.usage.is_busy(Access::Read);
            if busy && !waited {
                // The first wait is made without a guard: meanwhile other threads may record more writes.
                drop(state);
                waited = self.wait_for((resource, &object), Access::Read, (Waits::READ_BACK, "read back"))?;
                self.share.memory().counters.read_waits.add(waited.into());
                continue;
            }
            // Noted before the wait: no new write to these bytes begins, so the wait ends however many threads record.
            let reading = HostCopyGuard::reading(resource, &mut state, range.clone());
            drop(state);
            if busy {
                self.wait_for((resource, &object), Access::Read, (Waits::READ_BACK, "read back"))?;
            }
            return Ok((object, reading));
        }
    }
}

/// Checks that bytes of a resource are a whole number of values.
pub(super) fn whole<T>(resource: &Resource, bytes: u64) -> Result<(), Error> {
    let each = size_of::<T>() as u64;
    if each != 0 && bytes.is_multiple_of(each) {
        return Ok(());
    }
    let of = resource.described();
    Err(Error::range(format!("read: {bytes} bytes for elements of {each} bytes of {of}"), rule::WHOLE))
}

/// Bytes of a piece: a third of the first cache, so that reading and converting it leave memory alone.
const PIECE: usize = 16 << 10;

/// `bytes` bytes as values, a whole number of them. `read` fills a piece with the bytes from an offset on.
pub(super) fn values_of<T: AnyBitPattern>(
    bytes: u64,
    mut read: impl FnMut(u64, &mut [u8]) -> Result<(), Error>,
) -> Result<Vec<T>, Error> {
    let (bytes, each) = (bytes as usize, size_of::<T>());
    let mut all = host_memory::list(bytes / each)?;
    // A whole number of values, at least one.
    let mut piece = host_memory::filled(0u8, bytes.min((PIECE / each).max(1) * each))?;
    let mut at = 0;
    while at < bytes {
        let part = piece.len().min(bytes - at);
        read(at as u64, &mut piece[..part])?;
        extend(&mut all, &piece[..part]);
        at += part;
    }
    Ok(all)
}

/// Appends the values of bytes to a list that has room for them.
fn extend<T: AnyBitPattern>(all: &mut Vec<T>, bytes: &[u8]) {
    match bytemuck::try_cast_slice(bytes) {
        Ok(values) => all.extend_from_slice(values),
        // The bytes are not aligned as the values are.
        Err(_) => all.extend(bytes.chunks_exact(size_of::<T>()).map(bytemuck::pod_read_unaligned::<T>)),
    }
}
