//! The bound part of a resource, and its view for shaders. An object caches its views: when a resource gets another
//! object they are made again.

use std::ops::Range;

use ash::vk;
use smallvec::SmallVec;
use spelter_driver::{BufferView, Device, ImageInfo, ImageView, ImageViewInfo};

use crate::error::{Error, rule};
use crate::ids::SlotKind;
use crate::memory::{Storage, Template};

/// A part of a resource, and its interpretation.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Part {
    /// Bytes of a buffer.
    Bytes(Range<u64>),
    /// Bytes of a buffer as texels.
    Texels(Range<u64>, vk::Format),
    /// Levels and layers of an image.
    Image(Subresources),
    /// Nothing: for a sampler.
    Nothing,
}

/// Levels and layers of an image, with view type and format.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Subresources {
    pub(crate) levels: Range<u32>,
    pub(crate) layers: Range<u32>,
    pub(crate) ty: vk::ImageViewType,
    pub(crate) format: vk::Format,
}

/// A view of an object.
#[derive(Clone, Debug)]
pub(crate) enum View {
    Texels(BufferView),
    Image(ImageView),
}

impl Part {
    /// The bytes, or the numbers of the subresources, ordered by layer, then by level.
    pub(crate) fn ranges(&self, of: &Template) -> SmallVec<[Range<u64>; 1]> {
        match (self, of) {
            (Self::Bytes(range) | Self::Texels(range, _), _) => SmallVec::from_iter([range.clone()]),
            (Self::Image(part), Template::Image(info)) => part.ranges(info.levels),
            _ => SmallVec::new(),
        }
    }

    /// The same; if it extends to the end of the buffer, to that of a buffer of this many bytes.
    pub(crate) fn extended(&self, to_end: bool, bytes: u64) -> Self {
        match self {
            Self::Bytes(range) if to_end => Self::Bytes(range.start..bytes),
            Self::Texels(range, format) if to_end => Self::Texels(range.start..bytes, *format),
            part => part.clone(),
        }
    }

    /// Whether both are bytes from the same offset on, as the same kind of data.
    pub(crate) fn begins_as(&self, other: &Self) -> bool {
        match (self, other) {
            (Self::Bytes(a), Self::Bytes(b)) => a.start == b.start,
            (Self::Texels(a, of), Self::Texels(b, format)) => (a.start, of) == (b.start, format),
            _ => false,
        }
    }

    /// Whether shaders access it through a view.
    pub(crate) fn needs_view(&self) -> bool {
        matches!(self, Self::Texels(..) | Self::Image(_))
    }

    /// A new view of it. Only for parts that need one.
    pub(crate) fn view(&self, device: &Device, kind: SlotKind, storage: &Storage) -> Result<View, Error> {
        Ok(match self {
            Self::Bytes(_) | Self::Nothing => return Err(Error::resource("bytes have no views", rule::KIND)),
            Self::Texels(range, format) => {
                let usage = match kind {
                    SlotKind::StorageImage => vk::BufferUsageFlags::STORAGE_TEXEL_BUFFER,
                    _ => vk::BufferUsageFlags::UNIFORM_TEXEL_BUFFER,
                };
                let buffer = storage.texel_buffer(device, usage)?;
                let view = device.create_buffer_view(&buffer, *format, range.start, range.end - range.start)?;
                View::Texels(view)
            }
            Self::Image(part) => {
                let (image, components) = (storage.image()?, vk::ComponentMapping::default());
                let info = ImageViewInfo { image, ty: part.ty, format: part.format, components, range: part.range() };
                View::Image(device.create_image_view(&info)?)
            }
        })
    }

