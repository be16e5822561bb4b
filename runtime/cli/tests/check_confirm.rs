//! Which races `spelter run --check` confirms and lists: each pair of lines once, however many there are, however often
//! they race, and whether or not the kernel ends.

#![allow(clippy::unwrap_used, reason = "the helpers of tests are tests too")]

use crate::check_sites::many_sites;
use crate::common::{Folder, has_glsl};
use serde_json::Value as Json;

/// The object of a run that ends with this status.
fn json(folder: &Folder, line: &str, status: i32) -> Json {
    let ended = folder.spelter(&format!("{line} --json"));
    assert_eq!(ended.status, status, "{line}\n{}{}", ended.stdout, ended.stderr);
    serde_json::from_str(&ended.stdout).unwrap()
}

/// The rule, the lines and the count of each finding, in order; all are errors.
fn pairs(found: &Json) -> Vec<(String, u64, u64, u64)> {
    let findings = found["findings"].as_array().unwrap();
    assert!(findings.iter().all(|finding| finding["severity"] == "error"), "{found}");
    let line = |access: &Json| access["line"].as_u64().unwrap();
    let of = |finding: &Json| {
        let rule = finding["id"].as_str().unwrap().trim_start_matches("SPELTER-RACE-").to_owned();
        (rule, line(&finding["first"]), line(&finding["second"]), finding["count"].as_u64().unwrap())
    };
    let mut pairs: Vec<_> = findings.iter().map(of).collect();
    pairs.sort();
    pairs
}

#[test]
fn each_of_very_many_races_of_a_kernel_is_confirmed() {
    // The record of the second one does not fit as a whole.
    for (sites, memory) in [(300, "1G"), (3000, "340K")] {
        let folder = Folder::with(&format!("check-many-{sites}"), "sites.spvasm", &many_sites(sites));
        let line = format!("run sites.spvasm --bind 0.0=zeros:80000 --check --check-memory {memory}");
        let found = json(&folder, &line, 66);
        let checked = &found["checked"];
        assert_eq!((&checked["confirmed"], &checked["undecided"]), (&sites.into(), &0.into()), "{checked}");
        let findings = found["findings"].as_array().unwrap();
        assert_eq!(findings.iter().filter(|finding| finding["severity"] == "error").count(), sites, "{checked}");
    }
}

/// One invocation writes, the other one reads in three lines, of which the last one is executed five times.
const SEVERAL_READS: &str = "
@group(0) @binding(0) var<storage, read_write> x: array<u32>;
@compute @workgroup_size(2) fn main(@builtin(local_invocation_index) l: u32) {
    if l == 0u {
        x[0] = 1u;
    } else {
        x[1] = x[0];
        x[2] = x[0] + 1u;
        for (var i = 0u; i < 5u; i++) {
            x[3u + i] = x[0] + i;
        }
    }
}";

#[test]
fn a_race_of_a_later_line_is_not_hidden_by_that_of_an_earlier_one() {
    let folder = Folder::with("check-reads", "reads.wgsl", SEVERAL_READS);
    let raw = |first, second, count| ("RAW".to_owned(), first, second, count);
    let found = json(&folder, "run reads.wgsl --bind 0.0=zeros:64 --check", 66);
    assert_eq!(pairs(&found), [raw(5, 7, 1), raw(5, 8, 1), raw(5, 10, 5)]);
    let found = json(&folder, "run reads.wgsl --bind 0.0=zeros:64 --check --suppress line:reads.wgsl:7", 66);
    assert_eq!(pairs(&found), [raw(5, 8, 1), raw(5, 10, 5)]);
}

/// Two lines of one invocation write what two lines of the other one read.
const SEVERAL_WRITES: &str = "
@group(0) @binding(0) var<storage, read_write> x: array<u32>;
@compute @workgroup_size(2) fn main(@builtin(local_invocation_index) l: u32) {
    if l == 0u {
        x[0] = 1u;
        x[0] += x[1];
    } else {
        x[2] = x[0];
        x[3] = x[0] * x[0];
    }
}";

#[test]
fn a_race_of_an_earlier_line_is_not_hidden_by_that_of_a_later_one() {
    let folder = Folder::with("check-writes", "writes.wgsl", SEVERAL_WRITES);
    let found = json(&folder, "run writes.wgsl --bind 0.0=zeros:64 --check", 66);
    let lines: Vec<_> = pairs(&found).into_iter().map(|(rule, first, second, _)| (rule, first, second)).collect();
    let raw = |first, second| ("RAW".to_owned(), first, second);
    assert_eq!(lines, [raw(5, 8), raw(5, 9), raw(6, 8), raw(6, 9)]);
}

