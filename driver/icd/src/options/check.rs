//! The variables of checked mode.

use std::ffi::OsString;
use std::path::{Path, PathBuf};

use spelter_driver::check::report::{Filter, RulePattern, Suppression};
use spelter_driver::check::{CheckOptions, MappedAccesses, Profile, Shard};

use super::{Variable, parse_variable};

pub(super) const CHECK: &str = "SPELTER_CHECK";
const JSON: &str = "SPELTER_CHECK_JSON";
const MEMORY: &str = "SPELTER_CHECK_MEMORY";
const SHARD: &str = "SPELTER_CHECK_SHARD";
const HOST: &str = "SPELTER_CHECK_HOST";
const ONLY: &str = "SPELTER_CHECK_ONLY";
const SUPPRESSIONS: &str = "SPELTER_CHECK_SUPPRESSIONS";
const KNOWN: &str = "SPELTER_CHECK_KNOWN";
const EXITCODE: &str = "SPELTER_CHECK_EXITCODE";

/// The exit status of a program with errors, by default: as ThreadSanitizer's.
pub const EXIT_STATUS: u8 = 66;

/// The exit status of a check that found no error and did not check everything.
pub const UNCHECKED_STATUS: u8 = 67;

const fn of(name: &'static str, meaning: &'static str) -> Variable {
    Variable { name, read_by: super::DRIVER, meaning }
}

/// Of variables that are options of `spelter run --check`, too.
const fn of_run(name: &'static str, meaning: &'static str) -> Variable {
    Variable { read_by: "the Vulkan driver; run", ..of(name, meaning) }
}

/// The variables, with their meanings.
pub(super) const VARIABLES: [Variable; 9] = [
    Variable {
        read_by: "the Vulkan driver; the crates spelter and spelter-wgpu; run",
        ..of(
            CHECK,
            "1: find data races, barriers in divergent control flow and missing dependencies, as `spelter check` does; \
             common (as 1), spec or strict: the profile",
        )
    },
    of(JSON, "file to which each finding is appended as a line of JSON"),
    of_run(
        MEMORY,
        "bytes for the shadow of the memory, and again for replays; 2K is 2048, and M and G are 2²⁰ and 2³⁰",
    ),
    of_run(SHARD, "I/N: check only part I of N equal parts of the dispatches"),
    of(
        HOST,
        "trap: report what the program does through mapped pointers, too, by closing pages to it; advise, the default, \
         is a note about what it is likely to read",
    ),
    of_run(ONLY, "rules, separated by commas: report findings of these only, as in RACE-*,BARRIER"),
    of_run(SUPPRESSIONS, "files of suppressions, separated by colons: what their lines match is not reported"),
    of(KNOWN, "file of JSON lines: findings that it has are not printed again"),
    of(EXITCODE, "exit status of a program with errors, 66 by default; 0 keeps the program's"),
];

/// The values of the variables of checked mode.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct CheckSettings {
    /// The profile; `None` if checked mode is off.
    pub profile: Option<Profile>,
    /// The file of JSON lines.
    pub json: Option<PathBuf>,
    /// Bytes for the shadow, and again for replays.
    pub memory: Option<u64>,
    /// The part of the dispatches that is checked.
    pub shard: Option<Shard>,
    /// How accesses through mapped pointers are checked.
    pub host: Option<MappedAccesses>,
    /// What is reported.
    pub filter: Filter,
    /// The file of findings that are not printed again.
    pub known: Option<PathBuf>,
    /// The exit status of a program with errors.
    pub exit_status: Option<u8>,
}

impl CheckSettings {
    /// Reads the variables.
    pub(super) fn read(variable: &impl Fn(&str) -> Option<OsString>, warnings: &mut Vec<String>) -> Self {
        Self {
            profile: parse_variable(variable, CHECK, profile, warnings).flatten(),
            json: variable(JSON).map(PathBuf::from),
            memory: parse_variable(variable, MEMORY, bytes, warnings),
            shard: parse_variable(variable, SHARD, str::parse, warnings),
            host: parse_variable(variable, HOST, str::parse, warnings),
            filter: Filter {
                only: parse_variable(variable, ONLY, RulePattern::list, warnings).unwrap_or_default(),
                suppressions: parse_variable(variable, SUPPRESSIONS, suppressions, warnings).unwrap_or_default(),
            },
            known: variable(KNOWN).map(PathBuf::from),
            exit_status: parse_variable(variable, EXITCODE, status, warnings),
        }
    }

