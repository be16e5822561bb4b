//! Output of kernels (debugPrintf), and the shader clock.
#![allow(clippy::unwrap_used)]

use crate::common;
use std::sync::{Arc, Mutex};

use crate::common::{STORAGE, Words, options};
use spelter_driver::vk::CommandBufferUsageFlags as Flags;
use spelter_driver::{Backend, Binding, CommandBuffer, Device, DeviceOptions, Error, Printed, Printer, Specialization};
use spelter_shaders::front::spvasm::assemble;

/// Every third invocation prints; all store the time in their word.
const KERNEL: &str = r#"OpCapability Shader
    OpCapability ShaderClockKHR
    OpExtension "SPV_KHR_non_semantic_info"
    OpExtension "SPV_KHR_shader_clock"
    %printf = OpExtInstImport "NonSemantic.DebugPrintf"
    OpMemoryModel Logical GLSL450
    OpEntryPoint GLCompute %main "main" %gid
    OpExecutionMode %main LocalSize 20 1 1
    %text = OpString "word %u half %v2f 100%%s %s %s"
    %raw = OpString "x%sy"
    %name = OpString "of 100%"
    OpDecorate %gid BuiltIn GlobalInvocationId
    OpDecorate %words ArrayStride 4
    OpDecorate %Block Block
    OpMemberDecorate %Block 0 Offset 0
    OpDecorate %out DescriptorSet 0
    OpDecorate %out Binding 0
    %void = OpTypeVoid
    %fn = OpTypeFunction %void
    %bool = OpTypeBool
    %u32 = OpTypeInt 32 0
    %f32 = OpTypeFloat 32
    %v2f = OpTypeVector %f32 2
    %v2u = OpTypeVector %u32 2
    %v3u = OpTypeVector %u32 3
    %ptr_v3u = OpTypePointer Input %v3u
    %gid = OpVariable %ptr_v3u Input
    %words = OpTypeRuntimeArray %u32
    %Block = OpTypeStruct %words
    %ptr_Block = OpTypePointer StorageBuffer %Block
    %ptr_word = OpTypePointer StorageBuffer %u32
    %out = OpVariable %ptr_Block StorageBuffer
    %c0 = OpConstant %u32 0
    %c1 = OpConstant %u32 1
    %c3 = OpConstant %u32 3
    %half = OpConstant %f32 0.5
    %main = OpFunction %void None %fn
    %entry = OpLabel
    %id = OpLoad %v3u %gid
    %i = OpCompositeExtract %u32 %id 0
    %before = OpReadClockKHR %v2u %c1
    %low = OpCompositeExtract %u32 %before 0
    %p = OpAccessChain %ptr_word %out %c0 %i
    OpStore %p %low
    %rest = OpUMod %u32 %i %c3
    %third = OpIEqual %bool %rest %c0
    OpSelectionMerge %join None
    OpBranchConditional %third %then %join
    %then = OpLabel
    %f = OpConvertUToF %f32 %i
    %scaled = OpFMul %f32 %f %half
    %both = OpCompositeConstruct %v2f %scaled %half
    %none = OpExtInst %void %printf 1 %text %i %both %raw %name
    OpBranch %join
    %join = OpLabel
    OpReturn
    OpFunctionEnd"#;

/// A device with this printer, and a command buffer that runs three workgroups of the kernel on these words.
fn recorded(backend: Backend, printer: Printer) -> (Device, CommandBuffer, Words) {
    let device = Device::new(DeviceOptions { backend, printer: Some(printer), ..options() }).unwrap();
    let set_layout = device.create_descriptor_set_layout(&[Binding { binding: 0, ty: STORAGE, count: 1 }]).unwrap();
    let layout = device.create_pipeline_layout(&[&set_layout], &[]).unwrap();
    let module = device.create_shader_module(&assemble(KERNEL).unwrap()).unwrap();
    let pipeline = device.create_compute_pipeline(&module, "main", &Specialization::new(), &layout).unwrap();
    assert_eq!(pipeline.backend(), backend);
    let words = Words::zeros(&device, 60);
    let set = device.create_descriptor_pool(1, &[(STORAGE, 1)]).unwrap().allocate(&set_layout).unwrap();
    set.write(0, 0, STORAGE, &[words.whole()]).unwrap();
    // The kernel clock has started.
    std::thread::sleep(std::time::Duration::from_millis(1));
    let command = common::recorded(&device, Flags::empty(), |command| {
        command.bind_pipeline(&pipeline).unwrap();
        command.bind_descriptor_sets(&layout, 0, &[&set], &[]).unwrap();
        command.dispatch(3, 1, 1).unwrap();
    });
    (device, command, words)
}

/// Runs it twice. Returns at most `max` messages, by invocation, and the times.
fn printed(backend: Backend, max: u64) -> (Vec<Printed>, Vec<u32>) {
    let messages = Arc::new(Mutex::new(Vec::new()));
    let sink = Arc::clone(&messages);
    let printer = Printer::new(max, move |message| sink.lock().unwrap().push(message.clone()));
    let (device, command, words) = recorded(backend, printer);
    for _ in 0..2 {
        device.queue().submit(&[&command], None).unwrap();
        device.queue().wait_idle().unwrap();
    }
    let mut messages = std::mem::take(&mut *messages.lock().unwrap());
    messages.sort_by_key(|message| message.invocation);
    (messages, words.read())
}

#[test]
fn messages_come_with_the_ids_of_their_invocations() {
    for backend in Backend::available() {
        let (messages, times) = printed(backend, 1000);
        let all = (0..60u32).step_by(3).flat_map(|i| [i, i]);
        let expected: Vec<Printed> = all
            .map(|i| {
                let text = format!("word {i} half {:.6}, 0.500000 100%s x%sy of 100%", f64::from(i) / 2.0);
                Printed { invocation: [i, 0, 0], text }
            })
            .collect();
        assert_eq!(messages, expected, "{}", backend.name());
        assert!(times.iter().all(|&time| time > 0), "{times:?}");
    }
}

#[test]
fn a_printer_limits_messages_and_reports_once_that_there_are_more() {
    for backend in Backend::available() {
        let (messages, _) = printed(backend, 7);
        let (more, shown): (Vec<_>, Vec<_>) =
            messages.iter().partition(|message| message.text == "(only the first 7 messages are shown)");
        assert_eq!((more.len(), shown.len()), (1, 7), "{messages:?}");
        assert_eq!(printed(backend, 40).0.len(), 40, "there are no more");
    }
}

#[test]
fn a_printer_that_panics_loses_its_device_with_the_reason() {
    for backend in Backend::available() {
        let printer = Printer::new(1000, |message| panic!("no paper for `{}`", message.text));
        let (device, command, _) = recorded(backend, printer);
        let fence = device.create_fence(false);
        // If the device is lost before the call returns, the call reports it.
        let _ = device.queue().submit(&[&command], Some(&fence));
        let Err(Error::DeviceLost(why)) = fence.wait(None) else { panic!("{backend}: not lost") };
        assert!(why.starts_with("kernel `main` panicked: no paper for `word "), "{backend}: {why}");
        assert!(device.is_lost());
        // Other devices are unaffected.
        assert_eq!(printed(backend, 1000).0.len(), 40);
    }
}
