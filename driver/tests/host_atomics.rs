//! Release and acquire between a host thread and a kernel that runs: plain words pass with the flag.
#![allow(clippy::unwrap_used)]

use std::sync::atomic::{Ordering, fence};

use crate::common::{STORAGE, Words, device, recorded};
use spelter_driver::vk::CommandBufferUsageFlags;
use spelter_driver::{Binding, Specialization};
use spelter_shaders::front::spvasm::assemble;

const ROUNDS: u8 = 200;

/// In each round: waits until word 0 is the number of the round (acquire), reads word 2, writes word 3, and sets word 1
/// (release).
const ANSWER: &str = "OpCapability Shader
    OpMemoryModel Logical GLSL450
    OpEntryPoint GLCompute %main \"main\"
    OpExecutionMode %main LocalSize 1 1 1
    OpDecorate %words ArrayStride 4
    OpDecorate %Block Block
    OpMemberDecorate %Block 0 Offset 0
    OpDecorate %buffer DescriptorSet 0
    OpDecorate %buffer Binding 0
    %void = OpTypeVoid
    %fn = OpTypeFunction %void
    %bool = OpTypeBool
    %u32 = OpTypeInt 32 0
    %0 = OpConstant %u32 0
    %1 = OpConstant %u32 1
    %2 = OpConstant %u32 2
    %3 = OpConstant %u32 3
    %rounds = OpConstant %u32 200
    %device = OpConstant %u32 1
    %acquire = OpConstant %u32 0x42
    %release = OpConstant %u32 0x44
    %words = OpTypeRuntimeArray %u32
    %Block = OpTypeStruct %words
    %ptr_Block = OpTypePointer StorageBuffer %Block
    %ptr_word = OpTypePointer StorageBuffer %u32
    %buffer = OpVariable %ptr_Block StorageBuffer
    %main = OpFunction %void None %fn
    %entry = OpLabel
    %question = OpAccessChain %ptr_word %buffer %0 %0
    %answer = OpAccessChain %ptr_word %buffer %0 %1
    %from = OpAccessChain %ptr_word %buffer %0 %2
    %to = OpAccessChain %ptr_word %buffer %0 %3
    OpBranch %head
    %head = OpLabel
    %round = OpPhi %u32 %1 %entry %next %continue
    OpLoopMerge %done %continue None
    OpBranch %test
    %test = OpLabel
    %more = OpULessThanEqual %bool %round %rounds
    OpBranchConditional %more %wait %done
    %wait = OpLabel
    OpLoopMerge %asked %again None
    OpBranch %poll
    %poll = OpLabel
    %seen = OpAtomicLoad %u32 %question %device %acquire
    %same = OpIEqual %bool %seen %round
    OpBranchConditional %same %asked %again
    %again = OpLabel
    OpBranch %wait
    %asked = OpLabel
    %x = OpLoad %u32 %from
    %y = OpIMul %u32 %x %3
    OpStore %to %y
    OpAtomicStore %answer %device %release %round
    OpBranch %continue
    %continue = OpLabel
    %next = OpIAdd %u32 %round %1
    OpBranch %head
    %done = OpLabel
    OpReturn
    OpFunctionEnd";

#[test]
fn plain_words_pass_between_host_and_kernel_with_a_flag() {
    let device = device();
    let module = device.create_shader_module(&assemble(ANSWER).unwrap()).unwrap();
    let layout = device.create_descriptor_set_layout(&[Binding { binding: 0, ty: STORAGE, count: 1 }]).unwrap();
    let pipeline_layout = device.create_pipeline_layout(&[&layout], &[]).unwrap();
    let pipeline = device.create_compute_pipeline(&module, "main", &Specialization::new(), &pipeline_layout).unwrap();
    let words = Words::zeros(&device, 4);
    let set = device.create_descriptor_pool(1, &[(STORAGE, 1)]).unwrap().allocate(&layout).unwrap();
    set.write(0, 0, STORAGE, &[words.whole()]).unwrap();
    let command = recorded(&device, CommandBufferUsageFlags::empty(), |command| {
        command.bind_pipeline(&pipeline).unwrap();
        command.bind_descriptor_sets(&pipeline_layout, 0, &[&set], &[]).unwrap();
        command.dispatch(1, 1, 1).unwrap();
    });
    let done = device.create_fence(false);
    std::thread::scope(|scope| {
        // A submission may run on the submitting thread.
        scope.spawn(|| device.queue().submit(&[&command], Some(&done)).unwrap());
        for round in 1..=ROUNDS {
            words.memory.write(8, &u32::from(round).wrapping_mul(77).to_le_bytes()).unwrap();
            // Release: pairs with the kernel's atomic load, which acquires.
            fence(Ordering::Release);
            words.memory.write(0, &[round]).unwrap();
            while words.read()[1] != u32::from(round) {
                std::thread::yield_now();
            }
            // Acquire: pairs with the kernel's atomic store, which releases.
            fence(Ordering::Acquire);
            assert_eq!(words.read()[3], u32::from(round) * 77 * 3);
        }
    });
    assert!(done.wait(None).unwrap());
}
