//! What a program holds: a resource. It names the object that stores it now, and knows which bytes hold anything.

use std::fmt;
use std::ops::{Bound, Range, RangeBounds};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use ash::vk;
use bytemuck::NoUninit;
use parking_lot::Mutex;
use spelter_driver::Misuse;

use crate::context::Context;
use crate::error::{Error, rule};
use crate::journal::Event;
use crate::memory::{Spares, Template};
use crate::object::{Contents, ResourceObject};
use crate::replace::Backing;
use crate::share::Share;

/// A number that no other resource has.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(crate) struct ResourceId(pub(crate) u64);

/// A buffer in device memory. A handle: clones name the same bytes. The memory is freed when the last handle is gone,
/// no slot has it bound, and the last batch that uses it has ended.
///
/// One buffer may be bound as storage and as uniform, in several slots and contexts, and be the source or target of
/// transfers. What stands behind it may be replaced ([`Context::invalidate`]); the handle stays good.
///
/// ```
/// # fn main() -> Result<(), spelter::Error> {
/// # let context = spelter::Context::new()?;
/// let particles = context.buffer(1 << 16).label("particles").zeroed()?;
/// let same = particles.clone(); // another handle
/// context.write(&same, 0, &[1.0f32])?;
/// assert_eq!(context.read_range::<f32>(&particles, 0..8)?, [1.0, 0.0]);
/// # Ok(())
/// # }
/// ```
#[derive(Clone, Debug)]
pub struct Buffer {
    resource: Arc<Resource>,
}

/// What contexts know of a buffer or an image.
pub(crate) struct Resource {
    id: ResourceId,
    share: Arc<Share>,
    label: Option<Box<str>>,
    template: Template,
    /// Bytes of storage.
    bytes: u64,
    /// Objects that were replaced leave their storage here.
    pub(crate) spares: Spares,
    /// Locked after a context's state, before an object's usage.
    state: Mutex<State>,
}

/// The part of a resource that changes.
pub(crate) type State = Backing<ResourceObject>;

impl Buffer {
    fn new(context: &Context, size: u64, label: Option<Box<str>>, contents: Contents) -> Result<Self, Error> {
        let resource = Resource::new(context, Template::Buffer(size), label, contents)?;
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
        self.resource.bytes
    }

    /// The name it was given, for messages and traces.
    ///
    /// ```
    /// # fn main() -> Result<(), spelter::Error> {
    /// # let context = spelter::Context::new()?;
    /// assert_eq!(context.buffer(4).label("seed").build()?.label(), Some("seed"));
    /// assert_eq!(context.buffer(4).build()?.label(), None);
    /// # Ok(())
    /// # }
    /// ```
    pub fn label(&self) -> Option<&str> {
        self.resource.label()
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
        self.resource.state().valid().iter().collect()
    }

    /// How often the object behind the buffer was replaced.
    ///
    /// ```
    /// # fn main() -> Result<(), spelter::Error> {
    /// # let context = spelter::Context::new()?;
    /// let (buffer, copy) = (context.buffer_from(&[1u32])?, context.buffer_zeroed(4)?);
    /// context.copy(&buffer, 0, &copy, 0, 4)?; // recorded: the buffer is in use
    /// context.upload(&buffer, &[2u32])?;
    /// assert_eq!(buffer.generation(), 1);
    /// # Ok(())
    /// # }
    /// ```
    pub fn generation(&self) -> u64 {
        self.resource.state().generation()
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
        self.resource.destroy();
    }

    pub(crate) fn resource(&self) -> &Arc<Resource> {
        &self.resource
    }
}

impl Resource {
    pub(crate) fn new(
        context: &Context,
        template: Template,
        label: Option<Box<str>>,
        contents: Contents,
    ) -> Result<Self, Error> {
        static NEXT: AtomicU64 = AtomicU64::new(1);
        let share = context.share();
        let spares = Spares::new(&share.memory().spare);
        let make = || ResourceObject::new(share.memory(), &template, contents, &spares);
        let named = |error: Error| match (error, &label) {
            (Error::Misuse(misuse), Some(label)) => {
                Error::Misuse(Misuse { problem: format!("`{label}`: {}", misuse.problem), ..misuse })
            }
            (error, label) => error.for_want_of(|| described(&template, label.as_deref())),
        };
        let object = share.with_pressure_relieved(make).map_err(named)?;
        let (bytes, state) = (object.size(), State::new(Arc::new(object)));
        // Relaxed: numbers only have to differ.
        let id = ResourceId(NEXT.fetch_add(1, Ordering::Relaxed));
        let mut resource =
            Self { id, share: Arc::clone(share), label, template, bytes, spares, state: Mutex::new(state) };
        if contents == Contents::Zero {
            let whole = resource.whole();
            resource.state.get_mut().add(whole);
        }
        Ok(resource)
    }

