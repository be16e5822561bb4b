//! The safe part of a command encoder: wgpu's commands become those of a command buffer.
//!
//! Most of wgpu-hal's recording calls return nothing. The first error of a recording is logged and kept, later commands
//! are skipped, and the end of the recording returns it.

use std::fmt;

use spelter_driver::vk::{AccessFlags, CommandBufferUsageFlags, PipelineStageFlags, QueryResultFlags};
use spelter_driver::{CommandBuffer, CommandPool, Device, Error, MemoryBarrier, QueryPool, vk};
use wgpu_hal::{BufferCopy, BufferTextureCopy, ComputePassDescriptor, DeviceError, TextureCopy};

use crate::binding::{BindGroup, IMMEDIATES, PipelineLayout};
use crate::buffer::Buffer;
use crate::error::device_error;
use crate::labels::Labels;
use crate::memory::allocate;
use crate::pipeline::ComputePipeline;
use crate::texture::{Texture, TextureView, image_region};

/// A query set: timestamps.
#[derive(Clone, Debug)]
pub struct QuerySet(pub(crate) QueryPool);

/// Records command buffers, one after the other.
pub struct CommandEncoder {
    device: Device,
    pool: CommandPool,
    /// The recording.
    commands: Option<CommandBuffer>,
    error: Option<DeviceError>,
    /// The open debug groups, the label of the pass, and the marker. Groups outlive the command buffer in which they
    /// begin: wgpu records each pass of an encoder into a command buffer of its own.
    labels: Labels,
    /// The timestamp at the end of the pass.
    end_of_pass: Option<(QueryPool, u32)>,
    /// Whether the recording has set all immediates, to zeros at first.
    has_immediates: bool,
}

impl fmt::Debug for CommandEncoder {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "CommandEncoder({:?})", self.commands)
    }
}

impl CommandEncoder {
    pub(crate) fn new(device: &Device) -> Self {
        Self {
            device: device.clone(),
            pool: device.create_command_pool(),
            commands: None,
            error: None,
            labels: Labels::default(),
            end_of_pass: None,
            has_immediates: false,
        }
    }

    /// Begins a command buffer. Its label is that of the pass which it is for, or of the encoder.
    pub(crate) fn begin(&mut self, label: Option<&str>) -> Result<(), DeviceError> {
        self.discard();
        let commands = self.pool.allocate();
        commands.begin(CommandBufferUsageFlags::ONE_TIME_SUBMIT).map_err(device_error)?;
        self.commands = Some(commands);
        self.labels.begin_commands(label.unwrap_or_default());
        if self.labels.path().is_some() {
            self.put_label();
        }
        Ok(())
    }

    pub(crate) fn discard(&mut self) {
        (self.commands, self.error, self.end_of_pass) = (None, None, None);
        self.has_immediates = false;
    }

    /// The program is done with the encoder, which may serve another one.
    pub(crate) fn reset(&mut self) {
        self.discard();
        self.labels = Labels::default();
    }

    pub(crate) fn end(&mut self) -> Result<CommandBuffer, DeviceError> {
        self.record(CommandBuffer::end);
        let (commands, error) = (self.commands.take(), self.error.take());
        self.discard();
        match (commands, error) {
            (_, Some(error)) => Err(error),
            (Some(commands), None) => Ok(commands),
            (None, None) => Err(DeviceError::Unexpected),
        }
    }

    /// Records by `record`, unless an earlier command failed.
    fn record(&mut self, record: impl FnOnce(&CommandBuffer) -> Result<(), Error>) {
        if self.error.is_some() {
            return;
        }
        let Some(commands) = &self.commands else { return };
        if let Err(error) = record(commands) {
            self.error = Some(device_error(error));
        }
    }

    /// The recording fails with this error.
    pub(crate) fn fail(&mut self, error: DeviceError) {
        self.error.get_or_insert(error);
    }

    /// All commands so far end before any later one begins, and what they wrote is visible to those and to the host.
    pub(crate) fn barrier(&mut self) {
        let (stages, access) = (PipelineStageFlags::ALL_COMMANDS, AccessFlags::MEMORY_READ | AccessFlags::MEMORY_WRITE);
        let all = MemoryBarrier { src_access: access, dst_access: access | AccessFlags::HOST_READ };
        let after = stages | PipelineStageFlags::HOST;
        self.record(|commands| commands.pipeline_barrier(stages, after, &[all], &[]));
    }

    pub(crate) fn clear_buffer(&mut self, buffer: &Buffer, offset: u64, size: u64) {
        if size > 0 {
            self.record(|commands| commands.fill_buffer(&buffer.raw, offset, size, 0));
        }
    }

    pub(crate) fn copy_buffers(&mut self, from: &Buffer, to: &Buffer, copies: impl Iterator<Item = BufferCopy>) {
        let region = |copy: BufferCopy| vk::BufferCopy {
            src_offset: copy.src_offset,
            dst_offset: copy.dst_offset,
            size: copy.size.get(),
        };
        let regions: Vec<_> = copies.map(region).collect();
        self.record(|commands| commands.copy_buffer(&from.raw, &to.raw, &regions));
    }

    pub(crate) fn copy_textures(&mut self, from: &Texture, to: &Texture, copies: impl Iterator<Item = TextureCopy>) {
        let regions: Vec<_> = copies.map(|copy| image_region(&copy)).collect();
        self.record(|commands| commands.copy_image(&from.image, &to.image, &regions));
    }

