//! Repairs of flags, locks and scopes in reports of `spelter run --check`: each is applied to the text as it says, and
//! then there is no report.

use crate::check_repairs::{Case, decide, run};
use crate::common::{Folder, has_glsl};

/// A workgroup writes data and sets a flag, and others wait for it and read the data.
const PASSING: &str = "#version 450
layout(local_size_x = 1) in;
layout(binding = 0) buffer Flag { uint flag; };
layout(binding = 1) buffer Data { uint data[]; };
void main() {
  uint g = gl_WorkGroupID.x;
  if (g == 0u) {
    data[0] = 42u;
    flag = 1u;
  } else {
    while (flag == 0u) {}
    data[g] = data[0];
  }
}
";

const GROUPS: &str = "--bind 0.0=zeros:4 --bind 0.1=zeros:16 --groups 4 --check=spec";

const EXTENSION: (&str, &str) =
    ("#version 450\n", "#version 450\n#extension GL_KHR_memory_scope_semantics : require\n");

const COHERENT: (&str, &str) = ("buffer Data", "coherent buffer Data");

/// A text with these changes.
fn with(text: &str, changes: &[(&str, &str)]) -> String {
    changes.iter().fold(text.to_owned(), |text, (from, to)| text.replace(from, to))
}

#[test]
fn a_flag_and_what_it_guards_have_one_repair_of_several_changes() {
    if !has_glsl() {
        return;
    }
    let folder = Folder::new("flags-passing");
    let cases = [
        Case {
            name: "flag.comp",
            text: PASSING.to_owned(),
            options: GROUPS,
            parts: &["= repair: all of these: atomicStore(…, …, gl_ScopeDevice, gl_StorageSemanticsBuffer, \
                gl_SemanticsRelease) in place of the write at flag.comp:9, and atomicLoad(…, gl_ScopeDevice, \
                gl_StorageSemanticsBuffer, gl_SemanticsAcquire) in place of the read at flag.comp:11, and `coherent` \
                on `Data` (set 0, binding 1); gl_Scope… needs `#extension GL_KHR_memory_scope_semantics : require`\n"],
            applied: &[
                EXTENSION,
                (
                    "flag = 1u;",
                    "atomicStore(flag, 1u, gl_ScopeDevice, gl_StorageSemanticsBuffer, gl_SemanticsRelease);",
                ),
                (
                    "while (flag == 0u)",
                    "while (atomicLoad(flag, gl_ScopeDevice, gl_StorageSemanticsBuffer, gl_SemanticsAcquire) == 0u)",
                ),
                COHERENT,
            ],
        },
        Case {
            // The memory barriers are there: the flag needs no order of its own.
            name: "fences.comp",
            text: with(
                PASSING,
                &[
                    ("flag = 1u;", "memoryBarrierBuffer(); flag = 1u;"),
                    ("data[g] =", "memoryBarrierBuffer(); data[g] ="),
                    COHERENT,
                ],
            ),
            options: GROUPS,
            parts: &["= repair: all of these: atomicStore(…, …, gl_ScopeDevice, 0, 0) in place of the write at \
                fences.comp:9, and atomicLoad(…, gl_ScopeDevice, 0, 0) in place of the read at fences.comp:11; gl_Scope…"],
            applied: &[
                EXTENSION,
                ("flag = 1u;", "atomicStore(flag, 1u, gl_ScopeDevice, 0, 0);"),
                ("while (flag == 0u)", "while (atomicLoad(flag, gl_ScopeDevice, 0, 0) == 0u)"),
            ],
        },
    ];
    decide(&folder, &cases);
}

/// A workgroup writes data and sets a flag, a second one waits for it and sets another one, and a third one waits for
/// that and reads the data.
const PASSING_ON: &str = "#version 450
layout(local_size_x = 1) in;
layout(binding = 0) buffer Flags { uint flag1; uint flag2; };
layout(binding = 1) buffer Data { uint data[]; };
void main() {
  uint g = gl_WorkGroupID.x;
  if (g == 0u) {
    data[0] = 42u;
    flag1 = 1u;
  } else if (g == 1u) {
    while (flag1 == 0u) {}
    flag2 = 1u;
  } else {
    while (flag2 == 0u) {}
    data[g] = data[0];
  }
}
";

