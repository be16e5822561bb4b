//! What `spelter test --check` may not report as a success: what was not checked, what has changed since, what another
//! order hides.

use serde_json::Value as Json;

use crate::common::{Folder, has_glsl};
use crate::corpus::{FRAGMENT, IMAGE, RACY, RIGHT};

#[test]
fn results_are_of_the_files_that_a_file_names() {
    let folder = Folder::new("green_contents");
    let changed = |line: &str| {
        let message = folder.error(line);
        assert!(message.contains("the scripts or shaders have changed since"), "{message}");
    };
    let script = "#!amber
SHADER compute s SPIRV-ASM
OpCapability Shader
OpMemoryModel Logical GLSL450
OpEntryPoint GLCompute %main \"main\"
OpExecutionMode %main LocalSize 1 1 1
%void = OpTypeVoid
%fn = OpTypeFunction %void
%main = OpFunction %void None %fn
%entry = OpLabel
OpReturn
OpFunctionEnd
END
BUFFER b DATA_TYPE uint8 SIZE 4 FILE BINARY data.bin
PIPELINE compute p
  ATTACH s
END
RUN p 1 1 1
EXPECT b IDX 0 EQ 1 2 3 4
";
    folder.write("a.amber", script.as_bytes());
    folder.write("data.bin", &[1, 2, 3, 4]);
    let line = "test a.amber --results a.jsonl";
    assert_eq!(folder.spelter(line).status, 0, "{}", folder.spelter("test a.amber").stdout);
    assert_eq!(folder.spelter(line).status, 0);
    folder.write("data.bin", &[1, 2, 3, 5]);
    changed(line);
    if has_glsl() {
        folder
            .write("a.comp", b"#version 450\n#extension GL_GOOGLE_include_directive : require\n#include \"body.h\"\n");
        let body = "layout(local_size_x = 4) in; layout(binding = 0) buffer B { uint d[]; };";
        folder.write("body.h", format!("{body} void main() {{ d[gl_GlobalInvocationID.x] = 1; }}").as_bytes());
        let line = "test a.comp --check --results b.jsonl";
        assert_eq!(folder.spelter(line).status, 0, "{}", folder.spelter("test a.comp --check").stdout);
        folder.write("body.h", format!("{body} void main() {{ d[0] = gl_GlobalInvocationID.x; }}").as_bytes());
        changed(line);
    }
}

/// Workgroup 0 waits for workgroup 1, so that only some orders end; both write a word.
const WAITS: &str = "@group(0) @binding(0) var<storage, read_write> flag: atomic<u32>;
@group(0) @binding(1) var<storage, read_write> word: u32;
@compute @workgroup_size(1) fn main(@builtin(workgroup_id) id: vec3u) {
    if id.x == 1u { word = 1u; atomicStore(&flag, 1u); return; }
    loop { if atomicLoad(&flag) == 1u { break; } }
    word = 2u;
}
";

#[test]
fn an_order_that_hangs_hides_no_race_of_others() {
    let folder = Folder::with("green_hang", "waits.wgsl", WAITS);
    folder.write("all.launches", b"waits.wgsl --groups 2 --bind 0.0=zeros:4 --bind 0.1=zeros:4\n");
    let ended = folder.spelter("test all.launches --check --many-seeds 6 --time-limit 1");
    assert_eq!(ended.status, 1, "{}{}", ended.stdout, ended.stderr);
    assert!(ended.stdout.contains("FAIL  all.launches:1 waits.wgsl\n"), "{}", ended.stdout);
    assert!(ended.stdout.contains("error[SPELTER-RACE-WAW]"), "{}", ended.stdout);
    assert!(ended.stderr.contains("note: checked: 1 error"), "{}", ended.stderr);
}

