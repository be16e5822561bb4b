//! `spelter run --check` at its limits: endless kernels, no memory, a race in every word, a replay that goes
//! another way. Each ends with a message, and loses nothing that was found.

#![allow(clippy::unwrap_used, reason = "the helpers of tests are tests too")]

use crate::common::{Folder, has_glsl};
use serde_json::Value as Json;

/// The object of a run that ends with this status.
pub(crate) fn json(folder: &Folder, line: &str, status: i32) -> Json {
    let ended = folder.spelter(&format!("{line} --json"));
    assert_eq!(ended.status, status, "{line}\n{}{}", ended.stdout, ended.stderr);
    serde_json::from_str(&ended.stdout).unwrap()
}

/// Every invocation writes one word; half of them wait for another workgroup, which never runs.
const ENDLESS: &str = "
@group(0) @binding(0) var<storage, read_write> flag: atomic<u32>;
@group(0) @binding(1) var<storage, read_write> data: array<u32>;
@compute @workgroup_size(64) fn main(@builtin(local_invocation_index) l: u32) {
    data[0] = l;
    while l > 32u && atomicLoad(&flag) == 0u { data[l] += 1u; }
}";

#[test]
fn an_endless_kernel_ends_with_what_was_found() {
    let folder = Folder::with("check-endless", "endless.wgsl", ENDLESS);
    let line = "run endless.wgsl --bind 0.0=zeros:4 --bind 0.1=zeros:256 --check --time-limit 1";
    let ended = folder.spelter(line);
    assert_eq!((ended.status, ended.stdout.as_str()), (6, ""), "{}", ended.stderr);
    // The dispatch runs again as far as it takes to confirm what happened before.
    for part in [
        "error[SPELTER-RACE-WAW]: data race (write after write) in `data` (set 0, binding 1), bytes 0..4",
        "write by workgroup (0, 0, 0), invocation (0, 0, 0)",
        "write by workgroup (0, 0, 0), invocation (1, 0, 0)",
        "= because no repair was tried: the kernel did not come to its end",
        "note: checked: 1 error",
        "error: device lost: kernel `main` ran longer than the time limit of 1s",
        ": a loop at endless.wgsl:6:5 did not end in invocation (33, 0, 0)",
    ] {
        assert!(ended.stderr.contains(part), "{part}\n{}", ended.stderr);
    }
    let object = json(&folder, line, 6);
    assert!(object["error"].as_str().unwrap().contains("ran longer than the time limit"), "{object}");
    assert_eq!(object["findings"][0]["id"], "SPELTER-RACE-WAW");
    let conditions = &object["findings"][0]["conditions"];
    assert_eq!(conditions[1], "no repair was tried: the kernel did not come to its end", "{object}");
}

/// Advice beside which a barrier would have been tried says that none was.
#[test]
fn advice_that_needs_no_trial_says_why_none_was_made() {
    let kernel = ENDLESS.replace("data[0] = l;", "for (var k = 0u; k < 2u; k++) { data[0] += l; }");
    let folder = Folder::with("check-untried", "untried.wgsl", &kernel);
    let ended = folder.spelter("run untried.wgsl --bind 0.0=zeros:4 --bind 0.1=zeros:256 --check --time-limit 1");
    for part in [
        "= repair: atomicAdd(&data[0], l) in place of the update at untried.wgsl:5:",
        "= because no other repair was tried: the kernel did not come to its end",
    ] {
        assert!(ended.stderr.contains(part), "{part}\n{}", ended.stderr);
    }
}

/// A loop with a constant number of rounds, each of which takes the detector long.
const LONG_ROUNDS: &str = "#version 450
layout(local_size_x = 1024) in;
layout(binding = 0) coherent buffer A { uint n; uint a[]; };
void main() {
    for (int i = 0; i < 16000; ++i) {
        uint k = atomicAdd(n, 1u);
        memoryBarrierBuffer();
        a[k % 512] = k;
        memoryBarrierBuffer();
    }
}";

