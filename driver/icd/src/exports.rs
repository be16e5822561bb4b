//! The core commands of Vulkan 1.3 as exported functions, as the Vulkan loader has them: programs that link or load
//! `libvulkan.so.1` run with this library in its place, on machines without a loader.
//!
//! # Safety
//!
//! An exported function is a jump to the command of its name in [`TABLES`]: it leaves all registers and the stack as
//! they are, so its caller calls the command. The library is linked with `-Bsymbolic` (`build.rs`), as the loader
//! requires of drivers that export commands: no call of its own can end in a loader's function of the same name.

use std::arch::naked_asm;

use crate::c::Function;
use crate::loader::TABLES;

/// The function of a command, found at compile time.
const fn command(name: &str) -> Function {
    let mut table = 0;
    while table < TABLES.len() {
        let mut chapter = 0;
        while chapter < TABLES[table].len() {
            let entries = TABLES[table][chapter];
            let mut at = 0;
            while at < entries.len() {
                if is_prototype_of(entries[at].pfn, name) {
                    return entries[at].function;
                }
                at += 1;
            }
            chapter += 1;
        }
        table += 1;
    }
    panic!("no chapter has a command of this name")
}

/// Whether a prototype, `PFN_vkName`, is that of a command.
const fn is_prototype_of(pfn: &str, name: &str) -> bool {
    let (prefix, pfn, name) = ("PFN_".len(), pfn.as_bytes(), name.as_bytes());
    if pfn.len() != prefix + name.len() {
        return false;
    }
    let mut at = 0;
    while at < name.len() {
        if pfn[prefix + at] != name[at] {
            return false;
        }
        at += 1;
    }
    true
}

macro_rules! exported {
    ($($name:ident)*) => { $(
        #[allow(non_snake_case, reason = "Vulkan's names")]
        mod $name {
            pub(super) static COMMAND: super::Function = super::command(stringify!($name));
        }

        #[unsafe(no_mangle)]
        #[unsafe(naked)]
        #[allow(non_snake_case, reason = "Vulkan's names")]
        unsafe extern "system" fn $name() {
            naked_asm!("jmp qword ptr [rip + {}]", sym $name::COMMAND)
        }
    )* };
}

