//! The buffers, images, views and samplers of a test file.

use std::collections::BTreeMap;

use ash::vk;
use spelter_shaders::image::{Compare, Filter, Sampler, Swizzle, Wrap};
use spelter_tests::case::{Case, Slot};
use spelter_tests::images::ImageDecl;
use spelter_tests::values::Word;

use crate::gpu::{Buffer, Gpu, Memory};

/// An image with a buffer from which its texels are uploaded and to which they are downloaded.
pub(crate) struct Image {
    pub(crate) raw: vk::Image,
    memory: Memory,
    pub(crate) view: vk::ImageView,
    pub(crate) staging: Buffer,
    pub(crate) copies: Vec<vk::BufferImageCopy>,
}

/// The resources of a case.
pub(crate) struct Made {
    pub(crate) buffers: BTreeMap<Slot, Buffer>,
    pub(crate) images: BTreeMap<Slot, Image>,
    pub(crate) texels: BTreeMap<Slot, vk::BufferView>,
    pub(crate) samplers: BTreeMap<Slot, vk::Sampler>,
}

pub(crate) fn bytes_of(words: &[Word]) -> Vec<u8> {
    words.iter().flat_map(|word| word.bits.to_le_bytes()).collect()
}

impl Made {
    pub(crate) fn new(gpu: &Gpu, case: &Case, imported: bool) -> Self {
        let plain = case.binds.iter().filter(|(slot, _)| !case.images.contains_key(slot));
        let buffers: BTreeMap<_, _> =
            plain.map(|(slot, words)| (*slot, gpu.buffer(&bytes_of(words), imported))).collect();
        for [(slot, at), (of, offset)] in &case.addresses {
            buffers[slot].write(*at, &(gpu.address(&buffers[of]) + *offset as u64).to_le_bytes());
        }
        let images = case.images.iter();
        let images = images
            .map(|(slot, decl)| (*slot, image(gpu, decl, case.binds.get(slot), kind(case, slot), imported)))
            .collect();
        let texels = case.texels.iter().map(|(slot, format)| {
            let info = vk::BufferViewCreateInfo::default()
                .buffer(buffers[slot].raw)
                .format(vk::Format::from_raw(format.vk()))
                .range(vk::WHOLE_SIZE);
            (*slot, unsafe { gpu.device.create_buffer_view(&info, None).unwrap() })
        });
        let texels = texels.collect();
        let samplers = case.samplers.iter().map(|(slot, decl)| (*slot, sampler(gpu, decl))).collect();
        Self { buffers, images, texels, samplers }
    }

    pub(crate) fn destroy(&self, gpu: &Gpu) {
        unsafe {
            self.texels.values().for_each(|&view| gpu.device.destroy_buffer_view(view, None));
            self.samplers.values().for_each(|&sampler| gpu.device.destroy_sampler(sampler, None));
            for image in self.images.values() {
                gpu.device.destroy_image_view(image.view, None);
                gpu.device.destroy_image(image.raw, None);
                gpu.free(&image.memory);
                gpu.destroy(&image.staging);
            }
        }
        self.buffers.values().for_each(|buffer| gpu.destroy(buffer));
    }
}

/// The type that the kernel's text declares for the image.
fn kind(case: &Case, slot: &Slot) -> &'static str {
    let (set, binding, element) = (slot.set, slot.binding, slot.element);
    let declares = |kind: &&str| {
        let names = [format!("image {set}.{binding}: {kind}"), format!("image {set}.{binding}[{element}]: {kind}")];
        names.iter().any(|name| case.text.contains(name))
    };
    ["1d", "2d", "3d", "cube"].into_iter().find(declares).unwrap_or_default()
}

