//! The visit: a submitter runs its own batch for a short, bounded time.
//!
//! An earlier measurement says nothing about a run with other data. So a visit also requires kernels for which the
//! compiler bounds the steps of a workgroup for any data; and between workgroups the submitter checks the clock, and
//! leaves the rest to a worker.

use std::time::{Duration, Instant};

use super::cost::Costs;
use super::phase::SHARE_COLD;
use super::work::Work;

/// The thread that submits a batch runs it if the batch is known to take less than this (in nanoseconds).
const INLINE: u64 = 20_000;
/// Batches with more commands are not examined.
const INLINE_COMMANDS: usize = 64;
/// After this time the rest is left to a worker.
const MAX_INLINE_TIME: Duration = Duration::from_nanos(SHARE_COLD);
/// Steps between two checks of the clock ([`Code::max_steps`](spelter_shaders::back::Code::max_steps)): at most 65 µs,
/// mostly a tenth of that.
const MAX_STEPS: u64 = 1 << 16;

/// A submitter's time as conductor.
#[derive(Debug)]
pub(super) struct Visit {
    /// Time of the first check of the clock.
    started: Option<Instant>,
    /// Units between two checks.
    max_units: u64,
}

impl Visit {
    /// A visit for a batch of these commands, if they are known to be too small for a worker and no workgroup can take
    /// long.
    pub(super) fn new<'a>(costs: &Costs, commands: impl Iterator<Item = &'a Work> + Clone) -> Option<Self> {
        if commands.clone().nth(INLINE_COMMANDS).is_some() {
            return None;
        }
        let (mut cost, mut steps) = (0u64, 1);
        for work in commands {
            cost = cost.saturating_add(costs.work(work)?);
            if let Work::Dispatch(dispatch) = work {
                steps = dispatch.state.code.max_steps()?.max(steps);
            }
        }
        (cost < INLINE && steps <= MAX_STEPS).then_some(Self { started: None, max_units: MAX_STEPS / steps })
    }

    /// When the visit began: now, at the first call. To be called before work that other work may follow.
    pub(super) fn started(&mut self) -> Instant {
        *self.started.get_or_insert_with(Instant::now)
    }

    /// Whether the rest is left to a worker.
    pub(super) fn is_over(&self) -> bool {
        self.started.is_some_and(|started| started.elapsed() > MAX_INLINE_TIME)
    }

    /// Maximum number of units to run before the next check.
    pub(super) fn max_units(&self) -> u64 {
        self.max_units
    }
}
