//! Bindable objects: everything that a slot of a context takes.

use std::ops::Range;
use std::sync::Arc;

use ash::vk;
use spelter_driver::Sampler;
use spelter_shaders::ir::BindingKind;

use crate::buffer::BufferSlice;
use crate::ids::SlotKind;
use crate::image::ImagePart;
use crate::layout::BufferType;
use crate::resource::Resource;
use crate::view::Part;

/// A resource, or a part of one, and the kind of slot to bind it to: see [`Context::bind`](crate::Context::bind).
///
/// ```
/// use spelter::Bind;
///
/// # fn main() -> Result<(), spelter::Error> {
/// # let context = spelter::Context::new()?;
/// let buffer = context.buffer_zeroed(256)?;
/// context.bind((0, 0), Bind::uniform(buffer.slice(..64)))?;
/// context.bind((0, 1), Bind::storage(buffer.slice(64..)))?;
/// assert_eq!(buffer.valid_ranges(), [0..256]);
/// # Ok(())
/// # }
/// ```
#[derive(Clone, Debug)]
#[must_use = "nothing is bound until `Context::bind`"]
pub struct Bind {
    pub(crate) kind: SlotKind,
    /// `None` for a sampler or a null descriptor.
    pub(crate) resource: Option<Arc<Resource>>,
    pub(crate) part: Part,
    /// Whether the bytes extend to the end of the buffer, whatever its size.
    pub(crate) to_end: bool,
    pub(crate) sampler: Option<Sampler>,
    /// What a buffer holds, if its handle says it.
    pub(crate) contents: Option<BufferType>,
}

