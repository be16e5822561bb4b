//! Moving bytes: host to buffer, buffer to host, buffer to buffer.

use std::ops::Range;

use ash::vk;
use bytemuck::{AnyBitPattern, NoUninit};

use crate::context::Context;
use crate::error::Error;
use crate::object::Access;
use crate::resource::Buffer;

impl Context {
    /// The whole buffer, when all that writes it is done.
    ///
    /// [`Error::Range`] if its size is no whole number of elements.
    pub fn read<T: AnyBitPattern>(&self, buffer: &Buffer) -> Result<Vec<T>, Error> {
        self.read_range(buffer, 0..buffer.size())
    }

    /// The bytes `range` of a buffer, as values, when all that writes the buffer is done.
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
            return Err(Error::Range(format!("read: {bytes} bytes are no whole number of elements of {each} bytes")));
        }
        self.wait_for(buffer.object().busy_until(Access::Read))?;
        let mut raw = vec![0u8; bytes as usize];
        buffer.object().memory().read(range.start, &mut raw)?;
        Ok(raw.chunks_exact(size_of::<T>()).map(bytemuck::pod_read_unaligned).collect())
    }

    /// Writes values into a buffer from byte `offset` on, when all that uses the buffer is done.
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
        let bytes: &[u8] = bytemuck::cast_slice(values);
        self.check_range("write", buffer, &(offset..offset.saturating_add(bytes.len() as u64)))?;
        self.wait_for(buffer.object().busy_until(Access::Write))?;
        Ok(buffer.object().memory().write(offset, bytes)?)
    }

    /// Records a copy of `bytes` bytes from one buffer to another, or between parts of one that do not overlap.
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
        let region = vk::BufferCopy { src_offset: start, dst_offset: offset, size: bytes };
        let (source, target) = (from.object(), to.object());
        let mut uses = vec![(target, Access::Write)];
        if source.id() != target.id() {
            uses.push((source, Access::Read));
        }
        let mut timeline = self.timeline().lock();
        timeline.batch()?.record(&uses, |commands| commands.copy_buffer(source.buffer(), target.buffer(), &[region]))
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
        self.check_range("fill", buffer, &(0..buffer.size()))?;
        let object = buffer.object();
        let mut timeline = self.timeline().lock();
        let batch = timeline.batch()?;
        batch.record(&[(object, Access::Write)], |commands| {
            commands.fill_buffer(object.buffer(), 0, vk::WHOLE_SIZE, word)
        })
    }

    fn check_range(&self, what: &str, buffer: &Buffer, range: &Range<u64>) -> Result<(), Error> {
        let size = buffer.size();
        if !buffer.is_of(self.id()) {
            return Err(Error::Range(format!("{what}: the buffer is of another context")));
        }
        if range.start > range.end || range.end > size {
            let Range { start, end } = range;
            return Err(Error::Range(format!("{what}: bytes {start}..{end} of a buffer of {size} bytes")));
        }
        Ok(())
    }
}
