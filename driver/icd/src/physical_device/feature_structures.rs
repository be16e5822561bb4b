//! Which feature structures there are: filled for whoever asks, and checked when a device is created.
//!
//! A structure's features are those of the version that it became part of, so each has one value, in `features.rs`.

use ash::vk;

use super::features::Supported;
use super::structures::{structures, switches};
use crate::c::version_1_4::PhysicalDeviceVulkan14Features;
use crate::c::{In, OutChain};

switches! {
    Supported; vk::PhysicalDeviceFeatures2<'_>; vk::DeviceCreateInfo<'_>;
    vk::PhysicalDeviceFeatures: core {
        robust_buffer_access, full_draw_index_uint32, image_cube_array, independent_blend, geometry_shader,
        tessellation_shader, sample_rate_shading, dual_src_blend, logic_op, multi_draw_indirect,
        draw_indirect_first_instance, depth_clamp, depth_bias_clamp, fill_mode_non_solid, depth_bounds, wide_lines,
        large_points, alpha_to_one, multi_viewport, sampler_anisotropy, texture_compression_etc2,
        texture_compression_astc_ldr, texture_compression_bc, occlusion_query_precise, pipeline_statistics_query,
        vertex_pipeline_stores_and_atomics, fragment_stores_and_atomics, shader_tessellation_and_geometry_point_size,
        shader_image_gather_extended, shader_storage_image_extended_formats, shader_storage_image_multisample,
        shader_storage_image_read_without_format, shader_storage_image_write_without_format,
        shader_uniform_buffer_array_dynamic_indexing, shader_sampled_image_array_dynamic_indexing,
        shader_storage_buffer_array_dynamic_indexing, shader_storage_image_array_dynamic_indexing,
        shader_clip_distance, shader_cull_distance, shader_float64, shader_int64, shader_int16,
        shader_resource_residency, shader_resource_min_lod, sparse_binding, sparse_residency_buffer,
        sparse_residency_image2_d, sparse_residency_image3_d, sparse_residency2_samples, sparse_residency4_samples,
        sparse_residency8_samples, sparse_residency16_samples, sparse_residency_aliased, variable_multisample_rate,
        inherited_queries,
    }
    vk::PhysicalDeviceVulkan11Features<'_>: v11 {
        storage_buffer16_bit_access, uniform_and_storage_buffer16_bit_access, storage_push_constant16,
        storage_input_output16, multiview, multiview_geometry_shader, multiview_tessellation_shader,
        variable_pointers_storage_buffer, variable_pointers, protected_memory, sampler_ycbcr_conversion,
        shader_draw_parameters,
    }
    vk::PhysicalDevice16BitStorageFeatures<'_>: v11 {
        storage_buffer16_bit_access, uniform_and_storage_buffer16_bit_access, storage_push_constant16,
        storage_input_output16,
    }
    vk::PhysicalDeviceMultiviewFeatures<'_>: v11 {
        multiview, multiview_geometry_shader, multiview_tessellation_shader,
    }
    vk::PhysicalDeviceVariablePointersFeatures<'_>: v11 {
        variable_pointers_storage_buffer, variable_pointers,
    }
    vk::PhysicalDeviceProtectedMemoryFeatures<'_>: v11 {
        protected_memory,
    }
    vk::PhysicalDeviceSamplerYcbcrConversionFeatures<'_>: v11 {
        sampler_ycbcr_conversion,
    }
    vk::PhysicalDeviceShaderDrawParametersFeatures<'_>: v11 {
        shader_draw_parameters,
    }
    vk::PhysicalDeviceVulkan12Features<'_>: v12 {
        sampler_mirror_clamp_to_edge, draw_indirect_count, storage_buffer8_bit_access,
        uniform_and_storage_buffer8_bit_access, storage_push_constant8, shader_buffer_int64_atomics,
        shader_shared_int64_atomics, shader_float16, shader_int8, descriptor_indexing,
        shader_input_attachment_array_dynamic_indexing, shader_uniform_texel_buffer_array_dynamic_indexing,
        shader_storage_texel_buffer_array_dynamic_indexing, shader_uniform_buffer_array_non_uniform_indexing,
        shader_sampled_image_array_non_uniform_indexing, shader_storage_buffer_array_non_uniform_indexing,
        shader_storage_image_array_non_uniform_indexing, shader_input_attachment_array_non_uniform_indexing,
        shader_uniform_texel_buffer_array_non_uniform_indexing,
        shader_storage_texel_buffer_array_non_uniform_indexing, descriptor_binding_uniform_buffer_update_after_bind,
        descriptor_binding_sampled_image_update_after_bind, descriptor_binding_storage_image_update_after_bind,
        descriptor_binding_storage_buffer_update_after_bind,
        descriptor_binding_uniform_texel_buffer_update_after_bind,
        descriptor_binding_storage_texel_buffer_update_after_bind, descriptor_binding_update_unused_while_pending,
        descriptor_binding_partially_bound, descriptor_binding_variable_descriptor_count, runtime_descriptor_array,
        sampler_filter_minmax, scalar_block_layout, imageless_framebuffer, uniform_buffer_standard_layout,
        shader_subgroup_extended_types, separate_depth_stencil_layouts, host_query_reset, timeline_semaphore,
        buffer_device_address, buffer_device_address_capture_replay, buffer_device_address_multi_device,
        vulkan_memory_model, vulkan_memory_model_device_scope, vulkan_memory_model_availability_visibility_chains,
        shader_output_viewport_index, shader_output_layer, subgroup_broadcast_dynamic_id,
    }
    vk::PhysicalDevice8BitStorageFeatures<'_>: v12 {
        storage_buffer8_bit_access, uniform_and_storage_buffer8_bit_access, storage_push_constant8,
    }
    vk::PhysicalDeviceShaderAtomicInt64Features<'_>: v12 {
        shader_buffer_int64_atomics, shader_shared_int64_atomics,
    }
    vk::PhysicalDeviceShaderFloat16Int8Features<'_>: v12 {
        shader_float16, shader_int8,
    }
    vk::PhysicalDeviceDescriptorIndexingFeatures<'_>: v12 {
        shader_input_attachment_array_dynamic_indexing, shader_uniform_texel_buffer_array_dynamic_indexing,
        shader_storage_texel_buffer_array_dynamic_indexing, shader_uniform_buffer_array_non_uniform_indexing,
        shader_sampled_image_array_non_uniform_indexing, shader_storage_buffer_array_non_uniform_indexing,
        shader_storage_image_array_non_uniform_indexing, shader_input_attachment_array_non_uniform_indexing,
        shader_uniform_texel_buffer_array_non_uniform_indexing,
        shader_storage_texel_buffer_array_non_uniform_indexing, descriptor_binding_uniform_buffer_update_after_bind,
        descriptor_binding_sampled_image_update_after_bind, descriptor_binding_storage_image_update_after_bind,
        descriptor_binding_storage_buffer_update_after_bind,
        descriptor_binding_uniform_texel_buffer_update_after_bind,
        descriptor_binding_storage_texel_buffer_update_after_bind, descriptor_binding_update_unused_while_pending,
        descriptor_binding_partially_bound, descriptor_binding_variable_descriptor_count, runtime_descriptor_array,
    }
    vk::PhysicalDeviceScalarBlockLayoutFeatures<'_>: v12 {
        scalar_block_layout,
    }
    vk::PhysicalDeviceImagelessFramebufferFeatures<'_>: v12 {
        imageless_framebuffer,
    }
    vk::PhysicalDeviceUniformBufferStandardLayoutFeatures<'_>: v12 {
        uniform_buffer_standard_layout,
    }
    vk::PhysicalDeviceShaderSubgroupExtendedTypesFeatures<'_>: v12 {
        shader_subgroup_extended_types,
    }
    vk::PhysicalDeviceSeparateDepthStencilLayoutsFeatures<'_>: v12 {
        separate_depth_stencil_layouts,
    }
    vk::PhysicalDeviceHostQueryResetFeatures<'_>: v12 {
        host_query_reset,
    }
    vk::PhysicalDeviceTimelineSemaphoreFeatures<'_>: v12 {
        timeline_semaphore,
    }
    vk::PhysicalDeviceBufferDeviceAddressFeatures<'_>: v12 {
        buffer_device_address, buffer_device_address_capture_replay, buffer_device_address_multi_device,
    }
    vk::PhysicalDeviceVulkanMemoryModelFeatures<'_>: v12 {
        vulkan_memory_model, vulkan_memory_model_device_scope, vulkan_memory_model_availability_visibility_chains,
    }
    vk::PhysicalDeviceVulkan13Features<'_>: v13 {
        robust_image_access, inline_uniform_block, descriptor_binding_inline_uniform_block_update_after_bind,
        pipeline_creation_cache_control, private_data, shader_demote_to_helper_invocation,
        shader_terminate_invocation, subgroup_size_control, compute_full_subgroups, synchronization2,
        texture_compression_astc_hdr, shader_zero_initialize_workgroup_memory, dynamic_rendering,
        shader_integer_dot_product, maintenance4,
    }
    vk::PhysicalDeviceImageRobustnessFeatures<'_>: v13 {
        robust_image_access,
    }
    vk::PhysicalDeviceInlineUniformBlockFeatures<'_>: v13 {
        inline_uniform_block, descriptor_binding_inline_uniform_block_update_after_bind,
    }
    vk::PhysicalDevicePipelineCreationCacheControlFeatures<'_>: v13 {
        pipeline_creation_cache_control,
    }
    vk::PhysicalDevicePrivateDataFeatures<'_>: v13 {
        private_data,
    }
    vk::PhysicalDeviceShaderDemoteToHelperInvocationFeatures<'_>: v13 {
        shader_demote_to_helper_invocation,
    }
    vk::PhysicalDeviceShaderTerminateInvocationFeatures<'_>: v13 {
        shader_terminate_invocation,
    }
    vk::PhysicalDeviceSubgroupSizeControlFeatures<'_>: v13 {
        subgroup_size_control, compute_full_subgroups,
    }
    vk::PhysicalDeviceSynchronization2Features<'_>: v13 {
        synchronization2,
    }
    vk::PhysicalDeviceTextureCompressionASTCHDRFeatures<'_>: v13 {
        texture_compression_astc_hdr,
    }
    vk::PhysicalDeviceZeroInitializeWorkgroupMemoryFeatures<'_>: v13 {
        shader_zero_initialize_workgroup_memory,
    }
    vk::PhysicalDeviceDynamicRenderingFeatures<'_>: v13 {
        dynamic_rendering,
    }
    vk::PhysicalDeviceShaderIntegerDotProductFeatures<'_>: v13 {
        shader_integer_dot_product,
    }
    vk::PhysicalDeviceMaintenance4Features<'_>: v13 {
        maintenance4,
    }
    PhysicalDeviceVulkan14Features<'_>: v14 {
        global_priority_query, shader_subgroup_rotate, shader_subgroup_rotate_clustered, shader_float_controls2,
        shader_expect_assume, rectangular_lines, bresenham_lines, smooth_lines, stippled_rectangular_lines,
        stippled_bresenham_lines, stippled_smooth_lines, vertex_attribute_instance_rate_divisor,
        vertex_attribute_instance_rate_zero_divisor, index_type_uint8, dynamic_rendering_local_read, maintenance5,
        maintenance6, pipeline_protected_access, pipeline_robustness, host_image_copy, push_descriptor,
    }
    vk::PhysicalDeviceGlobalPriorityQueryFeaturesKHR<'_>: v14 {
        global_priority_query,
    }
    vk::PhysicalDeviceMaintenance5FeaturesKHR<'_>: v14 {
        maintenance5,
    }
    vk::PhysicalDeviceHostImageCopyFeaturesEXT<'_>: v14 {
        host_image_copy,
    }
    vk::PhysicalDeviceShaderAtomicFloatFeaturesEXT<'_>: atomic_float {
        shader_buffer_float32_atomics, shader_buffer_float32_atomic_add, shader_buffer_float64_atomics,
        shader_buffer_float64_atomic_add, shader_shared_float32_atomics, shader_shared_float32_atomic_add,
        shader_shared_float64_atomics, shader_shared_float64_atomic_add, shader_image_float32_atomics,
        shader_image_float32_atomic_add, sparse_image_float32_atomics, sparse_image_float32_atomic_add,
    }
    vk::PhysicalDeviceShaderAtomicFloat2FeaturesEXT<'_>: atomic_float2 {
        shader_buffer_float16_atomics, shader_buffer_float16_atomic_add, shader_buffer_float16_atomic_min_max,
        shader_buffer_float32_atomic_min_max, shader_buffer_float64_atomic_min_max, shader_shared_float16_atomics,
        shader_shared_float16_atomic_add, shader_shared_float16_atomic_min_max, shader_shared_float32_atomic_min_max,
        shader_shared_float64_atomic_min_max, shader_image_float32_atomic_min_max,
        sparse_image_float32_atomic_min_max,
    }
    vk::PhysicalDeviceRobustness2FeaturesEXT<'_>: robustness2 {
        robust_buffer_access2, robust_image_access2, null_descriptor,
    }
    vk::PhysicalDeviceWorkgroupMemoryExplicitLayoutFeaturesKHR<'_>: explicit_layout {
        workgroup_memory_explicit_layout, workgroup_memory_explicit_layout_scalar_block_layout,
        workgroup_memory_explicit_layout8_bit_access, workgroup_memory_explicit_layout16_bit_access,
    }
    vk::PhysicalDeviceShaderExpectAssumeFeaturesKHR<'_>: v14 {
        shader_expect_assume,
    }
    vk::PhysicalDeviceConditionalRenderingFeaturesEXT<'_>: conditional {
        conditional_rendering, inherited_conditional_rendering,
    }
    vk::PhysicalDevicePipelineExecutablePropertiesFeaturesKHR<'_>: executables {
        pipeline_executable_info,
    }
    vk::PhysicalDeviceShaderClockFeaturesKHR<'_>: clock {
        shader_subgroup_clock, shader_device_clock,
    }
    vk::PhysicalDeviceShaderSubgroupRotateFeaturesKHR<'_>: v14 {
        shader_subgroup_rotate, shader_subgroup_rotate_clustered,
    }
    vk::PhysicalDeviceShaderMaximalReconvergenceFeaturesKHR<'_>: reconvergence {
        shader_maximal_reconvergence,
    }
    vk::PhysicalDeviceShaderSubgroupUniformControlFlowFeaturesKHR<'_>: uniform_flow {
        shader_subgroup_uniform_control_flow,
    }
    vk::PhysicalDeviceMaintenance6FeaturesKHR<'_>: v14 {
        maintenance6,
    }
    vk::PhysicalDevicePipelineRobustnessFeaturesEXT<'_>: v14 {
        pipeline_robustness,
    }
    vk::PhysicalDeviceTexelBufferAlignmentFeaturesEXT<'_>: alignment {
        texel_buffer_alignment,
    }
}

