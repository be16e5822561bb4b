//! Textures, their views, and samplers.

use spelter_driver::{Device, DeviceMemory, Error, Image, ImageInfo, ImageView, ImageViewInfo, SamplerInfo, vk};
use wgpu_hal::{BufferTextureCopy, CopyExtent, FormatAspects, SamplerDescriptor, TextureCopyBase, TextureDescriptor};
use wgpu_hal::{TextureCopy, TextureViewDescriptor};
use wgpu_types::TextureFormat;

use crate::format;
use crate::memory::allocate;

/// A texture. A handle.
#[derive(Clone, Debug)]
pub struct Texture {
    pub(crate) image: Image,
    format: TextureFormat,
    _memory: DeviceMemory,
}

/// A view of a texture. A handle.
#[derive(Clone, Debug)]
pub struct TextureView {
    pub(crate) raw: ImageView,
    /// Its first level and layer.
    first: vk::ImageSubresourceLayers,
}

/// A sampler. A handle.
#[derive(Clone, Debug)]
pub struct Sampler(pub(crate) spelter_driver::Sampler);

impl Texture {
    pub(crate) fn new(device: &Device, descriptor: &TextureDescriptor<'_>) -> Result<Self, Error> {
        let CopyExtent { width, height, depth } = descriptor.copy_extent();
        let raw_format = format::vulkan(descriptor.format);
        let mut flags = vk::ImageCreateFlags::empty();
        if descriptor.is_cube_compatible() {
            flags |= vk::ImageCreateFlags::CUBE_COMPATIBLE;
        }
        if !descriptor.view_formats.is_empty() {
            flags |= vk::ImageCreateFlags::MUTABLE_FORMAT | vk::ImageCreateFlags::EXTENDED_USAGE;
        }
        let image = device.create_image(&ImageInfo {
            flags,
            ty: format::image_type(descriptor.dimension),
            format: raw_format,
            extent: vk::Extent3D { width, height, depth },
            levels: descriptor.mip_level_count,
            layers: descriptor.array_layer_count(),
            tiling: vk::ImageTiling::OPTIMAL,
            usage: format::image_usage(descriptor.usage, raw_format),
        })?;
        let memory = allocate(device, image.requirements().size)?;
        image.bind_memory(&memory, 0)?;
        Ok(Self { image, format: descriptor.format, _memory: memory })
    }

    /// The region of a copy between a buffer and this texture.
    pub(crate) fn buffer_region(&self, copy: &BufferTextureCopy) -> vk::BufferImageCopy {
        let layout = &copy.buffer_layout;
        // wgpu's pitches are multiples of a texel's bytes.
        let texel = self.image.texel_bytes().max(1) as u32;
        vk::BufferImageCopy {
            buffer_offset: layout.offset,
            buffer_row_length: layout.bytes_per_row.map_or(0, |bytes| bytes / texel),
            buffer_image_height: layout.rows_per_image.unwrap_or(0),
            image_subresource: layers(&copy.texture_base),
            image_offset: offset(&copy.texture_base),
            image_extent: extent(&copy.size),
        }
    }

    pub(crate) fn view(&self, device: &Device, descriptor: &TextureViewDescriptor<'_>) -> Result<TextureView, Error> {
        let range = &descriptor.range;
        let aspects = format::aspects(FormatAspects::new(self.format, range.aspect));
        let raw = device.create_image_view(&ImageViewInfo {
            image: &self.image,
            ty: format::view_type(descriptor.dimension),
            format: format::vulkan(descriptor.format),
            components: vk::ComponentMapping::default(),
            range: vk::ImageSubresourceRange {
                aspect_mask: aspects,
                base_mip_level: range.base_mip_level,
                level_count: range.mip_level_count.unwrap_or(vk::REMAINING_MIP_LEVELS),
                base_array_layer: range.base_array_layer,
                layer_count: range.array_layer_count.unwrap_or(vk::REMAINING_ARRAY_LAYERS),
            },
        })?;
        let first = vk::ImageSubresourceLayers {
            aspect_mask: aspects,
            mip_level: range.base_mip_level,
            base_array_layer: range.base_array_layer,
            layer_count: 1,
        };
        Ok(TextureView { raw, first })
    }
}

impl TextureView {
    /// The region of a copy of tightly packed texels to the first level and layer, whose size is given.
    pub(crate) fn whole(&self, width: u32, height: u32) -> vk::BufferImageCopy {
        vk::BufferImageCopy {
            image_subresource: self.first,
            image_extent: vk::Extent3D { width, height, depth: 1 },
            ..vk::BufferImageCopy::default()
        }
    }
}

/// The region of a copy between textures.
pub(crate) fn image_region(copy: &TextureCopy) -> vk::ImageCopy {
    vk::ImageCopy {
        src_subresource: layers(&copy.src_base),
        src_offset: offset(&copy.src_base),
        dst_subresource: layers(&copy.dst_base),
        dst_offset: offset(&copy.dst_base),
        extent: extent(&copy.size),
    }
}

fn layers(base: &TextureCopyBase) -> vk::ImageSubresourceLayers {
    vk::ImageSubresourceLayers {
        aspect_mask: format::aspects(base.aspect),
        mip_level: base.mip_level,
        base_array_layer: base.array_layer,
        layer_count: 1,
    }
}

/// wgpu's validation keeps origins below the limits of dimensions, which fit.
fn offset(base: &TextureCopyBase) -> vk::Offset3D {
    let signed = |at: u32| i32::try_from(at).unwrap_or(i32::MAX);
    vk::Offset3D { x: signed(base.origin.x), y: signed(base.origin.y), z: signed(base.origin.z) }
}

fn extent(size: &CopyExtent) -> vk::Extent3D {
    vk::Extent3D { width: size.width, height: size.height, depth: size.depth }
}

impl Sampler {
    /// Anisotropy is ignored, as WebGPU permits.
    pub(crate) fn new(device: &Device, descriptor: &SamplerDescriptor<'_>) -> Result<Self, Error> {
        let sampler = device.create_sampler(&SamplerInfo {
            mag_filter: format::filter(descriptor.mag_filter),
            min_filter: format::filter(descriptor.min_filter),
            mipmap_mode: format::mipmap_mode(descriptor.mipmap_filter),
            address_modes: descriptor.address_modes.map(format::address_mode),
            mip_lod_bias: 0.0,
            compare: descriptor.compare.map(format::compare_op),
            min_lod: descriptor.lod_clamp.start,
            max_lod: descriptor.lod_clamp.end,
            border_color: descriptor.border_color.map_or_else(Default::default, format::border_color),
            unnormalized_coordinates: false,
        })?;
        Ok(Self(sampler))
    }
}
