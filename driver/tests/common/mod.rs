//! Helpers of the device's tests: buffers with memory, and kernels from WGSL.
#![allow(dead_code, clippy::unwrap_used, unreachable_pub)] // each test file uses its part

pub mod checked;

use std::time::Duration;

use spelter_driver::vk::{BufferUsageFlags, DescriptorType};
use spelter_driver::{
    Binding, Buffer, BufferInfo, CommandBuffer, ComputePipeline, DescriptorSet, DescriptorSetLayout, Device,
    DeviceMemory, DeviceOptions, PipelineLayout, PushRange, ShaderModule, Specialization, vk,
};

pub fn device() -> Device {
    Device::new(options()).unwrap()
}

pub fn options() -> DeviceOptions {
    DeviceOptions {
        workers: 2,
        heap_size: 64 << 20,
        time_limit: Duration::from_secs(600),
        queues: 2,
        ..DeviceOptions::default()
    }
}

/// A buffer of words with all usages and its own memory.
pub struct Words {
    pub buffer: Buffer,
    pub memory: DeviceMemory,
}

pub const ANY_USE: BufferUsageFlags = BufferUsageFlags::from_raw(
    BufferUsageFlags::TRANSFER_SRC.as_raw()
        | BufferUsageFlags::TRANSFER_DST.as_raw()
        | BufferUsageFlags::STORAGE_BUFFER.as_raw()
        | BufferUsageFlags::UNIFORM_BUFFER.as_raw()
        | BufferUsageFlags::INDIRECT_BUFFER.as_raw(),
);

impl Words {
    pub fn new(device: &Device, words: &[u32]) -> Self {
        let buffer = device.create_buffer(words.len() as u64 * 4, ANY_USE).unwrap();
        let memory = device.allocate_memory(buffer.requirements().size, 0).unwrap();
        buffer.bind_memory(&memory, 0).unwrap();
        Self { buffer, memory }.write(words)
    }

    pub fn zeros(device: &Device, count: usize) -> Self {
        Self::new(device, &vec![0; count])
    }

    pub fn write(self, words: &[u32]) -> Self {
        let bytes: Vec<u8> = words.iter().flat_map(|word| word.to_le_bytes()).collect();
        self.memory.write(0, &bytes).unwrap();
        self
    }

    pub fn read(&self) -> Vec<u32> {
        let mut bytes = vec![0; self.buffer.size() as usize];
        self.memory.read(0, &mut bytes).unwrap();
        bytes.chunks_exact(4).map(|word| u32::from_le_bytes(word.try_into().unwrap())).collect()
    }

    pub fn whole(&self) -> BufferInfo<'_> {
        BufferInfo { buffer: &self.buffer, offset: 0, range: vk::WHOLE_SIZE }
    }

    pub fn part(&self, offset: u64, range: u64) -> BufferInfo<'_> {
        BufferInfo { buffer: &self.buffer, offset, range }
    }
}

/// A kernel with its objects: pipeline, layouts of one set, and push constants if it has any.
pub struct Kernel {
    pub set_layout: DescriptorSetLayout,
    pub layout: PipelineLayout,
    pub pipeline: ComputePipeline,
}

impl Kernel {
    pub fn new(device: &Device, wgsl: &str, bindings: &[(DescriptorType, u32)], push_bytes: u32) -> Self {
        Self::named(device, wgsl, "main", bindings, push_bytes)
    }

    pub fn named(
        device: &Device,
        wgsl: &str,
        entry: &str,
        bindings: &[(DescriptorType, u32)],
        push_bytes: u32,
    ) -> Self {
        let module = device.create_shader_module_wgsl(wgsl).unwrap();
        Self::of_module(device, &module, entry, bindings, push_bytes)
    }

    pub fn of_module(
        device: &Device,
        module: &ShaderModule,
        entry: &str,
        bindings: &[(DescriptorType, u32)],
        push_bytes: u32,
    ) -> Self {
        let bindings: Vec<Binding> =
            (0..).zip(bindings).map(|(binding, &(ty, count))| Binding { binding, ty, count }).collect();
        let set_layout = device.create_descriptor_set_layout(&bindings).unwrap();
        let push = [PushRange { offset: 0, size: push_bytes }];
        let push = if push_bytes == 0 { &[][..] } else { &push[..] };
        let layout = device.create_pipeline_layout(&[&set_layout], push).unwrap();
        let pipeline = device.create_compute_pipeline(module, entry, &Specialization::new(), &layout).unwrap();
        Self { set_layout, layout, pipeline }
    }

    /// A set whose bindings 0, 1, … are whole buffers.
    pub fn set(&self, device: &Device, ty: DescriptorType, buffers: &[&Words]) -> DescriptorSet {
        let set = device.create_descriptor_pool(1, &[(ty, buffers.len() as u32)]).unwrap().allocate(&self.set_layout);
        let set = set.unwrap();
        for (binding, words) in (0..).zip(buffers) {
            set.write(binding, 0, ty, &[words.whole()]).unwrap();
        }
        set
    }
}

pub const STORAGE: DescriptorType = DescriptorType::STORAGE_BUFFER;

/// A command buffer with the commands that `record` records.
pub fn recorded(
    device: &Device,
    flags: vk::CommandBufferUsageFlags,
    record: impl FnOnce(&CommandBuffer),
) -> CommandBuffer {
    let command = device.create_command_pool().allocate();
    command.begin(flags).unwrap();
    record(&command);
    command.end().unwrap();
    command
}

/// Records, submits and waits.
pub fn run(device: &Device, record: impl FnOnce(&CommandBuffer)) {
    let command = recorded(device, vk::CommandBufferUsageFlags::ONE_TIME_SUBMIT, record);
    device.queue().submit(&[&command], None).unwrap();
    device.queue().wait_idle().unwrap();
}

/// A full barrier: all earlier commands end before later ones start.
pub fn barrier(command: &CommandBuffer) {
    let all = vk::PipelineStageFlags::ALL_COMMANDS;
    command.pipeline_barrier(all, all, &[], &[]).unwrap();
}

/// Each invocation adds 1 to its own word.
pub const COUNT: &str = "
    @group(0) @binding(0) var<storage, read_write> words: array<u32>;
    @compute @workgroup_size(4) fn main(@builtin(global_invocation_id) id: vec3<u32>) { words[id.x] += 1u; }";
