//! Rules of an essay on the caches that memory dependencies are about (`docs/seeds.md`), each as a program that breaks
//! it and is reported, and as one that keeps it.
#![allow(clippy::unwrap_used)]

use crate::common::checked::{RAW, WAR, WAW, barrier, device, findings, options, rules};
use crate::common::{ANY_USE, Kernel, STORAGE, Words, recorded};
use spelter_driver::check::{CheckOptions, Finding, Profile, Severity};
use spelter_driver::vk::{self, AccessFlags as A, DescriptorType, PipelineStageFlags as S};
use spelter_driver::{CommandBuffer, DescriptorSet, Device, DeviceOptions};

const UNIFORM: DescriptorType = DescriptorType::UNIFORM_BUFFER;

fn dispatch(command: &CommandBuffer, kernel: &Kernel, set: &DescriptorSet) {
    command.bind_pipeline(&kernel.pipeline).unwrap();
    command.bind_descriptor_sets(&kernel.layout, 0, &[set], &[]).unwrap();
    command.dispatch(1, 1, 1).unwrap();
}

/// Atomics read and write: a barrier before them names both.
#[test]
fn atomics_need_what_they_read_and_write_to_be_visible() {
    let device = device();
    let source = "
        @group(0) @binding(0) var<storage, read_write> sum: atomic<u32>;
        @compute @workgroup_size(4) fn main() { atomicAdd(&sum, 1u); }";
    let kernel = Kernel::new(&device, source, &[(STORAGE, 1)], 0);
    let sum = Words::zeros(&device, 1);
    let set = kernel.set(&device, STORAGE, &[&sum]);
    let run = |visible: A| {
        findings(&device, |command| {
            command.fill_buffer(&sum.buffer, 0, vk::WHOLE_SIZE, 7).unwrap();
            barrier(command, (S::TRANSFER, A::TRANSFER_WRITE), (S::COMPUTE_SHADER, visible));
            dispatch(command, &kernel, &set);
        })
    };
    assert_eq!(run(A::SHADER_READ | A::SHADER_WRITE), []);
    assert_eq!(rules(&run(A::SHADER_READ)), [WAW]);
    assert_eq!(rules(&run(A::SHADER_WRITE)), [RAW]);
}

/// What was written through a storage buffer is read through a uniform buffer on the same bytes.
#[test]
fn aliases_of_different_kinds_need_the_access_of_their_kind() {
    let device = device();
    let write = "
        @group(0) @binding(0) var<storage, read_write> to: array<u32>;
        @compute @workgroup_size(16) fn main(@builtin(local_invocation_index) i: u32) { to[i] = i; }";
    let read = "
        @group(0) @binding(0) var<uniform> factors: array<vec4<u32>, 4>;
        @group(0) @binding(1) var<storage, read_write> to: array<u32>;
        @compute @workgroup_size(16) fn main(@builtin(local_invocation_index) i: u32) { to[i] = factors[0].x; }";
    let write = Kernel::new(&device, write, &[(STORAGE, 1)], 0);
    let read = Kernel::new(&device, read, &[(UNIFORM, 1), (STORAGE, 1)], 0);
    let (written, result) = (Words::zeros(&device, 16), Words::zeros(&device, 16));
    let alias = device.create_buffer(64, ANY_USE).unwrap();
    alias.bind_memory(&written.memory, 0).unwrap();
    let alias = Words { buffer: alias, memory: written.memory.clone() };
    let first = write.set(&device, STORAGE, &[&written]);
    let pool = device.create_descriptor_pool(1, &[(UNIFORM, 1), (STORAGE, 1)]).unwrap();
    let second = pool.allocate(&read.set_layout).unwrap();
    second.write(0, 0, UNIFORM, &[alias.whole()]).unwrap();
    second.write(1, 0, STORAGE, &[result.whole()]).unwrap();
    let run = |visible: A| {
        findings(&device, |command| {
            dispatch(command, &write, &first);
            barrier(command, (S::COMPUTE_SHADER, A::SHADER_WRITE), (S::COMPUTE_SHADER, visible));
            dispatch(command, &read, &second);
        })
    };
    let found = run(A::SHADER_READ);
    assert_eq!(rules(&found), [RAW]);
    assert!(found[0].reasons[0].contains("dstAccessMask lacks UNIFORM_READ"), "{}", found[0]);
    assert_eq!(run(A::UNIFORM_READ), []);
}

