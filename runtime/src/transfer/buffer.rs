//! Moving bytes: host to buffer, buffer to host, buffer to buffer.

use std::ops::Range;
use std::sync::Arc;
use std::time::Instant;

use ash::vk;
use bytemuck::{AnyBitPattern, NoUninit};
use spelter_driver::host_memory;

use super::upload::Target;
use crate::barrier::Use;
use crate::batch::Refusal;
use crate::buffer::Buffer;
use crate::context::{Context, ContextInner, State};
use crate::error::{Error, rule};
use crate::object::ResourceObject;
use crate::resource::{Copying, Resource};
use crate::serial::Access;

impl Context {
    /// Reads a whole buffer back, when all that writes it is done. The first bytes of what is no whole number of
    /// elements would be easy to mistake for all: [`Error::Range`].
    ///
    /// ```
    /// # fn main() -> Result<(), spelter::Error> {
    /// # let context = spelter::Context::new()?;
    /// let buffer = context.buffer_from(&[1u32, 2])?;
    /// assert_eq!(context.read::<u32>(&buffer)?, [1, 2]);
    /// assert_eq!(context.read::<[u16; 2]>(&buffer)?, [[1, 0], [2, 0]]);
    /// # Ok(())
    /// # }
    /// ```
    pub fn read<T: AnyBitPattern>(&self, buffer: &Buffer) -> Result<Vec<T>, Error> {
        self.read_range(buffer, 0..buffer.size())
    }

    /// Reads the bytes `range` of a buffer back, as values, when all that writes the buffer is done. Waits for nobody
    /// if none of them holds defined data.
    ///
    /// [`Error::Range`] if they are not inside or no whole number of elements, [`Error::Resource`] if the buffer is
    /// destroyed.
    ///
    /// ```
    /// # fn main() -> Result<(), spelter::Error> {
    /// let context = spelter::Context::new()?;
    /// let buffer = context.buffer_from(&[1u32, 2, 3, 4])?;
    /// assert_eq!(context.read_range::<u32>(&buffer, 4..12)?, [2, 3]);
    /// # Ok(())
    /// # }
    /// ```
    pub fn read_range<T: AnyBitPattern>(&self, buffer: &Buffer, range: Range<u64>) -> Result<Vec<T>, Error> {
        self.check_range("read", buffer, &range)?;
        let (bytes, each) = (range.end - range.start, size_of::<T>() as u64);
        if each == 0 || bytes % each != 0 {
            let of = buffer.resource().described();
            let problem = format!("read: {bytes} bytes for elements of {each} bytes of {of}");
            return Err(Error::range(problem, rule::WHOLE));
        }
        values(bytes, |raw| self.inner().read(buffer.resource(), range.start, raw))
    }

    /// Writes values into a buffer from byte `offset` on, after everything that was recorded before and before
    /// everything that comes. It seldom waits for commands that use the buffer: bytes that hold no defined data are
    /// written at once; values that cover all that is defined go to new storage; others are staged and copied in order.
    /// Only what is too large to stage waits.
    ///
    /// ```
    /// # fn main() -> Result<(), spelter::Error> {
    /// let context = spelter::Context::new()?;
    /// let buffer = context.buffer_zeroed(12)?;
    /// context.write(&buffer, 4, &[7u32])?;
    /// assert_eq!(context.read::<u32>(&buffer)?, [0, 7, 0]);
    /// # Ok(())
    /// # }
    /// ```
    pub fn write<T: NoUninit>(&self, buffer: &Buffer, offset: u64, values: &[T]) -> Result<(), Error> {
        self.put("write", buffer, offset, bytemuck::cast_slice(values), false)
    }

    /// Gives a buffer new contents: values from its first byte on; whatever else it held is not defined any more. Never
    /// waits for commands that use the old contents: if there are any the buffer gets new storage.
    ///
    /// ```
    /// # fn main() -> Result<(), spelter::Error> {
    /// let context = spelter::Context::new()?;
    /// let buffer = context.buffer(16).build()?;
    /// for frame in 0..3u32 {
    ///     context.upload(&buffer, &[frame; 4])?;
    ///     // … dispatches that read the buffer …
    /// }
    /// assert_eq!(context.read::<u32>(&buffer)?, [2; 4]);
    /// # Ok(())
    /// # }
    /// ```
    pub fn upload<T: NoUninit>(&self, buffer: &Buffer, values: &[T]) -> Result<(), Error> {
        self.put("upload", buffer, 0, bytemuck::cast_slice(values), true)
    }

