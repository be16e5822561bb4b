//! `spelter reflect`: what a shader needs from a host program.

use crate::common::Folder;
use serde_json::json;

const SCENE: &str = "
struct Light { color: vec3f, kind: u32 }
struct Scene { count: u32, at: vec3f, turn: mat3x3f, lights: array<Light> }
@id(3) override size: u32 = 8u;
@group(0) @binding(0) var<storage, read_write> scene: Scene;
@group(0) @binding(1) var<uniform> rows: array<vec4f, 3>;
@group(1) @binding(2) var image: texture_storage_2d<r32uint, write>;
var<immediate> scale: vec2f;
@compute @workgroup_size(size, 2) fn main() {
    scene.at = rows[1].xyz * scale.x;
    scene.lights[0].kind = scene.count;
}
@compute @workgroup_size(1) fn draw() { textureStore(image, vec2(0u), vec4(1u)); }";

#[test]
fn entry_points_are_listed_with_their_layouts() {
    let folder = Folder::with("reflect_text", "scene.wgsl", SCENE);
    let expected = "\
main: workgroup 8x2x1
push constants: 8 bytes
        0  vec2<f32>
0.0 scene: storage buffer, read and written, 80 bytes and 16 bytes for each element
        0  count    u32
       16  at       vec3<f32>
       32  turn     mat3x3<f32>  stride 16
       80  lights   array<Light>  stride 16
        0    color  vec3<f32>
       12    kind   u32
0.1 rows: uniform buffer, 48 bytes
        0  array<vec4<f32>, 3>  stride 16

draw: workgroup 1x1x1
1.2 image: storage image, only written
specialization constant 3 (size: u32)
";
    assert_eq!(folder.good("reflect scene.wgsl"), expected);
    let draw = folder.good("reflect scene.wgsl --entry draw --spec 3=4");
    assert_eq!(draw.lines().next(), Some("draw: workgroup 1x1x1"));
    let message = folder.error("reflect scene.wgsl --entry other");
    assert!(message.contains("no entry point \"other\"; the shader has main, draw"), "{message}");
}

#[test]
fn json_has_all_of_it() {
    let folder = Folder::with("reflect_json", "scene.wgsl", SCENE);
    let value = folder.json("reflect scene.wgsl --spec 3=16 --json");
    let main = &value["entry_points"][0];
    assert_eq!(main["workgroup_size"], json!([16, 2, 1]));
    let scene = &main["bindings"][0];
    let sizes = [&scene["name"], &scene["min_bytes"], &scene["element_bytes"]];
    assert_eq!(sizes, [&json!("scene"), &json!(80), &json!(16)]);
    let lights = &scene["layout"]["members"][3];
    let names = [&lights["name"], &lights["offset"], &lights["stride"], &lights["count"]];
    assert_eq!(names, [&json!("lights"), &json!(80), &json!(16), &json!(null)]);
    assert_eq!(lights["element"]["members"][1], json!({ "name": "kind", "offset": 12, "type": "u32" }));
    assert_eq!(main["push_constants"], json!({ "bytes": 8, "layout": { "type": "vec2<f32>", "stride": 4 } }));
    assert_eq!(value["specialization_constants"][0], json!({ "id": 3, "name": "size", "type": "u32" }));
}

/// Names are those of the module, if it has them.
#[test]
fn modules_without_names_have_numbers() {
    let text = "
        OpCapability Shader
        OpMemoryModel Logical GLSL450
        OpEntryPoint GLCompute %main \"main\"
        OpExecutionMode %main LocalSize 4 1 1
        OpDecorate %block Block
        OpMemberDecorate %block 0 Offset 0
        OpMemberDecorate %block 1 Offset 8
        OpDecorate %data DescriptorSet 2
        OpDecorate %data Binding 1
        %void = OpTypeVoid
        %signature = OpTypeFunction %void
        %uint = OpTypeInt 32 0
        %int = OpTypeInt 32 1
        %zero = OpConstant %uint 0
        %block = OpTypeStruct %uint %int
        %whole = OpTypePointer StorageBuffer %block
        %part = OpTypePointer StorageBuffer %uint
        %data = OpVariable %whole StorageBuffer
        %main = OpFunction %void None %signature
        %label = OpLabel
        %place = OpAccessChain %part %data %zero
        OpStore %place %zero
        OpReturn
        OpFunctionEnd";
    let folder = Folder::with("reflect_bare", "bare.spvasm", text);
    let expected = "\
main: workgroup 4x1x1
2.1: storage buffer, only written, 12 bytes
        0  0  u32
        8  1  i32
";
    assert_eq!(folder.good("reflect bare.spvasm"), expected);
}