/// Two descriptors of one buffer are two references: a barrier of a shader does not make a write through one of them
/// visible to the other.
#[test]
fn descriptors_of_one_buffer_are_different_references() {
    let device = device();
    let source = |read: &str| {
        format!(
            "@group(0) @binding(0) var<storage, read_write> a: array<u32>;
            @group(0) @binding(1) var<storage, read_write> b: array<u32>;
            @group(0) @binding(2) var<storage, read_write> to: array<u32>;
            @compute @workgroup_size(64) fn main(@builtin(local_invocation_index) i: u32) {{
                a[i] = i;
                storageBarrier();
                to[i] = {read}[63u - i] + b[64u];
            }}"
        )
    };
    let (words, result) = (Words::zeros(&device, 65), Words::zeros(&device, 64));
    let run = |read: &str| {
        let kernel = Kernel::new(&device, &source(read), &[(STORAGE, 1), (STORAGE, 1), (STORAGE, 1)], 0);
        let set = kernel.set(&device, STORAGE, &[&words, &words, &result]);
        findings(&device, |command| dispatch(command, &kernel, &set))
    };
    assert_eq!(run("a"), []);
    let found = run("b");
    assert_eq!(rules(&found), [RAW], "{found:#?}");
    let reason = "`a` (set 0, binding 0) and `b` (set 0, binding 1) are the same memory, but no barrier orders a \
                  write before accesses through another binding";
    assert_eq!(found[0].reasons, [reason], "{}", found[0]);
    let repairs = |found: &[Finding]| found[0].repairs.iter().map(|repair| repair.text.clone()).collect::<Vec<_>>();
    let one = "one binding for both: `a` (set 0, binding 0) in place of `b` (set 0, binding 1)";
    assert_eq!(repairs(&found), [one], "{}", found[0]);
    // So for one invocation.
    let own = source("b").replace("storageBarrier();", "").replace("b[63u - i] + b[64u]", "b[i]");
    let kernel = Kernel::new(&device, &own, &[(STORAGE, 1), (STORAGE, 1), (STORAGE, 1)], 0);
    let set = kernel.set(&device, STORAGE, &[&words, &words, &result]);
    let own = findings(&device, |command| dispatch(command, &kernel, &set));
    assert_eq!(rules(&own), [RAW], "{own:#?}");
    let reason = "`a` (set 0, binding 0) and `b` (set 0, binding 1) are the same memory, but program order does not \
                  order a write before accesses through another binding";
    assert_eq!((&own[0].reasons[..], repairs(&own)), (&[reason.to_owned()][..], vec![one.to_owned()]), "{}", own[0]);
    assert!(found[0].title().contains(" in `b` (set 0, binding 1), bytes "), "{}", found[0]);
}

/// Each invocation writes a word of a buffer, and after a barrier for buffers reads that of another invocation.
const EXCHANGE: &str = r#"
    OpCapability Shader
    OpExtension "SPV_KHR_storage_buffer_storage_class"
    OpMemoryModel Logical GLSL450
    OpEntryPoint GLCompute %main "main" %index
    OpExecutionMode %main LocalSize 64 1 1
    OpDecorate %index BuiltIn LocalInvocationIndex
    OpDecorate %array ArrayStride 4
    OpDecorate %Block Block
    OpMemberDecorate %Block 0 Offset 0
    OpDecorate %words DescriptorSet 0
    OpDecorate %words Binding 0
    COHERENT
    OpDecorate %to DescriptorSet 0
    OpDecorate %to Binding 1
    %void = OpTypeVoid
    %function = OpTypeFunction %void
    %uint = OpTypeInt 32 0
    %array = OpTypeRuntimeArray %uint
    %Block = OpTypeStruct %array
    %ptr_Block = OpTypePointer StorageBuffer %Block
    %ptr_uint = OpTypePointer StorageBuffer %uint
    %ptr_input = OpTypePointer Input %uint
    %words = OpVariable %ptr_Block StorageBuffer
    %to = OpVariable %ptr_Block StorageBuffer
    %index = OpVariable %ptr_input Input
    %zero = OpConstant %uint 0
    %last = OpConstant %uint 63
    %workgroup = OpConstant %uint 2
    %semantics = OpConstant %uint 72
    %main = OpFunction %void None %function
    %entry = OpLabel
    %i = OpLoad %uint %index
    %own = OpAccessChain %ptr_uint %words %zero %i
    OpStore %own %i
    OpControlBarrier %workgroup %workgroup %semantics
    %j = OpISub %uint %last %i
    %other = OpAccessChain %ptr_uint %words %zero %j
    %value = OpLoad %uint %other
    %result = OpAccessChain %ptr_uint %to %zero %i
    OpStore %result %value
    OpReturn
    OpFunctionEnd"#;

