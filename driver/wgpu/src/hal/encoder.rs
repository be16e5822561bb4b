//! The command encoder. Commands that draw cannot be reached: wgpu refuses what they need. The one render pass that can
//! is wgpu's own: it begins and ends one to clear a texture of depth that is read before it is written.

use std::ops::Range;

use wgpu_hal::{
    AccelerationStructureBarrier, AttachmentOps, BufferBarrier, BufferBinding, BufferCopy, BufferTextureCopy,
    BuildAccelerationStructureDescriptor, ComputePassDescriptor, DeviceError, Label, MemoryRange, PipelineGroupData,
    RayTracingPassDescriptor, Rect, RenderPassDescriptor, TextureBarrier, TextureCopy,
};
use wgpu_types::{AccelerationStructureCopy, BufferAddress, BufferSize, DynamicOffset, IndexFormat, TextureUses};

use super::{Api, Never, Recorded};
use crate::binding::{BindGroup, PipelineLayout};
use crate::buffer::Buffer;
use crate::error::computes_only;
use crate::pipeline::ComputePipeline;
use crate::recorder::{CommandEncoder, QuerySet};
use crate::texture::{Texture, TextureView};

impl CommandEncoder {
    /// A command of a pass that cannot be begun.
    fn draws(&mut self) {
        self.fail(computes_only("a command that draws"));
    }
}

impl wgpu_hal::CommandEncoder for CommandEncoder {
    type A = Api;

    unsafe fn begin_encoding(&mut self, label: Label<'_>) -> Result<(), DeviceError> {
        self.begin(label)
    }

    unsafe fn discard_encoding(&mut self) {
        self.discard();
    }

    unsafe fn end_encoding(&mut self) -> Result<Recorded, DeviceError> {
        self.end().map(Recorded)
    }

    unsafe fn reset_all<I: Iterator<Item = Recorded>>(&mut self, command_buffers: I) {
        command_buffers.for_each(drop);
        self.reset();
    }

    unsafe fn transition_buffers<'a, T: Iterator<Item = BufferBarrier<'a, Buffer>>>(&mut self, mut barriers: T) {
        if barriers.next().is_some() {
            self.barrier();
        }
    }

    unsafe fn transition_textures<'a, T: Iterator<Item = TextureBarrier<'a, Texture>>>(&mut self, mut barriers: T) {
        if barriers.next().is_some() {
            self.barrier();
        }
    }

    unsafe fn clear_buffer(&mut self, buffer: &Buffer, range: MemoryRange) {
        self.clear_buffer(buffer, range.start, range.end - range.start);
    }

    unsafe fn copy_buffer_to_buffer<T: Iterator<Item = BufferCopy>>(&mut self, from: &Buffer, to: &Buffer, regions: T) {
        self.copy_buffers(from, to, regions);
    }

    unsafe fn copy_texture_to_texture<T: Iterator<Item = TextureCopy>>(
        &mut self,
        from: &Texture,
        _: TextureUses,
        to: &Texture,
        regions: T,
    ) {
        self.copy_textures(from, to, regions);
    }

    unsafe fn copy_buffer_to_texture<T: Iterator<Item = BufferTextureCopy>>(
        &mut self,
        from: &Buffer,
        to: &Texture,
        regions: T,
    ) {
        self.upload(from, to, regions);
    }

    unsafe fn copy_texture_to_buffer<T: Iterator<Item = BufferTextureCopy>>(
        &mut self,
        from: &Texture,
        _: TextureUses,
        to: &Buffer,
        regions: T,
    ) {
        self.download(from, to, regions);
    }

    unsafe fn copy_acceleration_structure_to_acceleration_structure(
        &mut self,
        from: &Never,
        _: &Never,
        _: AccelerationStructureCopy,
    ) {
        match *from {}
    }

    unsafe fn set_bind_group(
        &mut self,
        layout: &PipelineLayout,
        index: u32,
        group: &BindGroup,
        dynamic_offsets: &[DynamicOffset],
    ) {
        self.set_group(layout, index, group, dynamic_offsets);
    }

    unsafe fn set_immediates(&mut self, layout: &PipelineLayout, offset_bytes: u32, data: &[u32]) {
        self.set_immediates(layout, offset_bytes, data);
    }

    unsafe fn insert_debug_marker(&mut self, label: &str) {
        self.mark(label);
    }

    unsafe fn begin_debug_marker(&mut self, group_label: &str) {
        self.push_label(group_label);
    }

    unsafe fn end_debug_marker(&mut self) {
        self.pop_label();
    }

    /// Query sets are of timestamps, which do not begin and end.
    unsafe fn begin_query(&mut self, _: &QuerySet, _: u32) {
        self.draws();
    }

    unsafe fn end_query(&mut self, _: &QuerySet, _: u32) {
        self.draws();
    }

    unsafe fn write_timestamp(&mut self, set: &QuerySet, index: u32) {
        self.write_timestamp(set, index);
    }

    unsafe fn reset_queries(&mut self, set: &QuerySet, range: Range<u32>) {
        self.reset_queries(set, range.start, range.end - range.start);
    }

