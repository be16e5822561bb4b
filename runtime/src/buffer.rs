//! Handles of buffers, and of ranges of buffers.

use std::ops::{Bound, Range, RangeBounds};
use std::sync::Arc;

use crate::error::Error;
use crate::layout::{BufferType, Layout};
use crate::memory::Template;
use crate::object::InitialContents;
use crate::resource::Resource;
use crate::share::Share;

/// A buffer in device memory. A handle: clones refer to the same buffer. The memory is freed when the last handle is
/// dropped, no slot has the buffer bound, and the last batch that uses it has retired.
///
/// One buffer may be bound as storage and as uniform, in several slots and contexts, and be the source or target of
/// transfers. Its storage may be replaced ([`Context::invalidate`](crate::Context::invalidate)); the handle stays
/// valid.
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
#[derive(Clone)]
pub struct Buffer {
    resource: Arc<Resource>,
    /// What dispatches and the host's accesses check its contents against, if this handle says what they are.
    contents: Option<BufferType>,
}

impl Buffer {
    /// A handle of a resource that is a buffer.
    pub(crate) fn of(resource: &Arc<Resource>) -> Self {
        Self { resource: Arc::clone(resource), contents: None }
    }

    pub(crate) fn new(
        share: &Arc<Share>,
        size: u64,
        label: Option<Box<str>>,
        contents: InitialContents,
    ) -> Result<Self, Error> {
        let resource = Resource::new(share, Template::Buffer(size), label, contents)?;
        Ok(Self { resource: Arc::new(resource), contents: None })
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
        self.resource.size()
    }

    /// The label of the buffer, for messages and traces.
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

    /// The byte ranges that may hold defined data: those that were uploaded, copied to or filled, and those that were
    /// bound where a kernel can write. Sorted and disjoint.
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

    /// The number of times that the buffer's storage was replaced.
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

