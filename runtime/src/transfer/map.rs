//! Mapping: host access to a range of a buffer, until it is unmapped.
//!
//! Guest memory is never a Rust slice, since kernels may write it at any time. A mapping has methods to read and write
//! instead, so it knows which bytes were written. A write mapping of a buffer in use collects them in a staging buffer,
//! and unmapping copies them to the buffer in order.

use std::fmt;
use std::ops::Range;
use std::sync::Arc;

use ash::vk;
use bytemuck::{AnyBitPattern, NoUninit};
use spelter_locks::Mutex;

use super::buffer::check_type;
use super::flags::{MapFlags, check_flags};
use super::map_claim::{MapClaim, MapStrategy};
use super::mapped_range::MappedRange;
use super::read::values_of;
use crate::buffer::{Buffer, BufferSlice};
use crate::context::{Context, ContextInner, Renaming};
use crate::error::{Error, rule};
use crate::events::Event;
use crate::ids::Access;
use crate::layout::BufferType;
use crate::mappings::UseOrigin;
use crate::object::ResourceObject;
use crate::outcome::{Action, Outcome, Waits};
use crate::resource::Resource;
use crate::valid::Ranges;

/// A mapped range of a buffer. Dropping it unmaps; [`Mapped::unmap`] also reports errors.
///
/// ```
/// use spelter::MapFlags;
///
/// # fn main() -> Result<(), spelter::Error> {
/// # let context = spelter::Context::new()?;
/// let buffer = context.buffer_from(&[1u32, 2])?;
/// {
///     let map = context.map(&buffer, MapFlags::READ | MapFlags::WRITE)?;
///     let values = map.read::<u32>(0, 2)?;
///     map.write(0, &[values[0] + values[1]])?;
/// } // unmapped
/// assert_eq!(context.read::<u32>(&buffer)?, [3, 2]);
/// # Ok(())
/// # }
/// ```
#[must_use = "dropping it unmaps"]
pub struct Mapped {
    context: Arc<ContextInner>,
    resource: Arc<Resource>,
    /// `None` once it is unmapped.
    mapped: Option<MappedRange>,
    range: Range<u64>,
    /// What the buffer holds, if the handle says it.
    contents: Option<BufferType>,
    flags: MapFlags,
    target: Arc<ResourceObject>,
    /// The offset of the range in the target.
    start: u64,
    /// The bytes of the staging buffer that were written, to be copied when unmapped; `None` if the target is the
    /// buffer itself.
    staged: Option<Mutex<Ranges>>,
    outcome: Outcome,
}

impl Context {
    /// Mappings a buffer, or a range of one. While it is mapped, commands must not use the buffer, unless the mapping
    /// is [`PERSISTENT`](MapFlags::PERSISTENT).
    ///
    /// A mapping for reading waits for the commands that write the range. A mapping for writing waits only if it is too
    /// large to be staged.
    ///
    /// [`Error::Range`] if the range is empty or not inside the buffer, [`Error::Resource`] if the buffer is destroyed,
    /// of another device or already mapped in this range, or if the flags contradict each other.
    ///
    /// ```
    /// use spelter::MapFlags;
    ///
    /// # fn main() -> Result<(), spelter::Error> {
    /// let context = spelter::Context::new()?;
    /// let buffer = context.buffer(16).label("particles").zeroed()?;
    /// let map = context.map(buffer.slice(4..12), MapFlags::WRITE)?;
    /// map.write(0, &[7u32, 8])?;
    /// let again = context.map(buffer.slice(8..16), MapFlags::READ).unwrap_err().to_string();
    /// assert!(again.starts_with("map: bytes 8..16 of buffer `particles` of 16 bytes: bytes 4..12 are mapped"));
    /// map.unmap()?;
    /// assert_eq!(context.read::<u32>(&buffer)?, [0, 7, 8, 0]);
    /// # Ok(())
    /// # }
    /// ```
    pub fn map<'a>(&self, what: impl Into<BufferSlice<'a>>, flags: MapFlags) -> Result<Mapped, Error> {
        let slice: BufferSlice<'_> = what.into();
        let (buffer, range) = (slice.buffer, slice.range());
        self.check_range("map", buffer, &range)?;
        if range.is_empty() {
            return Err(Error::range(format!("map: no bytes of {}", buffer.resource().described()), rule::NOT_EMPTY));
        }
        check_flags(buffer, flags)?;
        Mapped::new(self.inner(), buffer, range, flags)
    }
}

