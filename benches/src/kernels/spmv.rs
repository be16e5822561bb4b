//! A sparse matrix times a vector: gathers, and rows of different lengths.

use rayon::prelude::*;
use spelter::{Buffer, Context, Program};

use crate::unit::{Limit, Target, Unit, Yardstick};
use crate::work::{Cost, Kernel, Size, Work, bound, shader};
use crate::{Error, check, data};

pub(super) const SPMV: Kernel = Kernel {
    name: "spmv",
    unit: Unit::Flops,
    limit: Limit::Read,
    target: Target { factor: 0.3, of: Yardstick::Limit },
    prepare: |context, size| Ok(Box::new(Spmv::new(context, size)?)),
};

/// Rows per task of plain Rust.
const CHUNK: usize = 4096;

struct Spmv {
    context: Context,
    program: Program,
    buffers: [Buffer; 5],
    matrix: Matrix,
    x: Vec<f32>,
    y: Vec<f32>,
}

/// A matrix in compressed sparse row format.
struct Matrix {
    /// The index of each row's first entry, and the end.
    starts: Vec<u32>,
    columns: Vec<u32>,
    values: Vec<f32>,
}

impl Matrix {
    /// A matrix with 1 to 31 entries in each row.
    fn new(rows: usize, width: usize) -> Self {
        let mut starts = vec![0];
        let mut end = 0;
        for row in 0..rows {
            end += 1 + data::word(7, row) % 31;
            starts.push(end);
        }
        let columns = data::words(8, end as usize).iter().map(|word| word % width as u32).collect();
        Self { starts, columns, values: data::floats(9, end as usize, -1.0, 1.0) }
    }
}

impl Spmv {
    fn new(context: &Context, size: Size) -> Result<Self, Error> {
        // The entries exceed the caches; the vector has the length that the peers use.
        let (rows, width) = size.pick((300, 200), (1 << 20, 256 << 10));
        let matrix = Matrix::new(rows, width);
        let x = data::floats(10, width, -1.0, 1.0);
        let y = vec![0.0; rows];
        let Matrix { starts, columns, values } = &matrix;
        let buffers = [
            context.buffer_from(starts)?,
            context.buffer_from(columns)?,
            context.buffer_from(values)?,
            context.buffer_from(&x)?,
            context.buffer_from(&y)?,
        ];
        let program = context.program_wgsl(shader!("spmv"))?;
        Ok(Self { context: context.clone(), program, buffers, matrix, x, y })
    }
}

impl Work for Spmv {
    fn cost(&self) -> Cost {
        let entries = self.matrix.values.len() as f64;
        let working_set = self.buffers.iter().map(|buffer| buffer.size() as usize).sum();
        // The matrix's entries are read once; the vector stays in a cache.
        Cost { amount: 2.0 * entries, bytes: 8.0 * entries, working_set }
    }

    fn record(&self) -> Result<(), Error> {
        let rows = self.y.len() as u32;
        let dispatch = bound(&self.context, &self.program, &self.buffers.each_ref());
        Ok(dispatch.push(&rows).invocations([rows, 1, 1])?)
    }

    fn plain(&mut self) {
        let (matrix, x) = (&self.matrix, &self.x);
        let chunks = self.y.par_chunks_mut(CHUNK).enumerate();
        chunks.for_each(|(chunk, y)| multiply(y, matrix, x, chunk * CHUNK));
    }

    fn compare(&self) -> Result<(), Error> {
        check::close(&self.context.read(&self.buffers[4])?, &self.y, 1.0, 1e-4)
    }
}

native! {
    fn multiply(y: &mut [f32], matrix: &Matrix, x: &[f32], first: usize) {
        for (row, y) in y.iter_mut().enumerate() {
            let [start, end] = [first + row, first + row + 1].map(|row| matrix.starts[row] as usize);
            let entries = matrix.values[start..end].iter().zip(&matrix.columns[start..end]);
            *y = entries.map(|(value, &column)| value * x[column as usize]).sum();
        }
    }
}
