//! Dispatches of kernels: buffer descriptors of all types, push constants, and the three dispatch commands.
#![allow(clippy::unwrap_used)]

use crate::common;
use crate::common::{COUNT, Kernel, STORAGE, Words, barrier, device, recorded, run};
use spelter_driver::vk::{self, DescriptorType};
use spelter_driver::{Binding, Device, DeviceOptions, Specialization};

const SAXPY: &str = "
    struct Push { n: u32, a: f32 }
    var<immediate> push: Push;
    @group(0) @binding(0) var<storage, read> x: array<f32>;
    @group(0) @binding(1) var<storage, read_write> y: array<f32>;
    @compute @workgroup_size(64) fn main(@builtin(global_invocation_id) id: vec3<u32>) {
        if id.x < push.n { y[id.x] = push.a * x[id.x] + y[id.x]; }
    }";

#[test]
fn saxpy() {
    let device = device();
    let n = 1000u32;
    let x = Words::new(&device, &(0..n).map(|i| (i as f32).to_bits()).collect::<Vec<_>>());
    let y = Words::new(&device, &vec![1f32.to_bits(); 1024]);
    let kernel = Kernel::new(&device, SAXPY, &[(STORAGE, 1), (STORAGE, 1)], 8);
    let set = kernel.set(&device, STORAGE, &[&x, &y]);
    run(&device, |command| {
        command.bind_pipeline(&kernel.pipeline).unwrap();
        command.bind_descriptor_sets(&kernel.layout, 0, &[&set], &[]).unwrap();
        command.push_constants(&kernel.layout, 0, &n.to_le_bytes()).unwrap();
        command.push_constants(&kernel.layout, 4, &2f32.to_le_bytes()).unwrap();
        command.dispatch(n.div_ceil(64), 1, 1).unwrap();
    });
    let expected = (0..1024).map(|i| if i < n { 2.0 * i as f32 + 1.0 } else { 1.0 });
    assert!(y.read().into_iter().map(f32::from_bits).eq(expected));
}

#[test]
fn a_shader_accesses_only_the_bound_range() {
    let device = device();
    let words = Words::new(&device, &[10; 16]);
    let kernel = Kernel::new(&device, COUNT, &[(STORAGE, 1)], 0);
    let pool = device.create_descriptor_pool(1, &[(STORAGE, 1)]).unwrap();
    let set = pool.allocate(&kernel.set_layout).unwrap();
    set.write(0, 0, STORAGE, &[words.part(16, 12)]).unwrap();
    run(&device, |command| {
        command.bind_pipeline(&kernel.pipeline).unwrap();
        command.bind_descriptor_sets(&kernel.layout, 0, &[&set], &[]).unwrap();
        command.dispatch(4, 1, 1).unwrap();
    });
    let mut expected = [10; 16];
    expected[4..7].fill(11);
    // naga clamps indices to the array, so out-of-range invocations add to the last word.
    let got = words.read();
    assert_eq!((&got[..6], &got[7..]), (&expected[..6], &expected[7..]));
    assert!(got[6] > 10);
}

#[test]
fn a_descriptor_that_was_never_written_reads_zero() {
    let device = device();
    let out = Words::new(&device, &[7; 4]);
    let wgsl = "
        @group(0) @binding(0) var<storage, read_write> result: array<u32>;
        @group(0) @binding(1) var<uniform> missing: vec4<u32>;
        @compute @workgroup_size(4) fn main(@builtin(local_invocation_index) i: u32) { result[i] = missing[i]; }";
    let uniform = DescriptorType::UNIFORM_BUFFER;
    let kernel = Kernel::new(&device, wgsl, &[(STORAGE, 1), (uniform, 1)], 0);
    let pool = device.create_descriptor_pool(1, &[(STORAGE, 1), (uniform, 1)]).unwrap();
    let set = pool.allocate(&kernel.set_layout).unwrap();
    set.write(0, 0, STORAGE, &[out.whole()]).unwrap();
    run(&device, |command| {
        command.bind_pipeline(&kernel.pipeline).unwrap();
        command.bind_descriptor_sets(&kernel.layout, 0, &[&set], &[]).unwrap();
        command.dispatch(1, 1, 1).unwrap();
    });
    assert_eq!(out.read(), [0; 4]);
}

