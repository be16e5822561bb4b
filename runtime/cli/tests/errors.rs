//! Status 1 with one message that names the place, or 2 for wrong usage. Never a panic.

use std::process::Command;

use crate::common::Folder;

const ADD: &str = "
struct Head { count: u32, rest: u32 }
@group(0) @binding(0) var<uniform> head: Head;
@group(0) @binding(1) var<storage, read_write> to: array<u32>;
@compute @workgroup_size(1)
fn main() { to[0] += head.count; }";

const ENDLESS: &str = "
@group(0) @binding(0) var<storage, read_write> to: array<u32>;
@compute @workgroup_size(1)
fn main() { while to[0] == 0u { to[1] += 1u; } }";

const TEXELS: &str = "
OpCapability Shader
OpCapability SampledBuffer
OpMemoryModel Logical GLSL450
OpEntryPoint GLCompute %main \"main\"
OpExecutionMode %main LocalSize 1 1 1
OpDecorate %texels DescriptorSet 0
OpDecorate %texels Binding 0
%void = OpTypeVoid
%signature = OpTypeFunction %void
%int = OpTypeInt 32 1
%float = OpTypeFloat 32
%vector = OpTypeVector %float 4
%image = OpTypeImage %float Buffer 0 0 0 1 Unknown
%pointer = OpTypePointer UniformConstant %image
%texels = OpVariable %pointer UniformConstant
%zero = OpConstant %int 0
%main = OpFunction %void None %signature
%label = OpLabel
%loaded = OpLoad %image %texels
%texel = OpImageFetch %vector %loaded %zero
OpReturn
OpFunctionEnd
";

const LARGE: &str = "
var<workgroup> many: array<u32, 32768>;
@group(0) @binding(0) var<storage, read_write> to: array<u32>;
@compute @workgroup_size(1)
fn main() { to[0] = many[to[0]]; }";

/// Adds floats as integers, in line 12.
const WRONG: &str = "; a comment
OpCapability Shader
OpMemoryModel Logical GLSL450
OpEntryPoint GLCompute %main \"main\"
OpExecutionMode %main LocalSize 1 1 1
%void = OpTypeVoid
%signature = OpTypeFunction %void
%float = OpTypeFloat 32
%one = OpConstant %float 1
%main = OpFunction %void None %signature
%label = OpLabel
%sum = OpIAdd
    %float %one %one
OpReturn
OpFunctionEnd
";

const GOOD: &str = "run add.wgsl --uniform 0.0=u32:1,2 --bind 0.1=zeros:4";

fn add(test: &str) -> Folder {
    Folder::with(test, "add.wgsl", ADD)
}

#[test]
fn files() {
    let folder = add("bad-files");
    folder.write("broken.wgsl", b"fn main( {");
    folder.write("binary.wgsl", &[0xff, 0xfe]);
    folder.write("odd.spv", &[3, 2, 0x23]);
    folder.write("empty.spv", &[]);
    folder.write("junk.spv", &[0xab; 64]);
    folder.write("junk.spvasm", b"OpNonsense %1");
    folder.write("shader.hlsl", b"void main() {}");
    for (line, part) in [
        ("run missing.wgsl", "missing.wgsl: No such file"),
        ("run broken.wgsl", "broken.wgsl: "),
        ("run binary.wgsl", "binary.wgsl: not a text"),
        ("run odd.spv", "odd.spv: not SPIR-V: 3 bytes"),
        ("run empty.spv", "empty.spv: the file is empty"),
        ("run junk.spv", "junk.spv: "),
        ("run junk.spvasm", "OpNonsense"),
        ("run shader.hlsl", "shader.hlsl: compile it first: glslc -x hlsl -fshader-stage=compute FILE -o FILE.spv"),
        ("run shader.txt", "the name must end with .wgsl, .spv, .spvasm, .comp or .glsl"),
        ("run add.wgsl --uniform 0.0=@none.bin --bind 0.1=zeros:4", "--uniform 0.0: none.bin: No such file"),
        ("run add.wgsl --uniform 0.0=@. --bind 0.1=zeros:4", ".: not a regular file"),
        ("run add.wgsl --uniform 0.0=@/dev/zero --bind 0.1=zeros:4", "/dev/zero: "),
        (
            "run add.wgsl --uniform 0.0=u32:1,2 --bind 0.1=zeros:4194308 --out 0.1=u32",
            "--out 0.1: 1048577 values are too many to print: use FIRST..LAST or --save",
        ),
    ] {
        let message = folder.error(line);
        assert!(message.contains(part), "{line}: {message}");
    }
}

