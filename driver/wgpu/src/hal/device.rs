//! The device: creates and destroys objects, maps buffers, waits.
//!
//! # Safety
//!
//! `map_buffer` gives wgpu the address of device memory, of which wgpu makes a Rust slice: the one exception to the
//! rule that no reference points to memory that kernels access. wgpu-core maps a buffer only while no submitted command
//! uses it, and submits none that uses a mapped one; kernels cannot leave the buffers that they are given. So nothing
//! else writes the bytes of such a slice.

use std::ops::Range;
use std::time::Duration;

use wgpu_hal::{
    AccelerationStructureBuildSizes, AccelerationStructureDescriptor, BindGroupDescriptor, BindGroupLayoutDescriptor,
    BufferDescriptor, BufferMapping, CommandEncoderDescriptor, ComputePipelineDescriptor, DeviceError, FenceValue,
    GetAccelerationStructureBuildSizesDescriptor, Label, MemoryRange, PipelineCacheDescriptor, PipelineCacheError,
    PipelineError, PipelineLayoutDescriptor, RayTracingPipelineDescriptor, RenderPipelineDescriptor, SamplerDescriptor,
    ShaderError, ShaderInput, ShaderModuleDescriptor, TextureDescriptor, TextureViewDescriptor, TlasInstance,
};
use wgpu_types::{BufferAddress, HalCounters, QuerySetDescriptor, QueryType, ShaderStages};

use super::{Api, Never};
use crate::binding::{BindGroup, BindGroupLayout, PipelineLayout};
use crate::buffer::Buffer;
use crate::device::{Device, Fence, Queue};
use crate::error::{computes_only, device_error};
use crate::pipeline::{self, ComputePipeline, PipelineCache};
use crate::recorder::{CommandEncoder, QuerySet};
use crate::shader::ShaderModule;
use crate::texture::{Sampler, Texture, TextureView};

impl wgpu_hal::Device for Device {
    type A = Api;

    unsafe fn create_buffer(&self, descriptor: &BufferDescriptor<'_>) -> Result<Buffer, DeviceError> {
        let buffer = self.buffer(descriptor.size, descriptor.usage).map_err(device_error)?;
        // Findings name it.
        if descriptor.label.is_some() {
            buffer.raw.set_debug_name(descriptor.label);
        }
        Ok(buffer)
    }

    unsafe fn destroy_buffer(&self, buffer: Buffer) {
        buffer.destroy(&self.memory);
    }

    unsafe fn add_raw_buffer(&self, _: &Buffer) {}

    unsafe fn map_buffer(&self, buffer: &Buffer, range: MemoryRange) -> Result<BufferMapping, DeviceError> {
        let ptr = buffer.address(range.start).ok_or(DeviceError::Unexpected)?;
        Ok(BufferMapping { ptr, is_coherent: true })
    }

    unsafe fn unmap_buffer(&self, _: &Buffer) {}

    unsafe fn flush_mapped_ranges<I: Iterator<Item = MemoryRange>>(&self, _: &Buffer, _: I) {}

    unsafe fn invalidate_mapped_ranges<I: Iterator<Item = MemoryRange>>(&self, _: &Buffer, _: I) {}

    unsafe fn create_texture(&self, descriptor: &TextureDescriptor<'_>) -> Result<Texture, DeviceError> {
        let texture = Texture::new(&self.raw, descriptor).map_err(device_error)?;
        if descriptor.label.is_some() {
            texture.image.set_debug_name(descriptor.label);
        }
        Ok(texture)
    }

    unsafe fn destroy_texture(&self, _: Texture) {}

    unsafe fn add_raw_texture(&self, _: &Texture) {}

    unsafe fn create_texture_view(
        &self,
        texture: &Texture,
        descriptor: &TextureViewDescriptor<'_>,
    ) -> Result<TextureView, DeviceError> {
        texture.view(&self.raw, descriptor).map_err(device_error)
    }

    unsafe fn destroy_texture_view(&self, _: TextureView) {}

    unsafe fn create_sampler(&self, descriptor: &SamplerDescriptor<'_>) -> Result<Sampler, DeviceError> {
        Sampler::new(&self.raw, descriptor).map_err(device_error)
    }

    unsafe fn destroy_sampler(&self, _: Sampler) {}

    unsafe fn create_command_encoder(
        &self,
        _: &CommandEncoderDescriptor<'_, Queue>,
    ) -> Result<CommandEncoder, DeviceError> {
        Ok(CommandEncoder::new(&self.raw))
    }

    unsafe fn create_bind_group_layout(
        &self,
        descriptor: &BindGroupLayoutDescriptor<'_>,
    ) -> Result<BindGroupLayout, DeviceError> {
        BindGroupLayout::new(&self.raw, descriptor.entries)
    }

    unsafe fn destroy_bind_group_layout(&self, _: BindGroupLayout) {}

    unsafe fn create_pipeline_layout(
        &self,
        descriptor: &PipelineLayoutDescriptor<'_, BindGroupLayout>,
    ) -> Result<PipelineLayout, DeviceError> {
        let has_immediates = descriptor.immediate_size > 0;
        PipelineLayout::new(&self.raw, descriptor.bind_group_layouts, has_immediates).map_err(device_error)
    }