    fn put(&self, what: &str, buffer: &Buffer, offset: u64, bytes: &[u8], discard: bool) -> Result<(), Error> {
        self.check_range(what, buffer, &(offset..offset.saturating_add(bytes.len() as u64)))?;
        self.inner().upload(what, buffer.resource(), Target::Bytes(offset), bytes, discard)
    }

    /// Records a copy of `bytes` bytes from one buffer to another, or between parts of one that do not overlap. A copy
    /// of no bytes is one, and does nothing: so it is in WebGPU, while Vulkan forbids it
    /// (VUID-VkBufferCopy-size-01988).
    ///
    /// [`Error::Range`] if the bytes are not inside or overlap, [`Error::Resource`] if a buffer is destroyed, mapped or
    /// of another device.
    ///
    /// ```
    /// # fn main() -> Result<(), spelter::Error> {
    /// let context = spelter::Context::new()?;
    /// let (from, to) = (context.buffer_from(&[1u32, 2, 3])?, context.buffer_zeroed(8)?);
    /// context.copy(&from, 4, &to, 0, 8)?;
    /// assert_eq!(context.read::<u32>(&to)?, [2, 3]);
    /// # Ok(())
    /// # }
    /// ```
    pub fn copy(&self, from: &Buffer, start: u64, to: &Buffer, offset: u64, bytes: u64) -> Result<(), Error> {
        self.check_range("copy", from, &(start..start.saturating_add(bytes)))?;
        self.check_range("copy", to, &(offset..offset.saturating_add(bytes)))?;
        let (from, to) = (from.resource(), to.resource());
        if Arc::ptr_eq(from, to) && start < offset + bytes && offset < start + bytes {
            let (of, a, b) = (from.described(), start + bytes, offset + bytes);
            let problem = format!("copy: bytes {start}..{a} to bytes {offset}..{b} of {of}");
            return Err(Error::range(problem, rule::COPY_OVERLAP));
        }
        self.inner().record(|state| {
            let (source, target) = (for_command("copy", from)?, for_command("copy", to)?);
            if bytes == 0 {
                return Ok(());
            }
            let region = vk::BufferCopy { src_offset: start, dst_offset: offset, size: bytes };
            let read = Use::of(from, &source, start..start + bytes, Access::Read);
            let write = Use::of(to, &target, offset..offset + bytes, Access::Write);
            let (a, b) = (source.buffer()?, target.buffer()?);
            state.transfer(&[read, write], |commands| commands.copy_buffer(a, b, &[region]))
        })
    }

    /// Records a fill of the whole buffer with a repeated word; a rest of less than a word is left alone.
    ///
    /// ```
    /// # fn main() -> Result<(), spelter::Error> {
    /// let context = spelter::Context::new()?;
    /// let buffer = context.buffer_zeroed(8)?;
    /// context.fill(&buffer, 9)?;
    /// assert_eq!(context.read::<u32>(&buffer)?, [9, 9]);
    /// # Ok(())
    /// # }
    /// ```
    pub fn fill(&self, buffer: &Buffer, word: u32) -> Result<(), Error> {
        self.fill_range(buffer, 0..buffer.size() & !3, word)
    }

    /// Records a fill of the bytes `range` of a buffer with a repeated word; none are filled by a range without bytes.
    /// [`Error::Range`] unless they begin and end at multiples of 4.
    ///
    /// ```
    /// # fn main() -> Result<(), spelter::Error> {
    /// # let context = spelter::Context::new()?;
    /// let buffer = context.buffer_zeroed(16)?;
    /// context.fill_range(&buffer, 4..12, 7)?;
    /// assert_eq!(context.read::<u32>(&buffer)?, [0, 7, 7, 0]);
    /// # Ok(())
    /// # }
    /// ```
    pub fn fill_range(&self, buffer: &Buffer, range: Range<u64>, word: u32) -> Result<(), Error> {
        self.check_range("fill", buffer, &range)?;
        let resource = buffer.resource();
        if !range.start.is_multiple_of(4) || !range.end.is_multiple_of(4) {
            let (Range { start, end }, of) = (&range, resource.described());
            return Err(Error::range(format!("fill: bytes {start}..{end} of {of}"), rule::FILL));
        }
        self.inner().record(|state| {
            let object = for_command("fill", resource)?;
            if range.is_empty() {
                return Ok(());
            }
            let write = Use::of(resource, &object, range.clone(), Access::Write);
            let (to, bytes) = (object.buffer()?, range.end - range.start);
            state.transfer(&[write], |commands| commands.fill_buffer(to, range.start, bytes, word))
        })
    }