    unsafe fn copy_query_results(
        &mut self,
        set: &QuerySet,
        range: Range<u32>,
        buffer: &Buffer,
        offset: BufferAddress,
        stride: BufferSize,
    ) {
        self.copy_queries(set, (range.start, range.end - range.start), buffer, (offset, stride.get()));
    }

    unsafe fn begin_render_pass(
        &mut self,
        descriptor: &RenderPassDescriptor<'_, QuerySet, TextureView>,
    ) -> Result<(), DeviceError> {
        let RenderPassDescriptor { color_attachments: [], depth_stencil_attachment: Some(depth), extent, .. } =
            descriptor
        else {
            return Err(computes_only("a render pass"));
        };
        if !depth.depth_ops.contains(AttachmentOps::LOAD_CLEAR) || depth.clear_value != (0.0, 0) {
            return Err(computes_only("a render pass that does not clear depth to 0"));
        }
        self.clear_texels(depth.target.view, [extent.width, extent.height]);
        Ok(())
    }

    unsafe fn end_render_pass(&mut self) {}

    unsafe fn set_render_pipeline(&mut self, pipeline: &Never) {
        match *pipeline {}
    }

    unsafe fn set_index_buffer<'a>(&mut self, _: BufferBinding<'a, Buffer>, _: IndexFormat) {
        self.draws();
    }

    unsafe fn set_vertex_buffer<'a>(&mut self, _: u32, _: BufferBinding<'a, Buffer>) {
        self.draws();
    }

    unsafe fn set_viewport(&mut self, _: &Rect<f32>, _: Range<f32>) {
        self.draws();
    }

    unsafe fn set_scissor_rect(&mut self, _: &Rect<u32>) {
        self.draws();
    }

    unsafe fn set_stencil_reference(&mut self, _: u32) {
        self.draws();
    }

    unsafe fn set_blend_constants(&mut self, _: &[f32; 4]) {
        self.draws();
    }

    unsafe fn draw(&mut self, _: u32, _: u32, _: u32, _: u32) {
        self.draws();
    }

    unsafe fn draw_indexed(&mut self, _: u32, _: u32, _: i32, _: u32, _: u32) {
        self.draws();
    }

    unsafe fn draw_indirect(&mut self, _: &Buffer, _: BufferAddress, _: u32) {
        self.draws();
    }

    unsafe fn draw_indexed_indirect(&mut self, _: &Buffer, _: BufferAddress, _: u32) {
        self.draws();
    }

    unsafe fn draw_indirect_count(&mut self, _: &Buffer, _: BufferAddress, _: &Buffer, _: BufferAddress, _: u32) {
        self.draws();
    }

    unsafe fn draw_indexed_indirect_count(
        &mut self,
        _: &Buffer,
        _: BufferAddress,
        _: &Buffer,
        _: BufferAddress,
        _: u32,
    ) {
        self.draws();
    }

    unsafe fn draw_mesh_tasks(&mut self, _: u32, _: u32, _: u32) {
        self.draws();
    }

    unsafe fn draw_mesh_tasks_indirect(&mut self, _: &Buffer, _: BufferAddress, _: u32) {
        self.draws();
    }

    unsafe fn draw_mesh_tasks_indirect_count(
        &mut self,
        _: &Buffer,
        _: BufferAddress,
        _: &Buffer,
        _: BufferAddress,
        _: u32,
    ) {
        self.draws();
    }

    unsafe fn begin_compute_pass(&mut self, descriptor: &ComputePassDescriptor<'_, QuerySet>) {
        self.begin_pass(descriptor);
    }

    unsafe fn end_compute_pass(&mut self) {
        self.end_pass();
    }

    unsafe fn set_compute_pipeline(&mut self, pipeline: &ComputePipeline) {
        self.set_pipeline(pipeline);
    }

    unsafe fn dispatch_workgroups(&mut self, count: [u32; 3]) {
        self.dispatch(count);
    }

    unsafe fn dispatch_workgroups_indirect(&mut self, buffer: &Buffer, offset: BufferAddress) {
        self.dispatch_indirect(buffer, offset);
    }

    unsafe fn begin_ray_tracing_pass(&mut self, _: &RayTracingPassDescriptor<'_>) {
        self.draws();
    }

    unsafe fn end_ray_tracing_pass(&mut self) {}

    unsafe fn set_ray_tracing_pipeline(&mut self, pipeline: &Never) {
        match *pipeline {}
    }

    unsafe fn trace_rays<'a>(
        &mut self,
        _: [u32; 3],
        _: PipelineGroupData<'a, Buffer>,
        _: PipelineGroupData<'a, Buffer>,
        _: PipelineGroupData<'a, Buffer>,
    ) {
        self.draws();
    }

    unsafe fn build_acceleration_structures<'a, T>(&mut self, _: u32, _: T)
    where
        T: IntoIterator<Item = BuildAccelerationStructureDescriptor<'a, Buffer, Never>>,
    {
        self.draws();
    }

    unsafe fn place_acceleration_structure_barrier(&mut self, _: AccelerationStructureBarrier) {}

    unsafe fn read_acceleration_structure_compact_size(&mut self, structure: &Never, _: &Buffer) {
        match *structure {}
    }

    unsafe fn set_acceleration_structure_dependencies(_: &[&Recorded], _: &[&Never]) {}
}
