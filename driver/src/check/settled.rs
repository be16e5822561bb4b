//! Races of a kernel that are known: a program dispatches it again and again, and each time the detector suspects the
//! same. A replay for each dispatch would say so again, and only change how often the race was observed. Known are the
//! errors that the program has not taken yet, and with [`CheckOptions::count_known`](super::CheckOptions::count_known)
//! those that it has: without it, what it takes next would name races that may be none of later dispatches.
//!
//! The detector does not know which instruction made the earlier access. With other data it may be another one, of
//! which nothing was reported. So every dispatch whose number among the known ones is a power of two runs again all the
//! same: what happens in half of the later dispatches is found, for few replays.

use std::collections::HashMap;

use spelter_locks::Mutex;
use spelter_shaders::check::{CandidateKind, Candidates, Cause, Distance, Relation};
use spelter_shaders::ir::Site;

use super::Checker;
use super::finding::Finding;

/// Dispatches in a row of which all suspicions are confirmed, and nothing else is found, before the next ones count as
/// such: other data may show other races.
const MIN_IN_VAIN: u32 = 4;

/// What makes suspicions of several dispatches one kind.
type SuspicionKey = (Site, Distance, [bool; 2], Relation, Cause);

/// What is known of a kernel.
#[derive(Debug, Default)]
pub(super) struct Settled(Mutex<KnownSuspicions>);

#[derive(Debug, Default)]
struct KnownSuspicions {
    /// The error that each kind was reported as.
    errors: HashMap<SuspicionKey, Finding>,
    /// Dispatches in a row that showed nothing new.
    in_vain: u32,
    /// Dispatches since then of which all suspicions were known.
    known: u64,
}

fn key(kind: &CandidateKind) -> SuspicionKey {
    (kind.site, kind.distance, [kind.atomic, kind.vague], kind.relation, kind.cause)
}

impl Settled {
    /// Counts the suspicions of a dispatch as observations of known races, if they are: each kind is that of a known
    /// error.
    pub(super) fn has_all(&self, kinds: &[Candidates], checker: &Checker) -> bool {
        let mut known = self.0.lock();
        let is_known = |candidates: &Candidates| {
            known.errors.get(&key(&candidates.kind)).is_some_and(|error| checker.counts(error))
        };
        if known.in_vain < MIN_IN_VAIN || !kinds.iter().all(is_known) {
            return false;
        }
        known.known += 1;
        if known.known > 1 && known.known.is_power_of_two() {
            return false;
        }
        let error = |candidates: &Candidates| known.errors.get(&key(&candidates.kind));
        for candidates in kinds {
            if let Some(error) = error(candidates) {
                checker.report_again(Finding { count: candidates.count, ..error.clone() });
            }
        }
        checker.count(|counts| counts.confirmed += kinds.len() as u64);
        true
    }

    /// A kind of suspicion was reported as this error.
    pub(super) fn confirmed(&self, kind: &CandidateKind, error: &Finding) {
        self.0.lock().errors.insert(key(kind), error.clone());
    }

    /// A dispatch was examined, and all of it was known, or not.
    pub(super) fn examined(&self, is_known: bool) {
        let mut known = self.0.lock();
        if is_known {
            known.in_vain = known.in_vain.saturating_add(1);
        } else {
            (known.in_vain, known.known) = (0, 0);
        }
    }
}
