//! A kernel that runs too long loses its device; the process and its other devices are unaffected.
#![allow(clippy::unwrap_used)]

use crate::common;
use std::time::Duration;

use crate::common::{COUNT, Kernel, STORAGE, Words, options, recorded, run};
use spelter_driver::vk::CommandBufferUsageFlags as Flags;
use spelter_driver::{Backend, Binding, CommandBuffer, Device, DeviceOptions, Error, Specialization};

/// A command buffer with a kernel that does not terminate.
fn endless(device: &Device) -> CommandBuffer {
    let words = Words::zeros(device, 1);
    let wgsl = "
        @group(0) @binding(0) var<storage, read_write> words: array<atomic<u32>>;
        @compute @workgroup_size(1) fn forever() { while atomicLoad(&words[0]) == 0u {} }";
    let kernel = Kernel::named(device, wgsl, "forever", &[(STORAGE, 1)], 0);
    let set = kernel.set(device, STORAGE, &[&words]);
    recorded(device, Flags::SIMULTANEOUS_USE, |command| {
        command.bind_pipeline(&kernel.pipeline).unwrap();
        command.bind_descriptor_sets(&kernel.layout, 0, &[&set], &[]).unwrap();
        command.dispatch(4, 1, 1).unwrap();
    })
}

#[test]
fn an_endless_kernel_loses_its_device_and_no_other() {
    let device = Device::new(DeviceOptions { time_limit: Duration::from_millis(50), ..options() }).unwrap();
    let other = common::device();
    let command = endless(&device);
    let (fence, unused) = (device.create_fence(false), device.create_fence(false));
    // If the device is lost before the call returns, the call reports it.
    let submitted = device.queue().submit(&[&command], Some(&fence));
    assert!(matches!(submitted, Ok(_) | Err(Error::DeviceLost(_))), "{submitted:?}");
    let lost = fence.wait(None).unwrap_err();
    assert!(matches!(&lost, Error::DeviceLost(why) if why.contains("forever")), "{lost}");

    assert!(device.is_lost());
    let is_lost = |result: Result<(), Error>| assert!(matches!(result, Err(Error::DeviceLost(_))), "{result:?}");
    is_lost(device.queue().wait_idle());
    is_lost(device.queues()[1].wait_idle());
    is_lost(device.queues()[1].submit(&[&command], None).map(drop));
    is_lost(device.queue().submit(&[], Some(&unused)).map(drop));
    is_lost(unused.wait(None).map(drop));
    is_lost(fence.wait(Some(Duration::ZERO)).map(drop));
    // Nothing is pending on a lost device.
    command.reset().unwrap();
    fence.reset().unwrap();

    let words = Words::zeros(&other, 4);
    let kernel = Kernel::new(&other, COUNT, &[(STORAGE, 1)], 0);
    let set = kernel.set(&other, STORAGE, &[&words]);
    run(&other, |command| {
        command.bind_pipeline(&kernel.pipeline).unwrap();
        command.bind_descriptor_sets(&kernel.layout, 0, &[&set], &[]).unwrap();
        command.dispatch(1, 1, 1).unwrap();
    });
    assert_eq!(words.read(), [1; 4]);
}

#[test]
fn a_loss_ends_waits_for_fences_without_a_submission() {
    let device = Device::new(DeviceOptions { time_limit: Duration::from_millis(50), ..options() }).unwrap();
    let (later, never) = (device.create_fence(false), device.create_fence(false));
    let command = endless(&device);
    let is_lost = |result: Result<bool, Error>| assert!(matches!(result, Err(Error::DeviceLost(_))), "{result:?}");
    std::thread::scope(|scope| {
        scope.spawn(|| is_lost(later.wait(None)));
        scope.spawn(|| is_lost(never.wait(None)));
        scope.spawn(|| is_lost(never.wait(Some(Duration::from_secs(1 << 20)))));
        let _ = device.queue().submit(&[&command], None);
        assert!(device.queue().wait_idle().is_err());
        let late = device.queue().submit(&[], Some(&later));
        assert!(matches!(late, Err(Error::DeviceLost(_))), "{late:?}");
    });
    // A reset does not restore the device.
    never.reset().unwrap();
    is_lost(never.wait(None));
}

/// Runs a kernel whose word 0 stays 0 on a device with a time limit. Returns the reason of the loss.
fn why(backend: Backend, wgsl: &str, groups: [u32; 3]) -> String {
    let time_limit = Duration::from_millis(100);
    let device = Device::new(DeviceOptions { time_limit, backend, ..options() }).unwrap();
    let words = Words::zeros(&device, 256);
    let kernel = Kernel::new(&device, wgsl, &[(STORAGE, 1)], 0);
    let set = kernel.set(&device, STORAGE, &[&words]);
    let command = recorded(&device, Flags::empty(), |command| {
        command.bind_pipeline(&kernel.pipeline).unwrap();
        command.bind_descriptor_sets(&kernel.layout, 0, &[&set], &[]).unwrap();
        let [x, y, z] = groups;
        command.dispatch(x, y, z).unwrap();
    });
    let fence = device.create_fence(false);
    let _ = device.queue().submit(&[&command], Some(&fence));
    let Err(Error::DeviceLost(why)) = fence.wait(None) else { panic!("not lost: {wgsl}") };
    why
}

