//! Watches an engine: its execution is a trace of the memory model, and what each invocation does must be what the
//! program says.

use cranelift_entity::{EntityRef as _, SecondaryMap};
use spelter_driver::check::operation;
use spelter_memory_model::event::{Location, Operation};
use spelter_shaders::check::observer::{DivergentBarrier, Invocation, Memory, Observer, Target};
use spelter_shaders::ir::{Kernel, Scope, Site, SiteAction};

use super::super::execution::Recording;
use super::super::{Effect, Execution, Program, Step};
use super::RandomKernel;

/// The memory of an engine.
#[derive(Clone, Copy, Debug)]
pub(super) struct Room {
    /// Its address.
    pub(super) start: u64,
    /// The offset from which on it is not the program's.
    pub(super) end: u64,
}

/// The instruction of the program that each site of an engine's kernel is.
///
/// # Errors
///
/// The kernel's instruction has other attributes.
pub(super) fn instructions(
    kernel: &RandomKernel,
    compiled: &Kernel,
) -> Result<SecondaryMap<Site, Option<Site>>, String> {
    let mut known = SecondaryMap::new();
    for (site, data) in compiled.sites.iter() {
        let line = compiled.line_of_word(data.word).map_or(0, |line| line.line);
        let instruction = Site::new((line as usize).wrapping_sub(1));
        // The write of the sum is in a line after the last.
        if !kernel.instructions.is_valid(instruction) {
            continue;
        }
        let effect = &kernel.instructions[instruction].effect;
        let wrote = effect.operation.writes();
        let same = same_effect(&data.action, wrote, &effect.operation)
            && effect.unequal.as_ref().is_none_or(|unequal| same_effect(&data.action, false, unequal));
        if !same {
            return Err(format!("line {line} is {:?}, which is not {effect:?}", data.action));
        }
        known[site] = Some(instruction);
    }
    Ok(known)
}

/// Whether an action has this effect in the memory model.
fn same_effect(action: &SiteAction, wrote: bool, effect: &Operation) -> bool {
    let mut effect = effect.clone();
    effect.complete();
    let mut of_action = operation(action, wrote, Some((Location::whole(0), 0)));
    for operation in [&mut effect, &mut of_action] {
        if let Some(access) = operation.access_mut() {
            (access.location, access.reference) = (Location::whole(0), 0);
        }
    }
    effect == of_action
}

/// Records an execution.
pub(super) struct Watcher<'p> {
    kernel: &'p RandomKernel,
    program: &'p Program,
    known: &'p SecondaryMap<Site, Option<Site>>,
    room: Room,
    recording: Recording<'p>,
    /// The number of the next step of each agent.
    next: Vec<usize>,
    problem: Option<String>,
}

impl<'p> Watcher<'p> {
    pub(super) fn new(
        kernel: &'p RandomKernel,
        program: &'p Program,
        known: &'p SecondaryMap<Site, Option<Site>>,
        room: Room,
    ) -> Self {
        let next = vec![0; program.steps.len()];
        Self { kernel, program, known, room, recording: Recording::new(program), next, problem: None }
    }

    /// The execution.
    ///
    /// # Errors
    ///
    /// It is not one of the program.
    pub(super) fn finish(mut self) -> Result<Execution, String> {
        for (agent, (next, steps)) in self.next.iter().zip(&self.program.steps).enumerate() {
            if *next < steps.len() {
                let step = steps[*next];
                self.problem.get_or_insert_with(|| format!("agent {agent} does not execute {step:?}"));
            }
        }
        match self.problem {
            Some(problem) => Err(problem),
            None => Ok(self.recording.finish()),
        }
    }

    /// The agent that an invocation is.
    fn agent(&self, by: Invocation) -> Option<Invocation> {
        agent(self.kernel, by)
    }

    fn fail(&mut self, problem: impl FnOnce() -> String) {
        self.problem.get_or_insert_with(problem);
    }

    /// An event, which is to be the next step of its agent.
    fn event(&mut self, by: Invocation, site: Site, target: Option<Target>, wrote: bool) {
        let Some(instruction) = self.known[site] else { return };
        let Some(agent) = self.agent(by) else {
            if target.is_some() {
                self.fail(|| format!("{by:?}, which is no agent, executes {instruction}"));
            }
            return;
        };
        let thread = self.recording.thread(agent);
        let step = self.program.steps[thread].get(self.next[thread]).copied();
        self.next[thread] += 1;
        let target = target.map(|target| self.room.offset(target));
        let same = |step: &Step| step.site == instruction && step.target == target;
        let Some(step) = step.filter(same) else {
            self.fail(|| format!("{agent:?} executes {instruction} at {target:?}, and not {step:?}"));
            return;
        };
        let Effect { operation, unequal } = &self.program.effects[instruction];
        if target.is_some() && unequal.is_none() && operation.writes() != wrote {
            self.fail(|| format!("{agent:?}: wrong writes of {instruction}"));
        }
        self.recording.step(agent, Step { equal: wrote, ..step });
    }
}

/// The agent that an invocation is.
pub(super) fn agent(kernel: &RandomKernel, by: Invocation) -> Option<Invocation> {
    let each = kernel.shape.subgroup_size;
    let (subgroup, lane) = (by.local / super::LANES, by.local % super::LANES);
    (lane < each).then(|| Invocation { workgroup: by.workgroup, local: subgroup * each + lane })
}

impl Room {
    /// A target with the offset of device memory in place of its address.
    pub(super) fn offset(self, target: Target) -> Target {
        match target.memory {
            Memory::Device(address) => Target { memory: Memory::Device(address.wrapping_sub(self.start)), ..target },
            Memory::Workgroup(_) => target,
        }
    }

    /// Whether memory is the program's.
    pub(super) fn has(self, memory: Memory) -> bool {
        match memory {
            Memory::Device(address) => address.wrapping_sub(self.start) < self.end,
            Memory::Workgroup(_) => true,
        }
    }
}

impl Observer for Watcher<'_> {
    fn access(&mut self, by: Invocation, site: Site, target: Target) {
        let wrote = matches!(self.known[site], Some(site) if self.program.effects[site].operation.writes());
        self.event(by, site, Some(target), wrote);
    }

    fn atomic(&mut self, by: Invocation, site: Site, target: Target, wrote: bool) {
        self.event(by, site, Some(target), wrote);
    }

    fn fence(&mut self, by: Invocation, site: Site) {
        self.event(by, site, None, false);
    }

    fn arrive(&mut self, by: Invocation, site: Site) {
        self.event(by, site, None, false);
    }

    fn divergent_barrier(&mut self, barrier: DivergentBarrier<'_>) {
        self.fail(|| format!("{barrier:?}"));
    }

    fn release(&mut self, workgroup: u64, _: Scope, subgroup: Option<u32>) {
        let shape = self.program.shape;
        let locals = match subgroup {
            None => 0..shape.invocations,
            Some(subgroup) => {
                let first = subgroup * shape.subgroup_size;
                first..(first + shape.subgroup_size).min(shape.invocations)
            }
        };
        let threads: Vec<_> = locals.map(|local| self.recording.thread(Invocation { workgroup, local })).collect();
        self.recording.release(&threads);
    }

    fn end(&mut self, _: Invocation) {}
}