    pub(crate) fn destroy(&self) {
        let mut state = self.state();
        let old = state.destroy();
        let bound = state.bound;
        self.tell_of_loss(bound, old.as_ref());
        drop(state);
        self.let_go(old, bound);
    }

    /// Contexts learn that the object is gone. The resource is locked, or nobody else's.
    fn tell_of_loss(&self, bound: bool, old: Option<&Arc<ResourceObject>>) {
        if let Some(old) = old.filter(|_| bound) {
            self.share.journal().note(Event { resource: self.id, lost: Some(old.id()) });
        }
    }

    /// The memory goes as soon as nothing uses it: contexts that keep it for nothing are told.
    fn let_go(&self, old: Option<Arc<ResourceObject>>, bound: bool) {
        self.spares.close();
        // By batches; or, if it was ever bound, by slots and descriptor sets.
        let is_kept = old.as_ref().is_some_and(|old| bound || Arc::strong_count(old) > 1);
        drop(old);
        if is_kept {
            self.share.retire_all();
        }
    }

    /// What its objects are made like.
    pub(crate) fn template(&self) -> &Template {
        &self.template
    }

    pub(crate) fn label(&self) -> Option<&str> {
        self.label.as_deref()
    }

    /// All that can be valid: bytes of a buffer, subresources of an image.
    pub(crate) fn whole(&self) -> Range<u64> {
        match &self.template {
            Template::Buffer(bytes) => 0..*bytes,
            Template::Image(info) => 0..u64::from(info.levels) * u64::from(info.layers),
        }
    }

    pub(crate) fn id(&self) -> ResourceId {
        self.id
    }

    /// Bytes of storage.
    pub(crate) fn size(&self) -> u64 {
        self.bytes
    }

    pub(crate) fn state(&self) -> parking_lot::MutexGuard<'_, State> {
        self.state.lock()
    }

    pub(crate) fn share(&self) -> &Arc<Share> {
        &self.share
    }

    pub(crate) fn is_of(&self, share: &Arc<Share>) -> bool {
        Arc::ptr_eq(&self.share, share)
    }

    /// "a buffer of 64 bytes", or "buffer `label` of 64 bytes".
    pub(crate) fn described(&self) -> String {
        described(&self.template, self.label())
    }
}

fn described(template: &Template, label: Option<&str>) -> String {
    let (kind, article, what) = match template {
        Template::Buffer(bytes) => ("buffer", "a", format!("{bytes} bytes")),
        Template::Image(info) => {
            let vk::Extent3D { width, height, depth } = info.extent;
            ("image", "an", format!("{width}x{height}x{depth} {:?}", info.format))
        }
    };
    match label {
        Some(label) => format!("{kind} `{label}` of {what}"),
        None => format!("{article} {kind} of {what}"),
    }
}

impl State {
    /// The object, for a command or transfer called `what`; destroyed resources have none.
    pub(crate) fn object(&self, resource: &Resource, what: &str) -> Result<&Arc<ResourceObject>, Error> {
        self.storage()
            .ok_or_else(|| Error::resource(format!("{what}: {} is destroyed", resource.described()), rule::DESTROYED))
    }
}

/// The host's copy into an object, made while no lock is held: the bytes are others' again when this is dropped.
#[derive(Debug)]
pub(crate) struct Copying<'a> {
    resource: &'a Resource,
    number: u64,
}

impl<'a> Copying<'a> {
    /// `state` is the resource's. Nobody is in the way of the bytes.
    pub(crate) fn new(resource: &'a Resource, state: &mut State, range: Range<u64>) -> Self {
        Self { resource, number: state.begin(range) }
    }
}

impl Drop for Copying<'_> {
    fn drop(&mut self) {
        self.resource.state().end(self.number);
        self.resource.share.gate().end();
    }
}

impl Drop for Resource {
    fn drop(&mut self) {
        let state = self.state.get_mut();
        let (old, bound) = (state.destroy(), state.bound);
        self.tell_of_loss(bound, old.as_ref());
        self.let_go(old, bound);
    }
}

