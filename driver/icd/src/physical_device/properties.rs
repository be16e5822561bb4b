//! The table of properties: every property structure with the value of each field, one line a property.

use ash::vk::{self, FALSE, SampleCountFlags, ShaderStageFlags, TRUE};
use spelter_driver as driver;

use super::limits::{HOST_COPY_LAYOUTS, INPUT_ATTACHMENTS, MAP_ALIGNMENT, MAX_PUSH_DESCRIPTORS};
use super::structures::properties;
use crate::c::host::{put_copy_layouts, put_copy_layouts_1_4};
use crate::c::version_1_4::PhysicalDeviceVulkan14Properties;
use crate::c::{OutChain, fixed};
use crate::options::{Conformance, Options};

/// The maximum size of an inline uniform block in bytes.
pub(crate) const MAX_INLINE_BYTES: u32 = 4096;

/// The maximum number of inline uniform blocks of a stage, and of a set.
const MAX_INLINE_BLOCKS: u32 = 16;

const ROBUST_BUFFERS: vk::PipelineRobustnessBufferBehaviorEXT =
    vk::PipelineRobustnessBufferBehaviorEXT::ROBUST_BUFFER_ACCESS_2;

properties! {
    /// Properties by the version or the extension that they came with.
    struct DeviceProperties(options: &Options, device: &driver::Properties, limits: &driver::Limits)
        in vk::PhysicalDeviceProperties2<'_>;
    core: vk::PhysicalDeviceProperties {
        api_version: vk::make_api_version(0, 1, 3, vk::HEADER_VERSION),
        driver_version: device.driver_version,
        // This driver has no vendor ID.
        vendor_id: 0,
        device_id: 0,
        device_type: device.device_type,
        device_name: fixed(&device.device_name),
        pipeline_cache_uuid: uuid(device),
        limits: super::limits::limits(options.graphics),
        sparse_properties: Default::default(),
    }
    v11: vk::PhysicalDeviceVulkan11Properties<'static> {
        vk::PhysicalDeviceIDProperties<'_> {
            device_uuid: uuid(device),
            driver_uuid: uuid(device),
            device_luid: [0; vk::LUID_SIZE],
            device_node_mask: 0,
            device_luid_valid: FALSE,
        }
        vk::PhysicalDeviceSubgroupProperties<'_> {
            subgroup_size: limits.subgroup_size,
            subgroup_supported_stages as supported_stages: subgroup_stages(options),
            subgroup_supported_operations as supported_operations: subgroup_operations(),
            subgroup_quad_operations_in_all_stages as quad_operations_in_all_stages: TRUE,
        }
        vk::PhysicalDevicePointClippingProperties<'_> {
            point_clipping_behavior: vk::PointClippingBehavior::ALL_CLIP_PLANES,
        }
        vk::PhysicalDeviceMultiviewProperties<'_> {
            max_multiview_view_count: 0,
            max_multiview_instance_index: 0,
        }
        vk::PhysicalDeviceProtectedMemoryProperties<'_> {
            protected_no_fault: FALSE,
        }
        vk::PhysicalDeviceMaintenance3Properties<'_> {
            max_per_set_descriptors: limits.max_per_set_descriptors,
            max_memory_allocation_size: limits.max_buffer_size,
        }
    }
    v12: vk::PhysicalDeviceVulkan12Properties<'static> {
        vk::PhysicalDeviceDriverProperties<'_> {
            // The registry has no number for this driver, and another's would enable the workarounds for that driver.
            driver_id: vk::DriverId::from_raw(0),
            driver_name: fixed("spelter"),
            driver_info: driver_info(device),
            // Zeros, unless the user claims a version for programs that require one (`SPELTER_CONFORMANCE`).
            conformance_version: conformance(options.conformance),
        }
        vk::PhysicalDeviceFloatControlsProperties<'_> {
            denorm_behavior_independence: vk::ShaderFloatControlsIndependence::ALL,
            rounding_mode_independence: vk::ShaderFloatControlsIndependence::ALL,
            shader_signed_zero_inf_nan_preserve_float16: TRUE,
            shader_signed_zero_inf_nan_preserve_float32: TRUE,
            shader_signed_zero_inf_nan_preserve_float64: TRUE,
            shader_denorm_preserve_float16: TRUE,
            shader_denorm_preserve_float32: TRUE,
            shader_denorm_preserve_float64: TRUE,
            shader_denorm_flush_to_zero_float16: FALSE,
            shader_denorm_flush_to_zero_float32: FALSE,
            shader_denorm_flush_to_zero_float64: FALSE,
            shader_rounding_mode_rte_float16: TRUE,
            shader_rounding_mode_rte_float32: TRUE,
            shader_rounding_mode_rte_float64: TRUE,
            shader_rounding_mode_rtz_float16: FALSE,
            shader_rounding_mode_rtz_float32: FALSE,
            shader_rounding_mode_rtz_float64: FALSE,
        }
        vk::PhysicalDeviceDescriptorIndexingProperties<'_> {
            // Descriptors that may be updated after binding have the limits of others.
            max_update_after_bind_descriptors_in_all_pools: u32::MAX,
            shader_uniform_buffer_array_non_uniform_indexing_native: FALSE,
            shader_sampled_image_array_non_uniform_indexing_native: FALSE,
            shader_storage_buffer_array_non_uniform_indexing_native: FALSE,
            shader_storage_image_array_non_uniform_indexing_native: FALSE,
            shader_input_attachment_array_non_uniform_indexing_native: FALSE,
            robust_buffer_access_update_after_bind: TRUE,
            quad_divergent_implicit_lod: FALSE,
            max_per_stage_descriptor_update_after_bind_samplers: limits.max_descriptor_set_samplers,
            max_per_stage_descriptor_update_after_bind_uniform_buffers: limits.max_descriptor_set_uniform_buffers,
            max_per_stage_descriptor_update_after_bind_storage_buffers: limits.max_descriptor_set_storage_buffers,
            max_per_stage_descriptor_update_after_bind_sampled_images: limits.max_descriptor_set_sampled_images,
            max_per_stage_descriptor_update_after_bind_storage_images: limits.max_descriptor_set_storage_images,
            max_per_stage_descriptor_update_after_bind_input_attachments: claimed(options, INPUT_ATTACHMENTS[0]),
            max_per_stage_update_after_bind_resources:
                limits.max_per_set_descriptors * limits.max_bound_descriptor_sets,
            max_descriptor_set_update_after_bind_samplers: limits.max_descriptor_set_samplers,
            max_descriptor_set_update_after_bind_uniform_buffers: limits.max_descriptor_set_uniform_buffers,
            max_descriptor_set_update_after_bind_uniform_buffers_dynamic:
                limits.max_descriptor_set_uniform_buffers_dynamic,
            max_descriptor_set_update_after_bind_storage_buffers: limits.max_descriptor_set_storage_buffers,
            max_descriptor_set_update_after_bind_storage_buffers_dynamic:
                limits.max_descriptor_set_storage_buffers_dynamic,
            max_descriptor_set_update_after_bind_sampled_images: limits.max_descriptor_set_sampled_images,
            max_descriptor_set_update_after_bind_storage_images: limits.max_descriptor_set_storage_images,
            max_descriptor_set_update_after_bind_input_attachments: claimed(options, INPUT_ATTACHMENTS[1]),
        }
        vk::PhysicalDeviceDepthStencilResolveProperties<'_> {
            supported_depth_resolve_modes: claimed(options, vk::ResolveModeFlags::SAMPLE_ZERO),
            supported_stencil_resolve_modes: claimed(options, vk::ResolveModeFlags::SAMPLE_ZERO),
            independent_resolve_none: FALSE,
            independent_resolve: FALSE,
        }
        vk::PhysicalDeviceSamplerFilterMinmaxProperties<'_> {
            filter_minmax_single_component_formats: FALSE,
            filter_minmax_image_component_mapping: FALSE,
        }
        vk::PhysicalDeviceTimelineSemaphoreProperties<'_> {
            max_timeline_semaphore_value_difference: u64::MAX >> 1,
        }
        {
            framebuffer_integer_color_sample_counts: claimed(options, SampleCountFlags::TYPE_1),
        }
    }
    v13: vk::PhysicalDeviceVulkan13Properties<'static> {
        vk::PhysicalDeviceSubgroupSizeControlProperties<'_> {
            min_subgroup_size: limits.subgroup_size,
            max_subgroup_size: limits.subgroup_size,
            max_compute_workgroup_subgroups: limits.max_compute_work_group_invocations / limits.subgroup_size,
            required_subgroup_size_stages: ShaderStageFlags::COMPUTE,
        }
        vk::PhysicalDeviceInlineUniformBlockProperties<'_> {
            max_inline_uniform_block_size: MAX_INLINE_BYTES,
            max_per_stage_descriptor_inline_uniform_blocks: MAX_INLINE_BLOCKS,
            max_per_stage_descriptor_update_after_bind_inline_uniform_blocks: MAX_INLINE_BLOCKS,
            max_descriptor_set_inline_uniform_blocks: MAX_INLINE_BLOCKS,
            max_descriptor_set_update_after_bind_inline_uniform_blocks: MAX_INLINE_BLOCKS,
        }
        {
            max_inline_uniform_total_size: MAX_INLINE_BLOCKS * MAX_INLINE_BYTES,
        }
        vk::PhysicalDeviceShaderIntegerDotProductProperties<'_> {
            integer_dot_product8_bit_unsigned_accelerated: FALSE,
            integer_dot_product8_bit_signed_accelerated: FALSE,
            integer_dot_product8_bit_mixed_signedness_accelerated: FALSE,
            integer_dot_product4x8_bit_packed_unsigned_accelerated: FALSE,
            integer_dot_product4x8_bit_packed_signed_accelerated: FALSE,
            integer_dot_product4x8_bit_packed_mixed_signedness_accelerated: FALSE,
            integer_dot_product16_bit_unsigned_accelerated: FALSE,
            integer_dot_product16_bit_signed_accelerated: FALSE,
            integer_dot_product16_bit_mixed_signedness_accelerated: FALSE,
            integer_dot_product32_bit_unsigned_accelerated: FALSE,
            integer_dot_product32_bit_signed_accelerated: FALSE,
            integer_dot_product32_bit_mixed_signedness_accelerated: FALSE,
            integer_dot_product64_bit_unsigned_accelerated: FALSE,
            integer_dot_product64_bit_signed_accelerated: FALSE,
            integer_dot_product64_bit_mixed_signedness_accelerated: FALSE,
            integer_dot_product_accumulating_saturating8_bit_unsigned_accelerated: FALSE,
            integer_dot_product_accumulating_saturating8_bit_signed_accelerated: FALSE,
            integer_dot_product_accumulating_saturating8_bit_mixed_signedness_accelerated: FALSE,
            integer_dot_product_accumulating_saturating4x8_bit_packed_unsigned_accelerated: FALSE,
            integer_dot_product_accumulating_saturating4x8_bit_packed_signed_accelerated: FALSE,
            integer_dot_product_accumulating_saturating16_bit_unsigned_accelerated: FALSE,
            integer_dot_product_accumulating_saturating16_bit_signed_accelerated: FALSE,
            integer_dot_product_accumulating_saturating16_bit_mixed_signedness_accelerated: FALSE,
            integer_dot_product_accumulating_saturating32_bit_unsigned_accelerated: FALSE,
            integer_dot_product_accumulating_saturating32_bit_signed_accelerated: FALSE,
            integer_dot_product_accumulating_saturating32_bit_mixed_signedness_accelerated: FALSE,
            integer_dot_product_accumulating_saturating64_bit_unsigned_accelerated: FALSE,
            integer_dot_product_accumulating_saturating64_bit_signed_accelerated: FALSE,
            integer_dot_product_accumulating_saturating64_bit_mixed_signedness_accelerated: FALSE,
        }
        vk::PhysicalDeviceTexelBufferAlignmentProperties<'_> {
            storage_texel_buffer_offset_alignment_bytes: limits.min_texel_buffer_offset_alignment,
            storage_texel_buffer_offset_single_texel_alignment: FALSE,
            uniform_texel_buffer_offset_alignment_bytes: limits.min_texel_buffer_offset_alignment,
            uniform_texel_buffer_offset_single_texel_alignment: FALSE,
        }
        vk::PhysicalDeviceMaintenance4Properties<'_> {
            max_buffer_size: limits.max_buffer_size,
        }
    }
    host: vk::PhysicalDeviceExternalMemoryHostPropertiesEXT<'static> {
        {
            min_imported_host_pointer_alignment: MAP_ALIGNMENT,
        }
    }
    robustness2: vk::PhysicalDeviceRobustness2PropertiesEXT<'static> {
        {
            robust_storage_buffer_access_size_alignment: 1,
            robust_uniform_buffer_access_size_alignment: 1,
        }
    }
    v14: PhysicalDeviceVulkan14Properties<'static> {
        {
            line_sub_pixel_precision_bits: 0,
            max_vertex_attrib_divisor: 0,
            supports_non_zero_first_instance: FALSE,
        }
        vk::PhysicalDevicePushDescriptorPropertiesKHR<'_> {
            max_push_descriptors: MAX_PUSH_DESCRIPTORS,
        }
        {
            dynamic_rendering_local_read_depth_stencil_attachments: FALSE,
            dynamic_rendering_local_read_multisampled_attachments: FALSE,
        }
        vk::PhysicalDeviceMaintenance5PropertiesKHR<'_> {
            early_fragment_multisample_coverage_after_sample_counting: FALSE,
            early_fragment_sample_mask_test_before_sample_counting: FALSE,
            depth_stencil_swizzle_one_support: FALSE,
            polygon_mode_point_size: FALSE,
            non_strict_single_pixel_wide_lines_use_parallelogram: FALSE,
            non_strict_wide_lines_use_parallelogram: FALSE,
        }
        vk::PhysicalDeviceMaintenance6PropertiesKHR<'_> {
            block_texel_view_compatible_multiple_layers: FALSE,
            max_combined_image_sampler_descriptor_count: 1,
            fragment_shading_rate_clamp_combiner_inputs: FALSE,
        }
        vk::PhysicalDevicePipelineRobustnessPropertiesEXT<'_> {
            // Every pipeline is robust, whatever it asks for.
            default_robustness_storage_buffers: ROBUST_BUFFERS,
            default_robustness_uniform_buffers: ROBUST_BUFFERS,
            default_robustness_vertex_inputs: ROBUST_BUFFERS,
            default_robustness_images: vk::PipelineRobustnessImageBehaviorEXT::ROBUST_IMAGE_ACCESS_2,
        }
        vk::PhysicalDeviceHostImageCopyPropertiesEXT<'_> {
            optimal_tiling_layout_uuid: uuid(device),
            identical_memory_type_requirements: TRUE,
        }
    }
}

