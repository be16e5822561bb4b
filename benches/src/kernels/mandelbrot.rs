//! A loop with a different trip count in every invocation.

use rayon::prelude::*;
use spelter::{Buffer, Context, Program};

use crate::unit::{Limit, Target, Unit, Yardstick};
use crate::work::{Cost, Kernel, Size, Work, bound, shader};
use crate::{Error, check};

pub(super) const MANDELBROT: Kernel = Kernel {
    name: "mandelbrot",
    unit: Unit::Flops,
    limit: Limit::MultiplyAdd,
    target: Target { factor: 1.2, of: Yardstick::Plain },
    prepare: |context, size| Ok(Box::new(Mandelbrot::new(context, size)?)),
};

const LIMIT: u32 = 256;
const LEFT: f32 = -2.0;
const TOP: f32 = -1.25;
const WIDTH: f32 = 2.5;
/// Points that plain Rust computes together.
const LANES: usize = 32;
/// Operations per step.
const PER_STEP: f64 = 8.0;

struct Mandelbrot {
    context: Context,
    program: Program,
    buffer: Buffer,
    /// Points per row.
    size: usize,
    counts: Vec<u32>,
}

impl Mandelbrot {
    fn new(context: &Context, size: Size) -> Result<Self, Error> {
        let size = size.pick(64, 1024);
        let counts = vec![0; size * size];
        let (buffer, program) = (context.buffer_from(&counts)?, context.program_wgsl(shader!("mandelbrot"))?);
        Ok(Self { context: context.clone(), program, buffer, size, counts })
    }

    fn step(&self) -> f32 {
        WIDTH / self.size as f32
    }
}

impl Work for Mandelbrot {
    /// Known after plain Rust has run.
    fn cost(&self) -> Cost {
        let steps: f64 = self.counts.iter().map(|&count| f64::from(count)).sum();
        let working_set = self.counts.len() * 4;
        Cost { amount: PER_STEP * steps, bytes: working_set as f64, working_set }
    }

    fn record(&self) -> Result<(), Error> {
        let size = self.size as u32;
        let push = [size, LIMIT, LEFT.to_bits(), TOP.to_bits(), self.step().to_bits()];
        let dispatch = bound(&self.context, &self.program, &[&self.buffer]);
        Ok(dispatch.push(&push).invocations([size, size, 1])?)
    }

    fn plain(&mut self) {
        let (size, step) = (self.size, self.step());
        let chunks = self.counts.par_chunks_mut(LANES).enumerate();
        chunks.for_each(|(chunk, counts)| escape(counts, chunk * LANES, size, step));
    }

    /// Contraction moves the outermost points of the border by a step or more.
    fn compare(&self) -> Result<(), Error> {
        check::mostly(&self.context.read(&self.buffer)?, &self.counts, 0.01, u32::eq)
    }
}

native! {
    fn escape(counts: &mut [u32], first: usize, size: usize, step: f32) {
        let cy = TOP + (first / size) as f32 * step;
        let cx: [f32; LANES] = std::array::from_fn(|lane| LEFT + (first % size + lane) as f32 * step);
        let [mut x, mut y, mut xx, mut yy] = [[0.0f32; LANES]; 4];
        let mut count = [0u32; LANES];
        // A point that has escaped does not return, so it needs no mask.
        for _ in 0..LIMIT {
            let mut inside = 0;
            for lane in 0..LANES {
                let here = u32::from(xx[lane] + yy[lane] <= 4.0);
                inside |= here;
                count[lane] += here;
                y[lane] = 2.0 * (x[lane] * y[lane]) + cy;
                x[lane] = xx[lane] - yy[lane] + cx[lane];
                (xx[lane], yy[lane]) = (x[lane] * x[lane], y[lane] * y[lane]);
            }
            if inside == 0 {
                break;
            }
        }
        counts.copy_from_slice(&count);
    }
}
