//! The programs that users of wgpu write first: a kernel over a buffer, many dispatches, shared memory, workgroups, a
//! texture that a kernel fills, and times.

#![allow(clippy::unwrap_used, reason = "tests and their helpers")]

use crate::common::{Gpu, words};

const DOUBLE: &str = "
    @group(0) @binding(0) var<storage, read_write> data: array<f32>;
    @compute @workgroup_size(64)
    fn main(@builtin(global_invocation_id) id: vec3<u32>) {
        if id.x < arrayLength(&data) { data[id.x] *= 2.0; }
    }";

#[test]
fn a_kernel_doubles_numbers() {
    let from: Vec<u32> = (0..100).map(|n| (n as f32 * 0.5).to_bits()).collect();
    let results = Gpu::shared().run(DOUBLE, &[&from], [2, 1, 1]);
    assert_eq!(results[0], (0..100).map(|n| (n as f32).to_bits()).collect::<Vec<u32>>());
}

/// Each submission sees what the one before it wrote, and the host writes between them.
#[test]
fn a_kernel_runs_again_and_again() {
    let gpu = Gpu::shared();
    let data = gpu.words(&[0; 256]);
    let pipeline = gpu.pipeline(DOUBLE, &[]);
    let group = gpu.group(&pipeline, &[data.as_entire_binding()]);
    for round in 0..50u32 {
        let start: Vec<u8> = (0..256).flat_map(|n| ((n + round) as f32).to_le_bytes()).collect();
        gpu.queue.write_buffer(&data, 0, &start);
        gpu.dispatch(&pipeline, &group, [4, 1, 1]);
        gpu.dispatch(&pipeline, &group, [4, 1, 1]);
        let expected: Vec<u32> = (0..256).map(|n| ((n + round) as f32 * 4.0).to_bits()).collect();
        assert_eq!(gpu.read_words(&data), expected, "round {round}");
    }
}

/// Many dispatches of one pass depend on each other: wgpu puts barriers between them.
#[test]
fn dispatches_of_a_pass_follow_each_other() {
    let gpu = Gpu::shared();
    let data = gpu.words(&[1f32.to_bits(); 1000]);
    let pipeline = gpu.pipeline(DOUBLE, &[]);
    let group = gpu.group(&pipeline, &[data.as_entire_binding()]);
    let mut encoder = gpu.encoder();
    let mut pass = encoder.begin_compute_pass(&wgpu::ComputePassDescriptor::default());
    pass.set_pipeline(&pipeline);
    pass.set_bind_group(0, &group, &[]);
    for _ in 0..20 {
        pass.dispatch_workgroups(16, 1, 1);
    }
    drop(pass);
    gpu.queue.submit([encoder.finish()]);
    assert_eq!(gpu.read_words(&data), [(1u32 << 20) as f32; 1000].map(f32::to_bits));
}

/// Barriers of shared memory, and atomics: all invocations count, one of them writes the count that all see.
#[test]
fn invocations_of_a_workgroup_meet() {
    let source = "
        @group(0) @binding(0) var<storage, read_write> counts: array<u32>;
        var<workgroup> count: atomic<u32>;
        @compute @workgroup_size(256)
        fn main(@builtin(local_invocation_index) i: u32, @builtin(workgroup_id) w: vec3<u32>) {
            atomicAdd(&count, i);
            workgroupBarrier();
            if i == 255u - w.x { counts[w.x] = atomicLoad(&count); }
        }";
    let results = Gpu::shared().run(source, &[&[0; 10]], [10, 1, 1]);
    assert_eq!(results[0], [255 * 256 / 2; 10]);
}

/// Workgroups add into two buffers of two bind groups.
#[test]
fn workgroups_share_buffers() {
    let gpu = Gpu::shared();
    let source = "
        @group(0) @binding(0) var<storage, read_write> a: array<i32>;
        @group(1) @binding(0) var<storage, read_write> b: array<i32>;
        @compute @workgroup_size(2)
        fn main(@builtin(local_invocation_id) l: vec3<u32>, @builtin(workgroup_id) w: vec3<u32>) {
            if l.x == 0u { a[w.x] += 1; }
            if l.x == 1u { b[w.x] += 1 + i32(w.x); }
        }";
    let (a, b) = (gpu.words(&[5; 100]), gpu.words(&[7; 100]));
    let pipeline = gpu.pipeline(source, &[]);
    let groups = [(0, &a), (1, &b)].map(|(at, buffer)| gpu.group_at(&pipeline, at, &[buffer.as_entire_binding()]));
    let mut encoder = gpu.encoder();
    let mut pass = encoder.begin_compute_pass(&wgpu::ComputePassDescriptor::default());
    pass.set_pipeline(&pipeline);
    pass.set_bind_group(0, &groups[0], &[]);
    pass.set_bind_group(1, &groups[1], &[]);
    pass.dispatch_workgroups(100, 1, 1);
    drop(pass);
    gpu.queue.submit([encoder.finish()]);
    assert_eq!(gpu.read_words(&a), [6; 100]);
    assert_eq!(gpu.read_words(&b), (0..100).map(|n| 8 + n).collect::<Vec<u32>>());
}