#[test]
fn the_loop_that_did_not_end_is_named_with_its_line_and_an_invocation() {
    let head = "@group(0) @binding(0) var<storage, read_write> words: array<u32>;";
    // One invocation of the second workgroup, after a loop that terminates.
    let one = "
@compute @workgroup_size(64) fn main(@builtin(global_invocation_id) id: vec3<u32>) {
    for (var i = 0u; i < words[3] + 4u; i++) { words[2] += i; }
    if id.x == 101u {
        while words[0] == 0u {
            words[1] += id.x;
        }
    }
}";
    // All invocations of a workgroup, in three dimensions, in a called function.
    let all = "
fn wait_for(at: u32) {
    loop {
        if words[at] != 0u { break; }
        words[1] += 1u;
    }
}
@compute @workgroup_size(2, 4, 4) fn main(@builtin(workgroup_id) id: vec3<u32>) {
    if id.z == 2u { wait_for(0u); }
}";
    // After a barrier, in the last subgroup.
    let after_barrier = "
var<workgroup> sum: atomic<u32>;
@compute @workgroup_size(8, 8) fn main(@builtin(local_invocation_id) id: vec3<u32>) {
    atomicAdd(&sum, id.x);
    workgroupBarrier();
    var n = atomicLoad(&sum);
    while n * id.y * id.x == 224u * 49u { n += words[0]; }
    words[8u + id.x] = n;
}";
    // Workgroups so small that several share the lanes.
    let small = "
@compute @workgroup_size(4) fn main(@builtin(global_invocation_id) id: vec3<u32>) {
    while id.x >= 22u && words[0] == 0u { words[1] += 1u; }
}";
    // Empty loops: one before another loop, and one that is the last statement.
    let empty = "
@compute @workgroup_size(16) fn main() {
    if words[0] == 0u {
        while true {}
    }
    for (var i = 0u; i < 3u; i++) { words[1] += 1u; }
}";
    let last = "
@compute @workgroup_size(16) fn main(@builtin(local_invocation_index) index: u32) {
    words[1] = index;
    loop {}
}";
    for (text, groups, line, invocations) in [
        (one, [2, 1, 1], 5, vec!["(101, 0, 0)"]),
        (all, [1, 1, 3], 3, vec!["(0, 0, 8)", "(0, 0, 10)"]),
        (after_barrier, [1, 1, 1], 7, vec!["(7, 7, 0)"]),
        (small, [6, 1, 1], 3, vec!["(22, 0, 0)"]),
        (empty, [1, 1, 1], 4, vec!["(0, 0, 0)"]),
        (last, [1, 1, 1], 4, vec!["(0, 0, 0)"]),
    ] {
        for backend in Backend::available() {
            let why = why(backend, &format!("{head}{text}"), groups);
            let at = why.split_once(": a loop at wgsl:").map(|(_, at)| at);
            let (place, invocation) = at.and_then(|at| at.split_once(" did not end in invocation ")).expect(&why);
            assert_eq!(place.split(':').next().unwrap().parse(), Ok(line), "{backend}: {why}");
            assert!(invocations.contains(&invocation), "{backend}: {why}");
        }
    }
}

/// If the module has no line information, the message names the SPIR-V word.
#[test]
fn a_loop_of_a_module_without_lines_is_named_by_its_word() {
    let text = "
        OpCapability Shader
        OpMemoryModel Logical GLSL450
        OpEntryPoint GLCompute %main \"main\"
        OpExecutionMode %main LocalSize 1 1 1
        OpDecorate %words DescriptorSet 0
        OpDecorate %words Binding 0
        OpDecorate %block Block
        OpMemberDecorate %block 0 Offset 0
        %void = OpTypeVoid
        %bool = OpTypeBool
        %uint = OpTypeInt 32 0
        %block = OpTypeStruct %uint
        %zero = OpConstant %uint 0
        %of_block = OpTypePointer StorageBuffer %block
        %of_word = OpTypePointer StorageBuffer %uint
        %words = OpVariable %of_block StorageBuffer
        %function = OpTypeFunction %void
        %main = OpFunction %void None %function
        %entry = OpLabel
        OpBranch %header
        %header = OpLabel
        %at = OpAccessChain %of_word %words %zero
        %word = OpLoad %uint %at
        %more = OpIEqual %bool %word %zero
        OpLoopMerge %end %again None
        OpBranchConditional %more %again %end
        %again = OpLabel
        OpBranch %header
        %end = OpLabel
        OpReturn
        OpFunctionEnd";
    let words = spelter_shaders::front::spvasm::assemble(text).unwrap();
    for backend in Backend::available() {
        let time_limit = Duration::from_millis(100);
        let device = Device::new(DeviceOptions { time_limit, backend, ..options() }).unwrap();
        let module = device.create_shader_module(&words).unwrap();
        let memory = Words::zeros(&device, 1);
        let set_layout = device.create_descriptor_set_layout(&[Binding { binding: 0, ty: STORAGE, count: 1 }]).unwrap();
        let layout = device.create_pipeline_layout(&[&set_layout], &[]).unwrap();
        let pipeline = device.create_compute_pipeline(&module, "main", &Specialization::new(), &layout).unwrap();
        let kernel = Kernel { set_layout, layout, pipeline };
        let set = kernel.set(&device, STORAGE, &[&memory]);
        let command = recorded(&device, Flags::empty(), |command| {
            command.bind_pipeline(&kernel.pipeline).unwrap();
            command.bind_descriptor_sets(&kernel.layout, 0, &[&set], &[]).unwrap();
            command.dispatch(1, 1, 1).unwrap();
        });
        let fence = device.create_fence(false);
        let _ = device.queue().submit(&[&command], Some(&fence));
        let Err(Error::DeviceLost(why)) = fence.wait(None) else { panic!("not lost") };
        assert!(why.contains(": a loop at SPIR-V word "), "{backend}: {why}");
        assert!(why.ends_with("did not end in invocation (0, 0, 0)"), "{backend}: {why}");
    }
}
