//! Rules of the house that no compiler knows: files say why they exist, crates use only those below them, `unsafe`
//! stays in its files, and every dependency has a reason.

#![expect(clippy::unwrap_used, reason = "the helpers of tests are tests too")]

mod cycles;
mod layers;
mod names;
mod pages;
mod statics;
mod words;

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};
use std::process::Command;

use serde_json::Value;

/// The only files with `unsafe` code.
const UNSAFE_FILES: &[&str] = &[
    "driver/icd/src/c/exit.rs",
    "driver/icd/src/c/host.rs",
    "driver/icd/src/c/version_1_4.rs",
    "driver/icd/src/exports.rs",
    "runtime/cli/src/library/carried.rs",
    "driver/icd/tests/newer.rs",
    "benches/benches/vulkan/gpu.rs",
    "driver/locks/src/process.rs",
    "driver/locks/src/published.rs",
    "shaders/src/guest.rs",
    "shaders/src/float_mode.rs",
    "shaders/src/back/x86/call.rs",
    // The planes of the shadow, which machine code addresses.
    "shaders/src/check/planes.rs",
    "shaders/src/back/x86/code_memory.rs",
    "shaders/src/back/x86/stack.rs",
    "shaders/src/back/x86/store.rs",
    "shaders/tests/float_mode.rs",
    // wgpu-hal's traits have unsafe methods, all with safe bodies; `device.rs` has the rule of mapped buffers,
    // `open.rs` that of wgpu's doors.
    "driver/wgpu/src/hal/adapter.rs",
    "driver/wgpu/src/hal/device.rs",
    "driver/wgpu/src/hal/encoder.rs",
    "driver/wgpu/src/hal/instance.rs",
    "driver/wgpu/src/hal/queue.rs",
    "driver/wgpu/src/open.rs",
    "driver/wgpu/tests/features.rs",
    // Signal handlers: what they may do is in `host_view.rs`.
    "driver/src/memory/fault.rs",
    "driver/src/memory/host_view.rs",
    "driver/src/resource/import.rs",
    "driver/src/memory/reserve.rs",
    "driver/src/pipeline/stored.rs",
    "driver/src/symbol.rs",
    "driver/icd/src/c/arrays.rs",
    "driver/icd/src/c/callback.rs",
    "driver/icd/src/c/chain.rs",
    "driver/icd/src/c/emergency.rs",
    "driver/icd/tests/exports.rs",
    "driver/icd/tests/fork.rs",
    "driver/icd/tests/host_atomics.rs",
    "driver/icd/tests/host_memory.rs",
    "driver/icd/src/c/dispatchable.rs",
    "driver/icd/src/c/entry.rs",
    "driver/icd/src/c/import.rs",
    "driver/icd/src/c/pointer.rs",
    "driver/icd/src/c/text.rs",
    "driver/icd/src/loader.rs",
    "driver/icd/src/table.rs",
    "driver/icd/tests/caches.rs",
    "driver/icd/tests/chains.rs",
    "driver/icd/tests/checked.rs",
    "driver/icd/tests/common/mod.rs",
    "driver/icd/tests/compute.rs",
    "driver/icd/tests/compute/descriptors.rs",
    "driver/icd/tests/load.rs",
    "driver/icd/tests/loss.rs",
    "driver/icd/tests/misuse.rs",
    "driver/icd/tests/objects.rs",
    "driver/icd/tests/programs/violation.rs",
    "driver/icd/tests/messages.rs",
    "tests/tests/vulkan/gpu.rs",
    "tests/tests/vulkan/print.rs",
    "tests/tests/vulkan/program.rs",
    "tests/tests/vulkan/resources.rs",
    "tests/tests/vulkan/run.rs",
];

