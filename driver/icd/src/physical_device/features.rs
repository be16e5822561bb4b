//! The table of features: every feature structure with the value of each field, one line a feature.
//!
//! A feature that is supported has a test: `tests/tests/vulkan/features.rs` names it, and fails if there is none.

use ash::vk;

use super::structures::features;
use crate::c::version_1_4::PhysicalDeviceVulkan14Features;
use crate::c::{In, OutChain};
use crate::options::Options;

// Features of graphics that programs require before they compute are claimed with `options.graphics`: no compute shader
// can observe them.
features! {
    /// Features by the version or the extension that they came with.
    struct Supported(options: &Options) in vk::PhysicalDeviceFeatures2<'_>;
    core: vk::PhysicalDeviceFeatures {
        robust_buffer_access: true,
        full_draw_index_uint32: options.graphics,
        image_cube_array: true,
        independent_blend: options.graphics,
        geometry_shader: false,
        tessellation_shader: false,
        sample_rate_shading: options.graphics,
        dual_src_blend: false,
        logic_op: false,
        multi_draw_indirect: false,
        draw_indirect_first_instance: false,
        depth_clamp: false,
        depth_bias_clamp: options.graphics,
        fill_mode_non_solid: false,
        depth_bounds: false,
        wide_lines: false,
        large_points: false,
        alpha_to_one: false,
        multi_viewport: false,
        sampler_anisotropy: false,
        texture_compression_etc2: false,
        texture_compression_astc_ldr: false,
        texture_compression_bc: false,
        occlusion_query_precise: false,
        pipeline_statistics_query: false,
        vertex_pipeline_stores_and_atomics: false,
        fragment_stores_and_atomics: options.graphics,
        shader_tessellation_and_geometry_point_size: false,
        shader_image_gather_extended: true,
        shader_storage_image_extended_formats: true,
        shader_storage_image_multisample: false,
        shader_storage_image_read_without_format: true,
        shader_storage_image_write_without_format: true,
        shader_uniform_buffer_array_dynamic_indexing: true,
        shader_sampled_image_array_dynamic_indexing: true,
        shader_storage_buffer_array_dynamic_indexing: true,
        shader_storage_image_array_dynamic_indexing: true,
        shader_clip_distance: false,
        shader_cull_distance: false,
        shader_float64: true,
        shader_int64: true,
        shader_int16: true,
        shader_resource_residency: false,
        shader_resource_min_lod: true,
        sparse_binding: false,
        sparse_residency_buffer: false,
        sparse_residency_image2_d: false,
        sparse_residency_image3_d: false,
        sparse_residency2_samples: false,
        sparse_residency4_samples: false,
        sparse_residency8_samples: false,
        sparse_residency16_samples: false,
        sparse_residency_aliased: false,
        variable_multisample_rate: false,
        inherited_queries: false,
    }
    v11: vk::PhysicalDeviceVulkan11Features<'static> {
        vk::PhysicalDevice16BitStorageFeatures<'_> {
            storage_buffer16_bit_access: true,
            uniform_and_storage_buffer16_bit_access: true,
            storage_push_constant16: true,
            storage_input_output16: false,
        }
        vk::PhysicalDeviceMultiviewFeatures<'_> {
            multiview: false,
            multiview_geometry_shader: false,
            multiview_tessellation_shader: false,
        }
        vk::PhysicalDeviceVariablePointersFeatures<'_> {
            variable_pointers_storage_buffer: true,
            variable_pointers: true,
        }
        vk::PhysicalDeviceProtectedMemoryFeatures<'_> {
            protected_memory: false,
        }
        vk::PhysicalDeviceSamplerYcbcrConversionFeatures<'_> {
            sampler_ycbcr_conversion: false,
        }
        vk::PhysicalDeviceShaderDrawParametersFeatures<'_> {
            shader_draw_parameters: false,
        }
    }
    v12: vk::PhysicalDeviceVulkan12Features<'static> {
        {
            sampler_mirror_clamp_to_edge: true,
            draw_indirect_count: false,
        }
        vk::PhysicalDevice8BitStorageFeatures<'_> {
            storage_buffer8_bit_access: true,
            uniform_and_storage_buffer8_bit_access: true,
            storage_push_constant8: true,
        }
        vk::PhysicalDeviceShaderAtomicInt64Features<'_> {
            shader_buffer_int64_atomics: true,
            shader_shared_int64_atomics: true,
        }
        vk::PhysicalDeviceShaderFloat16Int8Features<'_> {
            shader_float16: true,
            shader_int8: true,
        }
        {
            descriptor_indexing: true,
        }
        vk::PhysicalDeviceDescriptorIndexingFeatures<'_> {
            shader_input_attachment_array_dynamic_indexing: false,
            shader_uniform_texel_buffer_array_dynamic_indexing: true,
            shader_storage_texel_buffer_array_dynamic_indexing: true,
            shader_uniform_buffer_array_non_uniform_indexing: true,
            shader_sampled_image_array_non_uniform_indexing: true,
            shader_storage_buffer_array_non_uniform_indexing: true,
            shader_storage_image_array_non_uniform_indexing: true,
            shader_input_attachment_array_non_uniform_indexing: false,
            shader_uniform_texel_buffer_array_non_uniform_indexing: true,
            shader_storage_texel_buffer_array_non_uniform_indexing: true,
            descriptor_binding_uniform_buffer_update_after_bind: true,
            descriptor_binding_sampled_image_update_after_bind: true,
            descriptor_binding_storage_image_update_after_bind: true,
            descriptor_binding_storage_buffer_update_after_bind: true,
            descriptor_binding_uniform_texel_buffer_update_after_bind: true,
            descriptor_binding_storage_texel_buffer_update_after_bind: true,
            descriptor_binding_update_unused_while_pending: true,
            descriptor_binding_partially_bound: true,
            descriptor_binding_variable_descriptor_count: true,
            runtime_descriptor_array: true,
        }
        {
            sampler_filter_minmax: false,
        }
        vk::PhysicalDeviceScalarBlockLayoutFeatures<'_> {
            scalar_block_layout: true,
        }
        vk::PhysicalDeviceImagelessFramebufferFeatures<'_> {
            imageless_framebuffer: false,
        }
        vk::PhysicalDeviceUniformBufferStandardLayoutFeatures<'_> {
            uniform_buffer_standard_layout: true,
        }
        vk::PhysicalDeviceShaderSubgroupExtendedTypesFeatures<'_> {
            shader_subgroup_extended_types: true,
        }
        vk::PhysicalDeviceSeparateDepthStencilLayoutsFeatures<'_> {
            separate_depth_stencil_layouts: true,
        }
        vk::PhysicalDeviceHostQueryResetFeatures<'_> {
            host_query_reset: true,
        }
        vk::PhysicalDeviceTimelineSemaphoreFeatures<'_> {
            timeline_semaphore: true,
        }
        vk::PhysicalDeviceBufferDeviceAddressFeatures<'_> {
            buffer_device_address: true,
            buffer_device_address_capture_replay: false,
            buffer_device_address_multi_device: false,
        }
        vk::PhysicalDeviceVulkanMemoryModelFeatures<'_> {
            vulkan_memory_model: true,
            vulkan_memory_model_device_scope: true,
            vulkan_memory_model_availability_visibility_chains: true,
        }
        {
            shader_output_viewport_index: false,
            shader_output_layer: false,
            subgroup_broadcast_dynamic_id: true,
        }
    }
    v13: vk::PhysicalDeviceVulkan13Features<'static> {
        vk::PhysicalDeviceImageRobustnessFeatures<'_> {
            robust_image_access: true,
        }
        vk::PhysicalDeviceInlineUniformBlockFeatures<'_> {
            inline_uniform_block: true,
            descriptor_binding_inline_uniform_block_update_after_bind: true,
        }
        vk::PhysicalDevicePipelineCreationCacheControlFeatures<'_> {
            pipeline_creation_cache_control: true,
        }
        vk::PhysicalDevicePrivateDataFeatures<'_> {
            private_data: true,
        }
        vk::PhysicalDeviceShaderDemoteToHelperInvocationFeatures<'_> {
            shader_demote_to_helper_invocation: true,
        }
        // Required of every implementation: modules with fragment entry points, which never run, may use the
        // instruction.
        vk::PhysicalDeviceShaderTerminateInvocationFeatures<'_> {
            shader_terminate_invocation: true,
        }
        vk::PhysicalDeviceSubgroupSizeControlFeatures<'_> {
            subgroup_size_control: true,
            compute_full_subgroups: true,
        }
        vk::PhysicalDeviceSynchronization2Features<'_> {
            synchronization2: true,
        }
        vk::PhysicalDeviceTextureCompressionASTCHDRFeatures<'_> {
            texture_compression_astc_hdr: false,
        }
        vk::PhysicalDeviceZeroInitializeWorkgroupMemoryFeatures<'_> {
            shader_zero_initialize_workgroup_memory: true,
        }
        vk::PhysicalDeviceDynamicRenderingFeatures<'_> {
            dynamic_rendering: options.graphics,
        }
        vk::PhysicalDeviceShaderIntegerDotProductFeatures<'_> {
            shader_integer_dot_product: true,
        }
        vk::PhysicalDeviceMaintenance4Features<'_> {
            maintenance4: true,
        }
    }
    // The version is 1.3: these come with their extensions.
    v14: PhysicalDeviceVulkan14Features<'static> {
        vk::PhysicalDeviceGlobalPriorityQueryFeaturesKHR<'_> {
            global_priority_query: true,
        }
        vk::PhysicalDeviceShaderSubgroupRotateFeaturesKHR<'_> {
            shader_subgroup_rotate: true,
            shader_subgroup_rotate_clustered: true,
        }
        {
            shader_float_controls2: false,
        }
        vk::PhysicalDeviceShaderExpectAssumeFeaturesKHR<'_> {
            shader_expect_assume: true,
        }
        {
            rectangular_lines: false,
            bresenham_lines: false,
            smooth_lines: false,
            stippled_rectangular_lines: false,
            stippled_bresenham_lines: false,
            stippled_smooth_lines: false,
            vertex_attribute_instance_rate_divisor: false,
            vertex_attribute_instance_rate_zero_divisor: false,
            index_type_uint8: false,
            dynamic_rendering_local_read: false,
        }
        vk::PhysicalDeviceMaintenance5FeaturesKHR<'_> {
            maintenance5: true,
        }
        vk::PhysicalDeviceMaintenance6FeaturesKHR<'_> {
            maintenance6: true,
        }
        {
            pipeline_protected_access: false,
        }
        vk::PhysicalDevicePipelineRobustnessFeaturesEXT<'_> {
            pipeline_robustness: true,
        }
        vk::PhysicalDeviceHostImageCopyFeaturesEXT<'_> {
            host_image_copy: true,
        }
        {
            push_descriptor: true,
        }
    }
    atomic_float: vk::PhysicalDeviceShaderAtomicFloatFeaturesEXT<'static> {
        {
            shader_buffer_float32_atomics: true,
            shader_buffer_float32_atomic_add: true,
            shader_buffer_float64_atomics: true,
            shader_buffer_float64_atomic_add: true,
            shader_shared_float32_atomics: true,
            shader_shared_float32_atomic_add: true,
            shader_shared_float64_atomics: true,
            shader_shared_float64_atomic_add: true,
            shader_image_float32_atomics: true,
            shader_image_float32_atomic_add: true,
            sparse_image_float32_atomics: false,
            sparse_image_float32_atomic_add: false,
        }
    }
    atomic_float2: vk::PhysicalDeviceShaderAtomicFloat2FeaturesEXT<'static> {
        {
            shader_buffer_float16_atomics: true,
            shader_buffer_float16_atomic_add: true,
            shader_buffer_float16_atomic_min_max: true,
            shader_buffer_float32_atomic_min_max: true,
            shader_buffer_float64_atomic_min_max: true,
            shader_shared_float16_atomics: true,
            shader_shared_float16_atomic_add: true,
            shader_shared_float16_atomic_min_max: true,
            shader_shared_float32_atomic_min_max: true,
            shader_shared_float64_atomic_min_max: true,
            shader_image_float32_atomic_min_max: true,
            sparse_image_float32_atomic_min_max: false,
        }
    }
    robustness2: vk::PhysicalDeviceRobustness2FeaturesEXT<'static> {
        {
            robust_buffer_access2: true,
            robust_image_access2: true,
            null_descriptor: true,
        }
    }
    explicit_layout: vk::PhysicalDeviceWorkgroupMemoryExplicitLayoutFeaturesKHR<'static> {
        {
            workgroup_memory_explicit_layout: true,
            workgroup_memory_explicit_layout_scalar_block_layout: true,
            workgroup_memory_explicit_layout8_bit_access: true,
            workgroup_memory_explicit_layout16_bit_access: true,
        }
    }
    conditional: vk::PhysicalDeviceConditionalRenderingFeaturesEXT<'static> {
        {
            conditional_rendering: true,
            inherited_conditional_rendering: false,
        }
    }
    executables: vk::PhysicalDevicePipelineExecutablePropertiesFeaturesKHR<'static> {
        {
            pipeline_executable_info: true,
        }
    }
    clock: vk::PhysicalDeviceShaderClockFeaturesKHR<'static> {
        {
            shader_subgroup_clock: true,
            shader_device_clock: true,
        }
    }
    reconvergence: vk::PhysicalDeviceShaderMaximalReconvergenceFeaturesKHR<'static> {
        {
            shader_maximal_reconvergence: true,
        }
    }
    uniform_flow: vk::PhysicalDeviceShaderSubgroupUniformControlFlowFeaturesKHR<'static> {
        {
            shader_subgroup_uniform_control_flow: true,
        }
    }
    alignment: vk::PhysicalDeviceTexelBufferAlignmentFeaturesEXT<'static> {
        {
            texel_buffer_alignment: true,
        }
    }
}

