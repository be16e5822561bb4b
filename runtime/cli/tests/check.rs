//! `spelter run --check`: races that shipped, re-created in a few lines, each with the lines at which it must be
//! reported, and with the fix after which nothing is; suppressions, seeds, JSON and the exit status.

#![allow(clippy::unwrap_used, reason = "the helpers of tests are tests too")]

use std::collections::BTreeSet;

use crate::common::{Folder, has_glsl};
use serde_json::Value as Json;
use spelter::check::CheckOptions;
use spelter::{Backend, Context, testing};

/// A shader with a race, and how it is run.
struct Case {
    file: &'static str,
    text: &'static str,
    options: &'static str,
    /// Rule and lines of what must be reported, the earlier access first; 0 for a missing one.
    expected: &'static [(&'static str, u64, u64)],
    /// Texts of the file and what the repair that is reported makes of them; none if it is more than a change of lines.
    fix: &'static [(&'static str, &'static str)],
    /// A repair that must be reported.
    repair: Option<&'static str>,
}

const RAW: &str = "SPELTER-RACE-RAW";
const WAW: &str = "SPELTER-RACE-WAW";
const WAR: &str = "SPELTER-RACE-WAR";
const BARRIER: &str = "SPELTER-BARRIER";

/// In WGSL; the numbers are those of the collection that the cases come from.
const WGSL: [Case; 7] = [
    Case {
        // linebender/vello, pull request 255
        file: "03.wgsl",
        text: include_str!("races/03-scan-tail.wgsl"),
        options: "--bind 0.0=u32:range:512 --bind 0.1=zeros:2048 --groups 2",
        expected: &[(RAW, 12, 15)],
        fix: &[("// fixed: workgroupBarrier();", "workgroupBarrier();")],
        repair: Some("workgroupBarrier() after the write at 03.wgsl:12:5 and before the read at 03.wgsl:15:25"),
    },
    Case {
        // linebender/vello, pull request 526
        file: "05.wgsl",
        text: include_str!("races/05-loop-war.wgsl"),
        options: "--bind 0.0=u32:range:192 --bind 0.1=zeros:256",
        expected: &[(RAW, 10, 17), (WAR, 17, 10)],
        fix: &[("// fixed: workgroupBarrier(); ", "workgroupBarrier(); //")],
        repair: Some("workgroupBarrier() at the end of the loop, after line 17, before the next iteration"),
    },
    Case {
        // bevyengine/bevy, pull request 13283, with a plain array
        file: "07.wgsl",
        text: include_str!("races/07-wrong-class.wgsl"),
        options: "--bind 0.0=u32:range:64 --bind 0.1=zeros:256 --groups 2",
        expected: &[(RAW, 7, 9)],
        fix: &[("storageBarrier();  ", "storageBarrier(); workgroupBarrier();  ")],
        repair: Some("workgroupBarrier() in addition to the barrier at 07.wgsl:8:3"),
    },
    Case {
        // The same as it shipped: only atomics conflict, and the wrong barrier makes the invocations wait all the same
        file: "07-original.wgsl",
        text: include_str!("races/07-original.wgsl"),
        options: "--bind 0.0=u32:range:512 --bind 0.1=zeros:256 --groups 2",
        expected: &[],
        fix: &[],
        repair: None,
    },
    Case {
        // JolifantoBambla/webgpu-spd, issue 7: no barrier of WGSL orders memory between workgroups
        file: "13.wgsl",
        text: include_str!("races/13-last-group.wgsl"),
        options: "--bind 0.0=u32:range:512 --bind 0.1=zeros:32 --bind 0.2=zeros:4 --bind 0.3=zeros:256 --groups 8",
        expected: &[(RAW, 14, 20)],
        fix: &[],
        repair: Some("two dispatches"),
    },
    Case {
        // sotrh/learn-wgpu, pull request 634
        file: "15.wgsl",
        text: include_str!("races/15-odd-even.wgsl"),
        options: "--bind 0.0=u32:random:2048:1 --groups 16",
        expected: &[(RAW, 6, 9), (WAR, 6, 9), (WAW, 6, 9)],
        fix: &[],
        repair: Some("two dispatches"),
    },
    Case {
        // microsoft/onnxruntime, pull request 23663
        file: "19.wgsl",
        text: include_str!("races/19-tile-war.wgsl"),
        options: "--bind 0.0=u32:range:256 --bind 0.1=zeros:512 --groups 2",
        expected: &[(RAW, 8, 10), (WAR, 10, 8)],
        fix: &[("// fixed: workgroupBarrier();", "workgroupBarrier();")],
        repair: Some("workgroupBarrier() at the end of the loop, after line 10, before the next iteration"),
    },
];