#[test]
fn a_loop_of_constant_length_is_stopped_too() {
    if !has_glsl() {
        return;
    }
    let folder = Folder::with("check-long-rounds", "long.comp", LONG_ROUNDS);
    let ended = folder.spelter("run long.comp --bind 0.0=zeros:16384 --check --time-limit 1");
    assert_eq!(ended.status, 6, "{}", ended.stderr);
    assert!(ended.stderr.contains("ran longer than the time limit of 1s"), "{}", ended.stderr);
}

/// In order, the first workgroup sets the flag for which the second one waits.
const WAITS: &str = "
@group(0) @binding(0) var<storage, read_write> flag: atomic<u32>;
@group(0) @binding(1) var<storage, read_write> data: array<u32>;
@compute @workgroup_size(1) fn main(@builtin(workgroup_id) group: vec3<u32>) {
    data[0] = group.x;
    if group.x == 0u { atomicStore(&flag, 1u); }
    while atomicLoad(&flag) == 0u {}
}";

#[test]
fn a_kernel_that_ends_in_some_orders_only_ends_with_what_the_others_found() {
    let folder = Folder::with("check-waits", "waits.wgsl", WAITS);
    let line = "run waits.wgsl --bind 0.0=zeros:4 --bind 0.1=zeros:4 --groups 2 --many-seeds 9 --check --time-limit 1";
    let object = json(&folder, line, 6);
    let error = object["error"].as_str().unwrap();
    assert!(error.contains("ran longer than the time limit"), "{error}");
    assert!(error.contains("; with --schedule random:"), "{error}");
    assert_eq!(object["findings"][0]["severity"], "error", "the first order is confirmed: {object}");
}

/// Ends in the usual order; in others the second workgroup may wait for the first. It has no race.
const WAITS_WITHOUT_A_RACE: &str = "
@group(0) @binding(0) var<storage, read_write> flag: atomic<u32>;
@compute @workgroup_size(1) fn main(@builtin(workgroup_id) group: vec3<u32>) {
    if group.x == 0u { atomicStore(&flag, 1u); }
    while atomicLoad(&flag) == 0u {}
}";

/// What ends in another order is run in that one: the message has it, and nothing of a kernel that ends in none.
#[test]
fn a_kernel_that_waits_for_a_later_workgroup_names_the_order_in_which_it_ends() {
    let folder =
        Folder::with("check-later", "later.wgsl", &WAITS_WITHOUT_A_RACE.replace("group.x == 0u", "group.x == 1u"));
    let line = "run later.wgsl --bind 0.0=zeros:4 --groups 2 --check --time-limit 0.5";
    let error = json(&folder, line, 6)["error"].as_str().unwrap().to_owned();
    let why = "; with --schedule reverse it ends: in checked mode workgroups run one after another, ";
    assert!(error.contains(" did not end in invocation (0, 0, 0)") && error.contains(why), "{error}");
    json(&folder, &format!("{line} --schedule reverse"), 0);
    folder.write("later.wgsl", WAITS_WITHOUT_A_RACE.as_bytes());
    let error = json(&folder, &format!("{line} --schedule reverse"), 6)["error"].as_str().unwrap().to_owned();
    assert!(error.contains("; with --schedule reverse; with --schedule ascending it ends: "), "{error}");
    folder.write("later.wgsl", WAITS_WITHOUT_A_RACE.replace("group.x == 0u", "group.x == 2u").as_bytes());
    let error = json(&folder, line, 6)["error"].as_str().unwrap().to_owned();
    assert!(error.ends_with(" did not end in invocation (0, 0, 0)"), "{error}");
}