#[test]
fn variables_are_those_of_other_commands() {
    let folder = Folder::with("green_variables", "racy.wgsl", RACY);
    let ended = folder.with_environment("test racy.wgsl", &[("SPELTER_CHECK", "1")]);
    assert_eq!(ended.status, 66, "{}{}", ended.stdout, ended.stderr);
    let ended = folder.with_environment("test racy.wgsl", &[("SPELTER_CHECK", "mmx")]);
    assert!(ended.status == 2 && ended.stderr.contains("SPELTER_CHECK"), "{}", ended.stderr);
    for line in ["test racy.wgsl --check", "run racy.wgsl --bind 0.0=zeros:4 --check", "check"] {
        let command = if line == "check" { " -- true" } else { "" };
        let line = format!("{line} --many-seeds 2{command}");
        let ended = folder.with_environment(&line, &[("SPELTER_SCHEDULE", "random:9")]);
        assert_eq!(ended.status, 2, "{line}: {}", ended.stderr);
        assert!(ended.stderr.contains("it cannot be used with SPELTER_SCHEDULE"), "{}", ended.stderr);
    }
}

#[test]
fn what_did_not_run_was_not_checked() {
    let folder = Folder::with("green_skipped", "image.wgsl", IMAGE);
    folder.write("fragment.wgsl", FRAGMENT.as_bytes());
    folder.write("right.wgsl", RIGHT.as_bytes());
    folder.write("broken.wgsl", b"fn main( {\n");
    folder.write("two.wgsl", format!("{IMAGE}@compute @workgroup_size(1) fn empty() {{}}\n").as_bytes());
    folder.write("named.launches", b"'of checked mode.wgsl'\n");
    folder.write("of checked mode.wgsl", b"fn main( {\n");
    let nothing = "note: checked: no kernel ran\n";
    let partial = "note: checked: no data race was observed in what was checked\n";
    for (line, status, note) in [
        ("image.wgsl", 67, nothing),
        ("image.wgsl --allow-unchecked", 0, nothing),
        ("fragment.wgsl", 0, nothing),
        ("broken.wgsl", 1, nothing),
        ("no.wgsl", 1, nothing),
        ("named.launches", 1, nothing),
        ("two.wgsl", 67, partial),
        ("right.wgsl --groups 0", 67, partial),
        ("right.wgsl", 0, "note: checked: no data race was observed\n"),
    ] {
        let ended = folder.spelter(&format!("test --check {line}"));
        assert_eq!(ended.status, status, "{line}: {}{}", ended.stdout, ended.stderr);
        assert!(ended.stderr.contains(note), "{line}: {}", ended.stderr);
    }
    let ended = folder.spelter("test --check right.wgsl --groups 0 --json");
    let value: Json = serde_json::from_str(&ended.stdout).unwrap();
    let script = &value["scripts"][0];
    assert_eq!((&script["partial"], &script["reason"]), (&true.into(), &"no invocation ran: --groups has a 0".into()));
}

#[test]
fn findings_that_are_not_shown_are_counted() {
    let folder = Folder::with("green_filter", "racy.wgsl", RACY);
    let ended = folder.spelter("test racy.wgsl --check --only BARRIER");
    assert_eq!(ended.status, 0, "{}{}", ended.stdout, ended.stderr);
    let note = "note: checked: none of the rules of --only was broken, 1 finding not shown (--only)\n";
    assert_eq!(ended.stderr, note);
    let value = folder.spelter("test racy.wgsl --check --suppress rule:*WAW --json");
    let value: Json = serde_json::from_str(&value.stdout).unwrap();
    let script = &value["scripts"][0];
    assert_eq!(
        [&script["suppressed"], &script["not_shown"], &script["by_check"]],
        [&1.into(), &0.into(), &Json::Bool(false)]
    );
}

/// The jobs of a huge array need no memory.
#[test]
fn a_mistyped_number_of_seeds_is_only_slow() {
    let folder = Folder::with("green_huge", "right.wgsl", RIGHT);
    let line = "test right.wgsl --check --many-seeds 4000000000 --shard 1/4000000000 --results one.jsonl";
    assert_eq!(folder.spelter(line).status, 0);
    let merged = folder.spelter("merge one.jsonl");
    assert_eq!(merged.status, 1);
    assert!(merged.stderr.starts_with("error: 3999999999 of 4000000000 jobs are missing: "), "{}", merged.stderr);
}
