//! The dependencies between two accesses, as steps of a picture.

use std::collections::BTreeSet;

use super::events::{Barrier, SyncEvent};
use super::report::{CommandRace, stages};
use super::scope::Accesses;
use crate::check::step::FoundStep;

/// Steps of one finding at most, the last ones: a picture of more is of no use.
const MAX_STEPS: usize = 16;

impl CommandRace<'_> {
    /// What the program has between the two accesses. Of the submissions only that of the later command counts.
    pub(super) fn between(&self) -> Vec<FoundStep> {
        let steps = self.events_between().filter_map(|(number, event)| self.step(number, event));
        let mut steps: Vec<_> = steps.collect();
        steps.drain(..steps.len().saturating_sub(MAX_STEPS));
        steps.splice(..0, self.set_before(&steps));
        steps
    }

    /// Where events were set before the first access for which the queue of the second one waits between the two.
    fn set_before(&self, steps: &[FoundStep]) -> Vec<FoundStep> {
        let waits = self.events_between().filter_map(|(number, event)| match event {
            SyncEvent::WaitEvents { signals, .. } if steps.iter().any(|step| step.number == number) => Some(signals),
            _ => None,
        });
        let early = waits.flatten().map(|signal| signal.event).filter(|number| *number < self.between.start);
        let early: BTreeSet<_> = early.collect();
        let event = |number: u64| self.events.from(number).next().filter(|(found, _)| *found == number);
        let steps = early.into_iter().filter_map(event).filter_map(|(number, event)| self.step(number, event));
        steps.map(|step| FoundStep { precedes: true, ..step }).collect()
    }

    fn step(&self, number: u64, event: &SyncEvent) -> Option<FoundStep> {
        let after = |signals: &[super::Signal]| signals.iter().map(|signal| signal.event).collect();
        let (queue, text, after) = match event {
            SyncEvent::Submission { .. } if self.points.1.queue.is_none() || number != self.points.1.submitted => {
                return None;
            }
            SyncEvent::Submission { .. } => (None, format!("vkQueueSubmit of {}", self.name(self.pair.1)), Vec::new()),
            SyncEvent::Barrier { queue, barriers, .. } => {
                (Some(*queue), format!("vkCmdPipelineBarrier{}", self.sides(barriers)), Vec::new())
            }
            SyncEvent::Signal { queue, stages: scope, .. } => {
                let what = "semaphore or fence signalled";
                let text = queue.map_or_else(|| what.to_owned(), |_| format!("{what} after {}", stages(*scope)));
                (*queue, text, Vec::new())
            }
            SyncEvent::Set { queue, stages: scope, .. } => {
                let by_queue = |_| format!("vkCmdSetEvent after {}", stages(*scope));
                (*queue, queue.map_or_else(|| "vkSetEvent".to_owned(), by_queue), Vec::new())
            }
            SyncEvent::Wait { queue, stages: scope, signals } => {
                let text = queue.map_or_else(|| "wait".to_owned(), |_| format!("wait in {}", stages(*scope)));
                (*queue, text, after(signals))
            }
            SyncEvent::WaitEvents { queue, signals, barriers } => {
                (Some(*queue), format!("vkCmdWaitEvents{}", self.sides(barriers)), after(signals))
            }
        };
        Some(FoundStep { queue, text, number, after, precedes: false })
    }

    /// The scopes of barriers: two lines for each. An execution dependency beside memory barriers is left out:
    /// `vkCmdPipelineBarrier` has one of the same stages.
    fn sides(&self, barriers: &[Barrier]) -> String {
        let has_accesses =
            |barrier: &&Barrier| [barrier.src, barrier.dst].iter().any(|side| side.accesses != Accesses::NONE);
        let is_alone = !barriers.iter().any(|barrier| has_accesses(&barrier));
        let one = |barrier: &Barrier| {
            let Barrier { src, dst, .. } = barrier;
            let other = if barrier.covers(&self.bytes) { "" } else { ", of other memory" };
            let (from, to) = (stages(src.mask()), stages(dst.mask()));
            format!("\nfrom {from}: {}\nto {to}: {}{other}", src.accesses.name(), dst.accesses.name())
        };
        barriers.iter().filter(|barrier| is_alone || has_accesses(barrier)).map(one).collect()
    }
}
