//! `spelter bench`: points of sweeps, operations, baselines, pictures, and bad input.

#![allow(clippy::unwrap_used, reason = "a failing test panics")]

use crate::common::Folder;
use serde_json::Value;

const SAXPY: &str = "
struct Push { a: f32, n: u32 }
var<immediate> push: Push;
@group(0) @binding(0) var<storage, read> x: array<f32>;
@group(0) @binding(1) var<storage, read_write> y: array<f32>;
@compute @workgroup_size(64) fn saxpy(@builtin(global_invocation_id) id: vec3u) {
    if id.x < push.n { y[id.x] = push.a * x[id.x] + y[id.x]; }
}";

const PUSH: &str = "--push f32:0.5 --push u32:invocations";
const QUICK: &str = "--seconds 0.02 --warm-up 0.01";

fn folder(test: &str) -> Folder {
    Folder::with(test, "saxpy.wgsl", SAXPY)
}

/// The JSON of a bench; notes on noise go to standard error.
fn bench(folder: &Folder, options: &str) -> Value {
    let ended = folder.spelter(&format!("bench saxpy.wgsl {PUSH} {QUICK} --json {options}"));
    assert_eq!(ended.status, 0, "{}", ended.stderr);
    assert!(ended.stderr.lines().all(|line| line.starts_with("note: ")), "{}", ended.stderr);
    serde_json::from_str(&ended.stdout).unwrap()
}

#[test]
fn a_sweep_has_a_point_for_each_combination() {
    let shown = bench(&folder("bench-sweep"), "--groups 1..16 --workers 1,2");
    assert_eq!((&shown["entry"], &shown["workgroup_size"]), (&"saxpy".into(), &serde_json::json!([64, 1, 1])));
    let points = shown["points"].as_array().unwrap();
    let at: Vec<_> =
        points.iter().map(|p| (p["workers"].as_u64().unwrap(), p["groups"][0].as_u64().unwrap())).collect();
    assert_eq!(at, [(1, 1), (1, 4), (1, 16), (2, 1), (2, 4), (2, 16)]);
    for point in points {
        let number = |name: &str| point[name].as_f64().unwrap();
        let groups = point["groups"][0].as_f64().unwrap();
        // One element of each buffer for each invocation.
        assert_eq!(number("bytes"), groups * 64.0 * 8.0);
        let each = number("dispatches_per_second");
        let near = |name: &str, wanted: f64| {
            assert!((number(name) / wanted - 1.0).abs() < 1e-9, "{name}: {} for {wanted}", number(name));
        };
        near("workgroups_per_second", groups * each);
        near("gigabytes_per_second", number("bytes") * each / 1e9);
        near("gigaflops", groups * 64.0 * 2.0 * each / 1e9);
        let latency = &point["submit_to_done_seconds"];
        assert!(latency["p50"].as_f64().unwrap() <= latency["p99"].as_f64().unwrap());
        assert_eq!(point["busy"].as_array().unwrap().len() as u64, point["workers"].as_u64().unwrap());
        assert!(point["busy"].as_array().unwrap().iter().all(|busy| (0.0..1.5).contains(&busy.as_f64().unwrap())));
        assert!(point["limit"]["share"].as_f64().unwrap() > 0.0);
    }
    assert!(shown["pipeline_seconds"]["median"].as_f64().unwrap() > 0.0);
}

#[test]
fn operations_are_those_of_the_compiler() {
    let folder = folder("bench-operations");
    let shown = bench(&folder, "--groups 1 --no-limits");
    let point = &shown["points"][0];
    // A fused multiply-add in a branch: from none to two.
    assert_eq!((&point["operations"]["least"]["flops"], &point["operations"]["most"]["flops"]), (&0.into(), &2.into()));
    assert_eq!(point["operations"]["most"]["loaded_bytes"], 8);
    assert_eq!(point["limit"], Value::Null);
    let unknown = "
        @group(0) @binding(0) var<storage, read_write> a: array<f32>;
        @compute @workgroup_size(4) fn main(@builtin(global_invocation_id) id: vec3u) {
            var s = 1.0;
            for (var i = id.x; i < arrayLength(&a); i++) { s = s / a[i]; }
            a[id.x] = s;
        }";
    folder.write("unknown.wgsl", unknown.as_bytes());
    let line = format!("bench unknown.wgsl --groups 1 {QUICK} --no-limits");
    let shown = folder.spelter(&line);
    assert!(shown.status == 0 && shown.stdout.contains("unknown, 1 loops of unknown length"), "{}", shown.stdout);
    let json: Value = serde_json::from_str(&folder.spelter(&format!("{line} --json")).stdout).unwrap();
    assert_eq!(json["points"][0]["gigaflops"], Value::Null);
    assert_eq!(json["points"][0]["operations"]["loops_of_unknown_length"].as_array().unwrap().len(), 1);
}

