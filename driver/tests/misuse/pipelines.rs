//! Rules of shader modules and pipelines.

use spelter_driver::vk::DescriptorType;
use spelter_driver::{Binding, Error, PipelineLayout, PushRange, Specialization};

use super::common::STORAGE;
use super::{PUSHER, Rule, World};

/// A layout with set 0 of one binding, and `push_bytes` bytes of push constants.
fn layout(world: &World, binding: Binding, push_bytes: u32) -> PipelineLayout {
    let set = world.device.create_descriptor_set_layout(&[binding]).unwrap();
    let push = [PushRange { offset: 0, size: push_bytes }];
    world.device.create_pipeline_layout(&[&set], if push_bytes == 0 { &[] } else { &push }).unwrap()
}

fn create(world: &World, wgsl: &str, layout: &PipelineLayout) -> Result<(), Error> {
    let module = world.device.create_shader_module_wgsl(wgsl).unwrap();
    world.device.create_compute_pipeline(&module, "main", &Specialization::new(), layout).map(drop)
}

/// A kernel without bindings.
fn bare(world: &World, text: &str) -> Result<(), Error> {
    create(world, text, &world.device.create_pipeline_layout(&[], &[]).unwrap())
}

fn storage(count: u32) -> Binding {
    Binding { binding: 0, ty: STORAGE, count }
}

pub(crate) const RULES: &[Rule] = &[
    ("VUID-VkShaderModuleCreateInfo-codeSize-01085", |w| w.device.create_shader_module(&[]).map(drop)),
    ("VUID-VkComputePipelineCreateInfo-commonparent", |w| {
        create(w, PUSHER, &w.other.create_pipeline_layout(&[], &[]).unwrap())
    }),
    ("VUID-VkPipelineShaderStageCreateInfo-pName-00707", |w| bare(w, "@compute @workgroup_size(1) fn other() {}")),
    ("VUID-RuntimeSpirv-z-06431", |w| bare(w, "@compute @workgroup_size(1, 1, 65) fn main() {}")),
    ("VUID-RuntimeSpirv-Workgroup-06530", |w| {
        bare(w, "var<workgroup> a: array<u32, 16385>; @compute @workgroup_size(1) fn main() { a[0] = 1u; }")
    }),
    ("VUID-VkComputePipelineCreateInfo-layout-07987", |w| create(w, PUSHER, &layout(w, storage(1), 0))),
    ("VUID-VkComputePipelineCreateInfo-layout-10069", |w| {
        let wgsl = "
            var<immediate> p: vec2<u32>;
            @group(0) @binding(0) var<storage, read_write> words: array<u32>;
            @compute @workgroup_size(1) fn main() { words[0] = p.y; }";
        create(w, wgsl, &layout(w, storage(1), 4))
    }),
    ("VUID-VkComputePipelineCreateInfo-layout-07988", |w| create(w, PUSHER, &w.push_layout(4))),
    ("VUID-VkComputePipelineCreateInfo-layout-07988", |w| {
        create(w, PUSHER, &layout(w, Binding { binding: 1, ..storage(1) }, 4))
    }),
    ("VUID-VkComputePipelineCreateInfo-layout-07990", |w| {
        create(w, PUSHER, &layout(w, Binding { ty: DescriptorType::UNIFORM_BUFFER, ..storage(1) }, 4))
    }),
    ("VUID-VkComputePipelineCreateInfo-layout-07991", |w| {
        let wgsl = "enable wgpu_binding_array;
            struct Words { words: array<u32> }
            @group(0) @binding(0) var<storage, read_write> all: binding_array<Words, 3>;
            @compute @workgroup_size(1) fn main() { all[0].words[0] = 1u; }";
        create(w, wgsl, &layout(w, storage(2), 0))
    }),
];

/// Limits that the SPIR-V reader checks before the device: it rejects workgroups of more than 1024 invocations.
pub(crate) const READERS: &[&str] =
    &["VUID-RuntimeSpirv-x-06429", "VUID-RuntimeSpirv-y-06430", "VUID-RuntimeSpirv-x-06432"];

#[test]
fn a_workgroup_too_large_is_refused() {
    for size in ["1025", "1, 1025", "32, 33", "0"] {
        let text = format!("@compute @workgroup_size({size}) fn main() {{}}");
        let world = World::new();
        let refused = match world.device.create_shader_module_wgsl(&text) {
            Err(error) => error,
            Ok(module) => {
                let layout = world.device.create_pipeline_layout(&[], &[]).unwrap();
                world.device.create_compute_pipeline(&module, "main", &Specialization::new(), &layout).unwrap_err()
            }
        };
        assert!(matches!(refused, Error::Shader(_)), "{size}: {refused}");
    }
}
