//! A matrix transposed through padded tiles in workgroup memory.

use rayon::prelude::*;
use spelter::{Buffer, Context, Program};

use crate::unit::{Limit, Target, Unit, Yardstick};
use crate::work::{Cost, Kernel, Size, Work, bound, shader};
use crate::{Error, check, data};

pub(super) const TRANSPOSE: Kernel = Kernel {
    name: "transpose",
    unit: Unit::Bytes,
    limit: Limit::Triad,
    target: Target { factor: 0.4, of: Yardstick::Limit },
    prepare: |context, size| Ok(Box::new(Transpose::new(context, size)?)),
};

/// Rows and columns of a tile.
const TILE: usize = 32;

struct Transpose {
    context: Context,
    program: Program,
    buffers: [Buffer; 2],
    size: usize,
    source: Vec<f32>,
    result: Vec<f32>,
}

impl Transpose {
    fn new(context: &Context, size: Size) -> Result<Self, Error> {
        let size = size.pick(64, 4096);
        let source = data::floats(6, size * size, -1.0, 1.0);
        let result = vec![0.0; size * size];
        let buffers = [context.buffer_from(&source)?, context.buffer_from(&result)?];
        let program = context.program_wgsl(shader!("transpose"))?;
        Ok(Self { context: context.clone(), program, buffers, size, source, result })
    }
}

impl Work for Transpose {
    fn cost(&self) -> Cost {
        let working_set = self.source.len() * 8;
        Cost { amount: working_set as f64, bytes: working_set as f64, working_set }
    }

    fn record(&self) -> Result<(), Error> {
        let groups = (self.size / TILE) as u32;
        let dispatch = bound(&self.context, &self.program, &self.buffers.each_ref());
        Ok(dispatch.push(&(self.size as u32)).groups([groups, groups, 1])?)
    }

    fn plain(&mut self) {
        let (size, source) = (self.size, &self.source);
        let bands = self.result.par_chunks_mut(TILE * size).enumerate();
        bands.for_each(|(band, rows)| transpose(rows, source, size, band * TILE));
    }

    fn compare(&self) -> Result<(), Error> {
        check::equal(&self.context.read(&self.buffers[1])?, &self.result)
    }
}

native! {
    /// The rows of the result from the columns `first` and following, tile by tile.
    fn transpose(rows: &mut [f32], source: &[f32], size: usize, first: usize) {
        for from in (0..size).step_by(TILE) {
            let mut tile = [[0.0f32; TILE]; TILE];
            for (y, line) in tile.iter_mut().enumerate() {
                line.copy_from_slice(&source[(from + y) * size + first..][..TILE]);
            }
            for (x, row) in rows.chunks_exact_mut(size).enumerate() {
                for (to, line) in row[from..from + TILE].iter_mut().zip(&tile) {
                    *to = line[x];
                }
            }
        }
    }
}