#[test]
fn sizes_of_buffers_are_swept_or_given() {
    let folder = folder("bench-bytes");
    let shown = bench(&folder, "--groups 2 --bytes 4K..64K --no-limits");
    let bytes: Vec<_> = shown["points"].as_array().unwrap().iter().map(|p| p["bytes"].as_u64().unwrap()).collect();
    assert_eq!(bytes, [8 << 10, 32 << 10, 128 << 10]);
    let shown = bench(&folder, "--groups 2 --bytes 4K --bind 0.0=zeros:100 --no-limits");
    assert_eq!(shown["points"][0]["bytes"], 4096 + 100);
}

#[test]
fn a_table_names_its_columns_and_a_picture_is_written() {
    let folder = folder("bench-table");
    let ended =
        folder.spelter(&format!("bench saxpy.wgsl {PUSH} {QUICK} --groups 1,1 --groups 4..16 --plot sweep.png"));
    assert_eq!(ended.status, 0, "{}", ended.stderr);
    for word in
        ["saxpy", "0 to 2 float operations", "workgroups/s", "GB/s", "GFLOP/s", "submit p50", "p99", "busy", "limit"]
    {
        assert!(ended.stdout.contains(word), "{word}: {}", ended.stdout);
    }
    assert_eq!(ended.stdout.lines().count(), 3 + 3, "{}", ended.stdout);
    let picture = folder.read("sweep.png");
    assert!(picture.starts_with(b"\x89PNG") && picture.len() > 5000, "{} bytes", picture.len());
}

#[test]
fn a_run_is_compared_with_a_saved_one() {
    let folder = folder("bench-baseline");
    bench(&folder, "--groups 1,1 --groups 8 --no-limits --save-baseline before");
    let shown = bench(&folder, "--groups 8 --groups 9 --no-limits --baseline before");
    let change = &shown["points"][0]["change"]["dispatch"];
    let [low, high] = [0, 1].map(|at| change["confidence_95"][at].as_f64().unwrap());
    assert!(low <= high && low > -1.0, "{change}");
    assert!(["improved", "regressed", "no change"].contains(&change["verdict"].as_str().unwrap()));
    assert_eq!(shown["points"][1]["change"], Value::Null, "the baseline does not have it");
    // Samples that took a billion times as long: an improvement for any noise of the machine.
    let text = String::from_utf8(folder.read("bench-out/before.json")).unwrap();
    let mut saved: Value = serde_json::from_str(&text).unwrap();
    for point in saved["points"].as_array_mut().unwrap() {
        for sample in point["dispatch_seconds"].as_array_mut().unwrap() {
            *sample = (sample.as_f64().unwrap() * 1e9).into();
        }
    }
    folder.write("bench-out/slow.json", saved.to_string().as_bytes());
    let shown = bench(&folder, "--groups 8 --no-limits --baseline slow");
    assert_eq!(shown["points"][0]["change"]["dispatch"]["verdict"], "improved");
    // The same file with another text, and another file.
    let faster = SAXPY.replace("push.a * x[id.x] + y[id.x]", "x[id.x]");
    folder.write("copy.wgsl", faster.as_bytes());
    let noted = |file: &str| {
        let line = format!("bench {file} {PUSH} {QUICK} --groups 8,1 --no-limits --baseline before");
        let ended = folder.spelter(&line);
        assert_eq!(ended.status, 0, "{}", ended.stderr);
        ended.stderr
    };
    let quiet = noted("saxpy.wgsl");
    assert!(!quiet.contains("the baseline"), "{quiet}");
    let other = noted("copy.wgsl");
    assert!(other.contains("note: the baseline \"before\" is of \"saxpy\" of saxpy.wgsl on "), "{other}");
    folder.write("saxpy.wgsl", faster.as_bytes());
    let changed = noted("saxpy.wgsl");
    assert!(changed.contains("note: the shader or a --spec has changed since the baseline \"before\""), "{changed}");
    let ended = folder.spelter(&format!("bench saxpy.wgsl {PUSH} {QUICK} --groups 8,1 --no-limits --baseline slow"));
    assert!(ended.stdout.contains("improved") && ended.stdout.contains(" … "), "{}", ended.stdout);
}

