//! Compares the engines with the axioms, and with each other.

use std::ops::Range;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::rc::Rc;

use spelter_driver::check::Profile;
use spelter_shaders::check::Candidate;
use spelter_shaders::compile::{Backend, Module};
use spelter_shaders::front::spvasm;
use spelter_shaders::ir::{Kernel, SiteAction};

use super::super::Execution;
use super::counts::Counts;
use super::engine::{DeviceMemory, Engine, Observed, Prepared};
use super::launch::{Launch, program};
use super::watcher::agent;
use super::{Instruction, LAUNCHES, RandomKernel};

/// The engines of this machine: the interpreter, and machine code for each instruction set.
pub struct Engines {
    memory: DeviceMemory,
    list: Vec<Engine>,
}

/// The races of an execution.
type Races = Rc<Vec<(usize, usize)>>;

impl Default for Engines {
    fn default() -> Self {
        Self::new()
    }
}

impl Engines {
    /// All engines.
    pub fn new() -> Self {
        let memory = DeviceMemory::default();
        Self { memory, list: Backend::available().map(|backend| Engine::new(backend, memory)).collect() }
    }

    /// The text of a program's kernel.
    pub fn text(program: u64) -> String {
        RandomKernel::random(program / LAUNCHES).text()
    }

    /// Runs programs, and compares. The program of a number is the same everywhere.
    pub fn compare(&mut self, programs: Range<u64>) -> Counts {
        let mut counts = Counts::default();
        let mut next = programs.start;
        while next < programs.end {
            let end = ((next / LAUNCHES + 1) * LAUNCHES).min(programs.end);
            let compared = catch_unwind(AssertUnwindSafe(|| self.compare_kernel(next..end, &mut counts)));
            let problem = match compared {
                Ok(Ok(())) => None,
                Ok(Err(problem)) => Some(problem),
                Err(_) => Some("panics".to_owned()),
            };
            if let Some(problem) = problem {
                counts.wrong += 1;
                counts.defect(next, None, problem);
            }
            next = end;
        }
        counts
    }

    /// Runs launches of one kernel.
    fn compare_kernel(&mut self, programs: Range<u64>, counts: &mut Counts) -> Result<(), String> {
        let number = programs.start / LAUNCHES;
        let kernel = RandomKernel::random(number);
        // What compilers emit is accepted in a quarter of them.
        let profile = if number % 4 == 3 { Profile::Common } else { Profile::Spec };
        // Trials of repairs take most of the time, and find no races.
        let repairs = number.is_multiple_of(64);
        let words = spvasm::assemble(&kernel.text()).map_err(|error| error.to_string())?;
        let module = Module::from_spirv(&words).map_err(|error| error.to_string())?;
        let compiled = module.kernel("main", &Default::default()).map_err(|error| error.to_string())?;
        let compiled = Kernel { takes_schedule: true, ..compiled };
        let ready: Vec<Prepared> = self
            .list
            .iter()
            .map(|engine| engine.prepare(&kernel, (&words, &compiled), (profile, repairs)))
            .collect::<Result<_, _>>()?;
        counts.kernels += 1;
        let without_steps = program(&kernel);
        for number in programs {
            counts.programs += 1;
            let launch = kernel.launch(&without_steps, number);
            let mut all: Vec<(Backend, Observed, Races)> = Vec::new();
            for (engine, ready) in self.list.iter_mut().zip(&ready) {
                let backend = engine.backend;
                counts.compiled += u64::from(ready.backend() != Backend::Interpreter);
                match engine.run(&kernel, ready, &launch) {
                    Err(problem) => {
                        counts.wrong += 1;
                        counts.defect(number, Some(backend), problem);
                    }
                    Ok(observed) => {
                        let known = all.iter().find(|(_, other, _)| observed.execution.is_same(&other.execution));
                        let races = match known {
                            Some((_, _, races)) => Rc::clone(races),
                            None => Rc::new(observed.execution.races()),
                        };
                        let judged = Judged { kernel: &kernel, memory: self.memory, number, backend, profile };
                        judged.judge(&observed, &races, counts);
                        all.push((backend, observed, races));
                    }
                }
            }
            compare_engines(number, (&kernel, &launch), &all, counts);
        }
        Ok(())
    }
}

