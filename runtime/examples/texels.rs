//! A table of colours as a texel buffer: bytes in memory, floats in the shader. The table changes while it is in use.
//!
//! WGSL has no texel buffers, so the shader is SPIR-V: what `imageLoad` and `texelFetch` of a `samplerBuffer` become.

#![allow(clippy::print_stdout)] // an example shows its result

use spelter::{Bind, Context, vk};
use spelter_shaders::front::spvasm;

const LOOK_UP: &str = "
OpCapability Shader
OpCapability SampledBuffer
OpMemoryModel Logical GLSL450
OpEntryPoint GLCompute %main \"main\" %id
OpExecutionMode %main LocalSize 1 1 1
OpDecorate %id BuiltIn GlobalInvocationId
OpDecorate %table DescriptorSet 0
OpDecorate %table Binding 0
OpDecorate %words ArrayStride 4
OpDecorate %block Block
OpMemberDecorate %block 0 Offset 0
OpDecorate %source DescriptorSet 0
OpDecorate %source Binding 1
OpDecorate %to DescriptorSet 0
OpDecorate %to Binding 2
%void = OpTypeVoid
%signature = OpTypeFunction %void
%uint = OpTypeInt 32 0
%int = OpTypeInt 32 1
%float = OpTypeFloat 32
%uint3 = OpTypeVector %uint 3
%float4 = OpTypeVector %float 4
%zero = OpConstant %int 0
%uzero = OpConstant %uint 0
%texels = OpTypeImage %float Buffer 0 0 0 1 Unknown
%texels_pointer = OpTypePointer UniformConstant %texels
%table = OpVariable %texels_pointer UniformConstant
%words = OpTypeRuntimeArray %uint
%block = OpTypeStruct %words
%block_pointer = OpTypePointer StorageBuffer %block
%word_pointer = OpTypePointer StorageBuffer %uint
%source = OpVariable %block_pointer StorageBuffer
%to = OpVariable %block_pointer StorageBuffer
%id_pointer = OpTypePointer Input %uint3
%id = OpVariable %id_pointer Input
%main = OpFunction %void None %signature
%label = OpLabel
%all = OpLoad %uint3 %id
%x = OpCompositeExtract %uint %all 0
%from = OpAccessChain %word_pointer %source %zero %x
%index = OpLoad %uint %from
%sindex = OpBitcast %int %index
%image = OpLoad %texels %table
%texel = OpImageFetch %float4 %image %sindex
%value = OpCompositeExtract %float %texel 0
%bits = OpBitcast %uint %value
%target = OpAccessChain %word_pointer %to %zero %x
OpStore %target %bits
OpReturn
OpFunctionEnd
";

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let context = Context::new()?;
    let program = context.program_spirv(&spvasm::assemble(LOOK_UP)?)?;
    let table = context.buffer(4).label("table").holding(&[0u8, 51, 102, 255])?;
    let indices = context.buffer_from(&[3u32, 1, 2, 0, 9])?;
    let (first, second) = (context.buffer_zeroed(20)?, context.buffer_zeroed(20)?);
    context.bind((0, 0), Bind::texels(&table, vk::Format::R8_UNORM))?;
    context.bind((0, 1), Bind::storage(&indices))?;
    context.bind((0, 2), Bind::storage(&first))?;
    context.dispatch(&program).groups([5, 1, 1])?;
    // The table is in use: it gets new storage, and its view is made anew.
    context.upload(&table, &[255u8, 204, 153, 0])?;
    context.bind((0, 2), Bind::storage(&second))?;
    context.dispatch(&program).groups([5, 1, 1])?;
    println!("{:?}", context.read::<f32>(&first)?); // [1.0, 0.2, 0.4, 0.0, 0.0]: what is outside is 0
    println!("{:?}", context.read::<f32>(&second)?); // [0.0, 0.8, 0.6, 1.0, 0.0]
    println!("{} views made anew", context.stats().rebinds_sampler_view);
    Ok(())
}