    /// The same buffer as one that holds values of type `T`. Each dispatch with this handle, however it is bound (also
    /// in slots, sets and command buffers), is an error if the program declares other data at that binding: the type is
    /// compared as by [`Block::check`](crate::Block::check), once for each program. A texel buffer's view has a format
    /// of its own, which is not compared. Bytes stay as they are, and other handles are not affected.
    ///
    /// The shader's block may be one `T`, or an array of `T`, with a size or without, also as the only member of a
    /// structure. Of a block that ends with an array after other members, `T` is what comes before the array. A range
    /// that is bound begins with a whole `T`. Where both sides are numbers of one type without holes between them, and
    /// the sizes of their elements divide each other, as of `f32` and `array<vec4f>`, only that type is compared, and
    /// the names of fields: a field of `T` that the shader has at another byte is an error.
    ///
    /// The host's reads and writes through this handle are checked, too: values of another type are an error, except
    /// bytes (`u8`), and numbers where the buffer has numbers of that type.
    ///
    /// ```
    /// use spelter::bytemuck::NoUninit;
    ///
    /// spelter::layout! {
    ///     #[derive(Clone, Copy, NoUninit)]
    ///     #[bytemuck(crate = "spelter::bytemuck")]
    ///     #[repr(C)]
    ///     struct Ball {
    ///         radius: f32,
    ///         at: [f32; 3],
    ///     }
    /// }
    ///
    /// # fn main() -> Result<(), spelter::Error> {
    /// # let context = spelter::Context::new()?;
    /// let program = context.program_wgsl(
    ///     "struct Ball { radius: f32, at: vec3f }
    ///      @group(0) @binding(0) var<storage, read_write> balls: array<Ball>;
    ///      @compute @workgroup_size(1) fn main() { balls[0].radius *= balls[1].at.z; }",
    /// )?;
    /// let balls = context.buffer_from(&[Ball { radius: 1.0, at: [0.0; 3] }; 4])?;
    /// let error = context.dispatch(&program).bind(0, 0, &balls.typed::<Ball>()).groups([1, 1, 1]).unwrap_err();
    /// assert!(error.to_string().contains("the shader has `at` (vec3<f32>) at byte 16, `Ball` has `at` at byte 4"));
    /// # Ok(())
    /// # }
    /// ```
    #[must_use = "it is another handle, and this one stays as it is"]
    pub fn typed<T: Layout + 'static>(&self) -> Self {
        Self { contents: Some(BufferType::of::<T>()), ..self.clone() }
    }

    /// As [`Buffer::typed`], of a buffer that holds one value of type `H` and, after it, an array of `T` of any length:
    /// a block that ends with an array without a size. The array begins after `H`, at a multiple of the alignment of
    /// `T`; where the shader has it later, `H` needs padding. A range that is bound begins with the buffer.
    ///
    /// ```
    /// spelter::layout! {
    ///     #[repr(C)]
    ///     struct Head {
    ///         count: u32,
    ///     }
    /// }
    ///
    /// # fn main() -> Result<(), spelter::Error> {
    /// # let context = spelter::Context::new()?;
    /// let program = context.program_wgsl(
    ///     "struct List { count: u32, data: array<vec2f> }
    ///      @group(0) @binding(0) var<storage, read_write> list: List;
    ///      @compute @workgroup_size(1) fn main() { list.count = arrayLength(&list.data); }",
    /// )?;
    /// let list = context.buffer_zeroed(4 + 3 * 8)?;
    /// let close = list.typed_with_tail::<Head, [f32; 2]>();
    /// let error = context.dispatch(&program).bind(0, 0, &close).groups([1, 1, 1]).unwrap_err().to_string();
    /// assert!(error.contains("the shader's array begins at byte 8, the one after `Head` at byte 4"), "{error}");
    /// # Ok(())
    /// # }
    /// ```
    #[must_use = "it is another handle, and this one stays as it is"]
    pub fn typed_with_tail<H: Layout + 'static, T: Layout + 'static>(&self) -> Self {
        Self { contents: Some(BufferType::with_tail::<H, T>()), ..self.clone() }
    }

    /// The same buffer as bytes: dispatches with this handle, reads and writes do not compare a type, as those of
    /// [`Context::buffer_from`](crate::Context::buffer_from).
    ///
    /// ```
    /// # fn main() -> Result<(), spelter::Error> {
    /// # let context = spelter::Context::new()?;
    /// let clear = context.program_wgsl(
    ///     "@group(0) @binding(0) var<storage, read_write> words: array<u32>;
    ///      @compute @workgroup_size(1) fn main() { words[0] = 0u; }",
    /// )?;
    /// let floats = context.typed_buffer(&[1.0f32, 2.0])?;
    /// assert!(context.dispatch(&clear).bind(0, 0, &floats).groups([1, 1, 1]).is_err());
    /// context.dispatch(&clear).bind(0, 0, &floats.untyped()).groups([1, 1, 1])?;
    /// assert_eq!(context.read::<f32>(&floats)?, [0.0, 2.0]);
    /// # Ok(())
    /// # }
    /// ```
    #[must_use = "it is another handle, and this one stays as it is"]
    pub fn untyped(&self) -> Self {
        Self { contents: None, ..self.clone() }
    }

    /// Frees the memory as soon as the batches that use it have retired, even if there are other handles. Every later
    /// use of the buffer is an error; destroying it again does nothing.
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

    /// What this handle says of the contents.
    pub(crate) fn contents(&self) -> Option<BufferType> {
        self.contents
    }
}

/// A range of bytes of a buffer: all of it (`&buffer`) or a part ([`Buffer::slice`]).
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
    /// Whether it extends to the end of the buffer, whatever its size (`VK_WHOLE_SIZE`).
    pub(crate) to_end: bool,
}

impl Buffer {
    /// The bytes `range` of the buffer, to be bound or mapped. The range is checked when it is used. Without an end
    /// (`16..`) it extends to the end of the buffer, also if that is bound and then respecified with another size
    /// ([`Context::resize`](crate::Context::resize)).
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
        let to_end = range.end_bound() == Bound::Unbounded;
        BufferSlice { buffer: self, start, end, to_end }
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
