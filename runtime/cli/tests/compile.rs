//! `spelter compile`: the text of each form, and that it can be parsed again.

#![allow(clippy::unwrap_used, reason = "the helpers of tests are tests too")]

use crate::common::Folder;
use spelter_shaders::{ir, simd};

const DOUBLE: &str = "
@id(3) override shift: u32 = 1u;
@group(0) @binding(0) var<storage, read_write> data: array<u32>;
@compute @workgroup_size(64)
fn main(@builtin(global_invocation_id) id: vec3<u32>) {
    if id.x < arrayLength(&data) { data[id.x] = (data[id.x] << shift) / 3u; }
}
@compute @workgroup_size(1) fn other() { data[0] = 7u; }";

const EXPONENT: &str = "
@group(0) @binding(0) var<storage, read_write> data: array<f32>;
@compute @workgroup_size(64)
fn main(@builtin(global_invocation_id) id: vec3<u32>) { data[id.x] = exp(data[id.x]); }";

fn folder(test: &str) -> Folder {
    Folder::with(test, "double.wgsl", DOUBLE)
}

fn without_comments(text: &str) -> String {
    text.lines().filter(|line| !line.trim_start().starts_with(';')).map(|line| format!("{line}\n")).collect()
}

/// The lines that the comments of a listing name.
fn source_lines(text: &str, file: &str) -> Vec<u32> {
    let start = format!("; {file}:");
    let places = text.lines().filter_map(|line| line.trim_start().strip_prefix(&start));
    places.map(|place| place.split(':').next().unwrap().parse().unwrap()).collect()
}

/// A store of a sum in line 20 of `other.src`, by `OpLine`, and one without a line.
const LINES: &str = "
OpCapability Shader
OpMemoryModel Logical GLSL450
OpEntryPoint GLCompute %main \"main\"
OpExecutionMode %main LocalSize 64 1 1
%file = OpString \"other.src\"
OpDecorate %array ArrayStride 4
OpDecorate %block BufferBlock
OpMemberDecorate %block 0 Offset 0
OpDecorate %buffer DescriptorSet 0
OpDecorate %buffer Binding 0
%void = OpTypeVoid
%signature = OpTypeFunction %void
%uint = OpTypeInt 32 0
%array = OpTypeRuntimeArray %uint
%block = OpTypeStruct %array
%pointer = OpTypePointer Uniform %block
%element = OpTypePointer Uniform %uint
%buffer = OpVariable %pointer Uniform
%zero = OpConstant %uint 0
%one = OpConstant %uint 1
%main = OpFunction %void None %signature
%label = OpLabel
%to = OpAccessChain %element %buffer %zero %zero
OpLine %file 19 3
%value = OpLoad %uint %to
OpLine %file 20 5
%sum = OpIAdd %uint %value %one
OpStore %to %sum
OpReturn
OpFunctionEnd
";

/// Every form names the source lines of its parts: of WGSL, and of modules with debug lines.
#[test]
fn listings_name_source_lines() {
    let folder = folder("compile-lines");
    for options in
        ["--emit ir --no-opt", "--emit ir", "--emit simd", "--emit asm --isa avx512", "--emit asm --isa avx2"]
    {
        let text = folder.good(&format!("compile double.wgsl --entry main {options}"));
        assert!(source_lines(&text, "double.wgsl").contains(&6), "{options}:\n{text}");
    }
    folder.write("lines.spvasm", LINES.as_bytes());
    for options in ["--emit ir", "--emit simd"] {
        let text = folder.good(&format!("compile lines.spvasm {options}"));
        let lines = source_lines(&text, "other.src");
        assert!(lines.contains(&19) && lines.contains(&20), "{options}:\n{text}");
        assert!(text.contains("; other.src:19:3\n"), "{options}:\n{text}");
    }
    // The load may be an operand of the sum.
    let text = folder.good("compile lines.spvasm --emit asm --isa avx512");
    assert!(source_lines(&text, "other.src").contains(&20), "{text}");
    let plain: String =
        LINES.lines().filter(|line| !line.starts_with("OpLine")).map(|line| format!("{line}\n")).collect();
    folder.write("plain.spvasm", plain.as_bytes());
    assert!(!folder.good("compile plain.spvasm --emit asm --isa avx512").contains("; "), "no lines, no comments");
}

#[test]
fn the_scalar_form_is_the_default() {
    let folder = folder("compile-ir");
    let text = folder.good("compile double.wgsl --entry main");
    assert_eq!(text, folder.good("compile double.wgsl --entry main --emit ir"));
    let kernel = ir::Kernel::parse(&text).unwrap();
    assert_eq!((ir::verify(&kernel), kernel.name.as_str(), kernel.workgroup_size), (Ok(()), "main", [64, 1, 1]));
    assert_eq!(kernel.to_string(), without_comments(&text));
    assert!(!text.contains(" = udiv "), "a division is lowered:\n{text}");
}

#[test]
fn without_optimiser_the_scalar_form_is_what_was_read() {
    let text = folder("compile-no-opt").good("compile double.wgsl --entry main --no-opt");
    assert!(text.contains(" = udiv "), "{text}");
    ir::verify(&ir::Kernel::parse(&text).unwrap()).unwrap();
}