/// In GLSL, which a compiler of the system translates.
const GLSL: [Case; 5] = [
    Case {
        // SaschaWillems/Vulkan, issue 374
        file: "01.comp",
        text: include_str!("races/01-nbody-raw.comp"),
        options: "--bind 0.0=f32:range:1024 --bind 0.1=zeros:4096 --groups 4",
        expected: &[(RAW, 8, 10), (WAR, 10, 8)],
        fix: &[("memoryBarrierShared(); ", "memoryBarrierShared(); barrier(); ")],
        repair: Some("barrier() after the write at 01.comp:8 and before the read at 01.comp:10"),
    },
    Case {
        // ggml-org/llama.cpp, pull request 17887: the race makes control flow diverge, so barriers are reported, too
        file: "09.comp",
        text: include_str!("races/09-skip-path.comp"),
        options: "--bind 0.0=@mask.bin --bind 0.1=zeros:512",
        expected: &[(RAW, 20, 14), (RAW, 20, 22), (WAR, 14, 20), (WAR, 22, 20), (BARRIER, 17, 21), (BARRIER, 0, 21)],
        fix: &[("// fixed: + barrier();", "barrier();")],
        repair: Some("barrier() after the read at 09.comp:14 and before the write at 09.comp:20"),
    },
    Case {
        // ggml-org/ggml, pull request 951
        file: "11.comp",
        text: include_str!("races/11-divergent.comp"),
        options: "--bind 0.0=u32:range:100 --push u32:100",
        expected: &[(BARRIER, 0, 10)],
        fix: &[
            ("if (c >= columns) return; ", "if (c < columns)  "),
            ("  data[c] = row", "  if (c < columns) data[c] = row"),
        ],
        repair: Some(
            "instead of the return at 11.comp:8, put the code before the barrier and the code after it each into an `if`",
        ),
    },
    Case {
        // godotengine/godot, issue 94820
        file: "21.comp",
        text: include_str!("races/21-return-then-loop.comp"),
        options: "--bind 0.0=zeros:1024 --push u32:12,12 --groups 2,2",
        expected: &[(BARRIER, 0, 13), (BARRIER, 0, 15)],
        fix: &[
            ("if (any(greaterThanEqual(p, size))) return;", "bool is_in = all(lessThan(p, size));"),
            ("    near[l] =", "    if (is_in) near[l] ="),
            ("    sum +=", "    if (is_in) sum +="),
            ("  cells[p", "  if (is_in) cells[p"),
        ],
        repair: Some("a condition around the code between the barriers in place of the return at 21.comp:9"),
    },
    Case {
        // ggml-org/llama.cpp, pull request 27008: a reviewer suspected a race, and there is none
        file: "35.comp",
        text: include_str!("races/35-review-suspected.comp"),
        options: "--bind 0.0=f32:range:512 --bind 0.1=zeros:4",
        expected: &[],
        fix: &[],
        repair: None,
    },
];

/// Rule and lines of each finding.
fn lines(object: &Json) -> BTreeSet<(String, u64, u64)> {
    let line = |access: &Json| access["line"].as_u64().unwrap_or(0);
    let findings = object["findings"].as_array().unwrap();
    let of = |finding: &Json| {
        (finding["id"].as_str().unwrap().to_owned(), line(&finding["first"]), line(&finding["second"]))
    };
    findings.iter().map(of).collect()
}

