//! `SPELTER_CHECK`: checked mode for all contexts of a process, as in `SPELTER_CHECK=1 cargo test`.

use std::io::Write as _;

use spelter_driver::check::{CheckOptions, Finding, Profile, Severity};
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

/// Prints what was found on a device that the variable checks. Panics if there is an error, so that a test fails,
/// unless the thread is panicking.
pub(crate) fn report(device: &Device) {
    let findings = device.take_findings();
    for finding in &findings {
        // A closed standard error is ignored.
        let _ = writeln!(std::io::stderr(), "{finding}");
    }
    let is_error = |finding: &&Finding| finding.severity == Severity::Error;
    let errors = findings.iter().filter(is_error).count();
    if errors > 0 && !std::thread::panicking() {
        panic!("checked mode ({VARIABLE}) found {errors} errors");
    }
}