/// An order that loses the device is a job that failed: the sweep ends, and is not run again.
#[test]
fn an_order_that_does_not_end_is_a_failed_job() {
    let folder = Folder::with("check-waits-jobs", "waits.wgsl", WAITS_WITHOUT_A_RACE);
    let line = "run waits.wgsl --bind 0.0=zeros:4 --groups 2 --many-seeds 5 --check --time-limit 1 --results r.jsonl";
    let ended = folder.spelter(line);
    assert_eq!(ended.status, 6, "{}", ended.stderr);
    assert!(ended.stderr.contains("ran longer than the time limit"), "{}", ended.stderr);
    assert!(!ended.stderr.contains("no data race was observed\n"), "{}", ended.stderr);
    let kept = folder.read("r.jsonl");
    let lines: Vec<Json> =
        kept.split(|byte| *byte == b'\n').filter_map(|line| serde_json::from_slice(line).ok()).collect();
    assert_eq!(lines.len(), 1 + 5, "a header and all orders: {lines:?}");
    let failed = lines.iter().filter(|line| line["failed"] == true).count();
    assert!((1..5).contains(&failed), "{lines:?}");
    for line in &lines[1..] {
        assert_eq!(line["result"]["reason"].is_string(), line["failed"] == true, "{line}");
    }
    assert_eq!(folder.spelter("merge r.jsonl").status, 3);

    // The continued sweep has nothing to run, and says the same.
    let object = json(&folder, line, 6);
    assert_eq!(folder.read("r.jsonl"), kept);
    assert_eq!(object["failed_orders"].as_array().unwrap().len(), failed, "{object}");
    assert!(object["error"].as_str().unwrap().contains("; with --schedule random:"), "{object}");

    // The first order counts as the others do.
    folder.write("waits.wgsl", WAITS_WITHOUT_A_RACE.replace("group.x == 0u", "group.x == 2u").as_bytes());
    let ended = folder.spelter(&line.replace("--many-seeds 5", "--many-seeds 2").replace("r.jsonl", "none.jsonl"));
    assert_eq!(ended.status, 6, "{}", ended.stderr);
    assert!(ended.stderr.contains("; 1 other order failed, too"), "{}", ended.stderr);
    assert_eq!(folder.read("none.jsonl").iter().filter(|byte| **byte == b'\n').count(), 1 + 2);
}

const EVERY_WORD: &str = "
@group(0) @binding(0) var<storage, read_write> data: array<u32>;
@compute @workgroup_size(64) fn main(@builtin(global_invocation_id) g: vec3<u32>) {
    data[g.x / 2u] = g.x;
}";

#[test]
fn races_in_every_word_are_one_finding() {
    let folder = Folder::with("check-every", "every.wgsl", EVERY_WORD);
    let line = "run every.wgsl --bind 0.0=zeros:128K --groups 1024 --check";
    let found = json(&folder, line, 66);
    assert_eq!(found["findings"].as_array().unwrap().len(), 1);
    assert_eq!((&found["findings"][0]["count"], &found["checked"]["undecided"]), (&32768.into(), &0.into()));
}

/// Each workgroup writes the first words of a page of the shadow.
const PAGES: &str = "
@group(0) @binding(0) var<storage, read_write> data: array<u32>;
@compute @workgroup_size(64) fn main(@builtin(workgroup_id) g: vec3<u32>, @builtin(local_invocation_index) l: u32) {
    data[g.x * 16384u + l] = l;
}";

#[test]
fn memory_that_is_too_little_to_check_anything_is_an_error_that_names_the_least() {
    let folder = Folder::with("check-no-shadow", "pages.wgsl", PAGES);
    let line = "run pages.wgsl --bind 0.0=zeros:1M --groups 1 --check --check-memory";
    for bytes in ["0", "1", "20K", "319K"] {
        let message = folder.usage(&format!("{line} {bytes}"));
        assert!(message.contains("nothing can be checked with less than 320K"), "{message}");
    }
    let found = json(&folder, &format!("{line} 320K"), 0);
    assert_eq!(found["checked"]["accesses_not_checked"], 0);
}

#[test]
fn what_is_not_checked_has_a_status_of_its_own() {
    let folder = Folder::with("check-partial", "pages.wgsl", PAGES);
    // Sixteen pages, of which the shadow has room for four.
    let line = "run pages.wgsl --bind 0.0=zeros:1M --groups 16 --check --check-memory 320K";
    let found = json(&folder, line, 67);
    let unchecked = found["checked"]["accesses_not_checked"].as_u64().unwrap();
    assert!((64 * 12..=64 * 13).contains(&unchecked), "{found}");
    assert_eq!(found["findings"], Json::Array(Vec::new()));
    let ended = folder.spelter(line);
    assert_eq!(ended.status, 67);
    assert!(ended.stderr.contains("note: checked: no data race was observed in what was checked"), "{}", ended.stderr);
    json(&folder, &format!("{line} --allow-unchecked"), 0);
    // Each order counts.
    let orders = json(&folder, &format!("{line} --many-seeds 2"), 67);
    assert!(orders["checked"]["accesses_not_checked"].as_u64().unwrap() > unchecked, "{orders}");
    // An error is one, whatever else was not checked.
    folder.write("racy.wgsl", PAGES.replace("+ l]", "+ l / 2u]").as_bytes());
    json(&folder, &line.replace("pages.wgsl", "racy.wgsl"), 66);
}

