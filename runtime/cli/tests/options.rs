//! Options of `spelter run` around its values: names, units, types of output, messages, standard input, colours, GLSL.

#![allow(clippy::unwrap_used, reason = "the helpers of tests are tests too")]

use std::io::Write;
use std::process::{Command, Stdio};

use crate::common::{Ended, Folder};

const PARTICLES: &str = "
struct Particle { position: vec3<f32>, id: u32 }
@group(0) @binding(0) var<storage, read_write> data: array<Particle>;
@group(1) @binding(3) var<uniform> step: vec4<f32>;
@compute @workgroup_size(4)
fn main(@builtin(global_invocation_id) id: vec3<u32>) {
    if id.x < arrayLength(&data) { data[id.x].position += step.xyz; data[id.x].id = id.x; }
}";

const DOUBLE: &str = "
@group(0) @binding(0) var<storage, read_write> data: array<u32>;
@compute @workgroup_size(4)
fn main(@builtin(global_invocation_id) id: vec3<u32>) {
    if id.x < arrayLength(&data) { data[id.x] *= 2u; }
}";

const GLSL: &str = "#version 450
#extension GL_EXT_debug_printf : require
layout(local_size_x = 2) in;
layout(set = 0, binding = 0) buffer Block { uint data[]; };
void main() { debugPrintfEXT(\"%u\", data[gl_LocalInvocationIndex]); data[gl_LocalInvocationIndex] += 1; }
";

/// The message of an invocation, and then a loop that does not end.
const PRINTS: &str = "
OpCapability Shader
OpExtension \"SPV_KHR_non_semantic_info\"
%print = OpExtInstImport \"NonSemantic.DebugPrintf\"
OpMemoryModel Logical GLSL450
OpEntryPoint GLCompute %main \"main\"
OpExecutionMode %main LocalSize 1 1 1
%text = OpString \"value %u\"
%void = OpTypeVoid
%signature = OpTypeFunction %void
%uint = OpTypeInt 32 0
%seven = OpConstant %uint 7
%main = OpFunction %void None %signature
%label = OpLabel
%done = OpExtInst %void %print 1 %text %seven
OpReturn
OpFunctionEnd
";

fn with_input(folder: &str, line: &str, input: &[u8]) -> Ended {
    let path = std::path::Path::new(env!("CARGO_TARGET_TMPDIR")).join(folder);
    let mut command = Command::new(env!("CARGO_BIN_EXE_spelter"));
    command.current_dir(path).args(line.split_whitespace());
    let mut child = command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    child.stdin.take().unwrap().write_all(input).unwrap();
    Ended::from(child.wait_with_output().unwrap())
}

#[test]
fn names_structs_and_vectors() {
    let folder = Folder::with("options-names", "particles.wgsl", PARTICLES);
    let line = "run particles.wgsl --bind data=zeros:32 --uniform step=f32:1,2,3,0";
    let shown = folder.good(&format!("{line} --out data={{vec3f,u32}}"));
    assert_eq!(shown, "0.0 (data) {vec3<f32>, u32}  {(1, 2, 3), 0} {(1, 2, 3), 1}\n");
    let named = folder.json(&format!("{line} --out 0.0={{position:vec3f,id:u32}}:1..2 --json"));
    let values = serde_json::json!([{ "position": [1.0, 2.0, 3.0], "id": 1 }]);
    assert_eq!(named["outputs"][0]["values"], values);
    assert_eq!(
        folder.good(&format!("{line} --out data=vec4u:hex:0..1")),
        "0.0 (data) vec4<u32>  (0x3f800000, 0x40000000, 0x40400000, 0x00000000)\n"
    );
    // JSON has the name and the numbers, as that of `reflect`; messages have the name if the user wrote it.
    let reflected = folder.json("reflect particles.wgsl --json");
    let binding = &reflected["entry_points"][0]["bindings"][0];
    for key in ["set", "binding", "name"] {
        assert_eq!(named["outputs"][0][key], binding[key], "{key}: {named} {binding}");
    }
    assert_eq!((&binding["binding"], &binding["name"]), (&0.into(), &"data".into()));
    for (line, message) in [
        (format!("{line} --out data=u32:8..9"), "--out 0.0 (data): elements 8..9 of a buffer of 8 elements"),
        (format!("{line} --out 0.0=u32:8..9"), "--out 0.0: elements 8..9 of a buffer of 8 elements"),
        (
            format!("{line} --bind step=zeros:16 --bind data=zeros:4"),
            "--bind 1.3 (step): it is a uniform buffer: use --uniform
binding 0.0 (data) is given twice
binding 1.3 (step) is given twice",
        ),
        (
            "run particles.wgsl --bind data=zeros:0 --uniform step=f32:1".to_owned(),
            "--bind 0.0 (data): a buffer needs at least one byte",
        ),
    ] {
        assert_eq!(folder.error(&line), message, "{line}");
    }
    let small = folder.error("run particles.wgsl --bind data=zeros:32 --uniform step=f32:1");
    assert!(small.starts_with("--uniform 1.3 (step): 4 bytes of a buffer of 4 bytes"), "{small}");
    let error = folder.error("run particles.wgsl --bind dat=zeros:32");
    assert_eq!(error, "--bind dat: no variable has that name; there are data (0.0), step (1.3)");
    for (out, part) in [
        ("data={vec3f,u32", "ends with }"),
        ("data=vec9f", "\"vec9f\" is not a type"),
        ("data=u32:octal", "\"octal\" is not a range"),
        ("a.b=u32", "is neither a binding nor the name of a variable"),
    ] {
        let usage = folder.usage(&format!("run particles.wgsl --out {out}"));
        assert!(usage.contains(part), "{out}: {usage}");
    }
}

#[test]
fn units_and_invocations() {
    let folder = Folder::with("options-units", "double.wgsl", DOUBLE);
    let line = "run double.wgsl --bind 0.0=u32:range:2K --out 0.0=u32:1K..1026";
    assert_eq!(folder.good(&format!("{line} --invocations 2K")), "0.0 u32  2048 2050\n");
    let json = folder.json(&format!("{line} --invocations 9,2 --json"));
    assert_eq!(json["groups"], serde_json::json!([3, 2, 1]));
    let ended = folder.spelter(&format!("{line} --invocations 0"));
    assert_eq!(ended.stderr, "note: no invocation ran: --invocations has a 0\n");
    let usage = folder.usage(&format!("{line} --invocations 4 --groups 1"));
    assert!(usage.contains("cannot be used with"), "{usage}");
    for wrong in ["zeros:2X", "zeros:K", "zeros:1.5K"] {
        folder.usage(&format!("run double.wgsl --bind 0.0={wrong}"));
    }
}

#[test]
fn standard_input() {
    let folder = Folder::with("options-stdin", "double.wgsl", DOUBLE);
    let options = "--bind 0.0=u32:4 --out 0.0=u32";
    let good = |input: &[u8]| {
        let ended = with_input("options-stdin", &format!("run - {options}"), input);
        assert_eq!((ended.status, ended.stderr.as_str()), (0, ""));
        ended.stdout
    };
    assert_eq!(good(DOUBLE.as_bytes()), "0.0 u32  8\n");
    let printed = with_input("options-stdin", "run - --json", PRINTS.as_bytes());
    assert_eq!(printed.status, 0, "{}", printed.stderr);
    let words = spelter_shaders::front::spvasm::assemble(PRINTS).unwrap();
    let bytes: Vec<u8> = words.iter().flat_map(|word| word.to_le_bytes()).collect();
    assert_eq!(with_input("options-stdin", "run - --json", &bytes).status, 0);
    let ended = with_input("options-stdin", "run double.wgsl --bind 0.0=@- --out 0.0=u32", &5u32.to_le_bytes());
    assert_eq!((ended.stdout.as_str(), ended.stderr.as_str()), ("0.0 u32  10\n", ""));
    let twice = with_input("options-stdin", "run - --bind 0.0=@-", DOUBLE.as_bytes());
    let message = "error: --bind 0.0: standard input: only one option or file can be `-`\n";
    assert_eq!((twice.status, twice.stderr.as_str()), (2, message));
    assert_eq!(folder.error("run -"), "-: the file is empty");
}

#[test]
fn a_dash_is_no_file_to_write_to() {
    let folder = Folder::with("options-dash", "double.wgsl", DOUBLE);
    for (line, option) in [
        ("run double.wgsl --save 0.0=-", "--save"),
        ("run double.wgsl --trace -", "--trace"),
        ("run double.wgsl --check --sarif -", "--sarif"),
        ("run double.wgsl --check --dot -", "--dot"),
        ("run double.wgsl --check --many-seeds 2 --results -", "--results"),
        ("bench double.wgsl --plot -", "--plot"),
        ("profile double.wgsl --trace -", "--trace"),
        ("profile --save - -- true", "--save"),
        ("exec --trace - -- true", "--trace"),
        ("exec --profile=- -- true", "--profile"),
        ("check --json - -- true", "--json"),
        ("litmus double.wgsl --write-test -", "--write-test"),
        ("litmus double.wgsl --write-repair -", "--write-repair"),
        ("litmus --generate --results -", "--results"),
        ("merge a.jsonl --out -", "--out"),
    ] {
        let usage = folder.usage(line);
        assert!(usage.contains(option) && usage.contains("/dev/stdout is standard output"), "{line}: {usage}");
    }
    assert!(!folder.path().join("-").exists());
}

#[test]
fn messages_and_errors_in_json() {
    let folder = Folder::with("options-json", "prints.spvasm", PRINTS);
    let json = folder.json("run prints.spvasm --json --groups 2");
    let mut messages: Vec<String> = json["messages"].as_array().unwrap().iter().map(|m| m.to_string()).collect();
    messages.sort();
    let expected = [r#"{"invocation":[0,0,0],"text":"value 7"}"#, r#"{"invocation":[1,0,0],"text":"value 7"}"#];
    assert_eq!(messages, expected);
    let ended = folder.spelter("run prints.spvasm --json --bind 0.0=zeros:4");
    let error: serde_json::Value = serde_json::from_str(&ended.stdout).unwrap();
    let message = "--bind 0.0: \"main\" does not use it; it uses no bindings";
    assert_eq!((ended.status, error["error"].as_str()), (5, Some(message)));
    assert_eq!(ended.stderr, format!("error: {message}\n"));
    assert_eq!(error["messages"], serde_json::json!([]));
    // The commands that read a shader or a test without running it.
    folder.write("bad.wgsl", b"nonsense");
    for (line, file, part) in [
        ("reflect bad.wgsl --json", Some("bad.wgsl"), "bad.wgsl: expected global item"),
        ("reflect none.wgsl --json", Some("none.wgsl"), "none.wgsl: No such file"),
        ("litmus bad.wgsl --json", Some("bad.wgsl"), "bad.wgsl: expected global item"),
        ("litmus none.test --json", Some("none.test"), "none.test: "),
        ("litmus none.test other.test --switch x --json", None, "--switch takes NAME=VALUE"),
        ("litmus bad.wgsl --switch x --json", Some("bad.wgsl"), "--switch takes NAME=VALUE"),
    ] {
        let ended = folder.spelter(line);
        let error: serde_json::Value = serde_json::from_str(&ended.stdout).unwrap_or_else(|_| panic!("{line}"));
        assert_eq!(error["file"].as_str(), file, "{line}");
        let text = error["error"].as_str().unwrap();
        assert!(text.starts_with(part), "{line}: {text}");
        assert_eq!(ended.stderr, format!("error: {text}\n"), "{line}");
        assert_ne!(ended.status, 0);
    }
}

#[test]
fn colors() {
    let folder = Folder::with("options-color", "double.wgsl", DOUBLE);
    let line = "run double.wgsl --bind 0.0=u32:3 --out 0.0=u32";
    assert_eq!(folder.good(&format!("{line} --color always")), "\x1b[2m0.0 u32\x1b[0m  6\n");
    assert_eq!(folder.good(&format!("--color never {line}")), "0.0 u32  6\n");
    assert_eq!(folder.good(&format!("{line} --color auto")), "0.0 u32  6\n");
    let error = folder.spelter("run missing.wgsl --color always").stderr;
    assert!(error.starts_with("\x1b[1;31merror\x1b[0m: missing.wgsl"), "{error}");
    // Lines of source have the colours of findings: the frame is blue, marks are red.
    folder.write("bad.wgsl", b"fn f() { a = 1; }");
    let error = folder.spelter("run bad.wgsl --color always").stderr;
    for part in ["\x1b[34m  ┌─\x1b[0m bad.wgsl:1:10", "\x1b[34m1 │\x1b[0m fn f()", "\x1b[31m          ^"] {
        assert!(error.contains(part), "{part:?} is not in {error:?}");
    }
    assert!(!folder.spelter("run bad.wgsl").stderr.contains('\x1b'));
    assert!(folder.usage("info --color blue").contains("[possible values: auto, always, never]"));
}

/// Where a compiler for GLSL is installed.
#[test]
fn glsl() {
    let folder = Folder::with("options-glsl", "add.comp", GLSL);
    let line = "run add.comp --bind Block=u32:1,41 --out 0.0=u32";
    let without = Command::new(env!("CARGO_BIN_EXE_spelter"))
        .current_dir(std::path::Path::new(env!("CARGO_TARGET_TMPDIR")).join("options-glsl"))
        .args(line.split_whitespace())
        .env("PATH", "")
        .output();
    let ended = Ended::from(without.unwrap());
    let message = "error: add.comp: GLSL needs glslc or glslangValidator, and neither is installed: install one";
    assert!(ended.status == 1 && ended.stderr.starts_with(message), "{}", ended.stderr);
    let installed = |tool: &str| Command::new(tool).arg("--version").output().is_ok();
    if !installed("glslc") && !installed("glslangValidator") {
        assert!(folder.error(line).contains("neither is installed"));
        return;
    }
    let json = folder.json(&format!("{line} --json"));
    assert_eq!(json["outputs"][0]["values"], serde_json::json!([2, 42]));
    assert_eq!(json["messages"].as_array().unwrap().len(), 2);
    folder.write("bad.comp", b"#version 450\nvoid main() { nonsense; }\n");
    let error = folder.error("run bad.comp");
    assert!(error.starts_with("bad.comp: the compiler rejects it:\n") && error.contains("bad.comp:2:"), "{error}");
    let ended = with_input("options-glsl", "run - --bind 0.0=u32:1,41 --out 0.0=u32 --json", GLSL.as_bytes());
    assert!(ended.stdout.contains("\"values\":[2,42]"), "{}{}", ended.stdout, ended.stderr);
}
