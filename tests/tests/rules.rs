//! The ids of Vulkan's rules that the sources cite exist: each is in `rules.txt`, whose ids come from the registry.
//!
//! `SPELTER_VALIDUSAGE=FILE BLESS=1` rewrites the list from `validusage.json`, which comes with Vulkan's registry
//! (1.4.309 was used, and for `VUID-StandaloneSpirv-MemorySemantics-10865` and `-10866` the text of 1.4.360); it fails
//! for a cited id that is not in the registry.

#![expect(clippy::unwrap_used, reason = "the helpers of tests are tests too")]

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

/// Sources of the product, without tests.
const SOURCES: [&str; 7] = [
    "driver/src",
    "driver/icd/src",
    "driver/memory-model/src",
    "driver/wgpu/src",
    "runtime/src",
    "runtime/cli/src",
    "shaders/src",
];

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("..")
}

fn texts(folder: &Path, all: &mut Vec<String>) {
    for entry in std::fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() {
            texts(&path, all);
        } else if path.extension().is_some_and(|extension| extension == "rs") {
            let text = std::fs::read_to_string(&path).unwrap();
            // Unit tests use invented ids.
            all.push(text.split("#[cfg(test)]").next().unwrap_or_default().to_owned());
        }
    }
}

fn is_part(c: char) -> bool {
    c.is_ascii_alphanumeric() || c == '-' || c == '_'
}

/// The ids in a text: complete ones; those that end in `-` and get a number elsewhere (the beginning of a rule's id);
/// and those of handles, which are composed from the place (`"vkCmdDispatchIndirect-buffer"`).
fn cited(text: &str, ids: &mut BTreeSet<String>) {
    for (at, _) in text.match_indices("VUID-") {
        let id: String = text[at..].chars().take_while(|&c| is_part(c)).collect();
        // An id that continues in braces is composed from parts, which are handled below.
        let whole = !text[at + id.len()..].starts_with('{');
        if whole && id.len() > 5 {
            ids.insert(id);
        }
    }
    for literal in text.split('"').skip(1).step_by(2) {
        let is_place = (literal.starts_with("vk") || literal.starts_with("Vk")) && literal.contains('-');
        if is_place && literal.chars().all(is_part) {
            let numbered = literal.ends_with(|c: char| c.is_ascii_digit());
            ids.insert(if numbered { format!("VUID-{literal}") } else { format!("VUID-{literal}-parameter") });
        }
    }
}

/// Whether the rest of the id is elsewhere: a complete id ends in a number of five digits, or in a word of the
/// registry.
fn is_beginning(id: &str) -> bool {
    let end = id.rsplit('-').next().unwrap_or_default();
    let words = ["parameter", "parent", "commonparent", "recording", "arraylength", "requiredbitmask", "queuetype"];
    !(words.contains(&end) || end.len() == 5 && end.bytes().all(|byte| byte.is_ascii_digit()))
}

#[test]
fn cited_rules_are_vulkans() {
    let (mut all, mut ids) = (Vec::new(), BTreeSet::new());
    SOURCES.iter().for_each(|folder| texts(&root().join(folder), &mut all));
    all.iter().for_each(|text| cited(text, &mut ids));
    let list = root().join("tests/tests/rules.txt");
    if std::env::var_os("BLESS").is_some() {
        let registry = std::env::var_os("SPELTER_VALIDUSAGE").expect("SPELTER_VALIDUSAGE names validusage.json");
        let registry = std::fs::read_to_string(registry).unwrap();
        let known = |id: &&String| {
            let whole = if is_beginning(id) { format!("\"{id}") } else { format!("\"{id}\"") };
            registry.contains(&whole)
        };
        let text: String = ids.iter().filter(known).map(|id| format!("{id}\n")).collect();
        std::fs::write(&list, text).unwrap();
    }
    let listed = std::fs::read_to_string(&list).unwrap();
    let listed: BTreeSet<String> = listed.lines().map(str::to_owned).collect();
    let unknown: Vec<_> = ids.difference(&listed).collect();
    assert!(unknown.is_empty(), "not in Vulkan's registry, or not looked up yet (see this file's head): {unknown:#?}");
    assert!(ids.len() > 400, "{} ids are found", ids.len());
}

#[test]
fn ids_are_found_in_sources() {
    let mut ids = BTreeSet::new();
    let text =
        r#"require(x, "VUID-VkFoo-bar-00001", || "no"); get(h, "vkFoo-bar"); get(h, "vkFoo-bars-00002"); "vkFoo""#;
    cited(text, &mut ids);
    assert_eq!(
        ids.into_iter().collect::<Vec<_>>(),
        ["VUID-VkFoo-bar-00001", "VUID-vkFoo-bar-parameter", "VUID-vkFoo-bars-00002"]
    );
}
