//! A table of colours as a texel buffer: bytes in memory, floats in the shader. The table changes while it is in use.
//!
//! WGSL has no texel buffers, so the shader is SPIR-V (`look_up.spvasm`), with the instructions that `texelFetch` of a
//! `samplerBuffer` becomes.

#![allow(clippy::print_stdout)] // an example shows its result

use spelter::{Bind, Context, vk};
use spelter_shaders::front::spvasm;

/// `to[i] = table[source[i]]`.
const LOOK_UP: &str = include_str!("look_up.spvasm");

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
    // The table is in use: it gets new storage and a new view.
    context.upload(&table, &[255u8, 204, 153, 0])?;
    context.bind((0, 2), Bind::storage(&second))?;
    context.dispatch(&program).groups([5, 1, 1])?;
    println!("{:?}", context.read::<f32>(&first)?); // [1.0, 0.2, 0.4, 0.0, 0.0]: out of bounds is 0
    println!("{:?}", context.read::<f32>(&second)?); // [0.0, 0.8, 0.6, 1.0, 0.0]
    println!("{} views rebound", context.stats().rebinds_sampler_view);
    Ok(())
}
