//! What the device says about itself: names, versions, limits.

use ash::vk::{self, SampleCountFlags, ShaderStageFlags, TRUE};
use spelter_driver as driver;

use crate::c::fixed;
use crate::c::version_1_4::PhysicalDeviceVulkan14Properties;
use crate::options::Options;

/// Alignment, in bytes, of memory that is mapped, flushed or imported.
pub(crate) const MAP_ALIGNMENT: u64 = 4096;

/// Bytes of an inline uniform block, and of those of a pipeline layout.
pub(crate) const MAX_INLINE_BYTES: u32 = 4096;

/// Properties by the version that they came with.
#[derive(Clone, Copy)]
pub(crate) struct Described {
    pub(crate) core: vk::PhysicalDeviceProperties,
    pub(crate) v11: vk::PhysicalDeviceVulkan11Properties<'static>,
    pub(crate) v12: vk::PhysicalDeviceVulkan12Properties<'static>,
    pub(crate) v13: vk::PhysicalDeviceVulkan13Properties<'static>,
    pub(crate) v14: PhysicalDeviceVulkan14Properties<'static>,
    pub(crate) host: vk::PhysicalDeviceExternalMemoryHostPropertiesEXT<'static>,
    pub(crate) robustness2: vk::PhysicalDeviceRobustness2PropertiesEXT<'static>,
}

/// What a device with those options is like.
pub(crate) fn describe(options: &Options) -> Described {
    let of_device = options.device.properties();
    Described {
        core: core(options, &of_device),
        v11: v11(options, &of_device),
        v12: v12(options, &of_device),
        v13: v13(),
        v14: v14(&of_device),
        host: vk::PhysicalDeviceExternalMemoryHostPropertiesEXT::default()
            .min_imported_host_pointer_alignment(MAP_ALIGNMENT),
        robustness2: vk::PhysicalDeviceRobustness2PropertiesEXT::default()
            .robust_storage_buffer_access_size_alignment(1)
            .robust_uniform_buffer_access_size_alignment(1),
    }
}

/// The device's and the driver's identity: the version, and what runs kernels, since their code is in pipeline caches.
pub(crate) fn uuid(of_device: &driver::Properties) -> [u8; vk::UUID_SIZE] {
    let mut uuid = *b"spelter\0\0\0\0\0\0\0\0\0";
    uuid[8..12].copy_from_slice(&of_device.driver_version.to_le_bytes());
    for (to, from) in uuid[12..].iter_mut().zip(of_device.backend.name().bytes().rev()) {
        *to = from;
    }
    uuid
}

fn core(options: &Options, of_device: &driver::Properties) -> vk::PhysicalDeviceProperties {
    let mut limits = limits();
    if options.graphics {
        graphics(&mut limits);
    }
    vk::PhysicalDeviceProperties {
        api_version: vk::make_api_version(0, 1, 3, vk::HEADER_VERSION),
        driver_version: of_device.driver_version,
        // Nobody gave this driver a number.
        vendor_id: 0,
        device_id: 0,
        device_type: of_device.device_type,
        device_name: fixed(&of_device.device_name),
        pipeline_cache_uuid: uuid(of_device),
        limits,
        sparse_properties: Default::default(),
    }
}

