//! The features and limits of the documentation are those of the adapter. `BLESS=1` writes them.

#![allow(clippy::unwrap_used, reason = "tests and their helpers")]

use std::fmt::Write as _;
use std::path::Path;

/// The part of the page between these two lines.
const BEGIN: &str = "<!-- features and limits: written by BLESS=1 -->\n";
const END: &str = "<!-- end of features and limits -->\n";

/// The widest line of the page.
const WIDTH: usize = 120;

/// Names and values of limits, in their order.
fn values(limits: &wgpu::Limits) -> Vec<(String, String)> {
    let text = format!("{limits:#?}");
    let fields = text.lines().filter_map(|line| line.trim().trim_end_matches(',').split_once(": "));
    fields.map(|(name, value)| (name.to_owned(), value.to_owned())).collect()
}

fn part() -> String {
    let adapter = spelter_wgpu::adapter_on(&spelter_wgpu::instance());
    let mut text = String::from("Features, each used by a test:\n");
    let mut line = String::new();
    let names: Vec<_> = adapter.features().iter_names().map(|(name, _)| format!("`{name}`")).collect();
    for (at, name) in names.iter().enumerate() {
        let end = if at + 1 == names.len() { "." } else { "," };
        if line.len() + name.len() + 2 > WIDTH {
            writeln!(text, "{line}").unwrap();
            line.clear();
        }
        write!(line, "{}{name}{end}", if line.is_empty() { "" } else { " " }).unwrap();
    }
    writeln!(text, "{line}\n").unwrap();
    writeln!(text, "Limits that are not WebGPU's defaults:\n\n| limit | here | default |\n|---|---|---|").unwrap();
    for ((name, value), (_, default)) in values(&adapter.limits()).into_iter().zip(values(&wgpu::Limits::defaults())) {
        if value != default {
            writeln!(text, "| `{name}` | {value} | {default} |").unwrap();
        }
    }
    text + "\n"
}

#[test]
fn the_page_has_the_features_and_limits() {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/wgpu-details.md");
    let page = std::fs::read_to_string(&path).unwrap();
    let (before, rest) = page.split_once(BEGIN).unwrap();
    let (written, after) = rest.split_once(END).unwrap();
    let part = format!("\n{}", part());
    if written != part && std::env::var_os("BLESS").is_some() {
        return std::fs::write(&path, format!("{before}{BEGIN}{part}{END}{after}")).unwrap();
    }
    assert_eq!(written, part, "BLESS=1 writes the features and limits of the adapter to docs/wgpu-details.md");
}
