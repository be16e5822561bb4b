//! Cost of a workgroup of each kernel, measured when it runs: the hint that keeps small work on one thread.
//!
//! A wrong hint costs time, never correctness: entries may collide, be stale, or belong to a kernel that no longer
//! exists.

use std::sync::Arc;
use std::time::{Duration, Instant};

use spelter_shaders::back::Code;

use super::plan::PhasePlan;
use super::work::{DispatchWork, Groups, Work};
use crate::sync::primitives::{AtomicU64, Ordering};

/// Kernels remembered at a time.
const ENTRIES: usize = 256;
/// Bits of an entry that hold nanoseconds (four minutes); the others hold a part of the kernel's address.
const TIME_BITS: u32 = 38;
const TIME_MASK: u64 = (1 << TIME_BITS) - 1;
/// A known kernel is measured again once per this many chunks.
const AGAIN: u64 = 64;
/// Bytes that a copy or fill moves in a nanosecond, roughly.
const BYTES_PER_NANOSECOND: u64 = 8;
/// Nanoseconds to begin a row of an image.
const ROW: u64 = 10;

/// Nanoseconds per workgroup, by kernel.
#[derive(Debug)]
pub(super) struct Costs {
    entries: [AtomicU64; ENTRIES],
}

impl Costs {
    /// Costs without any entry.
    pub(super) fn new() -> Self {
        Self { entries: std::array::from_fn(|_| AtomicU64::new(0)) }
    }

    /// The entry of a kernel, and its tag in it.
    fn find(&self, code: &Arc<dyn Code>) -> (&AtomicU64, u64) {
        let hash = (Arc::as_ptr(code).addr() as u64 >> 4).wrapping_mul(0x9e37_79b9_7f4a_7c15);
        (&self.entries[(hash >> 56) as usize % ENTRIES], hash << 8 & !TIME_MASK)
    }

    /// Nanoseconds per workgroup in the latest measurement.
    fn of(&self, code: &Arc<dyn Code>) -> Option<u64> {
        let (entry, tag) = self.find(code);
        // Relaxed: a hint, whole in one word.
        let entry = entry.load(Ordering::Relaxed);
        (entry & !TIME_MASK == tag && entry & TIME_MASK != 0).then_some(entry & TIME_MASK)
    }

    /// Starts the clock if the kernel is unknown, or at every `AGAIN`-th call; `count` is the caller's counter of
    /// calls.
    pub(super) fn start(&self, code: &Arc<dyn Code>, count: &mut u64) -> Option<Instant> {
        *count = count.wrapping_add(1);
        (count.is_multiple_of(AGAIN) || self.of(code).is_none()).then(Instant::now)
    }

    /// Stores the time that `groups` workgroups took.
    pub(super) fn stop(&self, code: &Arc<dyn Code>, took: Duration, groups: u64) {
        let (entry, tag) = self.find(code);
        let nanoseconds = took.as_nanos() / u128::from(groups.max(1));
        let nanoseconds = (nanoseconds as u64).clamp(1, TIME_MASK);
        // Relaxed: a hint, whole in one word.
        entry.store(tag | nanoseconds, Ordering::Relaxed);
    }

    /// Removes the entry of a kernel whose cost turned out to be wrong.
    pub(super) fn forget(&self, code: &Arc<dyn Code>) {
        let (entry, tag) = self.find(code);
        // Relaxed: a hint, whole in one word.
        if entry.load(Ordering::Relaxed) & !TIME_MASK == tag {
            entry.store(0, Ordering::Relaxed);
        }
    }

    /// Nanoseconds that a phase takes on one thread, `None` if a part of it is unknown. Stops adding at `enough`.
    pub(super) fn phase(&self, phase: &[Work], plan: &PhasePlan, enough: u64) -> Option<u64> {
        let mut sum = 0u64;
        for (i, work) in phase.iter().enumerate() {
            let units = plan.units_of(i);
            let cost = match work {
                _ if units == 0 => 0,
                Work::Dispatch(dispatch) => self.of(&dispatch.state.code)?.saturating_mul(units),
                _ => transfer(work),
            };
            sum = sum.saturating_add(cost);
            if sum >= enough {
                break;
            }
        }
        Some(sum)
    }

    /// Nanoseconds of one command before it is planned; `None` if unknown.
    pub(super) fn work(&self, work: &Work) -> Option<u64> {
        match work {
            Work::Dispatch(DispatchWork { state, groups: Groups::Direct(groups), .. }) => {
                let groups = groups.iter().fold(1u64, |product, &count| product.saturating_mul(u64::from(count)));
                Some(self.of(&state.code)?.saturating_mul(groups))
            }
            Work::Dispatch(_) => None,
            _ => Some(transfer(work)),
        }
    }
}

fn transfer(work: &Work) -> u64 {
    let rows = match work {
        Work::Rows(rows) => rows.to.rows,
        Work::Clear(clear) => clear.to.rows,
        _ => 0,
    };
    (work.bytes() / BYTES_PER_NANOSECOND).saturating_add(rows.saturating_mul(ROW))
}
