//! Races of one cause in reports of `spelter run --check`: one report with one repair for all of them, which is applied
//! to the text as it says.

#![allow(clippy::unwrap_used, reason = "the helpers of tests are tests too")]

use crate::check_limits::json;
use crate::check_repairs::run;
use crate::common::{Folder, has_glsl};

/// The last steps of a sum, written for a GPU whose subgroups run in lockstep.
const WARP: &str = "#version 450
layout(local_size_x = 64) in;
layout(binding = 0) buffer D { uint d[]; };
shared uint s[64];
void main() {
  uint l = gl_LocalInvocationIndex;
  s[l] = d[l];
  barrier();
  if (l < 32u) {
    s[l] += s[l + 32u];
    s[l] += s[l + 16u];
    s[l] += s[l + 8u];
    s[l] += s[l + 4u];
  }
  if (l < 4u) d[l] = s[l];
}
";

/// The same with the barriers of the repair.
fn repaired() -> String {
    let step = |distance: u32| {
        format!(
            "uint r{distance} = l < 32u ? s[l + {distance}u] : 0u;\n  barrier();\n  if (l < 32u) s[l] += r{distance};"
        )
    };
    let steps: Vec<String> = [32, 16, 8, 4].map(step).into();
    let start = WARP.find("  if (l < 32u) {").unwrap();
    let end = WARP.find("  if (l < 4u)").unwrap();
    format!("{}  {}\n{}", &WARP[..start], steps.join("\n  barrier();\n  "), &WARP[end..])
}

#[test]
fn races_of_unrolled_steps_without_barriers_are_one_report_with_one_repair() {
    if !has_glsl() {
        return;
    }
    let folder = Folder::new("check-warp");
    let options = "--bind 0.0=u32:range:64 --check";
    let ended = run(&folder, "warp.comp", WARP, options, 66);
    let found = json(&folder, &format!("run warp.comp {options}"), 66);
    let findings = found["findings"].as_array().unwrap();
    let count = findings.len();
    assert!(count >= 8, "{count}\n{}", ended.stderr);
    for finding in findings {
        assert_eq!(finding["group"]["count"], count, "{finding}");
        assert_eq!(finding["severity"], "error", "{finding}");
        assert!(finding["repair"][0]["text"].as_str().unwrap().starts_with("barrier() "), "{finding}");
    }
    assert_eq!(ended.stderr.matches("error[").count(), 1, "{}", ended.stderr);
    for part in [
        &format!("]: {count} data races in workgroup variable `s`, from line 10 to line 13\n"),
        "= because no barrier is between the code at warp.comp:10 and the code at warp.comp:13: it takes the invocations to run in",
        "= repair: barrier() before each of the lines 11, 12 and 13, and between what is read and what is written in each of the lines",
        "the branch at warp.comp:9 ends before it, and begins again after it; together they order all",
        &format!("= this is the first of {count}: --json has each of them"),
        &format!("note: checked: {count} errors"),
    ] {
        assert!(ended.stderr.contains(part), "{part}\n{}", ended.stderr);
    }
    run(&folder, "repaired.comp", &repaired(), options, 0);
}