    /// A key that distinguishes it from other parts of the same resource.
    pub(crate) fn words(&self) -> [u64; 3] {
        match self {
            Self::Bytes(range) => [range.start, range.end - range.start, 0],
            Self::Texels(range, format) => [range.start, range.end - range.start, 1 << 32 | word(format.as_raw())],
            Self::Image(Subresources { levels, layers, ty, format }) => [
                u64::from(levels.start) << 32 | u64::from(levels.end),
                u64::from(layers.start) << 32 | u64::from(layers.end),
                (2 + word(ty.as_raw())) << 32 | word(format.as_raw()),
            ],
            Self::Nothing => [0; 3],
        }
    }
}

/// The most recently made views of an object.
#[derive(Debug, Default)]
pub(crate) struct Views {
    /// By the key of the part and whether it can be written; the latest last.
    list: Vec<([u64; 3], bool, View)>,
}

/// The largest number of views that an object keeps. A program that cycles through more parts has them made each time.
const MAX_VIEWS: usize = 32;

impl Views {
    /// The view of a part, for slots of a kind.
    pub(crate) fn find(&self, kind: SlotKind, part: &Part) -> Option<&View> {
        let (words, writes) = (part.words(), kind.can_write());
        self.list.iter().rev().find(|(of, can_write, _)| (*of, *can_write) == (words, writes)).map(|(.., view)| view)
    }

    /// Stores a new view, in place of the oldest if the cache is full.
    pub(crate) fn keep(&mut self, kind: SlotKind, part: &Part, view: &View) {
        if self.list.len() == MAX_VIEWS {
            self.list.remove(0);
        }
        self.list.push((part.words(), kind.can_write(), view.clone()));
    }
}

fn word(raw: i32) -> u64 {
    u64::from(raw.cast_unsigned())
}

impl Subresources {
    /// The problem, if it is not a part of such an image.
    pub(crate) fn check(&self, info: &ImageInfo) -> Result<(), String> {
        let inside = |range: &Range<u32>, of: u32| range.start < range.end && range.end <= of;
        if !inside(&self.levels, info.levels) {
            return Err(format!("levels {:?} of {}", self.levels, info.levels));
        }
        if !inside(&self.layers, info.layers) {
            return Err(format!("layers {:?} of {}", self.layers, info.layers));
        }
        Ok(())
    }

    /// The numbers of its subresources in an image with `levels` levels.
    pub(crate) fn ranges(&self, levels: u32) -> SmallVec<[Range<u64>; 1]> {
        let of = u64::from(levels);
        if self.levels == (0..levels) {
            let all = u64::from(self.layers.start) * of..u64::from(self.layers.end) * of;
            return SmallVec::from_iter(std::iter::once(all));
        }
        let (first, last) = (u64::from(self.levels.start), u64::from(self.levels.end));
        self.layers.clone().map(|layer| u64::from(layer) * of).map(|base| base + first..base + last).collect()
    }

    /// As a Vulkan structure.
    pub(crate) fn range(&self) -> vk::ImageSubresourceRange {
        vk::ImageSubresourceRange {
            aspect_mask: vk::ImageAspectFlags::COLOR,
            base_mip_level: self.levels.start,
            level_count: self.levels.end.saturating_sub(self.levels.start),
            base_array_layer: self.layers.start,
            layer_count: self.layers.end.saturating_sub(self.layers.start),
        }
    }
}

/// The subresource with a number (the levels of a layer are consecutive), and its size in texels.
pub(crate) fn subresource(info: &ImageInfo, number: u64) -> (vk::ImageSubresourceLayers, vk::Extent3D) {
    let levels = u64::from(info.levels.max(1));
    let (level, layer) = ((number % levels) as u32, (number / levels) as u32);
    let half = |size: u32| (size >> level).max(1);
    let vk::Extent3D { width, height, depth } = info.extent;
    let layers = vk::ImageSubresourceLayers {
        aspect_mask: vk::ImageAspectFlags::COLOR,
        mip_level: level,
        base_array_layer: layer,
        layer_count: 1,
    };
    (layers, vk::Extent3D { width: half(width), height: half(height), depth: half(depth) })
}