/// Crate → the crates of the workspace that it may use (docs/ARCHITECTURE.md). Each crate must be listed.
const EDGES: [(&str, &[&str]); 11] = [
    ("spelter-locks", &[]),
    ("spelter-memory-model", &[]),
    ("spelter-shaders", &["spelter-locks"]),
    ("spelter-driver", &["spelter-locks", "spelter-memory-model", "spelter-shaders"]),
    ("spelter-icd", &["spelter-driver", "spelter-locks"]),
    // Its tests run those of `tests/kernels`.
    ("spelter-wgpu", &["spelter-driver", "spelter-locks", "spelter-shaders", "spelter-tests"]),
    ("spelter", &["spelter-driver", "spelter-locks", "spelter-shaders"]),
    ("spelter-jobs", &[]),
    (
        "spelter-cli",
        &["spelter", "spelter-driver", "spelter-icd", "spelter-jobs", "spelter-memory-model", "spelter-shaders"],
    ),
    (
        "spelter-tests",
        &["spelter", "spelter-driver", "spelter-icd", "spelter-jobs", "spelter-memory-model", "spelter-shaders"],
    ),
    ("spelter-benches", &["spelter", "spelter-driver", "spelter-shaders", "spelter-wgpu"]),
];

fn workspace() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("..")
}

/// Every `.rs` file of the workspace with its path below the root, `/` between the parts.
fn sources() -> Vec<(String, String)> {
    let mut folders = vec![workspace()];
    let mut files = Vec::new();
    while let Some(folder) = folders.pop() {
        for path in std::fs::read_dir(&folder).unwrap().map(|entry| entry.unwrap().path()) {
            let name = path.file_name().unwrap().to_string_lossy().into_owned();
            if path.is_dir() && name != "target" && !name.starts_with('.') {
                folders.push(path);
            } else if name.ends_with(".rs") {
                let below = path.strip_prefix(workspace()).unwrap();
                let below: Vec<_> = below.iter().map(|part| part.to_string_lossy()).collect();
                files.push((below.join("/"), std::fs::read_to_string(&path).unwrap()));
            }
        }
    }
    assert!(files.len() > 20, "only {} sources were found", files.len());
    files
}

/// Every text file that git tracks with its path: sources, documents, kernels, tables, scripts.
fn tracked_texts() -> Vec<(String, String)> {
    let listed = Command::new("git").args(["ls-files", "-z"]).current_dir(workspace()).output().unwrap();
    assert!(listed.status.success(), "{}", String::from_utf8_lossy(&listed.stderr));
    let paths = String::from_utf8(listed.stdout).unwrap();
    let paths = paths.split('\0').filter(|path| !path.is_empty());
    let texts = paths.filter_map(|path| Some((path.to_owned(), std::fs::read_to_string(workspace().join(path)).ok()?)));
    texts.collect()
}

/// Types and functions that a user of the runtime meets; all of its modules are private, so `pub` means public.
#[test]
fn each_public_item_of_the_runtime_has_an_example() {
    let (mut items, mut bare) = (0, Vec::new());
    for (path, text) in sources().into_iter().filter(|(path, _)| path.starts_with("runtime/src/")) {
        let mut has_example = false;
        for line in text.lines().map(str::trim_start) {
            let item = ["pub fn ", "pub const fn ", "pub struct ", "pub enum ", "pub trait "]
                .iter()
                .find_map(|start| line.strip_prefix(start));
            if let Some(item) = item {
                items += 1;
                if !has_example {
                    bare.push(format!("{path}: {item}"));
                }
            }
            has_example = (line.starts_with("///") || line.starts_with("#[")) && (has_example || line.contains("```"));
        }
    }
    assert!(items > 100, "only {items} public items were found");
    assert!(bare.is_empty(), "without an example: {bare:#?}");
}

/// Crates list their test programs themselves, so that all tests of a crate are one program. A file that neither the
/// list nor the program names would never run.
#[test]
fn every_file_of_tests_runs() {
    let mut missing = Vec::new();
    for (manifest, text) in tracked_texts().into_iter().filter(|(path, _)| path.ends_with("Cargo.toml")) {
        let folder = workspace().join(&manifest).with_file_name("tests");
        let Ok(program) = std::fs::read_to_string(folder.join("main.rs")) else { continue };
        assert!(text.contains("autotests = false"), "{manifest}: each file would be a program, too");
        for path in std::fs::read_dir(&folder).unwrap().map(|entry| entry.unwrap().path()) {
            let name = path.file_stem().unwrap().to_str().unwrap();
            let is_file = path.extension().is_some_and(|extension| extension == "rs") && name != "main";
            // Programs of their own may have a folder of helpers in common.
            let is_module = path.join("mod.rs").exists() && !["common", "files"].contains(&name);
            let is_listed = text.contains(&format!("\nname = \"{name}\"\n"));
            if (is_file || is_module) && !program.contains(&format!("mod {name};")) && !is_listed {
                missing.push(path.display().to_string());
            }
        }
    }
    assert!(missing.is_empty(), "these tests never run: {missing:#?}");
}

