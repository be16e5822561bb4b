//! `SPELTER_CHECK`: checked mode for all devices that a library opens, as in `SPELTER_CHECK=1 cargo test`.
//!
//! The Vulkan driver reports to the process that uses it; a library in Rust reports to the test whose device it is: the
//! thread that drops the device panics.

use std::collections::HashSet;
use std::io::Write as _;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, OnceLock};
use std::time::{Duration, Instant};

use spelter_locks::Mutex;

use crate::check::{CheckOptions, CheckResults, Finding, FindingIdentity, Profile, Severity, report};
use crate::exec::{Chunk, Observer, SubmissionId};
use crate::{Device, DeviceOptions};

const VARIABLE: &str = "SPELTER_CHECK";

/// Whether it is accepted that a part of the accesses was not checked.
const ALLOW_UNCHECKED: &str = "SPELTER_CHECK_ALLOW_UNCHECKED";

/// The time limit of a command in checked mode, if none is set: checks make a kernel slower.
pub const CHECKED_TIME_LIMIT: Duration = Duration::from_secs(3600);

/// A device that is checked because the environment says so.
#[derive(Debug, Default)]
pub struct CheckedByEnvironment {
    /// Errors that were printed. Relaxed everywhere: it orders nothing.
    errors: AtomicUsize,
    /// What was printed: equal findings of later dispatches are not printed again. A leaf lock.
    printed: Mutex<HashSet<FindingIdentity>>,
    found: Arc<Found>,
}

/// What was found in dispatches, with their names.
#[derive(Debug, Default)]
struct Found {
    results: OnceLock<CheckResults>,
    /// A leaf lock.
    waiting: Mutex<Vec<(Finding, String)>>,
}

impl Observer for Found {
    fn worked(&self, chunk: &Chunk<'_>) {
        let (Some(results), Some(_)) = (self.results.get(), chunk.dispatch) else { return };
        let findings = results.take();
        if !findings.is_empty() {
            let (command, submission) = (chunk.command.recording, chunk.command.submission);
            let of_queue = format!("submission {} of queue {}", submission.serial, submission.queue);
            let place = format!("in `{}`, command buffer {command} of {of_queue}", chunk.name);
            self.waiting.lock().extend(findings.into_iter().map(|finding| (finding, place.clone())));
        }
    }

    fn ran(&self, _: SubmissionId, _: bool, _: Instant, _: Instant) {}
}

impl CheckedByEnvironment {
    /// Turns checked mode on if the variable says so (`1`, or a profile: `common`, `spec`, `strict`) and the options do
    /// not say otherwise. An error if the variable has another value.
    pub fn turn_on(options: &mut DeviceOptions) -> Result<Option<Self>, String> {
        let Some(value) = std::env::var_os(VARIABLE).filter(|_| options.check.is_none()) else { return Ok(None) };
        let value = value.to_string_lossy();
        let profile = match &*value {
            "" | "0" => return Ok(None),
            "1" => Profile::Common,
            name => name.parse().map_err(|problem| format!("{VARIABLE}: {problem}, nor 1 or 0"))?,
        };
        // The program knows nothing of checked mode, so the usual limit is no wish of its own.
        if options.time_limit == DeviceOptions::default().time_limit {
            options.time_limit = CHECKED_TIME_LIMIT;
        }
        options.check = Some(CheckOptions { profile, ..CheckOptions::default() });
        Ok(Some(Self::default()))
    }

    /// Receives the names of dispatches: an observer for the device.
    pub fn observer(&self) -> Arc<dyn Observer> {
        Arc::clone(&self.found) as Arc<dyn Observer>
    }

    /// The device with the observer exists.
    pub fn started(&self, device: &Device) {
        device.check_results().map(|results| self.found.results.set(results));
    }

    /// Prints what was found on the device since the last call: each finding once, with the dispatch in which it was
    /// made first.
    pub fn print(&self, device: &Device) {
        let of_dispatches = std::mem::take(&mut *self.found.waiting.lock());
        let others = device.take_findings().into_iter().map(|finding| (finding, String::new()));
        for (finding, place) in of_dispatches.into_iter().chain(others) {
            if !self.printed.lock().insert(finding.identity()) {
                continue;
            }
            let place = if place.is_empty() { place } else { format!("\n  {place}") };
            // A closed standard error is ignored.
            let _ = writeln!(std::io::stderr(), "{finding}{place}");
            if finding.severity == Severity::Error {
                self.errors.fetch_add(1, Ordering::Relaxed);
            }
        }
    }

    /// The end of a device. Panics if there was an error, or if a part was not checked and that is not accepted, so
    /// that a test fails, unless the thread is panicking.
    pub fn deny(&self, device: &Device) {
        self.print(device);
        if std::thread::panicking() {
            return;
        }
        let errors = self.errors.load(Ordering::Relaxed);
        let counted = if errors == 1 { "error" } else { "errors" };
        assert!(errors == 0, "checked mode ({VARIABLE}) found {errors} {counted}");
        let stats = device.check_stats();
        let is_allowed = std::env::var_os(ALLOW_UNCHECKED).is_some_and(|value| value == "1");
        if stats.is_partial() && !is_allowed {
            let gaps = report::gaps(&stats, "`CheckOptions::memory`").join("; ");
            panic!("checked mode ({VARIABLE}) did not check everything: {gaps} ({ALLOW_UNCHECKED}=1 accepts that)");
        }
    }
}