#[test]
fn places_in_a_shader_name_its_file() {
    let folder = add("places");
    folder.write("broken.wgsl", b"\nfn main( {");
    folder.write("broken.spvasm", b"\nOpNonsense %1");
    let wgsl = folder.error("run broken.wgsl");
    assert!(wgsl.contains("\u{250c}\u{2500} broken.wgsl:2:10"), "{wgsl}");
    let assembly = folder.error("run broken.spvasm");
    assert!(assembly.ends_with(" at broken.spvasm:2:1"), "{assembly}");
    // Errors of the reader have the line of the text as well.
    folder.write("wrong.spvasm", WRONG.as_bytes());
    let wrong = folder.error("run wrong.spvasm");
    assert!(wrong.contains("OpIAdd") && wrong.ends_with(" at wrong.spvasm:12"), "{wrong}");
    assert!(folder.error("compile wrong.spvasm").ends_with(" at wrong.spvasm:12"));
    // Ids are shown by their names in the text.
    folder.write("undeclared.spvasm", WRONG.replace("    %float %one %one", "    %number %one %one").as_bytes());
    let undeclared = folder.error("run undeclared.spvasm");
    assert!(undeclared.contains("%number"), "{undeclared}");
}

/// The message for a shader that no device can run does not name a Vulkan call, since the user made none.
#[test]
fn limits_of_shaders() {
    let folder = Folder::with("bad-limits", "large.wgsl", LARGE);
    let problem = "131072 bytes of workgroup memory above the limit 65536 (VUID-RuntimeSpirv-Workgroup-06530)";
    let run = folder.error("run large.wgsl --bind 0.0=zeros:4");
    assert_eq!(run, format!("large.wgsl: {problem}"));
    let compiled = folder.spelter("compile large.wgsl");
    let note = format!("note: main: no device can run this kernel, not even `spelter run`: {problem}\n");
    assert_eq!((compiled.status, compiled.stderr), (0, note));
}

#[test]
fn files_that_cannot_be_written_stop_the_run_before_it_starts() {
    let folder = Folder::with("unwritable", "endless.wgsl", ENDLESS);
    for (path, problem) in [("no/such/file", "its folder does not exist"), (".", "is a folder")] {
        let line = format!("run endless.wgsl --bind 0.0=zeros:8 --time-limit 5 --save 0.0={path}");
        assert_eq!(folder.error(&line), format!("{path}: {problem}"));
    }
}

#[test]
fn bindings() {
    let folder = add("bad-bindings");
    for (line, message) in [
        (
            "run add.wgsl --bind 0.1=zeros:4",
            "binding 0.0 (head), a uniform buffer of at least 8 bytes, has no buffer: use --uniform 0.0=VALUE (VUID-vkCmdDispatch-None-08114)",
        ),
        (
            "run add.wgsl --uniform 0.0=u32:1,2",
            "binding 0.1 (to), a storage buffer, has no buffer: use --bind 0.1=VALUE (VUID-vkCmdDispatch-None-08114)",
        ),
        (
            "run add.wgsl --uniform 0.0=u32:1,2 --bind 0.1=zeros:4 --bind 2.7=zeros:4",
            "--bind 2.7: \"main\" does not use it; it uses 0.0 head: uniform buffer, 0.1 to: storage buffer",
        ),
        ("run add.wgsl --bind 0.0=zeros:8 --bind 0.1=zeros:4", "--bind 0.0: it is a uniform buffer: use --uniform"),
        ("run add.wgsl --uniform 0.0[1]=zeros:8 --bind 0.1=zeros:4", "--uniform 0.0[1]: the binding has 1 elements"),
        (
            "run add.wgsl --uniform 0.0=u32:1 --bind 0.1=zeros:4",
            "--uniform 0.0: 4 bytes of a buffer of 4 bytes, the block needs at least 8 (rule: a buffer has room for the fixed part of the block that it is bound for)",
        ),
        ("run add.wgsl --uniform 0.0=u32:1,2 --bind 0.1=zeros:4 --bind 0.1=zeros:8", "binding 0.1 is given twice"),
    ] {
        assert_eq!(folder.error(line), message, "{line}");
    }
}

