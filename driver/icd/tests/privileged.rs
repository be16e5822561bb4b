//! Programs with more rights than their caller: the driver ignores its environment variables.

#![allow(clippy::unwrap_used, clippy::print_stderr, reason = "a failing test panics, and reports what it did not run")]

mod common;

use std::os::unix::fs::{PermissionsExt, chown};
use std::path::{Path, PathBuf};

const TEST: &str = "a_set_user_id_program_ignores_all_variables";

/// Runs this test in a program, where it creates and destroys a device. Returns standard error, which reports its user
/// IDs.
fn run(program: &Path, trace: &Path) -> String {
    let mut child = common::rerun(program, module_path!(), TEST);
    let output = child.env("SPELTER_TEST_CHILD", "1").env("SPELTER_TRACE", trace).output().unwrap();
    let errors = String::from_utf8_lossy(&output.stderr).into_owned();
    assert!(output.status.success(), "{errors}");
    errors
}

#[test]
fn a_set_user_id_program_ignores_all_variables() {
    if std::env::var_os("SPELTER_TEST_CHILD").is_some() {
        let status = std::fs::read_to_string("/proc/self/status").unwrap();
        let users: Vec<_> = status.lines().filter_map(|line| line.strip_prefix("Uid:")).collect();
        let ids: Vec<_> = users.concat().split_whitespace().map(str::to_owned).collect();
        eprintln!("users differ: {}", ids[0] != ids[1]);
        drop(common::Gpu::new());
        return;
    }
    let folder = PathBuf::from(env!("CARGO_TARGET_TMPDIR")).join(TEST);
    let _ = std::fs::remove_dir_all(&folder);
    std::fs::create_dir_all(&folder).unwrap();
    // Every user can write there.
    std::fs::set_permissions(&folder, std::fs::Permissions::from_mode(0o777)).unwrap();
    let (own, trace) = (std::env::current_exe().unwrap(), folder.join("trace.json"));
    run(&own, &trace);
    assert!(
        std::fs::read_to_string(&trace).unwrap().starts_with('['),
        "a program with its caller's rights writes the timeline"
    );
    std::fs::remove_file(&trace).unwrap();
    let (program, other) = (folder.join("program"), 65534);
    std::fs::copy(&own, &program).unwrap();
    if chown(&program, Some(other), Some(other)).is_err() {
        eprintln!("privileged: NOT RUN: only root can give a program to another user");
        return;
    }
    std::fs::set_permissions(&program, std::fs::Permissions::from_mode(0o4755)).unwrap();
    if run(&program, &trace).contains("users differ: true") {
        assert!(!trace.exists());
    } else {
        eprintln!("privileged: NOT RUN: programs here do not get their owner's rights");
    }
    std::fs::remove_dir_all(&folder).unwrap();
}