impl DeviceProperties {
    /// The properties of a device with these options.
    pub(super) fn of(options: &Options) -> Self {
        Self::new(options, &options.device.properties(), driver::Limits::of_devices())
    }

    /// Fills the chain of `vkGetPhysicalDeviceProperties2`.
    pub(super) fn fill(&self, chain: &mut OutChain<'_, vk::PhysicalDeviceProperties2<'_>>) {
        chain.head(|all| all.properties = self.core);
        self.fill_chain(chain);
        // The lists of layouts for host copies: copied if the caller gives memory for them, otherwise counted.
        chain.fill(|structure| put_copy_layouts(structure, &HOST_COPY_LAYOUTS));
        chain.fill(|structure| put_copy_layouts_1_4(structure, &HOST_COPY_LAYOUTS));
    }
}

/// An id of the device and the driver, made of the driver's version and the back end's name: pipeline caches hold
/// machine code, which another version or back end must not load.
pub(crate) fn uuid(device: &driver::Properties) -> [u8; vk::UUID_SIZE] {
    let mut uuid = *b"spelter\0\0\0\0\0\0\0\0\0";
    uuid[8..12].copy_from_slice(&device.driver_version.to_le_bytes());
    for (to, from) in uuid[12..].iter_mut().zip(device.backend.name().bytes().rev()) {
        *to = from;
    }
    uuid
}

