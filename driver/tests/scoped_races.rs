//! The 32 micro-benchmarks of ScoR (Kamath et al., "ScoRD: A Scoped Race Detector for GPUs", ISCA 2020), re-created:
//! fences, atomics and locks whose scope is wide enough, too narrow, or that are missing. The names are theirs: `blk`
//! is workgroup scope, `dev` and no word device scope; `no-stf` lacks the fence after a lock is taken, `no-tf` that
//! before it is given back.
//!
//! One thing is added. CUDA's volatile reads need no acquire, Vulkan's do: a fence follows each wait for a flag.
#![allow(clippy::unwrap_used)]

use std::collections::BTreeSet;
use std::fmt::Write as _;

use crate::common::{Kernel, STORAGE, Words, run};
use spelter_driver::check::{CheckOptions, Rule};
use spelter_driver::{Device, DeviceOptions, Schedule};
use spelter_shaders::front::spvasm::assemble;

/// Scopes, as SPIR-V numbers them.
const DEVICE: u32 = 1;
const WORKGROUP: u32 = 2;

/// Subgroups have 16 invocations here, so this one is in another one than invocation 0.
const OTHER_SUBGROUP: u32 = 32;

/// What an invocation does to the one word of data.
#[derive(Clone, Copy)]
enum Step {
    Read,
    Write,
    /// An atomic of this scope.
    Exchange(u32),
    /// Release and acquire, with availability and visibility.
    Fence(u32),
    /// Sets the flag to a number, by an atomic of device scope.
    Signal(u32),
    /// Waits until the flag has this number.
    Wait(u32),
    Lock(u32),
    Unlock(u32),
}
use Step::{Exchange, Fence, Lock, Read, Signal, Unlock, Wait, Write};

/// An invocation: its workgroup, its index in it, and what it does.
type Agent<'a> = ((u32, u32), &'a [Step]);

/// A critical section with fences of the scope of its lock.
const fn section(scope: u32) -> [Step; 5] {
    [Lock(scope), Fence(scope), Write, Fence(scope), Unlock(scope)]
}

/// The same without the fence after the lock is taken.
const fn no_stf(scope: u32) -> [Step; 4] {
    [Lock(scope), Write, Fence(scope), Unlock(scope)]
}

/// The same without the fence before the lock is given back.
const fn no_tf(scope: u32) -> [Step; 4] {
    [Lock(scope), Fence(scope), Write, Unlock(scope)]
}