/// All invocations exchange words in a loop, without barriers.
const LOOP: &str = "
@group(0) @binding(0) var<storage, read_write> x: array<u32>;
@compute @workgroup_size(32) fn main(@builtin(local_invocation_index) l: u32) {
    for (var i = 0u; i < 100u; i++) {
        x[(l + i) % 32u] = i;
        x[32u + l] += x[(l + 2u * i) % 32u];
    }
}";

#[test]
fn races_in_a_loop_are_one_finding_for_each_pair_of_lines() {
    let folder = Folder::with("check-loop", "loop.wgsl", LOOP);
    let found = json(&folder, "run loop.wgsl --bind 0.0=zeros:256 --check", 66);
    let lines: Vec<_> = pairs(&found).into_iter().map(|(rule, first, second, _)| (rule, first, second)).collect();
    let of = |rule: &str, first, second| (rule.to_owned(), first, second);
    assert_eq!(lines, [of("RAW", 5, 6), of("WAR", 6, 5), of("WAW", 5, 5)]);
}

/// One invocation writes two parts of a buffer in two lines, and the other one reads both in one.
const TWO_PARTS: &str = "
@group(0) @binding(0) var<storage, read_write> x: array<u32>;
@compute @workgroup_size(2) fn main(@builtin(local_invocation_index) l: u32) {
    var sum = 0u;
    for (var i = 0u; i < 200u; i++) {
        if l == 0u {
            x[i] = i;
            x[200u + i] = i;
        }
    }
    if l == 1u {
        for (var i = 0u; i < 400u; i++) {
            sum += x[i];
        }
        x[400] = sum;
    }
}";

#[test]
fn a_line_that_writes_other_words_is_found_beside_the_first() {
    let folder = Folder::with("check-parts", "parts.wgsl", TWO_PARTS);
    let found = json(&folder, "run parts.wgsl --bind 0.0=zeros:1604 --check", 66);
    let lines: Vec<_> = pairs(&found).into_iter().map(|(rule, first, second, _)| (rule, first, second)).collect();
    assert_eq!(lines, [("RAW".to_owned(), 7, 13), ("RAW".to_owned(), 8, 13)]);
}

/// Rounds of two barriers, and a race after the last one.
const ROUNDS: &str = "
var<workgroup> s: array<u32, 64>;
@group(0) @binding(0) var<storage, read_write> x: array<u32>;
@compute @workgroup_size(64) fn main(@builtin(local_invocation_index) l: u32) {
    var sum = 0u;
    for (var i = 0u; i < 300u; i++) {
        s[l] = i;
        workgroupBarrier();
        sum += s[(l + 1u) % 64u];
        workgroupBarrier();
    }
    s[l] = sum;
    x[l] = s[(l + 1u) % 64u];
}";

#[test]
fn a_race_after_hundreds_of_barriers_is_confirmed() {
    let folder = Folder::with("check-rounds", "rounds.wgsl", ROUNDS);
    let found = json(&folder, "run rounds.wgsl --bind 0.0=zeros:256 --check", 66);
    let lines: Vec<_> = pairs(&found).into_iter().map(|(rule, first, second, _)| (rule, first, second)).collect();
    assert_eq!(lines, [("RAW".to_owned(), 12, 13), ("WAR".to_owned(), 13, 12)]);
}

/// One invocation writes two words, the other one reads both in a line, and the one of `WORD` very often in between.
const CUT: &str = "
@group(0) @binding(0) var<storage, read_write> x: array<u32>;
@compute @workgroup_size(2) fn main(@builtin(local_invocation_index) l: u32) {
    if l == 0u {
        x[0] = 1u;
        x[1] = 2u;
    } else {
        var sum = 0u;
        for (var i = 0u; i < 2u; i++) {
            sum += x[i];
            for (var j = 0u; j < 20000u; j++) {
                sum += x[WORD] * j;
            }
        }
        x[2] = sum;
    }
}";

