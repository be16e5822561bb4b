//! Conversions from and to the types of `wgpu-types`.

use spelter::wgpu::{BufferUsage, Format, ImageUsage, Unnamed, limits};
use spelter::{Context, vk};
use spelter_shaders::image::Format as DeviceFormat;
use wgpu_types::{AstcBlock, AstcChannel, BufferUsages, Limits, TextureFormat, TextureUsages};

/// All formats of Vulkan 1.3: the core ones, and those of extensions that became core.
fn vulkan_formats() -> impl Iterator<Item = vk::Format> {
    let core = 0..=184;
    let of_extension = |number: i32| (0..40).map(move |offset| 1_000_000_000 + (number - 1) * 1000 + offset);
    core.chain([67, 157, 331, 341].into_iter().flat_map(of_extension)).map(vk::Format::from_raw)
}

#[test]
fn formats_that_have_a_name_in_wgpu_convert_there_and_back() {
    let mut named = 0;
    for vulkan in vulkan_formats() {
        match TextureFormat::try_from(Format(vulkan)) {
            Ok(wgpu) => {
                assert_eq!(Format::from(wgpu), Format(vulkan), "{wgpu:?}");
                named += 1;
            }
            Err(error) => assert_eq!(error, Unnamed::Format(vulkan)),
        }
    }
    // 44 plain ones, 4 of depth and stencil, 2 of planes, 14 BC, 10 ETC2 and EAC, 3 for each of 14 ASTC blocks.
    assert_eq!(named, 44 + 4 + 2 + 14 + 10 + 3 * 14);
    let astc = TextureFormat::Astc { block: AstcBlock::B10x8, channel: AstcChannel::UnormSrgb };
    assert_eq!(Format::from(astc).0, vk::Format::ASTC_10X8_SRGB_BLOCK);
    assert_eq!(Format::from(TextureFormat::Depth24Plus).0, vk::Format::D32_SFLOAT);
    let error = TextureFormat::try_from(Format(vk::Format::R8G8B8_UNORM)).unwrap_err();
    assert_eq!(error.to_string(), "wgpu has no format R8G8B8_UNORM");
}

#[test]
fn texels_have_the_size_and_the_components_that_wgpu_says() {
    let mut compared = 0;
    for format in DeviceFormat::all() {
        let Ok(wgpu) = TextureFormat::try_from(Format(vk::Format::from_raw(format.vk()))) else { continue };
        if format.is_depth() {
            continue;
        }
        assert_eq!(wgpu.block_copy_size(None), Some(format.bytes()), "{wgpu:?}");
        // The exponent that three components share is a part of the texel, and no component.
        let shared = usize::from(wgpu == TextureFormat::Rgb9e5Ufloat);
        assert_eq!(usize::from(wgpu.components()), format.channels().len() - shared, "{wgpu:?}");
        compared += 1;
    }
    assert!(compared > 35, "{compared}");
}

#[test]
fn usages_of_buffers_convert() {
    let wgpu = BufferUsages::STORAGE | BufferUsages::COPY_SRC | BufferUsages::MAP_READ | BufferUsages::QUERY_RESOLVE;
    let flags =
        vk::BufferUsageFlags::STORAGE_BUFFER | vk::BufferUsageFlags::TRANSFER_SRC | vk::BufferUsageFlags::TRANSFER_DST;
    assert_eq!(BufferUsage::from(wgpu).0, flags);
    let back = BufferUsages::STORAGE | BufferUsages::COPY_SRC | BufferUsages::COPY_DST;
    assert_eq!(BufferUsages::try_from(BufferUsage(flags)), Ok(back));
    for usage in BufferUsages::all() - BufferUsages::MAP_READ - BufferUsages::MAP_WRITE {
        assert!(!BufferUsage::from(usage).0.is_empty(), "{usage:?}");
    }
    let texels = vk::BufferUsageFlags::UNIFORM_TEXEL_BUFFER;
    let error = BufferUsages::try_from(BufferUsage(flags | texels)).unwrap_err();
    assert_eq!(error, Unnamed::BufferUsage(texels));
}

#[test]
fn usages_of_images_convert() {
    let of = |usages, format| ImageUsage::from((usages, format)).0;
    let wgpu = TextureUsages::TEXTURE_BINDING | TextureUsages::STORAGE_BINDING | TextureUsages::COPY_DST;
    let flags = vk::ImageUsageFlags::SAMPLED | vk::ImageUsageFlags::STORAGE | vk::ImageUsageFlags::TRANSFER_DST;
    assert_eq!(of(wgpu, TextureFormat::R32Float), flags);
    assert_eq!(TextureUsages::try_from(ImageUsage(flags)), Ok(wgpu));
    let attachment = |format| of(TextureUsages::RENDER_ATTACHMENT, format);
    assert_eq!(attachment(TextureFormat::R32Float), vk::ImageUsageFlags::COLOR_ATTACHMENT);
    assert_eq!(attachment(TextureFormat::Depth32Float), vk::ImageUsageFlags::DEPTH_STENCIL_ATTACHMENT);
    for usage in TextureUsages::all() {
        let flags = of(usage, TextureFormat::R32Uint);
        assert!(!flags.is_empty(), "{usage:?}");
        assert!(!TextureUsages::try_from(ImageUsage(flags)).unwrap().is_empty(), "{usage:?}");
    }
    let input = vk::ImageUsageFlags::INPUT_ATTACHMENT;
    assert_eq!(TextureUsages::try_from(ImageUsage(flags | input)), Err(Unnamed::ImageUsage(input)));
}

#[test]
fn limits_are_those_of_the_device_and_suffice_for_webgpu() {
    let context = Context::builder().workers(1).build().unwrap();
    let device = context.device().limits();
    let limits = limits(device);
    assert_eq!(limits.max_compute_workgroup_size_x, device.max_compute_work_group_size[0]);
    assert_eq!(limits.max_compute_workgroups_per_dimension, 65_535);
    assert_eq!(limits.max_immediate_size, 256);
    assert_eq!(limits.max_color_attachments, 0);
    // All that WebGPU guarantees for programs that only compute.
    let rendering = Limits {
        max_vertex_buffers: 0,
        max_vertex_attributes: 0,
        max_vertex_buffer_array_stride: 0,
        max_inter_stage_shader_variables: 0,
        max_color_attachments: 0,
        max_color_attachment_bytes_per_sample: 0,
        ..Limits::default()
    };
    assert!(rendering.check_limits(&limits));
}

#[test]
fn an_image_is_described_in_terms_of_wgpu() {
    let context = Context::builder().workers(1).build().unwrap();
    let image = context.image(Format::from(TextureFormat::Rgba16Float).into(), [3, 5, 1]).build().unwrap();
    assert_eq!(TextureFormat::try_from(Format(image.info().format)), Ok(TextureFormat::Rgba16Float));
}