#[test]
fn dynamic_offsets_are_ordered_by_set_binding_and_element() {
    let device = device();
    let wgsl = "
        @group(0) @binding(3) var<uniform> factor: vec4<u32>;
        @group(0) @binding(1) var<storage, read_write> low: array<u32, 4>;
        @group(1) @binding(0) var<storage, read_write> high: array<u32, 4>;
        @compute @workgroup_size(4) fn main(@builtin(local_invocation_index) i: u32) {
            low[i] = factor[i];
            high[i] = factor[i] * 10u;
        }";
    let (storage, uniform) = (DescriptorType::STORAGE_BUFFER_DYNAMIC, DescriptorType::UNIFORM_BUFFER_DYNAMIC);
    let binding = |binding, ty| Binding { binding, ty, count: 1 };
    let first = device.create_descriptor_set_layout(&[binding(3, uniform), binding(1, storage)]).unwrap();
    let second = device.create_descriptor_set_layout(&[binding(0, storage)]).unwrap();
    let layout = device.create_pipeline_layout(&[&first, &second], &[]).unwrap();
    let module = device.create_shader_module_wgsl(wgsl).unwrap();
    let pipeline = device.create_compute_pipeline(&module, "main", &Specialization::new(), &layout).unwrap();

    let pool = device.create_descriptor_pool(2, &[(storage, 2), (uniform, 1)]).unwrap();
    let (a, b) = (pool.allocate(&first).unwrap(), pool.allocate(&second).unwrap());
    let out = Words::zeros(&device, 24);
    let factors = Words::new(&device, &(0..12).collect::<Vec<_>>());
    a.write(1, 0, storage, &[out.part(0, 16)]).unwrap();
    a.write(3, 0, uniform, &[factors.part(16, 16)]).unwrap();
    b.write(0, 0, storage, &[out.part(16, 16)]).unwrap();
    run(&device, |command| {
        command.bind_pipeline(&pipeline).unwrap();
        command.bind_descriptor_sets(&layout, 0, &[&a, &b], &[16, 0, 64]).unwrap();
        command.dispatch(1, 1, 1).unwrap();
        barrier(command);
        command.bind_descriptor_sets(&layout, 0, &[&a], &[32, 16]).unwrap();
        command.bind_descriptor_sets(&layout, 1, &[&b], &[0]).unwrap();
        command.dispatch(1, 1, 1).unwrap();
    });
    let mut expected = vec![0; 24];
    expected[4..8].copy_from_slice(&[80, 90, 100, 110]);
    expected[8..12].copy_from_slice(&[8, 9, 10, 11]);
    expected[20..24].copy_from_slice(&[40, 50, 60, 70]);
    assert_eq!(out.read(), expected);
}

#[test]
fn base_workgroups_and_indirect_counts() {
    let device = device();
    let wgsl = "
        @group(0) @binding(0) var<storage, read_write> words: array<u32>;
        @compute @workgroup_size(1) fn main(@builtin(workgroup_id) id: vec3<u32>, @builtin(num_workgroups) n: vec3<u32>) {
            words[id.x + 4u * id.y] = 100u * n.x + 10u * n.y + n.z;
        }";
    let words = Words::zeros(&device, 16);
    let counts = Words::new(&device, &[9, 9, 1, 2, 1, 65_536, 1, 1]);
    let kernel = Kernel::new(&device, wgsl, &[(STORAGE, 1)], 0);
    let set = kernel.set(&device, STORAGE, &[&words]);
    run(&device, |command| {
        command.bind_pipeline(&kernel.pipeline).unwrap();
        command.bind_descriptor_sets(&kernel.layout, 0, &[&set], &[]).unwrap();
        command.dispatch_base([1, 2, 0], [2, 1, 1]).unwrap();
        command.dispatch_indirect(&counts.buffer, 8).unwrap();
        command.dispatch_indirect(&counts.buffer, 20).unwrap();
        command.dispatch(0, 1, 1).unwrap();
    });
    let mut expected = vec![0; 16];
    expected[9..11].fill(211);
    expected[0] = 121;
    expected[4] = 121;
    assert_eq!(words.read(), expected);
}