/// The version of the conformance tests that the user claims.
fn conformance([major, minor, subminor, patch]: Conformance) -> vk::ConformanceVersion {
    vk::ConformanceVersion { major, minor, subminor, patch }
}

/// A value for devices that claim graphics; the default for others.
fn claimed<T: Default>(options: &Options, value: T) -> T {
    if options.graphics { value } else { T::default() }
}

/// The stages with subgroup operations. Programs that require a graphics queue (wgpu) do not use subgroup operations
/// unless fragment shaders have them, too.
fn subgroup_stages(options: &Options) -> ShaderStageFlags {
    ShaderStageFlags::COMPUTE | claimed(options, ShaderStageFlags::FRAGMENT)
}

fn subgroup_operations() -> vk::SubgroupFeatureFlags {
    use vk::SubgroupFeatureFlags as F;
    let all =
        F::BASIC | F::VOTE | F::ARITHMETIC | F::BALLOT | F::SHUFFLE | F::SHUFFLE_RELATIVE | F::CLUSTERED | F::QUAD;
    all | F::ROTATE_KHR | F::ROTATE_CLUSTERED_KHR
}

fn driver_info(device: &driver::Properties) -> [std::ffi::c_char; vk::MAX_DRIVER_INFO_SIZE] {
    fixed(&format!("{} {}", env!("CARGO_PKG_VERSION"), device.backend))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// "Required Limits" of the specification for `descriptorIndexing`. No limit may be below the one of other sets.
    #[test]
    fn update_after_bind_limits_reach_the_required_minimum() {
        const MANY: u32 = 500_000;
        let DeviceProperties { core, v12, .. } = DeviceProperties::of(Options::get());
        macro_rules! check {
            ($($limit:ident: $required:expr, $other:ident;)*) => {$(
                let (has, other) = (v12.$limit, core.limits.$other);
                assert!(has >= $required && has >= other, "{}: {has}, others {other}", stringify!($limit));
            )*};
        }
        assert!(v12.max_update_after_bind_descriptors_in_all_pools >= MANY);
        check! {
            max_per_stage_descriptor_update_after_bind_samplers: MANY, max_per_stage_descriptor_samplers;
            max_per_stage_descriptor_update_after_bind_uniform_buffers: 12, max_per_stage_descriptor_uniform_buffers;
            max_per_stage_descriptor_update_after_bind_storage_buffers: MANY, max_per_stage_descriptor_storage_buffers;
            max_per_stage_descriptor_update_after_bind_sampled_images: MANY, max_per_stage_descriptor_sampled_images;
            max_per_stage_descriptor_update_after_bind_storage_images: MANY, max_per_stage_descriptor_storage_images;
            max_per_stage_update_after_bind_resources: MANY, max_per_stage_resources;
            max_descriptor_set_update_after_bind_samplers: MANY, max_descriptor_set_samplers;
            max_descriptor_set_update_after_bind_uniform_buffers: 72, max_descriptor_set_uniform_buffers;
            max_descriptor_set_update_after_bind_uniform_buffers_dynamic: 8, max_descriptor_set_uniform_buffers_dynamic;
            max_descriptor_set_update_after_bind_storage_buffers: MANY, max_descriptor_set_storage_buffers;
            max_descriptor_set_update_after_bind_storage_buffers_dynamic: 4, max_descriptor_set_storage_buffers_dynamic;
            max_descriptor_set_update_after_bind_sampled_images: MANY, max_descriptor_set_sampled_images;
            max_descriptor_set_update_after_bind_storage_images: MANY, max_descriptor_set_storage_images;
        }
    }
}
