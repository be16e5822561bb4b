//! The examples of wgpu's own repository that compute, by their names there and in words of our own: users know them,
//! and try them first. Results are computed in Rust, and compared with lavapipe's where it is installed
//! ([`crate::lavapipe`]).

#![allow(clippy::unwrap_used, reason = "tests and their helpers")]

use crate::common::{Gpu, bytes, floats, words};
use crate::lavapipe::work::Same;

/// An example.
pub(crate) struct Example {
    pub(crate) name: &'static str,
    /// Runs it. Returns what it reads back.
    pub(crate) run: fn(&Gpu) -> Vec<u32>,
    expected: fn() -> Vec<u32>,
    /// When its results are equal.
    pub(crate) same: Same,
}

/// All but `timestamp_queries`, whose results differ from run to run.
pub(crate) const EXAMPLES: [Example; 5] = [
    Example { name: "hello_compute", run: double, expected: doubled, same: Same::Bits },
    Example { name: "repeated_compute", run: count_steps, expected: steps_of_all, same: Same::Bits },
    Example { name: "hello_synchronization", run: meet, expected: met, same: Same::Bits },
    Example { name: "hello_workgroups", run: choose_buffers, expected: chosen_buffers, same: Same::Bits },
    // Products and sums may be fused, which changes the step at which few points leave.
    Example { name: "storage_texture", run: draw, expected: drawn, same: Same::Codes { apart: 1, share: 200 } },
];

#[test]
fn examples_compute_what_rust_computes() {
    for Example { name, run, expected, same } in EXAMPLES {
        // A device of its own, with the limits and features that the examples ask for: none that are not WebGPU's.
        let instance = spelter_wgpu::instance();
        let adapter = spelter_wgpu::ready(instance.request_adapter(&wgpu::RequestAdapterOptions::default())).unwrap();
        let descriptor =
            wgpu::DeviceDescriptor { required_limits: wgpu::Limits::downlevel_defaults(), ..Default::default() };
        let (device, queue) = spelter_wgpu::ready(adapter.request_device(&descriptor)).unwrap();
        let results = run(&Gpu { device, queue });
        let difference = same.difference(&[results], &[expected()]);
        assert_eq!(difference, None, "{name}: Spelter first, Rust second");
    }
}

/// A pipeline of one entry point, with the layout that the shader needs.
fn pipeline(gpu: &Gpu, source: &str, entry: &str) -> wgpu::ComputePipeline {
    gpu.device.create_compute_pipeline(&wgpu::ComputePipelineDescriptor {
        label: Some(entry),
        layout: None,
        module: &gpu.module(source),
        entry_point: Some(entry),
        compilation_options: Default::default(),
        cache: None,
    })
}

/// Numbers of `hello_compute`.
fn numbers() -> Vec<f32> {
    (0..500).map(|n| n as f32 * 0.75 - 20.0).collect()
}

/// `hello_compute`: a layout that is written down, one buffer that is read and one that is written, and the result in a
/// third that is mapped.
fn double(gpu: &Gpu) -> Vec<u32> {
    let source = "
        @group(0) @binding(0) var<storage, read> given: array<f32>;
        @group(0) @binding(1) var<storage, read_write> twice: array<f32>;
        @compute @workgroup_size(64)
        fn doubles(@builtin(global_invocation_id) id: vec3<u32>) {
            if id.x >= arrayLength(&given) { return; }
            twice[id.x] = given[id.x] + given[id.x];
        }";
    let entry = |binding, read_only| wgpu::BindGroupLayoutEntry {
        binding,
        visibility: wgpu::ShaderStages::COMPUTE,
        ty: wgpu::BindingType::Buffer {
            ty: wgpu::BufferBindingType::Storage { read_only },
            has_dynamic_offset: false,
            min_binding_size: std::num::NonZeroU64::new(4),
        },
        count: None,
    };
    let entries = [entry(0, true), entry(1, false)];
    let layout = gpu.layout(&entries, 0);
    let pipeline = gpu.device.create_compute_pipeline(&wgpu::ComputePipelineDescriptor {
        label: None,
        layout: Some(&layout),
        module: &gpu.module(source),
        entry_point: Some("doubles"),
        compilation_options: Default::default(),
        cache: None,
    });
    let given = gpu.words(&floats(&numbers()));
    let twice = gpu.words(&vec![0; numbers().len()]);
    let group = gpu.group(&pipeline, &[given.as_entire_binding(), twice.as_entire_binding()]);
    gpu.dispatch(&pipeline, &group, [numbers().len().div_ceil(64) as u32, 1, 1]);
    gpu.read_words(&twice)
}