fn limits() -> vk::PhysicalDeviceLimits {
    let has = driver::Limits::of_devices();
    let one = SampleCountFlags::TYPE_1;
    vk::PhysicalDeviceLimits {
        max_image_dimension1_d: has.max_image_dimension_1d,
        max_image_dimension2_d: has.max_image_dimension_2d,
        max_image_dimension3_d: has.max_image_dimension_3d,
        max_image_dimension_cube: has.max_image_dimension_2d,
        max_image_array_layers: has.max_image_array_layers,
        max_texel_buffer_elements: has.max_texel_buffer_elements,
        max_uniform_buffer_range: has.max_uniform_buffer_range,
        max_storage_buffer_range: has.max_storage_buffer_range,
        max_push_constants_size: has.max_push_constants_size,
        max_memory_allocation_count: 1 << 20,
        max_sampler_allocation_count: 1 << 20,
        buffer_image_granularity: 1,
        max_bound_descriptor_sets: has.max_bound_descriptor_sets,
        max_per_stage_descriptor_samplers: has.max_descriptor_set_samplers,
        max_per_stage_descriptor_uniform_buffers: has.max_descriptor_set_uniform_buffers,
        max_per_stage_descriptor_storage_buffers: has.max_descriptor_set_storage_buffers,
        max_per_stage_descriptor_sampled_images: has.max_descriptor_set_sampled_images,
        max_per_stage_descriptor_storage_images: has.max_descriptor_set_storage_images,
        max_per_stage_resources: has.max_per_set_descriptors * has.max_bound_descriptor_sets,
        max_descriptor_set_samplers: has.max_descriptor_set_samplers,
        max_descriptor_set_uniform_buffers: has.max_descriptor_set_uniform_buffers,
        max_descriptor_set_uniform_buffers_dynamic: has.max_descriptor_set_uniform_buffers_dynamic,
        max_descriptor_set_storage_buffers: has.max_descriptor_set_storage_buffers,
        max_descriptor_set_storage_buffers_dynamic: has.max_descriptor_set_storage_buffers_dynamic,
        max_descriptor_set_sampled_images: has.max_descriptor_set_sampled_images,
        max_descriptor_set_storage_images: has.max_descriptor_set_storage_images,
        max_compute_shared_memory_size: has.max_compute_shared_memory_size,
        max_compute_work_group_count: has.max_compute_work_group_count,
        max_compute_work_group_invocations: has.max_compute_work_group_invocations,
        max_compute_work_group_size: has.max_compute_work_group_size,
        sub_texel_precision_bits: 8,
        mipmap_precision_bits: 8,
        max_sampler_lod_bias: has.max_sampler_lod_bias,
        max_sampler_anisotropy: 1.0,
        min_memory_map_alignment: MAP_ALIGNMENT as usize,
        min_texel_buffer_offset_alignment: has.min_texel_buffer_offset_alignment,
        min_uniform_buffer_offset_alignment: has.min_uniform_buffer_offset_alignment,
        min_storage_buffer_offset_alignment: has.min_storage_buffer_offset_alignment,
        min_texel_offset: -8,
        max_texel_offset: 7,
        min_texel_gather_offset: -32,
        max_texel_gather_offset: 31,
        sampled_image_color_sample_counts: one,
        sampled_image_integer_sample_counts: one,
        sampled_image_depth_sample_counts: one,
        sampled_image_stencil_sample_counts: one,
        storage_image_sample_counts: one,
        max_sample_mask_words: 1,
        timestamp_compute_and_graphics: TRUE,
        timestamp_period: 1.0,
        discrete_queue_priorities: 2,
        optimal_buffer_copy_offset_alignment: 64,
        optimal_buffer_copy_row_pitch_alignment: 64,
        non_coherent_atom_size: 64,
        ..Default::default()
    }
}

/// Input attachments that a device which claims graphics claims, of a stage and of a set.
const INPUT_ATTACHMENTS: [u32; 2] = [8, 64];

/// The least that Vulkan asks of devices that draw: programs compute with these numbers before they compute with us.
/// What shaders read is told as it is: images have one sample.
fn graphics(limits: &mut vk::PhysicalDeviceLimits) {
    let samples = SampleCountFlags::TYPE_1 | SampleCountFlags::TYPE_4;
    limits.max_vertex_input_attributes = 16;
    limits.max_vertex_input_bindings = 16;
    limits.max_vertex_input_attribute_offset = 2047;
    limits.max_vertex_input_binding_stride = 2048;
    limits.max_vertex_output_components = 128;
    limits.max_fragment_input_components = 128;
    limits.max_fragment_output_attachments = 8;
    limits.max_fragment_combined_output_resources = limits.max_per_stage_descriptor_storage_buffers;
    [limits.max_per_stage_descriptor_input_attachments, limits.max_descriptor_set_input_attachments] =
        INPUT_ATTACHMENTS;
    limits.sub_pixel_precision_bits = 4;
    limits.max_draw_indexed_index_value = u32::MAX;
    limits.max_draw_indirect_count = 1;
    limits.max_viewports = 1;
    limits.max_viewport_dimensions = [limits.max_image_dimension2_d; 2];
    limits.viewport_bounds_range = [-32768.0, 32767.0];
    limits.max_framebuffer_width = limits.max_image_dimension2_d;
    limits.max_framebuffer_height = limits.max_image_dimension2_d;
    limits.max_framebuffer_layers = 256;
    limits.framebuffer_color_sample_counts = samples;
    limits.framebuffer_depth_sample_counts = samples;
    limits.framebuffer_stencil_sample_counts = samples;
    limits.framebuffer_no_attachments_sample_counts = samples;
    limits.max_color_attachments = 8;
    limits.point_size_range = [1.0; 2];
    limits.line_width_range = [1.0; 2];
    limits.standard_sample_locations = TRUE;
    // As `sampleRateShading` asks.
    limits.sub_pixel_interpolation_offset_bits = 4;
    (limits.min_interpolation_offset, limits.max_interpolation_offset) = (-0.5, 0.4375);
}

