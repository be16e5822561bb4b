//! Deferred compilation of pipelines: by the device's compiler threads, or by the first dispatch.
#![allow(clippy::unwrap_used)]

use std::thread;
use std::time::{Duration, Instant};

use crate::common::{STORAGE, Words, barrier, options, recorded, run};
use spelter_driver::vk::CommandBufferUsageFlags;
use spelter_driver::{Binding, ComputePipeline, Device, DeviceOptions, PipelineLayout, ShaderModule, Specialization};

/// Adds `step` to the first word.
const ADD: &str = "
    @id(3) override step: u32 = 1u;
    @group(0) @binding(0) var<storage, read_write> words: array<u32>;
    @compute @workgroup_size(1) fn main() { words[0] += step; }";

struct Bench {
    device: Device,
    set: spelter_driver::DescriptorSetLayout,
    layout: PipelineLayout,
    module: ShaderModule,
}

impl Bench {
    fn new(compilers: usize) -> Self {
        let device = Device::new(DeviceOptions { compilers, ..options() }).unwrap();
        let set = device.create_descriptor_set_layout(&[Binding { binding: 0, ty: STORAGE, count: 1 }]).unwrap();
        let layout = device.create_pipeline_layout(&[&set], &[]).unwrap();
        let module = device.create_shader_module_wgsl(ADD).unwrap();
        Self { device, set, layout, module }
    }

    fn pipeline(&self, step: u32) -> ComputePipeline {
        let values = Specialization::from([(3, step.into())]);
        self.device.create_compute_pipeline(&self.module, "main", &values, &self.layout).unwrap()
    }

    /// The first word after one dispatch with each of the pipelines.
    fn sum(&self, pipelines: &[ComputePipeline]) -> u32 {
        let words = Words::zeros(&self.device, 1);
        let pool = self.device.create_descriptor_pool(1, &[(STORAGE, 1)]).unwrap();
        let set = pool.allocate(&self.set).unwrap();
        set.write(0, 0, STORAGE, &[words.whole()]).unwrap();
        run(&self.device, |command| {
            command.bind_descriptor_sets(&self.layout, 0, &[&set], &[]).unwrap();
            for pipeline in pipelines {
                command.bind_pipeline(pipeline).unwrap();
                command.dispatch(1, 1, 1).unwrap();
                barrier(command);
            }
        });
        words.read()[0]
    }
}

#[test]
fn a_dispatch_waits_for_code_that_is_not_compiled_yet() {
    let bench = Bench::new(2);
    for round in 0..20 {
        let pipelines: Vec<_> = (1..=30).map(|step| bench.pipeline(round * 100 + step)).collect();
        assert_eq!(bench.sum(&pipelines), 30 * round * 100 + 30 * 31 / 2);
        // A later recording holds the compiled code instead of the stand-in.
        assert!(pipelines.iter().all(|pipeline| pipeline.backend() == bench.device.properties().backend));
        assert_eq!(bench.sum(&pipelines), 30 * round * 100 + 30 * 31 / 2);
    }
}

#[test]
fn threads_share_a_pipeline_while_it_is_compiled() {
    let bench = Bench::new(1);
    for step in 1..50 {
        thread::scope(|scope| {
            for _ in 0..4 {
                scope.spawn(|| assert_eq!(bench.sum(&[bench.pipeline(step)]), step));
            }
        });
    }
}

#[test]
fn creators_compile_pipelines_that_do_not_fit_the_queue() {
    let bench = Bench::new(1);
    let pipelines: Vec<_> = (0..2000).map(|step| bench.pipeline(step)).collect();
    assert_eq!(bench.sum(&pipelines), 1999 * 2000 / 2);
}

#[test]
fn kernels_of_dropped_pipelines_are_not_compiled() {
    let bench = Bench::new(2);
    for step in 0..500 {
        drop(bench.pipeline(step));
    }
    assert_eq!(bench.device.pipeline_cache_stats().alive, 0);
    assert_eq!(bench.sum(&[bench.pipeline(7)]), 7);
    // The device is dropped while jobs are queued.
    let _pipelines: Vec<_> = (0..100).map(|step| bench.pipeline(step)).collect();
    drop(bench);
}

/// A kernel with `functions` functions of 500 steps, none of which can be optimized away, that writes odd words.
fn slow_to_compile(functions: u32) -> String {
    let steps = |first: u32| -> String {
        (first..first + 500).map(|step| format!("x = (x * {}u) ^ (x >> {}u);\n", step * 2 + 3, step % 31)).collect()
    };
    let (texts, calls): (String, String) = (0..functions)
        .map(|at| {
            let text = format!("fn f{at}(y: u32) -> u32 {{ var x = y;\n{}return x; }}\n", steps(at * 500));
            (text, format!("x = f{at}(x);\n"))
        })
        .unzip();
    format!(
        "@group(0) @binding(0) var<storage, read_write> words: array<u32>;
         {texts}
         @compute @workgroup_size(64) fn main(@builtin(local_invocation_index) i: u32) {{
             var x = words[0] + i;
             {calls}
             words[i] = x | 1u;
         }}"
    )
}