#[test]
fn an_indirect_count_is_read_after_the_barrier_before_it() {
    let device = device();
    let words = Words::zeros(&device, 16);
    let counts = Words::new(&device, &[1, 1, 1]);
    let kernel = Kernel::new(&device, COUNT, &[(STORAGE, 1)], 0);
    let set = kernel.set(&device, STORAGE, &[&words]);
    run(&device, |command| {
        command.bind_pipeline(&kernel.pipeline).unwrap();
        command.bind_descriptor_sets(&kernel.layout, 0, &[&set], &[]).unwrap();
        command.fill_buffer(&counts.buffer, 0, 4, 3).unwrap();
        barrier(command);
        command.dispatch_indirect(&counts.buffer, 0).unwrap();
    });
    assert_eq!(words.read().iter().sum::<u32>(), 12);
}

#[test]
fn a_dispatch_has_the_push_constants_of_its_recording() {
    let device = device();
    let wgsl = "
        struct Push { index: u32, value: u32 }
        var<immediate> push: Push;
        @group(0) @binding(0) var<storage, read_write> words: array<u32>;
        @compute @workgroup_size(1) fn main() { words[push.index] = push.value; }";
    let words = Words::zeros(&device, 8);
    let kernel = Kernel::new(&device, wgsl, &[(STORAGE, 1)], 8);
    let set = kernel.set(&device, STORAGE, &[&words]);
    run(&device, |command| {
        command.bind_pipeline(&kernel.pipeline).unwrap();
        command.bind_descriptor_sets(&kernel.layout, 0, &[&set], &[]).unwrap();
        command.push_constants(&kernel.layout, 4, &77u32.to_le_bytes()).unwrap();
        for i in 0..8u32 {
            command.push_constants(&kernel.layout, 0, &i.to_le_bytes()).unwrap();
            if i == 5 {
                command.push_constants(&kernel.layout, 4, &88u32.to_le_bytes()).unwrap();
            }
            command.dispatch(1, 1, 1).unwrap();
        }
    });
    assert_eq!(words.read(), [77, 77, 77, 77, 77, 88, 88, 88]);
}

#[test]
fn push_constants_outside_the_layouts_range_are_zero() {
    let device = Device::new(DeviceOptions { strict: false, ..common::options() }).unwrap();
    let wgsl = "
        var<immediate> push: vec2<u32>;
        @group(0) @binding(0) var<storage, read_write> words: array<u32>;
        @compute @workgroup_size(1) fn main() { words[0] = push.x; words[1] = push.y; }";
    for (push_bytes, expected) in [(0, [0, 0]), (4, [9, 0]), (8, [9, 8])] {
        let kernel = Kernel::new(&device, wgsl, &[(STORAGE, 1)], push_bytes);
        assert_eq!(kernel.pipeline.remark().is_some(), push_bytes < 8);
        let words = Words::new(&device, &[7; 2]);
        let set = kernel.set(&device, STORAGE, &[&words]);
        run(&device, |command| {
            command.bind_pipeline(&kernel.pipeline).unwrap();
            command.bind_descriptor_sets(&kernel.layout, 0, &[&set], &[]).unwrap();
            for (offset, value) in (0..push_bytes).step_by(4).zip([9u32, 8]) {
                command.push_constants(&kernel.layout, offset, &value.to_le_bytes()).unwrap();
            }
            command.dispatch(1, 1, 1).unwrap();
        });
        assert_eq!(words.read(), expected);
    }
}

#[test]
fn barriers_order_dispatches() {
    let device = device();
    let words = Words::zeros(&device, 4);
    let kernel = Kernel::new(&device, COUNT, &[(STORAGE, 1)], 0);
    let set = kernel.set(&device, STORAGE, &[&words]);
    let command = recorded(&device, vk::CommandBufferUsageFlags::SIMULTANEOUS_USE, |command| {
        command.bind_pipeline(&kernel.pipeline).unwrap();
        command.bind_descriptor_sets(&kernel.layout, 0, &[&set], &[]).unwrap();
        for _ in 0..200 {
            command.dispatch(1, 1, 1).unwrap();
            barrier(command);
        }
    });
    let queue = device.queue();
    queue.submit(&[&command, &command], None).unwrap();
    queue.submit(&[&command], None).unwrap();
    queue.wait_idle().unwrap();
    assert_eq!(words.read(), [600; 4]);
}

