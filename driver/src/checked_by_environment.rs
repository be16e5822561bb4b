//! `SPELTER_CHECK`: checked mode for all devices that a library opens, as in `SPELTER_CHECK=1 cargo test`.
//!
//! The Vulkan driver reports to the process that uses it; a library in Rust reports to the test whose device it is: the
//! thread that drops the device panics.

use std::collections::HashSet;
use std::io::Write as _;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use spelter_locks::Mutex;

use crate::check::{CheckOptions, FindingIdentity, Profile, Severity, report};
use crate::environment::variable;
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
}

impl CheckedByEnvironment {
    /// Turns checked mode on if the variable says so (`1`, or a profile: `common`, `spec`, `strict`) and the options do
    /// not say otherwise. An error if the variable has another value.
    pub fn turn_on(options: &mut DeviceOptions) -> Result<Option<Self>, String> {
        let Some(value) = variable(VARIABLE).filter(|_| options.check.is_none()) else { return Ok(None) };
        let value = value.to_string_lossy();
        let profile = match &*value {
            "0" => return Ok(None),
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

    /// Prints what was found on the device since the last call: each finding once, with the dispatch in which it was
    /// made first.
    pub fn print(&self, device: &Device) {
        for finding in device.take_findings() {
            if !self.printed.lock().insert(finding.identity()) {
                continue;
            }
            // A closed standard error is ignored.
            let _ = writeln!(std::io::stderr(), "{finding}");
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
        let is_allowed = variable(ALLOW_UNCHECKED).is_some_and(|value| value == "1");
        if stats.is_partial() && !is_allowed {
            let gaps = report::gaps(&stats, "`CheckOptions::memory`").join("; ");
            panic!("checked mode ({VARIABLE}) did not check everything: {gaps} ({ALLOW_UNCHECKED}=1 accepts that)");
        }
    }
}
