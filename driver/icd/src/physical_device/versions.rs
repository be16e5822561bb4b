//! The Vulkan version of each device-level command: `vkGetDeviceProcAddr` of a device with `maintenance5` returns no
//! command of a version above the one that the instance asked for.

/// Minor versions with their new commands; all others are of 1.0 or of extensions.
#[rustfmt::skip]
const SINCE: [(u32, &[&str]); 3] = [
    (1, &[
        "vkBindBufferMemory2", "vkBindImageMemory2", "vkGetDeviceGroupPeerMemoryFeatures", "vkCmdSetDeviceMask",
        "vkGetImageMemoryRequirements2", "vkGetBufferMemoryRequirements2", "vkGetImageSparseMemoryRequirements2",
        "vkTrimCommandPool", "vkGetDeviceQueue2", "vkCmdDispatchBase", "vkCreateDescriptorUpdateTemplate",
        "vkDestroyDescriptorUpdateTemplate", "vkUpdateDescriptorSetWithTemplate", "vkGetDescriptorSetLayoutSupport",
        "vkCreateSamplerYcbcrConversion", "vkDestroySamplerYcbcrConversion",
    ]),
    (2, &[
        "vkResetQueryPool", "vkGetSemaphoreCounterValue", "vkWaitSemaphores", "vkSignalSemaphore",
        "vkGetBufferDeviceAddress", "vkGetBufferOpaqueCaptureAddress", "vkGetDeviceMemoryOpaqueCaptureAddress",
        "vkCmdDrawIndirectCount", "vkCmdDrawIndexedIndirectCount", "vkCreateRenderPass2", "vkCmdBeginRenderPass2",
        "vkCmdNextSubpass2", "vkCmdEndRenderPass2",
    ]),
    (3, &[
        "vkCreatePrivateDataSlot", "vkDestroyPrivateDataSlot", "vkSetPrivateData", "vkGetPrivateData",
        "vkCmdPipelineBarrier2", "vkCmdWriteTimestamp2", "vkQueueSubmit2", "vkCmdCopyBuffer2", "vkCmdCopyImage2",
        "vkCmdCopyBufferToImage2", "vkCmdCopyImageToBuffer2", "vkGetDeviceBufferMemoryRequirements",
        "vkGetDeviceImageMemoryRequirements", "vkGetDeviceImageSparseMemoryRequirements", "vkCmdSetEvent2",
        "vkCmdResetEvent2", "vkCmdWaitEvents2", "vkCmdBlitImage2", "vkCmdResolveImage2", "vkCmdBeginRendering",
        "vkCmdEndRendering", "vkCmdSetCullMode", "vkCmdSetFrontFace", "vkCmdSetPrimitiveTopology",
        "vkCmdSetViewportWithCount", "vkCmdSetScissorWithCount", "vkCmdBindVertexBuffers2", "vkCmdSetDepthTestEnable",
        "vkCmdSetDepthWriteEnable", "vkCmdSetDepthCompareOp", "vkCmdSetDepthBoundsTestEnable",
        "vkCmdSetStencilTestEnable", "vkCmdSetStencilOp", "vkCmdSetRasterizerDiscardEnable", "vkCmdSetDepthBiasEnable",
        "vkCmdSetPrimitiveRestartEnable",
    ]),
];

/// The minor version that introduced a command.
pub(crate) fn since(command: &str) -> u32 {
    SINCE.iter().find(|(_, all)| all.contains(&command)).map_or(0, |(minor, _)| *minor)
}
