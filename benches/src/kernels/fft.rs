//! Many transforms of 1024 complex numbers, each in the workgroup memory of one workgroup.

use std::f64::consts::PI;

use rayon::prelude::*;
use spelter::{Buffer, Context, Program};

use crate::unit::{Limit, Target, Unit, Yardstick};
use crate::work::{Cost, Kernel, Size, Work, bound, shader};
use crate::{Error, check, data};

pub(super) const FFT: Kernel = Kernel {
    name: "fft",
    unit: Unit::Flops,
    limit: Limit::MultiplyAdd,
    target: Target { factor: 10.0, of: Yardstick::Lavapipe(1.77) },
    prepare: |context, size| Ok(Box::new(Fft::new(context, size)?)),
};

const POINTS: usize = 1024;
const HALF: usize = POINTS / 2;
/// Binary logarithm of the number of points.
const STAGES: usize = 10;

struct Fft {
    context: Context,
    program: Program,
    /// Input, output, and the factors of half a twiddles.
    buffers: [Buffer; 3],
    input: Vec<[f32; 2]>,
    twiddles: Vec<[f32; 2]>,
    output: Vec<[f32; 2]>,
}

impl Fft {
    fn new(context: &Context, size: Size) -> Result<Self, Error> {
        let points = POINTS * size.pick(2, 2048);
        let input = data::floats(19, 2 * points, -1.0, 1.0).as_chunks().0.to_vec();
        let angle = |step: usize| -2.0 * PI * step as f64 / POINTS as f64;
        let twiddles = (0..HALF).map(|step| [angle(step).cos() as f32, angle(step).sin() as f32]).collect::<Vec<_>>();
        let output = vec![[0.0; 2]; points];
        let buffers = [context.buffer_from(&input)?, context.buffer_from(&output)?, context.buffer_from(&twiddles)?];
        let program = context.program_wgsl(shader!("fft"))?;
        Ok(Self { context: context.clone(), program, buffers, input, twiddles, output })
    }
}

impl Work for Fft {
    /// Five operations for each point and stage, by the usual count.
    fn cost(&self) -> Cost {
        let points = self.input.len();
        let working_set = points * 16;
        Cost { amount: (5 * points * STAGES) as f64, bytes: working_set as f64, working_set }
    }

    fn record(&self) -> Result<(), Error> {
        let groups = (self.input.len() / POINTS) as u32;
        Ok(bound(&self.context, &self.program, &self.buffers.each_ref()).groups([groups, 1, 1])?)
    }

    fn plain(&mut self) {
        let twiddles = &self.twiddles;
        let blocks = self.output.par_chunks_mut(POINTS).zip(self.input.par_chunks(POINTS));
        blocks.for_each(|(output, input)| fft(output, input, twiddles));
    }

    fn compare(&self) -> Result<(), Error> {
        let got: Vec<[f32; 2]> = self.context.read(&self.buffers[1])?;
        check::close(got.as_flattened(), self.output.as_flattened(), 30.0, 1e-5)
    }
}

/// Real and imaginary parts separately, so that loops over them are vectorized.
type SplitComplex = [[f32; POINTS]; 2];

native! {
    fn fft(output: &mut [[f32; 2]], input: &[[f32; 2]], twiddles: &[[f32; 2]]) {
        let (mut from, mut to): (SplitComplex, SplitComplex) = ([[0.0; POINTS]; 2], [[0.0; POINTS]; 2]);
        for (i, &[re, im]) in input.iter().enumerate() {
            (from[0][i], from[1][i]) = (re, im);
        }
        for stage in 0..STAGES {
            butterflies(&mut to, &from, twiddles, 1 << stage);
            std::mem::swap(&mut from, &mut to);
        }
        for (i, point) in output.iter_mut().enumerate() {
            *point = [from[0][i], from[1][i]];
        }
    }
}

/// One stage: blocks of `span` butterflies that share their twiddle factors.
#[inline(always)]
fn butterflies(to: &mut SplitComplex, from: &SplitComplex, twiddles: &[[f32; 2]], span: usize) {
    for first in (0..HALF).step_by(span) {
        for k in 0..span {
            let [c, s] = twiddles[k * (HALF / span)];
            let (even, odd) = (first + k, first + k + HALF);
            let (re, im) = (c * from[0][odd] - s * from[1][odd], c * from[1][odd] + s * from[0][odd]);
            let at = 2 * first + k;
            (to[0][at], to[1][at]) = (from[0][even] + re, from[1][even] + im);
            (to[0][at + span], to[1][at + span]) = (from[0][even] - re, from[1][even] - im);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_frequency_gives_one_peak() {
        let root_of_unity = |step: usize| {
            let angle = 2.0 * PI * step as f64 / POINTS as f64;
            [angle.cos() as f32, angle.sin() as f32]
        };
        let input: Vec<_> = (0..POINTS).map(|i| root_of_unity(5 * i)).collect();
        let twiddles: Vec<_> = (0..HALF).map(|step| root_of_unity(POINTS - step)).collect();
        let mut output = vec![[0.0; 2]; POINTS];
        fft(&mut output, &input, &twiddles);
        for (k, [re, im]) in output.into_iter().enumerate() {
            let want = if k == 5 { POINTS as f32 } else { 0.0 };
            assert!((re - want).abs() < 1e-2 && im.abs() < 1e-2, "{k}: {re} {im}");
        }
    }
}
