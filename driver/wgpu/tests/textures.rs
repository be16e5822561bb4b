//! Textures and samplers: each kind of view, sampling, storage, copies and clears.

#![allow(clippy::unwrap_used, reason = "tests and their helpers")]

use crate::common;
use crate::common::{Gpu, floats};
use wgpu::{TextureDimension, TextureFormat, TextureUsages, TextureViewDimension};

const USES: TextureUsages =
    TextureUsages::TEXTURE_BINDING.union(TextureUsages::COPY_DST).union(TextureUsages::COPY_SRC);

/// A texture with `levels` levels.
fn texture(
    gpu: &Gpu,
    (dimension, format): (TextureDimension, TextureFormat),
    [width, height, depth_or_array_layers]: [u32; 3],
    levels: u32,
    usage: TextureUsages,
) -> wgpu::Texture {
    gpu.device.create_texture(&wgpu::TextureDescriptor {
        label: None,
        size: wgpu::Extent3d { width, height, depth_or_array_layers },
        mip_level_count: levels,
        sample_count: 1,
        dimension,
        format,
        usage,
        view_formats: &[],
    })
}

/// Writes all texels of a level.
fn write(gpu: &Gpu, texture: &wgpu::Texture, level: u32, bytes: &[u8]) {
    let size = texture.size();
    let shrink = |size: u32| (size >> level).max(1);
    let depth = if texture.dimension() == TextureDimension::D3 {
        shrink(size.depth_or_array_layers)
    } else {
        size.depth_or_array_layers
    };
    let (width, height) =
        (shrink(size.width), if texture.dimension() == TextureDimension::D1 { 1 } else { shrink(size.height) });
    let texel = texture.format().block_copy_size(None).unwrap();
    gpu.queue.write_texture(
        wgpu::TexelCopyTextureInfo { mip_level: level, ..texture.as_image_copy() },
        bytes,
        wgpu::TexelCopyBufferLayout { offset: 0, bytes_per_row: Some(width * texel), rows_per_image: Some(height) },
        wgpu::Extent3d { width, height, depth_or_array_layers: depth },
    );
}

/// Runs one invocation that computes `results` from the texture and the sampler.
fn sampled(
    gpu: &Gpu,
    (ty, view): (&str, &wgpu::TextureView),
    (sampler_ty, sampler): (&str, &wgpu::Sampler),
    results: &[&str],
) -> Vec<f32> {
    let stores: String = results.iter().enumerate().map(|(at, result)| format!("to[{at}] = {result};\n")).collect();
    let source = format!(
        "@group(0) @binding(0) var t: {ty};
        @group(0) @binding(1) var s: {sampler_ty};
        @group(0) @binding(2) var<storage, read_write> to: array<f32>;
        @compute @workgroup_size(1) fn main() {{ {stores} }}"
    );
    let to = gpu.words(&vec![0; results.len()]);
    let layout = gpu.layout(&layout(view, sampler_ty), 0);
    let pipeline = gpu.device.create_compute_pipeline(&wgpu::ComputePipelineDescriptor {
        label: None,
        layout: Some(&layout),
        module: &gpu.module(&source),
        entry_point: None,
        compilation_options: Default::default(),
        cache: None,
    });
    let group = gpu.group(
        &pipeline,
        &[wgpu::BindingResource::TextureView(view), wgpu::BindingResource::Sampler(sampler), to.as_entire_binding()],
    );
    gpu.dispatch(&pipeline, &group, [1, 1, 1]);
    gpu.read_words(&to).into_iter().map(f32::from_bits).collect()
}