#[test]
fn memory_for_the_shadow_suffices_for_the_cells_that_accesses_need() {
    let text = "
        @group(0) @binding(0) var<storage, read_write> data: array<u32>;
        @compute @workgroup_size(64) fn main(
            @builtin(global_invocation_id) g: vec3<u32>, @builtin(num_workgroups) n: vec3<u32>
        ) {
            let i = g.y * n.x * 64u + g.x;
            data[i] = VALUE;
        }";
    let folder = Folder::with("check-cells", "write.wgsl", &text.replace("VALUE", "i"));
    folder.write("update.wgsl", text.replace("VALUE", "data[i] + 1u").as_bytes());
    // A word that is written has five bytes of the shadow, one that is read, too, has ten.
    for (file, groups) in [("write.wgsl", 11_000), ("update.wgsl", 5_400)] {
        let bytes = 256 * groups;
        let line = format!("run {file} --bind 0.0=zeros:{bytes} --groups {groups} --check --check-memory 4M");
        let found = json(&folder, &line, 0);
        assert_eq!(found["checked"]["accesses_not_checked"], 0, "{file}");
        assert_eq!(found["findings"], Json::Array(Vec::new()), "{file}");
    }
}

#[test]
fn without_memory_for_a_replay_a_race_is_a_warning() {
    // What a kernel writes only needs no copy, and neither do pages of zeros.
    let text = EVERY_WORD.replace("= g.x;", "= g.x + data[g.x + 1000u];");
    let folder = Folder::with("check-no-replay", "every.wgsl", &text);
    let line = "run every.wgsl --bind 0.0=u32:random:262144:1 --groups 2 --check --check-memory 700K";
    // What stays undecided may be a race.
    let found = json(&folder, line, 67);
    assert_eq!(json(&folder, &format!("{line} --allow-unchecked"), 0)["findings"], found["findings"]);
    let finding = &found["findings"][0];
    assert_eq!((&finding["severity"], &finding["count"]), (&"warning".into(), &64.into()));
    // What the detector knows of the earlier access, and the one instruction that can have made it.
    let of = |access: &Json| (access["line"].clone(), access["local"].clone());
    assert_eq!(of(&finding["first"]), (4.into(), serde_json::json!([0, 0, 0])), "{finding}");
    assert_eq!(of(&finding["second"]), (4.into(), serde_json::json!([1, 0, 0])), "{finding}");
    assert_eq!(finding["memory"]["bytes"], serde_json::json!([0, 4]), "{finding}");
    let why = finding["conditions"][1].as_str().unwrap();
    assert!(why.starts_with("not confirmed: the dispatch could not run again: the copy of the memory"), "{why}");
}