/// Two loops write what a third one reads, in one order and in the other: one barrier is missing.
#[test]
fn races_that_one_barrier_repairs_are_one_report() {
    let text = "@group(0) @binding(0) var<storage, read_write> a: array<u32>;
@group(0) @binding(1) var<storage, read_write> o: array<u32>;
@compute @workgroup_size(64) fn main(@builtin(local_invocation_index) l: u32) {
  for (var k = 0u; k < 8u; k++) {
    a[k * 64u + l] = k;
  }
  for (var k = 8u; k < 16u; k++) {
    a[k * 64u + l] = k;
  }
  var x = 0u;
  for (var k = 0u; k < 16u; k++) {
    x += a[k * 64u + 63u - l];
  }
  o[l] = x;
}
";
    let folder = Folder::new("check-one-barrier");
    let options = "--bind 0.0=zeros:4096 --bind 0.1=zeros:256 --check";
    let ended = run(&folder, "loops.wgsl", text, options, 66);
    let one = [
        "error[SPELTER-RACE-RAW]: 4 data races in `a` (set 0, binding 0), from line 5 to line 12\n",
        "= repair: storageBarrier() after the write at loops.wgsl:8:5 and before the read at loops.wgsl:12:5: before \
         the branch or loop at loops.wgsl:11:3, where all invocations of the workgroup execute it; it orders all 4 races",
        "= this is the first of 4: --json has each of them",
    ];
    assert!(one.iter().all(|part| ended.stderr.contains(part)), "{}", ended.stderr);
    assert_eq!(ended.stderr.matches("= repair: ").count(), 1, "{}", ended.stderr);
    let found = json(&folder, &format!("run loops.wgsl {options}"), 66);
    let findings = found["findings"].as_array().unwrap();
    assert_eq!(findings.len(), 4, "{found}");
    for finding in findings {
        assert_eq!(finding["group"]["count"], 4, "{finding}");
        assert!(finding["repair"][0]["text"].as_str().unwrap().starts_with("storageBarrier() after"), "{finding}");
    }
    run(&folder, "loops.wgsl", &text.replace("var x = 0u;", "var x = 0u; storageBarrier();"), options, 0);
}

/// A race for each of two barriers that are missing is a report of its own.
#[test]
fn races_at_different_barriers_are_no_group() {
    let text = "@group(0) @binding(0) var<storage, read_write> d: array<u32>;
var<workgroup> s: array<u32, 64>;
var<workgroup> t: array<u32, 64>;
@compute @workgroup_size(64) fn main(@builtin(local_invocation_index) l: u32) {
  s[l] = d[l];
  t[l] = s[63u - l];
  d[l] = t[63u - l];
}
";
    let folder = Folder::new("check-no-group");
    let ended = run(&folder, "two.wgsl", text, "--bind 0.0=u32:range:64 --check", 66);
    assert_eq!(ended.stderr.matches("error[").count(), 4, "each hazard: {}", ended.stderr);
    assert!(!ended.stderr.contains("this is the first of"), "{}", ended.stderr);
    assert!(!ended.stderr.contains("do not suffice beside it"), "{}", ended.stderr);
}

/// An invocation writes to a buffer and to workgroup memory and sets a flag; another one sees the flag and reads both.
const FLAG: &str = "OpCapability Shader
OpMemoryModel Logical GLSL450
OpEntryPoint GLCompute %main \"main\" %local
OpExecutionMode %main LocalSize 64 1 1
OpDecorate %local BuiltIn LocalInvocationIndex
OpDecorate %Block Block
OpMemberDecorate %Block 0 Coherent
OpMemberDecorate %Block 1 Coherent
OpMemberDecorate %Block 2 Coherent
OpMemberDecorate %Block 0 Offset 0
OpMemberDecorate %Block 1 Offset 4
OpMemberDecorate %Block 2 Offset 8
OpDecorate %out DescriptorSet 0
OpDecorate %out Binding 0
%void = OpTypeVoid
%fn = OpTypeFunction %void
%u32 = OpTypeInt 32 0
%bool = OpTypeBool
%Block = OpTypeStruct %u32 %u32 %u32
%ptr_in = OpTypePointer Input %u32
%ptr_shared = OpTypePointer Workgroup %u32
%ptr_Block = OpTypePointer StorageBuffer %Block
%ptr_word = OpTypePointer StorageBuffer %u32
%local = OpVariable %ptr_in Input
%tile = OpVariable %ptr_shared Workgroup
%out = OpVariable %ptr_Block StorageBuffer
%c0 = OpConstant %u32 0
%c1 = OpConstant %u32 1
%c2 = OpConstant %u32 2
%c32 = OpConstant %u32 32
%main = OpFunction %void None %fn
%entry = OpLabel
%l = OpLoad %u32 %local
%flag = OpAccessChain %ptr_word %out %c0
%data = OpAccessChain %ptr_word %out %c1
%result = OpAccessChain %ptr_word %out %c2
%first = OpIEqual %bool %l %c0
OpSelectionMerge %met None
OpBranchConditional %first %write %met
%write = OpLabel
OpStore %data %c1
OpStore %tile %c2
OpAtomicStore %flag %c2 %RELEASE %c1
OpBranch %met
%met = OpLabel
%other = OpIEqual %bool %l %c32
OpSelectionMerge %end None
OpBranchConditional %other %look %end
%look = OpLabel
%seen = OpAtomicLoad %u32 %flag %c2 %ACQUIRE
%is_set = OpIEqual %bool %seen %c1
OpSelectionMerge %done None
OpBranchConditional %is_set %read %done
%read = OpLabel
%one = OpLoad %u32 %data
%two = OpLoad %u32 %tile
%sum = OpIAdd %u32 %one %two
OpStore %result %sum
OpBranch %done
%done = OpLabel
OpBranch %end
%end = OpLabel
OpReturn
OpFunctionEnd
";

