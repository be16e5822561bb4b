//! Gravity between all pairs of bodies, for a few time steps.

use spelter::Context;

use super::check;
use super::stage::{Done, Stage};
use crate::failure::Failure;
use crate::random::Random;

const COUNT: usize = 1024;
const WIDTH: usize = 64;
/// Steps of a run: an even number, so that it ends in the buffer in which it began.
const STEPS: usize = 4;

/// The kernel's push constants.
#[repr(C)]
#[derive(Clone, Copy, bytemuck::NoUninit)]
struct Parameters {
    count: u32,
    time_step: f32,
    softening: f32,
}

const PARAMETERS: Parameters = Parameters { count: COUNT as u32, time_step: 0.01, softening: 0.01 };

pub(super) fn run(stage: &Stage<'_>) -> Result<Done, Failure> {
    let mut random = Random::new(6);
    let bodies: Vec<[f32; 4]> = (0..COUNT)
        .map(|_| [random.signed(), random.signed(), random.signed(), random.fraction() / COUNT as f32])
        .collect();
    let program = stage.context.program_wgsl(include_str!("../../../../shaders/library/nbody.wgsl"))?;
    let now = stage.buffer(&bodies)?;
    let (next, velocities) = (stage.words(COUNT * 4)?, stage.words(COUNT * 4)?);

    let record = |context: &Context| {
        let mut pair = (&now, &next);
        for _ in 0..STEPS {
            let (now, next) = pair;
            let dispatch = context.dispatch(&program).bind(0, 0, now).bind(0, 1, &velocities).bind(0, 2, next);
            dispatch.push(&PARAMETERS).groups([(COUNT / WIDTH) as u32, 1, 1])?;
            pair = (next, now);
        }
        Ok(())
    };
    stage.run(record)?;

    // The reference uses double precision. Positions are below 2, and rounding errors grow little in a few steps.
    let want: Vec<f64> = reference(&bodies).into_iter().flatten().collect();
    check::close(&stage.context.read(&now)?, &want, 1e-5)?;
    let pairs = (COUNT * COUNT * STEPS) as f64 / 1e6;
    Ok(stage.measured(record, pairs, "M pairs/s")?.note("1024 bodies, 4 steps"))
}

fn reference(bodies: &[[f32; 4]]) -> Vec<[f64; 4]> {
    let mut now: Vec<[f64; 4]> = bodies.iter().map(|body| body.map(f64::from)).collect();
    let mut velocities = vec![[0.0; 3]; now.len()];
    let step = f64::from(PARAMETERS.time_step);
    for _ in 0..STEPS {
        for (velocity, body) in velocities.iter_mut().zip(&now) {
            let pull = acceleration(body, &now);
            for axis in 0..3 {
                velocity[axis] += pull[axis] * step;
            }
        }
        for (body, velocity) in now.iter_mut().zip(&velocities) {
            for axis in 0..3 {
                body[axis] += velocity[axis] * step;
            }
        }
    }
    now
}

fn acceleration(body: &[f64; 4], all: &[[f64; 4]]) -> [f64; 3] {
    let mut sum = [0.0; 3];
    for other in all {
        let offset: [f64; 3] = std::array::from_fn(|axis| other[axis] - body[axis]);
        let square = offset.iter().map(|w| w * w).sum::<f64>() + f64::from(PARAMETERS.softening);
        let strength = other[3] / (square * square.sqrt());
        for axis in 0..3 {
            sum[axis] += offset[axis] * strength;
        }
    }
    sum
}