/// Runs a checked shader with an exit status that depends on whether there are errors.
fn checked(folder: &Folder, line: &str, errors: bool) -> Json {
    let ended = folder.spelter(&format!("{line} --check --json"));
    assert_eq!(ended.status, if errors { 66 } else { 0 }, "{line}\n{}{}", ended.stdout, ended.stderr);
    serde_json::from_str(&ended.stdout).unwrap()
}

fn decide(test: &str, cases: &[Case]) {
    let folder = Folder::new(test);
    let mask: Vec<u8> = (0..512).flat_map(|at| if at < 384 { 1f32 } else { -1f32 }.to_le_bytes()).collect();
    folder.write("mask.bin", &mask);
    for (backend, Case { file, text, options, expected, fix, repair }) in
        Backend::available().flat_map(|backend| cases.iter().map(move |case| (backend, case)))
    {
        let options = format!("{options} --backend {backend}");
        folder.write(file, text.as_bytes());
        let found = checked(&folder, &format!("run {file} {options}"), !expected.is_empty());
        if let Some(repair) = repair {
            let text = found["findings"].to_string();
            assert!(text.contains(repair), "{file}: {repair}\n{text}");
        }
        let found = lines(&found);
        let expected = expected.iter().map(|&(rule, first, second)| (rule.to_owned(), first, second)).collect();
        assert_eq!(found, expected, "{file}, {backend}");
        if !fix.is_empty() {
            let fixed = fix.iter().fold((*text).to_owned(), |text, (from, to)| {
                assert!(text.contains(from), "{file}: {from}");
                text.replace(from, to)
            });
            folder.write(&format!("fixed-{file}"), fixed.as_bytes());
            let line = format!("run fixed-{file} {options}");
            assert_eq!(lines(&checked(&folder, &line, false)), BTreeSet::new(), "{file}, fixed, {backend}");
        }
    }
}

#[test]
fn races_that_shipped_are_reported_at_their_lines_and_their_fixes_are_silent() {
    decide("check-wgsl", &WGSL);
}

#[test]
fn races_that_shipped_in_glsl_are_reported_at_their_lines() {
    if has_glsl() {
        decide("check-glsl", &GLSL);
    }
}

/// What races between workgroups in WGSL, repaired as the reports say: the two parts are dispatches of their own.
#[test]
fn two_dispatches_silence_races_between_workgroups() -> Result<(), spelter::Error> {
    let context = Context::builder().check(CheckOptions::default()).build()?;
    let _denied = testing::deny_findings(&context);
    let program = |text: &str, entry: &str| context.program(text).entry(entry).build();
    let sums = include_str!("races/13-two-dispatches.wgsl");
    let source = context.buffer_from(&Vec::from_iter(0..512u32))?;
    let (partial, sum) = (context.buffer_zeroed(32)?, context.buffer_zeroed(256)?);
    context.dispatch(&program(sums, "parts")?).bind(0, 0, &source).bind(0, 1, &partial).groups([8, 1, 1])?;
    context.dispatch(&program(sums, "total")?).bind(0, 1, &partial).bind(0, 3, &sum).groups([1, 1, 1])?;
    assert_eq!(context.read::<u32>(&sum)?.iter().sum::<u32>(), (0..512).sum::<u32>());
    let sort = include_str!("races/15-two-dispatches.wgsl");
    let data = context.buffer_from(&Vec::from_iter((0..64u32).rev()))?;
    for _ in 0..32 {
        for entry in ["odd", "even"] {
            context.dispatch(&program(sort, entry)?).bind(0, 0, &data).groups([1, 1, 1])?;
        }
    }
    assert_eq!(context.read::<u32>(&data)?, Vec::from_iter(0..64));
    Ok(())
}

