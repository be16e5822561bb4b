//! All pairs of bodies, in tiles of workgroup memory.

use rayon::prelude::*;
use spelter::{Buffer, Context, Program};

use crate::unit::{Limit, Target, Unit, Yardstick};
use crate::work::{Cost, Kernel, Size, Work, bound, shader};
use crate::{Error, check, data};

pub(super) const NBODY: Kernel = Kernel {
    name: "nbody",
    unit: Unit::Flops,
    limit: Limit::MultiplyAdd,
    target: Target { factor: 1.3, of: Yardstick::Plain },
    prepare: |context, size| Ok(Box::new(Nbody::new(context, size)?)),
};

const SOFTENING: f32 = 0.01;
/// Operations per pair, by the usual count.
const PER_PAIR: f64 = 20.0;
/// Bodies that plain Rust computes together.
const LANES: usize = 32;

struct Nbody {
    context: Context,
    program: Program,
    buffers: [Buffer; 2],
    /// Position and mass.
    bodies: Vec<[f32; 4]>,
    pulls: Vec<[f32; 4]>,
}

impl Nbody {
    fn new(context: &Context, size: Size) -> Result<Self, Error> {
        let count = size.pick(256, 8192);
        let places = data::floats(13, 3 * count, -1.0, 1.0);
        let bodies: Vec<_> = places.as_chunks().0.iter().map(|&[x, y, z]| [x, y, z, 1.0 / count as f32]).collect();
        let pulls = vec![[0.0; 4]; count];
        let buffers = [context.buffer_from(&bodies)?, context.buffer_from(&pulls)?];
        let program = context.program_wgsl(shader!("nbody"))?;
        Ok(Self { context: context.clone(), program, buffers, bodies, pulls })
    }
}

impl Work for Nbody {
    fn cost(&self) -> Cost {
        let count = self.bodies.len();
        let working_set = count * 32;
        Cost { amount: PER_PAIR * (count * count) as f64, bytes: working_set as f64, working_set }
    }

    fn record(&self) -> Result<(), Error> {
        let count = self.bodies.len() as u32;
        let dispatch = bound(&self.context, &self.program, &self.buffers.each_ref());
        Ok(dispatch.push(&[count, SOFTENING.to_bits()]).invocations([count, 1, 1])?)
    }

    fn plain(&mut self) {
        let bodies = &self.bodies;
        let chunks = self.pulls.par_chunks_mut(LANES).zip(bodies.par_chunks(LANES));
        chunks.for_each(|(pulls, own)| pull(pulls, own, bodies));
    }

    fn compare(&self) -> Result<(), Error> {
        let got: Vec<[f32; 4]> = self.context.read(&self.buffers[1])?;
        check::close(got.as_flattened(), self.pulls.as_flattened(), 0.1, 1e-3)
    }
}

native! {
    fn pull(pulls: &mut [[f32; 4]], own: &[[f32; 4]], bodies: &[[f32; 4]]) {
        let axis = |axis: usize| -> [f32; LANES] { std::array::from_fn(|lane| own[lane][axis]) };
        let (px, py, pz) = (axis(0), axis(1), axis(2));
        let [mut sx, mut sy, mut sz] = [[0.0f32; LANES]; 3];
        for &[x, y, z, mass] in bodies {
            for lane in 0..LANES {
                let (dx, dy, dz) = (x - px[lane], y - py[lane], z - pz[lane]);
                let inverse = inverse_root(dx.mul_add(dx, dy.mul_add(dy, dz.mul_add(dz, SOFTENING))));
                let pull = mass * inverse * inverse * inverse;
                sx[lane] = dx.mul_add(pull, sx[lane]);
                sy[lane] = dy.mul_add(pull, sy[lane]);
                sz[lane] = dz.mul_add(pull, sz[lane]);
            }
        }
        for (lane, pull) in pulls.iter_mut().enumerate() {
            *pull = [sx[lane], sy[lane], sz[lane], 0.0];
        }
    }
}

/// An estimate from the exponent and three Newton steps: cheaper than a root and a division. Plain Rust has no access
/// to the CPU's estimate.
#[inline(always)]
fn inverse_root(x: f32) -> f32 {
    let mut root = f32::from_bits(0x5f37_5a86 - (x.to_bits() >> 1));
    for _ in 0..3 {
        root *= (-0.5 * x * root).mul_add(root, 1.5);
    }
    root
}
