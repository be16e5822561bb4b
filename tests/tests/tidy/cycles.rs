//! Files and folders of a crate that need each other are listed here. All others of the crate are in layers, as those
//! of the compiler are (`layers.rs`), so that they can be read, tested and moved one after another. A folder counts as
//! a whole: its own files and folders may use each other.

use std::collections::{BTreeMap, BTreeSet};

use super::layers::uses;
use super::sources;

/// Crate → the files and folders of its sources that are on a cycle of imports, or between two cycles.
const CYCLES: [(&str, &[&str]); 6] = [
    // A device has the caches and compilers of its objects, and each object has its device.
    ("driver", &["descriptor", "device", "pipeline", "resource"]),
    // The entry points deliver messages and findings at the end of each call, and these name objects.
    (
        "driver/icd",
        &[
            "buffer",
            "c",
            "command",
            "current_call",
            "debug",
            "descriptor",
            "device",
            "findings",
            "graphics",
            "host_copy",
            "image",
            "instance",
            "labels",
            "loader",
            "memory",
            "message",
            "options",
            "physical_device",
            "pipeline",
            "private_data",
            "profile",
            "query",
            "sampler",
            "sync",
            "table",
            "trace",
        ],
    ),
    // wgpu-hal's traits have associated types, each of which names the others.
    ("driver/wgpu", &["binding", "capabilities", "device", "hal", "open", "options", "pipeline", "recorder"]),
    ("driver/memory-model", &[]),
    // A resource has the state that `replace/` changes, which rebinds the slots of contexts, which hold resources.
    (
        "runtime",
        &[
            "barrier",
            "batch",
            "bind",
            "bindings",
            "buffer",
            "context_state",
            "descriptors",
            "image",
            "program",
            "replace",
            "resource",
            "set",
            "slot_state",
        ],
    ),
    ("runtime/cli", &[]),
];

type Edges = BTreeMap<String, BTreeSet<String>>;

/// What is left when all that uses nothing of the rest, and all that nothing of the rest uses, is taken away.
fn on_cycles(edges: &Edges) -> BTreeSet<&str> {
    let mut rest: BTreeSet<&str> = edges.keys().map(String::as_str).collect();
    loop {
        let is_outer = |name: &&str| {
            let used = &edges[*name];
            let uses_rest = used.iter().any(|other| other != name && rest.contains(other.as_str()));
            let is_used = rest.iter().any(|other| other != name && edges[*other].contains(*name));
            !uses_rest || !is_used
        };
        let outer: Vec<&str> = rest.iter().copied().filter(|name| is_outer(name)).collect();
        if outer.is_empty() {
            return rest;
        }
        outer.iter().for_each(|name| _ = rest.remove(name));
    }
}

/// The files and folders of a crate, each with those that it uses; tests are left out.
fn edges(folder: &str, sources: &[(String, String)]) -> Edges {
    let start = format!("{folder}/src/");
    let mut edges = Edges::new();
    for (path, text) in sources {
        let Some(below) = path.strip_prefix(&start).filter(|below| !["lib.rs", "main.rs"].contains(below)) else {
            continue;
        };
        let used =
            edges.entry(below.split('/').next().unwrap_or_default().trim_end_matches(".rs").to_owned()).or_default();
        if !below.contains("test") {
            used.extend(uses(below, text));
        }
    }
    edges
}

#[test]
fn only_listed_files_and_folders_need_each_other() {
    let sources = sources();
    for (folder, listed) in CYCLES {
        let edges = edges(folder, &sources);
        let found: Vec<_> = on_cycles(&edges).into_iter().collect();
        assert_eq!(found, listed, "{folder}: a new cycle, or one that is cut: then the list can be shorter");
    }
}

#[test]
fn cycles_are_found() {
    let edges = |pairs: &[(&str, &[&str])]| {
        let names = |names: &&[&str]| names.iter().map(|&name| name.to_owned()).collect();
        pairs.iter().map(|(name, used)| ((*name).to_owned(), names(used))).collect::<Edges>()
    };
    let layered = edges(&[("a", &["b", "c"]), ("b", &["c"]), ("c", &["c"])]);
    assert!(on_cycles(&layered).is_empty());
    let circular = edges(&[("a", &["b"]), ("b", &["c"]), ("c", &["b", "d"]), ("d", &[])]);
    assert_eq!(on_cycles(&circular).into_iter().collect::<Vec<_>>(), ["b", "c"]);
}
