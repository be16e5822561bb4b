//! What a program holds: a resource. It names the object that stores it now, and knows which bytes hold anything.

use std::fmt;
use std::ops::{Bound, Range, RangeBounds};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use bytemuck::NoUninit;
use parking_lot::Mutex;

use crate::context::Context;
use crate::error::{Error, rule};
use crate::journal::Event;
use crate::memory::Spares;
use crate::object::{Contents, ResourceObject};
use crate::share::Share;
use crate::transfer::Maps;
use crate::valid::Ranges;

/// A number that no other resource has.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(crate) struct ResourceId(pub(crate) u64);

/// A buffer in device memory. A handle: clones name the same bytes. The memory is freed when the last handle is gone,
/// no slot has it bound, and the last batch that uses it has ended.
///
/// One buffer may be bound as storage and as uniform, in several slots and contexts, and be the source or target of
/// transfers. What stands behind it may be replaced ([`Context::invalidate`]); the handle stays good.
#[derive(Clone, Debug)]
pub struct Buffer {
    resource: Arc<Resource>,
}

/// What contexts know of a buffer.
pub(crate) struct Resource {
    id: ResourceId,
    share: Arc<Share>,
    label: Option<Box<str>>,
    size: u64,
    /// Objects that were replaced leave their storage here.
    pub(crate) spares: Spares,
    /// Locked after a context's state, before an object's usage.
    state: Mutex<State>,
}

/// The part of a resource that changes.
#[derive(Debug)]
pub(crate) struct State {
    /// The storage; none once the resource is destroyed.
    pub(crate) object: Option<Arc<ResourceObject>>,
    /// How often the object was replaced.
    pub(crate) generation: u64,
    /// Bytes that may hold defined data.
    pub(crate) valid: Ranges,
    /// Ranges that the host has mapped.
    pub(crate) maps: Maps,
}

impl Buffer {
    fn new(context: &Context, size: u64, label: Option<Box<str>>, contents: Contents) -> Result<Self, Error> {
        static NEXT: AtomicU64 = AtomicU64::new(1);
        let share = context.share();
        let spares = Spares::new();
        let object = share.with_pressure_relieved(|| ResourceObject::new(share.memory(), size, contents, &spares))?;
        let mut valid = Ranges::new();
        if contents == Contents::Zero {
            valid.add(0..size);
        }
        let state = State { object: Some(Arc::new(object)), generation: 0, valid, maps: Maps::default() };
        let resource = Resource {
            id: ResourceId(NEXT.fetch_add(1, Ordering::Relaxed)),
            share: Arc::clone(share),
            label,
            size,
            spares,
            state: Mutex::new(state),
        };
        Ok(Self { resource: Arc::new(resource) })
    }

    /// Size in bytes.
    ///
    /// ```
    /// # fn main() -> Result<(), spelter::Error> {
    /// let context = spelter::Context::new()?;
    /// assert_eq!(context.buffer_from(&[1u32, 2, 3])?.size(), 12);
    /// # Ok(())
    /// # }
    /// ```
    pub fn size(&self) -> u64 {
        self.resource.size
    }

    /// The name it was given, for messages and traces.
    pub fn label(&self) -> Option<&str> {
        self.resource.label.as_deref()
    }

    /// The byte ranges that may hold defined data: what was uploaded, copied or filled, and what was bound where a kernel
    /// can write. Sorted and disjoint.
    ///
    /// ```
    /// # fn main() -> Result<(), spelter::Error> {
    /// let context = spelter::Context::new()?;
    /// let buffer = context.buffer(64).build()?;
    /// assert!(buffer.valid_ranges().is_empty());
    /// context.write(&buffer, 16, &[1u32, 2])?;
    /// assert_eq!(buffer.valid_ranges(), [16..24]);
    /// context.invalidate(&buffer)?;
    /// assert!(buffer.valid_ranges().is_empty());
    /// # Ok(())
    /// # }
    /// ```
    pub fn valid_ranges(&self) -> Vec<Range<u64>> {
        self.resource.state().valid.iter().collect()
    }

    /// How often the object behind the buffer was replaced.
    pub fn generation(&self) -> u64 {
        self.resource.state().generation
    }

    /// Gives the memory back as soon as the batches that use it have retired, whoever still has a handle. Every later use
    /// of the buffer is an error; destroying it again does nothing.
    ///
    /// ```
    /// # fn main() -> Result<(), spelter::Error> {
    /// let context = spelter::Context::new()?;
    /// let buffer = context.buffer(64).label("old").zeroed()?;
    /// buffer.destroy();
    /// let error = context.read::<u8>(&buffer).unwrap_err().to_string();
    /// assert!(error.starts_with("read: buffer `old` of 64 bytes is destroyed"), "{error}");
    /// # Ok(())
    /// # }
    /// ```
    pub fn destroy(&self) {
        let old = self.resource.state().object.take();
        self.resource.spares.free(true);
        if let Some(old) = old {
            self.resource.share.journal().note(Event { resource: self.resource.id, lost: Some(old.id()) });
        }
    }