/// All bindings that are missing are named, and all options that are wrong.
#[test]
fn several_bindings() {
    let folder = add("bad-several");
    let rule = "(VUID-vkCmdDispatch-None-08114)";
    let missing = [
        format!(
            "binding 0.0 (head), a uniform buffer of at least 8 bytes, has no buffer: use --uniform 0.0=VALUE {rule}"
        ),
        format!("binding 0.1 (to), a storage buffer, has no buffer: use --bind 0.1=VALUE {rule}"),
    ];
    assert_eq!(folder.error("run add.wgsl"), missing.join("\n"));
    let has = "\"main\" does not use it; it uses 0.0 head: uniform buffer, 0.1 to: storage buffer";
    let wrong = folder.error("run add.wgsl --bind 0.0=zeros:8 --bind 2.7=zeros:4 --bind 2.7=zeros:4");
    let all = [
        "--bind 0.0: it is a uniform buffer: use --uniform",
        &format!("--bind 2.7: {has}"),
        "binding 2.7 is given twice",
        &missing[1],
    ];
    assert_eq!(wrong, all.join("\n"));
    let ended = folder.spelter("run add.wgsl --json");
    let object: serde_json::Value = serde_json::from_str(&ended.stdout).unwrap();
    assert_eq!((ended.status, object["error"].as_str()), (5, Some(missing.join("\n").as_str())));
}

#[test]
fn texel_buffers() {
    let text = TEXELS.replace('\n', "\n ");
    let folder = Folder::with("bad-texels", "texels.spvasm", &text);
    let none = "binding 0.0, a uniform texel buffer, has no buffer: use --texels 0.0=FORMAT:VALUE (VUID-vkCmdDispatch-None-08114)";
    for (options, message) in [
        ("", none),
        ("--bind 0.0=zeros:4", "--bind 0.0: it is a uniform texel buffer: use --texels"),
        (
            "--texels 0.0=r32float:zeros:4 --texels 0.1=r32float:zeros:4",
            "--texels 0.1: \"main\" does not use it; it uses 0.0: uniform texel buffer",
        ),
        ("--texels 0.0=r32float:zeros:0", "--texels 0.0: a buffer needs at least one byte"),
    ] {
        assert_eq!(folder.error(&format!("run texels.spvasm {options}")), message, "{options}");
    }
    for (options, part) in [
        ("--texels 0.0=r32uint:zeros:4", "(VUID-vkCmdDispatch-format-07753)"),
        ("--texels 0.0=bc7:zeros:4", "\"bc7\" is not a format"),
        ("--texels 0.0=zeros:4", "\"zeros\" is not a format"),
        ("--texels 0.0=r32float", "is not a texel buffer: use FORMAT:VALUE"),
    ] {
        let ended = folder.spelter(&format!("run texels.spvasm {options}"));
        assert!(ended.status != 0 && ended.stderr.contains(part), "{options}: {}", ended.stderr);
    }
}

/// Workgroup sizes beyond the limits are reported with their line and the limit.
#[test]
fn workgroup_sizes() {
    let folder = add("bad-workgroups");
    for (size, is) in [("0", "0 x 1 x 1"), ("65536", "65536 x 1 x 1"), ("64, 17", "64 x 17 x 1")] {
        folder.write("size.wgsl", ADD.replace("size(1)", &format!("size({size})")).as_bytes());
        let limit = "where 1 to 1024 are possible (VUID-RuntimeSpirv-x-06432) at size.wgsl:5:10";
        for command in ["run", "compile"] {
            let problem = folder.error(&format!("{command} size.wgsl"));
            assert_eq!(problem, format!("size.wgsl: `main`: a workgroup of {is} invocations, {limit}"));
        }
    }
}

