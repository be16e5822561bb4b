//! Executes a program as an engine does: workgroups one after the other, between barriers invocations one after the
//! other, or step by step in turns.

use spelter_shaders::check::observer::{Invocation, Observer};
use spelter_shaders::ir::{Scope, SiteAction};

use super::execution::Recording;
use super::{Execution, Program};
use crate::mutate::Rng;

/// The order in which invocations take turns.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Schedule {
    /// Determines the order of workgroups, and of invocations.
    pub seed: u64,
    /// Whether an invocation's turn is one step, instead of all steps up to its next barrier.
    pub fine: bool,
}

impl Schedule {
    /// A schedule of the kind that engines have.
    pub fn new(seed: u64) -> Self {
        Self { seed, fine: false }
    }

    /// A schedule in which the invocations of a workgroup take turns after each step.
    pub fn fine(seed: u64) -> Self {
        Self { seed, fine: true }
    }
}

/// Where an invocation is.
#[derive(Clone, Copy, PartialEq, Eq)]
enum State {
    Runs,
    Waits(Scope),
    Ended,
}

struct Member {
    by: Invocation,
    /// The index of its steps.
    thread: usize,
    next: usize,
    state: State,
}

impl Program {
    /// Runs the program, tells `observer`, and returns what happened.
    pub fn run(&self, schedule: Schedule, observer: &mut dyn Observer) -> Execution {
        let mut rng = Rng::new(schedule.seed);
        let mut recording = Recording::new(self);
        // Seed 0 is the order of an engine without a seed.
        let mut workgroups: Vec<_> = (0..self.shape.workgroups).collect();
        if schedule.seed != 0 {
            (1..workgroups.len()).for_each(|at| workgroups.swap(at, rng.below(at + 1)));
        }
        for workgroup in workgroups {
            let mut members: Vec<_> = (0..self.shape.invocations)
                .map(|local| {
                    let by = Invocation { workgroup, local };
                    Member { by, thread: recording.thread(by), next: 0, state: State::Runs }
                })
                .collect();
            let backwards = schedule.seed != 0 && rng.below(2) == 0;
            loop {
                let ready: Vec<_> = (0..members.len()).filter(|&at| members[at].state == State::Runs).collect();
                let at = match (ready.first(), ready.last()) {
                    (Some(_), _) if schedule.fine => rng.pick(&ready),
                    (Some(_), Some(&last)) if backwards => last,
                    (Some(&first), _) => first,
                    _ => break,
                };
                loop {
                    self.step(&mut members[at], &mut recording, observer);
                    if schedule.fine || members[at].state != State::Runs {
                        break;
                    }
                }
                self.release(workgroup, &mut members, &mut recording, observer);
            }
            let waits = members.iter().any(|member| member.state != State::Ended);
            assert!(!waits, "an invocation waits forever");
        }
        recording.finish()
    }

    /// The next step of an invocation.
    fn step(&self, member: &mut Member, recording: &mut Recording<'_>, observer: &mut dyn Observer) {
        let Some(&step) = self.steps[member.thread].get(member.next) else {
            member.state = State::Ended;
            observer.end(member.by);
            return;
        };
        member.next += 1;
        recording.step(member.by, step);
        match (self.sites[step.site].action, step.target) {
            (SiteAction::Read(_) | SiteAction::Write(_), Some(target)) => {
                observer.access(member.by, step.site, target);
            }
            (SiteAction::Atomic { .. }, Some(target)) => {
                let wrote = recording.wrote_last();
                observer.atomic(member.by, step.site, target, wrote);
            }
            (SiteAction::Fence { .. }, _) => observer.fence(member.by, step.site),
            (SiteAction::Barrier { execution, .. }, _) => {
                member.state = State::Waits(execution);
                observer.arrive(member.by, step.site);
            }
            (action, None) => panic!("{action:?} accesses no memory"),
        }
    }

    /// Lets invocations go on where all that have not ended wait.
    fn release(
        &self,
        workgroup: u64,
        members: &mut [Member],
        recording: &mut Recording<'_>,
        observer: &mut dyn Observer,
    ) {
        let size = self.shape.subgroup_size as usize;
        let instances = members.len().div_ceil(size);
        for subgroup in (0..instances).map(Some).chain([None]) {
            let (execution, range) = match subgroup {
                Some(subgroup) => (Scope::Subgroup, subgroup * size..members.len().min((subgroup + 1) * size)),
                None => (Scope::Workgroup, 0..members.len()),
            };
            let waits = State::Waits(execution);
            let all = members[range.clone()].iter().all(|member| member.state == waits || member.state == State::Ended);
            let waiting: Vec<_> = range.filter(|&at| members[at].state == waits).collect();
            if all && !waiting.is_empty() {
                let group: Vec<_> = waiting.iter().map(|&at| members[at].thread).collect();
                recording.release(&group);
                waiting.iter().for_each(|&at| members[at].state = State::Runs);
                observer.release(workgroup, execution, subgroup.map(|subgroup| subgroup as u32));
            }
        }
    }
}
