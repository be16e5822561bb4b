//! Examination of a dispatch in checked mode after it has run, within its bound; afterwards the memory is as the
//! dispatch left it.

use spelter_shaders::abi::Outcome;
use spelter_shaders::check::Detector;

use super::deadline;
use super::dispatch::DispatchRun;
use super::record::Interrupted;
use super::snapshot::Snapshot;

impl DispatchRun<'_> {
    /// Reports what the detector found. Says where the kernel was if the device stopped it when it ran again. `after`
    /// is room for the memory as it is now.
    pub(super) fn examine(&mut self, detector: &Detector, after: &mut Snapshot) -> Option<Interrupted> {
        if detector.candidates().is_empty() && detector.notes().is_empty() && detector.barriers().is_empty() {
            return self.report(detector);
        }
        let examining = &self.code.checker.examining;
        let limit = self.code.checker.options.replay_memory;
        self.is_kept = self.ended && self.snapshot.is_some() && after.take(self.code.written(self.args), limit);
        examining.set(true);
        let end = self.pass.end();
        let late = || {
            end.now();
            // What goes on now, as trials of repairs may, counts.
            examining.set(false);
        };
        let report = || self.report(detector);
        let reported = deadline::within(self.pass.time(), self.pass.device(), late, report);
        let interrupted = reported.unwrap_or_else(|| {
            // Without a thread nothing may run again.
            self.pass.end().now();
            self.report(detector)
        });
        examining.set(false);
        let is_as_left = !self.is_partial.get() && !self.is_changed.get();
        if interrupted.is_some() || !self.ended || is_as_left {
            return interrupted;
        }
        if self.is_kept {
            after.restore();
            return None;
        }
        self.run_again()
    }

    /// Runs the dispatch once more, for what it leaves in memory.
    fn run_again(&self) -> Option<Interrupted> {
        let none = Default::default();
        let code = self.code.observed_at(&none);
        let mut replay = self.replay()?;
        match replay.run_unbounded(code.as_deref().unwrap_or(self.code.all()), self.workgroups.clone()) {
            Outcome::Done => None,
            outcome => Some(replay.stopped(outcome)),
        }
    }
}