/// The layout of [`sampled`]: derived ones do not filter 32-bit floats.
fn layout(view: &wgpu::TextureView, sampler: &str) -> [wgpu::BindGroupLayoutEntry; 3] {
    let visibility = wgpu::ShaderStages::COMPUTE;
    let texture = view.texture();
    let compares = sampler == "sampler_comparison";
    let dimension = match (texture.dimension(), texture.depth_or_array_layers()) {
        (TextureDimension::D1, _) => TextureViewDimension::D1,
        (TextureDimension::D3, _) => TextureViewDimension::D3,
        (_, 1) => TextureViewDimension::D2,
        (_, 6) => TextureViewDimension::Cube,
        _ => TextureViewDimension::D2Array,
    };
    let sample_type = match texture.format().is_depth_stencil_format() {
        true => wgpu::TextureSampleType::Depth,
        false => wgpu::TextureSampleType::Float { filterable: true },
    };
    let kind = if compares { wgpu::SamplerBindingType::Comparison } else { wgpu::SamplerBindingType::Filtering };
    let entry = |binding, ty| wgpu::BindGroupLayoutEntry { binding, visibility, ty, count: None };
    let buffer = wgpu::BufferBindingType::Storage { read_only: false };
    [
        entry(0, wgpu::BindingType::Texture { sample_type, view_dimension: dimension, multisampled: false }),
        entry(1, wgpu::BindingType::Sampler(kind)),
        entry(2, wgpu::BindingType::Buffer { ty: buffer, has_dynamic_offset: false, min_binding_size: None }),
    ]
}

fn linear(gpu: &Gpu) -> wgpu::Sampler {
    gpu.device.create_sampler(&wgpu::SamplerDescriptor {
        mag_filter: wgpu::FilterMode::Linear,
        min_filter: wgpu::FilterMode::Linear,
        mipmap_filter: wgpu::MipmapFilterMode::Linear,
        ..Default::default()
    })
}

fn compare(gpu: &Gpu) -> wgpu::Sampler {
    gpu.device
        .create_sampler(&wgpu::SamplerDescriptor { compare: Some(wgpu::CompareFunction::Less), ..Default::default() })
}

fn le_floats(values: &[f32]) -> Vec<u8> {
    values.iter().flat_map(|value| value.to_le_bytes()).collect()
}

#[test]
fn a_linear_sampler_filters_texels_and_levels() {
    let gpu = Gpu::shared();
    let image = texture(&gpu, (TextureDimension::D2, TextureFormat::R32Float), [2, 2, 1], 2, USES);
    write(&gpu, &image, 0, &le_floats(&[0.0, 4.0, 8.0, 12.0]));
    write(&gpu, &image, 1, &le_floats(&[100.0]));
    let view = image.create_view(&Default::default());
    let results = sampled(
        &gpu,
        ("texture_2d<f32>", &view),
        ("sampler", &linear(&gpu)),
        &[
            "textureSampleLevel(t, s, vec2(0.25, 0.25), 0.0).x",
            "textureSampleLevel(t, s, vec2(0.5, 0.5), 0.0).x",
            "textureSampleLevel(t, s, vec2(0.5, 0.25), 0.0).x",
            "textureSampleLevel(t, s, vec2(0.5, 0.5), 0.5).x",
            "textureLoad(t, vec2(1, 1), 0).x",
            "textureLoad(t, vec2(0, 0), 1).x",
            "f32(textureNumLevels(t))",
            "f32(textureDimensions(t, 0).x)",
            // The texels around the middle, from the lower left one against the clock.
            "textureGather(0, t, s, vec2(0.5, 0.5)).x",
            "textureGather(0, t, s, vec2(0.5, 0.5)).z",
        ],
    );
    assert_eq!(results, [0.0, 6.0, 2.0, 53.0, 12.0, 100.0, 2.0, 2.0, 8.0, 4.0]);
}

#[test]
fn borders_and_repetition() {
    let gpu = Gpu::shared();
    let image = texture(&gpu, (TextureDimension::D2, TextureFormat::R32Float), [2, 1, 1], 1, USES);
    write(&gpu, &image, 0, &le_floats(&[3.0, 5.0]));
    let view = image.create_view(&Default::default());
    let with = |mode, border_color| {
        let sampler = gpu.device.create_sampler(&wgpu::SamplerDescriptor {
            address_mode_u: mode,
            address_mode_v: mode,
            border_color,
            ..Default::default()
        });
        let at = |x: f32| format!("textureSampleLevel(t, s, vec2({x:?}, 0.5), 0.0).x");
        let texts = [-0.25, 0.25, 1.25, 1.75].map(at);
        sampled(&gpu, ("texture_2d<f32>", &view), ("sampler", &sampler), &texts.each_ref().map(String::as_str))
    };
    assert_eq!(with(wgpu::AddressMode::ClampToEdge, None), [3.0, 3.0, 5.0, 5.0]);
    assert_eq!(with(wgpu::AddressMode::Repeat, None), [5.0, 3.0, 3.0, 5.0]);
    assert_eq!(with(wgpu::AddressMode::MirrorRepeat, None), [3.0, 3.0, 5.0, 3.0]);
    let white = Some(wgpu::SamplerBorderColor::OpaqueWhite);
    assert_eq!(with(wgpu::AddressMode::ClampToBorder, white), [1.0, 3.0, 1.0, 1.0]);
    let zero = Some(wgpu::SamplerBorderColor::Zero);
    assert_eq!(with(wgpu::AddressMode::ClampToBorder, zero), [0.0, 3.0, 0.0, 0.0]);
}

