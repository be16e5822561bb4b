//! y = a * x + y on CPU workers: the program of the README.

#![allow(clippy::print_stdout)] // an example shows its result

use spelter::Context;

const SAXPY: &str = "
    var<immediate> a: f32;
    @group(0) @binding(0) var<storage, read> x: array<f32>;
    @group(0) @binding(1) var<storage, read_write> y: array<f32>;
    @compute @workgroup_size(64)
    fn main(@builtin(global_invocation_id) id: vec3<u32>) {
        if id.x < arrayLength(&y) { y[id.x] += a * x[id.x]; }
    }";

fn main() -> Result<(), spelter::Error> {
    let context = Context::new()?;
    let program = context.program_wgsl(SAXPY)?;
    let x = context.buffer_from(&[1.0f32, 2.0, 3.0])?;
    let y = context.buffer_from(&[10.0f32, 20.0, 30.0])?;
    context.dispatch(&program).bind(0, 0, &x).bind(0, 1, &y).push(&2.0f32).invocations([3, 1, 1])?;
    println!("{:?}", context.read::<f32>(&y)?); // [12.0, 24.0, 36.0]
    Ok(())
}
