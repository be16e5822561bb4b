//! Rules of shader modules and pipelines.

use spelter_driver::vk::DescriptorType;
use spelter_driver::{Binding, Device, DeviceOptions, Error, PipelineLayout, PushRange, Specialization};
use spelter_shaders::front::spvasm::assemble;

use super::common::{STORAGE, options};
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

/// A kernel that only waits. `extension` and `semantics` are right in one of its forms only.
fn waiter(version: &str, extension: &str, semantics: u32) -> Vec<u32> {
    let text = format!(
        "; Version: {version}
        OpCapability Shader
        OpCapability VariablePointers
        {extension}
        OpMemoryModel Logical GLSL450
        OpEntryPoint GLCompute %main \"main\"
        OpExecutionMode %main LocalSize 1 1 1
        %void = OpTypeVoid
        %fn = OpTypeFunction %void
        %u32 = OpTypeInt 32 0
        %workgroup = OpConstant %u32 2
        %order = OpConstant %u32 {semantics}
        %main = OpFunction %void None %fn
        %entry = OpLabel
        OpControlBarrier %workgroup %workgroup %order
        OpReturn
        OpFunctionEnd"
    );
    assemble(&text).unwrap()
}

/// Rules of modules that other drivers do not enforce: a strict device refuses the module, others remark on it.
#[test]
fn a_strict_device_refuses_what_others_remark_on() {
    // With WorkgroupMemory.
    const ACQUIRE_RELEASE: u32 = 0x108;
    const CONSISTENT: u32 = 0x110;
    let extension = "OpExtension \"SPV_KHR_variable_pointers\"";
    let strict = Device::new(options()).unwrap();
    let lenient = Device::new(DeviceOptions { strict: false, ..options() }).unwrap();
    let order = Some("VUID-StandaloneSpirv-MemorySemantics-10866");
    let valid = Some("VUID-VkShaderModuleCreateInfo-pCode-08737");
    for (version, extension, semantics, rule) in [
        ("1.0", extension, ACQUIRE_RELEASE, None),
        ("1.3", "", ACQUIRE_RELEASE, None),
        ("1.0", "", ACQUIRE_RELEASE, valid),
        ("1.3", "", CONSISTENT, order),
    ] {
        let words = waiter(version, extension, semantics);
        let refused = match strict.create_shader_module(&words) {
            Ok(module) => module.remark().map(|misuse| misuse.vuid),
            Err(Error::Misuse(misuse)) => Some(misuse.vuid),
            Err(other) => panic!("{other}"),
        };
        assert_eq!(refused, rule, "{version} {extension}");
        let module = lenient.create_shader_module(&words).unwrap();
        assert_eq!(module.remark().map(|misuse| misuse.vuid), rule, "{version} {extension}");
        let layout = lenient.create_pipeline_layout(&[], &[]).unwrap();
        lenient.create_compute_pipeline(&module, "main", &Specialization::new(), &layout).unwrap();
    }
}
