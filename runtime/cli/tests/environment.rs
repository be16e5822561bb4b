//! `spelter info --env` lists each variable that a part of Spelter reads when it runs, with its readers.

use std::collections::BTreeSet;
use std::path::Path;

use crate::common::Folder;

/// Names in sources that are no variables of a run: Cargo gives them to the compiler.
const OF_BUILDS: [&str; 4] = ["SPELTER_BUILD", "SPELTER_CARRIED_LIBRARY", "SPELTER_VERIFY", "SPELTER_WGPU_OPT_LEVEL"];

#[test]
fn the_environment_is_listed() {
    let folder = Folder::new("info-env");
    let shown = folder.good("info --env");
    for name in [
        "SPELTER_WORKERS",
        "SPELTER_BACKEND",
        "SPELTER_TIME_LIMIT",
        "SPELTER_SCHEDULE",
        "SPELTER_TRACE",
        "SPELTER_STATS",
    ] {
        assert!(shown.contains(name), "{shown}");
    }
    // Below their readers.
    let own = shown.split("read by exec, check, profile and icd:").nth(1).unwrap().lines().nth(1).unwrap();
    assert!(own.starts_with("SPELTER_ICD_LIBRARY"), "{shown}");
    let listed = folder.json("info --env --json");
    assert!(listed["SPELTER_ADVERTISE_GRAPHICS"]["meaning"].is_string());
    assert!(listed["SPELTER_WORKERS"]["read_by"].as_str().unwrap().contains("bench"));
    assert!(!listed["SPELTER_SCHEDULE"]["read_by"].as_str().unwrap().contains("bench"));
}

/// Adds the names in string literals of the sources in a folder.
fn add_names(folder: &Path, names: &mut BTreeSet<String>) {
    for entry in std::fs::read_dir(folder).expect("a folder of the repository") {
        let path = entry.expect("an entry").path();
        if path.is_dir() {
            add_names(&path, names);
        } else if path.extension().is_some_and(|extension| extension == "rs") {
            let text = std::fs::read_to_string(&path).expect("a source file");
            for part in text.split("\"SPELTER_").skip(1) {
                let name: String = part.chars().take_while(|c| c.is_ascii_uppercase() || *c == '_').collect();
                names.insert(format!("SPELTER_{name}"));
            }
        }
    }
}

#[test]
fn each_variable_of_the_sources_is_listed() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    let mut names = BTreeSet::new();
    for of in
        ["shaders", "driver", "driver/locks", "driver/icd", "driver/wgpu", "runtime", "runtime/cli", "runtime/jobs"]
    {
        add_names(&root.join(of).join("src"), &mut names);
    }
    let listed = Folder::new("info-env-sources").json("info --env --json");
    let missing: Vec<_> =
        names.iter().filter(|name| listed[name.as_str()].is_null() && !OF_BUILDS.contains(&name.as_str())).collect();
    assert!(missing.is_empty(), "`spelter info --env` lacks {missing:?}");
    assert!(OF_BUILDS.iter().all(|name| names.contains(*name)), "{names:?}");
    let read_by = |name: &str| listed[name]["read_by"].as_str().expect("its readers").to_owned();
    assert_eq!(read_by("SPELTER_WGPU"), "the crate spelter-wgpu");
    for name in ["SPELTER_CHECK", "SPELTER_CHECK_ALLOW_UNCHECKED", "SPELTER_SCHEDULE"] {
        assert!(read_by(name).contains("crates spelter and spelter-wgpu"), "{name}: {}", read_by(name));
    }
}