#[test]
fn bad_input_is_an_error_that_names_it() {
    let folder = folder("bench-errors");
    let error = |options: &str| folder.error(&format!("bench saxpy.wgsl {QUICK} --no-limits {options}"));
    let missing = error("--groups 1");
    assert!(missing.contains("--push") && missing.contains("bytes 0..8 are missing"), "{missing}");
    assert!(error(&format!("{PUSH} --bind 0.7=zeros:4")).contains("--bind 0.7: \"saxpy\" does not use it"));
    assert!(error(&format!("{PUSH} --uniform 0.0=zeros:4")).contains("it is a storage buffer: use --bind"));
    let twice = error(&format!("{PUSH} --bind 0.0=zeros:4 --bind 0.0=zeros:4"));
    assert!(twice.contains("binding 0.0 is given twice"), "{twice}");
    assert!(error(&format!("{PUSH} --groups 70000,1 --bytes 4K --groups 4000000000")).contains("--groups"));
    assert!(error(&format!("{PUSH} --baseline none")).contains("there is no baseline \"none\""));
    assert!(error(&format!("{PUSH} --plot no/such/folder.png")).contains("its folder does not exist"));
    assert!(error(&format!("{PUSH} --plot sweep.svg")).contains("must end with .png"));
    folder.write("bench-out/bad.json", b"{}");
    assert!(error(&format!("{PUSH} --baseline bad")).contains("bad.json: not a baseline"));
    folder.write(
        "uniform.wgsl",
        b"@group(0) @binding(0) var<uniform> n: u32;
        @group(0) @binding(1) var<storage, read_write> a: u32;
        @compute @workgroup_size(1) fn main() { a = n; }",
    );
    let uniform = folder.error("bench uniform.wgsl --bind 0.0=zeros:4");
    assert!(uniform.contains("--bind 0.0: it is a uniform buffer: use --uniform"), "{uniform}");
    assert!(folder.error("bench missing.wgsl").starts_with("missing.wgsl: "));
    for options in [
        "--groups 0",
        "--groups 8..4",
        "--groups 1..8*1",
        "--bytes 1X",
        "--workers 0",
        "--workers 2000",
        "--seconds 0",
        "--noise -1",
        "--noise x",
        "--save-baseline ../x",
        "--push u32",
        "",
    ] {
        let line = if options.is_empty() { "bench".to_owned() } else { format!("bench saxpy.wgsl {options}") };
        assert!(folder.usage(&line).contains("error: "), "{options}");
    }
}

const DOUBLE: &str = "
@group(0) @binding(0) var<storage, read_write> data: array<u32>;
@compute @workgroup_size(64) fn double(@builtin(global_invocation_id) id: vec3u) { data[id.x] *= 2u; }";

#[test]
fn the_examples_of_the_help_run() {
    let folder = Folder::with("bench-help", "double.wgsl", DOUBLE);
    let help = folder.good("bench --help");
    let examples: Vec<_> = help.lines().filter_map(|line| line.trim().strip_prefix("spelter bench ")).collect();
    assert!(!examples.is_empty(), "{help}");
    for example in examples {
        let ended = folder.spelter(&format!("bench {example} {QUICK} --no-limits"));
        assert_eq!(ended.status, 0, "{example}: {}", ended.stderr);
    }
    assert!(folder.read("double.png").starts_with(b"\x89PNG") && !folder.read("bench-out/before.json").is_empty());
}

#[test]
fn the_whole_sweep_is_checked_before_the_first_point() {
    let folder = folder("bench-check");
    let error = |options: &str| folder.error(&format!("bench saxpy.wgsl --no-limits --seconds 100 {options}"));
    let groups = error(&format!("{PUSH} --groups 1..65536"));
    assert!(groups.starts_with("--groups: 65536 workgroups above the limit 65535"), "{groups}");
    let bytes = error(&format!("{PUSH} --groups 1 --bytes 4K,64G"));
    assert!(bytes.contains("binding 0.0: a storage buffer of 68719476736 bytes: at most"), "{bytes}");
    let push = error("--groups 1 --push f32:0.5");
    assert!(push.contains("bytes 4..8 are missing") && push.contains("--push u32:invocations"), "{push}");
}

