//! `spelter run --check` on the command line: the environment, options that need checked mode, shards without orders,
//! findings that are not shown, messages of lost devices, texts without lines.

#![allow(clippy::unwrap_used, reason = "the helpers of tests are tests too")]

use crate::common::{Folder, has_glsl};
use serde_json::Value as Json;

/// All invocations write a word: a race, and its lines.
const RACY: &str = "@group(0) @binding(0) var<storage, read_write> d: array<u32>;
@compute @workgroup_size(64) fn main(@builtin(local_invocation_index) l: u32) { d[0] = l; }
";

const LINE: &str = "run racy.wgsl --bind 0.0=zeros:4";

#[test]
fn the_environment_turns_checked_mode_on_as_the_option_does() {
    let folder = Folder::with("usage-environment", "racy.wgsl", RACY);
    for (value, status, found) in [("spec", 66, true), ("1", 66, true), ("0", 0, false), ("", 0, false)] {
        let ended = folder.with_environment(LINE, &[("SPELTER_CHECK", value)]);
        assert_eq!(ended.status, status, "{value}\n{}", ended.stderr);
        assert_eq!(ended.stderr.contains("error[SPELTER-RACE-WAW]"), found, "{}", ended.stderr);
        assert!(!ended.stderr.contains("panicked"), "{}", ended.stderr);
    }
    // Then there are the options of checked mode, too.
    assert_eq!(
        folder.with_environment(&format!("{LINE} --error-exitcode 7"), &[("SPELTER_CHECK", "common")]).status,
        7
    );
    let wrong = folder.with_environment(LINE, &[("SPELTER_CHECK", "vague")]);
    assert_eq!(wrong.status, 2, "{}", wrong.stderr);
    assert!(wrong.stderr.contains("SPELTER_CHECK=vague: neither 1 nor 0, nor a profile"), "{}", wrong.stderr);
    // Other commands report no findings, so the variable means nothing to them.
    let demo = folder.with_environment("demo reduce", &[("SPELTER_CHECK", "spec")]);
    assert_eq!(demo.status, 0, "{}", demo.stderr);
}

#[test]
fn variables_of_checked_mode_are_options_of_run() {
    let folder = Folder::with("usage-variables", "racy.wgsl", RACY);
    let run = |line: &str, name: &str, value: &str| {
        let name = format!("SPELTER_CHECK_{name}");
        folder.with_environment(line, &[("SPELTER_CHECK", "1"), (name.as_str(), value)])
    };
    let ended = run(LINE, "ONLY", "BARRIER");
    assert_eq!(ended.status, 0, "{}", ended.stderr);
    assert!(ended.stderr.contains("1 finding not shown (--only)"), "{}", ended.stderr);
    // That of programs on the driver: `spelter check` sets it to 0.
    assert_eq!(run(LINE, "EXITCODE", "0").status, 66);
    folder.write("known.txt", b"rule:RACE-*\n");
    assert_eq!(run(LINE, "SUPPRESSIONS", "known.txt").status, 0);
    // Options count before variables.
    assert_eq!(run(&format!("{LINE} --only RACE-*"), "ONLY", "BARRIER").status, 66);
    folder.write("unknown.txt", b"# a rule\nrule:RACE-XYZ\n");
    for (name, value, problem) in [
        ("MEMORY", "abc", "SPELTER_CHECK_MEMORY=abc: not a number of bytes"),
        ("ONLY", "FOO", "SPELTER_CHECK_ONLY=FOO: `FOO` is not a rule; the rules are"),
        ("SUPPRESSIONS", "unknown.txt", "unknown.txt: line 2: `RACE-XYZ` is not a rule; the rules are"),
    ] {
        let ended = run(LINE, name, value);
        assert_eq!(ended.status, 2, "{}", ended.stderr);
        assert!(ended.stderr.contains(problem), "{}", ended.stderr);
    }
}

