//! The scripts of the Vulkan CTS that use only compute pipelines, through `spelter test`. `not_passing.txt` lists those
//! that do not pass, with verdict and reason.
//!
//! Needs `glslc`, `spirv-as` and a folder of scripts in `SPELTER_AMBER_SCRIPTS`. Where they are absent the test is
//! reported as ignored, with the reason on standard error; where `CI` is set it fails. `BLESS=1` rewrites the list.

#![allow(clippy::unwrap_used, clippy::print_stderr, reason = "a failing test panics, and says what it did not run")]

use std::path::{Path, PathBuf};
use std::process::Command;

use libtest_mimic::{Arguments, Trial};
use serde_json::Value;

/// The variable with the folder of the scripts.
const SCRIPTS: &str = "SPELTER_AMBER_SCRIPTS";

fn main() {
    let arguments = Arguments::from_args();
    let missing = missing();
    if let Some(missing) = missing {
        eprintln!("amber_scripts: NOT RUN: {missing}");
    }
    let ignored = missing.is_some() && std::env::var_os("CI").is_none();
    let run = move || match missing {
        Some(missing) => Err(missing.into()),
        None => {
            every_script_ends_as_listed();
            Ok(())
        }
    };
    let trial = Trial::test("every_script_ends_as_listed", run).with_ignored_flag(ignored);
    libtest_mimic::run(&arguments, vec![trial]).exit();
}

/// The requirements of the test that this machine lacks.
fn missing() -> Option<&'static str> {
    if std::env::var_os(SCRIPTS).is_none() {
        return Some("needs SPELTER_AMBER_SCRIPTS=<folder of .amber files>");
    }
    let absent = |program| Command::new(program).arg("--version").output().is_err();
    [("glslc", "needs glslc"), ("spirv-as", "needs spirv-as")].into_iter().find(|(p, _)| absent(*p)).map(|(_, why)| why)
}

fn every_script_ends_as_listed() {
    let folder = PathBuf::from(std::env::var_os(SCRIPTS).unwrap());
    let output = Command::new(env!("CARGO_BIN_EXE_spelter")).arg("test").arg(&folder).arg("--json").output().unwrap();
    let report: Value = serde_json::from_slice(&output.stdout).unwrap_or_else(|error| {
        panic!("{error}: {}", String::from_utf8_lossy(&output.stderr));
    });
    let scripts = report["scripts"].as_array().unwrap();
    assert!(scripts.len() >= 160, "only {} scripts", scripts.len());
    let found: Vec<String> = scripts.iter().filter_map(|script| line(script, &folder)).collect();
    let list = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/amber_scripts/not_passing.txt");
    if std::env::var_os("BLESS").is_some() {
        std::fs::write(&list, found.iter().map(|line| format!("{line}\n")).collect::<String>()).unwrap();
        return;
    }
    let held = std::fs::read_to_string(&list).unwrap();
    let held: Vec<&str> = held.lines().collect();
    let new: Vec<_> = found.iter().filter(|line| !held.contains(&line.as_str())).collect();
    let gone: Vec<_> = held.iter().filter(|line| !found.iter().any(|other| other == *line)).collect();
    assert!(
        new.is_empty() && gone.is_empty(),
        "{} is not how the scripts end (BLESS=1 rewrites it)\nnow: {new:#?}\nlisted: {gone:#?}",
        list.display()
    );
}

/// The line of the list for a script that does not pass: verdict, path, reason.
fn line(script: &Value, folder: &Path) -> Option<String> {
    let verdict = script["verdict"].as_str().unwrap();
    let path = Path::new(script["script"].as_str().unwrap()).strip_prefix(folder).unwrap();
    let reason = script["reason"].as_str()?.split('\n').map(str::trim).collect::<Vec<_>>().join(" / ");
    // The position of an instruction in a module depends on the version of the compiler.
    let reason = reason.split_once(" (SPIR-V word ").map_or(reason.as_str(), |(before, _)| before);
    Some(format!("{verdict} {}: {reason}", path.display()))
}
