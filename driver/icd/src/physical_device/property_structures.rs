//! Which property structures there are, filled for whoever asks.
//!
//! A structure's properties are those of the version that it became part of, so each has one value, in `properties.rs`.

use ash::vk;

use super::properties::Described;
use super::structures::structures;
use crate::c::OutChain;
use crate::c::host::{put_copy_layouts, put_copy_layouts_1_4};
use crate::c::version_1_4::PhysicalDeviceVulkan14Properties;
use crate::host_copy::LAYOUTS;

structures! {
    Described; vk::PhysicalDeviceProperties2<'_>;
    vk::PhysicalDeviceVulkan11Properties<'_>: v11 {
        device_uuid, driver_uuid, device_luid, device_node_mask, device_luid_valid, subgroup_size,
        subgroup_supported_stages, subgroup_supported_operations, subgroup_quad_operations_in_all_stages,
        point_clipping_behavior, max_multiview_view_count, max_multiview_instance_index, protected_no_fault,
        max_per_set_descriptors, max_memory_allocation_size,
    }
    vk::PhysicalDeviceIDProperties<'_>: v11 {
        device_uuid, driver_uuid, device_luid, device_node_mask, device_luid_valid,
    }
    vk::PhysicalDevicePointClippingProperties<'_>: v11 {
        point_clipping_behavior,
    }
    vk::PhysicalDeviceMultiviewProperties<'_>: v11 {
        max_multiview_view_count, max_multiview_instance_index,
    }
    vk::PhysicalDeviceProtectedMemoryProperties<'_>: v11 {
        protected_no_fault,
    }
    vk::PhysicalDeviceMaintenance3Properties<'_>: v11 {
        max_per_set_descriptors, max_memory_allocation_size,
    }
    vk::PhysicalDeviceVulkan12Properties<'_>: v12 {
        driver_id, driver_name, driver_info, conformance_version, denorm_behavior_independence,
        rounding_mode_independence, shader_signed_zero_inf_nan_preserve_float16,
        shader_signed_zero_inf_nan_preserve_float32, shader_signed_zero_inf_nan_preserve_float64,
        shader_denorm_preserve_float16, shader_denorm_preserve_float32, shader_denorm_preserve_float64,
        shader_denorm_flush_to_zero_float16, shader_denorm_flush_to_zero_float32, shader_denorm_flush_to_zero_float64,
        shader_rounding_mode_rte_float16, shader_rounding_mode_rte_float32, shader_rounding_mode_rte_float64,
        shader_rounding_mode_rtz_float16, shader_rounding_mode_rtz_float32, shader_rounding_mode_rtz_float64,
        max_update_after_bind_descriptors_in_all_pools, shader_uniform_buffer_array_non_uniform_indexing_native,
        shader_sampled_image_array_non_uniform_indexing_native,
        shader_storage_buffer_array_non_uniform_indexing_native,
        shader_storage_image_array_non_uniform_indexing_native,
        shader_input_attachment_array_non_uniform_indexing_native, robust_buffer_access_update_after_bind,
        quad_divergent_implicit_lod, max_per_stage_descriptor_update_after_bind_samplers,
        max_per_stage_descriptor_update_after_bind_uniform_buffers,
        max_per_stage_descriptor_update_after_bind_storage_buffers,
        max_per_stage_descriptor_update_after_bind_sampled_images,
        max_per_stage_descriptor_update_after_bind_storage_images,
        max_per_stage_descriptor_update_after_bind_input_attachments, max_per_stage_update_after_bind_resources,
        max_descriptor_set_update_after_bind_samplers, max_descriptor_set_update_after_bind_uniform_buffers,
        max_descriptor_set_update_after_bind_uniform_buffers_dynamic,
        max_descriptor_set_update_after_bind_storage_buffers,
        max_descriptor_set_update_after_bind_storage_buffers_dynamic,
        max_descriptor_set_update_after_bind_sampled_images, max_descriptor_set_update_after_bind_storage_images,
        max_descriptor_set_update_after_bind_input_attachments, supported_depth_resolve_modes,
        supported_stencil_resolve_modes, independent_resolve_none, independent_resolve,
        filter_minmax_single_component_formats, filter_minmax_image_component_mapping,
        max_timeline_semaphore_value_difference, framebuffer_integer_color_sample_counts,
    }
    vk::PhysicalDeviceDriverProperties<'_>: v12 {
        driver_id, driver_name, driver_info, conformance_version,
    }
    vk::PhysicalDeviceFloatControlsProperties<'_>: v12 {
        denorm_behavior_independence, rounding_mode_independence, shader_signed_zero_inf_nan_preserve_float16,
        shader_signed_zero_inf_nan_preserve_float32, shader_signed_zero_inf_nan_preserve_float64,
        shader_denorm_preserve_float16, shader_denorm_preserve_float32, shader_denorm_preserve_float64,
        shader_denorm_flush_to_zero_float16, shader_denorm_flush_to_zero_float32, shader_denorm_flush_to_zero_float64,
        shader_rounding_mode_rte_float16, shader_rounding_mode_rte_float32, shader_rounding_mode_rte_float64,
        shader_rounding_mode_rtz_float16, shader_rounding_mode_rtz_float32, shader_rounding_mode_rtz_float64,
    }
    vk::PhysicalDeviceDescriptorIndexingProperties<'_>: v12 {
        max_update_after_bind_descriptors_in_all_pools, shader_uniform_buffer_array_non_uniform_indexing_native,
        shader_sampled_image_array_non_uniform_indexing_native,
        shader_storage_buffer_array_non_uniform_indexing_native,
        shader_storage_image_array_non_uniform_indexing_native,
        shader_input_attachment_array_non_uniform_indexing_native, robust_buffer_access_update_after_bind,
        quad_divergent_implicit_lod, max_per_stage_descriptor_update_after_bind_samplers,
        max_per_stage_descriptor_update_after_bind_uniform_buffers,
        max_per_stage_descriptor_update_after_bind_storage_buffers,
        max_per_stage_descriptor_update_after_bind_sampled_images,
        max_per_stage_descriptor_update_after_bind_storage_images,
        max_per_stage_descriptor_update_after_bind_input_attachments, max_per_stage_update_after_bind_resources,
        max_descriptor_set_update_after_bind_samplers, max_descriptor_set_update_after_bind_uniform_buffers,
        max_descriptor_set_update_after_bind_uniform_buffers_dynamic,
        max_descriptor_set_update_after_bind_storage_buffers,
        max_descriptor_set_update_after_bind_storage_buffers_dynamic,
        max_descriptor_set_update_after_bind_sampled_images, max_descriptor_set_update_after_bind_storage_images,
        max_descriptor_set_update_after_bind_input_attachments,
    }
    vk::PhysicalDeviceDepthStencilResolveProperties<'_>: v12 {
        supported_depth_resolve_modes, supported_stencil_resolve_modes, independent_resolve_none, independent_resolve,
    }
    vk::PhysicalDeviceSamplerFilterMinmaxProperties<'_>: v12 {
        filter_minmax_single_component_formats, filter_minmax_image_component_mapping,
    }
    vk::PhysicalDeviceTimelineSemaphoreProperties<'_>: v12 {
        max_timeline_semaphore_value_difference,
    }
    vk::PhysicalDeviceVulkan13Properties<'_>: v13 {
        min_subgroup_size, max_subgroup_size, max_compute_workgroup_subgroups, required_subgroup_size_stages,
        max_inline_uniform_block_size, max_per_stage_descriptor_inline_uniform_blocks,
        max_per_stage_descriptor_update_after_bind_inline_uniform_blocks, max_descriptor_set_inline_uniform_blocks,
        max_descriptor_set_update_after_bind_inline_uniform_blocks, max_inline_uniform_total_size,
        integer_dot_product8_bit_unsigned_accelerated, integer_dot_product8_bit_signed_accelerated,
        integer_dot_product8_bit_mixed_signedness_accelerated, integer_dot_product4x8_bit_packed_unsigned_accelerated,
        integer_dot_product4x8_bit_packed_signed_accelerated,
        integer_dot_product4x8_bit_packed_mixed_signedness_accelerated,
        integer_dot_product16_bit_unsigned_accelerated, integer_dot_product16_bit_signed_accelerated,
        integer_dot_product16_bit_mixed_signedness_accelerated, integer_dot_product32_bit_unsigned_accelerated,
        integer_dot_product32_bit_signed_accelerated, integer_dot_product32_bit_mixed_signedness_accelerated,
        integer_dot_product64_bit_unsigned_accelerated, integer_dot_product64_bit_signed_accelerated,
        integer_dot_product64_bit_mixed_signedness_accelerated,
        integer_dot_product_accumulating_saturating8_bit_unsigned_accelerated,
        integer_dot_product_accumulating_saturating8_bit_signed_accelerated,
        integer_dot_product_accumulating_saturating8_bit_mixed_signedness_accelerated,
        integer_dot_product_accumulating_saturating4x8_bit_packed_unsigned_accelerated,
        integer_dot_product_accumulating_saturating4x8_bit_packed_signed_accelerated,
        integer_dot_product_accumulating_saturating16_bit_unsigned_accelerated,
        integer_dot_product_accumulating_saturating16_bit_signed_accelerated,
        integer_dot_product_accumulating_saturating16_bit_mixed_signedness_accelerated,
        integer_dot_product_accumulating_saturating32_bit_unsigned_accelerated,
        integer_dot_product_accumulating_saturating32_bit_signed_accelerated,
        integer_dot_product_accumulating_saturating32_bit_mixed_signedness_accelerated,
        integer_dot_product_accumulating_saturating64_bit_unsigned_accelerated,
        integer_dot_product_accumulating_saturating64_bit_signed_accelerated,
        integer_dot_product_accumulating_saturating64_bit_mixed_signedness_accelerated,
        storage_texel_buffer_offset_alignment_bytes, storage_texel_buffer_offset_single_texel_alignment,
        uniform_texel_buffer_offset_alignment_bytes, uniform_texel_buffer_offset_single_texel_alignment,
        max_buffer_size,
    }
    vk::PhysicalDeviceSubgroupSizeControlProperties<'_>: v13 {
        min_subgroup_size, max_subgroup_size, max_compute_workgroup_subgroups, required_subgroup_size_stages,
    }
    vk::PhysicalDeviceInlineUniformBlockProperties<'_>: v13 {
        max_inline_uniform_block_size, max_per_stage_descriptor_inline_uniform_blocks,
        max_per_stage_descriptor_update_after_bind_inline_uniform_blocks, max_descriptor_set_inline_uniform_blocks,
        max_descriptor_set_update_after_bind_inline_uniform_blocks,
    }
    vk::PhysicalDeviceShaderIntegerDotProductProperties<'_>: v13 {
        integer_dot_product8_bit_unsigned_accelerated, integer_dot_product8_bit_signed_accelerated,
        integer_dot_product8_bit_mixed_signedness_accelerated, integer_dot_product4x8_bit_packed_unsigned_accelerated,
        integer_dot_product4x8_bit_packed_signed_accelerated,
        integer_dot_product4x8_bit_packed_mixed_signedness_accelerated,
        integer_dot_product16_bit_unsigned_accelerated, integer_dot_product16_bit_signed_accelerated,
        integer_dot_product16_bit_mixed_signedness_accelerated, integer_dot_product32_bit_unsigned_accelerated,
        integer_dot_product32_bit_signed_accelerated, integer_dot_product32_bit_mixed_signedness_accelerated,
        integer_dot_product64_bit_unsigned_accelerated, integer_dot_product64_bit_signed_accelerated,
        integer_dot_product64_bit_mixed_signedness_accelerated,
        integer_dot_product_accumulating_saturating8_bit_unsigned_accelerated,
        integer_dot_product_accumulating_saturating8_bit_signed_accelerated,
        integer_dot_product_accumulating_saturating8_bit_mixed_signedness_accelerated,
        integer_dot_product_accumulating_saturating4x8_bit_packed_unsigned_accelerated,
        integer_dot_product_accumulating_saturating4x8_bit_packed_signed_accelerated,
        integer_dot_product_accumulating_saturating16_bit_unsigned_accelerated,
        integer_dot_product_accumulating_saturating16_bit_signed_accelerated,
        integer_dot_product_accumulating_saturating16_bit_mixed_signedness_accelerated,
        integer_dot_product_accumulating_saturating32_bit_unsigned_accelerated,
        integer_dot_product_accumulating_saturating32_bit_signed_accelerated,
        integer_dot_product_accumulating_saturating32_bit_mixed_signedness_accelerated,
        integer_dot_product_accumulating_saturating64_bit_unsigned_accelerated,
        integer_dot_product_accumulating_saturating64_bit_signed_accelerated,
        integer_dot_product_accumulating_saturating64_bit_mixed_signedness_accelerated,
    }
    vk::PhysicalDeviceTexelBufferAlignmentProperties<'_>: v13 {
        storage_texel_buffer_offset_alignment_bytes, storage_texel_buffer_offset_single_texel_alignment,
        uniform_texel_buffer_offset_alignment_bytes, uniform_texel_buffer_offset_single_texel_alignment,
    }
    vk::PhysicalDeviceMaintenance4Properties<'_>: v13 {
        max_buffer_size,
    }
    vk::PhysicalDeviceSubgroupProperties<'_>: v11 {
        subgroup_size, supported_stages = subgroup_supported_stages,
        supported_operations = subgroup_supported_operations,
        quad_operations_in_all_stages = subgroup_quad_operations_in_all_stages,
    }
    vk::PhysicalDeviceExternalMemoryHostPropertiesEXT<'_>: host {
        min_imported_host_pointer_alignment,
    }
    vk::PhysicalDeviceRobustness2PropertiesEXT<'_>: robustness2 {
        robust_storage_buffer_access_size_alignment, robust_uniform_buffer_access_size_alignment,
    }
    PhysicalDeviceVulkan14Properties<'_>: v14 {
        line_sub_pixel_precision_bits, max_vertex_attrib_divisor, supports_non_zero_first_instance,
        max_push_descriptors, dynamic_rendering_local_read_depth_stencil_attachments,
        dynamic_rendering_local_read_multisampled_attachments,
        early_fragment_multisample_coverage_after_sample_counting,
        early_fragment_sample_mask_test_before_sample_counting, depth_stencil_swizzle_one_support,
        polygon_mode_point_size, non_strict_single_pixel_wide_lines_use_parallelogram,
        non_strict_wide_lines_use_parallelogram, block_texel_view_compatible_multiple_layers,
        max_combined_image_sampler_descriptor_count, fragment_shading_rate_clamp_combiner_inputs,
        default_robustness_storage_buffers, default_robustness_uniform_buffers, default_robustness_vertex_inputs,
        default_robustness_images, optimal_tiling_layout_uuid, identical_memory_type_requirements,
    }
    vk::PhysicalDeviceMaintenance5PropertiesKHR<'_>: v14 {
        early_fragment_multisample_coverage_after_sample_counting,
        early_fragment_sample_mask_test_before_sample_counting, depth_stencil_swizzle_one_support,
        polygon_mode_point_size, non_strict_single_pixel_wide_lines_use_parallelogram,
        non_strict_wide_lines_use_parallelogram,
    }
    vk::PhysicalDeviceHostImageCopyPropertiesEXT<'_>: v14 {
        optimal_tiling_layout_uuid, identical_memory_type_requirements,
    }
    vk::PhysicalDevicePushDescriptorPropertiesKHR<'_>: v14 {
        max_push_descriptors,
    }
    vk::PhysicalDeviceMaintenance6PropertiesKHR<'_>: v14 {
        block_texel_view_compatible_multiple_layers, max_combined_image_sampler_descriptor_count,
        fragment_shading_rate_clamp_combiner_inputs,
    }
    vk::PhysicalDevicePipelineRobustnessPropertiesEXT<'_>: v14 {
        default_robustness_storage_buffers, default_robustness_uniform_buffers, default_robustness_vertex_inputs,
        default_robustness_images,
    }
}

/// `vkGetPhysicalDeviceProperties2`.
pub(super) fn fill(described: &Described, chain: &mut OutChain<'_, vk::PhysicalDeviceProperties2<'_>>) {
    chain.head(|all| all.properties = described.core);
    fill_chain(described, chain);
    // Two lists that the caller has room for, or counts.
    chain.fill(|structure| put_copy_layouts(structure, &LAYOUTS));
    chain.fill(|structure| put_copy_layouts_1_4(structure, &LAYOUTS));
}