    /// The options of devices, if checked mode is on.
    pub(super) fn options(&self) -> Option<CheckOptions> {
        let default = CheckOptions::default();
        let [memory, replay_memory] = [default.memory, default.replay_memory].map(|bytes| self.memory.unwrap_or(bytes));
        let (shard, host) = (self.shard.unwrap_or(default.shard), self.host.unwrap_or(default.host));
        // What the process reports is merged.
        let default = CheckOptions { count_known: true, ..default };
        self.profile.map(|profile| CheckOptions { profile, memory, replay_memory, shard, host, ..default })
    }
}

fn profile(text: &str) -> Result<Option<Profile>, String> {
    match super::flag(text) {
        Ok(on) => Ok(on.then_some(Profile::Common)),
        Err(_) => text.parse().map(Some).map_err(|_| "neither 1 nor 0, nor a profile: common, spec or strict".into()),
    }
}

/// A number of bytes with which something can be checked: `512M`, `1G`.
fn bytes(text: &str) -> Result<u64, String> {
    let bytes = any_bytes(text)?;
    if bytes < CheckOptions::MIN_MEMORY { Err(too_little()) } else { Ok(bytes) }
}

/// The message about memory with which nothing can be checked.
pub fn too_little() -> String {
    format!("nothing can be checked with less than {}K", CheckOptions::MIN_MEMORY >> 10)
}

/// A number of bytes: `2K`, `512M`, `1G`.
fn any_bytes(text: &str) -> Result<u64, String> {
    let (digits, shift) = match text.as_bytes().last() {
        Some(b'K') => (&text[..text.len() - 1], 10),
        Some(b'M') => (&text[..text.len() - 1], 20),
        Some(b'G') => (&text[..text.len() - 1], 30),
        _ => (text, 0),
    };
    let number: Option<u64> = digits.parse().ok().filter(|&number| number > 0);
    let number = number.and_then(|number| number.checked_mul(1 << shift));
    number.ok_or_else(|| "not a number of bytes; 2K is 2048, and M and G are 2²⁰ and 2³⁰".to_owned())
}

fn suppressions(paths: &str) -> Result<Vec<Suppression>, String> {
    let mut filter = Filter::default();
    for path in paths.split(':').filter(|path| !path.is_empty()) {
        filter.add_file(Path::new(path)).map_err(|problem| format!("{path}: {problem}"))?;
    }
    Ok(filter.suppressions)
}

fn status(text: &str) -> Result<u8, String> {
    text.parse().map_err(|_| "not an exit status from 0 to 255".to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(set: &[(&str, &str)]) -> (CheckSettings, Vec<String>) {
        let mut warnings = Vec::new();
        let variable = |name: &str| set.iter().find(|(key, _)| *key == name).map(|(_, value)| OsString::from(value));
        (CheckSettings::read(&variable, &mut warnings), warnings)
    }

    #[test]
    fn checked_mode_has_profiles() {
        for (value, expected) in [
            ("1", Some(Profile::Common)),
            ("off", None),
            ("spec", Some(Profile::Spec)),
            ("strict", Some(Profile::Strict)),
        ] {
            let (settings, warnings) = read(&[(CHECK, value)]);
            assert_eq!((settings.profile, warnings.len()), (expected, 0), "{value}");
        }
        assert_eq!(read(&[(MEMORY, "4M")]).0.options(), None, "off");
        let (settings, warnings) = read(&[(CHECK, "1"), (MEMORY, "4M"), (SHARD, "2/3"), (ONLY, "RACE-*")]);
        assert_eq!(warnings, [""; 0]);
        let options = settings.options().unwrap();
        assert_eq!((options.memory, options.replay_memory), (4 << 20, 4 << 20));
        assert_eq!(options.shard, Shard { index: 1, of: 3 });
        assert_eq!((settings.filter.only.len(), options.host), (1, MappedAccesses::Advise));
        let trapped = read(&[(CHECK, "1"), (HOST, "trap")]).0.options();
        assert_eq!(trapped.map(|options| options.host), Some(MappedAccesses::Trap));
    }

    #[test]
    fn invalid_values_are_reported() {
        for (name, value, problem) in [
            (CHECK, "yes please", "neither 1 nor 0, nor a profile"),
            (MEMORY, "much", "not a number of bytes"),
            (MEMORY, "319K", "nothing can be checked with less than 320K"),
            (SHARD, "4/3", "there is no part 4 of 3"),
            (HOST, "catch", "`catch` is neither advise nor trap"),
            (ONLY, "RACE-RAW,nonsense", "`nonsense` is not a rule; the rules are SPELTER-RACE-RAW"),
            (SUPPRESSIONS, "/no/such/file", "/no/such/file: No such file"),
            (EXITCODE, "256", "not an exit status"),
        ] {
            let (settings, warnings) = read(&[(name, value)]);
            assert_eq!(settings, CheckSettings::default());
            assert!(warnings[0].starts_with(&format!("{name}={value}: {problem}")), "{warnings:?}");
        }
    }
}
