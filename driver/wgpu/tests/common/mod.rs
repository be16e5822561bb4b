//! What the tests share: a device, and programs that are one dispatch over a few buffers.

#![allow(dead_code, clippy::unwrap_used, reason = "`devices` uses a part; a failing test panics")]

use std::sync::OnceLock;

use wgpu::util::DeviceExt as _;

/// A device and its queue.
#[derive(Clone)]
pub(crate) struct Gpu {
    pub(crate) device: wgpu::Device,
    pub(crate) queue: wgpu::Queue,
}

impl Gpu {
    /// The device that the tests of a process share.
    pub(crate) fn shared() -> Self {
        static SHARED: OnceLock<Gpu> = OnceLock::new();
        SHARED.get_or_init(|| Self::of(&spelter_wgpu::Options::from_env().workers(2))).clone()
    }

    pub(crate) fn of(options: &spelter_wgpu::Options) -> Self {
        let (device, queue) = options.device().unwrap();
        Self { device, queue }
    }

    /// A storage buffer with these bytes.
    pub(crate) fn buffer(&self, contents: &[u8]) -> wgpu::Buffer {
        let usage = wgpu::BufferUsages::STORAGE
            | wgpu::BufferUsages::UNIFORM
            | wgpu::BufferUsages::COPY_SRC
            | wgpu::BufferUsages::COPY_DST
            | wgpu::BufferUsages::INDIRECT;
        self.device.create_buffer_init(&wgpu::util::BufferInitDescriptor { label: None, contents, usage })
    }

    pub(crate) fn words(&self, contents: &[u32]) -> wgpu::Buffer {
        self.buffer(&bytes(contents))
    }

    /// The bytes of a buffer, after all submitted commands.
    pub(crate) fn read(&self, buffer: &wgpu::Buffer) -> Vec<u8> {
        let staging = self.device.create_buffer(&wgpu::BufferDescriptor {
            label: None,
            size: buffer.size(),
            usage: wgpu::BufferUsages::COPY_DST | wgpu::BufferUsages::MAP_READ,
            mapped_at_creation: false,
        });
        let mut encoder = self.encoder();
        encoder.copy_buffer_to_buffer(buffer, 0, &staging, 0, buffer.size());
        self.queue.submit([encoder.finish()]);
        self.mapped(&staging)
    }

    /// The bytes of a buffer that can be mapped.
    pub(crate) fn mapped(&self, buffer: &wgpu::Buffer) -> Vec<u8> {
        buffer.map_async(wgpu::MapMode::Read, .., |result| result.unwrap());
        self.device.poll(wgpu::PollType::wait_indefinitely()).unwrap();
        let bytes = buffer.get_mapped_range(..).unwrap().to_vec();
        buffer.unmap();
        bytes
    }

    pub(crate) fn read_words(&self, buffer: &wgpu::Buffer) -> Vec<u32> {
        words(&self.read(buffer))
    }

    pub(crate) fn encoder(&self) -> wgpu::CommandEncoder {
        self.device.create_command_encoder(&wgpu::CommandEncoderDescriptor::default())
    }

    pub(crate) fn module(&self, source: &str) -> wgpu::ShaderModule {
        let source = wgpu::ShaderSource::Wgsl(source.into());
        self.device.create_shader_module(wgpu::ShaderModuleDescriptor { label: None, source })
    }

    /// A pipeline of the entry point `main`, with the layout that the shader needs.
    pub(crate) fn pipeline(&self, source: &str, constants: &[(&str, f64)]) -> wgpu::ComputePipeline {
        let module = self.module(source);
        self.device.create_compute_pipeline(&wgpu::ComputePipelineDescriptor {
            label: None,
            layout: None,
            module: &module,
            entry_point: Some("main"),
            compilation_options: wgpu::PipelineCompilationOptions { constants, ..Default::default() },
            cache: None,
        })
    }