/// All invocations write the word that the clock chose.
const CLOCK: &str = "
OpCapability Shader
OpCapability Int64
OpCapability ShaderClockKHR
OpExtension \"SPV_KHR_shader_clock\"
OpMemoryModel Logical GLSL450
OpEntryPoint GLCompute %main \"main\" %local
OpExecutionMode %main LocalSize 4 1 1
OpDecorate %local BuiltIn LocalInvocationIndex
OpDecorate %words ArrayStride 4
OpDecorate %Block Block
OpMemberDecorate %Block 0 Offset 0
OpDecorate %out DescriptorSet 0
OpDecorate %out Binding 0
%void = OpTypeVoid
%fn = OpTypeFunction %void
%u32 = OpTypeInt 32 0
%bool = OpTypeBool
%v2u = OpTypeVector %u32 2
%words = OpTypeRuntimeArray %u32
%Block = OpTypeStruct %words
%ptr_in = OpTypePointer Input %u32
%ptr_shared = OpTypePointer Workgroup %u32
%ptr_Block = OpTypePointer StorageBuffer %Block
%ptr_word = OpTypePointer StorageBuffer %u32
%local = OpVariable %ptr_in Input
%place = OpVariable %ptr_shared Workgroup
%out = OpVariable %ptr_Block StorageBuffer
%c0 = OpConstant %u32 0
%device = OpConstant %u32 1
%workgroup = OpConstant %u32 2
%full = OpConstant %u32 0x108
%count = OpConstant %u32 1000003
%main = OpFunction %void None %fn
%entry = OpLabel
%l = OpLoad %u32 %local
%first = OpIEqual %bool %l %c0
OpSelectionMerge %after None
OpBranchConditional %first %choose %after
%choose = OpLabel
%time = OpReadClockKHR %v2u %device
%low = OpCompositeExtract %u32 %time 0
%chosen = OpUMod %u32 %low %count
OpStore %place %chosen
OpBranch %after
%after = OpLabel
OpControlBarrier %workgroup %workgroup %full
%at = OpLoad %u32 %place
%word = OpAccessChain %ptr_word %out %c0 %at
OpStore %word %l
OpReturn
OpFunctionEnd
";

#[test]
fn a_replay_that_goes_another_way_is_a_warning() {
    let folder = Folder::with("check-clock", "clock.spvasm", CLOCK);
    let found = json(&folder, "run clock.spvasm --bind 0.0=zeros:4M --check", 67);
    let finding = &found["findings"][0];
    assert_eq!((&finding["severity"], &finding["count"]), (&"warning".into(), &3.into()));
    let why = finding["conditions"][1].as_str().unwrap();
    assert_eq!(why, "not confirmed: the accesses did not occur again when the dispatch was repeated");
}

/// A long text has lines, too.
#[test]
fn reports_on_long_texts_have_lines() {
    let statements: String = (0..4_000).map(|i| format!("  x = x * {}u + data[{}];\n", i + 3, i % 64)).collect();
    let text = format!(
        "// {}\n@group(0) @binding(0) var<storage, read_write> data: array<u32>;
fn f(a: u32) -> u32 {{
  var x = a;
{statements}  return x;
}}
@compute @workgroup_size(64) fn main(@builtin(local_invocation_index) l: u32) {{
  if l == 1u {{ data[1] = f(l); }}
  data[64] = data[1];
}}",
        "-".repeat(1 << 17)
    );
    let folder = Folder::with("check-long-text", "long.wgsl", &text);
    let ended = folder.spelter("run long.wgsl --bind 0.0=zeros:260 --check");
    assert_eq!(ended.status, 66, "{}", ended.stderr);
    for place in [" at long.wgsl:4008:16", "data[1] = f(l);", "long.wgsl:4009:"] {
        assert!(ended.stderr.contains(place), "{place}\n{}", ended.stderr);
    }
}

/// More barriers than the detector has epochs for 1,024 invocations.
const BARRIERS: &str = "
@group(0) @binding(0) var<storage, read_write> words: array<u32>;
var<workgroup> tile: array<u32, 1024>;
@compute @workgroup_size(1024) fn main(@builtin(local_invocation_index) l: u32) {
    for (var round = 0u; round < 1100000u; round++) {
        tile[l] = round;
        workgroupBarrier();
    }
    words[l] = tile[1023u - l];
}";

#[test]
fn a_summary_says_that_the_epochs_were_used_up() {
    let folder = Folder::with("check-epochs", "barriers.wgsl", BARRIERS);
    let line = "run barriers.wgsl --bind 0.0=zeros:4096 --check --time-limit 600";
    let ended = folder.spelter(line);
    assert_eq!(ended.status, 0, "{}", ended.stderr);
    assert!(ended.stderr.contains("1 restart of the detector's epochs"), "{}", ended.stderr);
    assert_eq!(json(&folder, line, 0)["checked"]["epochs_used_up"], 1);
}