fn doubled() -> Vec<u32> {
    floats(&numbers().iter().map(|number| number * 2.0).collect::<Vec<_>>())
}

/// Rounds of `repeated_compute`, and numbers in each.
const ROUNDS: u32 = 12;
const PER_ROUND: u32 = 256;

/// What `repeated_compute` has for numbers whose steps leave 32 bits.
const LEFT: u32 = u32::MAX;

/// The numbers of a round. Some are so large that their steps leave 32 bits.
fn numbers_of(round: u32) -> Vec<u32> {
    let number = |i: u32| (round * PER_ROUND + i + 1).wrapping_mul(0x9e37_79b1) >> (i % 31);
    (0..PER_ROUND).map(|i| number(i).max(1)).collect()
}

/// `repeated_compute`: the same buffers, the same group and the same mapped buffer serve one round after another, which
/// counts the steps of Collatz's rule from each number down to 1.
fn count_steps(gpu: &Gpu) -> Vec<u32> {
    let source = "
        @group(0) @binding(0) var<storage, read_write> numbers: array<u32>;
        fn steps(start: u32) -> u32 {
            var n = start;
            var count = 0u;
            while n > 1u {
                if (n & 1u) == 1u {
                    // 3 n + 1 needs more than 32 bits.
                    if n > 0x55555554u { return 0xffffffffu; }
                    n = 3u * n + 1u;
                } else {
                    n >>= 1u;
                }
                count += 1u;
            }
            return count;
        }
        @compute @workgroup_size(1)
        fn count(@builtin(global_invocation_id) id: vec3<u32>) { numbers[id.x] = steps(numbers[id.x]); }";
    let pipeline = pipeline(gpu, source, "count");
    let size = u64::from(PER_ROUND) * 4;
    let usage = wgpu::BufferUsages::STORAGE | wgpu::BufferUsages::COPY_SRC | wgpu::BufferUsages::COPY_DST;
    let buffer = |usage| {
        gpu.device.create_buffer(&wgpu::BufferDescriptor { label: None, size, usage, mapped_at_creation: false })
    };
    let numbers = buffer(usage);
    let read = buffer(wgpu::BufferUsages::MAP_READ | wgpu::BufferUsages::COPY_DST);
    let group = gpu.group(&pipeline, &[numbers.as_entire_binding()]);
    let mut all = Vec::new();
    for round in 0..ROUNDS {
        gpu.queue.write_buffer(&numbers, 0, &bytes(&numbers_of(round)));
        let mut encoder = gpu.encoder();
        let mut pass = encoder.begin_compute_pass(&wgpu::ComputePassDescriptor::default());
        pass.set_pipeline(&pipeline);
        pass.set_bind_group(0, &group, &[]);
        pass.dispatch_workgroups(PER_ROUND, 1, 1);
        drop(pass);
        encoder.copy_buffer_to_buffer(&numbers, 0, &read, 0, size);
        gpu.queue.submit([encoder.finish()]);
        all.extend(words(&gpu.mapped(&read)));
    }
    all
}

fn steps_of_all() -> Vec<u32> {
    let steps = |mut number: u32| {
        let mut count = 0;
        while number > 1 {
            let next =
                if number % 2 == 1 { number.checked_mul(3).and_then(|n| n.checked_add(1)) } else { Some(number / 2) };
            let Some(next) = next else { return LEFT };
            number = next;
            count += 1;
        }
        count
    };
    let all: Vec<_> = (0..ROUNDS).flat_map(numbers_of).map(steps).collect();
    assert!(all.contains(&LEFT) && all.iter().any(|count| *count > 100 && *count != LEFT), "both kinds of numbers");
    all
}

/// Invocations of the workgroup of `hello_synchronization`, and what each adds.
const MEETING: u32 = 32;
const EACH: u32 = 1000;

