//! The test of a user: a kernel runs and its result is right, in an unoptimised build.

use spelter_wgpu::wgpu;

#[test]
fn the_kernel_writes_squares() {
    let (device, queue) = spelter_wgpu::device();
    let size = 4 * 1000;
    let buffer = |usage| {
        device.create_buffer(&wgpu::BufferDescriptor { label: None, size, usage, mapped_at_creation: false })
    };
    let data = buffer(wgpu::BufferUsages::STORAGE | wgpu::BufferUsages::COPY_SRC);
    let read = buffer(wgpu::BufferUsages::MAP_READ | wgpu::BufferUsages::COPY_DST);
    let source = wgpu::ShaderSource::Wgsl(outside::SQUARES.into());
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
    pass.dispatch_workgroups(16, 1, 1);
    drop(pass);
    encoder.copy_buffer_to_buffer(&data, 0, &read, 0, size);
    queue.submit([encoder.finish()]);
    read.map_async(wgpu::MapMode::Read, .., |result| result.expect("the buffer can be mapped"));
    device.poll(wgpu::PollType::wait_indefinitely()).expect("the device works");
    let bytes = read.get_mapped_range(..).expect("the buffer is mapped").to_vec();
    // No crate that comes with the adapter compares a `usize` with other types, so that this type is known.
    assert_eq!(bytes.len(), size as _);
    let words: Vec<u32> = bytes.chunks_exact(4).map(|word| u32::from_le_bytes(word.try_into().unwrap())).collect();
    assert_eq!(words, (0..1000).map(|n| n * n).collect::<Vec<u32>>());
}
