//! `VkPhysicalDeviceLimits`, and limits of extensions.

use ash::vk::{self, ImageLayout, SampleCountFlags, TRUE};
use spelter_driver as driver;

/// Alignment, in bytes, of memory that is mapped, flushed or imported.
pub(super) const MAP_ALIGNMENT: u64 = 4096;

/// `nonCoherentAtomSize`: a cache line. All memory is coherent, but programs for other devices are written by this
/// limit.
pub(crate) const NON_COHERENT_ATOM_SIZE: u64 = 64;

/// `maxPushDescriptors`.
pub(crate) const MAX_PUSH_DESCRIPTORS: u32 = 256;

/// Image layouts for host copies: those that compute queues use. Layouts do not change where texels are stored.
pub(crate) const HOST_COPY_LAYOUTS: [ImageLayout; 9] = [
    ImageLayout::GENERAL,
    ImageLayout::SHADER_READ_ONLY_OPTIMAL,
    ImageLayout::TRANSFER_SRC_OPTIMAL,
    ImageLayout::TRANSFER_DST_OPTIMAL,
    ImageLayout::READ_ONLY_OPTIMAL,
    ImageLayout::DEPTH_READ_ONLY_OPTIMAL,
    ImageLayout::STENCIL_READ_ONLY_OPTIMAL,
    ImageLayout::DEPTH_STENCIL_READ_ONLY_OPTIMAL,
    ImageLayout::PREINITIALIZED,
];

/// The limits of a device, which may claim graphics.
pub(super) fn limits(graphics: bool) -> vk::PhysicalDeviceLimits {
    let mut limits = compute();
    if graphics {
        claim_graphics(&mut limits);
    }
    limits
}

fn compute() -> vk::PhysicalDeviceLimits {
    let limits = driver::Limits::of_devices();
    let one = SampleCountFlags::TYPE_1;
    vk::PhysicalDeviceLimits {
        max_image_dimension1_d: limits.max_image_dimension_1d,
        max_image_dimension2_d: limits.max_image_dimension_2d,
        max_image_dimension3_d: limits.max_image_dimension_3d,
        max_image_dimension_cube: limits.max_image_dimension_2d,
        max_image_array_layers: limits.max_image_array_layers,
        max_texel_buffer_elements: limits.max_texel_buffer_elements,
        max_uniform_buffer_range: limits.max_uniform_buffer_range,
        max_storage_buffer_range: limits.max_storage_buffer_range,
        max_push_constants_size: limits.max_push_constants_size,
        max_memory_allocation_count: 1 << 20,
        max_sampler_allocation_count: 1 << 20,
        buffer_image_granularity: 1,
        max_bound_descriptor_sets: limits.max_bound_descriptor_sets,
        max_per_stage_descriptor_samplers: limits.max_descriptor_set_samplers,
        max_per_stage_descriptor_uniform_buffers: limits.max_descriptor_set_uniform_buffers,
        max_per_stage_descriptor_storage_buffers: limits.max_descriptor_set_storage_buffers,
        max_per_stage_descriptor_sampled_images: limits.max_descriptor_set_sampled_images,
        max_per_stage_descriptor_storage_images: limits.max_descriptor_set_storage_images,
        max_per_stage_resources: limits.max_per_set_descriptors * limits.max_bound_descriptor_sets,
        max_descriptor_set_samplers: limits.max_descriptor_set_samplers,
        max_descriptor_set_uniform_buffers: limits.max_descriptor_set_uniform_buffers,
        max_descriptor_set_uniform_buffers_dynamic: limits.max_descriptor_set_uniform_buffers_dynamic,
        max_descriptor_set_storage_buffers: limits.max_descriptor_set_storage_buffers,
        max_descriptor_set_storage_buffers_dynamic: limits.max_descriptor_set_storage_buffers_dynamic,
        max_descriptor_set_sampled_images: limits.max_descriptor_set_sampled_images,
        max_descriptor_set_storage_images: limits.max_descriptor_set_storage_images,
        max_compute_shared_memory_size: limits.max_compute_shared_memory_size,
        max_compute_work_group_count: limits.max_compute_work_group_count,
        max_compute_work_group_invocations: limits.max_compute_work_group_invocations,
        max_compute_work_group_size: limits.max_compute_work_group_size,
        sub_texel_precision_bits: 8,
        mipmap_precision_bits: 8,
        max_sampler_lod_bias: limits.max_sampler_lod_bias,
        max_sampler_anisotropy: 1.0,
        min_memory_map_alignment: MAP_ALIGNMENT as usize,
        min_texel_buffer_offset_alignment: limits.min_texel_buffer_offset_alignment,
        min_uniform_buffer_offset_alignment: limits.min_uniform_buffer_offset_alignment,
        min_storage_buffer_offset_alignment: limits.min_storage_buffer_offset_alignment,
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
        non_coherent_atom_size: NON_COHERENT_ATOM_SIZE,
        ..Default::default()
    }
}

/// Input attachments, of a stage and of a set, that a device claims with graphics.
pub(super) const INPUT_ATTACHMENTS: [u32; 2] = [8, 64];

/// Raises the limits of graphics to the required minimum: programs calculate with them although they only compute.
/// Limits that shaders can observe are not raised: images have one sample.
fn claim_graphics(limits: &mut vk::PhysicalDeviceLimits) {
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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::options::Options;
    use crate::physical_device::properties::DeviceProperties;

    #[test]
    fn devices_that_claim_graphics_have_its_limits() {
        let options = Options { graphics: true, ..Options::get().clone() };
        let DeviceProperties { core, v12, .. } = DeviceProperties::of(&options);
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
