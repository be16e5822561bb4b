//! Steps of kernels with checks: report to an observer what the invocation accesses. In a run without one they do
//! nothing.

use super::code::Step;
use super::env::Env;
use crate::check::observer::Target;
use crate::ir::{Observed, Site};

/// The access or atomic of check number `extra` to the buffer operand 0 at operand 1; operand 2 says whether a
/// compare-exchange wrote.
pub(super) fn buffer(step: &Step, regs: &mut [u64], env: &mut Env<'_>) {
    let (what, _) = env.tables.checks[step.extra as usize];
    let number = step.arg(regs, 0);
    let target = what.in_buffer(env.buffer(number), number as u32, step.word(regs, 1));
    observe(env, what, target, step.arg(regs, 2) != 0);
}

/// As [`buffer`], to a workgroup variable at operand 0; operand 1 says whether a compare-exchange wrote.
pub(super) fn variable(step: &Step, regs: &mut [u64], env: &mut Env<'_>) {
    let (what, Some(variable)) = env.tables.checks[step.extra as usize] else { return };
    let target = what.in_variable(variable, step.word(regs, 0));
    observe(env, what, target, step.arg(regs, 1) != 0);
}

fn observe(env: &mut Env<'_>, what: Observed, target: Option<Target>, exchanged: bool) {
    let local = env.local_index();
    if let (Some(watch), Some(target)) = (&mut env.watch, target) {
        watch.access(local, what, target, exchanged);
    }
}

/// The texels that image check number `extra` accesses.
pub(super) fn image(step: &Step, regs: &mut [u64], env: &mut Env<'_>) {
    let (site, what) = &env.tables.image_checks[step.extra as usize];
    let local = env.local_index();
    let args: smallvec::SmallVec<[u32; 16]> = what.args.iter().map(|&arg| regs[arg as usize] as u32).collect();
    let reference = regs[what.image as usize];
    let [image, sampler] = [what.image, what.sampler].map(|slot| env.image(regs[slot as usize]));
    let Some(watch) = &mut env.watch else { return };
    watch.texels(local, *site, (&what.op, image, sampler), &args, reference as u32);
}

/// A fence at site number `extra`.
pub(super) fn fence(step: &Step, _: &mut [u64], env: &mut Env<'_>) {
    let local = env.local_index();
    if let Some(watch) = &mut env.watch {
        watch.fence(local, Site::from_u32(step.extra));
    }
}

/// Arrives at the workgroup's barrier at site number `extra`.
pub(super) fn arrive(step: &Step, _: &mut [u64], env: &mut Env<'_>) {
    let local = env.local_index();
    if let Some(watch) = &mut env.watch {
        watch.arrive(local, Site::from_u32(step.extra));
    }
}