#[test]
fn the_simd_form_with_and_without_optimiser() {
    let folder = folder("compile-simd");
    for option in ["", "--no-opt"] {
        let text = folder.good(&format!("compile double.wgsl --entry main --emit simd {option}"));
        let kernel = simd::Kernel::parse(&text).unwrap();
        assert_eq!((simd::verify(&kernel), kernel.descriptors), (Ok(()), 1), "{text}");
        assert!(text.starts_with("simd kernel \"main\"\n") && text.contains("store_row"), "{text}");
    }
}

#[test]
fn machine_code() {
    let text = folder("compile-asm").good("compile double.wgsl --entry main --emit asm --isa avx512");
    assert!(text.contains("zmm") && text.contains("ret"), "{text}");
}

/// Forms are lowered for one instruction set, except for the kernel as it was read.
#[test]
fn each_form_is_of_an_instruction_set() {
    let folder = Folder::with("compile-isa", "exponent.wgsl", EXPONENT);
    for emit in ["ir", "simd", "asm"] {
        let with = |isa: &str| folder.good(&format!("compile exponent.wgsl --emit {emit} --isa {isa}"));
        assert_ne!(with("avx2"), with("avx512"), "{emit}");
    }
    let error = folder.error("compile exponent.wgsl --no-opt --isa avx2");
    assert_eq!(error, "--isa has no effect on --emit ir --no-opt, which shows the kernel before lowering");
}

#[test]
fn times_are_comments_below_the_text() {
    let folder = folder("compile-time");
    let text = folder.good("compile double.wgsl --entry main");
    let timed = folder.good("compile double.wgsl --entry main --time");
    let times = timed.strip_prefix(&text).unwrap();
    let stages: Vec<&str> =
        times.lines().filter_map(|line| line.strip_prefix("; ")?.split_whitespace().next()).collect();
    assert_eq!((stages[..2].to_vec(), *stages.last().unwrap()), (vec!["read", "specialize"], "total"), "{times}");
    assert!(["cfg", "gvn", "dce", "math"].iter().all(|stage| stages.contains(stage)), "{times}");
    assert_eq!(ir::Kernel::parse(&timed).unwrap().to_string(), without_comments(&text));
    let timed = folder.good("compile double.wgsl --entry main --emit asm --isa avx512 --time");
    assert!(["widen", "select", "regalloc", "encode"].iter().all(|stage| timed.contains(&format!("\n; {stage} "))));
}

#[test]
fn json() {
    let folder = folder("compile-json");
    let json = folder.json("compile double.wgsl --entry other --emit asm --isa avx512 --json");
    let about = ["file", "entry", "emit", "isa"].map(|key| json[key].as_str().unwrap());
    assert_eq!(about, ["double.wgsl", "other", "asm", "avx512"]);
    assert!(json["text"].as_str().unwrap().contains("ret"), "{json}");
    assert_eq!(json["times"][0]["stage"], "read");
    assert!(json["times"][0]["seconds"].as_f64().unwrap() > 0.0);
    let json = folder.json("compile double.wgsl --entry other --json");
    assert!(json["emit"] == "ir" && json["isa"].is_string(), "{json}");
    let json = folder.json("compile double.wgsl --entry other --no-opt --json");
    assert_eq!((&json["emit"], &json["isa"]), (&"ir".into(), &serde_json::Value::Null));
}

#[test]
fn specialization_constants() {
    let folder = folder("compile-spec");
    let with = |spec: &str| folder.good(&format!("compile double.wgsl --entry main --emit ir {spec}"));
    assert_eq!(with("--spec 3=1"), with(""));
    assert_ne!(with("--spec 3=5"), with(""));
    for (options, message) in [
        ("--spec 4=1", "--spec 4: the shader has no such specialization constant; it has "),
        ("--spec 3=1.5", "specialization constant 3 (shift: u32) cannot be 1.5: write an integer"),
        ("--spec 3=1 --spec 3=2", "--spec 3 is given twice"),
    ] {
        let error = folder.error(&format!("compile double.wgsl --entry main {options}"));
        assert!(error.starts_with(message), "{error}");
    }
}

#[test]
fn mistakes() {
    let folder = folder("compile-mistakes");
    folder.write("broken.wgsl", b"fn main( {");
    for (line, message) in [
        ("compile double.wgsl", "double.wgsl: several entry points: name one of main, other with --entry"),
        ("compile double.wgsl --entry third", "double.wgsl: no entry point \"third\"; the shader has main, other"),
        ("compile missing.wgsl", "missing.wgsl: No such file"),
        ("compile broken.wgsl", "broken.wgsl: "),
    ] {
        let error = folder.error(line);
        assert!(error.starts_with(message), "{line}: {error}");
    }
    let usage = folder.usage("compile double.wgsl --emit tree");
    assert!(usage.contains("[possible values: ir, simd, asm]"), "{usage}");
    let usage = folder.usage("compile double.wgsl --isa sse");
    assert!(usage.contains("[possible values: avx512, avx2]"), "{usage}");
}
