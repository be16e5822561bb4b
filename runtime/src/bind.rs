//! Slots: the binding points of a context, and what can be bound to them.

use std::fmt;
use std::ops::Range;
use std::sync::Arc;

use ash::vk;
use spelter_driver::Sampler;

use crate::buffer::BufferSlice;
use crate::image::ImagePart;
use crate::resource::Resource;
use crate::view::Part;

/// A binding point of a context: a group, a binding and, for an array, an element.
///
/// ```
/// use spelter::Slot;
///
/// assert_eq!(Slot::from((0, 3)).to_string(), "binding 0.3");
/// assert_eq!(Slot::from((0, 3, 7)).to_string(), "binding 0.3[7]");
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Slot {
    /// The descriptor set; `@group` in WGSL.
    pub group: u32,
    /// The binding in it.
    pub binding: u32,
    /// The element of an array of buffers; 0 elsewhere.
    pub element: u32,
}

impl From<(u32, u32)> for Slot {
    fn from((group, binding): (u32, u32)) -> Self {
        Self { group, binding, element: 0 }
    }
}

impl From<(u32, u32, u32)> for Slot {
    fn from((group, binding, element): (u32, u32, u32)) -> Self {
        Self { group, binding, element }
    }
}

impl fmt::Display for Slot {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { group, binding, element } = self;
        match element {
            0 => write!(f, "binding {group}.{binding}"),
            _ => write!(f, "binding {group}.{binding}[{element}]"),
        }
    }
}

/// How a slot uses the bound resource.
///
/// ```
/// # fn main() -> Result<(), spelter::Error> {
/// assert_eq!(spelter::SlotKind::SamplerView.to_string(), "sampler view");
/// # Ok(())
/// # }
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum SlotKind {
    /// `var<uniform>`: read only.
    UniformBuffer,
    /// `var<storage>`: read, and possibly written.
    StorageBuffer,
    /// A sampled image, or a buffer as texels: read only, through a view.
    SamplerView,
    /// A storage image, or a buffer as storage texels: read, and possibly written, through a view.
    StorageImage,
    /// A sampler without a resource.
    Sampler,
}

impl SlotKind {
    pub(crate) const COUNT: usize = 5;
    pub(crate) const ALL: [Self; Self::COUNT] =
        [Self::UniformBuffer, Self::StorageBuffer, Self::SamplerView, Self::StorageImage, Self::Sampler];

    /// Whether a kernel can write through it.
    pub(crate) fn can_write(self) -> bool {
        matches!(self, Self::StorageBuffer | Self::StorageImage)
    }
}

impl fmt::Display for SlotKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::UniformBuffer => "uniform buffer",
            Self::StorageBuffer => "storage buffer",
            Self::SamplerView => "sampler view",
            Self::StorageImage => "storage image",
            Self::Sampler => "sampler",
        })
    }
}

/// What to put into a slot: see [`Context::bind`](crate::Context::bind).
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
    /// `None` for a sampler.
    pub(crate) resource: Option<Arc<Resource>>,
    pub(crate) part: Part,
    pub(crate) sampler: Option<Sampler>,
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

    /// A buffer, or a part of one, as texels that are only read (a uniform texel buffer).
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

    /// A buffer, or a part of one, as texels that are read and written (a storage texel buffer).
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

    /// An image, or a part of one, as `texture_2d` and the like: only read.
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

    /// An image, or one level of it, as `texture_storage_2d` and the like.
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

    /// A sampler by itself.
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
        Self { kind: SlotKind::Sampler, resource: None, part: Part::Nothing, sampler: Some(sampler.clone()) }
    }

    /// With a sampler, where a shader takes both in one (`sampler2D` in GLSL).
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

    /// What is to be bound, for messages.
    pub(crate) fn described(&self) -> String {
        self.resource.as_ref().map_or_else(|| "a sampler".to_owned(), |resource| resource.described())
    }

    fn buffer(kind: SlotKind, slice: BufferSlice<'_>, part: impl Fn(Range<u64>) -> Part) -> Self {
        let resource = Some(Arc::clone(slice.buffer.resource()));
        Self { kind, resource, part: part(slice.range()), sampler: None }
    }

    fn image(kind: SlotKind, image: &ImagePart<'_>) -> Self {
        let resource = Some(Arc::clone(image.image.resource()));
        Self { kind, resource, part: Part::Image(image.part.clone()), sampler: None }
    }
}