fn image(gpu: &Gpu, decl: &ImageDecl, words: Option<&Vec<Word>>, kind: &str, imported: bool) -> Image {
    let cube = kind == "cube";
    let (extent, format) = (decl.extent, vk::Format::from_raw(decl.format.vk()));
    let [width, height, depth] = extent.size;
    let flat = |array, single| if extent.layers > 1 { array } else { single };
    let (ty, view) = match () {
        () if kind == "1d" => {
            (vk::ImageType::TYPE_1D, flat(vk::ImageViewType::TYPE_1D_ARRAY, vk::ImageViewType::TYPE_1D))
        }
        () if decl.volume => (vk::ImageType::TYPE_3D, vk::ImageViewType::TYPE_3D),
        () if cube && extent.layers > 6 => (vk::ImageType::TYPE_2D, vk::ImageViewType::CUBE_ARRAY),
        () if cube => (vk::ImageType::TYPE_2D, vk::ImageViewType::CUBE),
        () => (vk::ImageType::TYPE_2D, flat(vk::ImageViewType::TYPE_2D_ARRAY, vk::ImageViewType::TYPE_2D)),
    };
    let flags = if cube { vk::ImageCreateFlags::CUBE_COMPATIBLE } else { vk::ImageCreateFlags::empty() };
    let depths = [vk::Format::D16_UNORM, vk::Format::D32_SFLOAT, vk::Format::X8_D24_UNORM_PACK32];
    let aspect_mask = if depths.contains(&format) { vk::ImageAspectFlags::DEPTH } else { vk::ImageAspectFlags::COLOR };
    let usage = vk::ImageUsageFlags::SAMPLED | vk::ImageUsageFlags::TRANSFER_SRC | vk::ImageUsageFlags::TRANSFER_DST;
    let device = &gpu.device;
    unsafe {
        let make = |usage| {
            let info = vk::ImageCreateInfo::default()
                .flags(flags)
                .image_type(ty)
                .format(format)
                .extent(vk::Extent3D { width, height, depth })
                .mip_levels(extent.levels)
                .array_layers(extent.layers)
                .samples(vk::SampleCountFlags::TYPE_1)
                .usage(usage);
            device.create_image(&info, None)
        };
        let raw = make(usage | vk::ImageUsageFlags::STORAGE).or_else(|_| make(usage)).unwrap();
        let memory = gpu.memory(device.get_image_memory_requirements(raw), imported);
        device.bind_image_memory(raw, memory.raw, 0).unwrap();
        let (mut copies, mut bytes) = (Vec::new(), 0);
        for mip_level in 0..extent.levels {
            let [width, height, depth] = extent.level(mip_level);
            let layers =
                vk::ImageSubresourceLayers { aspect_mask, mip_level, base_array_layer: 0, layer_count: extent.layers };
            let copy = vk::BufferImageCopy::default()
                .buffer_offset(bytes)
                .image_subresource(layers)
                .image_extent(vk::Extent3D { width, height, depth });
            copies.push(copy);
            bytes += u64::from(width * height * depth * extent.layers * decl.format.bytes());
        }
        let mut contents = words.map(|words| bytes_of(words)).unwrap_or_default();
        contents.resize(bytes.next_multiple_of(4) as usize, 0);
        let staging = gpu.buffer(&contents, imported);
        let range = vk::ImageSubresourceRange {
            aspect_mask,
            base_mip_level: 0,
            level_count: extent.levels,
            base_array_layer: 0,
            layer_count: extent.layers,
        };
        let swizzle = decl.swizzle.map(|swizzle| match swizzle {
            Swizzle::R => vk::ComponentSwizzle::R,
            Swizzle::G => vk::ComponentSwizzle::G,
            Swizzle::B => vk::ComponentSwizzle::B,
            Swizzle::A => vk::ComponentSwizzle::A,
            Swizzle::Zero => vk::ComponentSwizzle::ZERO,
            Swizzle::One => vk::ComponentSwizzle::ONE,
        });
        let components = vk::ComponentMapping { r: swizzle[0], g: swizzle[1], b: swizzle[2], a: swizzle[3] };
        let info = vk::ImageViewCreateInfo::default()
            .image(raw)
            .view_type(view)
            .format(format)
            .components(components)
            .subresource_range(range);
        let view = device.create_image_view(&info, None).unwrap();
        Image { raw, memory, view, staging, copies }
    }
}

fn sampler(gpu: &Gpu, decl: &Sampler) -> vk::Sampler {
    let filter = |filter| if filter == Filter::Linear { vk::Filter::LINEAR } else { vk::Filter::NEAREST };
    let mode = |wrap| match wrap {
        Wrap::Repeat => vk::SamplerAddressMode::REPEAT,
        Wrap::MirroredRepeat => vk::SamplerAddressMode::MIRRORED_REPEAT,
        Wrap::ClampToEdge => vk::SamplerAddressMode::CLAMP_TO_EDGE,
        Wrap::ClampToBorder => vk::SamplerAddressMode::CLAMP_TO_BORDER,
        Wrap::MirrorClampToEdge => vk::SamplerAddressMode::MIRROR_CLAMP_TO_EDGE,
    };
    let compare = match decl.compare {
        Compare::Never => vk::CompareOp::NEVER,
        Compare::Less => vk::CompareOp::LESS,
        Compare::Equal => vk::CompareOp::EQUAL,
        Compare::LessOrEqual => vk::CompareOp::LESS_OR_EQUAL,
        Compare::Greater => vk::CompareOp::GREATER,
        Compare::NotEqual => vk::CompareOp::NOT_EQUAL,
        Compare::GreaterOrEqual => vk::CompareOp::GREATER_OR_EQUAL,
        Compare::Always => vk::CompareOp::ALWAYS,
    };
    let one = 1f32.to_bits();
    let borders = [
        ([one; 4], vk::BorderColor::FLOAT_OPAQUE_WHITE),
        ([0, 0, 0, one], vk::BorderColor::FLOAT_OPAQUE_BLACK),
        ([1; 4], vk::BorderColor::INT_OPAQUE_WHITE),
        ([0, 0, 0, 1], vk::BorderColor::INT_OPAQUE_BLACK),
    ];
    let border = borders.into_iter().find(|(bits, _)| *bits == decl.border);
    let border = border.map_or(vk::BorderColor::FLOAT_TRANSPARENT_BLACK, |(_, border)| border);
    let mip = if decl.mip == Filter::Linear { vk::SamplerMipmapMode::LINEAR } else { vk::SamplerMipmapMode::NEAREST };
    let max_lod = if decl.unnormalized { 0.0 } else { decl.max_lod };
    let info = vk::SamplerCreateInfo::default()
        .mag_filter(filter(decl.mag))
        .min_filter(filter(decl.min))
        .mipmap_mode(mip)
        .address_mode_u(mode(decl.wrap[0]))
        .address_mode_v(mode(decl.wrap[1]))
        .address_mode_w(mode(decl.wrap[2]))
        .mip_lod_bias(decl.lod_bias)
        .compare_enable(decl.compare != Compare::Never)
        .compare_op(compare)
        .min_lod(decl.min_lod)
        .max_lod(max_lod)
        .border_color(border)
        .unnormalized_coordinates(decl.unnormalized);
    unsafe { gpu.device.create_sampler(&info, None).unwrap() }
}
