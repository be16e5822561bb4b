//! A program of wgpu that knows nothing of Spelter, for `spelter exec --graphics`: prints the device and the sum of
//! what a kernel wrote.

#![expect(clippy::print_stdout, reason = "this is a program for the command line")]

// Programs have `pollster`; it is all that is taken from this crate.
use spelter_wgpu::ready as wait;
use wgpu::{BufferUsages, MapMode, PollType};

const KERNEL: &str = "
    @group(0) @binding(0) var<storage, read_write> data: array<u32>;
    @compute @workgroup_size(64) fn main(@builtin(global_invocation_id) id: vec3<u32>) { data[id.x] = id.x; }";

fn main() {
    let instance = wgpu::Instance::new(wgpu::InstanceDescriptor::new_without_display_handle_from_env());
    let adapter = wait(instance.request_adapter(&Default::default())).expect("there is an adapter");
    let (device, queue) = wait(adapter.request_device(&Default::default())).expect("the adapter has a device");
    let buffer = |usage| {
        device.create_buffer(&wgpu::BufferDescriptor { label: None, size: 4 * 256, usage, mapped_at_creation: false })
    };
    let data = buffer(BufferUsages::STORAGE | BufferUsages::COPY_SRC);
    let read = buffer(BufferUsages::MAP_READ | BufferUsages::COPY_DST);
    let source = wgpu::ShaderSource::Wgsl(KERNEL.into());
    let module = device.create_shader_module(wgpu::ShaderModuleDescriptor { label: None, source });
    let pipeline = device.create_compute_pipeline(&wgpu::ComputePipelineDescriptor {
        label: None,
        layout: None,
        module: &module,
        entry_point: None,
        compilation_options: Default::default(),
        cache: None,
    });
    let group = device.create_bind_group(&wgpu::BindGroupDescriptor {
        label: None,
        layout: &pipeline.get_bind_group_layout(0),
        entries: &[wgpu::BindGroupEntry { binding: 0, resource: data.as_entire_binding() }],
    });
    let mut encoder = device.create_command_encoder(&Default::default());
    let mut pass = encoder.begin_compute_pass(&Default::default());
    pass.set_pipeline(&pipeline);
    pass.set_bind_group(0, &group, &[]);
    pass.dispatch_workgroups(4, 1, 1);
    drop(pass);
    encoder.copy_buffer_to_buffer(&data, 0, &read, 0, data.size());
    queue.submit([encoder.finish()]);
    read.map_async(MapMode::Read, .., |result| result.expect("the buffer can be mapped"));
    device.poll(PollType::wait_indefinitely()).expect("the device works");
    let bytes = read.get_mapped_range(..).expect("the buffer is mapped").to_vec();
    let words = bytes.chunks_exact(4).map(|word| u32::from_le_bytes([word[0], word[1], word[2], word[3]]));
    println!("{} {}", adapter.get_info().name, words.sum::<u32>());
}
