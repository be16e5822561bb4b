//! Measures what the build profile of a program costs it: time to open a device, to create a pipeline and run it for
//! the first time, and to dispatch it. Prints milliseconds, one line of JSON for each measurement.
//!
//! Run it in each profile: as it is, with `--config 'profile.dev.package."*".opt-level=2'`, and with `--release`.

use std::time::Instant;

use spelter_wgpu::wgpu;

const LOOPS: &str = "
    @group(0) @binding(0) var<storage, read_write> data: array<u32>;
    @compute @workgroup_size(64)
    fn main(@builtin(global_invocation_id) id: vec3<u32>) {
        var x = id.x + 1u;
        var steps = 0u;
        while x != 1u && steps < 1000u {
            if x % 2u == 0u { x = x / 2u; } else { x = 3u * x + 1u; }
            steps += 1u;
        }
        for (var i = 0u; i < steps % 16u; i++) { x += steps / (i + 1u); }
        if id.x < arrayLength(&data) { data[id.x] = x + steps; }
    }";

const TILES: &str = "
    @group(0) @binding(0) var<storage, read_write> c: array<f32>;
    var<workgroup> left: array<array<f32, 16>, 16>;
    var<workgroup> right: array<array<f32, 16>, 16>;
    @compute @workgroup_size(16, 16)
    fn main(@builtin(global_invocation_id) id: vec3<u32>, @builtin(local_invocation_id) at: vec3<u32>) {
        var sum = 0.0;
        for (var tile = 0u; tile < 4u; tile++) {
            left[at.y][at.x] = c[(id.y % 16u) * 64u + tile * 16u + at.x];
            right[at.y][at.x] = c[(tile * 16u + at.y) * 16u + id.x % 16u];
            workgroupBarrier();
            for (var k = 0u; k < 16u; k++) { sum += left[at.y][k] * right[k][at.x]; }
            workgroupBarrier();
        }
        c[2048u + (id.y * 16u + id.x) % 1024u] = sum;
    }";

/// Dispatches of the measurement of one pass.
const DISPATCHES: u32 = 1000;

struct Device {
    device: wgpu::Device,
    queue: wgpu::Queue,
    data: wgpu::Buffer,
}

fn main() {
    let start = Instant::now();
    let (device, queue) = spelter_wgpu::device();
    print("open a device", start);
    let usage = wgpu::BufferUsages::STORAGE;
    let descriptor = wgpu::BufferDescriptor { label: None, size: 1 << 16, usage, mapped_at_creation: false };
    let data = device.create_buffer(&descriptor);
    let device = Device { device, queue, data };
    let kernels = [("five lines", outside::SQUARES), ("loops and a division", LOOPS), ("tiles of memory", TILES)];
    for (name, source) in kernels {
        let start = Instant::now();
        let pipeline = device.pipeline(source);
        device.run(&pipeline, 1);
        print(&format!("create and run: {name}"), start);
    }
    let pipeline = device.pipeline(outside::SQUARES);
    let start = Instant::now();
    for _ in 0..100 {
        device.run(&pipeline, 1);
    }
    print("100 dispatches, each waited for", start);
    let start = Instant::now();
    device.run(&pipeline, DISPATCHES);
    print("1000 dispatches of one pass", start);
}

impl Device {
    fn pipeline(&self, source: &str) -> wgpu::ComputePipeline {
        let source = wgpu::ShaderSource::Wgsl(source.into());
        let module = self.device.create_shader_module(wgpu::ShaderModuleDescriptor { label: None, source });
        self.device.create_compute_pipeline(&wgpu::ComputePipelineDescriptor {
            label: None,
            layout: None,
            module: &module,
            entry_point: None,
            compilation_options: Default::default(),
            cache: None,
        })
    }

    /// Dispatches the pipeline, and waits.
    fn run(&self, pipeline: &wgpu::ComputePipeline, dispatches: u32) {
        let entries = [wgpu::BindGroupEntry { binding: 0, resource: self.data.as_entire_binding() }];
        let layout = &pipeline.get_bind_group_layout(0);
        let group =
            self.device.create_bind_group(&wgpu::BindGroupDescriptor { label: None, layout, entries: &entries });
        let mut encoder = self.device.create_command_encoder(&Default::default());
        let mut pass = encoder.begin_compute_pass(&Default::default());
        pass.set_pipeline(pipeline);
        pass.set_bind_group(0, &group, &[]);
        for _ in 0..dispatches {
            pass.dispatch_workgroups(4, 4, 1);
        }
        drop(pass);
        self.queue.submit([encoder.finish()]);
        self.device.poll(wgpu::PollType::wait_indefinitely()).expect("the device works");
    }
}

fn print(what: &str, start: Instant) {
    println!("{{\"measured\":\"{what}\",\"ms\":{:.3}}}", start.elapsed().as_secs_f64() * 1e3);
}
