//! Transfers of bytes: host to buffer, buffer to host, buffer to buffer, fills.

use std::ops::Range;
use std::sync::Arc;

use ash::vk;
use bytemuck::{AnyBitPattern, NoUninit};

use super::read::{values_of, whole};
use super::target::{Target, check_inside};
use crate::barrier::Use;
use crate::buffer::Buffer;
use crate::context::Context;
use crate::error::{Error, rule};
use crate::ids::{Access, CommandKind};
use crate::layout::BufferType;
use crate::outcome::Outcome;
use crate::resource::Resource;

impl Context {
    /// Reads a whole buffer back, after all commands that write it. [`Error::Range`] if its size is not a multiple of
    /// the element size, since a truncated result would be easy to mistake for the whole.
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
        loop {
            let bytes = buffer.size();
            match self.read_range(buffer, 0..bytes) {
                // Another thread has respecified it meanwhile.
                Err(Error::Range(_)) if buffer.size() != bytes => {}
                result => return result,
            }
        }
    }

    /// Reads the bytes `range` of a buffer back, as values, after all commands that write the buffer. Does not wait if
    /// the range holds no defined data.
    ///
    /// [`Error::Range`] if the range is not inside the buffer or not a whole number of elements, [`Error::Resource`] if
    /// the buffer is destroyed.
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
        self.check_values::<T>("read", buffer, &range)?;
        whole::<T>(buffer.resource(), range.end - range.start)?;
        self.inner().read(buffer.resource(), &range, |storage| {
            values_of(range.end - range.start, |at, piece| storage.read(range.start + at, piece))
        })
    }

    /// Reads values from byte `offset` of a buffer on into a slice, in one copy, after all commands that write the
    /// buffer. Does not wait if the bytes hold no defined data. An empty slice is allowed.
    ///
    /// [`Error::Range`] if the values do not lie in the buffer, [`Error::Resource`] if the buffer is destroyed or of
    /// another device. After an error the slice is as it was.
    ///
    /// ```
    /// # fn main() -> Result<(), spelter::Error> {
    /// let context = spelter::Context::new()?;
    /// let buffer = context.buffer_from(&[1u32, 2, 3, 4])?;
    /// let mut middle = [0u32; 2]; // used again for each frame
    /// context.read_into(&buffer, 4, &mut middle)?;
    /// assert_eq!(middle, [2, 3]);
    /// # Ok(())
    /// # }
    /// ```
    pub fn read_into<T: AnyBitPattern + NoUninit>(
        &self,
        buffer: &Buffer,
        offset: u64,
        values: &mut [T],
    ) -> Result<(), Error> {
        let range = offset..offset.saturating_add(size_of_val(values) as u64);
        self.check_values::<T>("read", buffer, &range)?;
        self.inner().read(buffer.resource(), &range, |storage| storage.read(offset, bytemuck::cast_slice_mut(values)))
    }

    /// Writes values into a buffer from byte `offset` on, in order with the commands that are recorded before and
    /// after. It seldom waits for commands that use the buffer: bytes that hold no defined data are written at once;
    /// values that cover all defined data go to new storage; others are staged and copied in order. Only values that
    /// are too large to stage wait. The [`Outcome`] tells which it was.
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
    pub fn write<T: NoUninit>(&self, buffer: &Buffer, offset: u64, values: &[T]) -> Result<Outcome, Error> {
        self.put("write", buffer, offset, values, false)
    }

    /// Replaces the contents of a buffer by `values`, from its first byte on; the rest becomes undefined. Does not wait
    /// for commands that use the old contents: if there are any, the buffer gets new storage.
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
    pub fn upload<T: NoUninit>(&self, buffer: &Buffer, values: &[T]) -> Result<Outcome, Error> {
        self.put("upload", buffer, 0, values, true)
    }

    fn put<T: NoUninit>(
        &self,
        what: &str,
        buffer: &Buffer,
        offset: u64,
        values: &[T],
        discard: bool,
    ) -> Result<Outcome, Error> {
        let bytes = bytemuck::cast_slice(values);
        self.check_values::<T>(what, buffer, &(offset..offset.saturating_add(bytes.len() as u64)))?;
        self.inner().upload(what, buffer.resource(), Target::Bytes(offset), bytes, discard)
    }

    /// Records a copy of `bytes` bytes from one buffer to another, or between disjoint ranges of one buffer. A copy of
    /// 0 bytes is allowed and does nothing, as in WebGPU; Vulkan forbids it (VUID-VkBufferCopy-size-01988).
    ///
    /// [`Error::Range`] if a range is not inside its buffer or the ranges overlap, [`Error::Resource`] if a buffer is
    /// destroyed, mapped or of another device.
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
        self.check_copy(from, start, to, offset, bytes)?;
        let (from, to) = (from.resource(), to.resource());
        self.inner().record(|state| {
            let (source, target) = (from.object_for_command("copy")?, to.object_for_command("copy")?);
            check_inside("copy", from, &source, &(start..start + bytes))?;
            check_inside("copy", to, &target, &(offset..offset + bytes))?;
            if bytes == 0 {
                return Ok(());
            }
            let region = vk::BufferCopy { src_offset: start, dst_offset: offset, size: bytes };
            let read = Use::of(from, &source, start..start + bytes, Access::Read);
            let write = Use::of(to, &target, offset..offset + bytes, Access::Write);
            let (a, b) = (source.buffer()?, target.buffer()?);
            state.transfer(CommandKind::Copy, &[read, write], |commands| commands.copy_buffer(a, b, &[region]))
        })
    }

    /// Records a fill of the whole buffer with a repeated word; the last 1 to 3 bytes of a size that is not a multiple
    /// of 4 keep their contents.
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
        self.check_fill(buffer, &(0..0))?;
        self.fill_words(buffer, None, word)
    }

    /// Records a fill of the bytes `range` of a buffer with a repeated word; an empty range does nothing.
    /// [`Error::Range`] unless the range begins and ends at multiples of 4.
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
        self.check_fill(buffer, &range)?;
        self.fill_words(buffer, Some(range), word)
    }

    /// Without a range, all whole words that the buffer has when the command is recorded.
    fn fill_words(&self, buffer: &Buffer, range: Option<Range<u64>>, word: u32) -> Result<(), Error> {
        let resource = buffer.resource();
        self.inner().record(|state| {
            let object = resource.object_for_command("fill")?;
            let range = range.clone().unwrap_or(0..object.size() & !3);
            check_inside("fill", resource, &object, &range)?;
            if range.is_empty() {
                return Ok(());
            }
            let write = Use::of(resource, &object, range.clone(), Access::Write);
            let (to, bytes) = (object.buffer()?, range.end - range.start);
            state.transfer(CommandKind::Fill, &[write], |commands| commands.fill_buffer(to, range.start, bytes, word))
        })
    }

    /// Checks the ranges of a copy of `bytes` bytes.
    pub(crate) fn check_copy(
        &self,
        from: &Buffer,
        start: u64,
        to: &Buffer,
        offset: u64,
        bytes: u64,
    ) -> Result<(), Error> {
        self.check_range("copy", from, &(start..start.saturating_add(bytes)))?;
        self.check_range("copy", to, &(offset..offset.saturating_add(bytes)))?;
        let (from, to) = (from.resource(), to.resource());
        if Arc::ptr_eq(from, to) && start < offset + bytes && offset < start + bytes {
            let (of, a, b) = (from.described(), start + bytes, offset + bytes);
            let problem = format!("copy: bytes {start}..{a} to bytes {offset}..{b} of {of}");
            return Err(Error::range(problem, rule::COPY_OVERLAP));
        }
        Ok(())
    }

    /// Checks the range of a fill.
    pub(crate) fn check_fill(&self, buffer: &Buffer, range: &Range<u64>) -> Result<(), Error> {
        self.check_range("fill", buffer, range)?;
        if !range.start.is_multiple_of(4) || !range.end.is_multiple_of(4) {
            let (Range { start, end }, of) = (range, buffer.resource().described());
            return Err(Error::range(format!("fill: bytes {start}..{end} of {of}"), rule::FILL));
        }
        Ok(())
    }

    /// Checks a range, and that values of this type are what the handle says that it holds.
    pub(super) fn check_values<T: 'static>(
        &self,
        what: &str,
        buffer: &Buffer,
        range: &Range<u64>,
    ) -> Result<(), Error> {
        self.check_range(what, buffer, range)?;
        check_type::<T>(what, buffer.resource(), buffer.contents(), range)
    }

    pub(crate) fn check_range(&self, what: &str, buffer: &Buffer, range: &Range<u64>) -> Result<(), Error> {
        self.check_device(what, buffer.resource())?;
        if range.start > range.end || range.end > buffer.size() {
            let (Range { start, end }, of) = (range, buffer.resource().described());
            return Err(Error::range(format!("{what}: bytes {start}..{end} of {of}"), rule::INSIDE));
        }
        Ok(())
    }
}

/// Checks that values of this type are what a handle says that the bytes `range` of its buffer are.
pub(super) fn check_type<T: 'static>(
    what: &str,
    resource: &Resource,
    contents: Option<BufferType>,
    range: &Range<u64>,
) -> Result<(), Error> {
    let problem = contents.and_then(|contents| contents.mistaken_for::<T>(range));
    problem.map_or(Ok(()), |problem| {
        Err(Error::range(format!("{what}: {}: {problem}", resource.described()), rule::CONTENTS))
    })
}
