//! Dispatches that run depending on a word in a buffer (`VK_EXT_conditional_rendering`).

use ash::vk::BufferUsageFlags;

use super::CommandBuffer;
use crate::error::{Error, require};
use crate::exec::Condition;
use crate::resource::{Buffer, BufferRules};

const BEGIN: &str = "vkCmdBeginConditionalRenderingEXT";
const END: &str = "vkCmdEndConditionalRenderingEXT";

const WORD: BufferRules = BufferRules {
    at: "VkConditionalRenderingBeginInfoEXT",
    usage: BufferUsageFlags::CONDITIONAL_RENDERING_EXT,
    usage_vuid: "VUID-VkConditionalRenderingBeginInfoEXT-buffer-01982",
    memory_vuid: "VUID-VkConditionalRenderingBeginInfoEXT-buffer-01981",
    parent_vuid: "VUID-VkConditionalRenderingBeginInfoEXT-buffer-parameter",
};

impl CommandBuffer {
    /// `vkCmdBeginConditionalRenderingEXT`: dispatches up to the end run if the word at `offset` is not 0, or, if
    /// `inverted`, if it is 0. The word is read when their phase starts.
    pub fn begin_conditional(&self, buffer: &Buffer, offset: u64, inverted: bool) -> Result<(), Error> {
        let mut recorder = self.recorder(BEGIN, "VUID-vkCmdBeginConditionalRenderingEXT-commandBuffer-recording")?;
        let storage = buffer.checked(&recorder.device, &WORD)?.clone();
        let active = recorder.condition.is_some();
        require(!active, BEGIN, "VUID-vkCmdBeginConditionalRenderingEXT-None-01980", || {
            "one is active already".into()
        })?;
        let at = "VkConditionalRenderingBeginInfoEXT";
        require(offset.is_multiple_of(4), at, "VUID-VkConditionalRenderingBeginInfoEXT-offset-01984", || {
            format!("offset {offset} is not a multiple of 4")
        })?;
        let size = buffer.size();
        let inside = size >= 4 && offset <= size - 4;
        require(inside, at, "VUID-VkConditionalRenderingBeginInfoEXT-offset-01983", || {
            format!("4 bytes at offset {offset} in a buffer of {size} bytes")
        })?;
        recorder.condition = Some(Condition { word: storage.slice.slice(offset, 4), inverted });
        recorder.keep(&storage.allocation);
        Ok(())
    }

    /// `vkCmdEndConditionalRenderingEXT`.
    pub fn end_conditional(&self) -> Result<(), Error> {
        let mut recorder = self.recorder(END, "VUID-vkCmdEndConditionalRenderingEXT-commandBuffer-recording")?;
        let active = recorder.condition.take().is_some();
        Ok(require(active, END, "VUID-vkCmdEndConditionalRenderingEXT-None-01985", || "none is active".into())?)
    }
}