impl fmt::Debug for Resource {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.described())
    }
}

/// Makes a [`Buffer`]: see [`Context::buffer`].
///
/// ```
/// # fn main() -> Result<(), spelter::Error> {
/// # let context = spelter::Context::new()?;
/// let table = context.buffer(64).label("table").holding(&[1u32, 2, 3])?;
/// assert_eq!((table.size(), table.valid_ranges()), (64, vec![0..12]));
/// # Ok(())
/// # }
/// ```
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
    ///
    /// ```
    /// # fn main() -> Result<(), spelter::Error> {
    /// # let context = spelter::Context::new()?;
    /// let buffer = context.buffer(4).label("seed").zeroed()?;
    /// let error = context.write(&buffer, 4, &[1u32]).unwrap_err().to_string();
    /// assert!(error.contains("buffer `seed` of 4 bytes"));
    /// # Ok(())
    /// # }
    /// ```
    pub fn label(mut self, label: impl Into<String>) -> Self {
        self.label = Some(label.into().into_boxed_str());
        self
    }

    /// A buffer whose contents are not defined. [`Error::Misuse`] if it has no bytes or too many,
    /// [`Error::OutOfMemory`].
    ///
    /// ```
    /// # fn main() -> Result<(), spelter::Error> {
    /// # let context = spelter::Context::new()?;
    /// let buffer = context.buffer(1 << 20).label("frame").build()?;
    /// assert!(buffer.valid_ranges().is_empty());
    /// # Ok(())
    /// # }
    /// ```
    pub fn build(self) -> Result<Buffer, Error> {
        Buffer::new(self.context, self.size, self.label, Contents::Undefined)
    }

    /// A buffer that holds zeros. Errors as [`BufferBuilder::build`].
    ///
    /// ```
    /// # fn main() -> Result<(), spelter::Error> {
    /// # let context = spelter::Context::new()?;
    /// let buffer = context.buffer(8).zeroed()?;
    /// assert_eq!(context.read::<u32>(&buffer)?, [0, 0]);
    /// # Ok(())
    /// # }
    /// ```
    pub fn zeroed(self) -> Result<Buffer, Error> {
        Buffer::new(self.context, self.size, self.label, Contents::Zero)
    }

    /// A buffer that begins with these values. [`Error::Range`] if they are more than its size; else as
    /// [`BufferBuilder::build`].
    ///
    /// ```
    /// # fn main() -> Result<(), spelter::Error> {
    /// # let context = spelter::Context::new()?;
    /// let buffer = context.buffer(8).holding(&[1u32, 2])?;
    /// assert_eq!(context.read::<u32>(&buffer)?, [1, 2]);
    /// # Ok(())
    /// # }
    /// ```
    pub fn holding<T: NoUninit>(self, values: &[T]) -> Result<Buffer, Error> {
        let context = self.context;
        let buffer = self.build()?;
        context.write(&buffer, 0, values)?;
        Ok(buffer)
    }
}

/// Bytes of a buffer: all of it (`&buffer`) or a part ([`Buffer::slice`]).
///
/// ```
/// use spelter::Bind;
///
/// # fn main() -> Result<(), spelter::Error> {
/// # let context = spelter::Context::new()?;
/// let buffer = context.buffer_zeroed(256)?;
/// context.bind((0, 0), Bind::storage(&buffer))?; // all of it
/// context.bind((0, 1), Bind::uniform(buffer.slice(64..128)))?; // a part
/// # Ok(())
/// # }
/// ```
#[derive(Clone, Copy, Debug)]
pub struct BufferSlice<'a> {
    pub(crate) buffer: &'a Buffer,
    pub(crate) start: u64,
    pub(crate) end: u64,
}

impl Buffer {
    /// The bytes `range` of the buffer, to be bound. Whether they are inside is tested when they are used.
    ///
    /// ```
    /// use spelter::MapFlags;
    ///
    /// # fn main() -> Result<(), spelter::Error> {
    /// # let context = spelter::Context::new()?;
    /// let buffer = context.buffer_from(&[1u32, 2, 3, 4])?;
    /// let map = context.map(buffer.slice(8..), MapFlags::READ)?;
    /// assert_eq!(map.read::<u32>(0, 2)?, [3, 4]);
    /// # Ok(())
    /// # }
    /// ```
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
