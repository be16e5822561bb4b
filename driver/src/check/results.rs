//! A handle of a device's findings, for observers of the device, which it owns; and sums of the counts of devices.

use std::ops::AddAssign;
use std::sync::Arc;

use super::{CheckProgress, CheckStats, Checker, Finding};

/// What checked mode finds on a device. It does not keep the device.
#[derive(Clone, Debug)]
pub struct CheckResults(Arc<Checker>);

impl CheckResults {
    pub(crate) fn new(checker: &Arc<Checker>) -> Self {
        Self(Arc::clone(checker))
    }

    /// As [`Device::take_findings`](crate::Device::take_findings): each finding is taken once.
    pub fn take(&self) -> Vec<Finding> {
        self.0.take()
    }

    /// As [`Device::check_stats`](crate::Device::check_stats).
    pub fn stats(&self) -> CheckStats {
        self.0.stats()
    }

    /// How far the dispatch is that runs now, or that ran last.
    pub fn progress(&self) -> CheckProgress {
        self.0.progress.get()
    }
}

/// The counts of several devices.
impl AddAssign for CheckStats {
    fn add_assign(&mut self, other: Self) {
        // All fields by name, so that a new one is not forgotten here.
        let Self {
            dispatches,
            skipped,
            transfers,
            dispatches_repeated,
            suspicions,
            confirmed,
            refuted,
            refuted_in_part,
            undecided,
            lines_not_compared,
            notes_not_searched,
            accesses_not_checked,
            commands_forgotten,
            signals_forgotten,
            findings_dropped,
            epochs_used_up,
            records_forgotten,
            largest_copy,
        } = other;
        self.dispatches += dispatches;
        self.skipped += skipped;
        self.transfers += transfers;
        self.dispatches_repeated += dispatches_repeated;
        self.suspicions += suspicions;
        self.confirmed += confirmed;
        self.refuted += refuted;
        self.refuted_in_part += refuted_in_part;
        self.undecided += undecided;
        self.lines_not_compared += lines_not_compared;
        self.notes_not_searched += notes_not_searched;
        self.accesses_not_checked += accesses_not_checked;
        self.commands_forgotten += commands_forgotten;
        self.signals_forgotten += signals_forgotten;
        self.findings_dropped += findings_dropped;
        self.epochs_used_up += epochs_used_up;
        self.records_forgotten += records_forgotten;
        self.largest_copy = self.largest_copy.max(largest_copy);
    }
}