#[test]
fn sizes() {
    let folder = add("bad-sizes");
    folder.write("empty", &[]);
    for (line, part) in [
        ("run add.wgsl --uniform 0.0=zeros:0 --bind 0.1=zeros:4", "--uniform 0.0: a buffer needs at least one byte"),
        ("run add.wgsl --uniform 0.0=u32:1,2 --bind 0.1=u32:range:0", "--bind 0.1: a buffer needs at least one byte"),
        ("run add.wgsl --uniform 0.0=u32:1,2 --bind 0.1=@empty", "--bind 0.1: a buffer needs at least one byte"),
        (
            "run add.wgsl --uniform 0.0=zeros:65552 --bind 0.1=zeros:4",
            "--uniform 0.0: a buffer of 65552 bytes: range 65552 above the limit 65536 (VUID-VkWriteDescriptorSet-descriptorType-00332)",
        ),
        ("run add.wgsl --uniform 0.0=u32:1,2 --bind 0.1=zeros:18446744073709551615", "--bind 0.1: "),
        (
            "run add.wgsl --uniform 0.0=u32:1,2 --bind 0.1=zeros:1000000000000",
            "--bind 0.1: out of memory: a buffer of 1000000000000 bytes",
        ),
    ] {
        let message = folder.error(line);
        assert!(message.contains(part), "{line}: {message}");
    }
}

#[test]
fn dispatches() {
    let folder = add("bad-dispatches");
    let huge = folder.error(&format!("{GOOD} --groups 1,70000"));
    let rule = "(VUID-vkCmdDispatch-groupCountY-00387)";
    assert_eq!(huge, format!("--groups, Y: 70000 workgroups above the limit 65535 {rule}"));
    let huge = folder.error(&format!("{GOOD} --invocations 1,70000"));
    assert_eq!(huge, format!("--invocations, Y: 70000 workgroups above the limit 65535 {rule}"));
    let push = folder.error(&format!("{GOOD} --push u32:1"));
    assert_eq!(push, "--push: \"main\" declares none, 4 bytes were given (VUID-vkCmdPushConstants-offset-01795)");
}

#[test]
fn outputs() {
    let folder = add("bad-outputs");
    let missing = folder.error(&format!("{GOOD} --out 0.2=u32"));
    assert_eq!(missing, "--out 0.2: no buffer is bound to it; bound are 0.1, 0.0");
    let beyond = folder.error(&format!("{GOOD} --out 0.1=u32:0..2"));
    assert_eq!(beyond, "--out 0.1: elements 0..2 of a buffer of 1 elements");
    let save = folder.error(&format!("{GOOD} --save 1.0=file"));
    assert_eq!(save, "--save 1.0: no buffer is bound to it; bound are 0.1, 0.0");
    let save = folder.error(&format!("{GOOD} --save 0.0=sums.png"));
    let problem = "is no picture, as a storage texture is; a file with another extension gets the bytes";
    assert_eq!(save, format!("--save 0.0: sums.png: a buffer {problem}"));
}

#[test]
fn a_kernel_that_runs_too_long_is_stopped() {
    let folder = Folder::with("endless", "endless.wgsl", ENDLESS);
    let message = folder.error("run endless.wgsl --bind 0.0=zeros:8 --time-limit 0.2 --workers 1");
    let limit = "the time limit of 200ms, which --time-limit or SPELTER_TIME_LIMIT sets";
    let start = format!("device lost: kernel `main` ran longer than {limit}: a loop at endless.wgsl:4:");
    assert!(message.starts_with(&start), "{message}");
    assert!(message.ends_with(" did not end in invocation (0, 0, 0)"), "{message}");
}

#[test]
fn wrong_usage() {
    let folder = add("usage");
    for line in [
        "",
        "walk",
        "run",
        "run add.wgsl --what",
        "run add.wgsl --groups 1,2,3,4",
        "run add.wgsl --groups x",
        "run add.wgsl --bind 0.1",
        "run add.wgsl --bind 0=u32:1",
        "run add.wgsl --bind 0.1=u65:1",
        "run add.wgsl --bind 0.1=f32:1e40",
        "run add.wgsl --bind 0.1=u32:-1",
        "run add.wgsl --bind 0.1=u32:range:99999999999",
        "run add.wgsl --bind 0.1=f32:random:3",
        "run add.wgsl --out 0.1=f32:2..1",
        "run add.wgsl --save 0.1=",
        "run add.wgsl --push 1,2",
        "run add.wgsl --spec 1",
        "run add.wgsl --spec 1=18446744073709551616",
        "run add.wgsl --repeat 0",
        "run add.wgsl --workers 0",
        "run add.wgsl --time-limit -1",
        "run add.wgsl --time-limit nan",
        "run add.wgsl --schedule backwards",
        "run add.wgsl --schedule random",
        "exec --schedule random:x -- true",
        "info extra",
    ] {
        folder.usage(line);
    }
}

