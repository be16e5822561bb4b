//! Memory bandwidth: y = a x + y, and a copy of a buffer.

use rayon::prelude::*;
use spelter::{Buffer, Context, Program};

use super::CHUNK;
use crate::unit::{Limit, Target, Unit, Yardstick};
use crate::work::{Cost, Kernel, Size, Work, bound, shader};
use crate::{Error, check, data};

pub(super) const SAXPY: Kernel = Kernel {
    name: "saxpy",
    unit: Unit::Bytes,
    limit: Limit::Triad,
    target: Target { factor: 0.85, of: Yardstick::Limit },
    prepare: |context, size| Ok(Box::new(Saxpy::new(context, size)?)),
};

pub(super) const COPY: Kernel = Kernel {
    name: "copy",
    unit: Unit::Bytes,
    limit: Limit::Triad,
    target: Target { factor: 0.85, of: Yardstick::Limit },
    prepare: |context, size| Ok(Box::new(Copy::new(context, size)?)),
};

const A: f32 = 2.0;

struct Saxpy {
    context: Context,
    program: Program,
    buffers: [Buffer; 2],
    x: Vec<f32>,
    y: Vec<f32>,
}

impl Saxpy {
    fn new(context: &Context, size: Size) -> Result<Self, Error> {
        // Just below the maximal number of workgroups in one dimension.
        let count = size.pick(1000, (16 << 20) - 256);
        // Integers, so that any number of runs stays exact.
        let whole = |seed| data::words(seed, count).iter().map(|word| (word & 7) as f32).collect();
        let (x, y): (Vec<_>, Vec<_>) = (whole(1), whole(2));
        Ok(Self {
            program: context.program_wgsl(shader!("saxpy"))?,
            buffers: [context.buffer_from(&x)?, context.buffer_from(&y)?],
            context: context.clone(),
            x,
            y,
        })
    }
}

impl Work for Saxpy {
    fn cost(&self) -> Cost {
        let bytes = (self.x.len() * 12) as f64;
        Cost { amount: bytes, bytes, working_set: self.x.len() * 8 }
    }

    fn record(&self) -> Result<(), Error> {
        let count = self.x.len() as u32;
        let dispatch = bound(&self.context, &self.program, &self.buffers.each_ref());
        Ok(dispatch.push(&[count, A.to_bits()]).invocations([count, 1, 1])?)
    }

    fn plain(&mut self) {
        self.y.par_chunks_mut(CHUNK).zip(self.x.par_chunks(CHUNK)).for_each(|(y, x)| saxpy(y, x));
    }

    fn compare(&self) -> Result<(), Error> {
        check::equal(&self.context.read(&self.buffers[1])?, &self.y)
    }
}

native! {
    fn saxpy(y: &mut [f32], x: &[f32]) {
        for (y, x) in y.iter_mut().zip(x) {
            *y += A * x;
        }
    }
}

struct Copy {
    context: Context,
    buffers: [Buffer; 2],
    from: Vec<u32>,
    to: Vec<u32>,
}

impl Copy {
    fn new(context: &Context, size: Size) -> Result<Self, Error> {
        let from = data::words(3, size.pick(1000, 16 << 20));
        let to = vec![0; from.len()];
        let buffers = [context.buffer_from(&from)?, context.buffer_from(&to)?];
        Ok(Self { context: context.clone(), buffers, from, to })
    }
}

impl Work for Copy {
    fn cost(&self) -> Cost {
        let working_set = self.from.len() * 8;
        Cost { amount: working_set as f64, bytes: working_set as f64, working_set }
    }

    fn record(&self) -> Result<(), Error> {
        let [from, to] = &self.buffers;
        Ok(self.context.copy(from, 0, to, 0, from.size())?)
    }

    fn plain(&mut self) {
        self.to.par_chunks_mut(CHUNK).zip(self.from.par_chunks(CHUNK)).for_each(|(to, from)| to.copy_from_slice(from));
    }

    fn compare(&self) -> Result<(), Error> {
        check::equal(&self.context.read(&self.buffers[1])?, &self.to)
    }
}
