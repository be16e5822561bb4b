//! Products of square matrices: by buffers alone, by tiles in workgroup memory, by blocks of registers.

use rayon::prelude::*;
use spelter::{Buffer, Context, Program};

use crate::unit::{Limit, Target, Unit, Yardstick};
use crate::work::{Cost, Kernel, Size, Work, bound, shader};
use crate::{Error, check, data};

pub(super) const BLOCKED: Kernel = Kernel {
    name: "sgemm_blocked",
    target: Target { factor: 0.45, of: Yardstick::Limit },
    prepare: |context, size| Ok(Box::new(Sgemm::new(context, size, shader!("sgemm_blocked"), 64)?)),
    ..NAIVE
};

pub(super) const TILED: Kernel = Kernel {
    name: "sgemm_tiled",
    target: Target { factor: 0.25, of: Yardstick::Limit },
    prepare: |context, size| Ok(Box::new(Sgemm::new(context, size, shader!(library "matmul"), 16)?)),
    ..NAIVE
};

pub(super) const NAIVE: Kernel = Kernel {
    name: "sgemm_naive",
    unit: Unit::Flops,
    limit: Limit::MultiplyAdd,
    target: Target { factor: 0.1, of: Yardstick::Limit },
    prepare: |context, size| Ok(Box::new(Sgemm::new(context, size, shader!("sgemm_naive"), 16)?)),
};

struct Sgemm {
    context: Context,
    program: Program,
    buffers: [Buffer; 3],
    /// Rows and columns.
    size: usize,
    /// Rows and columns that a workgroup computes.
    tile: usize,
    a: Vec<f32>,
    b: Vec<f32>,
    c: Vec<f32>,
}

impl Sgemm {
    fn new(context: &Context, size: Size, text: &str, tile: usize) -> Result<Self, Error> {
        let size = size.pick(64, 512);
        let [a, b] = [11, 12].map(|seed| data::floats(seed, size * size, -1.0, 1.0));
        let c = vec![0.0; size * size];
        let buffers = [context.buffer_from(&a)?, context.buffer_from(&b)?, context.buffer_from(&c)?];
        let program = context.program_wgsl(text)?;
        Ok(Self { context: context.clone(), program, buffers, size, tile, a, b, c })
    }
}

impl Work for Sgemm {
    fn cost(&self) -> Cost {
        let size = self.size as f64;
        let working_set = self.a.len() * 12;
        Cost { amount: 2.0 * size * size * size, bytes: working_set as f64, working_set }
    }

    fn record(&self) -> Result<(), Error> {
        let groups = (self.size / self.tile) as u32;
        let dispatch = bound(&self.context, &self.program, &self.buffers.each_ref());
        Ok(dispatch.push(&(self.size as u32)).groups([groups, groups, 1])?)
    }

    fn plain(&mut self) {
        let size = self.size;
        let mut panels = vec![0.0; self.b.len()];
        panels.par_chunks_mut(size * COLUMNS).enumerate().for_each(|(panel, to)| pack(to, &self.b, size, panel));
        let bands = self.c.par_chunks_mut(ROWS * size).zip(self.a.par_chunks(ROWS * size));
        bands.for_each(|(c, a)| multiply(c, a, &panels, size));
    }

    fn compare(&self) -> Result<(), Error> {
        check::close(&self.context.read(&self.buffers[2])?, &self.c, 1.0, 1e-4)
    }
}

/// What plain Rust computes together, so that the sums stay in registers.
const ROWS: usize = 4;
const COLUMNS: usize = 64;

/// Packs the columns of one panel row by row, so that the inner loop reads contiguously.
fn pack(to: &mut [f32], b: &[f32], size: usize, panel: usize) {
    for (to, row) in to.chunks_exact_mut(COLUMNS).zip(b.chunks_exact(size)) {
        to.copy_from_slice(&row[panel * COLUMNS..][..COLUMNS]);
    }
}

native! {
    /// Computes some rows of the product.
    fn multiply(c: &mut [f32], a: &[f32], panels: &[f32], size: usize) {
        for (panel, rows) in panels.chunks_exact(size * COLUMNS).enumerate() {
            let mut sums = [[0.0f32; COLUMNS]; ROWS];
            for (k, row) in rows.as_chunks::<COLUMNS>().0.iter().enumerate() {
                for (y, sums) in sums.iter_mut().enumerate() {
                    let factor = a[y * size + k];
                    for (sum, value) in sums.iter_mut().zip(row) {
                        *sum = value.mul_add(factor, *sum);
                    }
                }
            }
            for (row, sums) in c.chunks_exact_mut(size).zip(&sums) {
                row[panel * COLUMNS..][..COLUMNS].copy_from_slice(sums);
            }
        }
    }
}