#[test]
fn arrays_volumes_cubes_and_lines() {
    let gpu = Gpu::shared();
    let sampler = linear(&gpu);
    let array = texture(&gpu, (TextureDimension::D2, TextureFormat::R32Float), [1, 1, 3], 1, USES);
    write(&gpu, &array, 0, &le_floats(&[1.0, 2.0, 3.0]));
    let view = array.create_view(&Default::default());
    let results = sampled(
        &gpu,
        ("texture_2d_array<f32>", &view),
        ("sampler", &sampler),
        &[
            "textureSampleLevel(t, s, vec2(0.5), 2, 0.0).x",
            "textureLoad(t, vec2(0), 1, 0).x",
            "f32(textureNumLayers(t))",
        ],
    );
    assert_eq!(results, [3.0, 2.0, 3.0]);

    let volume = texture(&gpu, (TextureDimension::D3, TextureFormat::R32Float), [1, 1, 4], 1, USES);
    write(&gpu, &volume, 0, &le_floats(&[0.0, 10.0, 20.0, 30.0]));
    let view = volume.create_view(&Default::default());
    let results = sampled(
        &gpu,
        ("texture_3d<f32>", &view),
        ("sampler", &sampler),
        &["textureSampleLevel(t, s, vec3(0.5, 0.5, 0.5), 0.0).x", "textureLoad(t, vec3(0, 0, 3), 0).x"],
    );
    assert_eq!(results, [15.0, 30.0]);

    let cube = texture(&gpu, (TextureDimension::D2, TextureFormat::R32Float), [1, 1, 6], 1, USES);
    write(&gpu, &cube, 0, &le_floats(&[1.0, 2.0, 3.0, 4.0, 5.0, 6.0]));
    let view = cube.create_view(&wgpu::TextureViewDescriptor {
        dimension: Some(TextureViewDimension::Cube),
        ..Default::default()
    });
    let nearest = gpu.device.create_sampler(&Default::default());
    let results = sampled(
        &gpu,
        ("texture_cube<f32>", &view),
        ("sampler", &nearest),
        &[
            "textureSampleLevel(t, s, vec3(1.0, 0.0, 0.0), 0.0).x",
            "textureSampleLevel(t, s, vec3(0.0, -1.0, 0.0), 0.0).x",
            "textureSampleLevel(t, s, vec3(0.0, 0.0, -1.0), 0.0).x",
        ],
    );
    assert_eq!(results, [1.0, 4.0, 6.0]);

    let line = texture(&gpu, (TextureDimension::D1, TextureFormat::R32Float), [4, 1, 1], 1, USES);
    write(&gpu, &line, 0, &le_floats(&[1.0, 2.0, 4.0, 8.0]));
    let view = line.create_view(&Default::default());
    let results = sampled(
        &gpu,
        ("texture_1d<f32>", &view),
        ("sampler", &sampler),
        &["textureSampleLevel(t, s, 0.5, 0.0).x", "textureLoad(t, 3, 0).x"],
    );
    assert_eq!(results, [3.0, 8.0]);
}

