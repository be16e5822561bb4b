//! Each feature that the adapter claims is used by a test; and what else wgpu has for compute: overrides, immediates,
//! indirect dispatches, dynamic offsets, mapped buffers, arrays of bindings, pipeline caches, words that are passed
//! through.

#![allow(clippy::unwrap_used, reason = "tests and their helpers")]

use crate::common::{Gpu, bytes, error_of};
use std::num::NonZeroU32;
use wgpu::Features;

/// Each feature, and a piece of the test that uses it: the name of a function or of a program.
const USED_BY: &[(Features, &str)] = &[
    (Features::SHADER_F16, "\"halves\""),
    (Features::SHADER_F64, "\"doubles\""),
    (Features::SHADER_I16, "\"integers of 16 bits\""),
    (Features::SHADER_INT64, "\"multiply 64 bits\""),
    (Features::SHADER_INT64_ATOMIC_ALL_OPS, "\"atomics of 64 bits\""),
    (Features::SHADER_INT64_ATOMIC_MIN_MAX, "\"atomics of 64 bits\""),
    (Features::SHADER_FLOAT32_ATOMIC, "\"atomic add of floats\""),
    (Features::SUBGROUP, "\"a sum over lanes\""),
    (Features::SUBGROUP_BARRIER, "fn a_subgroup_meets"),
    (Features::MEMORY_DECORATION_COHERENT, "fn coherent_and_volatile_buffers"),
    (Features::MEMORY_DECORATION_VOLATILE, "fn coherent_and_volatile_buffers"),
    (Features::PASSTHROUGH_SHADERS, "fn words_are_passed_through"),
    (Features::IMMEDIATES, "fn immediates_change_between_dispatches"),
    (Features::BUFFER_BINDING_ARRAY, "fn arrays_of_buffers"),
    (Features::STORAGE_RESOURCE_BINDING_ARRAY, "fn arrays_of_buffers"),
    (Features::SAMPLED_TEXTURE_AND_STORAGE_BUFFER_ARRAY_NON_UNIFORM_INDEXING, "fn arrays_of_buffers"),
    (Features::PARTIALLY_BOUND_BINDING_ARRAY, "fn arrays_of_buffers"),
    (Features::TEXTURE_BINDING_ARRAY, "fn arrays_of_textures"),
    (Features::STORAGE_TEXTURE_ARRAY_NON_UNIFORM_INDEXING, "fn arrays_of_textures"),
    (Features::TEXTURE_ADAPTER_SPECIFIC_FORMAT_FEATURES, "fn a_storage_texture_is_read_and_written"),
    (Features::TEXTURE_FORMAT_16BIT_NORM, "TextureFormat::Rgba16Unorm"),
    (Features::FLOAT32_FILTERABLE, "fn a_linear_sampler_filters_texels_and_levels"),
    (Features::BGRA8UNORM_STORAGE, "TextureFormat::Bgra8Unorm"),
    (Features::TEXTURE_ATOMIC, "fn atomics_on_texels"),
    (Features::CLEAR_TEXTURE, "fn textures_are_copied_and_cleared"),
    (Features::ADDRESS_MODE_CLAMP_TO_BORDER, "fn borders_and_repetition"),
    (Features::ADDRESS_MODE_CLAMP_TO_ZERO, "fn borders_and_repetition"),
    (Features::MAPPABLE_PRIMARY_BUFFERS, "fn a_kernel_writes_into_a_mapped_buffer"),
    (Features::TIMESTAMP_QUERY, "fn times_of_passes_grow"),
    (Features::TIMESTAMP_QUERY_INSIDE_ENCODERS, "fn times_of_passes_grow"),
    (Features::TIMESTAMP_QUERY_INSIDE_PASSES, "fn times_of_passes_grow"),
    (Features::PIPELINE_CACHE, "fn a_pipeline_cache_outlives_its_device"),
];

