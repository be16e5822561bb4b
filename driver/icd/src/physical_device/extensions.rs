//! The supported extensions, with their commands.
//!
//! The tables follow the registry (`vk.xml`): a command whose name ends in an author tag belongs to the extensions that
//! list it here and exists if one of them is enabled, even if it is an alias of a core command.

use std::collections::HashSet;

use ash::vk::ExtensionProperties;

use crate::c::fixed;
use crate::options::Options;

/// Name, revision, commands.
pub(crate) type Extension = (&'static str, u32, &'static [&'static str]);

/// Extensions of the instance.
#[rustfmt::skip]
pub(crate) const INSTANCE: &[Extension] = &[
    ("VK_EXT_debug_report", 10, &[
        "vkCreateDebugReportCallbackEXT", "vkDestroyDebugReportCallbackEXT", "vkDebugReportMessageEXT",
    ]),
    ("VK_EXT_debug_utils", 2, &[
        "vkSetDebugUtilsObjectNameEXT", "vkSetDebugUtilsObjectTagEXT", "vkQueueBeginDebugUtilsLabelEXT",
        "vkQueueEndDebugUtilsLabelEXT", "vkQueueInsertDebugUtilsLabelEXT", "vkCmdBeginDebugUtilsLabelEXT",
        "vkCmdEndDebugUtilsLabelEXT", "vkCmdInsertDebugUtilsLabelEXT", "vkCreateDebugUtilsMessengerEXT",
        "vkDestroyDebugUtilsMessengerEXT", "vkSubmitDebugUtilsMessageEXT",
    ]),
    ("VK_KHR_device_group_creation", 1, &["vkEnumeratePhysicalDeviceGroupsKHR"]),
    ("VK_KHR_external_fence_capabilities", 1, &["vkGetPhysicalDeviceExternalFencePropertiesKHR"]),
    ("VK_KHR_external_memory_capabilities", 1, &["vkGetPhysicalDeviceExternalBufferPropertiesKHR"]),
    ("VK_KHR_external_semaphore_capabilities", 1, &["vkGetPhysicalDeviceExternalSemaphorePropertiesKHR"]),
    ("VK_KHR_get_physical_device_properties2", 2, &[
        "vkGetPhysicalDeviceFeatures2KHR", "vkGetPhysicalDeviceProperties2KHR",
        "vkGetPhysicalDeviceFormatProperties2KHR", "vkGetPhysicalDeviceImageFormatProperties2KHR",
        "vkGetPhysicalDeviceQueueFamilyProperties2KHR", "vkGetPhysicalDeviceMemoryProperties2KHR",
        "vkGetPhysicalDeviceSparseImageFormatProperties2KHR",
    ]),
];

/// Extensions of the device.
#[rustfmt::skip]
pub(crate) const DEVICE: &[Extension] = &[
    ("VK_EXT_calibrated_timestamps", 2, &[
        "vkGetPhysicalDeviceCalibrateableTimeDomainsEXT", "vkGetCalibratedTimestampsEXT",
    ]),
    ("VK_EXT_conditional_rendering", 2, &["vkCmdBeginConditionalRenderingEXT", "vkCmdEndConditionalRenderingEXT"]),
    ("VK_EXT_descriptor_indexing", 2, &[]),
    ("VK_EXT_external_memory_host", 1, &["vkGetMemoryHostPointerPropertiesEXT"]),
    ("VK_EXT_global_priority", 2, &[]),
    ("VK_EXT_global_priority_query", 1, &[]),
    ("VK_EXT_host_image_copy", 1, &[
        "vkCopyMemoryToImageEXT", "vkCopyImageToMemoryEXT", "vkCopyImageToImageEXT", "vkTransitionImageLayoutEXT",
        "vkGetImageSubresourceLayout2EXT",
    ]),
    ("VK_EXT_host_query_reset", 1, &["vkResetQueryPoolEXT"]),
    ("VK_EXT_image_robustness", 1, &[]),
    ("VK_EXT_inline_uniform_block", 1, &[]),
    ("VK_EXT_memory_budget", 1, &[]),
    ("VK_EXT_pipeline_creation_cache_control", 3, &[]),
    ("VK_EXT_pipeline_creation_feedback", 1, &[]),
    ("VK_EXT_pipeline_robustness", 1, &[]),
    ("VK_EXT_private_data", 1, &[
        "vkCreatePrivateDataSlotEXT", "vkDestroyPrivateDataSlotEXT", "vkSetPrivateDataEXT", "vkGetPrivateDataEXT",
    ]),
    ("VK_EXT_robustness2", 1, &[]),
    ("VK_EXT_scalar_block_layout", 1, &[]),
    ("VK_EXT_shader_atomic_float", 1, &[]),
    ("VK_EXT_shader_atomic_float2", 1, &[]),
    ("VK_EXT_shader_demote_to_helper_invocation", 1, &[]),
    ("VK_EXT_subgroup_size_control", 2, &[]),
    ("VK_EXT_texel_buffer_alignment", 1, &[]),
    ("VK_EXT_tooling_info", 1, &["vkGetPhysicalDeviceToolPropertiesEXT"]),
    ("VK_KHR_16bit_storage", 1, &[]),
    ("VK_KHR_8bit_storage", 1, &[]),
    ("VK_KHR_bind_memory2", 1, &["vkBindBufferMemory2KHR", "vkBindImageMemory2KHR"]),
    ("VK_KHR_buffer_device_address", 1, &[
        "vkGetBufferDeviceAddressKHR", "vkGetBufferOpaqueCaptureAddressKHR", "vkGetDeviceMemoryOpaqueCaptureAddressKHR",
    ]),
    ("VK_KHR_calibrated_timestamps", 1, &[
        "vkGetPhysicalDeviceCalibrateableTimeDomainsKHR", "vkGetCalibratedTimestampsKHR",
    ]),
    ("VK_KHR_copy_commands2", 1, &[
        "vkCmdCopyBuffer2KHR", "vkCmdCopyImage2KHR", "vkCmdCopyBufferToImage2KHR", "vkCmdCopyImageToBuffer2KHR",
        "vkCmdBlitImage2KHR", "vkCmdResolveImage2KHR",
    ]),
    ("VK_KHR_dedicated_allocation", 3, &[]),
    ("VK_KHR_descriptor_update_template", 1, &[
        "vkCreateDescriptorUpdateTemplateKHR", "vkDestroyDescriptorUpdateTemplateKHR",
        "vkUpdateDescriptorSetWithTemplateKHR",
    ]),
    ("VK_KHR_device_group", 4, &[
        "vkGetDeviceGroupPeerMemoryFeaturesKHR", "vkCmdSetDeviceMaskKHR", "vkCmdDispatchBaseKHR",
    ]),
    ("VK_KHR_driver_properties", 1, &[]),
    ("VK_KHR_external_fence", 1, &[]),
    ("VK_KHR_external_memory", 1, &[]),
    ("VK_KHR_external_semaphore", 1, &[]),
    ("VK_KHR_format_feature_flags2", 2, &[]),
    ("VK_KHR_get_memory_requirements2", 1, &[
        "vkGetImageMemoryRequirements2KHR", "vkGetBufferMemoryRequirements2KHR",
        "vkGetImageSparseMemoryRequirements2KHR",
    ]),
    ("VK_KHR_global_priority", 1, &[]),
    ("VK_KHR_image_format_list", 1, &[]),
    ("VK_KHR_maintenance1", 2, &["vkTrimCommandPoolKHR"]),
    ("VK_KHR_maintenance2", 1, &[]),
    ("VK_KHR_maintenance3", 1, &["vkGetDescriptorSetLayoutSupportKHR"]),
    ("VK_KHR_maintenance4", 2, &[
        "vkGetDeviceBufferMemoryRequirementsKHR", "vkGetDeviceImageMemoryRequirementsKHR",
        "vkGetDeviceImageSparseMemoryRequirementsKHR",
    ]),
    ("VK_KHR_maintenance5", 1, &[
        "vkCmdBindIndexBuffer2KHR", "vkGetRenderingAreaGranularityKHR", "vkGetDeviceImageSubresourceLayoutKHR",
        "vkGetImageSubresourceLayout2KHR",
    ]),
    ("VK_KHR_maintenance6", 1, &[
        "vkCmdBindDescriptorSets2KHR", "vkCmdPushConstants2KHR", "vkCmdPushDescriptorSet2KHR",
        "vkCmdPushDescriptorSetWithTemplate2KHR",
    ]),
    ("VK_KHR_map_memory2", 1, &["vkMapMemory2KHR", "vkUnmapMemory2KHR"]),
    ("VK_KHR_pipeline_executable_properties", 1, &[
        "vkGetPipelineExecutablePropertiesKHR", "vkGetPipelineExecutableStatisticsKHR",
        "vkGetPipelineExecutableInternalRepresentationsKHR",
    ]),
    ("VK_KHR_push_descriptor", 2, &["vkCmdPushDescriptorSetKHR", "vkCmdPushDescriptorSetWithTemplateKHR"]),
    ("VK_KHR_relaxed_block_layout", 1, &[]),
    ("VK_KHR_sampler_mirror_clamp_to_edge", 3, &[]),
    ("VK_KHR_separate_depth_stencil_layouts", 1, &[]),
    ("VK_KHR_shader_atomic_int64", 1, &[]),
    ("VK_KHR_shader_clock", 1, &[]),
    ("VK_KHR_shader_expect_assume", 1, &[]),
    ("VK_KHR_shader_float16_int8", 1, &[]),
    ("VK_KHR_shader_float_controls", 4, &[]),
    ("VK_KHR_shader_integer_dot_product", 1, &[]),
    ("VK_KHR_shader_maximal_reconvergence", 1, &[]),
    ("VK_KHR_shader_non_semantic_info", 1, &[]),
    ("VK_KHR_shader_subgroup_extended_types", 1, &[]),
    ("VK_KHR_shader_subgroup_rotate", 2, &[]),
    ("VK_KHR_shader_subgroup_uniform_control_flow", 1, &[]),
    ("VK_KHR_shader_terminate_invocation", 1, &[]),
    ("VK_KHR_spirv_1_4", 1, &[]),
    ("VK_KHR_storage_buffer_storage_class", 1, &[]),
    ("VK_KHR_synchronization2", 1, &[
        "vkCmdSetEvent2KHR", "vkCmdResetEvent2KHR", "vkCmdWaitEvents2KHR", "vkCmdPipelineBarrier2KHR",
        "vkCmdWriteTimestamp2KHR", "vkQueueSubmit2KHR",
    ]),
    ("VK_KHR_timeline_semaphore", 2, &["vkGetSemaphoreCounterValueKHR", "vkWaitSemaphoresKHR", "vkSignalSemaphoreKHR"]),
    ("VK_KHR_uniform_buffer_standard_layout", 1, &[]),
    ("VK_KHR_variable_pointers", 1, &[]),
    ("VK_KHR_vulkan_memory_model", 3, &[]),
    ("VK_KHR_workgroup_memory_explicit_layout", 1, &[]),
    ("VK_KHR_zero_initialize_workgroup_memory", 1, &[]),
];

/// Extensions of devices that claim graphics: programs enable them before they create any graphics object (Dawn).
#[rustfmt::skip]
const GRAPHICS: &[Extension] = &[
    ("VK_KHR_create_renderpass2", 1, &[
        "vkCreateRenderPass2KHR", "vkCmdBeginRenderPass2KHR", "vkCmdNextSubpass2KHR", "vkCmdEndRenderPass2KHR",
    ]),
    ("VK_KHR_depth_stencil_resolve", 1, &[]),
    ("VK_KHR_dynamic_rendering", 1, &["vkCmdBeginRenderingKHR", "vkCmdEndRenderingKHR"]),
];

/// The device extensions for these options.
pub(crate) fn of_device(options: &Options) -> impl Iterator<Item = &'static Extension> {
    DEVICE.iter().chain(if options.graphics { GRAPHICS } else { &[] })
}

/// The extensions as `VkExtensionProperties`.
pub(crate) fn list<'a>(of: impl Iterator<Item = &'a Extension>) -> impl ExactSizeIterator<Item = ExtensionProperties> {
    let properties =
        |&(name, spec_version, _): &Extension| ExtensionProperties { extension_name: fixed(name), spec_version };
    of.map(properties).collect::<Vec<_>>().into_iter()
}

