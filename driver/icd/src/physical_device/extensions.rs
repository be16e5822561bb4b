//! Which extensions there are.

use ash::vk::ExtensionProperties;

use crate::c::fixed;

/// Instance extensions with their revisions.
pub(crate) const INSTANCE: [(&str, u32); 5] = [
    ("VK_EXT_debug_report", 10),
    ("VK_EXT_debug_utils", 2),
    ("VK_KHR_device_group_creation", 1),
    ("VK_KHR_external_memory_capabilities", 1),
    ("VK_KHR_get_physical_device_properties2", 2),
];

/// Device extensions with their revisions.
pub(crate) const DEVICE: [(&str, u32); 53] = [
    ("VK_EXT_conditional_rendering", 2),
    ("VK_EXT_descriptor_indexing", 2),
    ("VK_EXT_external_memory_host", 1),
    ("VK_EXT_host_query_reset", 1),
    ("VK_EXT_image_robustness", 1),
    ("VK_EXT_inline_uniform_block", 1),
    ("VK_EXT_memory_budget", 1),
    ("VK_EXT_pipeline_creation_cache_control", 3),
    ("VK_EXT_pipeline_creation_feedback", 1),
    ("VK_EXT_private_data", 1),
    ("VK_EXT_robustness2", 1),
    ("VK_EXT_scalar_block_layout", 1),
    ("VK_EXT_shader_atomic_float", 1),
    ("VK_EXT_shader_atomic_float2", 1),
    ("VK_EXT_subgroup_size_control", 2),
    ("VK_EXT_tooling_info", 1),
    ("VK_KHR_16bit_storage", 1),
    ("VK_KHR_8bit_storage", 1),
    ("VK_KHR_bind_memory2", 1),
    ("VK_KHR_buffer_device_address", 1),
    ("VK_KHR_copy_commands2", 1),
    ("VK_KHR_dedicated_allocation", 3),
    ("VK_KHR_descriptor_update_template", 1),
    ("VK_KHR_device_group", 4),
    ("VK_KHR_driver_properties", 1),
    ("VK_KHR_external_memory", 1),
    ("VK_KHR_format_feature_flags2", 2),
    ("VK_KHR_get_memory_requirements2", 1),
    ("VK_KHR_image_format_list", 1),
    ("VK_KHR_maintenance1", 2),
    ("VK_KHR_maintenance2", 1),
    ("VK_KHR_maintenance3", 1),
    ("VK_KHR_maintenance4", 2),
    ("VK_KHR_pipeline_executable_properties", 1),
    ("VK_KHR_push_descriptor", 2),
    ("VK_KHR_relaxed_block_layout", 1),
    ("VK_KHR_sampler_mirror_clamp_to_edge", 3),
    ("VK_KHR_shader_atomic_int64", 1),
    ("VK_KHR_shader_expect_assume", 1),
    ("VK_KHR_shader_float16_int8", 1),
    ("VK_KHR_shader_float_controls", 4),
    ("VK_KHR_shader_integer_dot_product", 1),
    ("VK_KHR_shader_non_semantic_info", 1),
    ("VK_KHR_shader_subgroup_extended_types", 1),
    ("VK_KHR_spirv_1_4", 1),
    ("VK_KHR_storage_buffer_storage_class", 1),
    ("VK_KHR_synchronization2", 1),
    ("VK_KHR_timeline_semaphore", 2),
    ("VK_KHR_uniform_buffer_standard_layout", 1),
    ("VK_KHR_variable_pointers", 1),
    ("VK_KHR_vulkan_memory_model", 3),
    ("VK_KHR_workgroup_memory_explicit_layout", 1),
    ("VK_KHR_zero_initialize_workgroup_memory", 1),
];

/// As structures.
pub(crate) fn list(of: &[(&str, u32)]) -> impl ExactSizeIterator<Item = ExtensionProperties> {
    of.iter().map(|&(name, spec_version)| ExtensionProperties { extension_name: fixed(name), spec_version })
}

/// The extensions of which a command is; none if it is of a core version. Names that a later core version took over lose
/// their suffix there, so a suffix is enough to know the rest.
pub(crate) fn of_command(name: &str) -> &'static [&'static str] {
    let commands: [(&[&str], &[&str]); 5] = [
        (
            &[
                "vkGetPipelineExecutablePropertiesKHR",
                "vkGetPipelineExecutableStatisticsKHR",
                "vkGetPipelineExecutableInternalRepresentationsKHR",
            ],
            &["VK_KHR_pipeline_executable_properties"],
        ),
        (&["vkCmdPushDescriptorSetKHR", "vkCmdPushDescriptorSetWithTemplateKHR"], &["VK_KHR_push_descriptor"]),
        (&["vkGetMemoryHostPointerPropertiesEXT"], &["VK_EXT_external_memory_host"]),
        (&["vkGetCalibratedTimestampsEXT"], &["VK_EXT_calibrated_timestamps"]),
        (&["vkCmdBeginConditionalRenderingEXT", "vkCmdEndConditionalRenderingEXT"], &["VK_EXT_conditional_rendering"]),
    ];
    commands.into_iter().find(|(names, _)| names.contains(&name)).map_or(&[], |(_, extensions)| extensions)
}