/// Its accesses to flags as atomics that order.
const SET: [(&str, &str); 4] = [
    ("flag1 = 1u;", "atomicStore(flag1, 1u, gl_ScopeDevice, gl_StorageSemanticsBuffer, gl_SemanticsRelease);"),
    (
        "while (flag1 == 0u)",
        "while (atomicLoad(flag1, gl_ScopeDevice, gl_StorageSemanticsBuffer, gl_SemanticsAcquire) == 0u)",
    ),
    ("flag2 = 1u;", "atomicStore(flag2, 1u, gl_ScopeDevice, gl_StorageSemanticsBuffer, gl_SemanticsRelease);"),
    (
        "while (flag2 == 0u)",
        "while (atomicLoad(flag2, gl_ScopeDevice, gl_StorageSemanticsBuffer, gl_SemanticsAcquire) == 0u)",
    ),
];

#[test]
fn flags_that_pass_data_on_have_one_repair_of_all_their_accesses() {
    const OPTIONS: &str = "--bind 0.0=zeros:8 --bind 0.1=zeros:16 --groups 3 --check=spec";
    if !has_glsl() {
        return;
    }
    let folder = Folder::new("flags-on");
    let cases = [
        Case {
            name: "on.comp",
            text: PASSING_ON.to_owned(),
            options: OPTIONS,
            parts: &["= repair: all of these: atomicStore(…, …, gl_ScopeDevice, gl_StorageSemanticsBuffer, \
                gl_SemanticsRelease) in place of the write at on.comp:9, and atomicLoad(…, gl_ScopeDevice, \
                gl_StorageSemanticsBuffer, gl_SemanticsAcquire) in place of the read at on.comp:11, and \
                atomicStore(…, …, gl_ScopeDevice, gl_StorageSemanticsBuffer, gl_SemanticsRelease) in place of the \
                write at on.comp:12, and atomicLoad(…, gl_ScopeDevice, gl_StorageSemanticsBuffer, \
                gl_SemanticsAcquire) in place of the read at on.comp:14, and `coherent` on `Data` (set 0, binding 1); \
                gl_Scope…"],
            applied: &[EXTENSION, SET[0], SET[1], SET[2], SET[3], COHERENT],
        },
        Case {
            // The first flag orders already.
            name: "half.comp",
            text: with(PASSING_ON, &[EXTENSION, SET[0], SET[1], COHERENT]),
            options: OPTIONS,
            parts: &["= repair: all of these: atomicStore(…, …, gl_ScopeDevice, gl_StorageSemanticsBuffer, \
                gl_SemanticsRelease) in place of the write at half.comp:13, and atomicLoad(…, gl_ScopeDevice, \
                gl_StorageSemanticsBuffer, gl_SemanticsAcquire) in place of the read at half.comp:15; gl_Scope…"],
            applied: &[SET[2], SET[3]],
        },
    ];
    decide(&folder, &cases);
    // The races of both flags and that of the data have it.
    let racy = run(&folder, "on.comp", PASSING_ON, OPTIONS, 66);
    let all = "write at on.comp:12, and atomicLoad(…, gl_ScopeDevice";
    assert_eq!(racy.stderr.matches(all).count(), 3, "{}", racy.stderr);
}

#[test]
fn each_race_of_message_passing_names_the_same_changes_and_never_atomics_for_the_data() {
    if !has_glsl() {
        return;
    }
    let folder = Folder::new("flags-both");
    let racy = run(&folder, "both.comp", PASSING, GROUPS, 66);
    assert_eq!(racy.stderr.matches("= repair: all of these: atomicStore(").count(), 2, "{}", racy.stderr);
    assert!(!racy.stderr.contains("repair: atomic"), "{}", racy.stderr);
}