#[test]
fn a_write_continues_in_the_next_bindings() {
    let device = device();
    let wgsl = "
        @group(0) @binding(0) var<storage, read_write> a: array<u32>;
        @group(0) @binding(1) var<storage, read_write> b: array<u32>;
        @compute @workgroup_size(1) fn main() { a[0] = 1u; b[0] = 2u; }";
    let device_words: Vec<Words> = (0..2).map(|_| Words::zeros(&device, 1)).collect();
    let kernel = Kernel::new(&device, wgsl, &[(STORAGE, 1), (STORAGE, 1)], 0);
    let pool = device.create_descriptor_pool(1, &[(STORAGE, 2)]).unwrap();
    let set = pool.allocate(&kernel.set_layout).unwrap();
    set.write(0, 0, STORAGE, &[device_words[0].whole(), device_words[1].whole()]).unwrap();
    run(&device, |command| {
        command.bind_pipeline(&kernel.pipeline).unwrap();
        command.bind_descriptor_sets(&kernel.layout, 0, &[&set], &[]).unwrap();
        command.dispatch(1, 1, 1).unwrap();
    });
    assert_eq!([device_words[0].read()[0], device_words[1].read()[0]], [1, 2]);
}

#[test]
fn elements_of_a_descriptor_array() {
    let device = device();
    let wgsl = "enable wgpu_binding_array;
        struct Words { words: array<u32> }
        @group(0) @binding(0) var<storage, read> parts: binding_array<Words, 3>;
        @group(0) @binding(1) var<storage, read_write> to: array<u32>;
        @compute @workgroup_size(4) fn main(@builtin(local_invocation_index) i: u32) {
            to[i] = parts[i].words[0] + 100u * parts[1].words[1];
        }";
    let buffers: Vec<Words> = (0..3).map(|i| Words::new(&device, &[i + 5, i])).collect();
    let to = Words::zeros(&device, 4);
    // The layout has more elements than the shader, and the second element is written separately.
    let kernel = Kernel::new(&device, wgsl, &[(STORAGE, 4), (STORAGE, 1)], 0);
    let pool = device.create_descriptor_pool(1, &[(STORAGE, 5)]).unwrap();
    let set = pool.allocate(&kernel.set_layout).unwrap();
    set.write(0, 0, STORAGE, &[buffers[0].whole(), buffers[0].whole(), buffers[2].whole()]).unwrap();
    set.write(0, 1, STORAGE, &[buffers[1].whole()]).unwrap();
    set.write(1, 0, STORAGE, &[to.whole()]).unwrap();
    run(&device, |command| {
        command.bind_pipeline(&kernel.pipeline).unwrap();
        command.bind_descriptor_sets(&kernel.layout, 0, &[&set], &[]).unwrap();
        command.dispatch(1, 1, 1).unwrap();
    });
    assert_eq!(to.read()[..3], [105, 106, 107]);
}

#[test]
fn dispatches_run_depending_on_a_word() {
    let device = device();
    let words = Words::zeros(&device, 4);
    let usage = vk::BufferUsageFlags::CONDITIONAL_RENDERING_EXT | vk::BufferUsageFlags::TRANSFER_DST;
    let decision = device.create_buffer(8, usage).unwrap();
    let memory = device.allocate_memory(64, 0).unwrap();
    decision.bind_memory(&memory, 0).unwrap();
    let kernel = Kernel::new(&device, COUNT, &[(STORAGE, 1)], 0);
    let set = kernel.set(&device, STORAGE, &[&words]);
    let mut wanted = 0;
    for (word, inverted) in [(0, false), (7, false), (0, true), (7, true)] {
        run(&device, |command| {
            command.bind_pipeline(&kernel.pipeline).unwrap();
            command.bind_descriptor_sets(&kernel.layout, 0, &[&set], &[]).unwrap();
            // Written by earlier commands: the word is read when the dispatch would start.
            command.fill_buffer(&decision, 4, 4, word).unwrap();
            barrier(command);
            command.begin_conditional(&decision, 4, inverted).unwrap();
            command.dispatch(1, 1, 1).unwrap();
            command.end_conditional().unwrap();
            barrier(command);
            command.dispatch(1, 1, 1).unwrap();
        });
        wanted += if (word != 0) == inverted { 1 } else { 2 };
        assert_eq!(words.read(), [wanted; 4], "{word}, {inverted}");
    }
}
