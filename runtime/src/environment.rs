//! `SPELTER_CHECK`: checked mode for all contexts of a process, as in `SPELTER_CHECK=1 cargo test`.

use std::io::Write as _;

use spelter_driver::check::{CheckOptions, Finding, Profile, Severity, report};
use spelter_driver::{Device, DeviceOptions};

use crate::error::Error;

const VARIABLE: &str = "SPELTER_CHECK";

/// Turns checked mode on if the variable says so and the program does not say otherwise. Returns whether it did.
pub(crate) fn check(options: &mut DeviceOptions) -> Result<bool, Error> {
    let Some(value) = std::env::var_os(VARIABLE).filter(|_| options.check.is_none()) else { return Ok(false) };
    let value = value.to_string_lossy();
    let profile = match &*value {
        "" | "0" => return Ok(false),
        "1" => Profile::Common,
        name => name.parse().map_err(|problem| Error::Options(format!("{VARIABLE}: {problem}, nor 1 or 0")))?,
    };
    options.check = Some(CheckOptions { profile, ..CheckOptions::default() });
    Ok(true)
}

/// Whether it is accepted that a part of the accesses was not checked.
const ALLOW_UNCHECKED: &str = "SPELTER_CHECK_ALLOW_UNCHECKED";

/// Prints what was found on a device that the variable checks. Panics if there is an error, or if a part was not
/// checked and that is not accepted, so that a test fails, unless the thread is panicking.
pub(crate) fn deny(device: &Device) {
    let findings = device.take_findings();
    for finding in &findings {
        // A closed standard error is ignored.
        let _ = writeln!(std::io::stderr(), "{finding}");
    }
    let is_error = |finding: &&Finding| finding.severity == Severity::Error;
    let errors = findings.iter().filter(is_error).count();
    if std::thread::panicking() {
        return;
    }
    assert!(errors == 0, "checked mode ({VARIABLE}) found {errors} errors");
    let stats = device.check_stats();
    let is_allowed = std::env::var_os(ALLOW_UNCHECKED).is_some_and(|value| value == "1");
    if stats.is_partial() && !is_allowed {
        let gaps = report::gaps(&stats, "`CheckOptions::memory`").join("; ");
        panic!("checked mode ({VARIABLE}) did not check everything: {gaps} ({ALLOW_UNCHECKED}=1 accepts that)");
    }
}
