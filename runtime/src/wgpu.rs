//! Conversions between the types of `wgpu-types` and Vulkan's, for programs that describe their resources in wgpu's
//! terms. Only with the feature `wgpu-types`; the rest of this crate uses Vulkan's types (ADR 9).
//!
//! Each type of wgpu has a wrapper of the Vulkan type here, since neither is this crate's: `From` leads to Vulkan,
//! which can express all of wgpu, and `TryFrom` back.
//!
//! ```
//! use spelter::wgpu::Format;
//! use wgpu_types::TextureFormat;
//!
//! # fn main() -> Result<(), spelter::Error> {
//! # let context = spelter::Context::new()?;
//! let format = Format::from(TextureFormat::Rgba8Unorm);
//! let image = context.image(format.into(), [4, 4, 1]).build()?;
//! assert_eq!(Format(image.info().format).try_into(), Ok(TextureFormat::Rgba8Unorm));
//! # Ok(())
//! # }
//! ```

use spelter_driver::vk::{self, BufferUsageFlags, ImageUsageFlags};
use spelter_driver::{Limits, wgpu_formats as formats};
use wgpu_types::{BufferUsages, TextureFormat, TextureUsages};

/// A format of Vulkan. All formats of wgpu have one; a device may not support it
/// ([`format_properties`](spelter_driver::Device::format_properties)).
///
/// ```
/// use spelter::vk;
/// use spelter::wgpu::Format;
/// use wgpu_types::TextureFormat;
///
/// assert_eq!(Format::from(TextureFormat::R32Uint), Format(vk::Format::R32_UINT));
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Format(pub vk::Format);

/// Usages of a buffer (`VkBufferUsageFlags`).
///
/// ```
/// use spelter::vk::BufferUsageFlags;
/// use spelter::wgpu::BufferUsage;
/// use wgpu_types::BufferUsages;
///
/// assert_eq!(BufferUsage::from(BufferUsages::STORAGE), BufferUsage(BufferUsageFlags::STORAGE_BUFFER));
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct BufferUsage(pub BufferUsageFlags);

/// Usages of an image (`VkImageUsageFlags`).
///
/// ```
/// use spelter::vk::ImageUsageFlags;
/// use spelter::wgpu::ImageUsage;
/// use wgpu_types::TextureUsages;
///
/// let usages = TextureUsages::try_from(ImageUsage(ImageUsageFlags::SAMPLED));
/// assert_eq!(usages, Ok(TextureUsages::TEXTURE_BINDING));
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct ImageUsage(pub ImageUsageFlags);

/// A value of Vulkan that wgpu has no name for.
///
/// ```
/// use spelter::vk;
/// use spelter::wgpu::{Format, Unnamed};
/// use wgpu_types::TextureFormat;
///
/// let format = vk::Format::R8G8B8_UNORM;
/// assert_eq!(TextureFormat::try_from(Format(format)), Err(Unnamed::Format(format)));
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Unnamed {
    /// A format.
    #[error("wgpu has no format {0:?}")]
    Format(vk::Format),
    /// Usages of a buffer: those that have no name.
    #[error("wgpu has no buffer usage {0:?}")]
    BufferUsage(BufferUsageFlags),
    /// Usages of an image: those that have no name.
    #[error("wgpu has no texture usage {0:?}")]
    ImageUsage(ImageUsageFlags),
}

/// A format with "at least 24 bits" of depth becomes one with 32: that is what a device without images of 24 bits has.
impl From<TextureFormat> for Format {
    fn from(format: TextureFormat) -> Self {
        Self(formats::vulkan(format))
    }
}

impl From<Format> for vk::Format {
    fn from(format: Format) -> Self {
        format.0
    }
}

/// [`Unnamed::Format`] for a format that wgpu lacks.
impl TryFrom<Format> for TextureFormat {
    type Error = Unnamed;

    fn try_from(format: Format) -> Result<Self, Unnamed> {
        formats::wgpu(format.0).ok_or(Unnamed::Format(format.0))
    }
}

