//! Capabilities of the adapter: features, limits, downlevel flags, and its description.

use spelter_driver::Limits as DeviceLimits;
use wgpu_hal::{Alignments, Capabilities};
use wgpu_types::{
    AdapterInfo, Backend, BufferSize, DeviceType, DownlevelCapabilities, DownlevelFlags, DownlevelLimits, Features,
    Limits, ShaderModel,
};

/// The features. Each is used by a test (`tests/`).
pub(crate) fn features() -> Features {
    let shaders = Features::SHADER_F16
        | Features::SHADER_F64
        | Features::SHADER_I16
        | Features::SHADER_INT64
        | Features::SHADER_INT64_ATOMIC_ALL_OPS
        | Features::SHADER_INT64_ATOMIC_MIN_MAX
        | Features::SHADER_FLOAT32_ATOMIC
        | Features::SUBGROUP
        | Features::SUBGROUP_BARRIER
        | Features::MEMORY_DECORATION_COHERENT
        | Features::MEMORY_DECORATION_VOLATILE
        | Features::PASSTHROUGH_SHADERS;
    let bindings = Features::IMMEDIATES
        | Features::BUFFER_BINDING_ARRAY
        | Features::TEXTURE_BINDING_ARRAY
        | Features::STORAGE_RESOURCE_BINDING_ARRAY
        | Features::SAMPLED_TEXTURE_AND_STORAGE_BUFFER_ARRAY_NON_UNIFORM_INDEXING
        | Features::STORAGE_TEXTURE_ARRAY_NON_UNIFORM_INDEXING
        | Features::PARTIALLY_BOUND_BINDING_ARRAY;
    let textures = Features::TEXTURE_ADAPTER_SPECIFIC_FORMAT_FEATURES
        | Features::TEXTURE_FORMAT_16BIT_NORM
        | Features::FLOAT32_FILTERABLE
        | Features::BGRA8UNORM_STORAGE
        | Features::TEXTURE_ATOMIC
        | Features::CLEAR_TEXTURE
        | Features::ADDRESS_MODE_CLAMP_TO_BORDER
        | Features::ADDRESS_MODE_CLAMP_TO_ZERO;
    let commands = Features::MAPPABLE_PRIMARY_BUFFERS
        | Features::TIMESTAMP_QUERY
        | Features::TIMESTAMP_QUERY_INSIDE_ENCODERS
        | Features::TIMESTAMP_QUERY_INSIDE_PASSES
        | Features::PIPELINE_CACHE;
    shaders | bindings | textures | commands
}

/// What is not claimed draws. Above all `WEBGPU_TEXTURE_FORMAT_SUPPORT`: with it, wgpu would take WebGPU's table of
/// formats for the adapter's, and accept attachments; without it wgpu asks for each format, and refuses them by its own
/// messages.
fn downlevel_flags() -> DownlevelFlags {
    let compute = DownlevelFlags::COMPUTE_SHADERS
        | DownlevelFlags::INDIRECT_EXECUTION
        | DownlevelFlags::NON_POWER_OF_TWO_MIPMAPPED_TEXTURES
        | DownlevelFlags::CUBE_ARRAY_TEXTURES
        | DownlevelFlags::COMPARISON_SAMPLERS
        | DownlevelFlags::BUFFER_BINDINGS_NOT_16_BYTE_ALIGNED
        | DownlevelFlags::UNRESTRICTED_INDEX_BUFFER
        | DownlevelFlags::VIEW_FORMATS
        | DownlevelFlags::DEPTH_TEXTURE_AND_BUFFER_COPIES
        | DownlevelFlags::NONBLOCKING_QUERY_RESOLVE
        | DownlevelFlags::SHADER_F16_IN_F32
        | DownlevelFlags::MSL2_1
        | DownlevelFlags::UNRESTRICTED_EXTERNAL_TEXTURE_COPIES;
    // Without these, wgpu refuses layouts of bind groups whose visibility is `ShaderStages::all()`.
    compute
        | DownlevelFlags::VERTEX_STORAGE
        | DownlevelFlags::FRAGMENT_STORAGE
        | DownlevelFlags::FRAGMENT_WRITABLE_STORAGE
}

