//! The programs that users of wgpu write after its examples ([`crate::examples`]): many dispatches that depend on each
//! other, shared memory, and times.

#![allow(clippy::unwrap_used, reason = "tests and their helpers")]

use crate::common::{Gpu, words};

const DOUBLE: &str = "
    @group(0) @binding(0) var<storage, read_write> data: array<f32>;
    @compute @workgroup_size(64)
    fn main(@builtin(global_invocation_id) id: vec3<u32>) {
        if id.x < arrayLength(&data) { data[id.x] *= 2.0; }
    }";

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