/// Usages of buffers with one name in each API. Buffers that are mapped need no usage in Vulkan.
const BUFFER_USAGES: [(BufferUsages, BufferUsageFlags); 9] = [
    (BufferUsages::COPY_SRC, BufferUsageFlags::TRANSFER_SRC),
    (BufferUsages::COPY_DST, BufferUsageFlags::TRANSFER_DST),
    (BufferUsages::INDEX, BufferUsageFlags::INDEX_BUFFER),
    (BufferUsages::VERTEX, BufferUsageFlags::VERTEX_BUFFER),
    (BufferUsages::UNIFORM, BufferUsageFlags::UNIFORM_BUFFER),
    (BufferUsages::STORAGE, BufferUsageFlags::STORAGE_BUFFER),
    (BufferUsages::INDIRECT, BufferUsageFlags::INDIRECT_BUFFER),
    (BufferUsages::QUERY_RESOLVE, BufferUsageFlags::TRANSFER_DST),
    (BufferUsages::BLAS_INPUT.union(BufferUsages::TLAS_INPUT), ACCELERATION_STRUCTURE_INPUT),
];

const ACCELERATION_STRUCTURE_INPUT: BufferUsageFlags =
    BufferUsageFlags::ACCELERATION_STRUCTURE_BUILD_INPUT_READ_ONLY_KHR;

impl From<BufferUsages> for BufferUsage {
    fn from(usages: BufferUsages) -> Self {
        let found = BUFFER_USAGES.iter().filter(|(wgpu, _)| usages.intersects(*wgpu));
        Self(found.fold(BufferUsageFlags::empty(), |all, &(_, vulkan)| all | vulkan))
    }
}

/// `TRANSFER_DST` becomes `COPY_DST`, inputs of acceleration structures become both usages of wgpu.
/// [`Unnamed::BufferUsage`] for usages that wgpu lacks.
impl TryFrom<BufferUsage> for BufferUsages {
    type Error = Unnamed;

    fn try_from(usage: BufferUsage) -> Result<Self, Unnamed> {
        let named = BUFFER_USAGES.iter().fold(BufferUsageFlags::empty(), |all, &(_, vulkan)| all | vulkan);
        if !named.contains(usage.0) {
            return Err(Unnamed::BufferUsage(usage.0 & !named));
        }
        let found = BUFFER_USAGES.iter().filter(|(_, vulkan)| usage.0.contains(*vulkan));
        let all = found.fold(Self::empty(), |all, &(wgpu, _)| all | wgpu);
        Ok(all - Self::QUERY_RESOLVE)
    }
}

/// Usages of images with one name in each API.
const IMAGE_USAGES: [(TextureUsages, ImageUsageFlags); 6] = [
    (TextureUsages::COPY_SRC, ImageUsageFlags::TRANSFER_SRC),
    (TextureUsages::COPY_DST, ImageUsageFlags::TRANSFER_DST),
    (TextureUsages::TEXTURE_BINDING, ImageUsageFlags::SAMPLED),
    (TextureUsages::STORAGE_BINDING, ImageUsageFlags::STORAGE),
    (TextureUsages::STORAGE_ATOMIC, ImageUsageFlags::STORAGE),
    (TextureUsages::TRANSIENT_ATTACHMENT, ImageUsageFlags::TRANSIENT_ATTACHMENT),
];

/// The format decides whether an attachment is one of colour or of depth and stencil.
impl From<(TextureUsages, TextureFormat)> for ImageUsage {
    fn from((usages, format): (TextureUsages, TextureFormat)) -> Self {
        let found = IMAGE_USAGES.iter().filter(|(wgpu, _)| usages.contains(*wgpu));
        let mut all = found.fold(ImageUsageFlags::empty(), |all, &(_, vulkan)| all | vulkan);
        if usages.contains(TextureUsages::RENDER_ATTACHMENT) {
            let is_depth = format.is_depth_stencil_format();
            all |= if is_depth { ImageUsageFlags::DEPTH_STENCIL_ATTACHMENT } else { ImageUsageFlags::COLOR_ATTACHMENT };
        }
        Self(all)
    }
}