/// gfx-rs/wgpu, issue 8805: the module has the Vulkan memory model, but none of the flags by which it orders anything.
#[test]
fn a_module_of_the_vulkan_memory_model_without_its_flags_races() {
    let text = include_str!("races/17-no-flags.spvasm");
    let folder = Folder::with("check-no-flags", "17.spvasm", text);
    let run_as = |profile: &str, file: &str, status: i32| {
        let ended = folder.spelter(&format!("run {file} --bind 0.0=zeros:256 --check={profile} --json"));
        assert_eq!(ended.status, status, "{}{}", ended.stdout, ended.stderr);
        let found: Json = serde_json::from_str(&ended.stdout).unwrap();
        (lines(&found), found["findings"].to_string())
    };
    let run = |file: &str, status: i32| run_as("spec", file, status);
    let (found, text_of) = run("17.spvasm", 66);
    assert_eq!(found, [(RAW.to_owned(), 37, 41)].into());
    assert!(text_of.contains("neither access carries NonPrivatePointer"), "{text_of}");
    for operands in ["NonPrivatePointer | MakePointerAvailable (", "NonPrivatePointer | MakePointerVisible ("] {
        assert!(text_of.contains(operands), "{text_of}");
    }
    // `common` takes the accesses for non-private ones, but the barrier makes nothing available.
    let (found, text_of) = run_as("common", "17.spvasm", 66);
    assert_eq!(found, [(RAW.to_owned(), 37, 41)].into());
    let barrier = "an OpControlBarrier (Workgroup, AcquireRelease | WorkgroupMemory | MakeAvailable | MakeVisible)";
    assert!(text_of.contains(barrier), "{text_of}");
    let with_flags = text.replace("%semantics = OpConstant %u32 264", "%semantics = OpConstant %u32 24840");
    folder.write("flags.spvasm", with_flags.as_bytes());
    assert_eq!(run_as("common", "flags.spvasm", 0).0, [("SPELTER-NOTE".to_owned(), 37, 41)].into());
    // The second repair that is printed.
    let fixed = text
        .replace("OpStore %own %l", "OpStore %own %l MakePointerAvailable|NonPrivatePointer %two")
        .replace("OpLoad %u32 %theirs", "OpLoad %u32 %theirs MakePointerVisible|NonPrivatePointer %two");
    folder.write("fixed.spvasm", fixed.as_bytes());
    assert_eq!(run("fixed.spvasm", 0).0, BTreeSet::new());
}

#[test]
fn a_report_quotes_both_lines() {
    let folder = Folder::with("check-text", "07.wgsl", include_str!("races/07-wrong-class.wgsl"));
    let ended = folder
        .spelter("run 07.wgsl --bind 0.0=u32:range:64 --bind 0.1=zeros:256 --groups 2 --out 0.1=u32:0..1 --check");
    assert_eq!(ended.status, 66);
    assert!(ended.stdout.starts_with("0.1 u32"), "{}", ended.stdout);
    for part in [
        "error[SPELTER-RACE-RAW]: data race (read after write) in workgroup variable `plain`, bytes 4..8",
        "07.wgsl:9:24",
        "7 │   if l < 64u { plain[l] = src[l]; }",
        "- write by workgroup (0, 0, 0), invocation (1, 0, 0)",
        "^ read by workgroup (0, 0, 0), invocation (0, 0, 0)",
        "= because both invocations wait at the barrier at 07.wgsl:8:3, but it does not cover workgroup variables",
        "= repair: workgroupBarrier() in addition to the barrier at 07.wgsl:8:3",
        "note: checked: 1 error",
    ] {
        assert!(ended.stderr.contains(part), "{part}\n{}", ended.stderr);
    }
    assert!(!ended.stderr.contains('\x1b'));
}

#[test]
fn known_findings_are_suppressed() {
    let folder = Folder::with("check-suppress", "05.wgsl", include_str!("races/05-loop-war.wgsl"));
    let line = "run 05.wgsl --bind 0.0=u32:range:192 --bind 0.1=zeros:256";
    let found = checked(&folder, &format!("{line} --suppress rule:*-WAR"), true);
    assert_eq!((lines(&found).len(), &found["suppressed"]), (1, &1.into()));
    for suppress in ["line:05.wgsl:17", "memory:*`count`", "kernel:main", "rule:SPELTER-RACE-*"] {
        let found = checked(&folder, &format!("{line} --suppress {suppress}"), false);
        assert_eq!((lines(&found).len(), &found["suppressed"]), (0, &2.into()), "{suppress}");
    }
    folder.write("known.txt", b"# the loop\nline:*.wgsl:17:*  # both\n");
    checked(&folder, &format!("{line} --suppressions known.txt"), false);
    folder.write("known.txt", b"\nnonsense\n");
    let error = folder.error(&format!("{line} --check --suppressions known.txt"));
    assert!(error.starts_with("known.txt: line 2: a suppression is rule:"), "{error}");
    assert!(folder.usage(&format!("{line} --check --suppress nonsense")).contains("a suppression is rule:"));
}

