//! Reads that are started now and collected later: a copy to a staging buffer, in order with all other commands.

use std::fmt;
use std::marker::PhantomData;
use std::ops::Range;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{self, Poll};

use ash::vk;
use bytemuck::{AnyBitPattern, NoUninit};

use super::read::{values_of, whole};
use super::target::{check_inside, level_bytes, region};
use super::texel_type::check_texel_type;
use super::texels::Direction;
use crate::barrier::Use;
use crate::buffer::{Buffer, BufferSlice};
use crate::context::Context;
use crate::error::{Error, rule};
use crate::fence::Fence;
use crate::ids::{Access, CommandKind};
use crate::image::Image;
use crate::object::ResourceObject;
use crate::outcome::Waits;
use crate::view::Subresources;

/// Values of a buffer or an image as they were when the read was started ([`Context::start_read`],
/// [`Context::start_read_image`]). A future of them, too. May be dropped at any time.
///
/// ```
/// # fn main() -> Result<(), spelter::Error> {
/// # let context = spelter::Context::new()?;
/// let buffer = context.buffer_from(&[1u32, 2])?;
/// let first = context.start_read::<u32>(&buffer)?;
/// context.fill(&buffer, 9)?; // comes after
/// // … other work …
/// assert_eq!(first.finish()?, [1, 2]);
/// # Ok(())
/// # }
/// ```
#[must_use = "`finish` returns the values"]
pub struct ReadBack<T> {
    fence: Fence,
    /// `None` for no bytes.
    staging: Option<Arc<ResourceObject>>,
    bytes: u64,
    values: PhantomData<fn() -> T>,
}

impl Context {
    /// Starts to read a buffer, or a range of one, and returns at once: submits all recorded commands and a copy of the
    /// bytes after them. [`ReadBack::finish`] returns the values. The call waits only if too much memory of staging
    /// buffers is pending, or there is none.
    ///
    /// [`Error::Range`] if the bytes are not inside the buffer or not a whole number of elements, [`Error::Resource`]
    /// if the buffer is destroyed, mapped or of another device.
    ///
    /// ```
    /// # fn main() -> Result<(), spelter::Error> {
    /// let context = spelter::Context::new()?;
    /// let buffer = context.buffer_zeroed(1 << 16)?;
    /// let mut reads = Vec::new();
    /// for frame in 0..3u32 {
    ///     context.fill(&buffer, frame)?;
    ///     reads.push(context.start_read::<u32>(buffer.slice(..8))?);
    /// }
    /// for (frame, read) in (0..).zip(reads) {
    ///     assert_eq!(read.finish()?, [frame; 2]);
    /// }
    /// # Ok(())
    /// # }
    /// ```
    pub fn start_read<'a, T: AnyBitPattern>(&self, what: impl Into<BufferSlice<'a>>) -> Result<ReadBack<T>, Error> {
        let slice: BufferSlice<'_> = what.into();
        let (buffer, range) = (slice.buffer, slice.range());
        self.check_values::<T>("read", buffer, &range)?;
        whole::<T>(buffer.resource(), range.end - range.start)?;
        let staging = if range.is_empty() { None } else { Some(self.copy_for_host(buffer, &range)?) };
        let fence = self.flush()?;
        Ok(ReadBack { fence, staging, bytes: range.end - range.start, values: PhantomData })
    }

    /// Starts to read all texels of one level of one layer of an image, tightly packed, and returns at once, as
    /// [`Context::start_read`] does for a buffer. Errors are those of [`Context::read_image`].
    ///
    /// ```
    /// use spelter::{ClearColor, vk};
    ///
    /// # fn main() -> Result<(), spelter::Error> {
    /// # let context = spelter::Context::new()?;
    /// let image = context.image(vk::Format::R8G8B8A8_UNORM, [2, 1, 1]).build()?;
    /// context.clear_image(&image, ClearColor::Float([1.0; 4]))?;
    /// let frame = context.start_read_image::<[u8; 4]>(&image, 0, 0)?;
    /// context.clear_image(&image, ClearColor::Float([0.0; 4]))?; // comes after
    /// assert_eq!(frame.finish()?, [[255; 4]; 2]);
    /// # Ok(())
    /// # }
    /// ```
    pub fn start_read_image<T: AnyBitPattern>(
        &self,
        image: &Image,
        level: u32,
        layer: u32,
    ) -> Result<ReadBack<T>, Error> {
        check_texel_type::<T>("read", image)?;
        loop {
            let (part, bytes) = self.check_level("read", image, level, layer)?;
            whole::<T>(image.resource(), bytes)?;
            if let Some(staging) = self.copy_level_for_host((image, level, layer), &part, bytes)? {
                return Ok(ReadBack { fence: self.flush()?, staging: Some(staging), bytes, values: PhantomData });
            }
        }
    }

    /// Records a copy of a level of a layer to a new staging buffer. `None` if another thread has respecified the image
    /// with another size since the caller has seen that the level has `bytes` bytes.
    fn copy_level_for_host(
        &self,
        (image, level, layer): (&Image, u32, u32),
        part: &Subresources,
        bytes: u64,
    ) -> Result<Option<Arc<ResourceObject>>, Error> {
        let resource = image.resource();
        let staging = self.inner().staging(resource, bytes, &mut Waits::empty())?;
        let is_recorded = self.inner().record(|state| {
            let source = resource.object_for_command("read")?;
            if level_bytes(&source, (level, layer))? != bytes {
                return Ok(false);
            }
            let texels = source.image()?;
            // A level of a layer is one range.
            let number = part.ranges(texels.info().levels).into_iter().next().unwrap_or_default();
            let read = Use::of(resource, &source, number, Access::Read);
            let write = Use::own(&staging, 0..bytes, Access::Write);
            let (to, region) = (staging.buffer()?, region(texels.info(), level, layer));
            state.transfer(CommandKind::Copy, &[read, write], |commands| {
                Direction::ToBuffer.record(commands, (to, texels), region)
            })?;
            if let Some(batch) = state.timeline.open() {
                batch.retain_bytes(bytes);
            }
            Ok(true)
        })?;
        Ok(is_recorded.then_some(staging))
    }

    /// Records a copy of bytes of a buffer to a new staging buffer.
    fn copy_for_host(&self, buffer: &Buffer, range: &Range<u64>) -> Result<Arc<ResourceObject>, Error> {
        let (resource, bytes) = (buffer.resource(), range.end - range.start);
        let staging = self.inner().staging(resource, bytes, &mut Waits::empty())?;
        self.inner().record(|state| {
            let source = resource.object_for_command("read")?;
            check_inside("read", resource, &source, range)?;
            let region = vk::BufferCopy { src_offset: range.start, dst_offset: 0, size: bytes };
            let read = Use::of(resource, &source, range.clone(), Access::Read);
            let write = Use::own(&staging, 0..bytes, Access::Write);
            let (from, to) = (source.buffer()?, staging.buffer()?);
            state.transfer(CommandKind::Copy, &[read, write], |commands| commands.copy_buffer(from, to, &[region]))?;
            if let Some(batch) = state.timeline.open() {
                batch.retain_bytes(bytes);
            }
            Ok(())
        })?;
        Ok(staging)
    }
}

