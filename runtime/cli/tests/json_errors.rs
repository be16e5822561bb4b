//! Failures of commands with `--json`: an object on standard output, where programs read, and the message on standard
//! error; what a shader of another stage is, and standard input that is named twice.

use std::io::Write;
use std::process::{Command, Stdio};

use serde_json::Value as Json;

use crate::common::{Ended, Folder};

const DOUBLE: &str = "@group(0) @binding(0) var<storage, read_write> d: array<u32>;
@compute @workgroup_size(64) fn main(@builtin(global_invocation_id) id: vec3u) { d[id.x] = d[id.x] * 2u; }
";

#[test]
fn failures_are_objects() {
    let folder = Folder::with("json-errors", "double.wgsl", DOUBLE);
    folder.write("broken.wgsl", b"fn main( {}\n");
    folder.write("no.jsonl", b"nothing\n");
    for (line, status, file) in [
        ("bench broken.wgsl --json", 4, Json::from("broken.wgsl")),
        ("bench double.wgsl --json --bind 0.7=zeros:4", 5, "double.wgsl".into()),
        ("profile broken.wgsl --json", 4, "broken.wgsl".into()),
        ("compile broken.wgsl --json", 4, "broken.wgsl".into()),
        ("compile none.wgsl --json", 1, "none.wgsl".into()),
        ("reflect broken.wgsl --json", 4, "broken.wgsl".into()),
        ("merge no.jsonl --json", 1, "no.jsonl".into()),
        ("merge no.jsonl none.jsonl --json", 1, Json::Null),
        ("test nothing --results none/r.jsonl --json", 1, "nothing".into()),
        ("run broken.wgsl --json", 4, "broken.wgsl".into()),
        ("trace summary none.json --json", 1, "none.json".into()),
    ] {
        let ended = folder.spelter(line);
        assert_eq!(ended.status, status, "{line}\n{}", ended.stderr);
        assert_eq!(ended.stdout.lines().count(), 1, "{line}\n{}", ended.stdout);
        let object: Json = serde_json::from_str(&ended.stdout).unwrap();
        let message = ended.stderr.strip_prefix("error: ").unwrap_or_else(|| panic!("{line}\n{}", ended.stderr));
        assert_eq!((object["error"].as_str(), &object["file"]), (Some(message.trim_end()), &file), "{line}");
    }
}

/// So is wrong usage, also that which clap finds, and a variable of the environment that is wrong.
#[test]
fn wrong_usage_is_an_object() {
    let folder = Folder::with("json-usage", "double.wgsl", DOUBLE);
    let object = |ended: &Ended| {
        assert_eq!((ended.status, ended.stdout.lines().count()), (2, 1), "{}{}", ended.stdout, ended.stderr);
        let object: Json = serde_json::from_str(&ended.stdout).unwrap();
        let message = ended.stderr.strip_prefix("error: ").unwrap_or_else(|| panic!("{}", ended.stderr));
        assert_eq!(object["error"].as_str(), Some(message.trim_end()));
        object
    };
    for line in [
        "run double.wgsl --json --bogus",
        "run --json",
        "--color never run double.wgsl --groups x --json",
        "test --json",
        "merge --json",
        "info --json --workers 0",
        "trace summary --json",
        "litmus --json --events x",
        "profile --json --repeat 0 double.wgsl",
    ] {
        let ended = folder.spelter(line);
        assert!(object(&ended)["file"].is_null(), "{line}");
    }
    for line in ["run double.wgsl --json", "bench double.wgsl --json", "info --json"] {
        let mut command = Command::new(env!("CARGO_BIN_EXE_spelter"));
        command.current_dir(folder.path()).args(line.split(' ')).env("SPELTER_WORKERS", "none");
        let ended = Ended::from(command.output().unwrap());
        assert!(object(&ended)["error"].as_str().unwrap().contains("SPELTER_WORKERS"), "{line}");
    }
    // Standard output is the program's there, and the last ones do not ask for JSON.
    for line in ["exec --bogus --json -- true", "check --bogus --json x -- true", "run double.wgsl --bogus", "--json"] {
        let ended = folder.spelter(line);
        assert_eq!((ended.status, ended.stdout.as_str()), (2, ""), "{line}");
    }
}