    unsafe fn destroy_pipeline_layout(&self, _: PipelineLayout) {}

    unsafe fn create_bind_group(
        &self,
        descriptor: &BindGroupDescriptor<'_, BindGroupLayout, Buffer, Sampler, TextureView, Never>,
    ) -> Result<BindGroup, DeviceError> {
        BindGroup::new(descriptor)
    }

    unsafe fn destroy_bind_group(&self, _: BindGroup) {}

    unsafe fn create_shader_module(
        &self,
        descriptor: &ShaderModuleDescriptor<'_>,
        shader: ShaderInput<'_>,
    ) -> Result<ShaderModule, ShaderError> {
        ShaderModule::new(&self.raw, descriptor.runtime_checks, shader)
    }

    unsafe fn destroy_shader_module(&self, _: ShaderModule) {}

    unsafe fn create_render_pipeline(
        &self,
        _: &RenderPipelineDescriptor<'_, PipelineLayout, ShaderModule, PipelineCache>,
    ) -> Result<Never, PipelineError> {
        Err(PipelineError::Linkage(ShaderStages::VERTEX, "Spelter computes only".to_owned()))
    }

    unsafe fn destroy_render_pipeline(&self, pipeline: Never) {
        match pipeline {}
    }

    unsafe fn create_compute_pipeline(
        &self,
        descriptor: &ComputePipelineDescriptor<'_, PipelineLayout, ShaderModule, PipelineCache>,
    ) -> Result<ComputePipeline, PipelineError> {
        ComputePipeline::new(&self.raw, descriptor)
    }

    unsafe fn destroy_compute_pipeline(&self, _: ComputePipeline) {}

    unsafe fn create_ray_tracing_pipeline(
        &self,
        _: &RayTracingPipelineDescriptor<'_, PipelineLayout, ShaderModule, PipelineCache>,
    ) -> Result<Never, PipelineError> {
        Err(PipelineError::Linkage(ShaderStages::RAY_GENERATION, "Spelter has no ray tracing".to_owned()))
    }

    unsafe fn destroy_ray_tracing_pipeline(&self, pipeline: Never) {
        match pipeline {}
    }

    unsafe fn get_raytracing_pipeline_group_data(
        &self,
        pipeline: &Never,
        _: Range<u32>,
    ) -> Result<Vec<u8>, DeviceError> {
        match *pipeline {}
    }

    unsafe fn create_pipeline_cache(
        &self,
        descriptor: &PipelineCacheDescriptor<'_>,
    ) -> Result<PipelineCache, PipelineCacheError> {
        Ok(PipelineCache::new(descriptor.data))
    }

    fn pipeline_cache_validation_key(&self) -> Option<[u8; 16]> {
        pipeline::validation_key()
    }

    unsafe fn destroy_pipeline_cache(&self, _: PipelineCache) {}

    unsafe fn pipeline_cache_get_data(&self, cache: &PipelineCache) -> Option<Vec<u8>> {
        cache.data()
    }

    unsafe fn create_query_set(&self, descriptor: &QuerySetDescriptor<Label<'_>>) -> Result<QuerySet, DeviceError> {
        match descriptor.ty {
            QueryType::Timestamp => self.timestamps(descriptor.count).map_err(device_error),
            QueryType::Occlusion | QueryType::PipelineStatistics(_) => {
                Err(computes_only("a query set of other than timestamps"))
            }
        }
    }

    unsafe fn destroy_query_set(&self, _: QuerySet) {}

    unsafe fn create_fence(&self) -> Result<Fence, DeviceError> {
        Ok(self.fence())
    }

    unsafe fn destroy_fence(&self, _: Fence) {}

    unsafe fn get_fence_value(&self, fence: &Fence) -> Result<FenceValue, DeviceError> {
        fence.0.value().map_err(device_error)
    }

    unsafe fn wait(&self, fence: &Fence, value: FenceValue, timeout: Option<Duration>) -> Result<bool, DeviceError> {
        Device::wait(self, fence, value, timeout).map_err(device_error)
    }

    unsafe fn start_graphics_debugger_capture(&self) -> bool {
        false
    }

    unsafe fn stop_graphics_debugger_capture(&self) {}

    unsafe fn create_acceleration_structure(
        &self,
        _: &AccelerationStructureDescriptor<'_>,
    ) -> Result<Never, DeviceError> {
        Err(computes_only("an acceleration structure"))
    }

    unsafe fn get_acceleration_structure_build_sizes(
        &self,
        _: &GetAccelerationStructureBuildSizesDescriptor<'_, Buffer>,
    ) -> AccelerationStructureBuildSizes {
        AccelerationStructureBuildSizes::default()
    }

    unsafe fn get_acceleration_structure_device_address(&self, structure: &Never) -> BufferAddress {
        match *structure {}
    }

    unsafe fn destroy_acceleration_structure(&self, structure: Never) {
        match structure {}
    }

    fn tlas_instance_to_bytes(&self, _: TlasInstance) -> Vec<u8> {
        Vec::new()
    }

    fn get_internal_counters(&self) -> HalCounters {
        HalCounters::default()
    }

    fn check_if_oom(&self) -> Result<(), DeviceError> {
        Ok(())
    }
}