#[test]
fn what_was_measured_before_a_failure_is_kept() {
    let text = "
        @group(0) @binding(0) var<storage, read_write> a: array<u32>;
        @compute @workgroup_size(1) fn main(@builtin(num_workgroups) groups: vec3u) {
            for (var i = 0u; i < 2u || groups.x > 4u; i++) { a[0] = i; }
        }";
    let folder = Folder::with("bench-kept", "loop.wgsl", text);
    let line = "bench loop.wgsl --groups 1 --groups 2 --groups 8 --time-limit 0.2 --save-baseline some";
    let ended = folder.spelter(&format!("{line} {QUICK} --no-limits --plot some.png --json"));
    assert_eq!(ended.status, 6, "{}", ended.stdout);
    assert!(ended.stderr.contains("note: the sweep ended early: 2 of 3 points were measured"), "{}", ended.stderr);
    assert!(ended.stderr.contains("error: ") && ended.stderr.contains("device lost"), "{}", ended.stderr);
    let shown: Value = serde_json::from_str(&ended.stdout).unwrap();
    assert_eq!(shown["points"].as_array().unwrap().len(), 2);
    assert!(!folder.read("some.png").is_empty() && !folder.read("bench-out/some.json").is_empty());
}

#[test]
fn a_share_above_the_limit_has_a_note() {
    // Most invocations skip the accesses that the compiler counts.
    let text = "
        @group(0) @binding(0) var<storage, read_write> a: array<vec4<f32>>;
        @compute @workgroup_size(64) fn main(@builtin(global_invocation_id) id: vec3u) {
            if id.x == 0u { a[0] += vec4(1.0); }
        }";
    let folder = Folder::with("bench-share", "skip.wgsl", text);
    let ended = folder.spelter(&format!("bench skip.wgsl {QUICK} --groups 16384 --json"));
    assert_eq!(ended.status, 0, "{}", ended.stderr);
    let shown: Value = serde_json::from_str(&ended.stdout).unwrap();
    let share = shown["points"][0]["limit"]["share"].as_f64().unwrap();
    let noted = ended.stderr.contains("1 of 1 points are above 100 % of their limit");
    assert_eq!(share > 1.0, noted, "{share}: {}", ended.stderr);
}

#[test]
fn images_and_samplers_are_given_as_for_run() {
    let text = "
        @group(0) @binding(0) var sheet: texture_2d<f32>;
        @group(0) @binding(1) var linear: sampler;
        @group(0) @binding(2) var drawn: texture_storage_2d<rgba8unorm, write>;
        @compute @workgroup_size(8, 8) fn main(@builtin(global_invocation_id) id: vec3u) {
            textureStore(drawn, id.xy, textureSampleLevel(sheet, linear, vec2f(id.xy) / 32.0, 0.0));
        }";
    let folder = Folder::with("bench-images", "sample.wgsl", text);
    let line = format!("bench sample.wgsl --groups 4,4 {QUICK} --no-limits");
    let missing = folder.error(&line);
    assert!(
        missing.contains("binding 0.0 (sheet), a sampled image, has no image: use --image 0.0=FILE.png"),
        "{missing}"
    );
    let images = "--image sheet=rgba8unorm:32x32:gradient --image 0.2=rgba8unorm:32x32";
    let missing = folder.error(&format!("{line} {images}"));
    assert!(missing.contains("binding 0.1 (linear), a sampler, has no sampler: use --sampler 0.1=linear"), "{missing}");
    let ended = folder.spelter(&format!("{line} {images} --sampler 0.1=linear --json"));
    assert_eq!(ended.status, 0, "{}", ended.stderr);
    let shown: Value = serde_json::from_str(&ended.stdout).unwrap();
    assert_eq!(shown["points"][0]["bytes"], 2 * 32 * 32 * 4);
    for (option, problem) in [
        ("--image 0.1=rgba8unorm:4x4", "--image 0.1: it is a sampler: use --sampler"),
        ("--image 0.0=rgba8unorm:4x4", "binding 0.0 is given twice"),
        ("--sampler 0.7=linear", "--sampler 0.7: \"main\" does not use it"),
        ("--bind 0.0=zeros:4", "--bind 0.0: it is a sampled image: use --image"),
    ] {
        let error = folder.error(&format!("{line} {images} --sampler 0.1=linear {option}"));
        assert!(error.contains(problem), "{error}");
    }
}