/// The object of a command that has one says what failed.
#[test]
fn there_is_one_object() {
    let folder =
        Folder::with("json-one", "a.amber", "#!amber\nBUFFER b DATA_TYPE uint32 DATA 7 END\nEXPECT b IDX 0 EQ 8\n");
    let ended = folder.spelter("test a.amber --json");
    assert_eq!((ended.status, ended.stdout.lines().count()), (1, 1), "{}", ended.stdout);
    folder.good("litmus --generate --events 2 --count 100 --shard 1/2 --results r.jsonl");
    let ended = folder.spelter("merge r.jsonl --json");
    assert_eq!((ended.status, ended.stdout.lines().count()), (1, 1), "{}", ended.stdout);
}

#[test]
fn only_one_thing_is_standard_input() {
    let folder = Folder::new("json-stdin");
    let run = |line: &str| {
        let mut command = Command::new(env!("CARGO_BIN_EXE_spelter"));
        command.current_dir(folder.path()).args(line.split(' ')).stdin(Stdio::piped());
        let mut process = command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
        // It may end before it has read all.
        let _ = process.stdin.take().unwrap().write_all(DOUBLE.as_bytes());
        Ended::from(process.wait_with_output().unwrap())
    };
    let good = run("run - --bind 0.0=u32:4 --out 0.0=u32");
    assert_eq!((good.status, good.stdout.as_str()), (0, "0.0 u32  8\n"), "{}", good.stderr);
    for line in ["run - --bind 0.0=@-", "run - -", "bench - --bind 0.0=@-"] {
        let ended = run(line);
        assert_eq!(ended.status, 2, "{line}: {}", ended.stderr);
    }
}

#[test]
fn shaders_of_other_stages_are_rejected() {
    let folder = Folder::new("json-stages");
    folder.write("a.wgsl", b"@fragment fn main() -> @location(0) vec4f { return vec4f(); }\n");
    folder.write("b.vert", b"#version 450\nvoid main() {}\n");
    folder.write("c.spvasm", FRAGMENT.as_bytes());
    for line in
        ["run a.wgsl", "run b.vert", "run c.spvasm", "run a.wgsl --entry main", "compile a.wgsl", "reflect a.wgsl"]
    {
        let ended = folder.spelter(line);
        assert_eq!(ended.status, 4, "{line}: {}", ended.stderr);
        let text = "the shader has no compute entry point: Spelter runs compute shaders only";
        assert!(ended.stderr.contains(text), "{line}: {}", ended.stderr);
        assert!(ended.stderr.contains("`@compute @workgroup_size(…)`"), "{line}: {}", ended.stderr);
    }
}

const FRAGMENT: &str = r#"
OpCapability Shader
OpMemoryModel Logical GLSL450
OpEntryPoint Fragment %main "main"
OpExecutionMode %main OriginUpperLeft
%void = OpTypeVoid
%function = OpTypeFunction %void
%main = OpFunction %void None %function
%entry = OpLabel
OpReturn
OpFunctionEnd
"#;

#[test]
fn what_is_saved_beyond_the_default_workgroup_is_noted() {
    let folder = Folder::with("json-save", "double.wgsl", DOUBLE);
    let text = "@group(0) @binding(0) var to: texture_storage_2d<rgba8unorm, write>;
        @compute @workgroup_size(8, 8) fn main(@builtin(global_invocation_id) id: vec3u) {
            textureStore(to, id.xy, vec4(1.0)); }";
    folder.write("fill.wgsl", text.as_bytes());
    for (line, note) in [
        (
            "run fill.wgsl --image to=rgba8unorm:16x16 --save to=out.png",
            "--save 0.0 (to): 256 texels, but only one workgroup of 8x8x1 invocations ran: --invocations or --groups",
        ),
        (
            "run double.wgsl --bind 0.0=zeros:1024 --save 0.0=out.bin",
            "--save 0.0: 256 elements, but only one workgroup of 64x1x1 invocations ran: --invocations or --groups",
        ),
    ] {
        let ended = folder.spelter(line);
        assert_eq!(ended.status, 0, "{line}: {}", ended.stderr);
        assert!(ended.stderr.contains(note), "{line}: {}", ended.stderr);
        folder.good(&format!("{line} --invocations 16,16"));
    }
    folder.good("run double.wgsl --bind 0.0=zeros:256 --save 0.0=out.bin");
}