#[test]
fn files_open_with_their_reason() {
    let bare: Vec<_> =
        sources().into_iter().filter(|(_, text)| !text.starts_with("//! ")).map(|(path, _)| path).collect();
    assert!(bare.is_empty(), "files that do not open with `//!`: {bare:#?}");
}

/// Rustfmt holds code to its `max_width`; it leaves comments as they are.
const MAX_COLUMNS: usize = 120;

/// Whether a line is a comment with too many characters.
fn is_long_comment(line: &str) -> bool {
    line.trim_start().starts_with("//") && line.chars().count() > MAX_COLUMNS
}

#[test]
fn comment_lines_are_short() {
    let mut long = Vec::new();
    for (path, text) in sources() {
        let lines = text.lines().enumerate().filter(|(_, line)| is_long_comment(line));
        long.extend(lines.map(|(at, line)| format!("{path}:{}: {}", at + 1, line.chars().count())));
    }
    assert!(long.is_empty(), "comment lines with more than {MAX_COLUMNS} columns: {long:#?}");
}

#[test]
fn lines_of_scripts_and_manifests_are_short() {
    let mut long = Vec::new();
    for (path, text) in tracked_texts().into_iter().filter(|(path, _)| path.ends_with(".sh") || path.ends_with(".toml"))
    {
        let lines = text.lines().enumerate().map(|(at, line)| (at + 1, line.chars().count()));
        let lines = lines.filter(|&(_, columns)| columns > MAX_COLUMNS);
        long.extend(lines.map(|(number, columns)| format!("{path}:{number}: {columns}")));
    }
    assert!(long.is_empty(), "lines of scripts and manifests with more than {MAX_COLUMNS} columns: {long:#?}");
}

#[test]
fn the_rule_of_columns_counts_characters_of_comments() {
    assert!(!is_long_comment(&format!("    /// {}", "é".repeat(112))));
    assert!(is_long_comment(&format!("    /// {}", "é".repeat(113))));
    assert!(is_long_comment(&format!("//! {}", "x".repeat(117))) && is_long_comment(&"/".repeat(121)));
    assert!(!is_long_comment(&format!("let x = 1; // {}", "x".repeat(120))));
}

#[test]
fn unsafe_stays_in_its_files() {
    let guilty: Vec<_> = sources()
        .into_iter()
        .filter(|(path, text)| !UNSAFE_FILES.contains(&path.as_str()) && uses_unsafe(text))
        .map(|(path, _)| path)
        .collect();
    assert!(guilty.is_empty(), "`unsafe` outside of {UNSAFE_FILES:?}: {guilty:#?}");
}

#[test]
fn the_list_of_unsafe_files_is_current() {
    let sources: BTreeMap<_, _> = sources().into_iter().collect();
    let stale: Vec<_> =
        UNSAFE_FILES.iter().filter(|&&path| !sources.get(path).is_some_and(|text| uses_unsafe(text))).collect();
    assert!(stale.is_empty(), "listed, but without `unsafe`: {stale:#?}");
}

#[test]
fn the_architecture_page_names_all_unsafe_files() {
    let page = std::fs::read_to_string(workspace().join("docs/ARCHITECTURE.md")).unwrap();
    let rest = page.split("- **Unsafe code**").nth(1).expect("the page has an item about unsafe code");
    let item = rest.split("\n- **").next().unwrap_or_default();
    let names: BTreeSet<_> = item.split('`').skip(1).step_by(2).collect();
    let is_product =
        |path: &str| !path.starts_with("tests/") && !path.starts_with("benches/") && !path.contains("/tests/");
    let named = |path: &str| names.iter().any(|name| *name == path || (name.ends_with('/') && path.starts_with(name)));
    let missing: Vec<_> = UNSAFE_FILES.iter().filter(|path| is_product(path) && !named(path)).collect();
    assert!(missing.is_empty(), "not in the item about unsafe code: {missing:#?}");
    let more = names.iter().filter(|name| name.contains('/') && **name != "tests/tests/tidy.rs");
    let unknown: Vec<_> =
        more.filter(|name| !UNSAFE_FILES.iter().any(|path| path == *name || path.starts_with(*name))).collect();
    assert!(unknown.is_empty(), "named there, but not in UNSAFE_FILES: {unknown:#?}");
}