fn v11(options: &Options, of_device: &driver::Properties) -> vk::PhysicalDeviceVulkan11Properties<'static> {
    let has = driver::Limits::of_devices();
    // Programs that want a graphics queue do without subgroups unless fragments have them, too (wgpu).
    let fragment = if options.graphics { ShaderStageFlags::FRAGMENT } else { ShaderStageFlags::empty() };
    vk::PhysicalDeviceVulkan11Properties {
        device_uuid: uuid(of_device),
        driver_uuid: uuid(of_device),
        subgroup_size: has.subgroup_size,
        subgroup_supported_stages: ShaderStageFlags::COMPUTE | fragment,
        subgroup_supported_operations: subgroup_operations(),
        subgroup_quad_operations_in_all_stages: TRUE,
        point_clipping_behavior: vk::PointClippingBehavior::ALL_CLIP_PLANES,
        max_multiview_view_count: 0,
        max_per_set_descriptors: has.max_per_set_descriptors,
        max_memory_allocation_size: has.max_buffer_size,
        ..Default::default()
    }
}

/// What lanes do together.
fn subgroup_operations() -> vk::SubgroupFeatureFlags {
    use vk::SubgroupFeatureFlags as F;
    let all =
        F::BASIC | F::VOTE | F::ARITHMETIC | F::BALLOT | F::SHUFFLE | F::SHUFFLE_RELATIVE | F::CLUSTERED | F::QUAD;
    all | F::ROTATE_KHR | F::ROTATE_CLUSTERED_KHR
}

fn v12(options: &Options, of_device: &driver::Properties) -> vk::PhysicalDeviceVulkan12Properties<'static> {
    let (mut samples, mut resolve, mut attachments) = Default::default();
    if options.graphics {
        (samples, resolve) = (SampleCountFlags::TYPE_1, vk::ResolveModeFlags::SAMPLE_ZERO);
        attachments = INPUT_ATTACHMENTS;
    }
    let [of_stage, of_set] = attachments;
    vk::PhysicalDeviceVulkan12Properties {
        // The registry has no number for this driver; another's would switch on workarounds for that one.
        driver_id: vk::DriverId::from_raw(0),
        driver_name: fixed("spelter"),
        driver_info: fixed(&format!("{} {}", env!("CARGO_PKG_VERSION"), of_device.backend)),
        // None is claimed: the least that the field may hold.
        conformance_version: vk::ConformanceVersion::default(),
        denorm_behavior_independence: vk::ShaderFloatControlsIndependence::ALL,
        rounding_mode_independence: vk::ShaderFloatControlsIndependence::ALL,
        shader_signed_zero_inf_nan_preserve_float16: TRUE,
        shader_signed_zero_inf_nan_preserve_float32: TRUE,
        shader_signed_zero_inf_nan_preserve_float64: TRUE,
        shader_denorm_preserve_float16: TRUE,
        shader_denorm_preserve_float32: TRUE,
        shader_denorm_preserve_float64: TRUE,
        shader_rounding_mode_rte_float16: TRUE,
        shader_rounding_mode_rte_float32: TRUE,
        shader_rounding_mode_rte_float64: TRUE,
        robust_buffer_access_update_after_bind: TRUE,
        max_timeline_semaphore_value_difference: u64::MAX >> 1,
        framebuffer_integer_color_sample_counts: samples,
        supported_depth_resolve_modes: resolve,
        supported_stencil_resolve_modes: resolve,
        max_per_stage_descriptor_update_after_bind_input_attachments: of_stage,
        max_descriptor_set_update_after_bind_input_attachments: of_set,
        ..update_after_bind()
    }
}