#[test]
fn each_feature_has_a_test() {
    let texts = [
        include_str!("features.rs"),
        include_str!("first.rs"),
        include_str!("textures.rs"),
        include_str!("programs/atomics.rs"),
        include_str!("programs/subgroups.rs"),
        include_str!("programs/types.rs"),
    ]
    .concat();
    let listed = USED_BY.iter().fold(Features::empty(), |all, (feature, _)| all | *feature);
    let claimed = spelter_wgpu::adapter_on(&spelter_wgpu::instance()).features();
    assert_eq!(listed, claimed);
    // The table itself has each name once.
    let missing: Vec<_> = USED_BY.iter().filter(|(_, name)| texts.matches(name).count() == 0).collect();
    assert!(missing.is_empty(), "{missing:?}");
}

#[test]
fn the_adapter_is_found_in_each_way() {
    use spelter_wgpu::ready;
    let instance = spelter_wgpu::instance();
    let all = ready(instance.enumerate_adapters(wgpu::Backends::all()));
    assert_eq!(all.len(), 1);
    let info = all[0].get_info();
    assert!(info.name.starts_with("Spelter (") && info.device_type == wgpu::DeviceType::Cpu, "{info:?}");
    let any = ready(instance.request_adapter(&wgpu::RequestAdapterOptions::default())).unwrap();
    assert_eq!(any.get_info(), info);
    let options = wgpu::RequestAdapterOptions { force_fallback_adapter: true, ..Default::default() };
    assert_eq!(ready(instance.request_adapter(&options)).unwrap().get_info(), info);
    let helped = ready(spelter_wgpu::request_adapter_or_spelter(&instance, &options)).unwrap();
    assert_eq!(helped.get_info(), info);
    let other = spelter_wgpu::Options::new().device_type(wgpu::DeviceType::Other);
    let descriptor = wgpu::InstanceDescriptor::new_without_display_handle();
    let none = wgpu::Instance::new(wgpu::InstanceDescriptor { backends: wgpu::Backends::empty(), ..descriptor });
    let chosen = ready(other.request_adapter_or_spelter(&none, &options)).unwrap();
    assert_eq!(chosen.get_info().device_type, wgpu::DeviceType::Other);
    // A device with wgpu's defaults, as most programs ask for.
    let (device, _) = ready(any.request_device(&wgpu::DeviceDescriptor::default())).unwrap();
    assert_eq!(device.limits().max_bind_groups, 4);
    assert!(spelter_wgpu::driver_device(&device).is_some());
}

#[test]
fn a_smaller_device_refuses_more() {
    let options = spelter_wgpu::Options::new().limits(wgpu::Limits::defaults()).features(Features::empty());
    let gpu = Gpu::of(&options.device_type(wgpu::DeviceType::Other));
    assert_eq!(gpu.device.features(), Features::empty());
    assert_eq!(gpu.device.adapter_info().device_type, wgpu::DeviceType::Other);
    let error = error_of(&gpu.device, || {
        gpu.pipeline("@compute @workgroup_size(512) fn main() {}", &[]);
    });
    assert!(error.contains("512") && error.contains("256"), "{error}");
    let error = error_of(&gpu.device, || {
        gpu.module("enable f16; @compute @workgroup_size(1) fn main() {}");
    });
    assert!(error.contains("f16"), "{error}");
}

#[test]
fn overrides_take_their_values() {
    let gpu = Gpu::shared();
    let source = "override n: u32 = 3; @id(7) override f: f32; override size: u32 = 1;
        @group(0) @binding(0) var<storage, read_write> to: array<f32>;
        @compute @workgroup_size(size) fn main(@builtin(local_invocation_index) i: u32) { to[i] = f32(n) + f; }";
    let run = |constants: &[(&str, f64)]| {
        let to = gpu.words(&[0; 4]);
        let pipeline = gpu.pipeline(source, constants);
        let group = gpu.group(&pipeline, &[to.as_entire_binding()]);
        gpu.dispatch(&pipeline, &group, [1, 1, 1]);
        gpu.read_words(&to).into_iter().map(f32::from_bits).collect::<Vec<_>>()
    };
    assert_eq!(run(&[("7", 0.5)]), [3.5, 0.0, 0.0, 0.0]);
    assert_eq!(run(&[("7", 0.25), ("n", 10.0), ("size", 4.0)]), [10.25; 4]);
    let error = error_of(&gpu.device, || {
        gpu.pipeline(source, &[]);
    });
    assert!(error.contains('f'), "{error}");
}