/// The name without its KHR or EXT tag; `None` if it has neither.
pub(crate) fn plain(name: &str) -> Option<&str> {
    name.strip_suffix("KHR").or(name.strip_suffix("EXT"))
}

/// Whether a command exists: core commands do, and those of enabled extensions.
pub(crate) fn offers<'a>(
    of: impl IntoIterator<Item = &'a Extension>,
    enabled: &HashSet<String>,
    command: &str,
) -> bool {
    let with_it = |(name, _, all): &Extension| all.contains(&command) && enabled.contains(*name);
    plain(command).is_none() || of.into_iter().any(with_it)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn extension_commands_exist_only_with_their_extension() {
        let enabled = |names: &[&str]| names.iter().map(|&name| name.to_owned()).collect::<HashSet<_>>();
        assert!(offers(DEVICE, &enabled(&[]), "vkCmdDispatch"));
        assert!(!offers(DEVICE, &enabled(&[]), "vkQueueSubmit2KHR"));
        assert!(offers(DEVICE, &enabled(&["VK_KHR_synchronization2"]), "vkQueueSubmit2KHR"));
        assert!(!offers(DEVICE, &enabled(&["VK_KHR_synchronization2"]), "vkCmdPushDescriptorSetKHR"));
        assert!(!offers(DEVICE, &enabled(&["VK_KHR_swapchain"]), "vkCreateSwapchainKHR"));
    }
}
