//! A wrapping sum: trees in workgroup memory, or sums of subgroups, level by level.

use rayon::prelude::*;
use spelter::{Buffer, Context, Program};

use super::CHUNK;
use crate::unit::{Limit, Target, Unit, Yardstick};
use crate::work::{Cost, Kernel, Size, Work, bound, shader};
use crate::{Error, check, data};

pub(super) const REDUCE: Kernel = Kernel {
    name: "reduce",
    unit: Unit::Bytes,
    limit: Limit::Read,
    target: Target { factor: 0.5, of: Yardstick::Limit },
    prepare: |context, size| Ok(Box::new(Reduce::new(context, size, shader!(library "reduce"))?)),
};

pub(super) const SUBGROUPS: Kernel = Kernel {
    name: "reduce subgroups",
    prepare: |context, size| Ok(Box::new(Reduce::new(context, size, shader!("reduce_subgroups"))?)),
    ..REDUCE
};

/// Elements that a workgroup sums.
const BLOCK: usize = 2048;

struct Reduce {
    context: Context,
    program: Program,
    /// The elements, then the sums of their blocks, until one is left.
    levels: Vec<Buffer>,
    elements: Vec<u32>,
    sum: u32,
}

impl Reduce {
    fn new(context: &Context, size: Size, shader: &str) -> Result<Self, Error> {
        let elements = data::words(4, size.pick(5000, 32 << 20));
        let mut levels = vec![context.buffer_from(&elements)?];
        let mut count = elements.len();
        while count > 1 {
            count = count.div_ceil(BLOCK);
            levels.push(context.buffer_zeroed(count as u64 * 4)?);
        }
        let program = context.program_wgsl(shader)?;
        Ok(Self { context: context.clone(), program, levels, elements, sum: 0 })
    }
}

impl Work for Reduce {
    fn cost(&self) -> Cost {
        let working_set = self.elements.len() * 4;
        Cost { amount: working_set as f64, bytes: working_set as f64, working_set }
    }

    fn record(&self) -> Result<(), Error> {
        for level in self.levels.windows(2) {
            let (count, groups) = (level[0].size() as u32 / 4, level[1].size() as u32 / 4);
            let dispatch = bound(&self.context, &self.program, &[&level[0], &level[1]]);
            dispatch.push(&count).groups([groups, 1, 1])?;
        }
        Ok(())
    }

    fn plain(&mut self) {
        self.sum = self.elements.par_chunks(CHUNK).map(sum).reduce(|| 0, u32::wrapping_add);
    }

    fn compare(&self) -> Result<(), Error> {
        check::equal(&self.context.read(&self.levels[self.levels.len() - 1])?, &[self.sum])
    }
}

native! {
    fn sum(values: &[u32]) -> u32 {
        values.iter().fold(0, |sum, &value| sum.wrapping_add(value))
    }
}