#[test]
fn immediates_change_between_dispatches() {
    let gpu = Gpu::shared();
    let source = "struct P { at: u32, value: u32 } var<immediate> p: P;
        @group(0) @binding(0) var<storage, read_write> to: array<u32>;
        @compute @workgroup_size(1) fn main() { to[p.at] = p.value; }";
    let to = gpu.words(&[0; 8]);
    let entry = wgpu::BindGroupLayoutEntry {
        binding: 0,
        visibility: wgpu::ShaderStages::COMPUTE,
        ty: wgpu::BindingType::Buffer {
            ty: wgpu::BufferBindingType::Storage { read_only: false },
            has_dynamic_offset: false,
            min_binding_size: None,
        },
        count: None,
    };
    let layout = gpu.layout(&[entry], 8);
    let pipeline = gpu.device.create_compute_pipeline(&wgpu::ComputePipelineDescriptor {
        label: Some("stores"),
        layout: Some(&layout),
        module: &gpu.module(source),
        entry_point: None,
        compilation_options: Default::default(),
        cache: None,
    });
    let group = gpu.group(&pipeline, &[to.as_entire_binding()]);
    let mut encoder = gpu.encoder();
    let mut pass =
        encoder.begin_compute_pass(&wgpu::ComputePassDescriptor { label: Some("all"), ..Default::default() });
    pass.set_pipeline(&pipeline);
    pass.set_bind_group(0, &group, &[]);
    pass.push_debug_group("one by one");
    for at in 0..7u32 {
        pass.set_immediates(0, &bytes(&[at, at * 11]));
        pass.dispatch_workgroups(1, 1, 1);
    }
    pass.set_immediates(4, &bytes(&[1000]));
    pass.dispatch_workgroups(1, 1, 1);
    pass.pop_debug_group();
    drop(pass);
    gpu.queue.submit([encoder.finish()]);
    assert_eq!(gpu.read_words(&to), [0, 11, 22, 33, 44, 55, 1000, 0]);
}

/// A kernel writes the size of the next dispatch; wgpu's own check of it runs between them.
#[test]
fn a_kernel_decides_the_next_dispatch() {
    let gpu = Gpu::shared();
    let size = gpu.words(&[0; 4]);
    let to = gpu.words(&[0; 64]);
    let decide = gpu.pipeline(
        "@group(0) @binding(0) var<storage, read_write> size: array<u32>;
        @compute @workgroup_size(1) fn main() { size[1] = 5u; size[2] = 3u; size[3] = 2u; }",
        &[],
    );
    let count = gpu.pipeline(
        "@group(0) @binding(0) var<storage, read_write> to: array<atomic<u32>>;
        @compute @workgroup_size(2) fn main(@builtin(workgroup_id) w: vec3<u32>) { atomicAdd(&to[w.x], 1u); }",
        &[],
    );
    let first = gpu.group(&decide, &[size.as_entire_binding()]);
    let second = gpu.group(&count, &[to.as_entire_binding()]);
    let mut encoder = gpu.encoder();
    let mut pass = encoder.begin_compute_pass(&wgpu::ComputePassDescriptor::default());
    pass.set_pipeline(&decide);
    pass.set_bind_group(0, &first, &[]);
    pass.dispatch_workgroups(1, 1, 1);
    pass.set_pipeline(&count);
    pass.set_bind_group(0, &second, &[]);
    pass.dispatch_workgroups_indirect(&size, 4);
    drop(pass);
    gpu.queue.submit([encoder.finish()]);
    assert_eq!(gpu.read_words(&to)[..6], [12, 12, 12, 12, 12, 0]);
    // More than the limit runs nothing.
    gpu.queue.write_buffer(&size, 4, &bytes(&[70_000, 1, 1]));
    let mut encoder = gpu.encoder();
    let mut pass = encoder.begin_compute_pass(&wgpu::ComputePassDescriptor::default());
    pass.set_pipeline(&count);
    pass.set_bind_group(0, &second, &[]);
    pass.dispatch_workgroups_indirect(&size, 4);
    drop(pass);
    gpu.queue.submit([encoder.finish()]);
    assert_eq!(gpu.read_words(&to)[0], 12);
}