#[test]
fn depth_is_compared() {
    let gpu = Gpu::shared();
    let image = texture(&gpu, (TextureDimension::D2, TextureFormat::Depth16Unorm), [2, 1, 1], 1, USES);
    // A third and two thirds of 65535.
    let from = gpu.words(&[0xaaaa_5555, 0, 0, 0]);
    let mut encoder = gpu.encoder();
    encoder.copy_buffer_to_texture(
        wgpu::TexelCopyBufferInfo {
            buffer: &from,
            layout: wgpu::TexelCopyBufferLayout { offset: 0, bytes_per_row: Some(256), rows_per_image: None },
        },
        image.as_image_copy(),
        image.size(),
    );
    gpu.queue.submit([encoder.finish()]);
    let sampler = compare(&gpu);
    let view = image.create_view(&Default::default());
    let results = sampled(
        &gpu,
        ("texture_depth_2d", &view),
        ("sampler_comparison", &sampler),
        &[
            "textureSampleCompareLevel(t, s, vec2(0.25, 0.5), 0.5)",
            "textureSampleCompareLevel(t, s, vec2(0.75, 0.5), 0.5)",
            "textureLoad(t, vec2(1, 0), 0)",
        ],
    );
    assert_eq!(results, [0.0, 1.0, 2.0 / 3.0]);
}

/// A kernel reads and writes a storage texture; each format has its own numbers.
#[test]
fn storage_textures_of_many_formats() {
    let gpu = Gpu::shared();
    for (format, name, stored, expected) in [
        (TextureFormat::R32Float, "r32float", "vec4(1.5, 0.0, 0.0, 0.0)", floats(&[1.5])),
        (TextureFormat::R32Uint, "r32uint", "vec4<u32>(7u, 0u, 0u, 0u)", vec![7]),
        (TextureFormat::R32Sint, "r32sint", "vec4<i32>(-7, 0, 0, 0)", vec![(-7i32).cast_unsigned()]),
        (TextureFormat::Rgba8Uint, "rgba8uint", "vec4<u32>(1u, 2u, 3u, 4u)", vec![0x0403_0201]),
        // Integers out of range are clamped.
        (TextureFormat::Rgba8Uint, "rgba8uint", "vec4<u32>(255u, 256u, 70000u, 0u)", vec![0x00ff_ffff]),
        (TextureFormat::Rgba8Sint, "rgba8sint", "vec4<i32>(127, 128, -128, -129)", vec![0x8080_7f7f]),
        (TextureFormat::Rgba16Uint, "rgba16uint", "vec4<u32>(65536u, 1u, 0u, 0u)", vec![0x0001_ffff, 0]),
        (TextureFormat::Rgba16Sint, "rgba16sint", "vec4<i32>(-32769, 32768, 0, -1)", vec![0x7fff_8000, 0xffff_0000]),
        (TextureFormat::Rgba8Snorm, "rgba8snorm", "vec4(1.0, -1.0, 0.0, 0.0)", vec![0x0000_817f]),
        (TextureFormat::Bgra8Unorm, "bgra8unorm", "vec4(1.0, 0.0, 0.2, 1.0)", vec![0xffff_0033]),
        (TextureFormat::Rg32Float, "rg32float", "vec4(1.0, 2.0, 0.0, 0.0)", floats(&[1.0, 2.0])),
        (TextureFormat::Rgba16Float, "rgba16float", "vec4(1.0, 2.0, -1.0, 0.5)", vec![0x4000_3c00, 0x3800_bc00]),
        (TextureFormat::Rgba16Unorm, "rgba16unorm", "vec4(1.0, 0.0, 0.0, 1.0)", vec![0xffff, 0xffff_0000]),
        (TextureFormat::Rgba32Float, "rgba32float", "vec4(1.0, 2.0, 3.0, 4.0)", floats(&[1.0, 2.0, 3.0, 4.0])),
        (TextureFormat::Rgb10a2Unorm, "rgb10a2unorm", "vec4(1.0, 0.0, 0.0, 1.0)", vec![0xc000_03ff]),
    ] {
        let usage = TextureUsages::STORAGE_BINDING | TextureUsages::COPY_SRC;
        let image = texture(&gpu, (TextureDimension::D2, format), [1, 1, 1], 1, usage);
        let source = format!(
            "@group(0) @binding(0) var t: texture_storage_2d<{name}, write>;
            @compute @workgroup_size(1) fn main() {{ textureStore(t, vec2(0), {stored}); }}"
        );
        let pipeline = gpu.pipeline(&source, &[]);
        let view = image.create_view(&Default::default());
        let group = gpu.group(&pipeline, &[wgpu::BindingResource::TextureView(&view)]);
        gpu.dispatch(&pipeline, &group, [1, 1, 1]);
        assert_eq!(texels(&gpu, &image)[..expected.len()], expected, "{name}");
    }
}