/// An execution that is judged.
struct Judged<'a> {
    kernel: &'a RandomKernel,
    memory: DeviceMemory,
    number: u64,
    backend: Backend,
    profile: Profile,
}

impl Judged<'_> {
    fn judge(&self, observed: &Observed, races: &Races, counts: &mut Counts) {
        let Observed { execution, candidates, errors, undecided, aliased } = observed;
        counts.executions += 1;
        counts.events += execution.trace.len() as u64;
        counts.races += races.len() as u64;
        counts.racy += u64::from(!races.is_empty());
        counts.candidates += candidates.len() as u64;
        counts.errors += errors.len() as u64;
        counts.undecided += u64::from(*undecided);
        counts.aliased += u64::from(*aliased);
        let mut defect = |count: fn(&mut Counts) -> &mut u64, problem: String| {
            *count(counts) += 1;
            counts.defect(self.number, Some(self.backend), problem);
        };
        for &race in races.iter() {
            if !candidates.iter().any(|candidate| self.names(execution, candidate, race)) {
                defect(|counts| &mut counts.missed, format!("no candidate for {}", show(execution, race)));
            }
        }
        for error in errors {
            if !races.iter().any(|&race| error.is_about(execution, race)) {
                defect(|counts| &mut counts.false_errors, format!("no race: {error:?}"));
            }
        }
        if let Some(&race) = races.iter().find(|&&race| self.is_reported(execution, race))
            && errors.is_empty()
            && !undecided
        {
            defect(|counts| &mut counts.unreported, format!("not reported: {}", show(execution, race)));
        }
    }

    /// Whether a race must be reported, whatever else is: `common` accepts some between invocations of a workgroup, and
    /// what fences before barriers order then.
    fn is_reported(&self, execution: &Execution, (first, second): (usize, usize)) -> bool {
        let is_fence = |instruction: &Instruction| matches!(instruction.action, SiteAction::Fence { .. });
        let workgroups = [first, second].map(|event| execution.by[event].workgroup);
        self.profile == Profile::Spec
            || workgroups[0] != workgroups[1] && !self.kernel.instructions.values().any(is_fence)
    }

    /// Whether a candidate is about a word of a race, and one of its agents. A check may be left out if the same
    /// invocation has a stronger one, so it may be another access of it.
    fn names(&self, execution: &Execution, candidate: &Candidate, (first, second): (usize, usize)) -> bool {
        let room = self.memory.room();
        let by = agent(self.kernel, candidate.second.invocation);
        let target = spelter_shaders::check::observer::Target { memory: candidate.memory, bytes: 1, reference: 0 };
        let memory = room.offset(target).memory;
        room.has(candidate.memory)
            && (by == Some(execution.by[first]) || by == Some(execution.by[second]))
            && execution.touches_word(first, memory)
            && execution.touches_word(second, memory)
    }
}

/// Two events, for messages.
fn show(execution: &Execution, (first, second): (usize, usize)) -> String {
    let event = |event: usize| {
        let (site, by) = (execution.sites[event].as_u32() + 1, execution.by[event]);
        format!("line {site} by {}.{} at {:?}", by.workgroup, by.local, execution.targets[event])
    };
    format!("events {first} and {second} ({}; {})", event(first), event(second))
}

/// Engines that executed a program in the same order report the same.
fn compare_engines(
    number: u64,
    (kernel, launch): (&RandomKernel, &Launch),
    all: &[(Backend, Observed, Races)],
    counts: &mut Counts,
) {
    let lines = |observed: &Observed| {
        let mut lines: Vec<_> = observed.errors.iter().map(|error| error.lines).collect();
        lines.iter_mut().for_each(|pair| pair.sort_unstable());
        lines.sort_unstable();
        lines.dedup();
        lines
    };
    for (at, (backend, observed, _)) in all.iter().enumerate() {
        for (other, before, _) in &all[..at] {
            if !observed.execution.is_same(&before.execution) {
                continue;
            }
            counts.same_order += 1;
            // Memory of several descriptors has cells on one engine and histories on another, which name other
            // invocations.
            let same = match kernel.second.shares_words() {
                true => lines(observed) == lines(before),
                false => observed.errors == before.errors,
            };
            if !same {
                counts.different += 1;
                let [mine, others] = [observed, before].map(|observed| &observed.errors);
                let problem = format!("{mine:?}, but {other} reports {others:?} ({})", launch.schedule);
                counts.defect(number, Some(*backend), problem);
            }
        }
    }
    let mut all = all.iter().map(|(_, observed, _)| lines(observed));
    let first = all.next();
    counts.same_lines += u64::from(all.all(|lines| Some(&lines) == first.as_ref()));
}