/// What an entry point does with a binding, and what the binding is declared for.
#[test]
fn accesses_are_those_of_the_entry_point() {
    let text = "
        @group(0) @binding(0) var<storage, read> source: array<u32, 4>;
        @group(0) @binding(1) var<storage, read_write> to: array<u32, 4>;
        @group(0) @binding(2) var<storage, read_write> list: array<u32>;
        @group(0) @binding(3) var<storage, read_write> count: atomic<u32>;
        @compute @workgroup_size(1) fn main() { to[0] = source[1] + arrayLength(&list); atomicAdd(&count, 1u); }
        @compute @workgroup_size(1) fn other() { list[0] = to[0]; atomicStore(&count, 0u); }";
    let folder = Folder::with("reflect_accesses", "accesses.wgsl", text);
    let shown = folder.good("reflect accesses.wgsl");
    let bindings: Vec<&str> = shown.lines().filter(|line| line.starts_with("0.")).collect();
    let expected = [
        "0.0 source: storage buffer, read only, 16 bytes",
        "0.1 to: storage buffer, only written, 16 bytes",
        "0.2 list: storage buffer, neither read nor written, 4 bytes for each element",
        "0.3 count: storage buffer, read and written, 4 bytes",
        "0.1 to: storage buffer, only read, 16 bytes",
        "0.2 list: storage buffer, only written, 4 bytes for each element",
        "0.3 count: storage buffer, only written, 4 bytes",
    ];
    assert_eq!(bindings, expected);
    let to = &folder.json("reflect accesses.wgsl --entry main --json")["entry_points"][0]["bindings"][1];
    assert_eq!([&to["read_only"], &to["reads"], &to["writes"]], [&json!(false), &json!(false), &json!(true)]);
}

/// `local_size_x_id` of GLSL: the size of the workgroup and the constant of the shader have one `SpecId`.
#[test]
fn constants_that_share_an_id_are_one() {
    let text = "
        OpCapability Shader
        OpMemoryModel Logical GLSL450
        OpEntryPoint GLCompute %main \"main\"
        OpExecutionMode %main LocalSize 1 1 1
        OpName %width \"width\"
        OpDecorate %x SpecId 3
        OpDecorate %width SpecId 3
        OpDecorate %size BuiltIn WorkgroupSize
        %void = OpTypeVoid
        %signature = OpTypeFunction %void
        %uint = OpTypeInt 32 0
        %vector = OpTypeVector %uint 3
        %one = OpConstant %uint 1
        %x = OpSpecConstant %uint 8
        %width = OpSpecConstant %uint 8
        %size = OpSpecConstantComposite %vector %x %one %one
        %main = OpFunction %void None %signature
        %label = OpLabel
        OpReturn
        OpFunctionEnd";
    let folder = Folder::with("reflect_ids", "size.spvasm", text);
    let with = |options: &str| folder.good(&format!("reflect size.spvasm {options}"));
    assert_eq!(with(""), "main: workgroup 8x1x1\nspecialization constant 3 (width: u32)\n");
    assert_eq!(with("--spec 3=4").lines().next(), Some("main: workgroup 4x1x1"));
    assert_eq!(with("--spec width=4"), with("--spec 3=4"));
}