/// Only atomics conflict, so there is no race; which invocation is first depends on the order.
const ORDER: &str = "
@group(0) @binding(0) var<storage, read_write> first: atomic<u32>;
@compute @workgroup_size(64) fn main(@builtin(local_invocation_index) l: u32) {
    atomicCompareExchangeWeak(&first, 0u, l + 1u);
}";

#[test]
fn a_result_that_depends_on_the_order_is_reported() {
    let folder = Folder::with("check-order", "order.wgsl", ORDER);
    let found = checked(&folder, "run order.wgsl --bind 0.0=zeros:4 --many-seeds 8", false);
    assert_eq!(lines(&found), BTreeSet::new());
    let text = found["depends_on_order"].as_str().unwrap();
    assert!(
        text.starts_with("the result depends on the order: 0.0 (first) differs at byte 0 with --schedule random:"),
        "{text}"
    );
    let found = checked(&folder, "run order.wgsl --bind 0.0=zeros:4", false);
    assert!(found["depends_on_order"].is_null());
}

#[test]
fn the_exit_status_and_the_profile_are_options() {
    let folder = Folder::with("check-options", "03.wgsl", include_str!("races/03-scan-tail.wgsl"));
    let line = "run 03.wgsl --bind 0.0=u32:range:512 --bind 0.1=zeros:2048 --groups 2";
    assert_eq!(folder.spelter(&format!("{line} --check=spec --error-exitcode 7")).status, 7);
    assert_eq!(folder.spelter(&format!("{line} --check=spec --error-exitcode 0")).status, 0);
    assert!(folder.usage(&format!("{line} --check=vague")).contains("is not a profile: common, spec or strict"));
    assert!(folder.usage(&format!("{line} --many-seeds 2")).contains("--check"));
}

#[test]
fn a_race_is_written_as_a_litmus_test_that_has_it() {
    let folder = Folder::with("check-litmus", "05.wgsl", include_str!("races/05-loop-war.wgsl"));
    let line = "run 05.wgsl --bind 0.0=u32:range:192 --bind 0.1=zeros:256 --check --litmus race.test --sarif a.sarif";
    let ended = folder.spelter(line);
    assert_eq!(ended.status, 66, "{}", ended.stderr);
    for name in ["race.test", "race-2.test"] {
        let decided = folder.spelter(&format!("litmus {name}"));
        assert!(decided.status == 0 && decided.stdout.contains("RACY"), "{}{}", decided.stdout, decided.stderr);
        assert!(ended.stderr.contains(&format!("note: {name}: data race (")), "{}", ended.stderr);
    }
    let sarif: Json = serde_json::from_slice(&folder.read("a.sarif")).unwrap();
    let results = sarif["runs"][0]["results"].as_array().unwrap();
    let region = &results[0]["locations"][0]["physicalLocation"]["region"];
    assert_eq!((results.len(), &region["startLine"]), (2, &17.into()), "{sarif}");
    let text = String::from_utf8(folder.read("race.test")).unwrap();
    assert!(text.contains("// thread 0, operation 1: the write at 05.wgsl:10:7\n"), "{text}");
    assert!(folder.usage("run 05.wgsl --sarif a.sarif").contains("--check"));
    assert!(folder.usage("run 05.wgsl --check --litmus a.litmus").contains("must end in .test"));
}