    /// The layout of a pipeline with one group of these entries, and with this many bytes of immediates.
    pub(crate) fn layout(&self, entries: &[wgpu::BindGroupLayoutEntry], immediate_size: u32) -> wgpu::PipelineLayout {
        let group = wgpu::BindGroupLayoutDescriptor { label: None, entries };
        let group = self.device.create_bind_group_layout(&group);
        self.device.create_pipeline_layout(&wgpu::PipelineLayoutDescriptor {
            label: None,
            bind_group_layouts: &[Some(&group)],
            immediate_size,
        })
    }

    /// The group 0 of a pipeline, with these resources as bindings 0, 1, ….
    pub(crate) fn group(
        &self,
        pipeline: &wgpu::ComputePipeline,
        resources: &[wgpu::BindingResource<'_>],
    ) -> wgpu::BindGroup {
        self.group_at(pipeline, 0, resources)
    }

    pub(crate) fn group_at(
        &self,
        pipeline: &wgpu::ComputePipeline,
        index: u32,
        resources: &[wgpu::BindingResource<'_>],
    ) -> wgpu::BindGroup {
        let entries: Vec<_> = (0..)
            .zip(resources)
            .map(|(binding, resource)| wgpu::BindGroupEntry { binding, resource: resource.clone() })
            .collect();
        let layout = pipeline.get_bind_group_layout(index);
        self.device.create_bind_group(&wgpu::BindGroupDescriptor { label: None, layout: &layout, entries: &entries })
    }

    /// Runs workgroups of a pipeline with one bind group.
    pub(crate) fn dispatch(&self, pipeline: &wgpu::ComputePipeline, group: &wgpu::BindGroup, [x, y, z]: [u32; 3]) {
        let mut encoder = self.encoder();
        let mut pass = encoder.begin_compute_pass(&wgpu::ComputePassDescriptor::default());
        pass.set_pipeline(pipeline);
        pass.set_bind_group(0, group, &[]);
        pass.dispatch_workgroups(x, y, z);
        drop(pass);
        self.queue.submit([encoder.finish()]);
    }

    /// Runs a text over buffers of words, which are the bindings 0, 1, …. Returns all of them afterwards.
    pub(crate) fn run(&self, source: &str, buffers: &[&[u32]], groups: [u32; 3]) -> Vec<Vec<u32>> {
        let buffers: Vec<_> = buffers.iter().map(|words| self.words(words)).collect();
        let pipeline = self.pipeline(source, &[]);
        let resources: Vec<_> = buffers.iter().map(wgpu::Buffer::as_entire_binding).collect();
        let group = self.group(&pipeline, &resources);
        self.dispatch(&pipeline, &group, groups);
        buffers.iter().map(|buffer| self.read_words(buffer)).collect()
    }
}

/// The error that `work` causes; a failure if it causes none.
pub(crate) fn error_of(device: &wgpu::Device, work: impl FnOnce()) -> String {
    let scopes = [wgpu::ErrorFilter::Validation, wgpu::ErrorFilter::Internal, wgpu::ErrorFilter::OutOfMemory]
        .map(|filter| device.push_error_scope(filter));
    work();
    // Scopes are popped in reverse.
    let errors: Vec<_> = scopes
        .into_iter()
        .rev()
        .filter_map(|scope| spelter_wgpu::ready(scope.pop()))
        .map(|error| text(&error))
        .collect();
    assert_eq!(errors.len(), 1, "{errors:?}");
    errors[0].clone()
}

/// An error with all of its causes.
pub(crate) fn text(error: &dyn std::error::Error) -> String {
    let mut all = error.to_string();
    let mut next = error.source();
    while let Some(cause) = next {
        all += &format!(": {cause}");
        next = cause.source();
    }
    all
}

pub(crate) fn bytes(words: &[u32]) -> Vec<u8> {
    words.iter().flat_map(|word| word.to_le_bytes()).collect()
}

pub(crate) fn words(bytes: &[u8]) -> Vec<u32> {
    bytes.chunks_exact(4).map(|word| u32::from_le_bytes(word.try_into().unwrap())).collect()
}

pub(crate) fn floats(values: &[f32]) -> Vec<u32> {
    values.iter().map(|value| value.to_bits()).collect()
}
