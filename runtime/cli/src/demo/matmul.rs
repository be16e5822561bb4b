//! The product of two 256 x 256 matrices, in tiles in shared memory.

use spelter::Context;

use super::check;
use super::stage::{Done, Stage};
use crate::failure::Failure;
use crate::random::Random;

const SIZE: usize = 256;
const TILE: usize = 16;

pub(super) fn run(stage: &Stage<'_>) -> Result<Done, Failure> {
    let mut random = Random::new(5);
    let a: Vec<f32> = (0..SIZE * SIZE).map(|_| random.signed()).collect();
    let b: Vec<f32> = (0..SIZE * SIZE).map(|_| random.signed()).collect();
    let program = stage.context.program_wgsl(include_str!("../../../../shaders/library/matmul.wgsl"))?;
    let (a_buffer, b_buffer, c_buffer) = (stage.buffer(&a)?, stage.buffer(&b)?, stage.words(SIZE * SIZE)?);

    let record = |context: &Context| {
        let groups = (SIZE / TILE) as u32;
        let dispatch = context.dispatch(&program).bind(0, 0, &a_buffer).bind(0, 1, &b_buffer).bind(0, 2, &c_buffer);
        dispatch.push(&(SIZE as u32)).groups([groups, groups, 1])
    };
    stage.run(record)?;

    // The rounding error of a sum of 256 numbers below 1 is far less than the tolerance; a missing product is far more.
    check::close(&stage.context.read(&c_buffer)?, &reference(&a, &b), 2e-4)?;
    let gigaflops = (2 * SIZE * SIZE * SIZE) as f64 / 1e9;
    Ok(stage.measured(record, gigaflops, "GFLOP/s")?.note("256 x 256"))
}

fn reference(a: &[f32], b: &[f32]) -> Vec<f64> {
    let mut c = vec![0.0; SIZE * SIZE];
    for (row, sums) in a.chunks_exact(SIZE).zip(c.chunks_exact_mut(SIZE)) {
        for (&a, b) in row.iter().zip(b.chunks_exact(SIZE)) {
            for (sum, &b) in sums.iter_mut().zip(b) {
                *sum += f64::from(a) * f64::from(b);
            }
        }
    }
    c
}
