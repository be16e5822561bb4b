//! The smallest dependency that mends a race between commands, as the call to write. It is offered if the observed
//! execution, with the dependency, orders the two accesses.

use super::events::{Barrier, SyncEvent};
use super::order::Lack;
use super::reason::BarrierCall;
use super::repair_trial::RepairTrial;
use super::report::{CommandRace, Needs};
use super::scope::{Accesses, Side, Stage, Stages};
use crate::check::finding::Repair;

/// The first version of `vkCmdPipelineBarrier2`.
const BARRIER: &str = "vkCmdPipelineBarrier";

/// For a host that waits for a signal after some stages only.
const AND_WAIT: &str = ", and wait for a fence of that submission";

/// Stages, each with the one that has its place in the masks of a call of version 1, if that is another one.
fn both_names(stages: Stages, old: &str) -> String {
    let name = |stage: Stage| match stage {
        Stage::Copy | Stage::Clear => format!("{} (TRANSFER in {old})", stage.name()),
        _ => stage.name().to_owned(),
    };
    stages.iter().map(name).collect::<Vec<_>>().join(" | ")
}

fn source(side: Side) -> String {
    format!("srcStageMask {}, srcAccessMask {}", both_names(side.named, BARRIER), side.accesses.name())
}

fn destination(side: Side) -> String {
    format!("dstStageMask {}, dstAccessMask {}", both_names(side.named, BARRIER), side.accesses.name())
}

/// The second scope that makes values visible to reads of the host.
fn host() -> Side {
    Side::of(Stage::Host, Accesses::HOST_READ)
}