#[test]
fn negative_values_are_values() {
    let folder = add("negative");
    for (line, part) in [
        ("run add.wgsl --groups -1", "'-1' for '--groups <X[,Y[,Z]]>': \"-1\" is not a number from 0 to 4294967295"),
        (
            "run add.wgsl --invocations 5000000000",
            "for '--invocations <X[,Y[,Z]]>': \"5000000000\" is not a number from 0 to 4294967295",
        ),
        ("run add.wgsl --repeat -1", "-1 is not in 1.."),
        ("run add.wgsl --workers -1", "-1 is not in 1..=1024"),
        ("run add.wgsl --time-limit -1", "must be more than 0"),
        ("run add.wgsl --spec -1=1", "\"-1\" is not a SpecId"),
        ("run add.wgsl --push -1", "use TYPE:a,b,c"),
        ("run add.wgsl --bind -1", "use G.B="),
        ("run add.wgsl --bind 0.1=1,2", "\"1,2\" has no type: use TYPE:a,b,c, such as u32:1,2"),
        ("run add.wgsl --out 0.1", "\"0.1\" has no type: use G.B=TYPE, such as 0.1=u32"),
        ("run add.wgsl --check spec", "a profile follows an equals sign: '--check=spec'"),
        ("add.wgsl", "a shader runs with 'spelter run add.wgsl'"),
        ("run add.wgsl --out -1.0=u32", "is not a binding"),
        ("run add.wgsl --bind 0.1=u32:-1", "\"-1\" is not a u32, a whole number from 0 to 4294967295"),
    ] {
        let message = folder.usage(line);
        assert!(message.contains(part), "{line}: {message}");
    }
}

/// Help that cannot be written is a failure, as for all other output.
#[test]
#[cfg(target_os = "linux")]
fn help_that_cannot_be_written() {
    for line in ["--help", "run --help", "--version", "help run"] {
        let full = std::fs::OpenOptions::new().write(true).open("/dev/full").unwrap();
        let mut command = Command::new(env!("CARGO_BIN_EXE_spelter"));
        let ended = command.args(line.split_whitespace()).stdout(full).output().unwrap();
        let message = String::from_utf8(ended.stderr).unwrap();
        assert_eq!(ended.status.code(), Some(1), "{line}: {message}");
        assert!(message.starts_with("error: output: "), "{line}: {message}");
    }
}

/// Constants that do not fit are reported with the range of their type.
#[test]
fn constants_out_of_range() {
    let constants = "
        @id(1) override u: u32 = 1u;
        @id(2) override i: i32 = 1;
        @id(3) override f: f32 = 1;
        @id(4) override b: bool = true;
        @group(0) @binding(0) var<storage, read_write> to: array<i32>;
        @compute @workgroup_size(1) fn main() { to[0] = select(i32(u) + i, i32(f), b); }";
    let folder = Folder::with("constants-range", "constants.wgsl", constants);
    for (given, message) in [
        ("1=-1", "specialization constant 1 (u: u32) cannot be -1: it is from 0 to 4294967295"),
        (
            "2=4000000000",
            "specialization constant 2 (i: i32) cannot be 4000000000: it is from -2147483648 to 2147483647",
        ),
        ("1=5000000000", "specialization constant 1 (u: u32) cannot be 5000000000: it is from 0 to 4294967295"),
        ("3=1e39", "specialization constant 3 (f: f32) cannot be 1e39: it is from -3.4028235e38 to 3.4028235e38"),
        ("3=true", "specialization constant 3 (f: f32) cannot be true: write a number of type f32"),
        ("4=2", "specialization constant 4 (b: bool) cannot be 2: write true or false"),
    ] {
        let reported = folder.error(&format!("run constants.wgsl --bind 0.0=zeros:4 --spec {given}"));
        assert_eq!(reported, format!("constants.wgsl: {message}"));
    }
    let reported = folder.error("run constants.wgsl --bind 0.0=zeros:4 --spec 3=nan");
    let expected = "WGSL has no infinity and no NaN: the override `f`, specialization constant 3, cannot be NaN";
    assert!(reported.contains(&format!("{expected} at constants.wgsl:4:")), "{reported}");
    for (given, message) in [
        ("1=18446744073709551616", "integers are from -9223372036854775808 to 18446744073709551615"),
        ("1=1e400", "floats are from -1.7976931348623157e308 to 1.7976931348623157e308"),
    ] {
        let reported = folder.usage(&format!("run constants.wgsl --spec {given}"));
        assert!(reported.contains(&format!("is out of range: {message}")), "{reported}");
    }
}