/// The engine that requires `textureCompressionBC` (or its two alternatives) of every device before it computes.
const DAWN: &str = "Dawn";

impl Supported {
    /// The features that are reported to a program with this engine (`VkApplicationInfo::pEngineName`). No format is
    /// compressed, so such formats are claimed only to an engine that refuses the device otherwise.
    pub(crate) fn of(options: &Options, engine: &str) -> Self {
        let mut supported = Self::new(options);
        if options.graphics && engine == DAWN {
            supported.core.texture_compression_bc = vk::TRUE;
        }
        supported
    }

    /// Fills the chain of `vkGetPhysicalDeviceFeatures2`.
    pub(super) fn fill(&self, chain: &mut OutChain<'_, vk::PhysicalDeviceFeatures2<'_>>) {
        chain.head(|all| all.features = self.core);
        self.fill_chain(chain);
    }

    /// The features that a device is to have and that are not supported, by their names in `ash`.
    pub(crate) fn missing(&self, info: In<'_, vk::DeviceCreateInfo<'_>>) -> Vec<&'static str> {
        let mut missing = self.missing_of_chain(info);
        if let Some(core) = info.features() {
            missing.extend(self.missing_of_first(&core));
        }
        if let Some(all) = info.next::<vk::PhysicalDeviceFeatures2<'_>>() {
            missing.extend(self.missing_of_first(&all.features));
        }
        missing
    }
}

#[cfg(test)]
mod tests;