/// Descriptors that may be written after they were bound are counted as others are.
fn update_after_bind() -> vk::PhysicalDeviceVulkan12Properties<'static> {
    let has = driver::Limits::of_devices();
    vk::PhysicalDeviceVulkan12Properties {
        max_update_after_bind_descriptors_in_all_pools: u32::MAX,
        max_per_stage_descriptor_update_after_bind_samplers: has.max_descriptor_set_samplers,
        max_per_stage_descriptor_update_after_bind_uniform_buffers: has.max_descriptor_set_uniform_buffers,
        max_per_stage_descriptor_update_after_bind_storage_buffers: has.max_descriptor_set_storage_buffers,
        max_per_stage_descriptor_update_after_bind_sampled_images: has.max_descriptor_set_sampled_images,
        max_per_stage_descriptor_update_after_bind_storage_images: has.max_descriptor_set_storage_images,
        max_per_stage_update_after_bind_resources: has.max_per_set_descriptors * has.max_bound_descriptor_sets,
        max_descriptor_set_update_after_bind_samplers: has.max_descriptor_set_samplers,
        max_descriptor_set_update_after_bind_uniform_buffers: has.max_descriptor_set_uniform_buffers,
        max_descriptor_set_update_after_bind_uniform_buffers_dynamic: has.max_descriptor_set_uniform_buffers_dynamic,
        max_descriptor_set_update_after_bind_storage_buffers: has.max_descriptor_set_storage_buffers,
        max_descriptor_set_update_after_bind_storage_buffers_dynamic: has.max_descriptor_set_storage_buffers_dynamic,
        max_descriptor_set_update_after_bind_sampled_images: has.max_descriptor_set_sampled_images,
        max_descriptor_set_update_after_bind_storage_images: has.max_descriptor_set_storage_images,
        ..Default::default()
    }
}

fn v13() -> vk::PhysicalDeviceVulkan13Properties<'static> {
    let has = driver::Limits::of_devices();
    let alignment = has.min_texel_buffer_offset_alignment;
    vk::PhysicalDeviceVulkan13Properties {
        min_subgroup_size: has.subgroup_size,
        max_subgroup_size: has.subgroup_size,
        max_compute_workgroup_subgroups: has.max_compute_work_group_invocations / has.subgroup_size,
        required_subgroup_size_stages: ShaderStageFlags::COMPUTE,
        max_inline_uniform_block_size: MAX_INLINE_BYTES,
        max_per_stage_descriptor_inline_uniform_blocks: 16,
        max_per_stage_descriptor_update_after_bind_inline_uniform_blocks: 16,
        max_descriptor_set_inline_uniform_blocks: 16,
        max_descriptor_set_update_after_bind_inline_uniform_blocks: 16,
        max_inline_uniform_total_size: 16 * MAX_INLINE_BYTES,
        storage_texel_buffer_offset_alignment_bytes: alignment,
        uniform_texel_buffer_offset_alignment_bytes: alignment,
        max_buffer_size: has.max_buffer_size,
        ..Default::default()
    }
}