#[test]
fn dynamic_offsets_and_parts_of_buffers() {
    let gpu = Gpu::shared();
    let source = "@group(0) @binding(0) var<storage, read> src: array<u32>;
        @group(0) @binding(1) var<storage, read_write> to: array<u32>;
        @compute @workgroup_size(1) fn main() { to[arrayLength(&src)] = src[0]; }";
    let buffer = |read_only, has_dynamic_offset| wgpu::BindingType::Buffer {
        ty: wgpu::BufferBindingType::Storage { read_only },
        has_dynamic_offset,
        min_binding_size: None,
    };
    let entry =
        |binding, ty| wgpu::BindGroupLayoutEntry { binding, visibility: wgpu::ShaderStages::COMPUTE, ty, count: None };
    let layout = gpu.device.create_bind_group_layout(&wgpu::BindGroupLayoutDescriptor {
        label: None,
        entries: &[entry(0, buffer(true, true)), entry(1, buffer(false, false))],
    });
    let pipeline_layout = gpu.device.create_pipeline_layout(&wgpu::PipelineLayoutDescriptor {
        label: None,
        // A group that is not there before one that is.
        bind_group_layouts: &[Some(&layout), None],
        immediate_size: 0,
    });
    let pipeline = gpu.device.create_compute_pipeline(&wgpu::ComputePipelineDescriptor {
        label: None,
        layout: Some(&pipeline_layout),
        module: &gpu.module(source),
        entry_point: None,
        compilation_options: Default::default(),
        cache: None,
    });
    let (from, to) = (gpu.words(&(0..256).collect::<Vec<_>>()), gpu.words(&[0; 8]));
    let part = wgpu::BufferBinding { buffer: &from, offset: 32, size: std::num::NonZeroU64::new(16) };
    let group = gpu.device.create_bind_group(&wgpu::BindGroupDescriptor {
        label: None,
        layout: &layout,
        entries: &[
            wgpu::BindGroupEntry { binding: 0, resource: wgpu::BindingResource::Buffer(part) },
            wgpu::BindGroupEntry { binding: 1, resource: to.as_entire_binding() },
        ],
    });
    for (offset, first) in [(0, 8), (256, 72), (960, 248)] {
        let mut encoder = gpu.encoder();
        let mut pass = encoder.begin_compute_pass(&wgpu::ComputePassDescriptor::default());
        pass.set_pipeline(&pipeline);
        pass.set_bind_group(0, &group, &[offset]);
        pass.dispatch_workgroups(1, 1, 1);
        drop(pass);
        gpu.queue.submit([encoder.finish()]);
        assert_eq!(gpu.read_words(&to)[4], first, "{offset}");
    }
}

#[test]
fn a_kernel_writes_into_a_mapped_buffer() {
    let gpu = Gpu::shared();
    let data = gpu.device.create_buffer(&wgpu::BufferDescriptor {
        label: None,
        size: 16,
        usage: wgpu::BufferUsages::STORAGE | wgpu::BufferUsages::MAP_READ,
        mapped_at_creation: true,
    });
    data.get_mapped_range_mut(..).unwrap().copy_from_slice(&bytes(&[1, 2, 3, 4]));
    data.unmap();
    let pipeline = gpu.pipeline(
        "@group(0) @binding(0) var<storage, read_write> to: array<u32>;
        @compute @workgroup_size(4) fn main(@builtin(local_invocation_index) i: u32) { to[i] *= 10u; }",
        &[],
    );
    let group = gpu.group(&pipeline, &[data.as_entire_binding()]);
    gpu.dispatch(&pipeline, &group, [1, 1, 1]);
    assert_eq!(gpu.mapped(&data), bytes(&[10, 20, 30, 40]));
}

#[test]
fn buffers_are_cleared_and_start_as_zeros() {
    let gpu = Gpu::shared();
    for _ in 0..3 {
        let usage = wgpu::BufferUsages::COPY_SRC | wgpu::BufferUsages::COPY_DST;
        let data = gpu.device.create_buffer(&wgpu::BufferDescriptor {
            label: None,
            size: 1 << 20,
            usage,
            mapped_at_creation: false,
        });
        assert!(gpu.read(&data).iter().all(|byte| *byte == 0));
        gpu.queue.write_buffer(&data, 0, &vec![9; 1 << 20]);
        let mut encoder = gpu.encoder();
        encoder.clear_buffer(&data, 4, Some(8));
        gpu.queue.submit([encoder.finish()]);
        let read = gpu.read(&data);
        assert_eq!((read[3], &read[4..12], read[12]), (9, &[0; 8][..], 9));
    }
}

