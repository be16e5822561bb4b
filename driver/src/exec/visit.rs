//! What a thread does of a batch that it only submits: it wants to go on, so it does little, and knows so beforehand.
//!
//! What a kernel took when it was measured says nothing about the next time, when its data are others. So it must also be
//! one that cannot take long for a workgroup, whatever its data; and between workgroups the submitter looks at the clock,
//! and leaves the rest to a worker.

use std::time::{Duration, Instant};

use super::cost::Costs;
use super::phase::SHARE_COLD;
use super::work::Work;

/// Batches known to take less than this (in nanoseconds) are run by the thread that submits them.
const INLINE: u64 = 20_000;
/// A batch with more commands is not looked at any further.
const INLINE_COMMANDS: usize = 64;
/// What is not done by then is left to a worker.
const MAX_INLINE_TIME: Duration = Duration::from_nanos(SHARE_COLD);
/// Steps between two looks at the clock ([`Code::most_steps`](spelter_shaders::back::Code::most_steps)): 65 µs, and mostly a tenth.
const MAX_STEPS: u64 = 1 << 16;

/// A submitter's time as conductor.
#[derive(Debug)]
pub(super) struct Visit {
    /// When the first look at the clock was.
    started: Option<Instant>,
    /// Units between two looks at it.
    most_units: u64,
}

impl Visit {
    /// For a batch of these commands: if they are known to be not worth a worker, and none can take long.
    pub(super) fn new<'a>(costs: &Costs, commands: impl Iterator<Item = &'a Work> + Clone) -> Option<Self> {
        if commands.clone().nth(INLINE_COMMANDS).is_some() {
            return None;
        }
        let (mut cost, mut steps) = (0u64, 1);
        for work in commands {
            cost = cost.saturating_add(costs.work(work)?);
            if let Work::Dispatch(dispatch) = work {
                steps = dispatch.bound.code.most_steps()?.max(steps);
            }
        }
        (cost < INLINE && steps <= MAX_STEPS).then_some(Self { started: None, most_units: MAX_STEPS / steps })
    }

    /// When it began: now, if nobody has asked before. To be called before work after which there may be more.
    pub(super) fn started(&mut self) -> Instant {
        *self.started.get_or_insert_with(Instant::now)
    }

    /// Whether the rest is for others.
    pub(super) fn is_over(&self) -> bool {
        self.started.is_some_and(|started| started.elapsed() > MAX_INLINE_TIME)
    }

    /// Units to run at most before the next look.
    pub(super) fn most_units(&self) -> u64 {
        self.most_units
    }
}