#[test]
fn uniform_buffers_without_an_option_hold_the_number_of_invocations() {
    // It ends at the number of invocations; another number would leave the buffer, or not end in time.
    let text = "
        struct Params { scale: f32, count: u32 }
        @group(0) @binding(0) var<uniform> params: Params;
        @group(0) @binding(1) var<storage, read_write> to: array<f32>;
        @compute @workgroup_size(64) fn main(@builtin(global_invocation_id) id: vec3u) {
            for (var i = id.x; i < params.count; i += 64u) { to[i] = params.scale; }
        }";
    let folder = Folder::with("bench-uniform", "uniform.wgsl", text);
    let ended = folder.spelter(&format!("bench uniform.wgsl --groups 2 {QUICK} --no-limits --time-limit 1 --json"));
    assert_eq!(ended.status, 0, "{}", ended.stderr);
    let shown: Value = serde_json::from_str(&ended.stdout).unwrap();
    assert_eq!(shown["points"][0]["bytes"], 8 + 2 * 64 * 4);
    assert!(ended.stderr.contains("note: binding 0.0, a uniform buffer, has no --uniform"), "{}", ended.stderr);
    let given = folder.spelter(&format!("bench uniform.wgsl --groups 2 {QUICK} --no-limits --uniform params=zeros:8"));
    assert!(given.status == 0 && !given.stderr.contains("has no --uniform"), "{}", given.stderr);
}

/// Adds the texels of a buffer to the words of another.
const TEXELS: &str = "
OpCapability Shader
OpCapability SampledBuffer
OpMemoryModel Logical GLSL450
OpEntryPoint GLCompute %main \"main\" %id
OpExecutionMode %main LocalSize 16 1 1
OpDecorate %id BuiltIn GlobalInvocationId
OpDecorate %table DescriptorSet 0
OpDecorate %table Binding 4
OpDecorate %words ArrayStride 4
OpDecorate %block Block
OpMemberDecorate %block 0 Offset 0
OpDecorate %buffer DescriptorSet 0
OpDecorate %buffer Binding 2
%void = OpTypeVoid
%signature = OpTypeFunction %void
%uint = OpTypeInt 32 0
%int = OpTypeInt 32 1
%uint3 = OpTypeVector %uint 3
%uint4 = OpTypeVector %uint 4
%zero = OpConstant %int 0
%texels = OpTypeImage %uint Buffer 0 0 0 1 Unknown
%texels_pointer = OpTypePointer UniformConstant %texels
%table = OpVariable %texels_pointer UniformConstant
%words = OpTypeRuntimeArray %uint
%block = OpTypeStruct %words
%block_pointer = OpTypePointer StorageBuffer %block
%word_pointer = OpTypePointer StorageBuffer %uint
%buffer = OpVariable %block_pointer StorageBuffer
%id_pointer = OpTypePointer Input %uint3
%id = OpVariable %id_pointer Input
%main = OpFunction %void None %signature
%label = OpLabel
%all = OpLoad %uint3 %id
%x = OpCompositeExtract %uint %all 0
%at = OpBitcast %int %x
%place = OpAccessChain %word_pointer %buffer %zero %x
%word = OpLoad %uint %place
%image = OpLoad %texels %table
%texel = OpImageFetch %uint4 %image %at
%value = OpCompositeExtract %uint %texel 0
%sum = OpIAdd %uint %word %value
OpStore %place %sum
OpReturn
OpFunctionEnd
";

#[test]
fn texel_buffers_are_filled_or_given() {
    let folder = Folder::with("bench-texels", "texels.spvasm", TEXELS);
    let line = format!("bench texels.spvasm --groups 2 {QUICK} --no-limits");
    let bytes = |options: &str| {
        let ended = folder.spelter(&format!("{line} --json {options}"));
        assert_eq!(ended.status, 0, "{}", ended.stderr);
        let shown: Value = serde_json::from_str(&ended.stdout).unwrap();
        shown["points"][0]["bytes"].as_u64().unwrap()
    };
    // One texel and one word for each of 32 invocations.
    assert_eq!(bytes(""), 2 * 32 * 4);
    assert_eq!(bytes("--bytes 1K"), 2 * 1024);
    assert_eq!(bytes("--texels 0.4=r32uint:zeros:512"), 512 + 32 * 4);
    let error = folder.error(&format!("{line} --bind 0.4=zeros:4"));
    assert!(error.contains("--bind 0.4: it is a uniform texel buffer: use --texels"), "{error}");
}