    pub(crate) fn upload(&mut self, from: &Buffer, to: &Texture, copies: impl Iterator<Item = BufferTextureCopy>) {
        let regions: Vec<_> = copies.map(|copy| to.buffer_region(&copy)).collect();
        self.record(|commands| commands.copy_buffer_to_image(&from.raw, &to.image, &regions));
    }

    pub(crate) fn download(&mut self, from: &Texture, to: &Buffer, copies: impl Iterator<Item = BufferTextureCopy>) {
        let regions: Vec<_> = copies.map(|copy| from.buffer_region(&copy)).collect();
        self.record(|commands| commands.copy_image_to_buffer(&from.image, &to.raw, &regions));
    }

    /// Writes zeros to the first level and layer of a view, of this size. Memory of a new buffer is zero.
    pub(crate) fn clear_texels(&mut self, view: &TextureView, [width, height]: [u32; 2]) {
        let (device, image) = (self.device.clone(), view.raw.image());
        self.record(|commands| {
            let bytes = u64::from(width) * u64::from(height) * image.texel_bytes();
            let zeros = device.create_buffer(bytes, vk::BufferUsageFlags::TRANSFER_SRC)?;
            zeros.bind_memory(&allocate(&device, zeros.requirements().size)?, 0)?;
            commands.copy_buffer_to_image(&zeros, image, &[view.whole(width, height)])
        });
    }

    pub(crate) fn begin_pass(&mut self, descriptor: &ComputePassDescriptor<'_, QuerySet>) {
        if let Some(writes) = &descriptor.timestamp_writes {
            let pool = &writes.query_set.0;
            if let Some(index) = writes.beginning_of_pass_write_index {
                self.record(|commands| commands.write_timestamp(pool, index));
            }
            self.end_of_pass = writes.end_of_pass_write_index.map(|index| (pool.clone(), index));
        }
        self.push_label(descriptor.label.unwrap_or_default());
    }

    pub(crate) fn end_pass(&mut self) {
        self.pop_label();
        if let Some((pool, index)) = self.end_of_pass.take() {
            self.record(|commands| commands.write_timestamp(&pool, index));
        }
    }

    pub(crate) fn set_pipeline(&mut self, pipeline: &ComputePipeline) {
        if pipeline.has_immediates && !self.has_immediates {
            self.has_immediates = true;
            let zeros = [0; IMMEDIATES.size as usize];
            self.record(|commands| commands.push_constants(pipeline.raw.layout(), 0, &zeros));
        }
        self.record(|commands| {
            commands.bind_pipeline(&pipeline.raw)?;
            match &pipeline.label {
                Some(label) => commands.set_kernel_name(Some(label)),
                None => Ok(()),
            }
        });
    }

    pub(crate) fn set_group(&mut self, layout: &PipelineLayout, index: u32, group: &BindGroup, offsets: &[u32]) {
        self.record(|commands| commands.bind_descriptor_sets(&layout.raw, index, &[&group.0], offsets));
    }

    pub(crate) fn set_immediates(&mut self, layout: &PipelineLayout, offset: u32, words: &[u32]) {
        let bytes: Vec<u8> = words.iter().flat_map(|word| word.to_ne_bytes()).collect();
        self.record(|commands| commands.push_constants(&layout.raw, offset, &bytes));
    }

    pub(crate) fn dispatch(&mut self, [x, y, z]: [u32; 3]) {
        self.record(|commands| commands.dispatch(x, y, z));
    }

    pub(crate) fn dispatch_indirect(&mut self, buffer: &Buffer, offset: u64) {
        self.record(|commands| commands.dispatch_indirect(&buffer.raw, offset));
    }

    pub(crate) fn write_timestamp(&mut self, set: &QuerySet, index: u32) {
        self.record(|commands| commands.write_timestamp(&set.0, index));
    }

    pub(crate) fn reset_queries(&mut self, set: &QuerySet, first: u32, count: u32) {
        self.record(|commands| commands.reset_query_pool(&set.0, first, count));
    }

    /// Queries that were never written become 0, as WebGPU demands.
    pub(crate) fn copy_queries(
        &mut self,
        set: &QuerySet,
        (first, count): (u32, u32),
        to: &Buffer,
        (offset, stride): (u64, u64),
    ) {
        let flags = QueryResultFlags::TYPE_64 | QueryResultFlags::WAIT;
        let bytes = u64::from(count.saturating_sub(1)) * stride + wgpu_hal::QUERY_SIZE;
        // What lies between results is 0.
        self.clear_buffer(to, offset, bytes);
        self.barrier();
        self.record(|commands| commands.copy_query_pool_results(&set.0, first, count, &to.raw, offset, stride, flags));
    }

    /// Opens a group of commands; groups and passes nest.
    pub(crate) fn push_label(&mut self, label: &str) {
        self.labels.begin(label);
        self.put_label();
    }

    pub(crate) fn pop_label(&mut self) {
        self.labels.end();
        self.put_label();
    }

    /// Labels the following commands, until a group or pass begins or ends.
    pub(crate) fn mark(&mut self, label: &str) {
        self.labels.mark(label);
        self.put_label();
    }

    fn put_label(&mut self) {
        let label = self.labels.path();
        self.record(|commands| commands.set_label(label.as_deref()));
    }
}
