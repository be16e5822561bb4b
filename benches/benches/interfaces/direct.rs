//! The crate and the driver: interfaces without wgpu.

use std::hint::black_box;

use spelter::{Buffer, Context, Program, bytemuck};
use spelter_benches::Error;
use spelter_driver::vk::{AccessFlags, BufferUsageFlags, CommandBufferUsageFlags, DescriptorType, PipelineStageFlags};
use spelter_driver::{
    Binding, BufferInfo, CommandPool, ComputePipeline, DescriptorSet, Device, DeviceMemory, DeviceOptions,
    MemoryBarrier, PipelineLayout, Specialization,
};
use spelter_shaders::front::wgsl::WgslModule;

use super::{BYTES, CHANGED, Interface, KERNEL};

/// The crate `spelter`.
pub(crate) struct Crate {
    context: Context,
    program: Program,
    buffer: Buffer,
}

impl Crate {
    pub(crate) fn open() -> Result<Self, Error> {
        let context = Context::new()?;
        let (program, buffer) = (context.program_wgsl(KERNEL)?, context.buffer_zeroed(BYTES as u64)?);
        Ok(Self { context, program, buffer })
    }
}

impl Interface for Crate {
    fn device(&self) -> String {
        self.context.device().properties().device_name.clone()
    }

    fn dispatch(&mut self, count: u32) -> Result<(), Error> {
        for _ in 0..count {
            self.context.dispatch(&self.program).bind(0, 0, &self.buffer).groups([1, 1, 1])?;
        }
        Ok(self.context.finish()?)
    }

    fn read(&mut self, to: &mut [u8]) -> Result<(), Error> {
        Ok(self.context.read_into(&self.buffer, 0, to)?)
    }
}

/// The crate `spelter`, where a read returns a new list of values.
pub(crate) struct Lists(Crate);

impl Lists {
    pub(crate) fn open() -> Result<Self, Error> {
        Ok(Self(Crate::open()?))
    }
}

impl Interface for Lists {
    fn device(&self) -> String {
        self.0.device()
    }

    fn dispatch(&mut self, count: u32) -> Result<(), Error> {
        self.0.dispatch(count)
    }

    fn read(&mut self, to: &mut [u8]) -> Result<(), Error> {
        let words = black_box(self.0.context.read::<u32>(&self.0.buffer)?);
        // Those that dispatches change, to be checked: copying the others would be measured, too.
        to[..CHANGED * 4].copy_from_slice(bytemuck::cast_slice(&words[..CHANGED]));
        Ok(())
    }
}

/// The crate `spelter-driver`, as a Vulkan program uses its driver: one command buffer for each submission.
pub(crate) struct Driver {
    device: Device,
    pool: CommandPool,
    pipeline: ComputePipeline,
    layout: PipelineLayout,
    set: DescriptorSet,
    memory: DeviceMemory,
}

impl Driver {
    pub(crate) fn open() -> Result<Self, Error> {
        let device = Device::new(DeviceOptions::default())?;
        let ty = DescriptorType::STORAGE_BUFFER;
        let set_layout = device.create_descriptor_set_layout(&[Binding { binding: 0, ty, count: 1 }])?;
        let set = device.create_descriptor_pool(1, &[(ty, 1)])?.allocate(&set_layout)?;
        let buffer = device.create_buffer(BYTES as u64, BufferUsageFlags::STORAGE_BUFFER)?;
        let memory = device.allocate_memory(buffer.requirements().size, 0)?;
        buffer.bind_memory(&memory, 0)?;
        memory.write(0, &[0; BYTES])?;
        set.write(0, 0, ty, &[BufferInfo { buffer: &buffer, offset: 0, range: BYTES as u64 }])?;
        let layout = device.create_pipeline_layout(&[&set_layout], &[])?;
        let words = WgslModule::parse(KERNEL)?.to_spirv("main", &[].into())?;
        let module = device.create_shader_module(&words)?;
        let pipeline = device.create_compute_pipeline(&module, "main", &Specialization::new(), &layout)?;
        let pool = device.create_command_pool();
        Ok(Self { device, pool, pipeline, layout, set, memory })
    }
}

impl Interface for Driver {
    fn device(&self) -> String {
        self.device.properties().device_name.clone()
    }

    fn dispatch(&mut self, count: u32) -> Result<(), Error> {
        let command = self.pool.allocate();
        command.begin(CommandBufferUsageFlags::ONE_TIME_SUBMIT)?;
        command.bind_pipeline(&self.pipeline)?;
        command.bind_descriptor_sets(&self.layout, 0, &[&self.set], &[])?;
        let stage = PipelineStageFlags::COMPUTE_SHADER;
        let access = AccessFlags::SHADER_READ | AccessFlags::SHADER_WRITE;
        let barrier = MemoryBarrier { src_access: AccessFlags::SHADER_WRITE, dst_access: access };
        for _ in 0..count {
            command.dispatch(1, 1, 1)?;
            command.pipeline_barrier(stage, stage, &[barrier], &[])?;
        }
        let host = MemoryBarrier { src_access: AccessFlags::SHADER_WRITE, dst_access: AccessFlags::HOST_READ };
        command.pipeline_barrier(stage, PipelineStageFlags::HOST, &[host], &[])?;
        command.end()?;
        let queue = self.device.queue();
        queue.submit(&[&command], None)?;
        Ok(queue.wait_idle()?)
    }

    /// Device memory is the host's.
    fn read(&mut self, to: &mut [u8]) -> Result<(), Error> {
        Ok(self.memory.read(0, to)?)
    }
}
