//! The dependencies between two accesses, as steps of a picture.

use std::collections::BTreeSet;

use super::events::{Barrier, SyncEvent};
use super::report::{CommandRace, stages};
use super::scope::Accesses;
use super::signalled::Signal;
use crate::check::step::FoundStep;

/// Steps of one finding at most, the last ones: a picture of more is of no use.
const MAX_STEPS: usize = 16;

/// Those of them that come before the first access.
const MAX_BEFORE: usize = 4;

impl CommandRace<'_> {
    /// What the program has between the two accesses. Of the submissions only that of the later command counts. Before
    /// them comes where events were set for which it waits between the two.
    pub(super) fn between(&self) -> Vec<FoundStep> {
        let events: Vec<_> = self.events_between().collect();
        let last = events.into_iter().rev().filter_map(|(number, event)| self.step(number, event));
        let mut steps: Vec<_> = last.take(MAX_STEPS).collect();
        steps.reverse();
        let awaited: BTreeSet<_> = steps.iter().flat_map(|step| &step.after).copied().collect();
        let early = awaited.into_iter().rev().filter(|number| *number < self.between.start);
        let sets = early.filter_map(|number| Some((number, self.events.get(number)?)));
        let sets = sets.filter(|(_, event)| matches!(event, SyncEvent::Set { .. }));
        let before = sets.filter_map(|(number, event)| self.step(number, event));
        let mut before: Vec<_> = before.take(MAX_BEFORE).map(|step| FoundStep { precedes: true, ..step }).collect();
        before.reverse();
        steps.drain(..(before.len() + steps.len()).saturating_sub(MAX_STEPS));
        before.retain(|set| steps.iter().any(|step| step.after.contains(&set.number)));
        steps.splice(..0, before);
        steps
    }

    /// The numbers of the sets of events that a wait for these signals, by its number, is for: not those after which
    /// the event was reset and set again.
    fn sets(&self, signals: &[Signal], wait: u64) -> Vec<u64> {
        let object = |event: &SyncEvent| if let SyncEvent::Set { object, .. } = event { Some(*object) } else { None };
        let numbers = || signals.iter().map(|signal| signal.event);
        let (mut objects, mut last) = (BTreeSet::new(), BTreeSet::new());
        for number in (numbers().min().unwrap_or(wait)..wait).rev() {
            let object = self.events.get(number).and_then(object);
            last.extend(object.is_some_and(|object| objects.insert(object)).then_some(number));
        }
        numbers().filter(|number| last.contains(number)).collect()
    }

    fn step(&self, number: u64, event: &SyncEvent) -> Option<FoundStep> {
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
                (*queue, text, signals.iter().map(|signal| signal.event).collect())
            }
            SyncEvent::WaitEvents { queue, signals, barriers } => {
                (Some(*queue), format!("vkCmdWaitEvents{}", self.sides(barriers)), self.sets(signals, number))
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
