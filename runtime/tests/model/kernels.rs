//! The programs that are dispatched: as shaders, and as plain Rust, word by word.
//!
//! Together they use descriptors of every kind. A result that is computed from an undefined word is undefined.

use spelter::{Context, Program};
use spelter_shaders::front::spvasm;

use crate::model::shape::size_of_level;
use crate::model::step::Kind;

/// A word, if it is defined.
pub(crate) type Word = Option<u32>;

/// A descriptor of a program, in the order of its bindings.
pub(crate) struct Taken {
    pub(crate) binding: u32,
    pub(crate) kind: Kind,
    pub(crate) writes: bool,
}

const fn reads(binding: u32, kind: Kind) -> Taken {
    Taken { binding, kind, writes: false }
}

const fn writes(binding: u32, kind: Kind) -> Taken {
    Taken { binding, kind, writes: true }
}

/// The number of programs.
pub(crate) const PROGRAMS: usize = 7;

/// The program that has push constants.
pub(crate) const PUSHES: usize = 6;

/// The descriptors of the programs, by number.
pub(crate) const TAKES: [&[Taken]; PROGRAMS] = [
    &[reads(0, Kind::Uniform), reads(1, Kind::Storage), writes(2, Kind::Storage)],
    &[reads(0, Kind::Uniform), reads(1, Kind::Storage), writes(2, Kind::Storage)],
    &[reads(0, Kind::Uniform), writes(1, Kind::Storage), writes(2, Kind::Storage)],
    &[writes(2, Kind::Storage), reads(4, Kind::Texels)],
    &[reads(1, Kind::Storage), writes(5, Kind::StorageTexels)],
    &[reads(0, Kind::Uniform), reads(6, Kind::Sampled), writes(7, Kind::StorageImage)],
    &[writes(2, Kind::Storage)],
];

