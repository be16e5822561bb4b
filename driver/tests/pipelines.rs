//! The pipeline cache: what is compiled once, what is shared, and when an entry is removed.
#![allow(clippy::unwrap_used)]

use std::sync::Barrier;

use crate::common::{Kernel, STORAGE, Words, device, run};
use spelter_driver::{
    Binding, CacheStats, ComputePipeline, Device, Error, PipelineLayout, PushRange, ShaderModule, Specialization,
};

/// Adds `step` to the first word. A size above 1024 is rejected when a pipeline is created.
const ADD: &str = "
    @id(3) override step: u32 = 1u;
    @id(4) override size: u32 = 1u;
    @group(0) @binding(0) var<storage, read_write> words: array<u32>;
    @compute @workgroup_size(size) fn main() { words[0] += step; }
    @compute @workgroup_size(size) fn other() { words[0] += step; }";

fn layout(device: &Device, push: &[PushRange]) -> PipelineLayout {
    let set = device.create_descriptor_set_layout(&[Binding { binding: 0, ty: STORAGE, count: 1 }]).unwrap();
    device.create_pipeline_layout(&[&set], push).unwrap()
}

fn create(device: &Device, module: &ShaderModule, layout: &PipelineLayout, step: u32) -> ComputePipeline {
    device.create_compute_pipeline(module, "main", &Specialization::from([(3, step.into())]), layout).unwrap()
}

#[track_caller]
fn check(device: &Device, compiled: u64, shared: u64, alive: usize) {
    assert_eq!(device.pipeline_cache_stats(), CacheStats { compiled, shared, stored: 0, alive });
}

#[test]
fn a_pipeline_is_compiled_once_while_it_exists() {
    let device = device();
    let layout = layout(&device, &[]);
    let module = device.create_shader_module_wgsl(ADD).unwrap();
    let first = create(&device, &module, &layout, 5);
    check(&device, 1, 0, 1);
    let second = create(&device, &module, &layout, 5);
    check(&device, 1, 1, 1);
    // The key is the text, not the module.
    drop(module);
    let module = device.create_shader_module_wgsl(ADD).unwrap();
    let third = create(&device, &module, &layout, 5);
    check(&device, 1, 2, 1);
    // Constants that the shader does not have are ignored.
    let values = Specialization::from([(3, 5), (99, 7)]);
    let fourth = device.create_compute_pipeline(&module, "main", &values, &layout).unwrap();
    check(&device, 1, 3, 1);
    let shader = module.specialize("main", &values).unwrap();
    let fifth = device.create_compute_pipeline_from(&shader, &layout).unwrap();
    check(&device, 1, 4, 1);
    drop((first, second, third, fourth));
    check(&device, 1, 4, 1);
    drop(fifth);
    check(&device, 1, 4, 0);
    create(&device, &module, &layout, 5);
    check(&device, 2, 4, 0);
}

#[test]
fn kernels_with_different_code_are_not_shared() {
    let device = device();
    let layout = layout(&device, &[]);
    let module = device.create_shader_module_wgsl(ADD).unwrap();
    let longer = device.create_shader_module_wgsl(&format!("{ADD} // the same")).unwrap();
    let other = device.create_compute_pipeline(&module, "other", &Specialization::from([(3, 5)]), &layout).unwrap();
    let all = [create(&device, &module, &layout, 5), create(&device, &module, &layout, 6), other];
    check(&device, 3, 0, 3);
    let also = create(&device, &longer, &layout, 5);
    check(&device, 4, 0, 4);
    drop((all, also));
    check(&device, 4, 0, 0);
}

#[test]
fn layouts_share_code_and_are_still_checked() {
    let device = device();
    let module = device.create_shader_module_wgsl(ADD).unwrap();
    let one = create(&device, &module, &layout(&device, &[]), 5);
    let two = create(&device, &module, &layout(&device, &[PushRange { offset: 0, size: 4 }]), 5);
    check(&device, 1, 1, 1);
    let empty = device.create_pipeline_layout(&[], &[]).unwrap();
    let wrong = device.create_compute_pipeline(&module, "main", &Specialization::from([(3, 5)]), &empty);
    assert!(matches!(wrong, Err(Error::Misuse(_))), "{wrong:?}");
    drop((one, two));
    check(&device, 1, 2, 0);
}

#[test]
fn errors_are_not_cached() {
    let device = device();
    let layout = layout(&device, &[]);
    let module = device.create_shader_module_wgsl(ADD).unwrap();
    for compiled in 1..=2 {
        let values = Specialization::from([(4, 2000)]);
        assert!(device.create_compute_pipeline(&module, "main", &values, &layout).is_err());
        check(&device, compiled, 0, 0);
    }
    assert!(device.create_compute_pipeline(&module, "missing", &Specialization::new(), &layout).is_err());
    check(&device, 3, 0, 0);
}

#[test]
fn threads_that_create_one_pipeline_compile_it_once() {
    const THREADS: usize = 8;
    let device = device();
    let layout = layout(&device, &[]);
    let module = device.create_shader_module_wgsl(ADD).unwrap();
    let together = Barrier::new(THREADS);
    for round in 1..=20 {
        let pipelines: Vec<ComputePipeline> = std::thread::scope(|scope| {
            let create = || {
                together.wait();
                create(&device, &module, &layout, 5)
            };
            let threads: Vec<_> = (0..THREADS).map(|_| scope.spawn(create)).collect();
            threads.into_iter().map(|thread| thread.join().unwrap()).collect()
        });
        check(&device, round, round * (THREADS as u64 - 1), 1);
        drop(pipelines);
        check(&device, round, round * (THREADS as u64 - 1), 0);
    }
}

#[test]
fn threads_that_create_and_drop_at_random_leave_no_entries() {
    let device = device();
    let layout = layout(&device, &[]);
    let module = device.create_shader_module_wgsl(ADD).unwrap();
    std::thread::scope(|scope| {
        for thread in 0..4u32 {
            let (device, module, layout) = (&device, &module, &layout);
            scope.spawn(move || {
                let mut kept = Vec::new();
                for iteration in 0..60u32 {
                    let step = (iteration * 7 + thread).wrapping_mul(0x9e37_79b9) >> 30;
                    kept.push(create(device, module, layout, step));
                    if iteration % 3 == thread % 3 {
                        kept.clear();
                    }
                }
            });
        }
    });
    let stats = device.pipeline_cache_stats();
    assert_eq!(stats.compiled + stats.shared, 4 * 60);
    assert!(stats.compiled >= 4 && stats.alive == 0, "{stats:?}");
}

#[test]
fn a_recording_runs_after_its_pipeline_is_dropped() {
    let device = device();
    let words = Words::zeros(&device, 1);
    let kernel = Kernel::new(&device, ADD, &[(STORAGE, 1)], 0);
    let set = kernel.set(&device, STORAGE, &[&words]);
    run(&device, |command| {
        let Kernel { layout, pipeline, .. } = kernel;
        command.bind_pipeline(&pipeline).unwrap();
        command.bind_descriptor_sets(&layout, 0, &[&set], &[]).unwrap();
        command.dispatch(1, 1, 1).unwrap();
        drop(pipeline);
    });
    assert_eq!(words.read(), [1]);
}
