//! Graphics commands, which fail on a compute device with a clear message.
//!
//! The commands exist because programs that see a graphics queue (`SPELTER_ADVERTISE_GRAPHICS`) load them all.

use ash::vk;

use crate::c::entry::refused_points;
use crate::command::CommandBuffer;
use crate::error::Error;
use crate::table::Object;

refused_points! {
    PFN_vkCreateRenderPass(
        device: vk::Device, p_create_info: *const vk::RenderPassCreateInfo<'_>,
        p_allocator: *const vk::AllocationCallbacks<'_>, p_render_pass: *mut vk::RenderPass,
    ) -> vk::Result => refuse;
    PFN_vkCreateRenderPass2(
        device: vk::Device, p_create_info: *const vk::RenderPassCreateInfo2<'_>,
        p_allocator: *const vk::AllocationCallbacks<'_>, p_render_pass: *mut vk::RenderPass,
    ) -> vk::Result => refuse;
    PFN_vkCreateFramebuffer(
        device: vk::Device, p_create_info: *const vk::FramebufferCreateInfo<'_>,
        p_allocator: *const vk::AllocationCallbacks<'_>, p_framebuffer: *mut vk::Framebuffer,
    ) -> vk::Result => refuse;
    PFN_vkDestroyRenderPass(
        device: vk::Device, render_pass: vk::RenderPass, p_allocator: *const vk::AllocationCallbacks<'_>,
    ) => ignore;
    PFN_vkDestroyFramebuffer(
        device: vk::Device, framebuffer: vk::Framebuffer, p_allocator: *const vk::AllocationCallbacks<'_>,
    ) => ignore;
    PFN_vkGetRenderAreaGranularity(
        device: vk::Device, render_pass: vk::RenderPass, p_granularity: *mut vk::Extent2D,
    ) => refuse;
    PFN_vkCmdBeginRenderPass(
        command_buffer: vk::CommandBuffer, p_render_pass_begin: *const vk::RenderPassBeginInfo<'_>,
        contents: vk::SubpassContents,
    ) => refuse;
    PFN_vkCmdBeginRenderPass2(
        command_buffer: vk::CommandBuffer, p_render_pass_begin: *const vk::RenderPassBeginInfo<'_>,
        p_subpass_begin_info: *const vk::SubpassBeginInfo<'_>,
    ) => refuse;
    PFN_vkCmdNextSubpass(command_buffer: vk::CommandBuffer, contents: vk::SubpassContents) => refuse;
    PFN_vkCmdNextSubpass2(
        command_buffer: vk::CommandBuffer, p_subpass_begin_info: *const vk::SubpassBeginInfo<'_>,
        p_subpass_end_info: *const vk::SubpassEndInfo<'_>,
    ) => refuse;
    PFN_vkCmdEndRenderPass(command_buffer: vk::CommandBuffer) => refuse;
    PFN_vkCmdEndRenderPass2(
        command_buffer: vk::CommandBuffer, p_subpass_end_info: *const vk::SubpassEndInfo<'_>,
    ) => refuse;
    PFN_vkCmdBeginRendering(
        command_buffer: vk::CommandBuffer, p_rendering_info: *const vk::RenderingInfo<'_>,
    ) => refuse;
    PFN_vkCmdEndRendering(command_buffer: vk::CommandBuffer) => refuse;
    PFN_vkCmdDraw(
        command_buffer: vk::CommandBuffer, vertex_count: u32, instance_count: u32, first_vertex: u32,
        first_instance: u32,
    ) => refuse;
    PFN_vkCmdDrawIndexed(
        command_buffer: vk::CommandBuffer, index_count: u32, instance_count: u32, first_index: u32,
        vertex_offset: i32, first_instance: u32,
    ) => refuse;
    PFN_vkCmdDrawIndirect(
        command_buffer: vk::CommandBuffer, buffer: vk::Buffer, offset: vk::DeviceSize, draw_count: u32, stride: u32,
    ) => refuse;
    PFN_vkCmdDrawIndexedIndirect(
        command_buffer: vk::CommandBuffer, buffer: vk::Buffer, offset: vk::DeviceSize, draw_count: u32, stride: u32,
    ) => refuse;
    PFN_vkCmdDrawIndirectCount(
        command_buffer: vk::CommandBuffer, buffer: vk::Buffer, offset: vk::DeviceSize, count_buffer: vk::Buffer,
        count_buffer_offset: vk::DeviceSize, max_draw_count: u32, stride: u32,
    ) => refuse;
    PFN_vkCmdDrawIndexedIndirectCount(
        command_buffer: vk::CommandBuffer, buffer: vk::Buffer, offset: vk::DeviceSize, count_buffer: vk::Buffer,
        count_buffer_offset: vk::DeviceSize, max_draw_count: u32, stride: u32,
    ) => refuse;
    PFN_vkCmdBindIndexBuffer(
        command_buffer: vk::CommandBuffer, buffer: vk::Buffer, offset: vk::DeviceSize, index_type: vk::IndexType,
    ) => refuse;
    PFN_vkCmdBindIndexBuffer2KHR(
        command_buffer: vk::CommandBuffer, buffer: vk::Buffer, offset: vk::DeviceSize, size: vk::DeviceSize,
        index_type: vk::IndexType,
    ) => refuse;
    PFN_vkCmdBindVertexBuffers(
        command_buffer: vk::CommandBuffer, first_binding: u32, binding_count: u32, p_buffers: *const vk::Buffer,
        p_offsets: *const vk::DeviceSize,
    ) => refuse;
    PFN_vkCmdBindVertexBuffers2(
        command_buffer: vk::CommandBuffer, first_binding: u32, binding_count: u32, p_buffers: *const vk::Buffer,
        p_offsets: *const vk::DeviceSize, p_sizes: *const vk::DeviceSize, p_strides: *const vk::DeviceSize,
    ) => refuse;
    PFN_vkCmdSetViewport(
        command_buffer: vk::CommandBuffer, first_viewport: u32, viewport_count: u32, p_viewports: *const vk::Viewport,
    ) => refuse;
    PFN_vkCmdSetScissor(
        command_buffer: vk::CommandBuffer, first_scissor: u32, scissor_count: u32, p_scissors: *const vk::Rect2D,
    ) => refuse;
    PFN_vkCmdSetLineWidth(command_buffer: vk::CommandBuffer, line_width: f32) => refuse;
    PFN_vkCmdSetDepthBias(
        command_buffer: vk::CommandBuffer, depth_bias_constant_factor: f32, depth_bias_clamp: f32,
        depth_bias_slope_factor: f32,
    ) => refuse;
    PFN_vkCmdSetBlendConstants(command_buffer: vk::CommandBuffer, blend_constants: *const [f32; 4]) => refuse;
    PFN_vkCmdSetDepthBounds(command_buffer: vk::CommandBuffer, min_depth_bounds: f32, max_depth_bounds: f32) => refuse;
    PFN_vkCmdSetStencilCompareMask(
        command_buffer: vk::CommandBuffer, face_mask: vk::StencilFaceFlags, compare_mask: u32,
    ) => refuse;
    PFN_vkCmdSetStencilWriteMask(
        command_buffer: vk::CommandBuffer, face_mask: vk::StencilFaceFlags, write_mask: u32,
    ) => refuse;
    PFN_vkCmdSetStencilReference(
        command_buffer: vk::CommandBuffer, face_mask: vk::StencilFaceFlags, reference: u32,
    ) => refuse;
    PFN_vkCmdBlitImage(
        command_buffer: vk::CommandBuffer, src_image: vk::Image, src_image_layout: vk::ImageLayout,
        dst_image: vk::Image, dst_image_layout: vk::ImageLayout, region_count: u32, p_regions: *const vk::ImageBlit,
        filter: vk::Filter,
    ) => refuse;
    PFN_vkCmdBlitImage2(command_buffer: vk::CommandBuffer, p_blit_image_info: *const vk::BlitImageInfo2<'_>) => refuse;
    PFN_vkCmdResolveImage(
        command_buffer: vk::CommandBuffer, src_image: vk::Image, src_image_layout: vk::ImageLayout,
        dst_image: vk::Image, dst_image_layout: vk::ImageLayout, region_count: u32, p_regions: *const vk::ImageResolve,
    ) => refuse;
    PFN_vkCmdResolveImage2(
        command_buffer: vk::CommandBuffer, p_resolve_image_info: *const vk::ResolveImageInfo2<'_>,
    ) => refuse;
    PFN_vkCmdClearDepthStencilImage(
        command_buffer: vk::CommandBuffer, image: vk::Image, image_layout: vk::ImageLayout,
        p_depth_stencil: *const vk::ClearDepthStencilValue, range_count: u32,
        p_ranges: *const vk::ImageSubresourceRange,
    ) => refuse;
    PFN_vkCmdClearAttachments(
        command_buffer: vk::CommandBuffer, attachment_count: u32, p_attachments: *const vk::ClearAttachment,
        rect_count: u32, p_rects: *const vk::ClearRect,
    ) => refuse;
    PFN_vkCmdSetCullMode(command_buffer: vk::CommandBuffer, cull_mode: vk::CullModeFlags) => refuse;
    PFN_vkCmdSetFrontFace(command_buffer: vk::CommandBuffer, front_face: vk::FrontFace) => refuse;
    PFN_vkCmdSetPrimitiveTopology(
        command_buffer: vk::CommandBuffer, primitive_topology: vk::PrimitiveTopology,
    ) => refuse;
    PFN_vkCmdSetViewportWithCount(
        command_buffer: vk::CommandBuffer, viewport_count: u32, p_viewports: *const vk::Viewport,
    ) => refuse;
    PFN_vkCmdSetScissorWithCount(
        command_buffer: vk::CommandBuffer, scissor_count: u32, p_scissors: *const vk::Rect2D,
    ) => refuse;
    PFN_vkCmdSetDepthTestEnable(command_buffer: vk::CommandBuffer, depth_test_enable: vk::Bool32) => refuse;
    PFN_vkCmdSetDepthWriteEnable(command_buffer: vk::CommandBuffer, depth_write_enable: vk::Bool32) => refuse;
    PFN_vkCmdSetDepthCompareOp(command_buffer: vk::CommandBuffer, depth_compare_op: vk::CompareOp) => refuse;
    PFN_vkCmdSetDepthBoundsTestEnable(
        command_buffer: vk::CommandBuffer, depth_bounds_test_enable: vk::Bool32,
    ) => refuse;
    PFN_vkCmdSetStencilTestEnable(command_buffer: vk::CommandBuffer, stencil_test_enable: vk::Bool32) => refuse;
    PFN_vkCmdSetStencilOp(
        command_buffer: vk::CommandBuffer, face_mask: vk::StencilFaceFlags, fail_op: vk::StencilOp,
        pass_op: vk::StencilOp, depth_fail_op: vk::StencilOp, compare_op: vk::CompareOp,
    ) => refuse;
    PFN_vkCmdSetRasterizerDiscardEnable(
        command_buffer: vk::CommandBuffer, rasterizer_discard_enable: vk::Bool32,
    ) => refuse;
    PFN_vkCmdSetDepthBiasEnable(command_buffer: vk::CommandBuffer, depth_bias_enable: vk::Bool32) => refuse;
    PFN_vkCmdSetPrimitiveRestartEnable(
        command_buffer: vk::CommandBuffer, primitive_restart_enable: vk::Bool32,
    ) => refuse;
}

/// The object that a graphics command belongs to: a device, or a command buffer, whose recording then fails.
trait Subject {
    fn fail(self, error: Error) -> Result<(), Error>;
}

impl Subject for vk::Device {
    fn fail(self, error: Error) -> Result<(), Error> {
        Err(error)
    }
}

impl Subject for vk::CommandBuffer {
    fn fail(self, error: Error) -> Result<(), Error> {
        CommandBuffer::get(self, "commandBuffer")?.add(|_| Err(error))
    }
}

fn refuse(command: &str, subject: impl Subject) -> Result<(), Error> {
    subject.fail(Error::graphics(command))
}

/// Only null can be destroyed.
fn ignore(_: &str, _: vk::Device) -> Result<(), Error> {
    Ok(())
}