#[test]
fn the_words_for_a_flag_are_those_of_the_language() {
    let folder = Folder::new("flags-languages");
    let text = "@group(0) @binding(0) var<storage, read_write> flag: u32;
@group(0) @binding(1) var<storage, read_write> data: array<u32>;
@compute @workgroup_size(1) fn main(@builtin(workgroup_id) g: vec3u) {
  if g.x == 0u {
    data[0] = 42u;
    flag = 1u;
  } else {
    while flag == 0u {}
    data[g.x] = data[0];
  }
}
";
    let racy = run(&folder, "flag.wgsl", text, GROUPS, 66);
    let repairs: Vec<_> = racy.stderr.lines().filter(|line| line.contains("= repair: ")).collect();
    assert!(
        !repairs.is_empty() && repairs.iter().all(|line| line.contains("= repair: two dispatches: ")),
        "{repairs:?}"
    );
}

/// [`PASSING`] as SPIR-V.
const PASSING_SPIRV: &str = r#"OpCapability Shader
OpMemoryModel Logical GLSL450
OpEntryPoint GLCompute %4 "main" %9
OpExecutionMode %4 LocalSize 1 1 1
OpDecorate %9 BuiltIn WorkgroupId
OpDecorate %18 ArrayStride 4
OpMemberDecorate %19 0 Offset 0
OpDecorate %19 BufferBlock
OpDecorate %21 DescriptorSet 0
OpDecorate %21 Binding 1
OpMemberDecorate %27 0 Offset 0
OpDecorate %27 BufferBlock
OpDecorate %29 DescriptorSet 0
OpDecorate %29 Binding 0
%2 = OpTypeVoid
%3 = OpTypeFunction %2
%6 = OpTypeInt 32 0
%7 = OpTypeVector %6 3
%8 = OpTypePointer Input %7
%9 = OpVariable %8 Input
%10 = OpConstant %6 0
%11 = OpTypePointer Input %6
%14 = OpTypeBool
%18 = OpTypeRuntimeArray %6
%19 = OpTypeStruct %18
%20 = OpTypePointer Uniform %19
%21 = OpVariable %20 Uniform
%22 = OpTypeInt 32 1
%23 = OpConstant %22 0
%24 = OpConstant %6 42
%25 = OpTypePointer Uniform %6
%27 = OpTypeStruct %6
%28 = OpTypePointer Uniform %27
%29 = OpVariable %28 Uniform
%30 = OpConstant %6 1
%4 = OpFunction %2 None %3
%5 = OpLabel
%12 = OpAccessChain %11 %9 %10
%13 = OpLoad %6 %12
%15 = OpIEqual %14 %13 %10
OpSelectionMerge %17 None
OpBranchConditional %15 %16 %32
%16 = OpLabel
%26 = OpAccessChain %25 %21 %23 %23
OpStore %26 %24
%31 = OpAccessChain %25 %29 %23
OpStore %31 %30
OpBranch %17
%32 = OpLabel
OpBranch %33
%33 = OpLabel
OpLoopMerge %35 %36 None
OpBranch %37
%37 = OpLabel
%38 = OpAccessChain %25 %29 %23
%39 = OpLoad %6 %38
%40 = OpIEqual %14 %39 %10
OpBranchConditional %40 %34 %35
%34 = OpLabel
OpBranch %36
%36 = OpLabel
OpBranch %33
%35 = OpLabel
%41 = OpAccessChain %11 %9 %10
%42 = OpLoad %6 %41
%43 = OpAccessChain %25 %21 %23 %23
%44 = OpLoad %6 %43
%45 = OpAccessChain %25 %21 %23 %42
OpStore %45 %44
OpBranch %17
%17 = OpLabel
OpReturn
OpFunctionEnd
"#;