/// The words of level 0, in rows of 256 bytes.
fn texels(gpu: &Gpu, image: &wgpu::Texture) -> Vec<u32> {
    let rows = image.height() * image.depth_or_array_layers();
    let to = gpu.words(&vec![0; 64 * rows as usize]);
    let mut encoder = gpu.encoder();
    encoder.copy_texture_to_buffer(
        image.as_image_copy(),
        wgpu::TexelCopyBufferInfo {
            buffer: &to,
            layout: wgpu::TexelCopyBufferLayout {
                offset: 0,
                bytes_per_row: Some(256),
                rows_per_image: Some(image.height()),
            },
        },
        image.size(),
    );
    gpu.queue.submit([encoder.finish()]);
    gpu.read_words(&to)
}

/// All invocations count in one texel.
#[test]
fn atomics_on_texels() {
    let gpu = Gpu::shared();
    let usage = TextureUsages::STORAGE_BINDING | TextureUsages::STORAGE_ATOMIC | TextureUsages::COPY_SRC;
    let image = texture(&gpu, (TextureDimension::D2, TextureFormat::R32Uint), [2, 1, 1], 1, usage);
    let source = "@group(0) @binding(0) var t: texture_storage_2d<r32uint, atomic>;
        @compute @workgroup_size(64) fn main(@builtin(local_invocation_index) i: u32) {
            textureAtomicAdd(t, vec2(0, 0), 1u); textureAtomicMax(t, vec2(1, 0), i);
        }";
    let pipeline = gpu.pipeline(source, &[]);
    let view = image.create_view(&Default::default());
    let group = gpu.group(&pipeline, &[wgpu::BindingResource::TextureView(&view)]);
    gpu.dispatch(&pipeline, &group, [3, 1, 1]);
    assert_eq!(texels(&gpu, &image)[..2], [192, 63]);
}

/// A kernel reads what it or another one wrote into the same texture.
#[test]
fn a_storage_texture_is_read_and_written() {
    let gpu = Gpu::shared();
    let usage = TextureUsages::STORAGE_BINDING | USES;
    let image = texture(&gpu, (TextureDimension::D2, TextureFormat::R32Uint), [4, 1, 1], 1, usage);
    write(&gpu, &image, 0, &common::bytes(&[1, 2, 3, 4]));
    let source = "@group(0) @binding(0) var t: texture_storage_2d<r32uint, read_write>;
        @compute @workgroup_size(4) fn main(@builtin(local_invocation_id) l: vec3<u32>) {
            let x = textureLoad(t, l.xy).x; textureStore(t, l.xy, vec4(x * x, 0u, 0u, 0u));
        }";
    let pipeline = gpu.pipeline(source, &[]);
    let view = image.create_view(&Default::default());
    let group = gpu.group(&pipeline, &[wgpu::BindingResource::TextureView(&view)]);
    gpu.dispatch(&pipeline, &group, [1, 1, 1]);
    gpu.dispatch(&pipeline, &group, [1, 1, 1]);
    assert_eq!(texels(&gpu, &image)[..4], [1, 16, 81, 256]);
}

#[test]
fn textures_are_copied_and_cleared() {
    let gpu = Gpu::shared();
    let of = |layers| texture(&gpu, (TextureDimension::D2, TextureFormat::R32Uint), [4, 4, layers], 1, USES);
    let (from, to) = (of(2), of(2));
    write(&gpu, &from, 0, &common::bytes(&(0..32).collect::<Vec<_>>()));
    write(&gpu, &to, 0, &common::bytes(&[99; 32]));
    let mut encoder = gpu.encoder();
    // The right half of layer 1 to the left half of layer 0, two rows.
    encoder.copy_texture_to_texture(
        wgpu::TexelCopyTextureInfo { origin: wgpu::Origin3d { x: 2, y: 1, z: 1 }, ..from.as_image_copy() },
        wgpu::TexelCopyTextureInfo { origin: wgpu::Origin3d { x: 0, y: 2, z: 0 }, ..to.as_image_copy() },
        wgpu::Extent3d { width: 2, height: 2, depth_or_array_layers: 1 },
    );
    gpu.queue.submit([encoder.finish()]);
    let words = texels(&gpu, &to);
    let row = |y: usize| &words[64 * y..64 * y + 4];
    assert_eq!((row(0), row(2), row(3)), (&[99; 4][..], &[22, 23, 99, 99][..], &[26, 27, 99, 99][..]));
    let mut encoder = gpu.encoder();
    encoder.clear_texture(&to, &wgpu::ImageSubresourceRange { base_array_layer: 1, ..Default::default() });
    gpu.queue.submit([encoder.finish()]);
    let words = texels(&gpu, &to);
    assert_eq!((words[0], words[64 * 4], words[64 * 7 + 3]), (99, 0, 0));
}

