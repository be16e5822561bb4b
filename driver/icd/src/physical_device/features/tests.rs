//! Comparison of the features and extensions with the page that lists them.

use std::collections::{BTreeMap, BTreeSet};

use super::*;
use crate::physical_device::extensions;

const BEGIN: &str = "<!-- written by BLESS=1 cargo test -p spelter-icd page -->\n";

/// A paragraph of these words, in lines of at most 120 columns.
fn paragraph(words: impl IntoIterator<Item = String>) -> String {
    let (mut text, mut columns) = (String::new(), 0);
    for word in words {
        let is_first = columns == 0;
        columns += usize::from(!is_first) + word.len();
        if columns > 120 {
            text.push('\n');
            columns = word.len();
        } else if !is_first {
            text.push(' ');
        }
        text += &word;
    }
    text + "\n\n"
}

/// Words before a list, which ends with a full stop: no line breaks inside of an item.
fn list(start: &str, items: &[String]) -> String {
    let ends = items.iter().enumerate().map(|(at, item)| item.clone() + if at + 1 == items.len() { "." } else { "," });
    paragraph(start.split(' ').map(str::to_owned).chain(ends))
}

/// The lists of docs/vulkan.md: features by the structure of their version or extension, and extensions.
fn lists() -> String {
    let mut seen = BTreeSet::new();
    let mut parts: BTreeMap<&str, [Vec<&str>; 2]> = BTreeMap::new();
    for (structure, feature, there) in Supported::new(Options::get()).all() {
        let structure = structure.trim_start_matches("vk::").trim_end_matches("<'static>");
        if seen.insert(feature) {
            parts.entry(structure).or_default()[usize::from(!there)].push(feature);
        }
    }
    let mut text = String::from("\n");
    for (structure, [there, not]) in parts {
        text += &format!("### {structure}\n\n");
        for (start, names) in
            [("There:", there), ("Not there:", not)].into_iter().filter(|(_, names)| !names.is_empty())
        {
            text += &list(start, &names.iter().map(|name| format!("`{name}`")).collect::<Vec<_>>());
        }
    }
    text += "## Extensions\n\n";
    for (start, extensions) in [("Of the instance:", extensions::INSTANCE), ("Of the device:", extensions::DEVICE)] {
        text += &list(
            start,
            &extensions.iter().map(|(name, revision, _)| format!("`{name}` {revision}")).collect::<Vec<_>>(),
        );
    }
    text.truncate(text.trim_end().len() + 1);
    text
}

#[test]
fn the_page_lists_all_features_and_extensions() {
    let path = concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/vulkan.md");
    let page = std::fs::read_to_string(path).unwrap();
    let (head, tail) = page.split_once(BEGIN).unwrap();
    if std::env::var_os("BLESS").is_some() {
        std::fs::write(path, format!("{head}{BEGIN}{}", lists())).unwrap();
    } else {
        assert_eq!(tail, lists(), "BLESS=1 rewrites docs/vulkan.md");
    }
}

#[test]
fn compressed_formats_are_claimed_to_dawn_only() {
    let options = Options { graphics: true, ..Options::get().clone() };
    let claimed = |options: &Options, engine| Supported::of(options, engine).core.texture_compression_bc;
    assert_eq!([DAWN, "wgpu-hal", ""].map(|engine| claimed(&options, engine)), [1, 0, 0]);
    assert_eq!(claimed(Options::get(), DAWN), 0, "this process does not claim graphics");
}
