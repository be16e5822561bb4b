//! Reading back: host reads of what commands wrote.

use std::ops::Range;
use std::sync::Arc;

use bytemuck::AnyBitPattern;
use spelter_driver::host_memory;

use super::target::check_inside;
use crate::context::ContextInner;
use crate::error::Error;
use crate::ids::Access;
use crate::object::ResourceObject;
use crate::outcome::Waits;
use crate::resource::{HostCopyGuard, Resource};

impl ContextInner {
    /// Reads bytes of a buffer after all commands that write it.
    pub(crate) fn read(&self, resource: &Resource, offset: u64, into: &mut [u8]) -> Result<(), Error> {
        let range = offset..offset + into.len() as u64;
        let (object, _reading) = self.for_reading(resource, &range)?;
        check_inside("read", resource, &object, &range)?;
        self.share.memory().counters.bytes_read.add(into.len() as u64);
        object.storage().read(offset, into)
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

/// `bytes` bytes, filled by `read`, as values.
pub(super) fn values<T: AnyBitPattern>(
    bytes: u64,
    read: impl FnOnce(&mut [u8]) -> Result<(), Error>,
) -> Result<Vec<T>, Error> {
    let mut raw = host_memory::filled(0u8, bytes as usize)?;
    read(&mut raw)?;
    Ok(host_memory::collect(raw.chunks_exact(size_of::<T>()).map(bytemuck::pod_read_unaligned))?)
}