/// A kernel fills a storage texture, which is copied to a buffer and mapped.
#[test]
fn a_kernel_fills_a_texture() {
    let gpu = Gpu::shared();
    let source = "
        @group(0) @binding(0) var to: texture_storage_2d<rgba8unorm, write>;
        @compute @workgroup_size(8, 8)
        fn main(@builtin(global_invocation_id) id: vec3<u32>) {
            textureStore(to, id.xy, vec4(f32(id.x) / 255.0, f32(id.y) / 255.0, 1.0, f32(id.x ^ id.y) / 255.0));
        }";
    let size = wgpu::Extent3d { width: 64, height: 32, depth_or_array_layers: 1 };
    let texture = gpu.device.create_texture(&wgpu::TextureDescriptor {
        label: Some("filled"),
        size,
        mip_level_count: 1,
        sample_count: 1,
        dimension: wgpu::TextureDimension::D2,
        format: wgpu::TextureFormat::Rgba8Unorm,
        usage: wgpu::TextureUsages::STORAGE_BINDING | wgpu::TextureUsages::COPY_SRC,
        view_formats: &[],
    });
    let pipeline = gpu.pipeline(source, &[]);
    let view = texture.create_view(&wgpu::TextureViewDescriptor::default());
    let group = gpu.group(&pipeline, &[wgpu::BindingResource::TextureView(&view)]);
    gpu.dispatch(&pipeline, &group, [8, 4, 1]);
    let buffer = gpu.words(&[0; 64 * 32]);
    let mut encoder = gpu.encoder();
    let layout = wgpu::TexelCopyBufferLayout { offset: 0, bytes_per_row: Some(256), rows_per_image: None };
    encoder.copy_texture_to_buffer(
        texture.as_image_copy(),
        wgpu::TexelCopyBufferInfo { buffer: &buffer, layout },
        size,
    );
    gpu.queue.submit([encoder.finish()]);
    let expected: Vec<u8> = (0..32u8).flat_map(|y| (0..64u8).flat_map(move |x| [x, y, 255, x ^ y])).collect();
    assert_eq!(gpu.read(&buffer), expected);
}

/// Timestamps around passes, inside of them and between them grow, and a query that was not written is 0.
#[test]
fn times_of_passes_grow() {
    let gpu = Gpu::shared();
    let set = gpu.device.create_query_set(&wgpu::QuerySetDescriptor {
        label: None,
        ty: wgpu::QueryType::Timestamp,
        count: 8,
    });
    let results = gpu.device.create_buffer(&wgpu::BufferDescriptor {
        label: None,
        size: 64,
        usage: wgpu::BufferUsages::QUERY_RESOLVE | wgpu::BufferUsages::COPY_SRC,
        mapped_at_creation: false,
    });
    let data = gpu.words(&[1; 4096]);
    let pipeline = gpu.pipeline(DOUBLE, &[]);
    let group = gpu.group(&pipeline, &[data.as_entire_binding()]);
    let mut encoder = gpu.encoder();
    encoder.write_timestamp(&set, 0);
    let mut pass = encoder.begin_compute_pass(&wgpu::ComputePassDescriptor {
        label: Some("timed"),
        timestamp_writes: Some(wgpu::ComputePassTimestampWrites {
            query_set: &set,
            beginning_of_pass_write_index: Some(1),
            end_of_pass_write_index: Some(4),
        }),
    });
    pass.set_pipeline(&pipeline);
    pass.set_bind_group(0, &group, &[]);
    pass.write_timestamp(&set, 2);
    pass.dispatch_workgroups(64, 1, 1);
    pass.write_timestamp(&set, 3);
    drop(pass);
    encoder.write_timestamp(&set, 5);
    encoder.resolve_query_set(&set, 0..6, &results, 0);
    gpu.queue.submit([encoder.finish()]);
    let words = words(&gpu.read(&results));
    let times: Vec<u64> = words.chunks(2).map(|pair| u64::from(pair[0]) | u64::from(pair[1]) << 32).collect();
    assert!(times[..6].is_sorted() && times[0] > 0, "{times:?}");
    assert_eq!(times[6..], [0; 2]);
    // Nanoseconds of the system's clock: a second has not passed.
    assert_eq!(gpu.queue.get_timestamp_period(), 1.0);
    assert!(times[3] > times[2] && times[5] - times[0] < 60_000_000_000, "{times:?}");
}
