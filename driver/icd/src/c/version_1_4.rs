//! `VkPhysicalDeviceVulkan14Features` and `VkPhysicalDeviceVulkan14Properties`, which this version of `ash` does not
//! have.
//!
//! # Safety
//!
//! Fields, their order and their types are those of the registry, as are the tags.

use std::ffi::c_void;
use std::marker::PhantomData;

use ash::vk::{self, Bool32, StructureType, TaggedStructure};

macro_rules! structure {
    ($name:ident = $tag:literal { $($field:ident: $ty:ty,)* }) => {
        #[doc = concat!("`Vk", stringify!($name), "`")]
        #[repr(C)]
        #[derive(Clone, Copy, Debug)]
        pub(crate) struct $name<'a> {
            pub(crate) s_type: StructureType,
            pub(crate) p_next: *mut c_void,
            $(pub(crate) $field: $ty,)*
            pub(crate) _marker: PhantomData<&'a ()>,
        }

        impl $name<'static> {
            /// The structure with every other field zero.
            pub(crate) const NONE: Self = {
                // SAFETY: zeros are a value of every field: numbers, flags, and pointers that are null.
                let mut none: Self = unsafe { std::mem::zeroed() };
                none.s_type = StructureType::from_raw($tag);
                none
            };
        }

        impl Default for $name<'static> {
            fn default() -> Self {
                Self::NONE
            }
        }

        // SAFETY: the pointers are those of callers, and only `c` follows them; in the values that are kept they are
        // null.
        unsafe impl Send for $name<'_> {}
        // SAFETY: as above.
        unsafe impl Sync for $name<'_> {}

        // SAFETY: it begins with `sType` and `pNext`, and this is its tag.
        unsafe impl TaggedStructure for $name<'_> {
            const STRUCTURE_TYPE: StructureType = StructureType::from_raw($tag);
        }
    };
}

structure! {
    PhysicalDeviceVulkan14Features = 55 {
        global_priority_query: Bool32,
        shader_subgroup_rotate: Bool32,
        shader_subgroup_rotate_clustered: Bool32,
        shader_float_controls2: Bool32,
        shader_expect_assume: Bool32,
        rectangular_lines: Bool32,
        bresenham_lines: Bool32,
        smooth_lines: Bool32,
        stippled_rectangular_lines: Bool32,
        stippled_bresenham_lines: Bool32,
        stippled_smooth_lines: Bool32,
        vertex_attribute_instance_rate_divisor: Bool32,
        vertex_attribute_instance_rate_zero_divisor: Bool32,
        index_type_uint8: Bool32,
        dynamic_rendering_local_read: Bool32,
        maintenance5: Bool32,
        maintenance6: Bool32,
        pipeline_protected_access: Bool32,
        pipeline_robustness: Bool32,
        host_image_copy: Bool32,
        push_descriptor: Bool32,
    }
}

structure! {
    PhysicalDeviceVulkan14Properties = 56 {
        line_sub_pixel_precision_bits: u32,
        max_vertex_attrib_divisor: u32,
        supports_non_zero_first_instance: Bool32,
        max_push_descriptors: u32,
        dynamic_rendering_local_read_depth_stencil_attachments: Bool32,
        dynamic_rendering_local_read_multisampled_attachments: Bool32,
        early_fragment_multisample_coverage_after_sample_counting: Bool32,
        early_fragment_sample_mask_test_before_sample_counting: Bool32,
        depth_stencil_swizzle_one_support: Bool32,
        polygon_mode_point_size: Bool32,
        non_strict_single_pixel_wide_lines_use_parallelogram: Bool32,
        non_strict_wide_lines_use_parallelogram: Bool32,
        block_texel_view_compatible_multiple_layers: Bool32,
        max_combined_image_sampler_descriptor_count: u32,
        fragment_shading_rate_clamp_combiner_inputs: Bool32,
        default_robustness_storage_buffers: vk::PipelineRobustnessBufferBehaviorEXT,
        default_robustness_uniform_buffers: vk::PipelineRobustnessBufferBehaviorEXT,
        default_robustness_vertex_inputs: vk::PipelineRobustnessBufferBehaviorEXT,
        default_robustness_images: vk::PipelineRobustnessImageBehaviorEXT,
        copy_src_layout_count: u32,
        p_copy_src_layouts: *mut vk::ImageLayout,
        copy_dst_layout_count: u32,
        p_copy_dst_layouts: *mut vk::ImageLayout,
        optimal_tiling_layout_uuid: [u8; vk::UUID_SIZE],
        identical_memory_type_requirements: Bool32,
    }
}

#[cfg(test)]
mod tests {
    use std::mem::{offset_of, size_of};

    use super::*;

    /// Compares with the sizes and offsets of a C compiler for a 64-bit target.
    #[test]
    fn the_structures_are_laid_out_as_in_c() {
        assert_eq!(size_of::<PhysicalDeviceVulkan14Features<'_>>(), 16 + 21 * 4 + 4);
        assert_eq!(offset_of!(PhysicalDeviceVulkan14Features<'_>, push_descriptor), 96);
        assert_eq!(offset_of!(PhysicalDeviceVulkan14Properties<'_>, p_copy_src_layouts), 96);
        assert_eq!(offset_of!(PhysicalDeviceVulkan14Properties<'_>, optimal_tiling_layout_uuid), 120);
        assert_eq!(size_of::<PhysicalDeviceVulkan14Properties<'_>>(), 144);
    }
}