fn entry(binding: u32, ty: wgpu::BindingType, count: u32) -> wgpu::BindGroupLayoutEntry {
    wgpu::BindGroupLayoutEntry {
        binding,
        visibility: wgpu::ShaderStages::COMPUTE,
        ty,
        count: NonZeroU32::new(count).filter(|count| count.get() > 1),
    }
}

/// A pipeline with a layout of these entries, and a group.
fn with_layout(
    gpu: &Gpu,
    source: &str,
    entries: &[wgpu::BindGroupLayoutEntry],
    resources: &[wgpu::BindingResource<'_>],
) -> (wgpu::ComputePipeline, wgpu::BindGroup) {
    let layout = gpu.layout(entries, 0);
    let pipeline = gpu.device.create_compute_pipeline(&wgpu::ComputePipelineDescriptor {
        label: None,
        layout: Some(&layout),
        module: &gpu.module(source),
        entry_point: None,
        compilation_options: Default::default(),
        cache: None,
    });
    let group = gpu.group(&pipeline, resources);
    (pipeline, group)
}

/// Invocations pick different elements; the last element of the array is not bound, and not used.
#[test]
fn arrays_of_buffers() {
    let gpu = Gpu::shared();
    let source = "enable wgpu_binding_array; struct B { x: u32 }
        @group(0) @binding(0) var<storage, read> all: binding_array<B, 4>;
        @group(0) @binding(1) var<storage, read_write> to: array<u32>;
        @compute @workgroup_size(3) fn main(@builtin(local_invocation_index) i: u32) { to[i] = all[2u - i].x; }";
    let storage = |read_only| wgpu::BindingType::Buffer {
        ty: wgpu::BufferBindingType::Storage { read_only },
        has_dynamic_offset: false,
        min_binding_size: None,
    };
    let buffers = [10, 20, 30].map(|x| gpu.words(&[x]));
    let bindings = buffers.each_ref().map(|buffer| buffer.as_entire_buffer_binding());
    let to = gpu.words(&[0; 3]);
    let resources = [wgpu::BindingResource::BufferArray(&bindings), to.as_entire_binding()];
    let (pipeline, group) =
        with_layout(&gpu, source, &[entry(0, storage(true), 4), entry(1, storage(false), 1)], &resources);
    gpu.dispatch(&pipeline, &group, [1, 1, 1]);
    assert_eq!(gpu.read_words(&to), [30, 20, 10]);
}

/// Sampled and storage textures in arrays, with an index that differs between invocations.
#[test]
fn arrays_of_textures() {
    let gpu = Gpu::shared();
    let source = "enable wgpu_binding_array;
        @group(0) @binding(0) var src: binding_array<texture_2d<u32>, 2>;
        @group(0) @binding(1) var to: binding_array<texture_storage_2d<r32uint, write>, 2>;
        @compute @workgroup_size(2) fn main(@builtin(local_invocation_index) i: u32) {
            textureStore(to[1u - i], vec2(0), textureLoad(src[i], vec2(0), 0) * 3u);
        }";
    let image = |value: Option<u32>| {
        let image = gpu.device.create_texture(&wgpu::TextureDescriptor {
            label: None,
            size: wgpu::Extent3d { width: 1, height: 1, depth_or_array_layers: 1 },
            mip_level_count: 1,
            sample_count: 1,
            dimension: wgpu::TextureDimension::D2,
            format: wgpu::TextureFormat::R32Uint,
            usage: wgpu::TextureUsages::TEXTURE_BINDING
                | wgpu::TextureUsages::STORAGE_BINDING
                | wgpu::TextureUsages::COPY_DST
                | wgpu::TextureUsages::COPY_SRC,
            view_formats: &[],
        });
        if let Some(value) = value {
            let layout = wgpu::TexelCopyBufferLayout { offset: 0, bytes_per_row: Some(4), rows_per_image: None };
            gpu.queue.write_texture(image.as_image_copy(), &value.to_le_bytes(), layout, image.size());
        }
        image
    };
    let (from, to) = ([image(Some(5)), image(Some(7))], [image(None), image(None)]);
    let views = |images: &[wgpu::Texture; 2]| images.each_ref().map(|image| image.create_view(&Default::default()));
    let (from_views, to_views) = (views(&from), views(&to));
    let sampled = wgpu::BindingType::Texture {
        sample_type: wgpu::TextureSampleType::Uint,
        view_dimension: wgpu::TextureViewDimension::D2,
        multisampled: false,
    };
    let storage = wgpu::BindingType::StorageTexture {
        access: wgpu::StorageTextureAccess::WriteOnly,
        format: wgpu::TextureFormat::R32Uint,
        view_dimension: wgpu::TextureViewDimension::D2,
    };
    let (from_refs, to_refs) = (from_views.each_ref(), to_views.each_ref());
    let resources =
        [wgpu::BindingResource::TextureViewArray(&from_refs), wgpu::BindingResource::TextureViewArray(&to_refs)];
    let (pipeline, group) = with_layout(&gpu, source, &[entry(0, sampled, 2), entry(1, storage, 2)], &resources);
    gpu.dispatch(&pipeline, &group, [1, 1, 1]);
    let read = |image: &wgpu::Texture| {
        let to = gpu.words(&[0; 64]);
        let mut encoder = gpu.encoder();
        let layout = wgpu::TexelCopyBufferLayout { offset: 0, bytes_per_row: None, rows_per_image: None };
        let info = wgpu::TexelCopyBufferInfo { buffer: &to, layout };
        encoder.copy_texture_to_buffer(image.as_image_copy(), info, image.size());
        gpu.queue.submit([encoder.finish()]);
        gpu.read_words(&to)[0]
    };
    assert_eq!(to.each_ref().map(read), [21, 15]);
}

#[test]
fn a_subgroup_meets() {
    let source = "
        @group(0) @binding(0) var<storage, read_write> to: array<u32>;
        var<workgroup> s: array<u32, 64>;
        @compute @workgroup_size(64) fn main(@builtin(local_invocation_index) i: u32) {
            s[i] = i * i; subgroupBarrier(); to[i] = s[i ^ 15u];
        }";
    let results = Gpu::shared().run(source, &[&[0; 64]], [1, 1, 1]);
    assert_eq!(results[0], (0..64).map(|i: u32| (i ^ 15).pow(2)).collect::<Vec<_>>());
}

#[test]
fn coherent_and_volatile_buffers() {
    let source = "@group(0) @binding(0) @coherent @volatile var<storage, read_write> to: array<u32>;
        @compute @workgroup_size(64) fn main(@builtin(local_invocation_index) i: u32) { to[i] = to[i] + i; }";
    let results = Gpu::shared().run(source, &[&[5; 64]], [1, 1, 1]);
    assert_eq!(results[0], (5..69).collect::<Vec<u32>>());
}

/// `OpSpecConstant`s, a storage buffer, and one store: assembled by hand.
#[test]
fn words_are_passed_through() {
    let gpu = Gpu::shared();
    let module = spelter_shaders::front::spvasm::assemble(
        "OpCapability Shader
        OpMemoryModel Logical GLSL450
        OpEntryPoint GLCompute %main \"main\"
        OpExecutionMode %main LocalSize 1 1 1
        OpDecorate %n SpecId 3
        OpDecorate %block Block
        OpMemberDecorate %block 0 Offset 0
        OpDecorate %to DescriptorSet 0
        OpDecorate %to Binding 0
        %void = OpTypeVoid
        %fn = OpTypeFunction %void
        %uint = OpTypeInt 32 0
        %n = OpSpecConstant %uint 5
        %zero = OpConstant %uint 0
        %block = OpTypeStruct %uint
        %pblock = OpTypePointer StorageBuffer %block
        %puint = OpTypePointer StorageBuffer %uint
        %to = OpVariable %pblock StorageBuffer
        %main = OpFunction %void None %fn
        %entry = OpLabel
        %at = OpAccessChain %puint %to %zero
        OpStore %at %n
        OpReturn
        OpFunctionEnd",
    )
    .unwrap();
    let run = |constants: &[(&str, f64)]| {
        // SAFETY: the words follow SPIR-V's rules.
        let module = unsafe {
            gpu.device.create_shader_module_passthrough(wgpu::ShaderModuleDescriptorPassthrough {
                label: None,
                entry_points: vec![wgpu::PassthroughShaderEntryPoint {
                    name: "main".into(),
                    workgroup_size: (1, 1, 1),
                }]
                .into(),
                spirv: Some(module.as_slice().into()),
                ..Default::default()
            })
        };
        let storage = wgpu::BindingType::Buffer {
            ty: wgpu::BufferBindingType::Storage { read_only: false },
            has_dynamic_offset: false,
            min_binding_size: None,
        };
        let layout = gpu.layout(&[entry(0, storage, 1)], 0);
        let pipeline = gpu.device.create_compute_pipeline(&wgpu::ComputePipelineDescriptor {
            label: None,
            layout: Some(&layout),
            module: &module,
            entry_point: Some("main"),
            compilation_options: wgpu::PipelineCompilationOptions { constants, ..Default::default() },
            cache: None,
        });
        let to = gpu.words(&[0]);
        let group = gpu.group(&pipeline, &[to.as_entire_binding()]);
        gpu.dispatch(&pipeline, &group, [1, 1, 1]);
        gpu.read_words(&to)[0]
    };
    assert_eq!((run(&[]), run(&[("3", 77.0)])), (5, 77));
}

/// The data of a cache make a new device's pipelines without compiling them.
#[test]
fn a_pipeline_cache_outlives_its_device() {
    let source = "@group(0) @binding(0) var<storage, read_write> to: array<u32>;
        @compute @workgroup_size(64) fn main(@builtin(local_invocation_index) i: u32) { to[i] = i * 123u; }";
    let run = |data: Option<&[u8]>| {
        let gpu = Gpu::of(&spelter_wgpu::Options::new());
        let compiled = |gpu: &Gpu| spelter_wgpu::driver_device(&gpu.device).unwrap().pipeline_cache_stats();
        // SAFETY: the data are from `get_data`.
        let cache = unsafe {
            let descriptor = wgpu::PipelineCacheDescriptor { label: None, data, fallback: true };
            gpu.device.create_pipeline_cache(&descriptor)
        };
        let before = compiled(&gpu);
        let pipeline = gpu.device.create_compute_pipeline(&wgpu::ComputePipelineDescriptor {
            label: None,
            layout: None,
            module: &gpu.module(source),
            entry_point: None,
            compilation_options: Default::default(),
            cache: Some(&cache),
        });
        let to = gpu.words(&[0; 64]);
        let group = gpu.group(&pipeline, &[to.as_entire_binding()]);
        gpu.dispatch(&pipeline, &group, [1, 1, 1]);
        assert_eq!(gpu.read_words(&to), (0..64).map(|i| i * 123).collect::<Vec<_>>());
        (cache.get_data(), before, compiled(&gpu))
    };
    let (data, ..) = run(None);
    let data = data.unwrap();
    let (again, before, after) = run(Some(&data));
    assert_eq!((again.unwrap(), after.stored), (data.clone(), before.stored + 1));
    // Altered data count as none.
    let mut altered = data.clone();
    *altered.last_mut().unwrap() ^= 1;
    run(Some(&altered));
}

/// Checked mode, as an option of the driver: two invocations store into one element.
#[test]
fn checked_mode_finds_races() {
    let gpu = Gpu::of(&spelter_wgpu::Options::new().driver(|options| options.check = Some(Default::default())));
    let run = |index: &str| {
        let source = format!(
            "@group(0) @binding(0) var<storage, read_write> to: array<u32>;
            @compute @workgroup_size(32) fn main(@builtin(local_invocation_index) i: u32) {{ to[{index}] = i; }}"
        );
        gpu.run(&source, &[&[0; 32]], [1, 1, 1]);
        spelter_wgpu::driver_device(&gpu.device).unwrap().take_findings().len()
    };
    assert_eq!(run("i"), 0);
    assert!(run("i / 2u") > 0);
}
