//! Option prices: exponentials, logarithms and roots.

use std::f32::consts::{FRAC_1_SQRT_2, LN_2, LOG2_E};

use rayon::prelude::*;
use spelter::{Buffer, Context, Program};

use crate::unit::{Limit, Target, Unit, Yardstick};
use crate::work::{Cost, Kernel, Size, Work, bound, shader};
use crate::{Error, check, data};

pub(super) const BLACK_SCHOLES: Kernel = Kernel {
    name: "black_scholes",
    unit: Unit::Things("option"),
    limit: Limit::Triad,
    target: Target { factor: 1.2, of: Yardstick::Plain },
    prepare: |context, size| Ok(Box::new(BlackScholes::new(context, size)?)),
};

const RATE: f32 = 0.02;
const VOLATILITY: f32 = 0.3;
/// Options per task of plain Rust.
const CHUNK: usize = 16 << 10;

struct BlackScholes {
    context: Context,
    program: Program,
    /// Spot prices, strike prices, years; calls and puts.
    buffers: [Buffer; 5],
    inputs: [Vec<f32>; 3],
    calls: Vec<f32>,
    puts: Vec<f32>,
}

impl BlackScholes {
    fn new(context: &Context, size: Size) -> Result<Self, Error> {
        let count = size.pick(1000, 4 << 20);
        let inputs = [(14, 5.0, 30.0), (15, 1.0, 100.0), (16, 0.25, 10.0)];
        let inputs = inputs.map(|(seed, low, high)| data::floats(seed, count, low, high));
        let zero = || context.buffer_zeroed(count as u64 * 4);
        let input = |index: usize| context.buffer_from(&inputs[index]);
        let buffers = [input(0)?, input(1)?, input(2)?, zero()?, zero()?];
        let program = context.program_wgsl(shader!("black_scholes"))?;
        let (calls, puts) = (vec![0.0; count], vec![0.0; count]);
        Ok(Self { context: context.clone(), program, buffers, inputs, calls, puts })
    }
}

impl Work for BlackScholes {
    fn cost(&self) -> Cost {
        let count = self.calls.len();
        Cost { amount: count as f64, bytes: (20 * count) as f64, working_set: 20 * count }
    }

    fn record(&self) -> Result<(), Error> {
        let count = self.calls.len() as u32;
        let dispatch = bound(&self.context, &self.program, &self.buffers.each_ref());
        Ok(dispatch.push(&[count, RATE.to_bits(), VOLATILITY.to_bits()]).invocations([count, 1, 1])?)
    }

    fn plain(&mut self) {
        let [spots, strikes, years] = self.inputs.each_ref().map(|input| input.par_chunks(CHUNK));
        let (calls, puts) = (self.calls.par_chunks_mut(CHUNK), self.puts.par_chunks_mut(CHUNK));
        let chunks = (spots, strikes, years, calls, puts).into_par_iter();
        chunks.for_each(|(spots, strikes, years, calls, puts)| prices(spots, strikes, years, calls, puts));
    }

    /// Differences of sums of about a hundred, in single precision.
    fn compare(&self) -> Result<(), Error> {
        check::close(&self.context.read(&self.buffers[3])?, &self.calls, 100.0, 1e-5)?;
        check::close(&self.context.read(&self.buffers[4])?, &self.puts, 100.0, 1e-5)
    }
}

native! {
    fn prices(spots: &[f32], strikes: &[f32], years: &[f32], calls: &mut [f32], puts: &mut [f32]) {
        let count = spots.len();
        let (strikes, years, calls, puts) =
            (&strikes[..count], &years[..count], &mut calls[..count], &mut puts[..count]);
        for i in 0..count {
            (calls[i], puts[i]) = price(spots[i], strikes[i], years[i]);
        }
    }
}

/// The prices of a European call and put.
#[inline(always)]
fn price(spot: f32, strike: f32, years: f32) -> (f32, f32) {
    let deviation = VOLATILITY * years.sqrt();
    let d = (ln(spot / strike) + (RATE + 0.5 * VOLATILITY * VOLATILITY) * years) / deviation;
    let (first, second) = (normal(d), normal(d - deviation));
    let discounted = strike * exp(-RATE * years);
    (spot * first - discounted * second, discounted * (1.0 - second) - spot * (1.0 - first))
}

/// The cumulative normal distribution: Abramowitz and Stegun, 26.2.17.
#[inline(always)]
fn normal(d: f32) -> f32 {
    let k = 1.0 / 0.231_641_9f32.mul_add(d.abs(), 1.0);
    let series = 1.330_274_5f32.mul_add(k, -1.821_255_9).mul_add(k, 1.781_477_9).mul_add(k, -0.356_563_78);
    let tail = 0.398_942_3 * exp(-0.5 * d * d) * k * series.mul_add(k, 0.319_381_54);
    if d > 0.0 { 1.0 - tail } else { tail }
}

/// e^x for x up to 0: short enough to be vectorized, accurate to a few units in the last place.
#[inline(always)]
fn exp(x: f32) -> f32 {
    // Adding it leaves an integer in the lowest bits.
    const ROUND: f32 = 12_582_912.0;
    let x = x.max(-87.0);
    let rounded = x.mul_add(LOG2_E, ROUND);
    let rest = (rounded - ROUND).mul_add(-LN_2, x);
    let power = f32::from_bits((rounded.to_bits() << 23).wrapping_add(1f32.to_bits()));
    let series = (1.0f32 / 720.0).mul_add(rest, 1.0 / 120.0).mul_add(rest, 1.0 / 24.0).mul_add(rest, 1.0 / 6.0);
    power * series.mul_add(rest, 0.5).mul_add(rest, 1.0).mul_add(rest, 1.0)
}

/// The natural logarithm of positive normal numbers.
#[inline(always)]
fn ln(x: f32) -> f32 {
    // The mantissa is relative to the root of one half, so that it is near one.
    let bits = x.to_bits().wrapping_sub(FRAC_1_SQRT_2.to_bits());
    let exponent = (bits.cast_signed() >> 23) as f32;
    let mantissa = f32::from_bits((bits & 0x007f_ffff).wrapping_add(FRAC_1_SQRT_2.to_bits()));
    let s = (mantissa - 1.0) / (mantissa + 1.0);
    let z = s * s;
    let series = (2.0f32 / 9.0).mul_add(z, 2.0 / 7.0).mul_add(z, 2.0 / 5.0).mul_add(z, 2.0 / 3.0).mul_add(z, 2.0);
    exponent.mul_add(LN_2, s * series)
}