#[test]
fn races_beside_a_confirmed_one_of_a_record_that_was_cut_are_found_or_warned_of() {
    let run = |word: &str| {
        let folder = Folder::with(&format!("check-cut-{word}"), "cut.wgsl", &CUT.replace("WORD", word));
        json(&folder, "run cut.wgsl --bind 0.0=zeros:16 --check --check-memory 340K", 66)
    };
    // The second word gets a record of its own.
    let found = run("0");
    let lines: Vec<_> = pairs(&found).into_iter().map(|(rule, first, second, _)| (rule, first, second)).collect();
    let raw = |first, second| ("RAW".to_owned(), first, second);
    assert_eq!(lines, [raw(5, 10), raw(5, 12), raw(6, 10)]);
    // The reads in between are of the second word itself, so that no record has both.
    let found = run("1");
    let findings = found["findings"].as_array().unwrap();
    let lines = |severity: &str| -> Vec<_> {
        let of = findings.iter().filter(|finding| finding["severity"] == severity);
        of.map(|finding| (finding["first"]["line"].as_u64(), finding["second"]["line"].as_u64())).collect()
    };
    assert_eq!(lines("error"), [(Some(5), Some(10)), (Some(6), Some(12))], "{found}");
    assert_eq!(lines("warning"), [(None, Some(10))], "{found}");
}

/// As `ENDLESS` of `check_limits.rs`, but nothing is accessed in the loop.
const SPINS: &str = "
@group(0) @binding(0) var<storage, read_write> data: array<u32>;
@compute @workgroup_size(64) fn main(@builtin(local_invocation_index) l: u32) {
    data[0] = l;
    var i = 0u;
    while i < 5u {
        i = (i + 3u) % 3u;
    }
    data[l] = i;
}";

#[test]
fn a_race_before_a_loop_that_does_not_end_and_accesses_nothing_is_confirmed() {
    let folder = Folder::with("check-spins", "spins.wgsl", SPINS);
    let found = json(&folder, "run spins.wgsl --bind 0.0=zeros:256 --check --time-limit 1", 6);
    assert_eq!(pairs(&found), [("WAW".to_owned(), 4, 4, 15)]);
    let error = found["error"].as_str().unwrap();
    assert!(error.contains("a loop at spins.wgsl:6:5 did not end"), "{error}");
}

/// Line 6 writes the next element, line 8 one half as far; a barrier and a fence, as GLSL has them, are in between, but
/// the buffer is not coherent: what `common` accepts. Two invocations write each element in line 8.
const ACCEPTED_AND_NOT: &str = r#"; Version: 1.3
OpCapability Shader
OpMemoryModel Logical GLSL450
OpEntryPoint GLCompute %main "main" %local
OpExecutionMode %main LocalSize 64 1 1
%file = OpString "kernel.comp"
OpDecorate %local BuiltIn LocalInvocationIndex
OpDecorate %words ArrayStride 4
OpDecorate %block Block
OpMemberDecorate %block 0 Offset 0
OpDecorate %data DescriptorSet 0
OpDecorate %data Binding 0
%void = OpTypeVoid
%fn = OpTypeFunction %void
%u32 = OpTypeInt 32 0
%zero = OpConstant %u32 0
%one = OpConstant %u32 1
%two = OpConstant %u32 2
%mask = OpConstant %u32 63
%buffers = OpConstant %u32 72
%shared = OpConstant %u32 264
%in = OpTypePointer Input %u32
%local = OpVariable %in Input
%words = OpTypeRuntimeArray %u32
%block = OpTypeStruct %words
%p_block = OpTypePointer StorageBuffer %block
%p_word = OpTypePointer StorageBuffer %u32
%data = OpVariable %p_block StorageBuffer
%main = OpFunction %void None %fn
%entry = OpLabel
%l = OpLoad %u32 %local
%after = OpIAdd %u32 %l %one
%next = OpBitwiseAnd %u32 %after %mask
%far = OpAccessChain %p_word %data %zero %next
OpLine %file 6 1
OpStore %far %l
OpLine %file 7 1
OpMemoryBarrier %one %buffers
OpControlBarrier %two %two %shared
OpNoLine
%half = OpShiftRightLogical %u32 %l %one
%near = OpAccessChain %p_word %data %zero %half
OpLine %file 8 1
OpStore %near %l
OpReturn
OpFunctionEnd
"#;

#[test]
fn what_the_profile_accepts_is_no_error_beside_a_race_at_the_same_word() {
    let folder = Folder::with("check-accepted", "kernel.spvasm", ACCEPTED_AND_NOT);
    let lines = |found: &Json| -> Vec<(u64, u64)> {
        let findings = found["findings"].as_array().unwrap();
        let errors = findings.iter().filter(|finding| finding["severity"] == "error");
        let line = |access: &Json| access["line"].as_u64().unwrap();
        let mut lines: Vec<_> = errors.map(|found| (line(&found["first"]), line(&found["second"]))).collect();
        lines.sort_unstable();
        lines
    };
    let found = json(&folder, "run kernel.spvasm --bind 0.0=zeros:64 --check", 66);
    assert_eq!(lines(&found), [(8, 8)]);
    let found = json(&folder, "run kernel.spvasm --bind 0.0=zeros:64 --check=spec", 66);
    assert_eq!(lines(&found), [(6, 8), (8, 8)]);
}