#[test]
fn suppressions_that_match_nothing_are_errors() {
    let folder = Folder::with("usage-suppressions", "racy.wgsl", RACY);
    for (suppression, problem) in [
        ("line:racy.wgsl", "`racy.wgsl` has no number of a line: a pattern of lines is FILE:LINE"),
        ("rule:SPELTER-RACE-XYZ", "`SPELTER-RACE-XYZ` is not a rule; the rules are SPELTER-RACE-RAW"),
    ] {
        let message = folder.usage(&format!("{LINE} --check --suppress {suppression}"));
        assert!(message.contains(problem) && message.contains("--suppress"), "{message}");
        folder.write("known.txt", format!("# known\n{suppression}\n").as_bytes());
        let message = folder.error(&format!("{LINE} --check --suppressions known.txt"));
        assert!(message.starts_with(&format!("known.txt: line 2: {problem}")), "{message}");
    }
}

#[test]
fn options_of_checked_mode_need_it() {
    let folder = Folder::with("usage-options", "racy.wgsl", RACY);
    for option in ["--error-exitcode 3", "--only NOTE", "--shard 1/2", "--dot a.dot", "--check-memory 1M"] {
        let name = option.split(' ').next().unwrap();
        let message = folder.usage(&format!("{LINE} {option}"));
        assert!(message.contains(&format!("{name} needs --check")), "{message}");
    }
}

#[test]
fn a_shard_without_orders_runs_nothing_and_can_be_merged() {
    let folder = Folder::with("usage-shards", "racy.wgsl", RACY);
    let part = |shard: u32, more: &str| {
        folder.spelter(&format!("{LINE} --check --many-seeds 2 --shard {shard}/4 --results r{shard} {more}"))
    };
    for (shard, status) in [(1, 66), (2, 66), (3, 0), (4, 0)] {
        let ended = part(shard, "");
        assert_eq!(ended.status, status, "{shard}\n{}", ended.stderr);
        let note = format!("shard {shard}/4 has none of the 2 orders of --many-seeds: nothing ran");
        assert_eq!(ended.stderr.contains(&note), shard > 2, "{}", ended.stderr);
        assert_eq!(ended.stderr.contains("checked:"), shard < 3, "{}", ended.stderr);
    }
    let json = part(3, "--json");
    let object: Json = serde_json::from_str(&json.stdout).unwrap();
    assert_eq!((&object["findings"], &object["checked"]["dispatches"]), (&Json::Array(Vec::new()), &0.into()));
    let merged = folder.spelter("merge r1 r2 r3 r4");
    assert_eq!((merged.status, merged.stderr.as_str()), (3, "error: 2 jobs failed: 0-1\n"));
    assert!(merged.stdout.starts_with("run --many-seeds: 2 of 2 jobs"), "{}", merged.stdout);
    let found = merged.stdout.lines().filter(|line| line.starts_with("error[SPELTER-RACE-"));
    let found: Vec<_> = found.collect();
    assert_eq!(found.len(), 1, "a finding of both orders is one: {}", merged.stdout);
    assert!(found[0].contains(" at racy.wgsl:") && found[0].ends_with(", in 2 jobs, first in job 0"), "{found:?}");
    let command = folder.spelter("check --many-seeds 2 --shard 3/4 -- sh -c exit");
    assert_eq!(command.status, 0, "{}", command.stderr);
    assert!(command.stderr.contains("the shard has no order of --many-seeds: nothing ran"), "{}", command.stderr);
}

#[test]
fn findings_that_are_not_shown_are_counted() {
    let folder = Folder::with("usage-only", "racy.wgsl", RACY);
    let ended = folder.spelter(&format!("{LINE} --check --only BARRIER"));
    assert_eq!(ended.status, 0, "{}", ended.stderr);
    let summary = "checked: none of the rules of --only was broken, 1 finding not shown (--only)";
    assert!(ended.stderr.contains(summary), "{}", ended.stderr);
    let json = folder.spelter(&format!("{LINE} --check --only BARRIER --json"));
    let object: Json = serde_json::from_str(&json.stdout).unwrap();
    assert_eq!((&object["not_shown"], &object["suppressed"]), (&1.into(), &0.into()));
}