/// `vkGetPhysicalDeviceFeatures2`.
pub(super) fn fill(supported: &Supported, chain: &mut OutChain<'_, vk::PhysicalDeviceFeatures2<'_>>) {
    chain.head(|all| all.features = supported.core);
    fill_chain(supported, chain);
}

/// The features that a device is to have and that are not there, in `ash`'s spelling.
pub(crate) fn missing(supported: &Supported, info: In<'_, vk::DeviceCreateInfo<'_>>) -> Vec<&'static str> {
    let mut missing = missing_of_chain(supported, info);
    if let Some(core) = info.features() {
        missing.extend(missing_of_first(supported, &core));
    }
    if let Some(all) = info.next::<vk::PhysicalDeviceFeatures2<'_>>() {
        missing.extend(missing_of_first(supported, &all.features));
    }
    missing
}

#[cfg(test)]
mod tests {
    use std::collections::{BTreeMap, BTreeSet};

    use super::*;
    use crate::options::Options;
    use crate::physical_device::{extensions, features};

    const BEGIN: &str = "<!-- written by BLESS=1 cargo test -p spelter-icd page -->\n";

    /// The page's tables: features by the version or extension that they came with, and extensions.
    fn tables() -> String {
        let supported = features::supported(Options::get());
        let mut seen = BTreeSet::new();
        let mut parts: BTreeMap<&str, [Vec<&str>; 2]> = BTreeMap::new();
        for (structure, feature, there) in all(&supported) {
            let structure = structure.trim_start_matches("vk::").trim_end_matches("<'_>");
            if seen.insert(feature) {
                parts.entry(structure).or_default()[usize::from(!there)].push(feature);
            }
        }
        let mut text = String::from("\n| structure | there | not there |\n| --- | --- | --- |\n");
        for (structure, lists) in parts {
            let [there, not] = lists.map(|list| list.join(", "));
            text += &format!("| {structure} | {there} | {not} |\n");
        }
        text += "\n## Extensions\n\nOf the instance:";
        let names = |list: &[extensions::Extension]| {
            list.iter().map(|(name, revision, _)| format!("`{name}` {revision}")).collect::<Vec<_>>().join(", ")
        };
        text += &format!(" {}.\n\nOf the device: {}.\n", names(extensions::INSTANCE), names(extensions::DEVICE));
        text
    }

    #[test]
    fn the_page_lists_what_there_is() {
        let path = concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/vulkan.md");
        let page = std::fs::read_to_string(path).unwrap();
        let (head, tail) = page.split_once(BEGIN).unwrap();
        if std::env::var_os("BLESS").is_some() {
            std::fs::write(path, format!("{head}{BEGIN}{}", tables())).unwrap();
        } else {
            assert_eq!(tail, tables(), "BLESS=1 rewrites docs/vulkan.md");
        }
    }
}
