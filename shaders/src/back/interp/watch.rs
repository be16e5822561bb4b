//! Steps of kernels with checks: tell an observer what the invocation accesses. In a run without one they do nothing.

use std::ops::Range;

use super::code::{CheckStep, Step};
use super::env::Env;
use crate::abi::SUBGROUP_SIZE;
use crate::check::observer::{DivergentBarrier, Invocation, Memory, Observer, Target};
use crate::image;
use crate::ir::{Scope, Site};

/// The observer of a workgroup.
pub(super) struct Watch<'a> {
    observer: &'a mut dyn Observer,
    /// Linear number of the workgroup.
    workgroup: u64,
    /// The site of the workgroup's barrier at which each invocation waits.
    waiting: Vec<Option<Site>>,
}

impl<'a> Watch<'a> {
    pub(super) fn new(observer: &'a mut dyn Observer, workgroup: u64) -> Self {
        Self { observer, workgroup, waiting: Vec::new() }
    }

    fn invocation(&self, local: u32) -> Invocation {
        Invocation { workgroup: self.workgroup, local }
    }

    /// An invocation ends.
    pub(super) fn end(&mut self, local: u32) {
        self.observer.end(self.invocation(local));
    }

    fn arrive(&mut self, local: u32, site: Site) {
        let index = local as usize;
        self.waiting.resize(self.waiting.len().max(index + 1), None);
        self.waiting[index] = Some(site);
        self.observer.arrive(self.invocation(local), site);
    }

    /// The invocations that wait for the workgroup go on.
    pub(super) fn release_workgroup(&mut self, invocations: u32, waits: impl Fn(u32) -> bool) {
        let site = |local: u32| self.waiting.get(local as usize).copied().flatten();
        let waiting: Vec<_> = (0..invocations)
            .filter(|&local| waits(local))
            .filter_map(|local| Some((self.invocation(local), site(local)?)))
            .collect();
        let missing: Vec<_> =
            (0..invocations).filter(|&local| !waits(local)).map(|local| self.invocation(local)).collect();
        if !missing.is_empty() || waiting.windows(2).any(|pair| pair[0].1 != pair[1].1) {
            let barrier = DivergentBarrier { execution: Scope::Workgroup, waiting: &waiting, missing: &missing };
            self.observer.divergent_barrier(barrier);
        }
        self.observer.release(self.workgroup, Scope::Workgroup, None);
    }

    /// The invocations of a subgroup that wait at the same subgroup's barrier go on. They arrive only now: others of
    /// the subgroup may wait at a later one, and a release concerns all that have arrived.
    pub(super) fn release_subgroup(&mut self, site: Site, group: &[u32], subgroup: Range<u32>) {
        let mut waiting: Vec<_> = group.iter().map(|&local| (self.invocation(local), site)).collect();
        for &(invocation, site) in &waiting {
            self.observer.arrive(invocation, site);
        }
        let number = subgroup.start / SUBGROUP_SIZE;
        let missing: Vec<_> =
            subgroup.filter(|local| !group.contains(local)).map(|local| self.invocation(local)).collect();
        if !missing.is_empty() {
            waiting.sort_unstable();
            let barrier = DivergentBarrier { execution: Scope::Subgroup, waiting: &waiting, missing: &missing };
            self.observer.divergent_barrier(barrier);
        }
        self.observer.release(self.workgroup, Scope::Subgroup, Some(number));
    }

    /// Tells of an access, or of an atomic if `wrote` says whether it wrote.
    fn access(&mut self, local: u32, site: Site, target: Target, wrote: Option<bool>) {
        let by = self.invocation(local);
        match wrote {
            None => self.observer.access(by, site, target),
            Some(wrote) => self.observer.atomic(by, site, target, wrote),
        }
    }
}

/// The access or atomic of check number `extra` to the buffer operand 0 at operand 1; operand 2 says whether a
/// compare-exchange wrote.
pub(super) fn buffer(step: &Step, regs: &mut [u64], env: &mut Env<'_>) {
    let what = env.tables.checks[step.extra as usize];
    let (number, offset) = (step.arg(regs, 0), u64::from(step.word(regs, 1)));
    let buffer = env.buffer(number);
    let address = (buffer.address() as u64).wrapping_add(offset);
    if offset + u64::from(what.bytes) > buffer.len() || !address.is_multiple_of(what.align.into()) {
        return;
    }
    let target = Target { memory: Memory::Device(address), bytes: what.bytes, reference: number as u32 };
    tell(env, what, target, step.arg(regs, 2) != 0);
}

/// As [`buffer`], to a workgroup variable at operand 0; operand 1 says whether a compare-exchange wrote.
pub(super) fn variable(step: &Step, regs: &mut [u64], env: &mut Env<'_>) {
    let what = env.tables.checks[step.extra as usize];
    let Some((number, range)) = what.variable else { return };
    let offset = step.word(regs, 0);
    let is_inside = offset.checked_add(what.bytes).is_some_and(|end| end <= range.bytes);
    if !is_inside || !offset.is_multiple_of(what.align) {
        return;
    }
    let memory = Memory::Workgroup(range.first_word as u32 * 4 + offset);
    tell(env, what, Target { memory, bytes: what.bytes, reference: number }, step.arg(regs, 1) != 0);
}

fn tell(env: &mut Env<'_>, what: CheckStep, target: Target, exchanged: bool) {
    let local = env.local_index();
    let wrote = what.is_atomic.then(|| what.wrote.unwrap_or(exchanged));
    if let Some(watch) = &mut env.watch {
        watch.access(local, what.site, target, wrote);
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
    let bytes = image.view.format.bytes();
    image::texels(&what.op, image, sampler, &args, |offset| {
        if offset + u64::from(bytes) <= image.view.memory.len() {
            let address = (image.view.memory.address() as u64).wrapping_add(offset);
            let target = Target { memory: Memory::Device(address), bytes, reference: reference as u32 };
            watch.access(local, *site, target, None);
        }
    });
}

/// A fence at site number `extra`.
pub(super) fn fence(step: &Step, _: &mut [u64], env: &mut Env<'_>) {
    let local = env.local_index();
    if let Some(watch) = &mut env.watch {
        watch.observer.fence(watch.invocation(local), Site::from_u32(step.extra));
    }
}

/// Arrives at the workgroup's barrier at site number `extra`.
pub(super) fn arrive(step: &Step, _: &mut [u64], env: &mut Env<'_>) {
    let local = env.local_index();
    if let Some(watch) = &mut env.watch {
        watch.arrive(local, Site::from_u32(step.extra));
    }
}