impl Mapped {
    fn new(context: &Arc<ContextInner>, buffer: &Buffer, range: Range<u64>, flags: MapFlags) -> Result<Self, Error> {
        let (resource, contents) = (buffer.resource(), buffer.contents());
        let bytes = range.end - range.start;
        // It renames only what the flags discard.
        let mut renaming = Renaming::new(context, resource, true);
        let claim = MapClaim::new((context, resource), &range, flags, &mut renaming)?;
        let MapClaim { mapped, object, mut strategy, replaced } = claim;
        let (mut target, mut start, mut staged) = (object, range.start, None);
        if strategy == MapStrategy::Stage {
            renaming.busy = true;
            match context.staging(resource, bytes, &mut renaming.waits) {
                Ok(staging) => {
                    (target, start, staged) = (staging, 0, Some(Mutex::new(Ranges::new())));
                }
                // No memory for a staging buffer: in place, after a wait.
                Err(Error::OutOfMemory(_)) => strategy = MapStrategy::Wait(Access::Write),
                Err(error) => return Err(error),
            }
        }
        if let MapStrategy::Wait(access) = strategy {
            let waited = context.wait_for((resource, &target), access, (Waits::USERS, "map"))?;
            if waited && flags.contains(MapFlags::READ) {
                context.share.memory().counters.read_waits.one();
                renaming.waits.note(Waits::READ_BACK, waited);
            } else {
                renaming.waits.note(Waits::USERS, waited);
            }
        }
        let in_object = if staged.is_some() { Action::Staged { bytes } } else { Action::InPlace };
        let outcome = renaming.finish(replaced.unwrap_or(in_object));
        let (context, resource) = (Arc::clone(context), Arc::clone(resource));
        Ok(Self { context, resource, mapped: Some(mapped), range, contents, flags, target, start, staged, outcome })
    }

    /// What the mapping did to the buffer's storage: [`Action::InPlace`] if the object itself is mapped,
    /// [`Action::Staged`] if a staging buffer is, from which [`Mapped::unmap`] copies in order, [`Action::Replaced`] if
    /// contents were discarded and the object was in use.
    ///
    /// ```
    /// use spelter::{Action, MapFlags};
    ///
    /// # fn main() -> Result<(), spelter::Error> {
    /// # let context = spelter::Context::new()?;
    /// let buffer = context.buffer_zeroed(8)?;
    /// assert_eq!(context.map(&buffer, MapFlags::WRITE)?.outcome().action, Action::InPlace);
    /// context.fill(&buffer, 1)?; // in use
    /// assert_eq!(context.map(&buffer, MapFlags::WRITE)?.outcome().action, Action::Staged { bytes: 8 });
    /// let map = context.map(&buffer, MapFlags::WRITE | MapFlags::DISCARD_WHOLE)?;
    /// assert!(map.outcome().action.is_replaced());
    /// # Ok(())
    /// # }
    /// ```
    pub fn outcome(&self) -> Outcome {
        self.outcome
    }

    /// The number of mapped bytes.
    ///
    /// ```
    /// use spelter::MapFlags;
    ///
    /// # fn main() -> Result<(), spelter::Error> {
    /// # let context = spelter::Context::new()?;
    /// let buffer = context.buffer_zeroed(64)?;
    /// assert_eq!(context.map(buffer.slice(16..), MapFlags::READ)?.len(), 48);
    /// # Ok(())
    /// # }
    /// ```
    pub fn len(&self) -> u64 {
        self.range.end - self.range.start
    }

    /// Always false: an empty range cannot be mapped.
    ///
    /// ```
    /// use spelter::MapFlags;
    ///
    /// # fn main() -> Result<(), spelter::Error> {
    /// # let context = spelter::Context::new()?;
    /// let buffer = context.buffer_zeroed(64)?;
    /// assert!(!context.map(&buffer, MapFlags::READ)?.is_empty());
    /// # Ok(())
    /// # }
    /// ```
    pub fn is_empty(&self) -> bool {
        self.range.is_empty()
    }

    /// Reads `count` values from byte `offset` of the mapping on. If a kernel writes the bytes meanwhile (the mapping
    /// is persistent or unsynchronized), each byte is the old or the new one, and a value may consist of both.
    ///
    /// [`Error::Range`] if the values are not inside, or the mapping is not for reading, [`Error::Resource`] if the
    /// buffer is destroyed.
    ///
    /// ```
    /// use spelter::MapFlags;
    ///
    /// # fn main() -> Result<(), spelter::Error> {
    /// # let context = spelter::Context::new()?;
    /// let buffer = context.buffer_from(&[1u32, 2, 3])?;
    /// let map = context.map(&buffer, MapFlags::READ)?;
    /// assert_eq!(map.read::<u32>(4, 2)?, [2, 3]);
    /// assert!(map.read::<u32>(8, 2).is_err());
    /// # Ok(())
    /// # }
    /// ```
    pub fn read<T: AnyBitPattern>(&self, offset: u64, count: usize) -> Result<Vec<T>, Error> {
        let bytes = (size_of::<T>() as u64).saturating_mul(count as u64);
        self.check("read", offset, bytes, MapFlags::READ)?;
        self.check_type::<T>("read", offset, bytes)?;
        if size_of::<T>() == 0 {
            return Err(Error::range("read: elements of 0 bytes", rule::WHOLE));
        }
        let start = self.start + offset;
        values_of(bytes, |at, piece| self.target.storage().read(start + at, piece))
    }