impl CommandRace<'_> {
    /// What a dependency between the two accesses needs: only a write has accesses to name.
    pub(super) fn needs(&self) -> Needs {
        let (first, second) = self.points;
        let accesses = |of: Accesses| if first.access.writes() { of } else { Accesses::NONE };
        let dst = Side::of(second.stage, accesses(second.access));
        Needs { src: Side::of(first.stage, accesses(first.access)), dst }
    }

    /// The smallest dependency that mends this race and the others of the two commands.
    pub(super) fn repairs(&self) -> Vec<Repair> {
        let (first, second) = self.points;
        let needs = self.needs.unwrap_or_else(|| self.needs());
        let trial = || RepairTrial::new(self.order);
        let text = match (self.lack, first.queue, second.queue) {
            (Lack::HostDomain, Some(_), _) if self.queue_of_host_barrier().is_some() => {
                let queue = self.queue_of_host_barrier().unwrap_or_default();
                let of_queue = trial().wait_for_queue(queue);
                self.is_repaired(of_queue)
                    .then(|| format!("wait for a fence of the submission of queue {queue} that has the barrier"))
            }
            (Lack::HostDomain, Some(queue), _) => {
                let repaired = self.visible_to_host(trial(), queue, needs.src).wait(None, Stages::NONE);
                let wait = if self.waits_before_barrier(needs.src) { AND_WAIT } else { "" };
                self.is_repaired(repaired).then(|| format!("{}{wait}", self.call_to_host(needs.src)))
            }
            (_, Some(queue), None) => {
                let fence = "wait for a fence of that submission before the host accesses the memory";
                // An input that comes too late.
                let early = if first.access.writes() { "" } else { ", or let it write before vkQueueSubmit" };
                if self.is_repaired(trial().wait(None, Stages::NONE)) {
                    Some(format!("{fence}{early}"))
                } else {
                    let repaired = self.visible_to_host(trial(), queue, needs.src).wait(None, Stages::NONE);
                    self.is_repaired(repaired).then(|| format!("{fence}, and {}", self.call_to_host(needs.src)))
                }
            }
            // A later submission makes all that the host did before visible.
            (_, None, _) => Some(self.wait_for_host(needs).unwrap_or_else(|| {
                "let the host access it before vkQueueSubmit, or after waiting for a fence of that submission".into()
            })),
            (_, Some(one), Some(other)) if one != other => self.semaphore(trial(), other, needs.dst.named),
            (_, Some(_), Some(_)) if self.is_of_one_call() => {
                Some("write each byte in one region only, or in two calls with a barrier between them".to_owned())
            }
            (_, Some(queue), Some(_)) => self.moved_event().or_else(|| self.barrier_between(trial(), queue, needs)),
        };
        text.map(|text| Repair { text, line: None }).into_iter().collect()
    }

    fn lack_of(&self, trial: RepairTrial) -> Option<Lack> {
        trial.lack(&self.points.1, &self.bytes)
    }

    fn is_repaired(&self, trial: RepairTrial) -> bool {
        self.lack_of(trial).is_none()
    }

    /// Whether the host waited for the write, but not for what is directly after it: for a signal after some stages.
    fn waits_before_barrier(&self, src: Side) -> bool {
        let (barrier, end) = (Barrier::new(src, host(), None), self.between.end);
        let trial = RepairTrial::barrier_after(self.order, self.events, end, barrier);
        let is_transition = self.pair.0.command.is_transition();
        // Without an order the wait is not kept any more.
        !is_transition && trial.is_some_and(|trial| self.lack_of(trial) == Some(Lack::HostDomain))
    }

    /// The barrier of a wait for an event that the host set after its access.
    fn wait_for_host(&self, Needs { src, dst }: Needs) -> Option<String> {
        let queue = self.points.1.queue?;
        let signals = self.events_of_host()?.clone();
        let trial = RepairTrial::new(self.order).wait_for_events(queue, signals, Barrier::new(src, dst, None));
        let text = || format!("{}, {} in the barrier of vkCmdWaitEvents", source(src), destination(dst));
        self.is_repaired(trial).then(text)
    }

    /// With a barrier that makes the write visible to the host, or the barrier of the layout transition that writes.
    fn visible_to_host(&self, trial: RepairTrial, queue: u32, src: Side) -> RepairTrial {
        if self.pair.0.command.is_transition() {
            return trial.transition(queue, &host());
        }
        trial.barrier(queue, self.points.0.submitted, Barrier::new(src, host(), None))
    }

    fn call_to_host(&self, src: Side) -> String {
        let (first, dst) = (self.name(self.pair.0), destination(host()));
        if self.pair.0.command.is_transition() {
            return format!("{dst} in the barrier of the {first}");
        }
        format!("vkCmdPipelineBarrier2 after {first}, with {}, {dst}", source(src))
    }

    /// A semaphore that another queue waits for. Of its commands those in some stages wait; what a layout transition
    /// waits for is in the masks of its barrier.
    fn semaphore(&self, trial: RepairTrial, queue: u32, stages: Stages) -> Option<String> {
        let (stages, name) = match self.pair.1.command.is_transition() {
            true => (Stages::COMMANDS, Stages::COMMANDS.name()),
            false => (stages, both_names(stages, "vkQueueSubmit")),
        };
        self.is_repaired(trial.wait(Some(queue), stages)).then(|| {
            format!(
                "a semaphore that the submission of {} signals, and that the submission of {} waits for in stage \
                 {name}",
                self.name(self.pair.0),
                self.name(self.pair.1),
            )
        })
    }

    /// A barrier between the two commands of one queue: where one is a layout transition, its own barrier.
    fn barrier_between(&self, trial: RepairTrial, queue: u32, needs: Needs) -> Option<String> {
        let (submitted, Needs { src, dst }) = (self.points.1.submitted, needs);
        let (one, other) = self.pair;
        let repaired = match one.command.is_transition() {
            true => trial.transition(queue, &dst),
            false => trial.barrier(queue, submitted, Barrier::new(src, dst, None)),
        };
        if !self.is_repaired(repaired) {
            return None;
        }
        Some(match (one.command.is_transition(), other.command.is_transition()) {
            (_, true) => format!("{} in the barrier of the {}", source(src), self.name(other)),
            (true, _) => format!("{} in the barrier of the {}", destination(dst), self.name(one)),
            _ => {
                let all = if needs == self.needs() { "" } else { ", for all races of the two commands" };
                let (src, dst) = (source(src), destination(dst));
                // The condition may be read when it begins.
                let begin = match self.points.1.access {
                    Accesses::CONDITIONAL_READ => "vkCmdBeginConditionalRenderingEXT of ",
                    _ => "",
                };
                format!("vkCmdPipelineBarrier2 before {begin}{}, with {src}, {dst}{all}", self.name(other))
            }
        })
    }

    /// The event that the last wait between the two is for, if it was set before the first one: it orders them if it is
    /// set after that.
    fn moved_event(&self) -> Option<String> {
        let queue = self.points.1.queue;
        let is_early = self.barriers(queue).first().is_some_and(|last| last.call == BarrierCall::SetBefore);
        let waits = self.events_between().filter_map(|(_, event)| match event {
            SyncEvent::WaitEvents { signals, .. } if is_early && event.queue() == queue => {
                signals.iter().max_by_key(|signal| signal.event)
            }
            _ => None,
        });
        let set = waits.last().filter(|set| set.queue == queue)?;
        let trial = RepairTrial::set_after(self.order, self.events, self.between.end, set.event)?;
        self.is_repaired(trial).then(|| format!("move vkCmdSetEvent after {}", self.name(self.pair.0)))
    }
}
