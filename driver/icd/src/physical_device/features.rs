//! Which features there are, each once. A feature that is advertised here has a test: `tests/tests/vulkan/features.rs`
//! names it, and fails where it is not told of one.

use ash::vk::{self, TRUE};

use crate::c::version_1_4::PhysicalDeviceVulkan14Features;
use crate::options::Options;

/// Features by the version or the extension that they came with.
#[derive(Clone, Copy)]
pub(crate) struct Supported {
    pub(crate) core: vk::PhysicalDeviceFeatures,
    pub(crate) v11: vk::PhysicalDeviceVulkan11Features<'static>,
    pub(crate) v12: vk::PhysicalDeviceVulkan12Features<'static>,
    pub(crate) v13: vk::PhysicalDeviceVulkan13Features<'static>,
    pub(crate) v14: PhysicalDeviceVulkan14Features<'static>,
    pub(crate) atomic_float: vk::PhysicalDeviceShaderAtomicFloatFeaturesEXT<'static>,
    pub(crate) atomic_float2: vk::PhysicalDeviceShaderAtomicFloat2FeaturesEXT<'static>,
    pub(crate) robustness2: vk::PhysicalDeviceRobustness2FeaturesEXT<'static>,
    pub(crate) explicit_layout: vk::PhysicalDeviceWorkgroupMemoryExplicitLayoutFeaturesKHR<'static>,
    pub(crate) conditional: vk::PhysicalDeviceConditionalRenderingFeaturesEXT<'static>,
    pub(crate) executables: vk::PhysicalDevicePipelineExecutablePropertiesFeaturesKHR<'static>,
    pub(crate) clock: vk::PhysicalDeviceShaderClockFeaturesKHR<'static>,
    pub(crate) reconvergence: vk::PhysicalDeviceShaderMaximalReconvergenceFeaturesKHR<'static>,
    pub(crate) uniform_flow: vk::PhysicalDeviceShaderSubgroupUniformControlFlowFeaturesKHR<'static>,
    pub(crate) alignment: vk::PhysicalDeviceTexelBufferAlignmentFeaturesEXT<'static>,
}

/// What the device can do.
pub(crate) fn supported(options: &Options) -> Supported {
    Supported {
        core: if options.graphics { graphics(core()) } else { core() },
        v11: v11(),
        v12: v12(),
        v13: v13().dynamic_rendering(options.graphics),
        v14: v14(),
        atomic_float: atomic_float(),
        atomic_float2: atomic_float2(),
        robustness2: robustness2(),
        explicit_layout: explicit_layout(),
        conditional: vk::PhysicalDeviceConditionalRenderingFeaturesEXT::default().conditional_rendering(true),
        executables: vk::PhysicalDevicePipelineExecutablePropertiesFeaturesKHR::default()
            .pipeline_executable_info(true),
        clock: vk::PhysicalDeviceShaderClockFeaturesKHR::default()
            .shader_subgroup_clock(true)
            .shader_device_clock(true),
        reconvergence: vk::PhysicalDeviceShaderMaximalReconvergenceFeaturesKHR::default()
            .shader_maximal_reconvergence(true),
        uniform_flow: vk::PhysicalDeviceShaderSubgroupUniformControlFlowFeaturesKHR::default()
            .shader_subgroup_uniform_control_flow(true),
        alignment: vk::PhysicalDeviceTexelBufferAlignmentFeaturesEXT::default().texel_buffer_alignment(true),
    }
}

fn core() -> vk::PhysicalDeviceFeatures {
    vk::PhysicalDeviceFeatures {
        robust_buffer_access: TRUE,
        image_cube_array: TRUE,
        shader_image_gather_extended: TRUE,
        shader_storage_image_extended_formats: TRUE,
        shader_storage_image_read_without_format: TRUE,
        shader_storage_image_write_without_format: TRUE,
        shader_uniform_buffer_array_dynamic_indexing: TRUE,
        shader_sampled_image_array_dynamic_indexing: TRUE,
        shader_storage_buffer_array_dynamic_indexing: TRUE,
        shader_storage_image_array_dynamic_indexing: TRUE,
        shader_float64: TRUE,
        shader_int64: TRUE,
        shader_int16: TRUE,
        shader_resource_min_lod: TRUE,
        ..Default::default()
    }
}

/// What programs ask for before they compute, on devices that claim graphics: no shader stage that there is can tell.
fn graphics(core: vk::PhysicalDeviceFeatures) -> vk::PhysicalDeviceFeatures {
    vk::PhysicalDeviceFeatures {
        full_draw_index_uint32: TRUE,
        independent_blend: TRUE,
        sample_rate_shading: TRUE,
        depth_bias_clamp: TRUE,
        fragment_stores_and_atomics: TRUE,
        texture_compression_bc: TRUE,
        ..core
    }
}

fn v11() -> vk::PhysicalDeviceVulkan11Features<'static> {
    vk::PhysicalDeviceVulkan11Features::default()
        .storage_buffer16_bit_access(true)
        .uniform_and_storage_buffer16_bit_access(true)
        .storage_push_constant16(true)
        .variable_pointers(true)
        .variable_pointers_storage_buffer(true)
}