#[test]
fn the_words_for_a_flag_of_spirv_are_instructions_and_operands() {
    let folder = Folder::new("flags-spirv");
    let cases = [Case {
        name: "flag.spvasm",
        text: PASSING_SPIRV.to_owned(),
        options: GROUPS,
        parts: &["= repair: all of these: OpAtomicStore (Device, Release | UniformMemory) in place of the write at \
            flag.spvasm:47, and OpAtomicLoad (Device, Acquire | UniformMemory) in place of the read at flag.spvasm:56, \
            and `OpDecorate … Coherent` on (set 0, binding 1)\n"],
        applied: &[
            ("OpStore %31 %30", "OpAtomicStore %31 %30 %50 %30"),
            ("%39 = OpLoad %6 %38", "%39 = OpAtomicLoad %6 %38 %30 %51"),
            ("%30 = OpConstant %6 1\n", "%30 = OpConstant %6 1\n%50 = OpConstant %6 68\n%51 = OpConstant %6 66\n"),
            ("OpDecorate %21 Binding 1\n", "OpDecorate %21 Binding 1\nOpDecorate %21 Coherent\n"),
        ],
    }];
    decide(&folder, &cases);
}

#[test]
fn data_that_a_lock_protects_is_never_made_atomic() {
    if !has_glsl() {
        return;
    }
    let folder = Folder::new("flags-lock");
    let text = "#version 450
layout(local_size_x = 1) in;
layout(binding = 0) buffer Lock { uint lock; };
layout(binding = 1) buffer Data { uint data[]; };
void main() {
  while (atomicCompSwap(lock, 0u, 1u) != 0u) {}
  uint x = data[0];
  data[1] = x + gl_WorkGroupID.x;
  data[0] = data[1] * 3u;
  atomicExchange(lock, 0u);
}
";
    let racy = run(&folder, "lock.comp", text, GROUPS, 66);
    assert!(racy.stderr.contains("gl_SemanticsRelease as further arguments of the atomic update"), "{}", racy.stderr);
    assert!(!racy.stderr.contains("atomic operations in place of"), "{}", racy.stderr);
}

#[test]
fn atomic_operations_are_offered_for_what_each_invocation_sets() {
    if !has_glsl() {
        return;
    }
    let folder = Folder::new("flags-set");
    let text = "#version 450
layout(local_size_x = 64) in;
layout(binding = 0) buffer Found { uint found; };
void main() {
  if (gl_LocalInvocationID.x > 40u) {
    found = 1u;
  }
}
";
    let cases = [Case {
        name: "set.comp",
        text: text.to_owned(),
        options: "--bind 0.0=zeros:4 --check",
        parts: &[
            "= repair: atomic operations in place of the write at set.comp:6; which of them comes first stays open\n",
        ],
        applied: &[("found = 1u;", "atomicExchange(found, 1u);")],
    }];
    decide(&folder, &cases);
}

const BOTH: &str = "= repair: gl_ScopeWorkgroup for the atomic write at scopes.comp:10, and gl_ScopeWorkgroup for the \
                    atomic read at scopes.comp:12; gl_Scope…";

#[test]
fn the_scopes_of_two_atomics_are_widened_together_and_no_farther_than_needed() {
    if !has_glsl() {
        return;
    }
    let folder = Folder::new("flags-scopes");
    let text = "#version 450
#extension GL_KHR_memory_scope_semantics : require
layout(local_size_x = 64) in;
layout(binding = 0) coherent buffer Data { uint data[]; };
layout(binding = 1) buffer Flag { uint flag; };
void main() {
  uint l = gl_LocalInvocationID.x;
  if (l == 0u) {
    data[0] = 3u;
    atomicStore(flag, 9u, gl_ScopeSubgroup, gl_StorageSemanticsBuffer, gl_SemanticsRelease);
  } else if (l == 40u) {
    while (atomicLoad(flag, gl_ScopeSubgroup, gl_StorageSemanticsBuffer, gl_SemanticsAcquire) != 9u) {}
    data[40] = data[0];
  }
}
";
    let cases = [Case {
        name: "scopes.comp",
        text: text.to_owned(),
        options: "--bind 0.0=zeros:256 --bind 0.1=zeros:4 --check",
        parts: &[BOTH],
        applied: &[("gl_ScopeSubgroup", "gl_ScopeWorkgroup")],
    }];
    decide(&folder, &cases);
    let racy = run(&folder, "scopes.comp", text, "--bind 0.0=zeros:256 --bind 0.1=zeros:4 --check", 66);
    assert_eq!(racy.stderr.matches(BOTH).count(), 2, "{}", racy.stderr);
}
