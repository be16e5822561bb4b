//! Which commands of devices came with which version of Vulkan: a device with `maintenance5` has none that are newer than the version
//! that its instance asked for (`vkGetDeviceProcAddr`).

/// Minor versions, with the commands that came with them; all others are of 1.0, or of extensions.
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

/// The minor version that a command came with.
pub(crate) fn since(command: &str) -> u32 {
    SINCE.iter().find(|(_, all)| all.contains(&command)).map_or(0, |(minor, _)| *minor)
}