/// Scripts tell causes apart by the status (docs/running.md).
#[test]
fn statuses_say_the_cause() {
    let folder = Folder::with(
        "statuses",
        "add.wgsl",
        "
        @group(0) @binding(0) var<storage, read_write> a: array<u32, 4>;
        @compute @workgroup_size(1) fn main() { while a[0] == 7u { a[1] = a[2] + 1u; } }",
    );
    folder.write(
        "draw.wgsl",
        b"@group(0) @binding(0) var to: texture_storage_2d<rgba8unorm, write>;
        @compute @workgroup_size(1) fn main() { textureStore(to, vec2(0u), vec4(1.0)); }",
    );
    folder.write("bad.png", b"no picture");
    folder.write("bad.wgsl", b"fn main( {");
    folder.write("bad.spv", &[7; 6]);
    folder.write("bad.spvasm", b"OpNothing");
    for (line, status) in [
        ("run missing.wgsl", 1),
        ("run add.wgsl --bind 0.0=@missing", 1),
        ("run add.wgsl --groups x", 2),
        ("run bad.wgsl", 4),
        ("compile bad.wgsl", 4),
        ("run bad.spv", 4),
        ("run bad.spvasm", 4),
        ("litmus bad.wgsl", 4),
        ("run add.wgsl", 5),
        ("run add.wgsl --bind 0.0=zeros:4", 5),
        ("run add.wgsl --bind 0.1=zeros:16", 5),
        ("run add.wgsl --bind b=zeros:16", 5),
        ("run add.wgsl --bind 0.0=zeros:0", 5),
        ("run add.wgsl --bind 0.0=zeros:16 --groups 70000", 5),
        ("run add.wgsl --bind 0.0=zeros:16 --invocations 70000", 5),
        ("run draw.wgsl --image 0.0=missing.png", 1),
        ("run draw.wgsl --image 0.0=bad.png", 1),
        ("run draw.wgsl --image 0.0=rgba8unorm:99999x99999", 5),
        ("run draw.wgsl --image 0.0=rgba8unorm:20000x1", 5),
        ("run draw.wgsl --image 0.0=rgba8unorm:4x4:levels=9", 5),
        ("run draw.wgsl --image 0.0=rgba8unorm:4x4:@bad.png", 5),
        ("run draw.wgsl --image 0.0=rgba8unorm:2x2x2", 5),
        ("bench add.wgsl --bind 0.0=zeros:0", 5),
        ("bench add.wgsl --bytes 64G", 5),
        ("bench add.wgsl --bytes 4", 5),
        ("bench add.wgsl --groups 1..65536", 5),
        ("bench add.wgsl --groups 4000000000,4000000000,4000000000", 5),
        ("bench add.wgsl --push u32:invocations --groups 70000,70000", 5),
        ("profile add.wgsl --push u32:1", 5),
        ("litmus add.wgsl --bind 0.0=zeros:64G", 5),
        ("run add.wgsl --bind 0.0=zeros:16 --push u32:1", 5),
        ("run add.wgsl --bind 0.0=zeros:16 --spec 3=1", 5),
        ("run add.wgsl --bind 0.0=zeros:16 --entry other", 5),
        ("run add.wgsl --bind 0.0=zeros:16 --out 0.0=u32:2..9", 5),
        ("run add.wgsl --bind 0.0=u32:7,0,0,0 --time-limit 0.1", 6),
        ("run add.wgsl --bind 0.0=zeros:16", 0),
    ] {
        let ended = folder.spelter(line);
        assert_eq!(ended.status, status, "{line}: {}", ended.stderr);
    }
}
