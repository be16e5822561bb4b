//! Descriptor indexing: arrays that get their size from the layout, variable descriptor counts, descriptors never
//! written.
#![allow(clippy::unwrap_used)]

use crate::common;
use crate::common::{STORAGE, Words, device, run};
use spelter_driver::{
    Binding, DescriptorSetLayout, DescriptorSetLayoutInfo, Device, Error, PipelineLayout, Specialization, vk,
};
use spelter_shaders::front::spvasm::assemble;

/// Invocation `i` adds 1 to the first word of buffer `i` of the array at binding 1, and copies it to word `i` of
/// binding 0.
const EACH: &str = "OpCapability Shader
    OpCapability RuntimeDescriptorArray
    OpCapability ShaderNonUniform
    OpCapability StorageBufferArrayNonUniformIndexing
    OpExtension \"SPV_EXT_descriptor_indexing\"
    OpMemoryModel Logical GLSL450
    OpEntryPoint GLCompute %main \"main\" %gid
    OpExecutionMode %main LocalSize 8 1 1
    OpDecorate %gid BuiltIn GlobalInvocationId
    OpDecorate %words ArrayStride 4
    OpDecorate %Block Block
    OpMemberDecorate %Block 0 Offset 0
    OpDecorate %out DescriptorSet 0
    OpDecorate %out Binding 0
    OpDecorate %all DescriptorSet 0
    OpDecorate %all Binding 1
    OpDecorate %p NonUniform
    %void = OpTypeVoid
    %fn = OpTypeFunction %void
    %u32 = OpTypeInt 32 0
    %v3u = OpTypeVector %u32 3
    %ptr_v3u = OpTypePointer Input %v3u
    %gid = OpVariable %ptr_v3u Input
    %words = OpTypeRuntimeArray %u32
    %Block = OpTypeStruct %words
    %Blocks = OpTypeRuntimeArray %Block
    %ptr_Block = OpTypePointer StorageBuffer %Block
    %ptr_Blocks = OpTypePointer StorageBuffer %Blocks
    %ptr_word = OpTypePointer StorageBuffer %u32
    %out = OpVariable %ptr_Block StorageBuffer
    %all = OpVariable %ptr_Blocks StorageBuffer
    %c0 = OpConstant %u32 0
    %c1 = OpConstant %u32 1
    %main = OpFunction %void None %fn
    %entry = OpLabel
    %id = OpLoad %v3u %gid
    %i = OpCompositeExtract %u32 %id 0
    %p = OpAccessChain %ptr_word %all %i %c0 %c0
    %x = OpLoad %u32 %p
    %y = OpIAdd %u32 %x %c1
    OpStore %p %y
    %to = OpAccessChain %ptr_word %out %c0 %i
    OpStore %to %y
    OpReturn
    OpFunctionEnd";

fn layout(device: &Device, count: u32) -> (DescriptorSetLayout, PipelineLayout) {
    let bindings = [(0, 1), (1, count)].map(|(binding, count)| Binding { binding, ty: STORAGE, count });
    let info = DescriptorSetLayoutInfo { bindings: &bindings, variable_count: true, ..Default::default() };
    let set = device.create_descriptor_set_layout_from(&info).unwrap();
    let layout = device.create_pipeline_layout(&[&set], &[]).unwrap();
    (set, layout)
}

