//! The causes of races in kernels that `docs/race-causes.md` explains: each has a kernel with the mistake, the report
//! that the page shows, and the change that repairs it, in each language that can say it.
//!
//! The kernels are in `causes/`, with marks that its README explains. `BLESS=1` writes the section of the page:
//! `BLESS=1 cargo test --workspace --test command_line -- check_causes`.

#![allow(clippy::unwrap_used, reason = "the helpers of tests are tests too")]

mod kernel;
mod page;
mod table;

use std::path::{Path, PathBuf};

use serde_json::Value as Json;

use crate::common::{Folder, has_glsl};
use kernel::Marked;
use table::{CAUSES, Cause, Version};

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..")
}

/// Whether kernels become machine code here: the interpreter runs invocations in another order, so that other ones are
/// named, and a race may be found as a write after a read instead of a read after a write.
#[expect(clippy::print_stderr, reason = "a test that is not run says so")]
fn has_machine_code() -> bool {
    #[cfg(target_arch = "x86_64")]
    let has = is_x86_feature_detected!("avx2");
    #[cfg(not(target_arch = "x86_64"))]
    let has = false;
    if !has {
        eprintln!("NOT RUN: the reports of the page are those of machine code, which needs AVX2");
    }
    has
}

/// The first finding of a rule, of a run that must end with status 66: as an object, and as its text.
fn first_finding(folder: &Folder, line: &str, rule: &str) -> (Json, String) {
    let ended = folder.spelter(line);
    assert_eq!(ended.status, 66, "{line}\n{}{}", ended.stdout, ended.stderr);
    let start = ended.stderr.find(&format!("error[{rule}]")).unwrap_or_else(|| panic!("{line}\n{}", ended.stderr));
    let report = ended.stderr[start..].split("\n\n").next().unwrap().to_owned();
    let object: Json = serde_json::from_str(&folder.spelter(&format!("{line} --json")).stdout).unwrap();
    let mut findings = object["findings"].as_array().into_iter().flatten();
    (findings.find(|finding| finding["id"] == rule).cloned().unwrap_or_default(), report)
}

/// The lines that a finding names, in order.
fn lines(finding: &Json) -> Vec<u64> {
    let mut lines: Vec<u64> =
        ["first", "second"].iter().filter_map(|access| finding[access]["line"].as_u64()).collect();
    lines.sort_unstable();
    lines.dedup();
    lines
}

/// Runs a kernel as it is and repaired; the report of the first.
fn run(folder: &Folder, cause: &Cause, version: &Version, kernel: &Marked) -> String {
    let file = format!("{}.{}", cause.name, version.extension);
    let run = |options: &str, profile: &str| format!("run {file} {options} {profile}");
    folder.write(&file, kernel.with_mistake().as_bytes());
    let (finding, report) = first_finding(folder, &run(cause.options, cause.profile), cause.rule);
    let reasons = finding["conditions"].as_array().unwrap();
    let has_reason = reasons.iter().any(|reason| reason.as_str().unwrap().contains(version.reason));
    assert!(has_reason, "{file}: {}\n{report}", version.reason);
    assert_eq!(lines(&finding), kernel.named_lines(), "{file}\n{report}");
    folder.write(&file, kernel.repaired().as_bytes());
    // Right by the letter of the model, not only by the profile.
    for line in
        version.runs(cause).iter().flat_map(|options| ["--check", "--check=spec"].map(|check| run(options, check)))
    {
        let ended = folder.spelter(&line);
        assert_eq!(ended.status, 0, "{line}\n{}{}", ended.stdout, ended.stderr);
        assert!(ended.stderr.contains("no data race was observed"), "{line}\n{}", ended.stderr);
    }
    report
}

#[test]
fn each_cause_has_its_report_and_its_repair_in_each_language() {
    if !has_machine_code() {
        return;
    }
    let has_glsl = has_glsl();
    let folder = Folder::new("check-causes");
    let mut section = String::new();
    for cause in CAUSES {
        let mut shown = None;
        let mut versions = Vec::new();
        for version in cause.versions.iter().filter(|version| has_glsl || version.extension != "comp") {
            let kernel = Marked::read(cause.name, version.extension);
            let report = run(&folder, cause, version, &kernel);
            shown = shown.or(Some((version, kernel.with_mistake(), report)));
            versions.push((version, kernel));
        }
        section += &page::of_cause(cause, shown.as_ref().unwrap(), &versions);
    }
    // Kernels in GLSL are most of what the page shows.
    if has_glsl {
        page::compare(&section);
    }
}

#[test]
fn each_kernel_is_that_of_a_cause() {
    let wanted =
        CAUSES.iter().flat_map(|cause| cause.versions.iter().map(|v| format!("{}.{}", cause.name, v.extension)));
    let mut wanted: Vec<String> = wanted.chain(["README.md".to_owned()]).collect();
    wanted.sort();
    let entries = std::fs::read_dir(kernel::folder()).unwrap();
    let mut found: Vec<String> = entries.map(|entry| entry.unwrap().file_name().into_string().unwrap()).collect();
    found.sort();
    assert_eq!(found, wanted);
}
