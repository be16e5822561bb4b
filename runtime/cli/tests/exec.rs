//! `spelter exec` and `spelter icd`: what they tell programs and the loader.

#![allow(clippy::unwrap_used, reason = "a failing test panics")]

mod common;

use std::path::Path;
use std::process::Command;

use common::Folder;

#[test]
fn a_program_finds_the_driver_in_its_environment() {
    let folder = Folder::new("exec");
    let shown = folder.good("exec --graphics --workers 3 -- env");
    let value = |name: &str| shown.lines().find_map(|line| line.strip_prefix(&format!("{name}="))).unwrap_or_default();
    assert_eq!(value("VK_DRIVER_FILES"), value("VK_ICD_FILENAMES"));
    assert!(value("VK_DRIVER_FILES").ends_with("spelter_icd.json"), "{shown}");
    assert_eq!((value("SPELTER_ADVERTISE_GRAPHICS"), value("SPELTER_WORKERS")), ("1", "3"));
    assert!(!Path::new(value("VK_DRIVER_FILES")).exists(), "the manifest is left behind");
}

#[test]
fn the_status_is_the_programs() {
    let folder = Folder::new("exec-status");
    assert_eq!(folder.spelter("exec -- false").status, 1);
    assert_eq!(folder.spelter("exec -- true").status, 0);
    let message = folder.error("exec -- there-is-no-such-program");
    assert!(message.starts_with("there-is-no-such-program: "), "{message}");
    assert!(folder.usage("exec").contains("COMMAND"));
}

#[test]
fn the_manifest_names_the_library() {
    let folder = Folder::new("manifest");
    let manifest = folder.json("icd manifest");
    let library = manifest["ICD"]["library_path"].as_str().unwrap();
    assert!(Path::new(library).is_file(), "{library}");
    assert_eq!(manifest["file_format_version"], "1.0.1");
    assert!(manifest["ICD"]["api_version"].as_str().unwrap().starts_with("1.3."));
}

#[test]
fn the_manifest_is_installed_and_taken_away() {
    let folder = Folder::new("install");
    let home = Path::new(env!("CARGO_TARGET_TMPDIR")).join("install");
    let run = |words: &[&str]| {
        let mut command = Command::new(env!("CARGO_BIN_EXE_spelter"));
        let output = command.args(words).env("XDG_DATA_HOME", &home).output().unwrap();
        assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
        String::from_utf8(output.stdout).unwrap()
    };
    let path = run(&["icd", "install", "--user"]);
    assert!(path.trim_end().ends_with("vulkan/icd.d/spelter_icd.json"), "{path}");
    let text = String::from_utf8(folder.read("vulkan/icd.d/spelter_icd.json")).unwrap();
    assert_eq!(text, run(&["icd", "manifest"]));
    run(&["icd", "uninstall"]);
    assert!(!Path::new(path.trim_end()).exists());
}

#[test]
fn the_environment_is_listed() {
    let folder = Folder::new("info-env");
    let shown = folder.good("info --env");
    for name in ["SPELTER_WORKERS", "SPELTER_BACKEND", "SPELTER_TIME_LIMIT", "SPELTER_TRACE", "SPELTER_STATS"] {
        assert!(shown.contains(name), "{shown}");
    }
    assert!(folder.json("info --env --json")["SPELTER_ADVERTISE_GRAPHICS"]["meaning"].is_string());
}
