//! wgpu: on `spelter-wgpu`, and by its own Vulkan back end on the driver that the loader finds.

use spelter_benches::Error;

use super::{BYTES, Interface, KERNEL};

/// A device of wgpu.
pub(crate) struct Wgpu {
    name: String,
    device: wgpu::Device,
    queue: wgpu::Queue,
    pipeline: wgpu::ComputePipeline,
    group: wgpu::BindGroup,
    buffer: wgpu::Buffer,
    staging: wgpu::Buffer,
}

impl Wgpu {
    pub(crate) fn of_spelter() -> Result<Self, Error> {
        Self::of(&spelter_wgpu::instance())
    }

    pub(crate) fn of_loader() -> Result<Self, Error> {
        Self::of(&wgpu::Instance::new(wgpu::InstanceDescriptor {
            backends: wgpu::Backends::VULKAN,
            ..wgpu::InstanceDescriptor::new_without_display_handle()
        }))
    }

    fn of(instance: &wgpu::Instance) -> Result<Self, Error> {
        let adapter = spelter_wgpu::ready(instance.request_adapter(&wgpu::RequestAdapterOptions::default()))?;
        let (device, queue) = spelter_wgpu::ready(adapter.request_device(&wgpu::DeviceDescriptor::default()))?;
        let buffer = |usage| {
            let size = BYTES as u64;
            device.create_buffer(&wgpu::BufferDescriptor { label: None, size, usage, mapped_at_creation: false })
        };
        let staging = buffer(wgpu::BufferUsages::MAP_READ | wgpu::BufferUsages::COPY_DST);
        let buffer = buffer(wgpu::BufferUsages::STORAGE | wgpu::BufferUsages::COPY_SRC);
        let source = wgpu::ShaderSource::Wgsl(KERNEL.into());
        let module = device.create_shader_module(wgpu::ShaderModuleDescriptor { label: None, source });
        let pipeline = device.create_compute_pipeline(&wgpu::ComputePipelineDescriptor {
            label: None,
            layout: None,
            module: &module,
            entry_point: None,
            compilation_options: wgpu::PipelineCompilationOptions::default(),
            cache: None,
        });
        let group = device.create_bind_group(&wgpu::BindGroupDescriptor {
            label: None,
            layout: &pipeline.get_bind_group_layout(0),
            entries: &[wgpu::BindGroupEntry { binding: 0, resource: buffer.as_entire_binding() }],
        });
        let info = adapter.get_info();
        Ok(Self {
            name: format!("{} {}", info.name, info.driver_info),
            device,
            queue,
            pipeline,
            group,
            buffer,
            staging,
        })
    }

    fn encoder(&self) -> wgpu::CommandEncoder {
        self.device.create_command_encoder(&wgpu::CommandEncoderDescriptor::default())
    }

    fn submit_and_wait(&self, encoder: wgpu::CommandEncoder) -> Result<(), Error> {
        self.queue.submit([encoder.finish()]);
        self.device.poll(wgpu::PollType::wait_indefinitely())?;
        Ok(())
    }
}

impl Interface for Wgpu {
    fn device(&self) -> String {
        self.name.clone()
    }

    fn dispatch(&mut self, count: u32) -> Result<(), Error> {
        let mut encoder = self.encoder();
        let mut pass = encoder.begin_compute_pass(&wgpu::ComputePassDescriptor::default());
        pass.set_pipeline(&self.pipeline);
        pass.set_bind_group(0, &self.group, &[]);
        for _ in 0..count {
            pass.dispatch_workgroups(1, 1, 1);
        }
        drop(pass);
        self.submit_and_wait(encoder)
    }

    fn read(&mut self, to: &mut [u8]) -> Result<(), Error> {
        let mut encoder = self.encoder();
        encoder.copy_buffer_to_buffer(&self.buffer, 0, &self.staging, 0, BYTES as u64);
        self.queue.submit([encoder.finish()]);
        self.staging.map_async(wgpu::MapMode::Read, .., |_| ());
        self.device.poll(wgpu::PollType::wait_indefinitely())?;
        to.copy_from_slice(&self.staging.get_mapped_range(..)?);
        self.staging.unmap();
        Ok(())
    }
}