    pub(crate) fn resource(&self) -> &Arc<Resource> {
        &self.resource
    }
}

impl Resource {
    pub(crate) fn id(&self) -> ResourceId {
        self.id
    }

    pub(crate) fn size(&self) -> u64 {
        self.size
    }

    pub(crate) fn state(&self) -> parking_lot::MutexGuard<'_, State> {
        self.state.lock()
    }

    pub(crate) fn is_of(&self, share: &Arc<Share>) -> bool {
        Arc::ptr_eq(&self.share, share)
    }

    /// "a buffer of 64 bytes", or "buffer `label` of 64 bytes".
    pub(crate) fn described(&self) -> String {
        match &self.label {
            Some(label) => format!("buffer `{label}` of {} bytes", self.size),
            None => format!("a buffer of {} bytes", self.size),
        }
    }
}

impl State {
    /// The object, for a command or transfer called `what`; destroyed resources have none.
    pub(crate) fn object(&self, resource: &Resource, what: &str) -> Result<&Arc<ResourceObject>, Error> {
        self.object
            .as_ref()
            .ok_or_else(|| Error::resource(format!("{what}: {} is destroyed", resource.described()), rule::DESTROYED))
    }
}

impl Drop for Resource {
    fn drop(&mut self) {
        self.spares.free(true);
        if let Some(object) = self.state.get_mut().object.take() {
            self.share.journal().note(Event { resource: self.id, lost: Some(object.id()) });
        }
    }
}

impl fmt::Debug for Resource {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.described())
    }
}

/// Makes a [`Buffer`]: see [`Context::buffer`].
#[derive(Clone, Debug)]
#[must_use = "a builder makes nothing until `build`, `zeroed` or `holding`"]
pub struct BufferBuilder<'a> {
    context: &'a Context,
    size: u64,
    label: Option<Box<str>>,
}

impl<'a> BufferBuilder<'a> {
    pub(crate) fn new(context: &'a Context, size: u64) -> Self {
        Self { context, size, label: None }
    }

    /// Names the buffer in messages and traces.
    pub fn label(mut self, label: impl Into<String>) -> Self {
        self.label = Some(label.into().into_boxed_str());
        self
    }

    /// A buffer whose contents are not defined. [`Error::Misuse`] if it has no bytes or too many,
    /// [`Error::OutOfMemory`].
    pub fn build(self) -> Result<Buffer, Error> {
        Buffer::new(self.context, self.size, self.label, Contents::Undefined)
    }

    /// A buffer that holds zeros. Errors as [`BufferBuilder::build`].
    pub fn zeroed(self) -> Result<Buffer, Error> {
        Buffer::new(self.context, self.size, self.label, Contents::Zero)
    }

    /// A buffer that begins with these values. [`Error::Range`] if they are more than its size; else as
    /// [`BufferBuilder::build`].
    pub fn holding<T: NoUninit>(self, values: &[T]) -> Result<Buffer, Error> {
        let context = self.context;
        let buffer = self.build()?;
        context.write(&buffer, 0, values)?;
        Ok(buffer)
    }
}

/// Bytes of a buffer: all of it (`&buffer`) or a part ([`Buffer::slice`]).
#[derive(Clone, Copy, Debug)]
pub struct BufferSlice<'a> {
    pub(crate) buffer: &'a Buffer,
    pub(crate) start: u64,
    pub(crate) end: u64,
}

impl Buffer {
    /// The bytes `range` of the buffer, to be bound. Whether they are inside is tested when they are used.
    pub fn slice(&self, range: impl RangeBounds<u64>) -> BufferSlice<'_> {
        let start = match range.start_bound() {
            Bound::Included(&start) => start,
            Bound::Excluded(&start) => start.saturating_add(1),
            Bound::Unbounded => 0,
        };
        let end = match range.end_bound() {
            Bound::Included(&end) => end.saturating_add(1),
            Bound::Excluded(&end) => end,
            Bound::Unbounded => self.size(),
        };
        BufferSlice { buffer: self, start, end }
    }
}

impl<'a> From<&'a Buffer> for BufferSlice<'a> {
    fn from(buffer: &'a Buffer) -> Self {
        buffer.slice(..)
    }
}

impl BufferSlice<'_> {
    pub(crate) fn range(&self) -> Range<u64> {
        self.start..self.end
    }
}