/// The kernel with these semantics of the flag's write and of its read.
fn flag(release: u32, acquire: u32) -> String {
    let constants = format!("%release = OpConstant %u32 {release}\n%acquire = OpConstant %u32 {acquire}\n%main =");
    FLAG.replacen("%main =", &constants, 1).replace("%RELEASE", "%release").replace("%ACQUIRE", "%acquire")
}

/// The two races ask for other semantics of the same two instructions.
#[test]
fn a_repair_that_contradicts_that_of_another_race_says_so() {
    let folder = Folder::new("check-contradiction");
    let options = "--bind 0.0=zeros:12 --check";
    let ended = run(&folder, "flag.spvasm", &flag(0, 0), options, 66);
    assert_eq!(ended.stderr.matches("error[").count(), 2, "{}", ended.stderr);
    let said = "; the repairs of the other races of this dispatch do not suffice beside it, nor it beside them: make \
                theirs first, and check again";
    assert_eq!(ended.stderr.matches(said).count(), 1, "{}", ended.stderr);
    let found = json(&folder, &format!("run flag.spvasm {options}"), 66);
    let repair = |number: usize| found["findings"][number]["repair"][0]["text"].as_str().unwrap().to_owned();
    assert!(repair(0).starts_with("Release|UniformMemory on the atomic write") && !repair(0).contains(said));
    assert!(repair(1).starts_with("Release|WorkgroupMemory on the atomic write") && repair(1).ends_with(said));
    // As it says: the first one alone, and then both.
    run(&folder, "flag.spvasm", &flag(0x44, 0x42), options, 66);
    run(&folder, "flag.spvasm", &flag(0x144, 0x142), options, 0);
}

/// All races of a kernel with hundreds of them are in its group.
#[test]
fn a_group_has_hundreds_of_races() {
    let steps: String = (0..8).map(|k| format!("  s[(l * 5u + {k}u) & 63u] += s[(l + {}u) & 63u];\n", k + 1)).collect();
    let text = format!(
        "@group(0) @binding(0) var<storage, read_write> d: array<u32>;
var<workgroup> s: array<u32, 64>;
@compute @workgroup_size(64) fn main(@builtin(local_invocation_index) l: u32) {{
  s[l] = d[l];
  workgroupBarrier();
{steps}  d[l] = s[l];
}}
"
    );
    let folder = Folder::new("check-many-races");
    folder.write("many.wgsl", text.as_bytes());
    let found = json(&folder, "run many.wgsl --bind 0.0=u32:range:64 --check", 66);
    let findings = found["findings"].as_array().unwrap();
    assert!(findings.len() > 128, "{}", findings.len());
    for finding in findings {
        assert_eq!(finding["group"]["count"], findings.len(), "{finding}");
    }
}