/// Textures that were never written read as zeros, whatever was in their memory.
#[test]
fn new_textures_are_zero() {
    let gpu = Gpu::shared();
    for _ in 0..3 {
        let image = texture(&gpu, (TextureDimension::D2, TextureFormat::R32Uint), [64, 8, 1], 1, USES);
        assert_eq!(texels(&gpu, &image), [0; 512]);
        write(&gpu, &image, 0, &[7; 2048]);
        assert_eq!(texels(&gpu, &image), [0x0707_0707; 512]);
    }
}

/// wgpu clears them by a render pass without draws; colours are cleared by copies.
#[test]
fn depth_that_was_never_written_reads_as_zero() {
    let gpu = Gpu::shared();
    let image = texture(&gpu, (TextureDimension::D2, TextureFormat::Depth32Float), [5, 3, 2], 2, USES);
    let view = image.create_view(&Default::default());
    let results = sampled(
        &gpu,
        ("texture_depth_2d_array", &view),
        ("sampler_comparison", &compare(&gpu)),
        &["textureLoad(t, vec2(4, 2), 1, 0)", "textureLoad(t, vec2(1, 0), 0, 1)", "f32(textureNumLevels(t))"],
    );
    assert_eq!(results, [0.0, 0.0, 2.0]);
    // Layers that were written keep their texels.
    let image = texture(&gpu, (TextureDimension::D2, TextureFormat::Depth16Unorm), [2, 1, 2], 1, USES);
    gpu.queue.write_texture(
        wgpu::TexelCopyTextureInfo { origin: wgpu::Origin3d { x: 0, y: 0, z: 1 }, ..image.as_image_copy() },
        &[0xff; 4],
        wgpu::TexelCopyBufferLayout { offset: 0, bytes_per_row: Some(4), rows_per_image: None },
        wgpu::Extent3d { width: 2, height: 1, depth_or_array_layers: 1 },
    );
    let view = image.create_view(&Default::default());
    let of_layer = ["textureLoad(t, vec2(1, 0), 0, 0)", "textureLoad(t, vec2(1, 0), 1, 0)"];
    let sampler = compare(&gpu);
    let results = sampled(&gpu, ("texture_depth_2d_array", &view), ("sampler_comparison", &sampler), &of_layer);
    assert_eq!(results, [0.0, 1.0]);
}

/// An adapter with fewer features has the formats that these guarantee.
#[test]
fn formats_are_those_of_the_features() {
    let of = |features, format| {
        let options = spelter_wgpu::Options::new().features(features);
        options.adapter_on(&options.instance()).get_texture_format_features(format).allowed_usages
    };
    let storage = TextureUsages::STORAGE_BINDING;
    let (all, none) = (wgpu::Features::all(), wgpu::Features::empty());
    assert!(of(all, TextureFormat::R8Unorm).contains(storage) && of(none, TextureFormat::Rgba8Unorm).contains(storage));
    assert!(!of(none, TextureFormat::R8Unorm).contains(storage));
    let with = |feature, format, usage| (of(none, format).contains(usage), of(feature, format).contains(usage));
    assert_eq!(with(wgpu::Features::BGRA8UNORM_STORAGE, TextureFormat::Bgra8Unorm, storage), (false, true));
    let atomic = TextureUsages::STORAGE_ATOMIC;
    assert_eq!(with(wgpu::Features::TEXTURE_ATOMIC, TextureFormat::R32Uint, atomic), (false, true));
}
