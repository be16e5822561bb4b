//! Creating and dropping tens of thousands of pipelines leaks nothing: no code, no mappings, no memory. Its own
//! process, so that only its own memory is counted.
#![allow(clippy::unwrap_used)]
#![cfg(target_os = "linux")]

mod common;

use common::device;
use spelter_driver::Specialization;
use spelter_shaders::back::x86::{CodeUsage, code_usage};
use spelter_shaders::front::spvasm::assemble;

/// A minimal kernel, distinguished from others by its number.
const KERNEL: &str = r#"
    OpCapability Shader
    OpMemoryModel Logical GLSL450
    OpEntryPoint GLCompute %main "main"
    OpExecutionMode %main LocalSize 1 1 1
    OpDecorate %number SpecId 0
    %void = OpTypeVoid
    %function = OpTypeFunction %void
    %uint = OpTypeInt 32 0
    %number = OpSpecConstant %uint 0
    %main = OpFunction %void None %function
    %label = OpLabel
    OpReturn
    OpFunctionEnd"#;

const PIPELINES: u32 = 25_000;
/// Number of pipelines that exist at the same time.
const AT_ONCE: u32 = 2000;

struct Usage {
    code: CodeUsage,
    mappings: usize,
    resident: usize,
}

impl Usage {
    fn now() -> Self {
        let mappings = std::fs::read_to_string("/proc/self/maps").unwrap().lines().count();
        let status = std::fs::read_to_string("/proc/self/status").unwrap();
        let resident = status.lines().find_map(|line| line.strip_prefix("VmRSS:")).unwrap();
        let resident: usize = resident.trim().trim_end_matches(" kB").parse().unwrap();
        Self { code: code_usage(), mappings, resident: resident << 10 }
    }
}

#[test]
fn pipelines_leak_nothing() {
    let device = device();
    let module = device.create_shader_module(&assemble(KERNEL).unwrap()).unwrap();
    let layout = device.create_pipeline_layout(&[], &[]).unwrap();
    let create = |number: u32| {
        let values = Specialization::from([(0, number.into())]);
        device.create_compute_pipeline(&module, "main", &values, &layout).unwrap()
    };
    // Pipelines share mappings: a process may have only some 65,000.
    let before = Usage::now();
    let alive: Vec<_> = (0..AT_ONCE).map(create).collect();
    let with = Usage::now();
    assert!(with.mappings < before.mappings + 100, "{} mappings, then {}", before.mappings, with.mappings);
    drop(alive);
    // Memory that is kept for reuse has been allocated by now.
    let before = Usage::now();
    (AT_ONCE..PIPELINES).for_each(|number| drop(create(number)));
    let after = Usage::now();
    let stats = device.pipeline_cache_stats();
    assert_eq!((stats.compiled, stats.shared, stats.alive), (PIPELINES.into(), 0, 0));
    assert_eq!(after.code, before.code);
    assert_eq!((after.code.kernels, after.code.used), (0, 0));
    assert!(after.mappings <= before.mappings + 4, "{} mappings, then {}", before.mappings, after.mappings);
    // A leak of 90 bytes per pipeline would exceed the limit; every part of a pipeline is larger.
    let grown = after.resident.saturating_sub(before.resident);
    assert!(grown < 2 << 20, "{} bytes resident, then {}", before.resident, after.resident);
}