/// The limits: those of compute are the device's, those of drawing are WebGPU's defaults, since devices that ask for
/// `Limits::default()` ask for them, too.
pub(crate) fn limits() -> Limits {
    let device = DeviceLimits::of_devices();
    let narrow = |limit: u64| u32::try_from(limit).unwrap_or(u32::MAX);
    let [x, y, z] = device.max_compute_work_group_size;
    let invocations = device.max_compute_work_group_invocations;
    let max_bindings = device.max_per_set_descriptors;
    // The sum of the limits of one stage is at most half of the bindings of a group (WebGPU, "adapter capability
    // guarantees"); five kinds share it.
    let of_stage = |limit: u32| limit.min(max_bindings / 2 / 5);
    let uniform_buffers = of_stage(device.max_descriptor_set_uniform_buffers);
    let storage_buffers = of_stage(device.max_descriptor_set_storage_buffers);
    // wgpu checks indirect dispatches with offsets of 32 bits, and clamps only its own adapters to them.
    let max_buffer = device.max_buffer_size.min(u32::MAX.into());
    let max_storage = u64::from(device.max_storage_buffer_range).min(max_buffer) & !3;
    Limits {
        max_texture_dimension_1d: device.max_image_dimension_1d,
        max_texture_dimension_2d: device.max_image_dimension_2d,
        max_texture_dimension_3d: device.max_image_dimension_3d,
        max_texture_array_layers: device.max_image_array_layers,
        max_bind_groups: device.max_bound_descriptor_sets.min(wgpu_hal::MAX_BIND_GROUPS as u32),
        max_bind_groups_plus_vertex_buffers: (wgpu_hal::MAX_BIND_GROUPS + wgpu_hal::MAX_VERTEX_BUFFERS) as u32,
        max_bindings_per_bind_group: max_bindings,
        max_dynamic_uniform_buffers_per_pipeline_layout: device.max_descriptor_set_uniform_buffers_dynamic,
        max_dynamic_storage_buffers_per_pipeline_layout: device.max_descriptor_set_storage_buffers_dynamic,
        max_sampled_textures_per_shader_stage: of_stage(device.max_descriptor_set_sampled_images),
        max_samplers_per_shader_stage: of_stage(device.max_descriptor_set_samplers),
        max_storage_buffers_per_shader_stage: storage_buffers,
        max_storage_textures_per_shader_stage: of_stage(device.max_descriptor_set_storage_images),
        max_uniform_buffers_per_shader_stage: uniform_buffers,
        max_binding_array_elements_per_shader_stage: max_bindings / 2,
        max_binding_array_sampler_elements_per_shader_stage: max_bindings / 2,
        max_buffers_and_acceleration_structures_per_shader_stage: uniform_buffers + storage_buffers,
        max_uniform_buffer_binding_size: u64::from(device.max_uniform_buffer_range).min(max_buffer),
        max_storage_buffer_binding_size: max_storage,
        max_buffer_size: max_buffer,
        min_uniform_buffer_offset_alignment: narrow(device.min_uniform_buffer_offset_alignment).max(32),
        min_storage_buffer_offset_alignment: narrow(device.min_storage_buffer_offset_alignment).max(32),
        max_compute_workgroup_storage_size: device.max_compute_shared_memory_size,
        max_compute_invocations_per_workgroup: invocations,
        max_compute_workgroup_size_x: x.min(invocations),
        max_compute_workgroup_size_y: y.min(invocations),
        max_compute_workgroup_size_z: z.min(invocations),
        max_compute_workgroups_per_dimension: device.max_compute_work_group_count.into_iter().min().unwrap_or(0),
        max_immediate_size: device.max_push_constants_size.min(crate::binding::IMMEDIATES.size),
        ..Limits::defaults()
    }
}

/// All capabilities, with these limits.
pub(crate) fn capabilities(limits: Limits) -> Capabilities {
    Capabilities {
        limits,
        alignments: Alignments {
            buffer_copy_offset: BufferSize::MIN,
            buffer_copy_pitch: BufferSize::MIN,
            // Bounds are exact.
            uniform_bounds_check_alignment: BufferSize::MIN,
            raw_tlas_instance_size: 0,
            ray_tracing_scratch_buffer_alignment: 1,
            ray_tracing_pipeline_group_data_size: 1,
            ray_tracing_pipeline_group_data_alignment: 1,
            ray_tracing_pipeline_data_offset_alignment: 1,
        },
        downlevel: DownlevelCapabilities {
            flags: downlevel_flags(),
            limits: DownlevelLimits {},
            shader_model: ShaderModel::Sm5,
        },
        cooperative_matrix_properties: Vec::new(),
    }
}

/// The description. The device has no ids of vendor and device: those of another driver would enable its workarounds.
pub(crate) fn info(name: &str, device_type: DeviceType, backend: Backend) -> AdapterInfo {
    let subgroup = DeviceLimits::of_devices().subgroup_size;
    AdapterInfo {
        name: name.to_owned(),
        driver: "spelter".to_owned(),
        driver_info: env!("CARGO_PKG_VERSION").to_owned(),
        subgroup_min_size: subgroup,
        subgroup_max_size: subgroup,
        transient_saves_memory: Some(false),
        ..AdapterInfo::new(device_type, backend)
    }
}