#[test]
fn the_time_limit_does_not_count_compiling() {
    // Compiling takes longer than the limit on any machine; the kernel itself is fast.
    let alone = Bench::new(0);
    let (source, limit) = (0..)
        .map(|doubled| {
            let source = slow_to_compile(4 << doubled);
            let module = alone.device.create_shader_module_wgsl(&source).unwrap();
            let started = Instant::now();
            alone.device.create_compute_pipeline(&module, "main", &Specialization::new(), &alone.layout).unwrap();
            (source, started.elapsed() / 4)
        })
        .find(|&(_, limit)| limit > Duration::from_millis(40))
        .unwrap();
    let device = Device::new(DeviceOptions { compilers: 1, time_limit: limit, ..options() }).unwrap();
    let set = device.create_descriptor_set_layout(&[Binding { binding: 0, ty: STORAGE, count: 1 }]).unwrap();
    let layout = device.create_pipeline_layout(&[&set], &[]).unwrap();
    let module = device.create_shader_module_wgsl(&source).unwrap();
    let words = Words::zeros(&device, 64);
    let set = device.create_descriptor_pool(1, &[(STORAGE, 1)]).unwrap().allocate(&set).unwrap();
    set.write(0, 0, STORAGE, &[words.whole()]).unwrap();
    let pipeline = device.create_compute_pipeline(&module, "main", &Specialization::new(), &layout).unwrap();
    let commands = recorded(&device, CommandBufferUsageFlags::empty(), |command| {
        command.bind_pipeline(&pipeline).unwrap();
        command.bind_descriptor_sets(&layout, 0, &[&set], &[]).unwrap();
        command.dispatch(1, 1, 1).unwrap();
    });
    device.queue().submit(&[&commands], None).unwrap();
    device.queue().wait_idle().unwrap();
    assert!(words.read().iter().all(|word| word % 2 == 1));
}

/// Nested loops with `words[1]` iterations each: `words[0]` counts the iterations of the innermost.
fn nest(depth: usize) -> String {
    let mut text = "
        OpCapability Shader
        OpMemoryModel Logical GLSL450
        OpEntryPoint GLCompute %main \"main\"
        OpExecutionMode %main LocalSize 1 1 1
        OpDecorate %array ArrayStride 4
        OpDecorate %block Block
        OpMemberDecorate %block 0 Offset 0
        OpDecorate %words DescriptorSet 0
        OpDecorate %words Binding 0
        %void = OpTypeVoid
        %bool = OpTypeBool
        %u32 = OpTypeInt 32 0
        %array = OpTypeRuntimeArray %u32
        %block = OpTypeStruct %array
        %to_block = OpTypePointer StorageBuffer %block
        %to_word = OpTypePointer StorageBuffer %u32
        %words = OpVariable %to_block StorageBuffer
        %unit = OpTypeFunction %void
        %c0 = OpConstant %u32 0
        %c1 = OpConstant %u32 1
        %main = OpFunction %void None %unit
        %entry = OpLabel
        %p = OpAccessChain %to_word %words %c0 %c1
        %count = OpLoad %u32 %p
        %q = OpAccessChain %to_word %words %c0 %c0
        OpBranch %h0
        "
    .to_owned();
    for at in 0..depth {
        let before = if at == 0 { "entry".to_owned() } else { format!("b{}", at - 1) };
        text += &format!(
            "%h{at} = OpLabel
            %i{at} = OpPhi %u32 %c0 %{before} %n{at} %t{at}
            OpLoopMerge %m{at} %t{at} None
            OpBranch %k{at}
            %k{at} = OpLabel
            %l{at} = OpULessThan %bool %i{at} %count
            OpBranchConditional %l{at} %b{at} %m{at}
            %b{at} = OpLabel
            "
        );
        if at + 1 < depth {
            text += &format!("OpBranch %h{}\n", at + 1);
        }
    }
    text += &format!("%old = OpLoad %u32 %q\n%new = OpIAdd %u32 %old %c1\nOpStore %q %new\nOpBranch %t{}\n", depth - 1);
    for at in (0..depth).rev() {
        let then = if at == 0 { "OpReturn".to_owned() } else { format!("OpBranch %t{}", at - 1) };
        text +=
            &format!("%t{at} = OpLabel\n%n{at} = OpIAdd %u32 %i{at} %c1\nOpBranch %h{at}\n%m{at} = OpLabel\n{then}\n");
    }
    text + "OpFunctionEnd\n"
}

/// Compile time is bounded, so a queue that waits for it becomes idle.
#[test]
fn a_queue_that_runs_a_kernel_of_many_nested_loops_becomes_idle() {
    let bench = Bench::new(1);
    let words = spelter_shaders::front::spvasm::assemble(&nest(200)).unwrap();
    let module = bench.device.create_shader_module(&words).unwrap();
    let pipeline =
        bench.device.create_compute_pipeline(&module, "main", &Specialization::new(), &bench.layout).unwrap();
    let words = Words::new(&bench.device, &[0, 1]);
    let set = bench.device.create_descriptor_pool(1, &[(STORAGE, 1)]).unwrap().allocate(&bench.set).unwrap();
    set.write(0, 0, STORAGE, &[words.whole()]).unwrap();
    let commands = recorded(&bench.device, CommandBufferUsageFlags::empty(), |command| {
        command.bind_pipeline(&pipeline).unwrap();
        command.bind_descriptor_sets(&bench.layout, 0, &[&set], &[]).unwrap();
        command.dispatch(1, 1, 1).unwrap();
    });
    bench.device.queue().submit(&[&commands], None).unwrap();
    bench.device.queue().wait_idle().unwrap();
    assert_eq!(words.read(), [1, 1]);
}