/// The kernel's words: data, flag and lock are the first three.
fn module(agents: &[Agent<'_>]) -> Vec<u32> {
    let size = if agents.iter().any(|&((_, local), _)| local > 0) { OTHER_SUBGROUP + 1 } else { 1 };
    let mut text = format!(
        "; Version: 1.5
OpCapability Shader
OpCapability VulkanMemoryModel
OpCapability VulkanMemoryModelDeviceScope
OpMemoryModel Logical Vulkan
OpEntryPoint GLCompute %main \"main\" %workgroup %local
OpExecutionMode %main LocalSize {size} 1 1
OpDecorate %workgroup BuiltIn WorkgroupId
OpDecorate %local BuiltIn LocalInvocationIndex
OpMemberDecorate %Words 0 Offset 0
OpMemberDecorate %Words 1 Offset 4
OpMemberDecorate %Words 2 Offset 8
OpDecorate %Words Block
OpDecorate %words DescriptorSet 0
OpDecorate %words Binding 0
%void = OpTypeVoid
%function = OpTypeFunction %void
%bool = OpTypeBool
%uint = OpTypeInt 32 0
%v3uint = OpTypeVector %uint 3
%in_uint = OpTypePointer Input %uint
%in_v3uint = OpTypePointer Input %v3uint
%workgroup = OpVariable %in_v3uint Input
%local = OpVariable %in_uint Input
%Words = OpTypeStruct %uint %uint %uint
%to_Words = OpTypePointer StorageBuffer %Words
%to_uint = OpTypePointer StorageBuffer %uint
%words = OpVariable %to_Words StorageBuffer
"
    );
    for number in [0, 1, 2, 3, 32, 72, 24648] {
        writeln!(text, "%n{number} = OpConstant %uint {number}").unwrap();
    }
    text += "%main = OpFunction %void None %function
%entry = OpLabel
%data = OpAccessChain %to_uint %words %n0
%flag = OpAccessChain %to_uint %words %n1
%lock = OpAccessChain %to_uint %words %n2
%workgroups = OpLoad %v3uint %workgroup
%x = OpCompositeExtract %uint %workgroups 0
%i = OpLoad %uint %local
";
    let mut next = 0;
    for (number, ((workgroup, local), steps)) in agents.iter().enumerate() {
        write!(
            text,
            "%g{number} = OpIEqual %bool %x %n{workgroup}
%l{number} = OpIEqual %bool %i %n{local}
%is{number} = OpLogicalAnd %bool %g{number} %l{number}
OpSelectionMerge %after{number} None
OpBranchConditional %is{number} %agent{number} %after{number}
%agent{number} = OpLabel
"
        )
        .unwrap();
        for step in *steps {
            next += 1;
            line(&mut text, step, next);
        }
        write!(text, "OpBranch %after{number}\n%after{number} = OpLabel\n").unwrap();
    }
    text += "OpReturn\nOpFunctionEnd\n";
    assemble(&text).unwrap()
}

/// A step's instructions; `id` makes their results differ from those of other steps.
fn line(text: &mut String, step: &Step, id: u32) {
    let mut spin = |instruction: &str, wanted: &str, fence: &str| {
        write!(
            text,
            "OpBranch %head{id}
%head{id} = OpLabel
OpLoopMerge %out{id} %back{id} None
OpBranch %body{id}
%body{id} = OpLabel
%v{id} = {instruction}
%done{id} = OpIEqual %bool %v{id} {wanted}
OpBranchConditional %done{id} %out{id} %back{id}
%back{id} = OpLabel
OpBranch %head{id}
%out{id} = OpLabel
{fence}"
        )
    };
    match *step {
        Read => writeln!(text, "%v{id} = OpLoad %uint %data NonPrivatePointer"),
        Write => writeln!(text, "OpStore %data %n1 NonPrivatePointer"),
        Exchange(scope) => writeln!(text, "%v{id} = OpAtomicExchange %uint %data %n{scope} %n0 %n1"),
        // Release, acquire, storage buffers, MakeAvailable and MakeVisible.
        Fence(scope) => writeln!(text, "OpMemoryBarrier %n{scope} %n24648"),
        Signal(number) => writeln!(text, "OpAtomicStore %flag %n1 %n0 %n{number}"),
        Wait(number) => {
            let fence = "OpMemoryBarrier %n1 %n24648\n";
            spin("OpAtomicLoad %uint %flag %n1 %n0", &format!("%n{number}"), fence)
        }
        Lock(scope) => spin(&format!("OpAtomicCompareExchange %uint %lock %n{scope} %n0 %n0 %n1 %n0"), "%n0", ""),
        Unlock(scope) => writeln!(text, "OpAtomicStore %lock %n{scope} %n0 %n0"),
    }
    .unwrap();
}

/// The rules that executions in these orders break.
fn rules(agents: &[Agent<'_>], orders: impl Iterator<Item = Schedule>) -> BTreeSet<Rule> {
    let words = module(agents);
    let mut rules = BTreeSet::new();
    for schedule in orders {
        let options = DeviceOptions { check: Some(CheckOptions::default()), schedule, ..crate::common::options() };
        let device = Device::new(options).unwrap();
        let module = device.create_shader_module(&words).unwrap();
        let kernel = Kernel::of_module(&device, &module, "main", &[(STORAGE, 1)], 0);
        let data = Words::zeros(&device, 4);
        let set = kernel.set(&device, STORAGE, &[&data]);
        let workgroups = agents.iter().map(|((workgroup, _), _)| workgroup + 1).max().unwrap_or(1);
        run(&device, |command| {
            command.bind_pipeline(&kernel.pipeline).unwrap();
            command.bind_descriptor_sets(&kernel.layout, 0, &[&set], &[]).unwrap();
            command.dispatch(workgroups, 1, 1).unwrap();
        });
        rules.extend(device.take_findings().iter().map(|finding| finding.rule));
    }
    rules
}

/// Fails unless races are reported as `racy` says. An invocation that waits for a flag runs after the one that sets it;
/// of others each may run first.
fn judge(racy: bool, cases: &[(&str, &[Agent<'_>])]) {
    for (name, agents) in cases {
        let waits = agents.iter().any(|(_, steps)| steps.iter().any(|step| matches!(step, Wait(_))));
        let seeds = (0..if waits { 0 } else { 16 }).map(Schedule::Random);
        let found = rules(agents, std::iter::once(Schedule::Ascending).chain(seeds));
        assert_eq!(found.iter().any(|rule| matches!(rule, Rule::Race(_))), racy, "{name}: {found:?}");
        assert!(found.iter().all(|rule| matches!(rule, Rule::Race(_))), "{name}: {found:?}");
    }
}

const A: (u32, u32) = (0, 0);
/// In another workgroup.
const B: (u32, u32) = (1, 0);
/// In another subgroup.
const C: (u32, u32) = (0, OTHER_SUBGROUP);
/// In the other workgroup's other subgroup.
const D: (u32, u32) = (1, OTHER_SUBGROUP);

#[test]
fn fences_atomics_and_locks_of_sufficient_scope_are_silent() {
    let reads = &[Wait(1), Read][..];
    judge(
        false,
        &[
            ("interblock_atom", &[(A, &[Exchange(DEVICE)]), (B, &[Exchange(DEVICE)])]),
            ("interblock_fence_raw", &[(A, &[Write, Fence(DEVICE), Signal(1)]), (B, reads)]),
            ("interblock_lock_waw", &[(A, &section(DEVICE)), (B, &section(DEVICE))]),
            (
                "interwarp-block_fence-atom_hrd-indirect",
                &[
                    (A, &[Exchange(WORKGROUP), Fence(WORKGROUP), Signal(1)]),
                    (C, &[Wait(1), Exchange(DEVICE), Fence(DEVICE), Signal(2)]),
                    (B, &[Wait(2), Exchange(WORKGROUP), Fence(WORKGROUP), Signal(3)]),
                    (D, &[Wait(3), Exchange(DEVICE)]),
                ],
            ),
            (
                "interwarp-block_fence_hrf-indirect",
                &[
                    (A, &[Write, Fence(WORKGROUP), Signal(1)]),
                    (C, &[Wait(1), Read, Write, Fence(DEVICE), Signal(2)]),
                    (B, &[Wait(2), Read, Write, Fence(WORKGROUP), Signal(3)]),
                    (D, &[Wait(3), Read]),
                ],
            ),
            ("interwarp_blkatom", &[(A, &[Exchange(WORKGROUP)]), (C, &[Exchange(WORKGROUP)])]),
            ("interwarp_blkfence_raw", &[(A, &[Write, Fence(WORKGROUP), Signal(1)]), (C, reads)]),
            ("interwarp_blklock_waw", &[(A, &section(WORKGROUP)), (C, &section(WORKGROUP))]),
            ("interwarp_dev-blkatom", &[(A, &[Exchange(DEVICE)]), (C, &[Exchange(WORKGROUP)])]),
            ("interwarp_dev-blklock_waw", &[(A, &section(DEVICE)), (C, &section(WORKGROUP))]),
            ("interwarp_fence_raw", &[(A, &[Write, Fence(DEVICE), Signal(1)]), (C, reads)]),
            ("intrawarp_none-blkatom", &[(A, &[Exchange(WORKGROUP), Write])]),
            (
                "intrawarp_none-blklock-no-tf_waw",
                &[(A, &[Lock(WORKGROUP), Fence(WORKGROUP), Write, Unlock(WORKGROUP), Write])],
            ),
            ("intrawarp_none-blklock_waw", &[(A, &[&section(WORKGROUP)[..], &[Write]].concat())]),
        ],
    );
}

#[test]
fn missing_fences_and_scopes_that_are_too_narrow_are_races() {
    let [device, workgroup] = [section(DEVICE), section(WORKGROUP)];
    let narrow = [Lock(DEVICE), Fence(WORKGROUP), Write, Fence(DEVICE), Unlock(DEVICE)];
    let reads = [Lock(DEVICE), Fence(DEVICE), Read, Fence(DEVICE), Unlock(DEVICE)];
    judge(
        true,
        &[
            ("interblock_blkatom", &[(A, &[Exchange(WORKGROUP)]), (B, &[Exchange(WORKGROUP)])]),
            ("interblock_blkfence_raw", &[(A, &[Write, Fence(WORKGROUP), Signal(1)]), (B, &[Wait(1), Read])]),
            ("interblock_blklock_waw", &[(A, &workgroup), (B, &workgroup)]),
            ("interblock_fence_rtraw", &[(A, &[Read, Fence(DEVICE), Signal(1), Read]), (B, &[Wait(1), Write])]),
            ("interblock_lock-blkfence_waw", &[(A, &narrow), (B, &device)]),
            ("interblock_lock-no-stf_waw", &[(A, &no_stf(DEVICE)), (B, &device)]),
            ("interblock_lock-no-tf_waw", &[(A, &no_tf(DEVICE)), (B, &no_tf(DEVICE))]),
            ("interblock_none-atom_waw", &[(A, &[Exchange(DEVICE)]), (B, &[Write])]),
            ("interblock_none-lock_rtraw", &[(A, &[&reads[..], &[Write]].concat()), (B, &reads)]),
            ("interblock_none-lock_waw", &[(A, &device), (B, &[Write])]),
            ("interwarp_blklock-no-stf_waw", &[(A, &no_stf(WORKGROUP)), (C, &workgroup)]),
            ("interwarp_blklock-no-tf_waw", &[(A, &no_tf(WORKGROUP)), (C, &no_tf(WORKGROUP))]),
            ("interwarp_dev-blklock-no-stf_waw", &[(A, &no_stf(DEVICE)), (C, &workgroup)]),
            ("interwarp_dev-blklock-no-tf_waw", &[(A, &no_tf(DEVICE)), (C, &no_tf(WORKGROUP))]),
            ("interwarp_none-atom_waw", &[(A, &[Exchange(DEVICE)]), (C, &[Write])]),
            ("interwarp_none-blkatom_waw", &[(A, &[Exchange(WORKGROUP)]), (C, &[Write])]),
            ("interwarp_none-blklock_waw", &[(A, &workgroup), (C, &[Write])]),
            ("interwarp_none-lock_waw", &[(A, &device), (C, &[Write])]),
        ],
    );
}