/// Pipelines are robust, whatever they ask for; nothing is drawn.
fn v14(of_device: &driver::Properties) -> PhysicalDeviceVulkan14Properties<'static> {
    let buffers = vk::PipelineRobustnessBufferBehaviorEXT::ROBUST_BUFFER_ACCESS_2;
    PhysicalDeviceVulkan14Properties {
        max_push_descriptors: crate::descriptor::MAX_PUSHED,
        max_combined_image_sampler_descriptor_count: 1,
        default_robustness_storage_buffers: buffers,
        default_robustness_uniform_buffers: buffers,
        default_robustness_vertex_inputs: buffers,
        default_robustness_images: vk::PipelineRobustnessImageBehaviorEXT::ROBUST_IMAGE_ACCESS_2,
        optimal_tiling_layout_uuid: uuid(of_device),
        identical_memory_type_requirements: TRUE,
        ..PhysicalDeviceVulkan14Properties::NONE
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// "Required Limits" of the specification, for what comes with `descriptorIndexing`.
    #[test]
    fn what_is_updated_after_binding_comes_in_the_numbers_that_vulkan_asks_for() {
        let Described { core, v12, .. } = describe(Options::get());
        let most = 500_000;
        for (name, has, wanted, before) in [
            ("all pools", v12.max_update_after_bind_descriptors_in_all_pools, most, 0),
            (
                "samplers of a stage",
                v12.max_per_stage_descriptor_update_after_bind_samplers,
                most,
                core.limits.max_per_stage_descriptor_samplers,
            ),
            (
                "uniform buffers of a stage",
                v12.max_per_stage_descriptor_update_after_bind_uniform_buffers,
                12,
                core.limits.max_per_stage_descriptor_uniform_buffers,
            ),
            (
                "storage buffers of a stage",
                v12.max_per_stage_descriptor_update_after_bind_storage_buffers,
                most,
                core.limits.max_per_stage_descriptor_storage_buffers,
            ),
            (
                "sampled images of a stage",
                v12.max_per_stage_descriptor_update_after_bind_sampled_images,
                most,
                core.limits.max_per_stage_descriptor_sampled_images,
            ),
            (
                "storage images of a stage",
                v12.max_per_stage_descriptor_update_after_bind_storage_images,
                most,
                core.limits.max_per_stage_descriptor_storage_images,
            ),
            (
                "resources of a stage",
                v12.max_per_stage_update_after_bind_resources,
                most,
                core.limits.max_per_stage_resources,
            ),
            (
                "samplers",
                v12.max_descriptor_set_update_after_bind_samplers,
                most,
                core.limits.max_descriptor_set_samplers,
            ),
            (
                "uniform buffers",
                v12.max_descriptor_set_update_after_bind_uniform_buffers,
                72,
                core.limits.max_descriptor_set_uniform_buffers,
            ),
            (
                "dynamic uniform buffers",
                v12.max_descriptor_set_update_after_bind_uniform_buffers_dynamic,
                8,
                core.limits.max_descriptor_set_uniform_buffers_dynamic,
            ),
            (
                "storage buffers",
                v12.max_descriptor_set_update_after_bind_storage_buffers,
                most,
                core.limits.max_descriptor_set_storage_buffers,
            ),
            (
                "dynamic storage buffers",
                v12.max_descriptor_set_update_after_bind_storage_buffers_dynamic,
                4,
                core.limits.max_descriptor_set_storage_buffers_dynamic,
            ),
            (
                "sampled images",
                v12.max_descriptor_set_update_after_bind_sampled_images,
                most,
                core.limits.max_descriptor_set_sampled_images,
            ),
            (
                "storage images",
                v12.max_descriptor_set_update_after_bind_storage_images,
                most,
                core.limits.max_descriptor_set_storage_images,
            ),
        ] {
            assert!(has >= wanted && has >= before, "{name}: {has}, {wanted} are asked for, {before} of others");
        }
    }

    #[test]
    fn a_device_that_claims_graphics_has_limits_for_it() {
        let options = Options { graphics: true, ..Options::get().clone() };
        let Described { core, v12, .. } = describe(&options);
        let (limits, samples) = (core.limits, SampleCountFlags::TYPE_1 | SampleCountFlags::TYPE_4);
        assert!(limits.min_interpolation_offset <= -0.5 && limits.sub_pixel_interpolation_offset_bits >= 4);
        let step = 1.0 / f32::from(1u16 << limits.sub_pixel_interpolation_offset_bits);
        assert!(limits.max_interpolation_offset >= 0.5 - step);
        let of_framebuffers = [
            limits.framebuffer_color_sample_counts,
            limits.framebuffer_depth_sample_counts,
            limits.framebuffer_stencil_sample_counts,
            limits.framebuffer_no_attachments_sample_counts,
        ];
        assert!(of_framebuffers.into_iter().all(|counts| counts.contains(samples)));
        assert!(v12.framebuffer_integer_color_sample_counts.contains(SampleCountFlags::TYPE_1));
        assert!(limits.max_vertex_output_components > 0 && limits.max_fragment_combined_output_resources > 0);
        let attachments = v12.max_per_stage_descriptor_update_after_bind_input_attachments;
        assert!(attachments >= limits.max_per_stage_descriptor_input_attachments);
    }
}