impl<T: AnyBitPattern> ReadBack<T> {
    /// The number of values.
    ///
    /// ```
    /// # fn main() -> Result<(), spelter::Error> {
    /// # let context = spelter::Context::new()?;
    /// let buffer = context.buffer_zeroed(16)?;
    /// assert_eq!(context.start_read::<[u32; 2]>(&buffer)?.len(), 2);
    /// # Ok(())
    /// # }
    /// ```
    pub fn len(&self) -> usize {
        self.bytes as usize / size_of::<T>()
    }

    /// Whether there are no values.
    ///
    /// ```
    /// # fn main() -> Result<(), spelter::Error> {
    /// # let context = spelter::Context::new()?;
    /// let buffer = context.buffer_zeroed(16)?;
    /// assert!(context.start_read::<u32>(buffer.slice(4..4))?.is_empty());
    /// # Ok(())
    /// # }
    /// ```
    pub fn is_empty(&self) -> bool {
        self.bytes == 0
    }

    /// The fence of the copy: to ask whether it is done, to wait with a limit, or to be called.
    ///
    /// ```
    /// # fn main() -> Result<(), spelter::Error> {
    /// # let context = spelter::Context::new()?;
    /// let read = context.start_read::<u32>(&context.buffer_zeroed(16)?)?;
    /// if read.fence().wait_for(std::time::Duration::from_secs(10))? {
    ///     assert_eq!(read.finish()?, [0; 4]); // does not wait
    /// }
    /// # Ok(())
    /// # }
    /// ```
    pub fn fence(&self) -> &Fence {
        &self.fence
    }

    /// The values, after the copy is done; executes commands on this thread meanwhile. [`Error::DeviceLost`] if it
    /// never will be.
    ///
    /// ```
    /// # fn main() -> Result<(), spelter::Error> {
    /// # let context = spelter::Context::new()?;
    /// let read = context.start_read::<u32>(&context.buffer_from(&[1u32, 2])?)?;
    /// assert_eq!(read.finish()?, [1, 2]);
    /// # Ok(())
    /// # }
    /// ```
    pub fn finish(self) -> Result<Vec<T>, Error> {
        self.fence.wait()?;
        self.values()
    }

    /// As [`ReadBack::finish`], into a slice, in one copy. [`Error::Range`] unless it has as many values.
    ///
    /// ```
    /// # fn main() -> Result<(), spelter::Error> {
    /// # let context = spelter::Context::new()?;
    /// let (read, mut values) = (context.start_read::<u32>(&context.buffer_from(&[1u32, 2])?)?, [0; 2]);
    /// read.finish_into(&mut values)?;
    /// assert_eq!(values, [1, 2]);
    /// # Ok(())
    /// # }
    /// ```
    pub fn finish_into(self, values: &mut [T]) -> Result<(), Error>
    where
        T: NoUninit,
    {
        if values.len() != self.len() {
            let problem = format!("read: a slice of {} values for {} values", values.len(), self.len());
            return Err(Error::range(problem, rule::SLICE));
        }
        self.fence.wait()?;
        self.fence.count_read(self.bytes);
        match &self.staging {
            Some(staging) => staging.storage().read(0, bytemuck::cast_slice_mut(values)),
            None => Ok(()),
        }
    }

    /// The values of a copy that is done.
    fn values(&self) -> Result<Vec<T>, Error> {
        self.fence.count_read(self.bytes);
        match &self.staging {
            Some(staging) => values_of(self.bytes, |at, piece| staging.storage().read(at, piece)),
            None => Ok(Vec::new()),
        }
    }
}

/// The values, when the copy is done. May be polled again after that.
impl<T: AnyBitPattern> Future for ReadBack<T> {
    type Output = Result<Vec<T>, Error>;

    fn poll(self: Pin<&mut Self>, context: &mut task::Context<'_>) -> Poll<Self::Output> {
        let this = self.get_mut();
        Pin::new(&mut this.fence).poll(context).map(|done| done.and_then(|()| this.values()))
    }
}

impl<T> fmt::Debug for ReadBack<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "ReadBack({} bytes, {:?})", self.bytes, self.fence)
    }
}