// Commands of window systems and of extensions are not exported: they are found by `vkGetInstanceProcAddr`.
exported! {
    // Vulkan 1.0
    vkAllocateCommandBuffers vkAllocateDescriptorSets vkAllocateMemory vkBeginCommandBuffer vkBindBufferMemory
    vkBindImageMemory vkCmdBeginQuery vkCmdBeginRenderPass vkCmdBindDescriptorSets vkCmdBindIndexBuffer
    vkCmdBindPipeline vkCmdBindVertexBuffers vkCmdBlitImage vkCmdClearAttachments vkCmdClearColorImage
    vkCmdClearDepthStencilImage vkCmdCopyBuffer vkCmdCopyBufferToImage vkCmdCopyImage vkCmdCopyImageToBuffer
    vkCmdCopyQueryPoolResults vkCmdDispatch vkCmdDispatchIndirect vkCmdDraw vkCmdDrawIndexed
    vkCmdDrawIndexedIndirect vkCmdDrawIndirect vkCmdEndQuery vkCmdEndRenderPass vkCmdExecuteCommands vkCmdFillBuffer
    vkCmdNextSubpass vkCmdPipelineBarrier vkCmdPushConstants vkCmdResetEvent vkCmdResetQueryPool vkCmdResolveImage
    vkCmdSetBlendConstants vkCmdSetDepthBias vkCmdSetDepthBounds vkCmdSetEvent vkCmdSetLineWidth vkCmdSetScissor
    vkCmdSetStencilCompareMask vkCmdSetStencilReference vkCmdSetStencilWriteMask vkCmdSetViewport vkCmdUpdateBuffer
    vkCmdWaitEvents vkCmdWriteTimestamp vkCreateBuffer vkCreateBufferView vkCreateCommandPool
    vkCreateComputePipelines vkCreateDescriptorPool vkCreateDescriptorSetLayout vkCreateDevice vkCreateEvent
    vkCreateFence vkCreateFramebuffer vkCreateGraphicsPipelines vkCreateImage vkCreateImageView vkCreateInstance
    vkCreatePipelineCache vkCreatePipelineLayout vkCreateQueryPool vkCreateRenderPass vkCreateSampler
    vkCreateSemaphore vkCreateShaderModule vkDestroyBuffer vkDestroyBufferView vkDestroyCommandPool
    vkDestroyDescriptorPool vkDestroyDescriptorSetLayout vkDestroyDevice vkDestroyEvent vkDestroyFence
    vkDestroyFramebuffer vkDestroyImage vkDestroyImageView vkDestroyInstance vkDestroyPipeline
    vkDestroyPipelineCache vkDestroyPipelineLayout vkDestroyQueryPool vkDestroyRenderPass vkDestroySampler
    vkDestroySemaphore vkDestroyShaderModule vkDeviceWaitIdle vkEndCommandBuffer
    vkEnumerateDeviceExtensionProperties vkEnumerateDeviceLayerProperties vkEnumerateInstanceExtensionProperties
    vkEnumerateInstanceLayerProperties vkEnumeratePhysicalDevices vkFlushMappedMemoryRanges vkFreeCommandBuffers
    vkFreeDescriptorSets vkFreeMemory vkGetBufferMemoryRequirements vkGetDeviceMemoryCommitment vkGetDeviceProcAddr
    vkGetDeviceQueue vkGetEventStatus vkGetFenceStatus vkGetImageMemoryRequirements
    vkGetImageSparseMemoryRequirements vkGetImageSubresourceLayout vkGetInstanceProcAddr vkGetPhysicalDeviceFeatures
    vkGetPhysicalDeviceFormatProperties vkGetPhysicalDeviceImageFormatProperties vkGetPhysicalDeviceMemoryProperties
    vkGetPhysicalDeviceProperties vkGetPhysicalDeviceQueueFamilyProperties
    vkGetPhysicalDeviceSparseImageFormatProperties vkGetPipelineCacheData vkGetQueryPoolResults
    vkGetRenderAreaGranularity vkInvalidateMappedMemoryRanges vkMapMemory vkMergePipelineCaches vkQueueBindSparse
    vkQueueSubmit vkQueueWaitIdle vkResetCommandBuffer vkResetCommandPool vkResetDescriptorPool vkResetEvent
    vkResetFences vkSetEvent vkUnmapMemory vkUpdateDescriptorSets vkWaitForFences
    // Vulkan 1.1
    vkBindBufferMemory2 vkBindImageMemory2 vkCmdDispatchBase vkCmdSetDeviceMask vkCreateDescriptorUpdateTemplate
    vkCreateSamplerYcbcrConversion vkDestroyDescriptorUpdateTemplate vkDestroySamplerYcbcrConversion
    vkEnumerateInstanceVersion vkEnumeratePhysicalDeviceGroups vkGetBufferMemoryRequirements2
    vkGetDescriptorSetLayoutSupport vkGetDeviceGroupPeerMemoryFeatures vkGetDeviceQueue2
    vkGetImageMemoryRequirements2 vkGetImageSparseMemoryRequirements2 vkGetPhysicalDeviceExternalBufferProperties
    vkGetPhysicalDeviceExternalFenceProperties vkGetPhysicalDeviceExternalSemaphoreProperties
    vkGetPhysicalDeviceFeatures2 vkGetPhysicalDeviceFormatProperties2 vkGetPhysicalDeviceImageFormatProperties2
    vkGetPhysicalDeviceMemoryProperties2 vkGetPhysicalDeviceProperties2 vkGetPhysicalDeviceQueueFamilyProperties2
    vkGetPhysicalDeviceSparseImageFormatProperties2 vkTrimCommandPool vkUpdateDescriptorSetWithTemplate
    // Vulkan 1.2
    vkCmdBeginRenderPass2 vkCmdDrawIndexedIndirectCount vkCmdDrawIndirectCount vkCmdEndRenderPass2 vkCmdNextSubpass2
    vkCreateRenderPass2 vkGetBufferDeviceAddress vkGetBufferOpaqueCaptureAddress
    vkGetDeviceMemoryOpaqueCaptureAddress vkGetSemaphoreCounterValue vkResetQueryPool vkSignalSemaphore
    vkWaitSemaphores
    // Vulkan 1.3
    vkCmdBeginRendering vkCmdBindVertexBuffers2 vkCmdBlitImage2 vkCmdCopyBuffer2 vkCmdCopyBufferToImage2
    vkCmdCopyImage2 vkCmdCopyImageToBuffer2 vkCmdEndRendering vkCmdPipelineBarrier2 vkCmdResetEvent2
    vkCmdResolveImage2 vkCmdSetCullMode vkCmdSetDepthBiasEnable vkCmdSetDepthBoundsTestEnable vkCmdSetDepthCompareOp
    vkCmdSetDepthTestEnable vkCmdSetDepthWriteEnable vkCmdSetEvent2 vkCmdSetFrontFace vkCmdSetPrimitiveRestartEnable
    vkCmdSetPrimitiveTopology vkCmdSetRasterizerDiscardEnable vkCmdSetScissorWithCount vkCmdSetStencilOp
    vkCmdSetStencilTestEnable vkCmdSetViewportWithCount vkCmdWaitEvents2 vkCmdWriteTimestamp2
    vkCreatePrivateDataSlot vkDestroyPrivateDataSlot vkGetDeviceBufferMemoryRequirements
    vkGetDeviceImageMemoryRequirements vkGetDeviceImageSparseMemoryRequirements vkGetPhysicalDeviceToolProperties
    vkGetPrivateData vkQueueSubmit2 vkSetPrivateData
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_prototype_has_the_name_of_its_command() {
        assert!(is_prototype_of("PFN_vkCreateFence", "vkCreateFence"));
        assert!(!is_prototype_of("PFN_vkCreateFence", "vkCreateEvent") && !is_prototype_of("PFN_vk", "vkCreateEvent"));
    }
}