/// `STORAGE` becomes `STORAGE_BINDING`: Vulkan has no usage for atomics. [`Unnamed::ImageUsage`] for usages that wgpu
/// lacks.
impl TryFrom<ImageUsage> for TextureUsages {
    type Error = Unnamed;

    fn try_from(usage: ImageUsage) -> Result<Self, Unnamed> {
        let attachments = ImageUsageFlags::COLOR_ATTACHMENT | ImageUsageFlags::DEPTH_STENCIL_ATTACHMENT;
        let named = IMAGE_USAGES.iter().fold(attachments, |all, &(_, vulkan)| all | vulkan);
        if !named.contains(usage.0) {
            return Err(Unnamed::ImageUsage(usage.0 & !named));
        }
        let found = IMAGE_USAGES.iter().filter(|(_, vulkan)| usage.0.contains(*vulkan));
        let mut all = found.fold(Self::empty(), |all, &(wgpu, _)| all | wgpu);
        all.set(Self::RENDER_ATTACHMENT, usage.0.intersects(attachments));
        Ok(all - Self::STORAGE_ATOMIC)
    }
}

/// The limits of a device ([`Device::limits`](spelter_driver::Device::limits)) under wgpu's names. Those of rendering
/// are 0, since devices only compute.
///
/// ```
/// # fn main() -> Result<(), spelter::Error> {
/// let context = spelter::Context::new()?;
/// let limits = spelter::wgpu::limits(context.device().limits());
/// assert_eq!(limits.max_vertex_buffers, 0);
/// # Ok(())
/// # }
/// ```
pub fn limits(device: &Limits) -> wgpu_types::Limits {
    let narrow = |limit: u64| u32::try_from(limit).unwrap_or(u32::MAX);
    let [x, y, z] = device.max_compute_work_group_size;
    let [groups_x, groups_y, groups_z] = device.max_compute_work_group_count;
    wgpu_types::Limits {
        max_texture_dimension_1d: device.max_image_dimension_1d,
        max_texture_dimension_2d: device.max_image_dimension_2d,
        max_texture_dimension_3d: device.max_image_dimension_3d,
        max_texture_array_layers: device.max_image_array_layers,
        max_bind_groups: device.max_bound_descriptor_sets,
        max_bindings_per_bind_group: device.max_per_set_descriptors,
        max_dynamic_uniform_buffers_per_pipeline_layout: device.max_descriptor_set_uniform_buffers_dynamic,
        max_dynamic_storage_buffers_per_pipeline_layout: device.max_descriptor_set_storage_buffers_dynamic,
        max_sampled_textures_per_shader_stage: device.max_descriptor_set_sampled_images,
        max_samplers_per_shader_stage: device.max_descriptor_set_samplers,
        max_storage_buffers_per_shader_stage: device.max_descriptor_set_storage_buffers,
        max_storage_textures_per_shader_stage: device.max_descriptor_set_storage_images,
        max_uniform_buffers_per_shader_stage: device.max_descriptor_set_uniform_buffers,
        max_uniform_buffer_binding_size: device.max_uniform_buffer_range.into(),
        max_storage_buffer_binding_size: device.max_storage_buffer_range.into(),
        max_buffer_size: device.max_buffer_size,
        min_uniform_buffer_offset_alignment: narrow(device.min_uniform_buffer_offset_alignment),
        min_storage_buffer_offset_alignment: narrow(device.min_storage_buffer_offset_alignment),
        max_compute_workgroup_storage_size: device.max_compute_shared_memory_size,
        max_compute_invocations_per_workgroup: device.max_compute_work_group_invocations,
        max_compute_workgroup_size_x: x,
        max_compute_workgroup_size_y: y,
        max_compute_workgroup_size_z: z,
        max_compute_workgroups_per_dimension: groups_x.min(groups_y).min(groups_z),
        max_immediate_size: device.max_push_constants_size,
        max_vertex_buffers: 0,
        max_vertex_attributes: 0,
        max_vertex_buffer_array_stride: 0,
        max_inter_stage_shader_variables: 0,
        max_color_attachments: 0,
        max_color_attachment_bytes_per_sample: 0,
        // Mesh shaders and acceleration structures are off by default.
        ..wgpu_types::Limits::default()
    }
}