    /// Writes values from byte `offset` of the mapping on. [`Error::Range`] if they are not inside, or the mapping is
    /// not for writing, [`Error::Resource`] if the buffer is destroyed.
    ///
    /// ```
    /// use spelter::MapFlags;
    ///
    /// # fn main() -> Result<(), spelter::Error> {
    /// # let context = spelter::Context::new()?;
    /// let buffer = context.buffer_zeroed(12)?;
    /// let map = context.map(&buffer, MapFlags::WRITE)?;
    /// map.write(4, &[9u32])?;
    /// map.unmap()?;
    /// assert_eq!(context.read::<u32>(&buffer)?, [0, 9, 0]);
    /// # Ok(())
    /// # }
    /// ```
    pub fn write<T: NoUninit>(&self, offset: u64, values: &[T]) -> Result<(), Error> {
        let bytes: &[u8] = bytemuck::cast_slice(values);
        self.check("write", offset, bytes.len() as u64, MapFlags::WRITE)?;
        self.check_type::<T>("write", offset, bytes.len() as u64)?;
        if bytes.is_empty() {
            return Ok(());
        }
        let written = offset..offset + bytes.len() as u64;
        match &self.staged {
            Some(staged) => staged.lock().add(written),
            None => self.resource.state().add(self.range.start + written.start..self.range.start + written.end),
        }
        self.target.storage().write(self.start + offset, bytes)?;
        self.context.share.memory().counters.bytes_written.add(bytes.len() as u64);
        Ok(())
    }

    fn check_type<T: 'static>(&self, what: &str, offset: u64, bytes: u64) -> Result<(), Error> {
        let start = self.range.start + offset;
        check_type::<T>(what, &self.resource, self.contents, &(start..start + bytes))
    }

    /// Makes writes through a persistent mapping without [`COHERENT`](MapFlags::COHERENT) visible to commands that are
    /// recorded from now on. It does nothing on this device, whose memory is always coherent.
    ///
    /// ```
    /// use spelter::MapFlags;
    ///
    /// # fn main() -> Result<(), spelter::Error> {
    /// # let context = spelter::Context::new()?;
    /// let buffer = context.buffer_zeroed(4)?;
    /// let map = context.map(&buffer, MapFlags::WRITE | MapFlags::PERSISTENT)?;
    /// let copy = context.buffer_zeroed(4)?;
    /// map.write(0, &[5u32])?;
    /// map.flush();
    /// context.copy(&buffer, 0, &copy, 0, 4)?; // while it is mapped
    /// assert_eq!(context.read::<u32>(&copy)?, [5]);
    /// # Ok(())
    /// # }
    /// ```
    pub fn flush(&self) {}

    /// Ends the mapping. Bytes that were collected in a staging buffer are copied to the buffer, in order.
    ///
    /// ```
    /// use spelter::MapFlags;
    ///
    /// # fn main() -> Result<(), spelter::Error> {
    /// # let context = spelter::Context::new()?;
    /// let buffer = context.buffer_zeroed(4)?;
    /// let map = context.map(&buffer, MapFlags::WRITE)?;
    /// assert!(context.fill(&buffer, 1).is_err()); // it is mapped
    /// map.unmap()?;
    /// context.fill(&buffer, 1)?;
    /// # Ok(())
    /// # }
    /// ```
    pub fn unmap(mut self) -> Result<(), Error> {
        self.end()
    }

    fn end(&mut self) -> Result<(), Error> {
        // Kept until the copy is recorded, so that no other mapping of these bytes begins before it.
        let Some(_mapped) = self.mapped.take() else { return Ok(()) };
        let staged = self.staged.take().map(Mutex::into_inner).unwrap_or_default();
        if staged.is_empty() {
            return Ok(());
        }
        let region = |Range { start, end }: Range<u64>| vk::BufferCopy {
            src_offset: start,
            dst_offset: self.range.start + start,
            size: end - start,
        };
        let regions: Vec<_> = staged.iter().map(region).collect();
        let (resource, bytes) = (self.resource.id(), regions.iter().map(|region| region.size).sum());
        self.context.share.memory().counters.bytes_staged.add(bytes);
        self.context.log.note(|| Event::Staged { resource, bytes });
        let pieces = [(Arc::clone(&self.target), regions)];
        self.context.copy_staged(("unmap", UseOrigin::Mapping), &self.resource, &pieces, &mut Waits::empty())
    }

    fn check(&self, what: &str, offset: u64, bytes: u64, needs: MapFlags) -> Result<(), Error> {
        let of = self.resource.described();
        self.resource.state().object(&self.resource, what)?;
        if !self.flags.contains(needs) {
            let problem = format!("{what}: the mapping of {of} is for {:?}", self.flags);
            return Err(Error::range(problem, rule::MAPPED_FOR));
        }
        if offset.checked_add(bytes).is_none_or(|end| end > self.len()) {
            let len = self.len();
            let problem = format!("{what}: {bytes} bytes at {offset} of {len} mapped bytes of {of}");
            return Err(Error::range(problem, rule::INSIDE));
        }
        Ok(())
    }
}

impl Drop for Mapped {
    fn drop(&mut self) {
        // Callers that need the error call `unmap`.
        let _ = self.end();
    }
}

impl fmt::Debug for Mapped {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Mapped(bytes {:?} of {}, {:?})", self.range, self.resource.described(), self.flags)
    }
}