/// One invocation writes a word, the other one reads it, in rounds that barriers of the subgroup order: but for the
/// first one, whose write has a line of its own, and for `racy`. `lines` of each kind.
fn rounds(count: u32, racy: u32, lines: usize) -> String {
    let writes = "      if (i != 0u) x[0] = i;\n".repeat(lines);
    let reads = "    if (l == 1u) sum += x[0];\n".repeat(lines);
    format!(
        "#version 450
#extension GL_KHR_shader_subgroup_basic : require
layout(local_size_x = 2) in;
layout(binding = 0) coherent buffer X {{ uint x[]; }};
void main() {{
  uint l = gl_LocalInvocationIndex, sum = 0u;
  for (uint i = 0u; i < {count}u; i++) {{
    if (l == 0u) {{
      if (i == 0u) x[0] = 7u;
{writes}    }}
    if (i != 0u && i != {racy}u) subgroupBarrier();
{reads}    subgroupBarrier();
  }}
  x[1u + l] = sum;
}}
"
    )
}

#[test]
fn a_race_after_many_rounds_that_are_ordered_is_found_beside_another_one() {
    if !has_glsl() {
        return;
    }
    for (count, racy) in [(30, 24), (90, 80)] {
        let folder = Folder::with("check-rounds-late", "rounds.comp", &rounds(count, racy, 1));
        let found = json(&folder, "run rounds.comp --bind 0.0=zeros:12 --check", 66);
        let lines: Vec<_> = pairs(&found).into_iter().map(|(rule, first, second, _)| (rule, first, second)).collect();
        let raw = |first, second| ("RAW".to_owned(), first, second);
        assert_eq!(lines, [raw(9, 13), raw(10, 13)]);
    }
}

#[test]
fn lines_that_are_not_compared_beside_a_race_are_counted_and_said() {
    if !has_glsl() {
        return;
    }
    let line = "run rounds.comp --bind 0.0=zeros:12 --check";
    // All rounds but the first one are ordered, and all of them are compared.
    let folder = Folder::with("check-rounds-all", "rounds.comp", &rounds(25, 25, 1));
    assert_eq!(json(&folder, line, 66)["checked"]["lines_not_compared"], 0);
    // They are too many: the accesses that were compared are ordered, so there is no warning.
    let folder = Folder::with("check-rounds-many", "rounds.comp", &rounds(90, 90, 1));
    let found = json(&folder, line, 66);
    assert_eq!((pairs(&found).len(), &found["checked"]["lines_not_compared"]), (1, &2.into()));
    let text = folder.spelter(line).stderr;
    assert!(text.contains("2 pairs of lines were not compared at each word that they access"), "{text}");
    // Of many lines some are hardly compared.
    let folder = Folder::with("check-rounds-lines", "rounds.comp", &rounds(12, 12, 9));
    let found = json(&folder, line, 66);
    let open = found["checked"]["lines_not_compared"].as_u64().unwrap();
    let warnings = found["findings"].as_array().unwrap().iter().filter(|finding| finding["severity"] == "warning");
    let reasons: Vec<_> = warnings.map(|finding| finding["conditions"][1].clone()).collect();
    assert!(open > 16 && reasons.len() == 16, "{open} {reasons:?}");
    let expected = "not confirmed: the word is accessed too often to compare all pairs of accesses";
    assert!(reasons.iter().all(|reason| reason == expected), "{reasons:?}");
}

/// Workgroups that update two words under a lock, in `ROUNDS` rounds, and one that then writes one of them without it.
const LOCKED: &str = "#version 450
#extension GL_KHR_memory_scope_semantics : require
layout(local_size_x = 1) in;
layout(binding = 0) coherent buffer Lock { uint lock; };
layout(binding = 1) coherent buffer Data { uint data[]; };
#define BUFFER gl_StorageSemanticsBuffer
#define ACQUIRE BUFFER, gl_SemanticsAcquire
void main() {
  for (int i = 0; i < 4; i++) {
    while (atomicCompSwap(lock, 0u, 1u, gl_ScopeDevice, ACQUIRE, ACQUIRE) != 0u) {}
    data[0] = data[0] + 1u;
    atomicStore(lock, 0u, gl_ScopeDevice, BUFFER, gl_SemanticsRelease);
  }
  if (gl_WorkGroupID.x == 3u) data[0] = 9u;
}
";