impl Bind {
    /// A buffer, or a part of one, as `var<uniform>`.
    ///
    /// ```
    /// use spelter::Bind;
    ///
    /// # fn main() -> Result<(), spelter::Error> {
    /// # let context = spelter::Context::new()?;
    /// let step = context.buffer_from(&[1u32, 0, 0, 0])?;
    /// context.bind((0, 0), Bind::uniform(&step))?;
    /// # Ok(())
    /// # }
    /// ```
    pub fn uniform<'a>(buffer: impl Into<BufferSlice<'a>>) -> Self {
        Self::buffer(SlotKind::UniformBuffer, buffer.into(), Part::Bytes)
    }

    /// A buffer, or a part of one, as `var<storage>`.
    ///
    /// ```
    /// use spelter::Bind;
    ///
    /// # fn main() -> Result<(), spelter::Error> {
    /// # let context = spelter::Context::new()?;
    /// let sums = context.buffer(64).build()?;
    /// context.bind((0, 0), Bind::storage(&sums))?;
    /// assert_eq!(sums.valid_ranges(), [0..64]); // a kernel may write all of it
    /// # Ok(())
    /// # }
    /// ```
    pub fn storage<'a>(buffer: impl Into<BufferSlice<'a>>) -> Self {
        Self::buffer(SlotKind::StorageBuffer, buffer.into(), Part::Bytes)
    }

    /// A buffer, or a part of one, as a uniform texel buffer: texels that are only read.
    ///
    /// ```
    /// use spelter::{Bind, vk};
    ///
    /// # fn main() -> Result<(), spelter::Error> {
    /// # let context = spelter::Context::new()?;
    /// let table = context.buffer_from(&[0u8, 51, 102, 255])?;
    /// context.bind((0, 0), Bind::texels(&table, vk::Format::R8_UNORM))?;
    /// # Ok(())
    /// # }
    /// ```
    pub fn texels<'a>(buffer: impl Into<BufferSlice<'a>>, format: vk::Format) -> Self {
        Self::buffer(SlotKind::SamplerView, buffer.into(), |range| Part::Texels(range, format))
    }

    /// A buffer, or a part of one, as a storage texel buffer: texels that are read and written.
    ///
    /// ```
    /// use spelter::{Bind, vk};
    ///
    /// # fn main() -> Result<(), spelter::Error> {
    /// # let context = spelter::Context::new()?;
    /// let table = context.buffer(64).build()?;
    /// context.bind((0, 0), Bind::storage_texels(table.slice(..32), vk::Format::R32_UINT))?;
    /// assert_eq!(table.valid_ranges(), [0..32]);
    /// # Ok(())
    /// # }
    /// ```
    pub fn storage_texels<'a>(buffer: impl Into<BufferSlice<'a>>, format: vk::Format) -> Self {
        Self::buffer(SlotKind::StorageImage, buffer.into(), |range| Part::Texels(range, format))
    }

    /// An image, or a part of one, as a sampled image (`texture_2d` and the like): only read.
    ///
    /// ```
    /// use spelter::{Bind, vk};
    ///
    /// # fn main() -> Result<(), spelter::Error> {
    /// # let context = spelter::Context::new()?;
    /// let image = context.image(vk::Format::R8G8B8A8_UNORM, [8, 8, 1]).levels(4).build()?;
    /// context.bind((0, 0), Bind::sampled(&image))?; // all levels
    /// context.bind((0, 1), Bind::sampled(image.level(2)))?;
    /// # Ok(())
    /// # }
    /// ```
    pub fn sampled<'a>(image: impl Into<ImagePart<'a>>) -> Self {
        Self::image(SlotKind::SamplerView, &image.into())
    }

    /// An image, or one level of it, as a storage image (`texture_storage_2d` and the like).
    ///
    /// ```
    /// use spelter::{Bind, vk};
    ///
    /// # fn main() -> Result<(), spelter::Error> {
    /// # let context = spelter::Context::new()?;
    /// let image = context.image(vk::Format::R32_UINT, [8, 8, 1]).levels(4).build()?;
    /// context.bind((0, 0), Bind::storage_image(image.level(1)))?;
    /// assert_eq!(image.valid_subresources(), [(1, 0)]); // a kernel may write it
    /// # Ok(())
    /// # }
    /// ```
    pub fn storage_image<'a>(image: impl Into<ImagePart<'a>>) -> Self {
        Self::image(SlotKind::StorageImage, &image.into())
    }

    /// A separate sampler.
    ///
    /// ```
    /// use spelter::{Bind, SamplerInfo};
    ///
    /// # fn main() -> Result<(), spelter::Error> {
    /// # let context = spelter::Context::new()?;
    /// let sampler = context.sampler(&SamplerInfo::default())?;
    /// context.bind((0, 1), Bind::sampler(&sampler))?;
    /// # Ok(())
    /// # }
    /// ```
    pub fn sampler(sampler: &Sampler) -> Self {
        Self {
            kind: SlotKind::Sampler,
            resource: None,
            part: Part::Nothing,
            to_end: false,
            sampler: Some(sampler.clone()),
            contents: None,
        }
    }

    /// A null descriptor, for a binding of this kind: reads give 0, writes and atomics do nothing, an array has no
    /// elements (Vulkan's `nullDescriptor`). With it arrays of descriptors need no resource for each element. A sampler
    /// cannot be null: that is an error when it is bound.
    ///
    /// ```
    /// use spelter::{Bind, BindingKind};
    ///
    /// # fn main() -> Result<(), spelter::Error> {
    /// # let context = spelter::Context::new()?;
    /// let program = context.program_wgsl(
    ///     "@group(0) @binding(0) var<storage, read_write> sum: u32;
    ///      @group(0) @binding(1) var<storage, read> maybe: array<u32>;
    ///      @compute @workgroup_size(1) fn main() { sum += arrayLength(&maybe) + maybe[7] + 1u; }",
    /// )?;
    /// let sum = context.buffer_from(&[41u32])?;
    /// context.bind((0, 1), Bind::null(BindingKind::StorageBuffer))?;
    /// context.dispatch(&program).bind(0, 0, &sum).groups([1, 1, 1])?;
    /// assert_eq!(context.read::<u32>(&sum)?, [42]);
    /// # Ok(())
    /// # }
    /// ```
    pub fn null(kind: BindingKind) -> Self {
        let (kind, part) = (SlotKind::of(kind), Part::Nothing);
        Self { kind, resource: None, part, to_end: false, sampler: None, contents: None }
    }

    /// The same with a sampler, for a combined image sampler (`sampler2D` in GLSL).
    ///
    /// ```
    /// use spelter::{Bind, SamplerInfo, vk};
    ///
    /// # fn main() -> Result<(), spelter::Error> {
    /// # let context = spelter::Context::new()?;
    /// let image = context.image(vk::Format::R8G8B8A8_UNORM, [8, 8, 1]).build()?;
    /// let sampler = context.sampler(&SamplerInfo::default())?;
    /// context.bind((0, 0), Bind::sampled(&image).with_sampler(&sampler))?;
    /// # Ok(())
    /// # }
    /// ```
    pub fn with_sampler(mut self, sampler: &Sampler) -> Self {
        self.sampler = Some(sampler.clone());
        self
    }

    /// The resource to be bound, for messages.
    pub(crate) fn described(&self) -> String {
        described(self.resource.as_deref(), self.kind)
    }

    fn buffer(kind: SlotKind, slice: BufferSlice<'_>, part: impl Fn(Range<u64>) -> Part) -> Self {
        let resource = Some(Arc::clone(slice.buffer.resource()));
        let contents = slice.buffer.contents();
        Self { kind, resource, part: part(slice.range()), to_end: slice.to_end, sampler: None, contents }
    }

    fn image(kind: SlotKind, image: &ImagePart<'_>) -> Self {
        let resource = Some(Arc::clone(image.image.resource()));
        let part = Part::Image(image.part.clone());
        Self { kind, resource, part, to_end: false, sampler: None, contents: None }
    }
}

/// What is bound, for messages: a resource, or what has none.
pub(crate) fn described(resource: Option<&Resource>, kind: SlotKind) -> String {
    match (resource, kind) {
        (Some(resource), _) => resource.described(),
        (None, SlotKind::Sampler) => "a sampler".to_owned(),
        (None, _) => "a null descriptor".to_owned(),
    }
}
