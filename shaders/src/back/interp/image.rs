//! Steps for images: fields of descriptions, reads, writes and samples.

use smallvec::SmallVec;

use super::code::Step;
use super::env::Env;
use crate::image::{self, Field};

/// Field number `extra` of the image operand 0.
pub(super) fn field(step: &Step, regs: &mut [u64], env: &mut Env<'_>) {
    let descriptor = env.image(step.arg(regs, 0));
    let value = Field::ALL.get(step.extra as usize).map_or(0, |&field| descriptor.field(field));
    step.set(regs, value.into());
}

/// Image instruction number `extra`.
pub(super) fn run(step: &Step, regs: &mut [u64], env: &mut Env<'_>) {
    let what = &env.tables.images[step.extra as usize];
    let args: SmallVec<[u32; 16]> = what.args.iter().map(|&arg| regs[arg as usize] as u32).collect();
    let [image, sampler] = [what.image, what.sampler].map(|slot| env.image(regs[slot as usize]));
    let texel = image::run(&what.op, image, sampler, &args);
    step.set(regs, texel[usize::from(what.op.component)].into());
}