/// A loop with barriers that does not end.
const ENDLESS: &str = "@group(0) @binding(0) var<storage, read_write> d: array<u32>;
var<workgroup> t: array<u32, 64>;
@compute @workgroup_size(64) fn main(@builtin(local_invocation_index) l: u32) {
  t[l] = d[l];
  workgroupBarrier();
  loop {
    if workgroupUniformLoad(&t[0]) == 5u { break; }
    t[l] += 2u;
    workgroupBarrier();
  }
  d[l] = 3u;
}
";

#[test]
fn a_lost_device_names_the_loop_and_the_order() {
    let folder = Folder::with("usage-lost", "endless.wgsl", ENDLESS);
    let line = "run endless.wgsl --bind 0.0=zeros:256 --time-limit 0.2";
    for backend in ["", "--backend interpreter"] {
        for check in ["", "--check"] {
            let ended = folder.spelter(&format!("{line} {backend} {check} --schedule random:7"));
            assert_eq!(ended.status, 6, "{}", ended.stderr);
            for part in [": a loop at endless.wgsl:", "; with --schedule random:7"] {
                assert!(ended.stderr.contains(part), "{backend} {check}: {part}\n{}", ended.stderr);
            }
        }
    }
}

#[test]
fn a_module_without_lines_is_named_by_its_kernel() {
    let folder = Folder::with("usage-lines", "racy.spvasm", NO_LINES);
    let words = spelter_shaders::front::spvasm::assemble(NO_LINES).unwrap();
    folder.write("racy.spv", &words.iter().flat_map(|word| word.to_le_bytes()).collect::<Vec<u8>>());
    // The text has lines.
    let ended = folder.spelter("run racy.spvasm --bind 0.0=zeros:4 --check");
    assert!(ended.status == 66 && ended.stderr.contains(" at racy.spvasm:"), "{}", ended.stderr);
    let ended = folder.spelter("run racy.spv --bind 0.0=zeros:4 --check");
    assert_eq!(ended.status, 66, "{}", ended.stderr);
    assert!(ended.stderr.contains(" of kernel `count_up`"), "{}", ended.stderr);
}

/// All invocations write a word.
const NO_LINES: &str = r#"
OpCapability Shader
OpExtension "SPV_KHR_storage_buffer_storage_class"
OpMemoryModel Logical GLSL450
OpEntryPoint GLCompute %main "count_up" %index
OpExecutionMode %main LocalSize 64 1 1
OpDecorate %index BuiltIn LocalInvocationIndex
OpDecorate %Block Block
OpMemberDecorate %Block 0 Offset 0
OpDecorate %words DescriptorSet 0
OpDecorate %words Binding 0
%void = OpTypeVoid
%function = OpTypeFunction %void
%uint = OpTypeInt 32 0
%Block = OpTypeStruct %uint
%ptr_Block = OpTypePointer StorageBuffer %Block
%ptr_uint = OpTypePointer StorageBuffer %uint
%ptr_input = OpTypePointer Input %uint
%words = OpVariable %ptr_Block StorageBuffer
%index = OpVariable %ptr_input Input
%zero = OpConstant %uint 0
%main = OpFunction %void None %function
%entry = OpLabel
%i = OpLoad %uint %index
%word = OpAccessChain %ptr_uint %words %zero
OpStore %word %i
OpReturn
OpFunctionEnd
"#;

#[test]
fn messages_of_a_compiler_are_those_about_the_text() {
    if !has_glsl() {
        return;
    }
    let folder = Folder::with("usage-glsl", "old.comp", "void main() { foo( }\n");
    let message = folder.error("run old.comp");
    assert!(message.contains("old.comp:1: ") && message.contains("syntax error"), "{message}");
    assert!(message.lines().count() < 8 && !message.contains("radians"), "{message}");
}
