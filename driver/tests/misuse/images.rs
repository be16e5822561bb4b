//! Rules of images, views, samplers and their descriptors.

use spelter_driver::vk::{self, BufferUsageFlags, DescriptorType, ImageUsageFlags};
use spelter_driver::{
    Binding, Buffer, BufferInfo, BufferView, DescriptorImageInfo, DescriptorSet, DescriptorSetLayoutInfo, Device,
    Error, Image, ImageInfo, ImageView, ImageViewInfo, ImmutableSamplers, SamplerInfo,
};

use super::{Rule, World};

const MAX_DIMENSION: u32 = 16_384;

/// An image that breaks no rule: 8 by 8 texels, two levels, seven layers.
pub(super) fn plain() -> ImageInfo {
    ImageInfo {
        flags: vk::ImageCreateFlags::empty(),
        ty: vk::ImageType::TYPE_2D,
        format: vk::Format::R32_SFLOAT,
        extent: vk::Extent3D { width: 8, height: 8, depth: 1 },
        levels: 2,
        layers: 7,
        tiling: vk::ImageTiling::OPTIMAL,
        usage: ImageUsageFlags::SAMPLED
            | ImageUsageFlags::STORAGE
            | ImageUsageFlags::TRANSFER_SRC
            | ImageUsageFlags::TRANSFER_DST,
    }
}

pub(super) fn bound(device: &Device, info: &ImageInfo) -> Image {
    let image = device.create_image(info).unwrap();
    let memory = device.allocate_memory(image.requirements().size, 0).unwrap();
    image.bind_memory(&memory, 0).unwrap();
    image
}

fn create(world: &World, change: impl FnOnce(&mut ImageInfo)) -> Result<(), Error> {
    let mut info = plain();
    change(&mut info);
    world.device.create_image(&info).map(drop)
}

fn size(world: &World, ty: vk::ImageType, width: u32, height: u32, depth: u32) -> Result<(), Error> {
    let extent = vk::Extent3D { width, height, depth };
    create(world, |info| *info = ImageInfo { ty, extent, levels: 1, layers: 1, ..*info })
}

fn bind(world: &World, bytes: u64, offset: u64) -> Result<(), Error> {
    let memory = world.device.allocate_memory(bytes, 0).unwrap();
    world.device.create_image(&plain()).unwrap().bind_memory(&memory, offset)
}

fn all() -> vk::ImageSubresourceRange {
    vk::ImageSubresourceRange {
        aspect_mask: vk::ImageAspectFlags::COLOR,
        base_mip_level: 0,
        level_count: vk::REMAINING_MIP_LEVELS,
        base_array_layer: 0,
        layer_count: vk::REMAINING_ARRAY_LAYERS,
    }
}

fn show<'a>(image: &'a Image) -> ImageViewInfo<'a> {
    let format = image.info().format;
    let components = vk::ComponentMapping::default();
    ImageViewInfo { image, ty: vk::ImageViewType::TYPE_2D_ARRAY, format, components, range: all() }
}