#[test]
fn races_that_litmus_tests_cannot_express_are_counted() {
    // A component overlaps a part of the vector.
    let text = "enable f16;
@group(0) @binding(0) var<storage, read_write> o: array<vec3<f16>>;
@compute @workgroup_size(64) fn main(@builtin(local_invocation_index) i: u32) {
  o[i] = vec3<f16>(1.0h);
  o[(i + 1u) % 64u].y = 1.0h;
}
";
    let folder = Folder::with("check-unwritable", "part.wgsl", text);
    let ended = folder.spelter("run part.wgsl --bind 0.0=zeros:512 --check --litmus race.test");
    assert_eq!(ended.status, 66, "{}", ended.stderr);
    assert!(
        ended.stderr.contains("note: race.test: not written, since the format cannot express the"),
        "{}",
        ended.stderr
    );
    assert!(ended.stderr.contains("it has no accesses that share only a part of their bytes"), "{}", ended.stderr);
}

#[test]
fn rules_and_dispatches_are_chosen() {
    let folder = Folder::with("check-only", "05.wgsl", include_str!("races/05-loop-war.wgsl"));
    let line = "run 05.wgsl --bind 0.0=u32:range:192 --bind 0.1=zeros:256";
    let found = checked(&folder, &format!("{line} --only RACE-WAR"), true);
    assert_eq!((lines(&found), &found["suppressed"]), (BTreeSet::from([(WAR.to_owned(), 17, 10)]), &0.into()));
    checked(&folder, &format!("{line} --only BARRIER,NOTE"), false);
    assert!(folder.usage(&format!("{line} --check --only nonsense")).contains("is not a rule; the rules are"));
    // Some of eight dispatches are in one half, the others in the other.
    let halves = ["1/2", "2/2"].map(|shard| {
        let found = checked(&folder, &format!("{line} --repeat 8 --shard {shard}"), true);
        let count = |name: &str| found["checked"][name].as_u64().unwrap();
        assert_eq!(count("dispatches") + count("skipped"), 8);
        count("dispatches")
    });
    assert_eq!(halves[0] + halves[1], 8);
}

#[test]
fn what_is_not_checked_is_reported() {
    // The workgroups have 64 words each, which they update.
    let folder = Folder::with("check-memory", "15.wgsl", include_str!("races/15-odd-even.wgsl"));
    let line = "run 15.wgsl --bind 0.0=u32:random:200000:1 --groups 3000";
    let ended = folder.spelter(&format!("{line} --check --check-memory 320K"));
    assert!(ended.stderr.contains("accesses were not checked, since the shadow"), "{}", ended.stderr);
    let line = "run 15.wgsl --bind 0.0=u32:random:2048:1 --groups 16";
    let whole = checked(&folder, line, true);
    assert_eq!(whole["checked"]["accesses_not_checked"], 0);
    assert_eq!((&whole["checked"]["dispatches"], &whole["checked"]["undecided"]), (&1.into(), &0.into()));
}

/// The first subgroup reads what the second one writes later, without a barrier.
const READ_FIRST: &str = "
@group(0) @binding(0) var<storage, read_write> to: array<u32>;
var<workgroup> t: array<u32, 32>;
@compute @workgroup_size(32) fn main(@builtin(local_invocation_index) i: u32) {
    to[i] = t[31u - i];
    t[i] = i;
}";

#[test]
fn a_reason_names_the_accesses_in_their_order_and_suppressions_take_short_names() {
    let folder = Folder::with("check-reason", "order.wgsl", READ_FIRST);
    let line = "run order.wgsl --bind 0.0=zeros:128 --check";
    let ended = folder.spelter(line);
    assert_eq!(ended.status, 66, "{}", ended.stderr);
    let reason = "because nothing orders the read at order.wgsl:5:13 before the write at order.wgsl:6:5";
    assert!(ended.stderr.contains(reason), "{}", ended.stderr);
    for suppression in ["memory:t", "memory:*`t`", "rule:RACE-*", "rule:SPELTER-RACE-*", "line:order.wgsl:6"] {
        let ended = folder.spelter(&format!("{line} --suppress {suppression}"));
        assert_eq!(ended.status, 0, "{suppression}\n{}", ended.stderr);
    }
    assert_eq!(folder.spelter(&format!("{line} --suppress memory:to")).status, 66);
}