#[test]
fn one_access_without_a_lock_is_found_among_thousands_with_it() {
    if !has_glsl() {
        return;
    }
    let folder = Folder::with("check-locked", "lock.comp", LOCKED);
    for groups in [8, 600] {
        let line = format!("run lock.comp --bind 0.0=zeros:4 --bind 0.1=zeros:4 --groups {groups} --check=spec");
        let found = json(&folder, &line, 66);
        let lines: Vec<_> = pairs(&found).into_iter().map(|(rule, first, second, _)| (rule, first, second)).collect();
        assert_eq!(lines, [("RAW".to_owned(), 14, 11), ("WAW".to_owned(), 14, 11)], "{groups}");
        assert_eq!(found["checked"]["lines_not_compared"], 0, "{groups}");
    }
}

/// Workgroups read a word and count themselves by atomics whose releases make nothing available: that is enough for
/// reads, but no order that holds for writes. The last two wait for all and write the word, unordered with each other.
const READERS: &str = "#version 450
#extension GL_KHR_memory_scope_semantics : require
#pragma use_vulkan_memory_model
layout(local_size_x = 1) in;
layout(binding = 0) buffer Count { uint count; };
layout(binding = 1) buffer Data { nonprivate uint data[]; };
#define BUFFER gl_ScopeQueueFamily, gl_StorageSemanticsBuffer
void main() {
  uint readers = gl_NumWorkGroups.x - 2u;
  if (gl_WorkGroupID.x < readers) {
    uint sum = 0u;
    for (int i = 0; i < 16; i++) sum += data[0];
    data[1u + gl_WorkGroupID.x] = sum;
    atomicAdd(count, 1u, BUFFER, gl_SemanticsRelease);
  } else {
    while (atomicLoad(count, BUFFER, gl_SemanticsAcquire) < readers) {}
    data[0] = 1u;
  }
}
";

#[test]
fn the_race_that_is_suspected_is_decided_whatever_else_accesses_the_word() {
    if !has_glsl() {
        return;
    }
    let folder = Folder::with("check-readers", "readers.comp", READERS);
    for groups in [10, 500] {
        let line = format!("run readers.comp --bind 0.0=zeros:4 --bind 0.1=zeros:4K --groups {groups} --check=spec");
        let ended = folder.spelter(&format!("{line} --json"));
        let found: Json = serde_json::from_str(&ended.stdout).unwrap();
        let findings = found["findings"].as_array().unwrap();
        let errors = findings.iter().filter(|finding| finding["severity"] == "error");
        let lines: Vec<_> = errors.map(|error| [&error["first"]["line"], &error["second"]["line"]]).collect();
        assert_eq!(lines, [[17, 17]], "{groups} {}", found["checked"]);
    }
}

/// Lines of atomics that acquire and release a few words, and of accesses to others, as numbers of a generator say.
fn synchronized_lines(count: u32) -> String {
    let mut state = 7u32;
    let mut next = |below: u32| {
        state = state.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
        (state >> 16) % below
    };
    let mut text = "#version 450
#extension GL_KHR_memory_scope_semantics : require
layout(local_size_x = 64) in;
layout(binding = 0) coherent buffer Atomics { uint a[]; };
layout(binding = 1) coherent buffer Data { uint d[]; };
#define BUFFER gl_ScopeDevice, gl_StorageSemanticsBuffer
void main() {
  uint x = gl_LocalInvocationIndex;
"
    .to_owned();
    for _ in 0..count {
        let (kind, word) = (next(4), next(8));
        text += &match kind {
            0 => format!("  x += atomicAdd(a[{word}], 1u, BUFFER, gl_SemanticsAcquireRelease);\n"),
            1 => format!("  x ^= atomicLoad(a[{word}], BUFFER, gl_SemanticsAcquire);\n"),
            2 => format!("  d[{word}] = x;\n"),
            _ => format!("  x += d[{word}];\n"),
        };
    }
    text + "}\n"
}

#[test]
fn suspicions_among_many_atomics_that_order_are_decided() {
    if !has_glsl() {
        return;
    }
    let folder = Folder::with("check-atomics", "atomics.comp", &synchronized_lines(48));
    let found = json(&folder, "run atomics.comp --bind 0.0=zeros:32 --bind 0.1=zeros:32 --check=spec", 66);
    assert_eq!(found["checked"]["undecided"], 0, "{}", found["checked"]);
}