const HEAD: &str = "
@group(0) @binding(0) var<uniform> u: u32;
@group(0) @binding(1) var<storage, read> a: array<u32>;
@group(0) @binding(2) var<storage, read_write> b: array<u32>;
@compute @workgroup_size(16)
fn main(@builtin(global_invocation_id) id: vec3<u32>) {
    let i = id.x;";

const PUSH: &str = "
var<immediate> p: u32;
@group(0) @binding(2) var<storage, read_write> b: array<u32>;
@compute @workgroup_size(16)
fn main(@builtin(global_invocation_id) id: vec3<u32>) {
    if id.x < arrayLength(&b) { b[id.x] = b[id.x] * 3u + p; }
}";

const IMAGES: &str = "
@group(0) @binding(0) var<uniform> u: u32;
@group(0) @binding(6) var before: texture_2d<u32>;
@group(0) @binding(7) var after: texture_storage_2d<r32uint, read_write>;
@compute @workgroup_size(16)
fn main(@builtin(global_invocation_id) id: vec3<u32>) {
    let size = min(textureDimensions(before), textureDimensions(after));
    for (var y = 0u; y < size.y && id.x < size.x; y++) {
        let at = vec2(id.x, y);
        textureStore(after, at, textureLoad(after, at) * 3u + textureLoad(before, at, 0) + vec4(u));
    }
}";

/// Reads out of bounds give 0 and writes are dropped, so neither of the two checks sizes.
const TEXELS: &str = "
OpCapability Shader
OpCapability SampledBuffer
OpCapability ImageBuffer
OpMemoryModel Logical GLSL450
OpEntryPoint GLCompute %main \"main\" %id
OpExecutionMode %main LocalSize 16 1 1
OpDecorate %id BuiltIn GlobalInvocationId
OpDecorate %table DescriptorSet 0
OpDecorate %table Binding <table>
OpDecorate %words ArrayStride 4
OpDecorate %block Block
OpMemberDecorate %block 0 Offset 0
OpDecorate %buffer DescriptorSet 0
OpDecorate %buffer Binding <buffer>
<read>
%void = OpTypeVoid
%signature = OpTypeFunction %void
%uint = OpTypeInt 32 0
%int = OpTypeInt 32 1
%uint3 = OpTypeVector %uint 3
%uint4 = OpTypeVector %uint 4
%zero = OpConstant %int 0
%three = OpConstant %uint 3
%texels = OpTypeImage %uint Buffer 0 0 0 <sampled>
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
%texel = <load> %uint4 %image %at
%value = OpCompositeExtract %uint %texel 0
%tripled = OpIMul %uint <old> %three
%sum = OpIAdd %uint %tripled <new>
<store>
OpReturn
OpFunctionEnd
";

fn texels(parts: [(&str, &str); 8]) -> String {
    parts.into_iter().fold(TEXELS.to_owned(), |text, (name, part)| text.replace(name, part))
}

/// The programs, by number.
pub(crate) fn programs(context: &Context) -> Vec<Program> {
    let mix = format!("{HEAD} if i < min(arrayLength(&a), arrayLength(&b)) {{ b[i] = b[i] * 3u + a[i] + u; }} }}");
    let set = format!("{HEAD} if i < arrayLength(&b) {{ b[i] = u + i + min(a[0], 0u); }} }}");
    let both = format!("{HEAD} if i < min(arrayLength(&a), arrayLength(&b)) {{ a[i] += u; b[i] ^= i; }} }}")
        .replace("var<storage, read> a", "var<storage, read_write> a");
    let fetch = texels([
        ("<table>", "4"),
        ("<buffer>", "2"),
        ("<read>", ""),
        ("<sampled>", "1 Unknown"),
        ("<load>", "OpImageFetch"),
        ("<old>", "%word"),
        ("<new>", "%value"),
        ("<store>", "OpStore %place %sum"),
    ]);
    let store = texels([
        ("<table>", "5"),
        ("<buffer>", "1"),
        ("<read>", "OpDecorate %buffer NonWritable"),
        ("<sampled>", "2 R32ui"),
        ("<load>", "OpImageRead"),
        ("<old>", "%value"),
        ("<new>", "%word"),
        ("<store>", "%whole = OpCompositeConstruct %uint4 %sum %sum %sum %sum\nOpImageWrite %image %at %whole"),
    ]);
    let wgsl = |text: &str| context.program_wgsl(text).unwrap();
    let spirv = |text: &str| context.program_spirv(&spvasm::assemble(text).unwrap()).unwrap();
    vec![wgsl(&mix), wgsl(&set), wgsl(&both), spirv(&fetch), spirv(&store), wgsl(IMAGES), wgsl(PUSH)]
}

/// `to` times 3 and something.
fn tripled(to: Word, plus: Word) -> Word {
    Some(to?.wrapping_mul(3).wrapping_add(plus?))
}

/// The effect of a dispatch with enough invocations on its descriptors.
pub(crate) fn run(program: usize, taken: &mut [Vec<Word>], push: u32) {
    match (program, taken) {
        (0, [u, a, b]) => {
            for (a, b) in a.iter().zip(b) {
                *b = tripled(*b, (|| Some((*a)?.wrapping_add(u[0]?)))());
            }
        }
        (1, [u, _, b]) => b.iter_mut().enumerate().for_each(|(i, b)| *b = u[0].map(|u| u.wrapping_add(i as u32))),
        (2, [u, a, b]) => {
            for (i, (a, b)) in a.iter_mut().zip(b).enumerate() {
                *a = (|| Some((*a)?.wrapping_add(u[0]?)))();
                *b = b.map(|b| b ^ i as u32);
            }
        }
        (3, [to, from]) | (4, [from, to]) => {
            for (i, to) in to.iter_mut().enumerate() {
                *to = tripled(*to, from.get(i).copied().unwrap_or(Some(0)));
            }
        }
        (5, [u, before, after]) => {
            let ([width, height], [stride, rows]) = (size_of_level(before.len()), size_of_level(after.len()));
            for y in 0..height.min(rows) {
                for x in 0..width.min(stride) {
                    let (from, to) = (before[y * width + x], &mut after[y * stride + x]);
                    *to = tripled(*to, (|| Some(from?.wrapping_add(u[0]?)))());
                }
            }
        }
        (PUSHES, [b]) => b.iter_mut().for_each(|b| *b = tripled(*b, Some(push))),
        (program, taken) => panic!("program {program} does not take {} descriptors", taken.len()),
    }
}