    pub(crate) fn check_range(&self, what: &str, buffer: &Buffer, range: &Range<u64>) -> Result<(), Error> {
        self.check_device(what, buffer)?;
        if range.start > range.end || range.end > buffer.size() {
            let (Range { start, end }, of) = (range, buffer.resource().described());
            return Err(Error::range(format!("{what}: bytes {start}..{end} of {of}"), rule::INSIDE));
        }
        Ok(())
    }
}

/// The object of a resource that a command uses: neither destroyed nor mapped.
pub(crate) fn for_command(what: &str, resource: &Resource) -> Result<Arc<ResourceObject>, Error> {
    let state = resource.state();
    let object = state.object(resource, what)?;
    if state.maps.forbid_commands() {
        return Err(Error::resource(format!("{what}: {} is mapped", resource.described()), rule::MAPPED));
    }
    Ok(Arc::clone(object))
}

impl State {
    /// Records a command that is no dispatch.
    pub(crate) fn transfer(
        &mut self,
        uses: &[Use<'_>],
        command: impl FnOnce(&spelter_driver::CommandBuffer) -> Result<(), spelter_driver::Error>,
    ) -> Result<(), Refusal> {
        let batch = self.timeline.batch()?;
        let entries = batch.enter(&self.clock, uses.iter().cloned())?;
        let ordered = batch.order(uses.iter().cloned().map(Use::touch), entries.fresh);
        let recorded = ordered.and_then(|_| batch.transfer(command));
        Ok(recorded.inspect_err(|_| entries.take_back())?)
    }
}

impl ContextInner {
    /// Reads bytes of a buffer when all that writes it is done.
    pub(crate) fn read(&self, resource: &Resource, offset: u64, into: &mut [u8]) -> Result<(), Error> {
        let (object, _reading) = self.for_reading(resource, &(offset..offset + into.len() as u64))?;
        self.share.memory().counters.bytes_read.add(into.len() as u64);
        object.storage().read(offset, into)
    }

    /// The object of a resource, when all that writes it is done; at once if nothing in the range holds defined data.
    /// Who writes there waits as long as the second is held.
    pub(crate) fn for_reading<'a>(
        &self,
        resource: &'a Resource,
        range: &Range<u64>,
    ) -> Result<(Arc<ResourceObject>, Copying<'a>), Error> {
        self.share.check_alive()?;
        let mut waited = false;
        loop {
            let mut state = resource.state();
            let object = Arc::clone(state.object(resource, "read")?);
            if state.is_copied(range, Access::Read) {
                // Under the lock.
                let ended = self.share.gate().count();
                drop(state);
                self.share.gate().wait(ended);
                continue;
            }
            let busy = state.valid().intersects(range) && object.usage.is_busy(Access::Read);
            if busy && !waited {
                // Meanwhile others may record what writes it again.
                drop(state);
                waited = self.wait_for(&object, Access::Read, "read back")?;
                self.share.memory().counters.read_waits.add(waited.into());
                continue;
            }
            // Written down first: nobody begins to write these bytes meanwhile, however many there are who would.
            let reading = Copying::reading(resource, &mut state, range.clone());
            drop(state);
            if busy {
                self.wait_for(&object, Access::Read, "read back")?;
            }
            return Ok((object, reading));
        }
    }

    /// Waits for what stands in the way of an access of the host; whether anything did. No context is locked by the
    /// caller.
    pub(crate) fn wait_for(&self, object: &ResourceObject, access: Access, why: &str) -> Result<bool, Error> {
        let points = object.usage.in_the_way(access);
        if points.is_empty() {
            return Ok(false);
        }
        let start = Instant::now();
        points.iter().try_for_each(|point| self.share.wait(point))?;
        if let Some(trace) = self.share.trace() {
            trace.span(self.clock.id(), format!("wait: {why}"), start, serde_json::Value::Null);
        }
        Ok(true)
    }

    /// No memory could be had for another object in the place of this one, which is therefore waited for.
    pub(crate) fn wait_without_memory(&self, object: &ResourceObject) -> Result<bool, Error> {
        let waited = self.wait_for(object, Access::Write, "no memory for a new object")?;
        if waited {
            self.share.memory().counters.renames_without_memory.one();
        }
        Ok(waited)
    }
}

/// `bytes` bytes that `read` fills, as values.
pub(super) fn values<T: AnyBitPattern>(
    bytes: u64,
    read: impl FnOnce(&mut [u8]) -> Result<(), Error>,
) -> Result<Vec<T>, Error> {
    let mut raw = host_memory::filled(0u8, bytes as usize)?;
    read(&mut raw)?;
    Ok(host_memory::collect(raw.chunks_exact(size_of::<T>()).map(bytemuck::pod_read_unaligned))?)
}