/// `hello_synchronization`: two entry points of one module count together; the patient one waits for all others before
/// it looks at the count, the hasty one does not.
fn meet(gpu: &Gpu) -> Vec<u32> {
    let source = format!(
        "@group(0) @binding(0) var<storage, read_write> seen: array<u32>;
        var<workgroup> count: atomic<u32>;
        fn add_all() {{ for (var i = 0u; i < {EACH}u; i++) {{ atomicAdd(&count, 1u); }} }}
        @compute @workgroup_size({MEETING})
        fn patient(@builtin(local_invocation_index) own: u32) {{
            add_all();
            workgroupBarrier();
            seen[own] = atomicLoad(&count);
        }}
        @compute @workgroup_size({MEETING})
        fn hasty(@builtin(local_invocation_index) own: u32) {{
            add_all();
            seen[own] = atomicLoad(&count);
        }}"
    );
    let [patient, hasty] = ["patient", "hasty"].map(|entry| {
        let seen = gpu.words(&[0; MEETING as usize]);
        let pipeline = pipeline(gpu, &source, entry);
        let group = gpu.group(&pipeline, &[seen.as_entire_binding()]);
        gpu.dispatch(&pipeline, &group, [1, 1, 1]);
        gpu.read_words(&seen)
    });
    // A hasty one sees its own additions at least; the last one sees all.
    assert!(hasty.iter().all(|count| (EACH..=MEETING * EACH).contains(count)), "{hasty:?}");
    assert_eq!(hasty.iter().max(), Some(&(MEETING * EACH)));
    patient
}

fn met() -> Vec<u32> {
    vec![MEETING * EACH; MEETING as usize]
}

/// Workgroups of `hello_workgroups`: one for each number of both buffers.
const WORKGROUPS: u32 = 150;

/// `hello_workgroups`: the invocations of a workgroup share its number, which says where they write; which of them it
/// is says into which buffer.
fn choose_buffers(gpu: &Gpu) -> Vec<u32> {
    let source = "
        @group(0) @binding(0) var<storage, read_write> ones: array<i32>;
        @group(0) @binding(1) var<storage, read_write> numbered: array<i32>;
        @compute @workgroup_size(2, 1, 1)
        fn choose(@builtin(workgroup_id) workgroup: vec3<u32>, @builtin(local_invocation_id) own: vec3<u32>) {
            switch own.x {
                case 0u: { ones[workgroup.x] += 1; }
                default: { numbered[workgroup.x] -= i32(workgroup.x); }
            }
        }";
    let pipeline = pipeline(gpu, source, "choose");
    let buffers = [10, 20].map(|start| gpu.words(&[start; WORKGROUPS as usize]));
    let group = gpu.group(&pipeline, &buffers.each_ref().map(wgpu::Buffer::as_entire_binding));
    gpu.dispatch(&pipeline, &group, [WORKGROUPS, 1, 1]);
    buffers.iter().flat_map(|buffer| gpu.read_words(buffer)).collect()
}

fn chosen_buffers() -> Vec<u32> {
    let numbered = (0..WORKGROUPS as i32).map(|n| (20 - n).cast_unsigned());
    std::iter::repeat_n(11, WORKGROUPS as usize).chain(numbered).collect()
}

/// Width and height of the picture of `storage_texture`, and the steps after which a point counts as inside.
const SIDE: u32 = 192;
const STEPS: u32 = 60;

/// `storage_texture`: a kernel draws the Mandelbrot set, and the picture is copied into a buffer.
fn draw(gpu: &Gpu) -> Vec<u32> {
    let source = format!(
        "@group(0) @binding(0) var picture: texture_storage_2d<rgba8unorm, write>;
        @compute @workgroup_size(16, 4)
        fn mandelbrot(@builtin(global_invocation_id) id: vec3<u32>) {{
            let side = f32(textureDimensions(picture).x);
            let c = vec2<f32>(id.xy) / side * 3.0 - vec2(2.0, 1.5);
            var z = vec2(0.0);
            var step = 0u;
            for (; step < {STEPS}u && dot(z, z) <= 4.0; step++) {{
                z = vec2(z.x * z.x - z.y * z.y, 2.0 * z.x * z.y) + c;
            }}
            let shade = f32(step) / {STEPS}.0;
            textureStore(picture, id.xy, vec4(shade, shade * shade, 1.0 - shade, 1.0));
        }}"
    );
    let size = wgpu::Extent3d { width: SIDE, height: SIDE, depth_or_array_layers: 1 };
    let picture = gpu.device.create_texture(&wgpu::TextureDescriptor {
        label: Some("the picture"),
        size,
        mip_level_count: 1,
        sample_count: 1,
        dimension: wgpu::TextureDimension::D2,
        format: wgpu::TextureFormat::Rgba8Unorm,
        usage: wgpu::TextureUsages::STORAGE_BINDING | wgpu::TextureUsages::COPY_SRC,
        view_formats: &[],
    });
    let pipeline = pipeline(gpu, &source, "mandelbrot");
    let view = picture.create_view(&wgpu::TextureViewDescriptor::default());
    let group = gpu.group(&pipeline, &[wgpu::BindingResource::TextureView(&view)]);
    gpu.dispatch(&pipeline, &group, [SIDE / 16, SIDE / 4, 1]);
    let copy = gpu.words(&vec![0; (SIDE * SIDE) as usize]);
    // Rows of a copy are multiples of 256 bytes: the picture's are.
    let layout = wgpu::TexelCopyBufferLayout { offset: 0, bytes_per_row: Some(SIDE * 4), rows_per_image: None };
    let mut encoder = gpu.encoder();
    let to = wgpu::TexelCopyBufferInfo { buffer: &copy, layout };
    encoder.copy_texture_to_buffer(picture.as_image_copy(), to, size);
    gpu.queue.submit([encoder.finish()]);
    gpu.read_words(&copy)
}