#[cfg(test)]
mod tests {
    use spelter_shaders::check::observer::Invocation;

    use super::super::engine::Reported;
    use super::*;

    /// A program on the first engine, with its races, and the counts of what is wrong after a change of what was
    /// observed. `None` if it has no races.
    fn counts(number: u64, change: impl FnOnce(&mut Observed, &Races)) -> Option<Counts> {
        let kernel = RandomKernel::random(number / LAUNCHES);
        let words = spvasm::assemble(&kernel.text()).unwrap();
        let compiled = Module::from_spirv(&words).unwrap().kernel("main", &Default::default()).unwrap();
        let memory = DeviceMemory::default();
        let mut engine = Engine::new(Backend::best(), memory);
        let ready = engine.prepare(&kernel, (&words, &compiled), (Profile::Spec, false)).unwrap();
        let launch = kernel.launch(&program(&kernel), number);
        let mut observed = engine.run(&kernel, &ready, &launch).unwrap();
        let before = engine.run(&kernel, &ready, &launch).unwrap();
        let races = Rc::new(observed.execution.races());
        if races.is_empty() || observed.errors.is_empty() {
            return None;
        }
        change(&mut observed, &races);
        let mut counts = Counts::default();
        let judged = Judged { kernel: &kernel, memory, number, backend: engine.backend, profile: Profile::Spec };
        judged.judge(&observed, &races, &mut counts);
        let both = [(engine.backend, before, Rc::clone(&races)), (engine.backend, observed, races)];
        compare_engines(number, (&kernel, &launch), &both, &mut counts);
        Some(counts)
    }

    #[test]
    fn what_is_missing_or_too_much_is_a_defect() {
        let defects = |counts: Option<Counts>| {
            let counts = counts.unwrap();
            [counts.missed, counts.unreported, counts.false_errors, counts.different].map(|count| count > 0)
        };
        let racy = (0..64).map(|kernel| kernel * LAUNCHES).find(|&number| counts(number, |_, _| {}).is_some()).unwrap();
        assert_eq!(defects(counts(racy, |_, _| {})), [false; 4]);
        assert_eq!(defects(counts(racy, |found, _| found.candidates.clear())), [true, false, false, false]);
        assert_eq!(defects(counts(racy, |found, _| found.errors.clear())), [false, true, false, true]);
        let invented = |found: &mut Observed, _: &Races| {
            let by = Invocation { workgroup: 0, local: 0 };
            found.errors.push(Reported { lines: [1, 1], by: [by; 2] });
        };
        assert_eq!(defects(counts(racy, invented)), [false, false, true, true]);
    }

    #[test]
    fn an_execution_that_is_not_the_programs_is_a_defect() {
        const NUMBER: u64 = 128;
        let kernel = RandomKernel::random(NUMBER);
        let words = spvasm::assemble(&kernel.text()).unwrap();
        let compiled = Module::from_spirv(&words).unwrap().kernel("main", &Default::default()).unwrap();
        let mut engine = Engine::new(Backend::Interpreter, DeviceMemory::default());
        let ready = engine.prepare(&kernel, (&words, &compiled), (Profile::Spec, false)).unwrap();
        let mut launch = kernel.launch(&program(&kernel), NUMBER);
        let steps = launch.program.steps.iter_mut().find(|steps| !steps.is_empty()).unwrap();
        let last = *steps.last().unwrap();
        steps.push(last);
        let problem = engine.run(&kernel, &ready, &launch).err().unwrap();
        assert!(problem.contains("does not execute"), "{problem}");
        // Another kernel's instructions have other attributes.
        let problem = engine
            .prepare(&RandomKernel::random(NUMBER + 1), (&words, &compiled), (Profile::Spec, false))
            .err()
            .unwrap();
        assert!(problem.contains("which is not"), "{problem}");
    }
}