/// A name does not decide how wide all lines are.
#[test]
fn long_names_are_listed() {
    let name = |letter: &str, bytes: usize| letter.repeat(bytes);
    let text = format!(
        "OpCapability Shader
        OpMemoryModel Logical GLSL450
        OpEntryPoint GLCompute %main \"main\"
        OpExecutionMode %main LocalSize 1 1 1
        OpName %block \"Data\"
        OpMemberName %block 0 \"{}\"
        OpMemberName %block 1 \"b\"
        OpDecorate %block Block
        OpMemberDecorate %block 0 Offset 0
        OpMemberDecorate %block 1 Offset 4
        OpDecorate %out DescriptorSet 0
        OpDecorate %out Binding 0
        %void = OpTypeVoid
        %fn = OpTypeFunction %void
        %u32 = OpTypeInt 32 0
        %c0 = OpConstant %u32 0
        %block = OpTypeStruct %u32 %u32
        %ptr_block = OpTypePointer StorageBuffer %block
        %ptr_u32 = OpTypePointer StorageBuffer %u32
        %out = OpVariable %ptr_block StorageBuffer
        %main = OpFunction %void None %fn
        %entry = OpLabel
        %place = OpAccessChain %ptr_u32 %out %c0
        OpStore %place %c0
        OpReturn
        OpFunctionEnd",
        name("a", 70_000)
    );
    let folder = Folder::with("reflect_long", "long.spvasm", &text);
    let listed = folder.good("reflect long.spvasm");
    let rows: Vec<&str> = listed.lines().skip(2).collect();
    assert_eq!(rows, [format!("        0  {}  u32", name("a", 1024)), format!("        4  b{}  u32", name(" ", 63))]);
    let value = folder.json("reflect long.spvasm --json");
    assert_eq!(value["entry_points"][0]["bindings"][0]["layout"]["members"][0]["name"], name("a", 1024));
}

/// What all entry points need is listed in bounded memory.
#[test]
fn entry_points_that_need_too_much_are_listed_alone() {
    let each = |numbers: std::ops::RangeInclusive<u32>, line: &dyn Fn(u32) -> String| -> String {
        numbers.map(|number| line(number) + "\n").collect()
    };
    // A structure with 2^11 numbers in 40 entry points.
    let text = format!(
        "OpCapability Shader
        OpMemoryModel Logical GLSL450
        {}{}
        OpDecorate %s11 Block
        {}
        OpDecorate %out DescriptorSet 0
        OpDecorate %out Binding 0
        %void = OpTypeVoid
        %fn = OpTypeFunction %void
        %s0 = OpTypeInt 32 0
        %c0 = OpConstant %s0 0
        {}
        %ptr = OpTypePointer StorageBuffer %s11
        %ptr_u32 = OpTypePointer StorageBuffer %s0
        %out = OpVariable %ptr StorageBuffer
        {}",
        each(1..=40, &|n| format!("OpEntryPoint GLCompute %main{n} \"main{n}\"")),
        each(1..=40, &|n| format!("OpExecutionMode %main{n} LocalSize 1 1 1")),
        each(1..=11, &|n| format!(
            "OpMemberDecorate %s{n} 0 Offset 0\nOpMemberDecorate %s{n} 1 Offset {}",
            4 << (n - 1)
        )),
        each(1..=11, &|n| format!("%s{n} = OpTypeStruct %s{0} %s{0}", n - 1)),
        each(1..=40, &|n| format!(
            "%main{n} = OpFunction %void None %fn
            %entry{n} = OpLabel
            %place{n} = OpAccessChain %ptr_u32 %out {}
            OpStore %place{n} %c0
            OpReturn
            OpFunctionEnd",
            "%c0 ".repeat(11)
        )),
    );
    let folder = Folder::with("reflect_all", "all.spvasm", &text);
    let message = folder.error("reflect all.spvasm");
    assert!(message.contains("choose one with --entry"), "{message}");
    assert_eq!(folder.good("reflect all.spvasm --entry main7").lines().count(), 2 + 4094);
}