fn drawn() -> Vec<u32> {
    let point = |x: u32, y: u32| {
        let c = [x as f32 / SIDE as f32 * 3.0 - 2.0, y as f32 / SIDE as f32 * 3.0 - 1.5];
        let (mut z, mut step) = ([0f32; 2], 0);
        while step < STEPS && z[0] * z[0] + z[1] * z[1] <= 4.0 {
            z = [z[0] * z[0] - z[1] * z[1] + c[0], 2.0 * z[0] * z[1] + c[1]];
            step += 1;
        }
        let shade = step as f32 / STEPS as f32;
        u32::from_le_bytes([shade, shade * shade, 1.0 - shade, 1.0].map(|part| (part * 255.0).round() as u8))
    };
    (0..SIDE).flat_map(|y| (0..SIDE).map(move |x| point(x, y))).collect()
}

/// `timestamp_queries`, of the parts that compute: two passes with times at their ends, between times of the encoder;
/// the times are resolved, copied and mapped, and in order.
#[test]
fn timestamp_queries() {
    let gpu = Gpu::shared();
    const TIMES: u32 = 6;
    let set = gpu.device.create_query_set(&wgpu::QuerySetDescriptor {
        label: Some("times"),
        ty: wgpu::QueryType::Timestamp,
        count: TIMES,
    });
    let resolved = gpu.device.create_buffer(&wgpu::BufferDescriptor {
        label: Some("resolved"),
        size: u64::from(TIMES) * 8,
        usage: wgpu::BufferUsages::QUERY_RESOLVE | wgpu::BufferUsages::COPY_SRC,
        mapped_at_creation: false,
    });
    let source = "
        @group(0) @binding(0) var<storage, read_write> sum: array<u32>;
        @compute @workgroup_size(64)
        fn add(@builtin(global_invocation_id) id: vec3<u32>) { for (var i = 0u; i < 100u; i++) { sum[id.x] += i; } }";
    let pipeline = pipeline(&gpu, source, "add");
    let sum = gpu.words(&[0; 1024]);
    let group = gpu.group(&pipeline, &[sum.as_entire_binding()]);
    let mut encoder = gpu.encoder();
    encoder.write_timestamp(&set, 0);
    for first in [1, 3] {
        let mut pass = encoder.begin_compute_pass(&wgpu::ComputePassDescriptor {
            label: Some("timed"),
            timestamp_writes: Some(wgpu::ComputePassTimestampWrites {
                query_set: &set,
                beginning_of_pass_write_index: Some(first),
                end_of_pass_write_index: Some(first + 1),
            }),
        });
        pass.set_pipeline(&pipeline);
        pass.set_bind_group(0, &group, &[]);
        pass.dispatch_workgroups(16, 1, 1);
    }
    encoder.write_timestamp(&set, TIMES - 1);
    encoder.resolve_query_set(&set, 0..TIMES, &resolved, 0);
    gpu.queue.submit([encoder.finish()]);
    let times: Vec<_> =
        gpu.read(&resolved).chunks_exact(8).map(|time| u64::from_le_bytes(time.try_into().unwrap())).collect();
    assert!(times.is_sorted() && times[0] > 0, "{times:?}");
    // A pass in which something ran takes time; a time is a number of nanoseconds.
    assert!(times[2] > times[1] && times[4] > times[3] && gpu.queue.get_timestamp_period() == 1.0, "{times:?}");
    assert_eq!(gpu.read_words(&sum), [2 * 4950; 1024]);
}