#[test]
fn sets_have_the_number_of_elements_they_were_allocated_with() {
    let device = device();
    let module = device.create_shader_module(&assemble(EACH).unwrap()).unwrap();
    for max in [4, 6] {
        let (set_layout, layout) = layout(&device, max);
        let pipeline = device.create_compute_pipeline(&module, "main", &Specialization::new(), &layout).unwrap();
        let pool = device.create_descriptor_pool(1, &[(STORAGE, 4)]).unwrap();
        let set = pool.allocate_with_count(&set_layout, 3).unwrap();
        let (out, a, b) = (Words::zeros(&device, 8), Words::new(&device, &[10]), Words::new(&device, &[20]));
        set.write(0, 0, STORAGE, &[out.whole()]).unwrap();
        // Element 1 is never written.
        set.write(1, 0, STORAGE, &[a.whole()]).unwrap();
        set.write(1, 2, STORAGE, &[b.whole()]).unwrap();
        let beyond = set.write(1, 3, STORAGE, &[b.whole()]);
        assert!(matches!(beyond, Err(Error::Misuse(m)) if m.vuid.ends_with("dstArrayElement-00321")));
        run(&device, |command| {
            command.bind_pipeline(&pipeline).unwrap();
            command.bind_descriptor_sets(&layout, 0, &[&set], &[]).unwrap();
            command.dispatch(1, 1, 1).unwrap();
        });
        assert_eq!(out.read(), [11, 1, 21, 1, 1, 1, 1, 1]);
        assert_eq!((a.read(), b.read()), (vec![11], vec![21]));
    }
}

#[test]
fn pipelines_share_code_where_arrays_have_the_same_size() {
    let device = device();
    let module = device.create_shader_module(&assemble(EACH).unwrap()).unwrap();
    let make = |count| {
        let (_, layout) = layout(&device, count);
        device.create_compute_pipeline(&module, "main", &Specialization::new(), &layout).unwrap()
    };
    let pipelines = [make(2), make(3), make(2)];
    let stats = device.pipeline_cache_stats();
    assert_eq!((stats.compiled, stats.shared), (2, 1));
    drop(pipelines);
}

#[test]
fn a_pool_counts_what_sets_have() {
    let device = device();
    let (set_layout, _) = layout(&device, 100);
    let pool = device.create_descriptor_pool(3, &[(STORAGE, 10)]).unwrap();
    let first = pool.allocate_with_count(&set_layout, 6).unwrap();
    assert!(matches!(pool.allocate_with_count(&set_layout, 3), Err(Error::OutOfPoolMemory(_))));
    assert!(pool.allocate_with_count(&set_layout, 2).is_ok());
    drop(first);
    assert!(pool.allocate_with_count(&set_layout, 9).is_ok());
    let too_many = pool.allocate_with_count(&set_layout, 101);
    assert!(matches!(too_many, Err(Error::Misuse(m)) if m.vuid.ends_with("pSetLayouts-09380")));
}

#[test]
fn half_a_million_descriptors_are_updated_after_they_were_bound() {
    let device = device();
    let module = device.create_shader_module(&assemble(EACH).unwrap()).unwrap();
    let bindings = [(0, 1), (1, 500_000)].map(|(binding, count)| Binding { binding, ty: STORAGE, count });
    let info = DescriptorSetLayoutInfo { bindings: &bindings, update_after_bind: true, ..Default::default() };
    let set_layout = device.create_descriptor_set_layout_from(&info).unwrap();
    let layout = device.create_pipeline_layout(&[&set_layout], &[]).unwrap();
    // The elements at the end of the array: the base workgroup is part of `gl_GlobalInvocationID`.
    let pipeline = device.create_compute_pipeline(&module, "main", &Specialization::new(), &layout).unwrap();
    let set = device.create_descriptor_pool(1, &[(STORAGE, 500_001)]).unwrap().allocate(&set_layout).unwrap();
    let (out, last) = (Words::zeros(&device, 500_000), Words::new(&device, &[41]));
    let commands = common::recorded(&device, vk::CommandBufferUsageFlags::empty(), |command| {
        command.bind_pipeline(&pipeline).unwrap();
        command.bind_descriptor_sets(&layout, 0, &[&set], &[]).unwrap();
        command.dispatch_base([499_992 / 8, 0, 0], [1, 1, 1]).unwrap();
    });
    set.write(0, 0, STORAGE, &[out.whole()]).unwrap();
    set.write(1, 499_999, STORAGE, &[last.whole()]).unwrap();
    device.queue().submit(&[&commands], None).unwrap();
    device.queue().wait_idle().unwrap();
    assert_eq!((last.read(), out.read()[499_998..].to_vec()), (vec![42], vec![1, 42]));
}
