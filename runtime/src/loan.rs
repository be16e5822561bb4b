//! Loans: a buffer's present storage for commands that the program records with the driver's API.
//!
//! Between [`Context::lend`] and [`Loan::submit`] the buffers are pinned: nothing replaces their storage. A pin is an
//! empty persistent mapping: commands may use the buffer, every rule of renaming sees it, and it overlaps no other
//! mapping. The submission enters the uses as for any command; from then on the batch keeps the storage.

use std::ops::Range;
use std::sync::Arc;

use spelter_driver::CommandBuffer;

use crate::barrier::Use;
use crate::buffer::BufferSlice;
use crate::context::Context;
use crate::error::{Error, rule};
use crate::fence::Fence;
use crate::ids::Access;
use crate::object::ResourceObject;
use crate::resource::Resource;
use crate::share::Member;
use crate::submission::TimelinePoint;
use crate::transfer::check_inside;

/// A buffer, or a part of one, to be lent to the driver's API, and what its commands do with it: see
/// [`Context::lend`].
///
/// ```
/// use spelter::Lend;
///
/// # fn main() -> Result<(), spelter::Error> {
/// # let context = spelter::Context::new()?;
/// let buffer = context.buffer_zeroed(64)?;
/// let loan = context.lend(&[Lend::read(&buffer), Lend::write(buffer.slice(16..32))])?;
/// assert_eq!(loan.buffers().len(), 2);
/// # Ok(())
/// # }
/// ```
#[derive(Clone, Copy, Debug)]
pub struct Lend<'a> {
    slice: BufferSlice<'a>,
    access: Access,
}

impl<'a> Lend<'a> {
    /// The commands read these bytes and do not write them.
    ///
    /// ```
    /// # fn main() -> Result<(), spelter::Error> {
    /// # let context = spelter::Context::new()?;
    /// let buffer = context.buffer_zeroed(64)?;
    /// assert_eq!(context.lend(&[spelter::Lend::read(buffer.slice(16..))])?.buffers()[0].bytes, 48);
    /// # Ok(())
    /// # }
    /// ```
    pub fn read(buffer: impl Into<BufferSlice<'a>>) -> Self {
        Self { slice: buffer.into(), access: Access::Read }
    }

    /// The commands may write these bytes, and read them. They count as valid from the submission on.
    ///
    /// ```
    /// # fn main() -> Result<(), spelter::Error> {
    /// # let context = spelter::Context::new()?;
    /// let buffer = context.buffer(64).build()?;
    /// context.lend(&[spelter::Lend::write(buffer.slice(16..32))])?.submit(&[])?;
    /// assert_eq!(buffer.valid_ranges(), [16..32]);
    /// # Ok(())
    /// # }
    /// ```
    pub fn write(buffer: impl Into<BufferSlice<'a>>) -> Self {
        Self { slice: buffer.into(), access: Access::Write }
    }
}

/// A lent buffer as the driver's API takes it.
///
/// ```
/// # fn main() -> Result<(), spelter::Error> {
/// # let context = spelter::Context::new()?;
/// let buffer = context.buffer_zeroed(64)?;
/// let loan = context.lend(&[spelter::Lend::read(buffer.slice(16..))])?;
/// let lent = loan.buffers()[0];
/// assert_eq!((lent.buffer.size(), lent.offset, lent.bytes), (64, 16, 48));
/// # Ok(())
/// # }
/// ```
#[derive(Clone, Copy, Debug)]
#[non_exhaustive]
pub struct LentBuffer<'a> {
    /// The driver's buffer, for storage, uniform and indirect buffers and transfers.
    pub buffer: &'a spelter_driver::Buffer,
    /// The first byte of the lent part in it.
    pub offset: u64,
    /// The number of lent bytes.
    pub bytes: u64,
}

/// Buffers that are lent to the driver's API, until [`Loan::submit`] or a drop: see [`Context::lend`]. Meanwhile they
/// keep their storage, as if they were mapped persistently: an invalidation leaves them as they are, and an upload is
/// copied in order. If one is destroyed, the submission fails.
///
/// ```
/// use spelter::Lend;
///
/// # fn main() -> Result<(), spelter::Error> {
/// # let context = spelter::Context::new()?;
/// let (buffer, copy) = (context.buffer_from(&[1u32])?, context.buffer_zeroed(4)?);
/// context.copy(&buffer, 0, &copy, 0, 4)?; // in use
/// let loan = context.lend(&[Lend::read(&buffer)])?;
/// context.invalidate(&buffer)?;
/// assert_eq!((buffer.generation(), context.read::<u32>(&buffer)?), (0, vec![1]));
/// drop(loan);
/// # Ok(())
/// # }
/// ```
#[derive(Debug)]
#[must_use = "the loan ends when it is dropped"]
pub struct Loan {
    context: Context,
    lent: Vec<Lent>,
}

/// A lent buffer, pinned until this is dropped.
#[derive(Debug)]
struct Lent {
    resource: Arc<Resource>,
    object: Arc<ResourceObject>,
    range: Range<u64>,
    access: Access,
    /// The number of the mapping that pins it.
    pin: u64,
}

