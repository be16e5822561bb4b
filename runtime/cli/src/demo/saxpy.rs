//! y = a x + y over four million elements: bound by memory bandwidth.

use spelter::Context;

use super::check;
use super::stage::{Done, Stage};
use crate::failure::Failure;
use crate::random::Random;

const COUNT: usize = 1 << 22;
const A: f32 = 2.5;

pub(super) fn run(stage: &Stage<'_>) -> Result<Done, Failure> {
    let mut random = Random::new(1);
    let x: Vec<f32> = (0..COUNT).map(|_| random.signed()).collect();
    let y: Vec<f32> = (0..COUNT).map(|_| random.signed()).collect();
    let program = stage.context.program_wgsl(include_str!("../../../../shaders/library/saxpy.wgsl"))?;
    let (x_buffer, y_buffer) = (stage.buffer(&x)?, stage.buffer(&y)?);

    let record = |context: &Context| {
        let dispatch = context.dispatch(&program).bind(0, 0, &x_buffer).bind(0, 1, &y_buffer);
        dispatch.push(&A).push(&(COUNT as u32)).invocations([COUNT as u32, 1, 1])
    };
    stage.run(record)?;

    let want: Vec<f64> = x.iter().zip(&y).map(|(&x, &y)| f64::from(A) * f64::from(x) + f64::from(y)).collect();
    // Results are below 4: each of the two operations rounds by at most half of 2⁻²².
    check::close(&stage.context.read(&y_buffer)?, &want, 2.5e-7)?;
    let gigabytes = (COUNT * 12) as f64 / 1e9;
    Ok(stage.measured(record, gigabytes, "GB/s")?.note("4 M elements"))
}