/// Accesses without `Coherent` need not go to a cache that other invocations see.
#[test]
fn invocations_exchange_values_through_coherent_buffers() {
    let run = |profile: Profile, coherent: bool| -> Vec<Finding> {
        let check = Some(CheckOptions { profile, ..CheckOptions::default() });
        let device = Device::new(DeviceOptions { check, ..options() }).unwrap();
        let decoration = if coherent { "OpDecorate %words Coherent" } else { "" };
        let words = spelter_shaders::front::spvasm::assemble(&EXCHANGE.replace("COHERENT", decoration)).unwrap();
        let module = device.create_shader_module(&words).unwrap();
        let kernel = Kernel::of_module(&device, &module, "main", &[(STORAGE, 1), (STORAGE, 1)], 0);
        let buffers = [0; 2].map(|_| Words::zeros(&device, 64));
        let set = kernel.set(&device, STORAGE, &[&buffers[0], &buffers[1]]);
        findings(&device, |command| dispatch(command, &kernel, &set))
    };
    let found = run(Profile::Spec, false);
    assert_eq!(rules(&found), [RAW], "{found:#?}");
    assert!(found[0].reasons.iter().any(|reason| reason.contains("NonPrivatePointer")), "{}", found[0]);
    // Compilers emit it, and all known devices do what they mean.
    let note = run(Profile::Common, false);
    assert_eq!(note.iter().map(|finding| finding.severity).collect::<Vec<_>>(), [Severity::Note], "{note:#?}");
    assert_eq!(run(Profile::Spec, true), []);
}

/// A write of the host needs order after the commands that use the memory; no barrier makes values visible to it.
#[test]
fn the_host_writes_what_no_command_uses() {
    let device = device();
    let source = "
        @group(0) @binding(0) var<storage, read> input: array<u32>;
        @group(0) @binding(1) var<storage, read_write> output: array<u32>;
        @compute @workgroup_size(16) fn main(@builtin(local_invocation_index) i: u32) { output[i] = input[i]; }";
    let kernel = Kernel::new(&device, source, &[(STORAGE, 1), (STORAGE, 1)], 0);
    let words = [0; 2].map(|_| Words::zeros(&device, 16));
    let set = kernel.set(&device, STORAGE, &[&words[0], &words[1]]);
    let run = |write: usize, waits: bool, host: A| {
        let command = recorded(&device, vk::CommandBufferUsageFlags::ONE_TIME_SUBMIT, |command| {
            dispatch(command, &kernel, &set);
            barrier(command, (S::COMPUTE_SHADER, A::SHADER_WRITE), (S::HOST, host));
        });
        let fence = device.create_fence(false);
        device.queue().submit(&[&command], Some(&fence)).unwrap();
        if waits {
            assert!(fence.wait(None).unwrap());
        }
        words[write].memory.write(0, &[1; 64]).unwrap();
        device.queue().wait_idle().unwrap();
        device.take_findings()
    };
    // The dispatch has read the word when the host writes it, or not.
    assert!(matches!(rules(&run(0, false, A::HOST_WRITE))[..], [RAW | WAR]));
    assert_eq!(run(0, true, A::HOST_WRITE), []);
    assert_eq!(rules(&run(1, false, A::HOST_WRITE)), [WAW]);
    assert_eq!(run(1, true, A::HOST_WRITE), []);
    assert_eq!(run(1, true, A::empty()), []);
}

/// A transform in place through two descriptors: profile `common` takes what an invocation read through one of them to
/// be ordered before its own write through the other, but not the reverse.
#[test]
fn an_invocation_writes_through_one_descriptor_what_it_read_through_another() {
    let start = EXCHANGE.find("    %own =").unwrap();
    let head = EXCHANGE[..start].replace("COHERENT", "");
    let place = |name: &str, of: &str| format!("{name} = OpAccessChain %ptr_uint {of} %zero %i\n");
    let places = place("%from", "%words") + &place("%into", "%to");
    let run = |profile: Profile, body: &str| {
        let check = Some(CheckOptions { profile, ..CheckOptions::default() });
        let device = Device::new(DeviceOptions { check, ..options() }).unwrap();
        let text = format!("{head}{places}{body}\nOpReturn\nOpFunctionEnd");
        let module = device.create_shader_module(&spelter_shaders::front::spvasm::assemble(&text).unwrap()).unwrap();
        let kernel = Kernel::of_module(&device, &module, "main", &[(STORAGE, 1), (STORAGE, 1)], 0);
        let words = Words::zeros(&device, 64);
        let set = kernel.set(&device, STORAGE, &[&words, &words]);
        rules(&findings(&device, |command| dispatch(command, &kernel, &set)))
    };
    let in_place = "%value = OpLoad %uint %from\nOpStore %into %value";
    assert_eq!(run(Profile::Common, in_place), []);
    assert_eq!(run(Profile::Spec, in_place), [WAR]);
    let back = "OpStore %into %i\n%value = OpLoad %uint %from";
    assert_eq!(run(Profile::Common, back), [RAW]);
    // Another invocation's word is another matter.
    let others = "%j = OpISub %uint %last %i\n%other = OpAccessChain %ptr_uint %to %zero %j\n\
                  %value = OpLoad %uint %from\nOpStore %other %value";
    assert_ne!(run(Profile::Common, others), []);
}