impl Context {
    /// Lends buffers to the driver's API ([`spelter_driver`]): for commands that the program records with
    /// [`Context::device`] and that [`Loan::submit`] puts in order with those of all contexts. The storage that is lent
    /// belongs to this loan: for the next one the commands are recorded again.
    ///
    /// [`Error::Range`] if a part is empty or not inside its buffer, [`Error::Resource`] if a buffer is destroyed,
    /// mapped or of another device.
    ///
    /// ```
    /// use spelter::{Lend, vk};
    ///
    /// # fn main() -> Result<(), spelter::Error> {
    /// # let context = spelter::Context::new()?;
    /// let buffer = context.buffer_from(&[1u32, 2, 3, 4])?;
    /// let loan = context.lend(&[Lend::write(buffer.slice(4..12))])?;
    /// let (commands, lent) = (context.device().create_command_pool().allocate(), loan.buffers()[0]);
    /// commands.begin(vk::CommandBufferUsageFlags::ONE_TIME_SUBMIT)?;
    /// commands.fill_buffer(lent.buffer, lent.offset, lent.bytes, 9)?;
    /// commands.end()?;
    /// loan.submit(&[&commands])?;
    /// assert_eq!(context.read::<u32>(&buffer)?, [1, 9, 9, 4]);
    /// # Ok(())
    /// # }
    /// ```
    pub fn lend(&self, buffers: &[Lend<'_>]) -> Result<Loan, Error> {
        let lent = buffers.iter().map(|lend| Lent::new(self, lend)).collect::<Result<_, _>>()?;
        Ok(Loan { context: self.clone(), lent })
    }
}

impl Lent {
    fn new(context: &Context, lend: &Lend<'_>) -> Result<Self, Error> {
        let (buffer, range) = (lend.slice.buffer, lend.slice.range());
        context.check_range("lend", buffer, &range)?;
        let resource = Arc::clone(buffer.resource());
        if range.is_empty() {
            return Err(Error::range(format!("lend: no bytes of {}", resource.described()), rule::LENT));
        }
        let mut state = resource.state();
        let object = Arc::clone(state.object(&resource, "lend")?);
        if state.mappings.forbid_commands() {
            return Err(Error::resource(format!("lend: {} is mapped", resource.described()), rule::MAPPED));
        }
        // Another thread may have given it another size since.
        check_inside("lend", &resource, &object, &range)?;
        let pin = state.mappings.add(0..0, true);
        drop(state);
        Ok(Self { resource, object, range, access: lend.access, pin })
    }
}

impl Drop for Lent {
    fn drop(&mut self) {
        self.resource.state().mappings.remove(self.pin);
    }
}

impl Loan {
    /// The lent buffers, in the order in which they were given to [`Context::lend`].
    ///
    /// ```
    /// # fn main() -> Result<(), spelter::Error> {
    /// # let context = spelter::Context::new()?;
    /// let (a, b) = (context.buffer_zeroed(64)?, context.buffer_zeroed(32)?);
    /// let loan = context.lend(&[spelter::Lend::read(&a), spelter::Lend::write(&b)])?;
    /// assert_eq!(loan.buffers().iter().map(|lent| lent.bytes).collect::<Vec<_>>(), [64, 32]);
    /// # Ok(())
    /// # }
    /// ```
    pub fn buffers(&self) -> Vec<LentBuffer<'_>> {
        let lent = self.lent.iter().filter_map(|lent| {
            let (offset, bytes) = (lent.range.start, lent.range.end - lent.range.start);
            // The object of a buffer is a buffer.
            Some(LentBuffer { buffer: lent.object.buffer().ok()?, offset, bytes })
        });
        lent.collect()
    }

    /// Submits all commands recorded in the context, then these command buffers of the driver, one after the other, and
    /// ends the loan. They come after all commands of all contexts that were recorded before and before all that are
    /// recorded later, as far as these use the lent bytes. A command that accesses other bytes, or writes bytes that
    /// were lent for reading, is not ordered: that is a data race.
    ///
    /// [`Error::Misuse`] if the driver rejects a command buffer, [`Error::Resource`] if a buffer was destroyed or
    /// mapped; then none of them runs.
    ///
    /// ```
    /// use spelter::{Lend, vk};
    ///
    /// # fn main() -> Result<(), spelter::Error> {
    /// # let context = spelter::Context::new()?;
    /// let (from, to) = (context.buffer_from(&[5u32])?, context.buffer_zeroed(4)?);
    /// let loan = context.lend(&[Lend::read(&from), Lend::write(&to)])?;
    /// let [source, target] = [0, 1].map(|number| loan.buffers()[number].buffer);
    /// let commands = context.device().create_command_pool().allocate();
    /// commands.begin(vk::CommandBufferUsageFlags::empty())?;
    /// commands.copy_buffer(source, target, &[vk::BufferCopy { src_offset: 0, dst_offset: 0, size: 4 }])?;
    /// commands.end()?;
    /// loan.submit(&[&commands])?.wait()?;
    /// assert_eq!(context.read::<u32>(&to)?, [5]);
    /// # Ok(())
    /// # }
    /// ```
    pub fn submit(self, commands: &[&CommandBuffer]) -> Result<Fence, Error> {
        let inner = self.context.inner();
        let serial = inner.record(|state| {
            self.lent.iter().try_for_each(|lent| lent.resource.object_for_command("submit").map(drop))?;
            let lent = self.lent.iter();
            let uses = lent.map(|lent| Use::of(&lent.resource, &lent.object, lent.range.clone(), lent.access));
            let entries = state.timeline.batch()?.enter(&state.clock, uses)?;
            let submitted = state.timeline.flush_with(commands);
            if let Err(Error::Misuse(_)) = submitted {
                entries.take_back();
            }
            Ok(submitted?)
        })?;
        inner.retire();
        let point = TimelinePoint { clock: Arc::clone(&inner.clock), serial };
        Ok(Fence::new(self.context.share(), point, &inner.log))
    }
}
