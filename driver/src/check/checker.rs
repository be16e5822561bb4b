//! The findings of a device, and what they are collected with.

use std::collections::HashMap;
use std::sync::atomic::{AtomicU64, Ordering};

use parking_lot::Mutex;

use super::{CheckOptions, Finding, Rule};

/// Findings that are kept until the program takes them, at most; later ones are counted only.
const MAX_FINDINGS: usize = 10_000;

/// The checked mode of a device.
#[derive(Debug)]
pub(crate) struct Checker {
    pub(super) options: CheckOptions,
    /// Dispatches that were started.
    dispatches: AtomicU64,
    found: Mutex<Found>,
}

#[derive(Debug, Default)]
struct Found {
    list: Vec<Finding>,
    /// Index in the list of a finding, by what makes it the same one.
    same: HashMap<Sameness, usize>,
    /// Findings beyond [`MAX_FINDINGS`].
    dropped: u64,
}

/// A finding is reported once for a rule, a kernel and a pair of instructions with the calls that lead to them.
type Sameness = (Rule, Option<(u32, String, String)>, (u32, String, String));

impl Checker {
    pub(crate) fn new(options: CheckOptions) -> Self {
        Self { options, dispatches: AtomicU64::new(0), found: Mutex::default() }
    }

    /// The number of the dispatch that starts now, if it is to be checked.
    pub(super) fn begin(&self) -> Option<u64> {
        // Relaxed: one thread runs dispatches.
        let dispatch = self.dispatches.fetch_add(1, Ordering::Relaxed);
        self.options.shard.has(dispatch).then_some(dispatch)
    }

    /// Adds a finding, or counts it if there is one of the same instructions.
    pub(super) fn report(&self, finding: Finding) {
        let key = |access: &super::FoundAccess| (access.word, access.kernel.to_string(), access.position());
        let sameness = (finding.rule, finding.first.as_ref().map(key), key(&finding.second));
        let mut found = self.found.lock();
        if let Some(&index) = found.same.get(&sameness) {
            let known = &mut found.list[index];
            let count = known.count.saturating_add(finding.count);
            // A confirmed one says more than a suspicion.
            if finding.severity > known.severity {
                *known = finding;
            }
            known.count = count;
        } else if found.list.len() < MAX_FINDINGS {
            let index = found.list.len();
            found.same.insert(sameness, index);
            found.list.push(finding);
        } else {
            found.dropped = found.dropped.saturating_add(1);
        }
    }

    /// Takes the findings since the last call.
    pub(crate) fn take(&self) -> Vec<Finding> {
        let mut found = self.found.lock();
        found.same.clear();
        std::mem::take(&mut found.list)
    }
}
