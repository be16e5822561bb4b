//! The folders of shaders/src are layers: each uses only those listed for it, all of which are below it.

use std::collections::{BTreeMap, BTreeSet};

use super::sources;

/// Folder or file of shaders/src → those that it may use, bottom to top.
const LAYERS: [(&str, &[&str]); 21] = [
    ("float_mode", &[]),
    ("free_ranges", &[]),
    ("guest", &[]),
    ("host", &[]),
    ("text", &[]),
    ("work", &[]),
    ("image", &["guest"]),
    ("ssa", &["text"]),
    ("abi", &["guest", "image"]),
    ("schedule", &["abi"]),
    ("ir", &["host", "text", "work", "image", "ssa"]),
    ("analysis", &["image", "ssa", "abi", "ir"]),
    ("check", &["guest", "image", "ir"]),
    ("front", &["host", "image", "abi", "ir", "analysis"]),
    ("lower", &["ir"]),
    ("opt", &["abi", "ssa", "ir", "analysis"]),
    ("simd", &["host", "text", "work", "image", "ssa", "ir", "analysis"]),
    (
        "back",
        &[
            "float_mode",
            "free_ranges",
            "guest",
            "host",
            "work",
            "image",
            "abi",
            "schedule",
            "ir",
            "analysis",
            "check",
            "simd",
        ],
    ),
    ("vectorize", &["image", "abi", "ir", "analysis", "check", "simd"]),
    ("compile", &["float_mode", "ir", "check", "lower", "opt", "simd", "back", "front", "vectorize"]),
    ("explain", &["float_mode", "ir", "back", "compile"]),
];

#[test]
fn layers_of_the_compiler_use_only_those_below() {
    for (at, (layer, used)) in LAYERS.iter().enumerate() {
        let below: Vec<&str> = LAYERS[..at].iter().map(|(name, _)| *name).collect();
        let above: Vec<_> = used.iter().filter(|name| !below.contains(name)).collect();
        assert!(above.is_empty(), "{layer} uses {above:?}, which are not below it");
    }
    let layers: BTreeMap<&str, &[&str]> = LAYERS.into_iter().collect();
    let mut found: BTreeMap<&str, BTreeSet<String>> = layers.keys().map(|&name| (name, BTreeSet::new())).collect();
    let mut wrong = Vec::new();
    for (path, text) in &sources() {
        let Some(below) = path.strip_prefix("shaders/src/").filter(|below| *below != "lib.rs") else { continue };
        let layer = below.split('/').next().unwrap_or_default().trim_end_matches(".rs");
        let Some(used) = found.get_mut(layer) else { panic!("{layer} is not in the table of layers") };
        for name in uses(below, text).into_iter().filter(|name| name != layer && layers.contains_key(name.as_str())) {
            if !layers[layer].contains(&name.as_str()) {
                wrong.push(format!("{path} uses {name}"));
            }
            used.insert(name);
        }
    }
    assert!(wrong.is_empty(), "against the table of layers: {wrong:#?}");
    for (layer, used) in found {
        let gone: Vec<_> = layers[layer].iter().filter(|name| !used.contains(**name)).collect();
        assert!(gone.is_empty(), "{layer} does not use {gone:?} any more: the table can be shorter");
    }
}

/// What follows `crate::` in a file, tests and comments left out: a name, or the first names of a list in braces. As
/// many `super::` as lead from the file, which has this path below `src`, to the root of the crate are `crate::`.
pub(super) fn uses(path: &str, text: &str) -> BTreeSet<String> {
    let module = path.trim_end_matches(".rs").trim_end_matches("/mod");
    let code = text.split("#[cfg(test)]").next().unwrap_or_default();
    let code: String =
        code.lines().map(|line| line.split("//").next().unwrap_or_default()).collect::<Vec<_>>().join(" ");
    let code = code.replace(&"super::".repeat(module.split('/').count()), "crate::");
    let name =
        |text: &str| text.trim_start().split(|c: char| !c.is_alphanumeric() && c != '_').next().map(str::to_owned);
    let mut names = BTreeSet::new();
    for rest in code.split("crate::").skip(1) {
        let Some(list) = rest.strip_prefix('{') else {
            names.extend(name(rest));
            continue;
        };
        let mut depth = 0;
        let mut start = 0;
        for (at, c) in list.char_indices() {
            match c {
                '{' => depth += 1,
                ',' | '}' if depth == 0 => {
                    names.extend(name(&list[start..at]));
                    start = at + 1;
                    if c == '}' {
                        break;
                    }
                }
                '}' => depth -= 1,
                _ => {}
            }
        }
    }
    names.remove("");
    names
}

#[test]
fn the_rule_of_layers_sees_each_form_of_use() {
    let text = "//! crate::front\nuse crate::ir::{Kernel, Op};\nuse crate::{\n    back::x86::{self, Isa}, opt,\n};\n\
        let x = crate::simd::verify(k); #[cfg(test)] mod tests { use crate::compile; }";
    assert_eq!(uses("a.rs", text).into_iter().collect::<Vec<_>>(), ["back", "ir", "opt", "simd"]);
    let text = "use super::ir::Op; use super::super::{opt, simd::Value};";
    let names = |path| uses(path, text).into_iter().collect::<Vec<_>>();
    assert!(names("a.rs").contains(&"ir".to_owned()) && names("a/mod.rs").contains(&"ir".to_owned()));
    assert_eq!(names("a/b.rs"), ["opt", "simd"]);
    assert_eq!(names("a/b/mod.rs"), ["opt", "simd"]);
    assert!(names("a/b/c.rs").is_empty());
}