fn v12() -> vk::PhysicalDeviceVulkan12Features<'static> {
    vk::PhysicalDeviceVulkan12Features::default()
        .sampler_mirror_clamp_to_edge(true)
        .storage_buffer8_bit_access(true)
        .uniform_and_storage_buffer8_bit_access(true)
        .storage_push_constant8(true)
        .shader_buffer_int64_atomics(true)
        .shader_shared_int64_atomics(true)
        .shader_float16(true)
        .shader_int8(true)
        .descriptor_indexing(true)
        .shader_uniform_texel_buffer_array_dynamic_indexing(true)
        .shader_storage_texel_buffer_array_dynamic_indexing(true)
        .shader_uniform_buffer_array_non_uniform_indexing(true)
        .shader_sampled_image_array_non_uniform_indexing(true)
        .shader_storage_buffer_array_non_uniform_indexing(true)
        .shader_storage_image_array_non_uniform_indexing(true)
        .shader_uniform_texel_buffer_array_non_uniform_indexing(true)
        .shader_storage_texel_buffer_array_non_uniform_indexing(true)
        .descriptor_binding_variable_descriptor_count(true)
        .runtime_descriptor_array(true)
        .buffer_device_address(true)
        .descriptor_binding_uniform_buffer_update_after_bind(true)
        .descriptor_binding_sampled_image_update_after_bind(true)
        .descriptor_binding_storage_image_update_after_bind(true)
        .descriptor_binding_storage_buffer_update_after_bind(true)
        .descriptor_binding_uniform_texel_buffer_update_after_bind(true)
        .descriptor_binding_storage_texel_buffer_update_after_bind(true)
        .descriptor_binding_update_unused_while_pending(true)
        .descriptor_binding_partially_bound(true)
        .scalar_block_layout(true)
        .uniform_buffer_standard_layout(true)
        .separate_depth_stencil_layouts(true)
        .shader_subgroup_extended_types(true)
        .subgroup_broadcast_dynamic_id(true)
        .host_query_reset(true)
        .timeline_semaphore(true)
        .vulkan_memory_model(true)
        .vulkan_memory_model_device_scope(true)
}

/// How fragment shaders end is no matter here, but Vulkan asks every implementation of compute for the two: modules
/// that say so, for entry points that nobody runs, are taken.
fn v13() -> vk::PhysicalDeviceVulkan13Features<'static> {
    vk::PhysicalDeviceVulkan13Features::default()
        .robust_image_access(true)
        .inline_uniform_block(true)
        .descriptor_binding_inline_uniform_block_update_after_bind(true)
        .pipeline_creation_cache_control(true)
        .private_data(true)
        .shader_demote_to_helper_invocation(true)
        .shader_terminate_invocation(true)
        .subgroup_size_control(true)
        .compute_full_subgroups(true)
        .synchronization2(true)
        .shader_zero_initialize_workgroup_memory(true)
        .shader_integer_dot_product(true)
        .maintenance4(true)
}

/// The version is 1.3: these come with their extensions.
fn v14() -> PhysicalDeviceVulkan14Features<'static> {
    PhysicalDeviceVulkan14Features {
        global_priority_query: TRUE,
        shader_subgroup_rotate: TRUE,
        shader_subgroup_rotate_clustered: TRUE,
        shader_expect_assume: TRUE,
        maintenance5: TRUE,
        maintenance6: TRUE,
        pipeline_robustness: TRUE,
        host_image_copy: TRUE,
        push_descriptor: TRUE,
        ..PhysicalDeviceVulkan14Features::NONE
    }
}

fn atomic_float() -> vk::PhysicalDeviceShaderAtomicFloatFeaturesEXT<'static> {
    vk::PhysicalDeviceShaderAtomicFloatFeaturesEXT::default()
        .shader_buffer_float32_atomics(true)
        .shader_buffer_float32_atomic_add(true)
        .shader_buffer_float64_atomics(true)
        .shader_buffer_float64_atomic_add(true)
        .shader_shared_float32_atomics(true)
        .shader_shared_float32_atomic_add(true)
        .shader_shared_float64_atomics(true)
        .shader_shared_float64_atomic_add(true)
        .shader_image_float32_atomics(true)
        .shader_image_float32_atomic_add(true)
}

fn atomic_float2() -> vk::PhysicalDeviceShaderAtomicFloat2FeaturesEXT<'static> {
    vk::PhysicalDeviceShaderAtomicFloat2FeaturesEXT::default()
        .shader_buffer_float16_atomics(true)
        .shader_buffer_float16_atomic_add(true)
        .shader_buffer_float16_atomic_min_max(true)
        .shader_shared_float16_atomics(true)
        .shader_shared_float16_atomic_add(true)
        .shader_shared_float16_atomic_min_max(true)
        .shader_buffer_float32_atomic_min_max(true)
        .shader_buffer_float64_atomic_min_max(true)
        .shader_shared_float32_atomic_min_max(true)
        .shader_shared_float64_atomic_min_max(true)
        .shader_image_float32_atomic_min_max(true)
}

fn robustness2() -> vk::PhysicalDeviceRobustness2FeaturesEXT<'static> {
    vk::PhysicalDeviceRobustness2FeaturesEXT::default()
        .robust_buffer_access2(true)
        .robust_image_access2(true)
        .null_descriptor(true)
}

fn explicit_layout() -> vk::PhysicalDeviceWorkgroupMemoryExplicitLayoutFeaturesKHR<'static> {
    vk::PhysicalDeviceWorkgroupMemoryExplicitLayoutFeaturesKHR::default()
        .workgroup_memory_explicit_layout(true)
        .workgroup_memory_explicit_layout_scalar_block_layout(true)
        .workgroup_memory_explicit_layout8_bit_access(true)
        .workgroup_memory_explicit_layout16_bit_access(true)
}
