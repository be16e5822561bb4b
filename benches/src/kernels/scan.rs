//! Inclusive prefix sums: Hillis and Steele's in workgroup memory, then the same for the totals of the blocks.

use rayon::prelude::*;
use spelter::{Buffer, Context, Program};

use super::CHUNK;
use crate::unit::{Limit, Target, Unit, Yardstick};
use crate::work::{Cost, Kernel, Size, Work, bound, shader};
use crate::{Error, check, data};

pub(super) const SCAN: Kernel = Kernel {
    name: "scan",
    unit: Unit::Bytes,
    limit: Limit::Triad,
    target: Target { factor: 0.12, of: Yardstick::Limit },
    prepare: |context, size| Ok(Box::new(Scan::new(context, size)?)),
};

/// Elements that a workgroup scans.
const BLOCK: usize = 1024;

struct Scan {
    context: Context,
    scan: Program,
    add: Program,
    /// The elements, then the totals of their blocks, and so on.
    inputs: Vec<Buffer>,
    /// Their prefix sums.
    outputs: Vec<Buffer>,
    elements: Vec<u32>,
    sums: Vec<u32>,
}

impl Scan {
    fn new(context: &Context, size: Size) -> Result<Self, Error> {
        let elements = data::words(5, size.pick(3000, 16 << 20));
        let (mut inputs, mut outputs) = (vec![context.buffer_from(&elements)?], Vec::new());
        let mut count = elements.len();
        loop {
            outputs.push(context.buffer_zeroed(count as u64 * 4)?);
            // The last level has one block, whose total is unused.
            inputs.push(context.buffer_zeroed(count.div_ceil(BLOCK) as u64 * 4)?);
            if count <= BLOCK {
                break;
            }
            count = count.div_ceil(BLOCK);
        }
        let program = |entry| context.program(shader!(library "scan")).entry(entry).build();
        let (scan, add) = (program("scan")?, program("add")?);
        let sums = vec![0; elements.len()];
        Ok(Self { context: context.clone(), scan, add, inputs, outputs, elements, sums })
    }
}

impl Work for Scan {
    fn cost(&self) -> Cost {
        let working_set = self.elements.len() * 8;
        Cost { amount: working_set as f64, bytes: working_set as f64, working_set }
    }

    fn record(&self) -> Result<(), Error> {
        let shape = |buffer: &Buffer| {
            let count = buffer.size() as u32 / 4;
            (count, [count.div_ceil(BLOCK as u32), 1, 1])
        };
        for (pair, output) in self.inputs.windows(2).zip(&self.outputs) {
            let (count, groups) = shape(output);
            bound(&self.context, &self.scan, &[&pair[0], output, &pair[1]]).push(&count).groups(groups)?;
        }
        for pair in self.outputs.windows(2).rev() {
            let (count, groups) = shape(&pair[0]);
            let dispatch = self.context.dispatch(&self.add).bind(0, 1, &pair[0]).bind(0, 2, &pair[1]);
            dispatch.push(&count).groups(groups)?;
        }
        Ok(())
    }

    fn plain(&mut self) {
        let chunks = self.sums.par_chunks_mut(CHUNK).zip(self.elements.par_chunks(CHUNK));
        let totals: Vec<u32> = chunks.map(|(sums, elements)| scan(sums, elements)).collect();
        let mut before = 0u32;
        let starts: Vec<u32> = totals.iter().map(|&total| post_add(&mut before, total)).collect();
        self.sums.par_chunks_mut(CHUNK).zip(starts).for_each(|(sums, start)| add(sums, start));
    }

    fn compare(&self) -> Result<(), Error> {
        check::equal(&self.context.read(&self.outputs[0])?, &self.sums)
    }
}

/// Adds to a sum and returns its old value.
fn post_add(sum: &mut u32, term: u32) -> u32 {
    let before = *sum;
    *sum = sum.wrapping_add(term);
    before
}

native! {
    fn scan(sums: &mut [u32], elements: &[u32]) -> u32 {
        let mut sum = 0u32;
        for (to, element) in sums.iter_mut().zip(elements) {
            sum = sum.wrapping_add(*element);
            *to = sum;
        }
        sum
    }
}

native! {
    fn add(sums: &mut [u32], before: u32) {
        for sum in sums {
            *sum = sum.wrapping_add(before);
        }
    }
}