/// Whether the keyword is followed by what it can govern, outside of comments and of strings that are whole on a line.
fn uses_unsafe(text: &str) -> bool {
    text.lines().any(|line| {
        let code: String = line.split('"').step_by(2).collect();
        let code = code.split("//").next().unwrap_or_default();
        let words: Vec<_> = code.split(|c: char| !c.is_alphanumeric() && c != '_').collect();
        words.contains(&"unsafe")
    })
}

#[test]
fn the_unsafe_rule_sees_code_only() {
    assert!(uses_unsafe("let x = unsafe { f() };") && uses_unsafe("unsafe impl Send for X {}"));
    assert!(!uses_unsafe("/// unsafe") && !uses_unsafe("call(unsafe_code, unsafe_op);"));
    assert!(!uses_unsafe(&format!("let text = {0}unsafe{0};", '"')));
}

/// `cargo metadata` of the workspace, dependencies' own graphs left out.
fn packages() -> Vec<Value> {
    let output = cargo(&["metadata", "--no-deps", "--format-version", "1", "--offline"]);
    let metadata: Value = serde_json::from_slice(&output).unwrap();
    metadata["packages"].as_array().unwrap().clone()
}

/// What Cargo prints about the workspace.
fn cargo(arguments: &[&str]) -> Vec<u8> {
    let cargo = std::env::var_os("CARGO").unwrap_or("cargo".into());
    let output = Command::new(cargo).args(arguments).current_dir(workspace()).output().unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    output.stdout
}

/// Package → names of its dependencies of all kinds; `path` tells the workspace's own from others.
fn dependencies(own: bool) -> BTreeMap<String, BTreeSet<String>> {
    let of = |package: &Value| {
        let list = package["dependencies"].as_array().unwrap().clone();
        let wanted = list.into_iter().filter(|dependency| dependency["path"].is_null() != own);
        wanted.map(|dependency| dependency["name"].as_str().unwrap().to_owned()).collect()
    };
    packages().iter().map(|package| (package["name"].as_str().unwrap().to_owned(), of(package))).collect()
}

#[test]
fn crates_use_only_those_below() {
    let allowed: BTreeMap<_, _> = EDGES.into_iter().collect();
    for (package, used) in dependencies(true) {
        let may = allowed.get(package.as_str()).unwrap_or_else(|| panic!("{package} is not in the table of crates"));
        let wrong: Vec<_> = used.iter().filter(|name| !may.contains(&name.as_str())).collect();
        assert!(wrong.is_empty(), "{package} must not use {wrong:?}");
    }
}

#[test]
fn every_dependency_has_a_reason() {
    let document = std::fs::read_to_string(workspace().join("docs/dependencies.md")).unwrap();
    let named: BTreeSet<_> = document.lines().filter_map(|line| line.strip_prefix("- `")?.split('`').next()).collect();
    let used: BTreeSet<_> = dependencies(false).into_values().flatten().collect();
    let missing: Vec<_> = used.iter().filter(|name| !named.contains(name.as_str())).collect();
    assert!(missing.is_empty(), "without a line in docs/dependencies.md: {missing:?}");
    let unused: Vec<_> = named.iter().filter(|name| !used.contains(**name)).collect();
    assert!(unused.is_empty(), "in docs/dependencies.md, but no crate uses them: {unused:?}");
}

/// In a program that has `serde_json`, `bytes.len() == size as _` is ambiguous: its values compare with a `usize`, too.
#[test]
fn programs_get_serde_json_only_with_the_feature_json() {
    for package in ["spelter", "spelter-driver", "spelter-wgpu"] {
        let of = ["tree", "--offline", "-p", package, "-e", "normal", "--prefix", "none", "--no-default-features"];
        let tree = String::from_utf8(cargo(&of)).unwrap();
        assert!(tree.starts_with(package) && !tree.contains("serde_json"), "{tree}");
    }
}