fn view(world: &World, info: &ImageInfo, change: impl FnOnce(&mut ImageViewInfo<'_>)) -> Result<ImageView, Error> {
    let image = bound(&world.device, info);
    let mut info = show(&image);
    change(&mut info);
    world.device.create_image_view(&info)
}

fn range(world: &World, change: impl FnOnce(&mut vk::ImageSubresourceRange)) -> Result<(), Error> {
    view(world, &plain(), |info| change(&mut info.range)).map(drop)
}

fn cube() -> ImageInfo {
    ImageInfo { flags: vk::ImageCreateFlags::CUBE_COMPATIBLE, ..plain() }
}

fn sampler(world: &World, change: impl FnOnce(&mut SamplerInfo)) -> Result<(), Error> {
    let mut info = SamplerInfo::default();
    change(&mut info);
    world.device.create_sampler(&info).map(drop)
}

/// A sampler with unnormalized coordinates that otherwise breaks no rule.
fn texels(world: &World, change: impl FnOnce(&mut SamplerInfo)) -> Result<(), Error> {
    sampler(world, |info| {
        *info = SamplerInfo { unnormalized_coordinates: true, max_lod: 0.0, ..*info };
        change(info);
    })
}

fn texel_buffer(device: &Device, usage: BufferUsageFlags) -> Buffer {
    let buffer = device.create_buffer(256, usage).unwrap();
    let memory = device.allocate_memory(256, 0).unwrap();
    buffer.bind_memory(&memory, 0).unwrap();
    buffer
}

fn buffer_view(world: &World, offset: u64, bytes: u64) -> Result<(), Error> {
    let buffer = texel_buffer(&world.device, BufferUsageFlags::UNIFORM_TEXEL_BUFFER);
    world.device.create_buffer_view(&buffer, vk::Format::R32_UINT, offset, bytes).map(drop)
}

/// A view with one usage of a buffer with another.
fn view_for(world: &World, buffer: BufferUsageFlags, view: BufferUsageFlags) -> Result<BufferView, Error> {
    let buffer = texel_buffer(&world.device, buffer);
    world.device.create_buffer_view_for(view, &buffer, vk::Format::R32_UINT, [0, vk::WHOLE_SIZE])
}

fn of_format(world: &World, usage: BufferUsageFlags, format: vk::Format) -> Result<(), Error> {
    let buffer = texel_buffer(&world.device, usage);
    world.device.create_buffer_view(&buffer, format, 0, vk::WHOLE_SIZE).map(drop)
}

fn set(device: &Device, ty: DescriptorType) -> DescriptorSet {
    let layout = device.create_descriptor_set_layout(&[Binding { binding: 0, ty, count: 1 }]).unwrap();
    device.create_descriptor_pool(1, &[(ty, 1)]).unwrap().allocate(&layout).unwrap()
}

fn write(world: &World, ty: DescriptorType, info: DescriptorImageInfo<'_>) -> Result<(), Error> {
    set(&world.device, ty).write_images(0, 0, ty, &[info])
}

/// Writes a view of an image with this usage.
fn write_view(world: &World, ty: DescriptorType, usage: ImageUsageFlags, turned: bool) -> Result<(), Error> {
    let view = view(world, &ImageInfo { usage, ..plain() }, |info| {
        if turned {
            info.components.r = vk::ComponentSwizzle::G;
        }
    })?;
    write(world, ty, DescriptorImageInfo { view: Some(&view), sampler: None })
}

fn write_texels(world: &World, ty: DescriptorType, usage: BufferUsageFlags) -> Result<(), Error> {
    let buffer = texel_buffer(&world.device, usage);
    let view = world.device.create_buffer_view(&buffer, vk::Format::R32_UINT, 0, vk::WHOLE_SIZE)?;
    set(&world.device, ty).write_texel_buffers(0, 0, ty, &[&view])
}

fn with_immutable_sampler(world: &World, ty: DescriptorType) -> Result<DescriptorSet, Error> {
    let sampler = world.device.create_sampler(&SamplerInfo::default())?;
    let own = [ImmutableSamplers { binding: 0, samplers: &[sampler] }];
    let bindings = [Binding { binding: 0, ty, count: 1 }];
    let info = DescriptorSetLayoutInfo { bindings: &bindings, samplers: &own, ..Default::default() };
    let layout = world.device.create_descriptor_set_layout_from(&info)?;
    world.device.create_descriptor_pool(1, &[(ty, 1)]).unwrap().allocate(&layout)
}

pub(super) const RULES: &[Rule] = &[
    ("VUID-VkImageCreateInfo-imageCreateMaxMipLevels-02251", |w| {
        create(w, |i| i.format = vk::Format::D16_UNORM_S8_UINT)
    }),
    ("VUID-VkImageCreateInfo-imageCreateMaxMipLevels-02251", |w| create(w, |i| i.format = vk::Format::R8G8B8A8_SRGB)),
    ("VUID-VkImageCreateInfo-usage-requiredbitmask", |w| create(w, |i| i.usage = ImageUsageFlags::empty())),
    ("VUID-VkImageCreateInfo-extent-00944", |w| size(w, vk::ImageType::TYPE_2D, 0, 1, 1)),
    ("VUID-VkImageCreateInfo-extent-00945", |w| size(w, vk::ImageType::TYPE_2D, 1, 0, 1)),
    ("VUID-VkImageCreateInfo-extent-00946", |w| size(w, vk::ImageType::TYPE_3D, 1, 1, 0)),
    ("VUID-VkImageCreateInfo-extent-02252", |w| size(w, vk::ImageType::TYPE_1D, MAX_DIMENSION + 1, 1, 1)),
    ("VUID-VkImageCreateInfo-extent-02253", |w| size(w, vk::ImageType::TYPE_1D, 1, 2, 1)),
    ("VUID-VkImageCreateInfo-extent-02254", |w| size(w, vk::ImageType::TYPE_2D, 1, 1, 2)),
    ("VUID-VkImageCreateInfo-mipLevels-00947", |w| create(w, |i| i.levels = 0)),
    ("VUID-VkImageCreateInfo-mipLevels-00958", |w| create(w, |i| i.levels = 5)),
    ("VUID-VkImageCreateInfo-arrayLayers-00948", |w| create(w, |i| i.layers = 0)),
    ("VUID-VkImageCreateInfo-arrayLayers-02256", |w| create(w, |i| i.layers = 1 << 20)),
    ("VUID-VkImageCreateInfo-flags-00949", |w| {
        create(w, |i| *i = ImageInfo { ty: vk::ImageType::TYPE_3D, layers: 1, ..cube() })
    }),
    ("VUID-VkImageCreateInfo-flags-08865", |w| {
        create(w, |i| {
            *i = cube();
            i.extent.width = 9;
        })
    }),
    ("VUID-VkImageCreateInfo-flags-08866", |w| create(w, |i| *i = ImageInfo { layers: 5, ..cube() })),
    ("VUID-vkBindImageMemory-memory-parent", |w| {
        let memory = w.other.allocate_memory(1 << 20, 0)?;
        w.device.create_image(&plain())?.bind_memory(&memory, 0)
    }),
    ("VUID-vkBindImageMemory-image-07460", |w| {
        let memory = w.device.allocate_memory(1 << 20, 0)?;
        bound(&w.device, &plain()).bind_memory(&memory, 0)
    }),
    ("VUID-vkBindImageMemory-memoryOffset-01046", |w| bind(w, 1 << 20, 1 << 20)),
    ("VUID-vkBindImageMemory-memoryOffset-01048", |w| bind(w, 1 << 20, 4)),
    ("VUID-vkBindImageMemory-size-01049", |w| bind(w, 64, 0)),
    ("VUID-VkImageViewCreateInfo-image-parameter", |w| {
        let image = bound(&w.other, &plain());
        w.device.create_image_view(&show(&image)).map(drop)
    }),
    ("VUID-VkImageViewCreateInfo-image-01020", |w| {
        let image = w.device.create_image(&plain())?;
        w.device.create_image_view(&show(&image)).map(drop)
    }),
    ("VUID-VkImageViewCreateInfo-None-02273", |w| view(w, &plain(), |i| i.format = vk::Format::UNDEFINED).map(drop)),
    ("VUID-VkImageViewCreateInfo-image-01762", |w| view(w, &plain(), |i| i.format = vk::Format::R32_UINT).map(drop)),
    ("VUID-VkImageViewCreateInfo-image-01761", |w| {
        let info = ImageInfo { flags: vk::ImageCreateFlags::MUTABLE_FORMAT, ..plain() };
        view(w, &info, |i| i.format = vk::Format::R16_UINT).map(drop)
    }),
    ("VUID-VkImageViewCreateInfo-subresourceRange-01478", |w| range(w, |r| r.base_mip_level = 2)),
    ("VUID-VkImageViewCreateInfo-subresourceRange-01718", |w| range(w, |r| r.level_count = 3)),
    ("VUID-VkImageViewCreateInfo-image-06724", |w| range(w, |r| r.base_array_layer = 7)),
    ("VUID-VkImageViewCreateInfo-subresourceRange-06725", |w| range(w, |r| r.layer_count = 8)),
    ("VUID-VkImageSubresourceRange-levelCount-01720", |w| range(w, |r| r.level_count = 0)),
    ("VUID-VkImageSubresourceRange-layerCount-01721", |w| range(w, |r| r.layer_count = 0)),
    ("VUID-VkImageViewCreateInfo-subResourceRange-01021", |w| {
        view(w, &plain(), |i| i.ty = vk::ImageViewType::TYPE_3D).map(drop)
    }),
    ("VUID-VkImageViewCreateInfo-image-01003", |w| {
        view(w, &plain(), |i| i.ty = vk::ImageViewType::CUBE_ARRAY).map(drop)
    }),
    ("VUID-VkImageViewCreateInfo-viewType-02961", |w| {
        view(w, &cube(), |i| i.ty = vk::ImageViewType::CUBE_ARRAY).map(drop)
    }),
    ("VUID-VkImageViewCreateInfo-viewType-02960", |w| {
        view(w, &ImageInfo { layers: 12, ..cube() }, |i| i.ty = vk::ImageViewType::CUBE).map(drop)
    }),
    ("VUID-VkImageViewCreateInfo-imageViewType-04973", |w| {
        view(w, &plain(), |i| i.ty = vk::ImageViewType::TYPE_2D).map(drop)
    }),
    ("VUID-VkSamplerCreateInfo-mipLodBias-01069", |w| sampler(w, |i| i.mip_lod_bias = -17.0)),
    ("VUID-VkSamplerCreateInfo-maxLod-01973", |w| sampler(w, |i| i.max_lod = -1.0)),
    ("VUID-VkSamplerCreateInfo-unnormalizedCoordinates-01072", |w| texels(w, |i| i.mag_filter = vk::Filter::LINEAR)),
    ("VUID-VkSamplerCreateInfo-unnormalizedCoordinates-01073", |w| {
        texels(w, |i| i.mipmap_mode = vk::SamplerMipmapMode::LINEAR)
    }),
    ("VUID-VkSamplerCreateInfo-unnormalizedCoordinates-01074", |w| texels(w, |i| i.max_lod = 1.0)),
    ("VUID-VkSamplerCreateInfo-unnormalizedCoordinates-01075", |w| {
        texels(w, |i| i.address_modes = [vk::SamplerAddressMode::REPEAT; 3])
    }),
    ("VUID-VkSamplerCreateInfo-unnormalizedCoordinates-01077", |w| {
        texels(w, |i| i.compare = Some(vk::CompareOp::LESS))
    }),
    ("VUID-VkSamplerCreateInfo-magFilter-parameter", |w| sampler(w, |i| i.mag_filter = vk::Filter::CUBIC_EXT)),
    ("VUID-VkSamplerCreateInfo-mipmapMode-parameter", |w| {
        sampler(w, |i| i.mipmap_mode = vk::SamplerMipmapMode::from_raw(2))
    }),
    ("VUID-VkSamplerCreateInfo-compareEnable-01080", |w| sampler(w, |i| i.compare = Some(vk::CompareOp::from_raw(8)))),
    ("VUID-VkSamplerCreateInfo-addressModeU-parameter", |w| {
        sampler(w, |i| i.address_modes[2] = vk::SamplerAddressMode::from_raw(9))
    }),
    ("VUID-VkSamplerCreateInfo-addressModeU-01078", |w| {
        sampler(w, |i| i.border_color = vk::BorderColor::FLOAT_CUSTOM_EXT)
    }),
    ("VUID-VkBufferViewCreateInfo-buffer-parameter", |w| {
        let buffer = texel_buffer(&w.other, BufferUsageFlags::UNIFORM_TEXEL_BUFFER);
        w.device.create_buffer_view(&buffer, vk::Format::R32_UINT, 0, 16).map(drop)
    }),
    ("VUID-VkBufferViewCreateInfo-buffer-00935", |w| {
        let buffer = w.device.create_buffer(64, BufferUsageFlags::UNIFORM_TEXEL_BUFFER)?;
        w.device.create_buffer_view(&buffer, vk::Format::R32_UINT, 0, 16).map(drop)
    }),
    ("VUID-VkBufferViewCreateInfo-offset-00925", |w| buffer_view(w, 256, 4)),
    ("VUID-VkBufferViewCreateInfo-offset-02749", |w| buffer_view(w, 4, 4)),
    ("VUID-VkBufferViewCreateInfo-range-00928", |w| buffer_view(w, 0, 0)),
    ("VUID-VkBufferViewCreateInfo-range-00929", |w| buffer_view(w, 0, 6)),
    ("VUID-VkBufferViewCreateInfo-range-00930", |w| buffer_view(w, 0, 1 << 40)),
    ("VUID-VkBufferViewCreateInfo-offset-00931", |w| buffer_view(w, 16, 256)),
    ("VUID-VkBufferViewCreateInfo-range-04059", |w| {
        let buffer = w.device.create_buffer(1 << 30, BufferUsageFlags::UNIFORM_TEXEL_BUFFER)?;
        w.device.create_buffer_view(&buffer, vk::Format::R8_UINT, 0, vk::WHOLE_SIZE).map(drop)
    }),
    ("VUID-VkBufferViewCreateInfo-buffer-00932", |w| {
        of_format(w, BufferUsageFlags::STORAGE_BUFFER, vk::Format::R32_UINT)
    }),
    ("VUID-VkBufferViewCreateInfo-pNext-08780", |w| {
        let texels = BufferUsageFlags::UNIFORM_TEXEL_BUFFER;
        view_for(w, texels, texels | BufferUsageFlags::STORAGE_BUFFER).map(drop)
    }),
    ("VUID-VkBufferViewCreateInfo-pNext-08781", |w| {
        view_for(w, BufferUsageFlags::UNIFORM_TEXEL_BUFFER, BufferUsageFlags::STORAGE_TEXEL_BUFFER).map(drop)
    }),
    ("VUID-VkWriteDescriptorSet-descriptorType-08766", |w| {
        let (uniform, storage) = (BufferUsageFlags::UNIFORM_TEXEL_BUFFER, BufferUsageFlags::STORAGE_TEXEL_BUFFER);
        let view = view_for(w, uniform | storage, uniform)?;
        let ty = DescriptorType::STORAGE_TEXEL_BUFFER;
        set(&w.device, ty).write_texel_buffers(0, 0, ty, &[&view])
    }),
    ("VUID-VkBufferViewCreateInfo-format-08778", |w| {
        of_format(w, BufferUsageFlags::UNIFORM_TEXEL_BUFFER, vk::Format::R8G8B8A8_SRGB)
    }),
    ("VUID-VkBufferViewCreateInfo-format-08779", |w| {
        of_format(w, BufferUsageFlags::STORAGE_TEXEL_BUFFER, vk::Format::R5G6B5_UNORM_PACK16)
    }),
    ("VUID-VkDescriptorSetLayoutBinding-descriptorType-00282", |w| {
        with_immutable_sampler(w, DescriptorType::STORAGE_IMAGE).map(drop)
    }),
    ("VUID-VkWriteDescriptorSet-descriptorType-parameter", |w| {
        let ty = DescriptorType::SAMPLER;
        set(&w.device, ty).write(0, 0, ty, &[BufferInfo { buffer: &w.words.buffer, offset: 0, range: 4 }])
    }),
    ("VUID-VkWriteDescriptorSet-descriptorType-02752", |w| {
        let sampler = w.device.create_sampler(&SamplerInfo::default())?;
        let set = with_immutable_sampler(w, DescriptorType::SAMPLER)?;
        let info = DescriptorImageInfo { sampler: Some(&sampler), view: None };
        set.write_images(0, 0, DescriptorType::SAMPLER, &[info])
    }),
    ("VUID-VkWriteDescriptorSet-descriptorType-00325", |w| {
        write(w, DescriptorType::SAMPLER, DescriptorImageInfo::default())
    }),
    ("VUID-VkWriteDescriptorSet-descriptorType-02996", |w| {
        write(w, DescriptorType::STORAGE_IMAGE, DescriptorImageInfo::default())
    }),
    ("VUID-VkDescriptorImageInfo-commonparent", |w| {
        let sampler = w.other.create_sampler(&SamplerInfo::default())?;
        write(w, DescriptorType::SAMPLER, DescriptorImageInfo { sampler: Some(&sampler), view: None })
    }),
    ("VUID-VkDescriptorImageInfo-commonparent", |w| {
        let image = bound(&w.other, &plain());
        let view = w.other.create_image_view(&show(&image))?;
        write(w, DescriptorType::SAMPLED_IMAGE, DescriptorImageInfo { sampler: None, view: Some(&view) })
    }),
    ("VUID-VkWriteDescriptorSet-descriptorType-00336", |w| {
        write_view(w, DescriptorType::STORAGE_IMAGE, ImageUsageFlags::STORAGE, true)
    }),
    ("VUID-VkWriteDescriptorSet-descriptorType-00337", |w| {
        write_view(w, DescriptorType::SAMPLED_IMAGE, ImageUsageFlags::STORAGE, false)
    }),
    ("VUID-VkWriteDescriptorSet-descriptorType-00339", |w| {
        write_view(w, DescriptorType::STORAGE_IMAGE, ImageUsageFlags::SAMPLED, false)
    }),
    ("VUID-VkWriteDescriptorSet-descriptorType-08765", |w| {
        write_texels(w, DescriptorType::UNIFORM_TEXEL_BUFFER, BufferUsageFlags::STORAGE_TEXEL_BUFFER)
    }),
    ("VUID-VkWriteDescriptorSet-descriptorType-08766", |w| {
        write_texels(w, DescriptorType::STORAGE_TEXEL_BUFFER, BufferUsageFlags::UNIFORM_TEXEL_BUFFER)
    }),
];
