//! Counts of 256 values, with atomics in workgroup memory.

use rayon::prelude::*;
use spelter::{Buffer, Context, Program};

use super::CHUNK;
use crate::unit::{Limit, Target, Unit, Yardstick};
use crate::work::{Cost, Kernel, Size, Work, bound, shader};
use crate::{Error, check, data};

pub(super) const HISTOGRAM: Kernel = Kernel {
    name: "histogram",
    unit: Unit::Things("atomic"),
    limit: Limit::Read,
    target: Target { factor: 0.5, of: Yardstick::Plain },
    prepare: |context, size| Ok(Box::new(Histogram::new(context, size)?)),
};

const BINS: usize = 256;
/// Words per workgroup.
const BLOCK: usize = 4096;

struct Histogram {
    context: Context,
    program: Program,
    buffers: [Buffer; 2],
    words: Vec<u32>,
    bins: [u32; BINS],
}

impl Histogram {
    fn new(context: &Context, size: Size) -> Result<Self, Error> {
        let words = data::words(17, size.pick(5000, 8 << 20));
        let buffers = [context.buffer_from(&words)?, context.buffer_zeroed(BINS as u64 * 4)?];
        let program = context.program_wgsl(shader!("histogram"))?;
        Ok(Self { context: context.clone(), program, buffers, words, bins: [0; BINS] })
    }
}

impl Work for Histogram {
    fn cost(&self) -> Cost {
        let words = self.words.len();
        Cost { amount: words as f64, bytes: (words * 4) as f64, working_set: words * 4 }
    }

    fn record(&self) -> Result<(), Error> {
        self.context.fill(&self.buffers[1], 0)?;
        let groups = self.words.len().div_ceil(BLOCK) as u32;
        let dispatch = bound(&self.context, &self.program, &self.buffers.each_ref());
        Ok(dispatch.push(&(self.words.len() as u32)).groups([groups, 1, 1])?)
    }

    fn plain(&mut self) {
        let sum = |a: [u32; BINS], b: [u32; BINS]| std::array::from_fn(|bin| a[bin] + b[bin]);
        self.bins = self.words.par_chunks(CHUNK).map(count).reduce(|| [0; BINS], sum);
    }

    fn compare(&self) -> Result<(), Error> {
        check::equal(&self.context.read(&self.buffers[1])?, &self.bins)
    }
}

native! {
    fn count(words: &[u32]) -> [u32; BINS] {
        // Four tables, so that equal neighbours do not depend on each other.
        let mut tables = [[0u32; BINS]; 4];
        let (fours, rest) = words.as_chunks::<4>();
        for four in fours {
            for (word, table) in four.iter().zip(&mut tables) {
                table[(word & 255) as usize] += 1;
            }
        }
        for word in rest {
            tables[0][(word & 255) as usize] += 1;
        }
        std::array::from_fn(|bin| tables.iter().map(|table| table[bin]).sum())
    }
}
