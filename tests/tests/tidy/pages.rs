//! Pages name files that exist, and their lines fit a window: which no compiler sees when files move and sentences
//! grow.

use std::collections::BTreeSet;

use super::{MAX_COLUMNS, tracked_texts};

/// Pages that are not held to the rules: history names what has gone, and licences are quoted.
const EXEMPT: [&str; 2] = ["CHANGELOG.md", "driver/memory-model/tests/litmus/khronos/COPYING.md"];

/// The end of a name between backticks that makes it a file of this repository.
const ENDS: [&str; 8] = [".rs", ".md", ".txt", ".toml", ".sh", ".json", ".py", "/"];

/// The pages of the repository: path and text.
fn pages() -> Vec<(String, String)> {
    let is_page = |path: &str| path.ends_with(".md") && !EXEMPT.contains(&path);
    let pages: Vec<_> = tracked_texts().into_iter().filter(|(path, _)| is_page(path)).collect();
    assert!(pages.len() > 40, "only {} pages were found", pages.len());
    pages
}

/// The lines of a page outside of fenced code, numbered from 1.
fn lines(text: &str) -> impl Iterator<Item = (usize, &str)> {
    let mut is_code = false;
    let lines = text.lines().enumerate().map(|(at, line)| (at + 1, line));
    lines.filter(move |(_, line)| {
        let is_fence = line.trim_start().starts_with("```");
        is_code ^= is_fence;
        !is_code && !is_fence
    })
}

/// The lines of a page with too many columns. What programs print is as wide as they print it, and a table of figures
/// (a column is aligned right) may be wide: it is read down its columns. What has sentences in its cells is a list.
fn long_lines(text: &str) -> Vec<(usize, usize)> {
    let mut is_figures = false;
    let mut lines = lines(text).peekable();
    let mut long = Vec::new();
    while let Some((number, line)) = lines.next() {
        let is_row = line.starts_with('|');
        // The second row of a table says how its columns are aligned.
        is_figures = is_row
            && (is_figures || is_aligned_right(line) || lines.peek().is_some_and(|(_, next)| is_aligned_right(next)));
        let columns = line.chars().count();
        if columns > MAX_COLUMNS && !is_figures {
            long.push((number, columns));
        }
    }
    long
}

/// Whether this is the row below the head of a table of which a column is aligned right.
fn is_aligned_right(line: &str) -> bool {
    line.contains("-:") && line.chars().all(|c| "|-: ".contains(c))
}

/// The names of files and folders between backticks of a line, without the item after `::`. Patterns, placeholders and
/// paths outside of the repository are none.
fn files(line: &str) -> impl Iterator<Item = &str> {
    let names = line.split('`').skip(1).step_by(2).map(|name| name.split("::").next().unwrap_or_default());
    names.map(|name| name.trim_start_matches("../")).filter(|name| {
        let is_plain = name.chars().all(|c| c.is_alphanumeric() || "_-./".contains(c));
        is_plain && !name.starts_with(['.', '/', '-']) && ENDS.iter().any(|end| name.ends_with(end))
    })
}

/// Every end of a path and of its folders, from a `/` on: pages leave out folders that their text names.
fn ends(paths: impl Iterator<Item = String>) -> BTreeSet<String> {
    let mut ends = BTreeSet::new();
    for path in paths {
        let parts: Vec<_> = path.split('/').collect();
        for end in 1..=parts.len() {
            ends.extend((0..end).map(|start| parts[start..end].join("/")));
        }
    }
    ends
}

#[test]
fn files_that_pages_name_exist() {
    let known = ends(tracked_texts().into_iter().map(|(path, _)| path));
    let mut missing = Vec::new();
    for (path, text) in pages() {
        for (number, line) in lines(&text) {
            let gone = files(line).filter(|name| !known.contains(name.trim_end_matches('/')));
            missing.extend(gone.map(|name| format!("{path}:{number}: {name}")));
        }
    }
    assert!(missing.is_empty(), "pages name files that do not exist: {missing:#?}");
}

#[test]
fn lines_of_pages_are_short() {
    let mut long = Vec::new();
    for (path, text) in pages() {
        long.extend(long_lines(&text).into_iter().map(|(number, columns)| format!("{path}:{number}: {columns}")));
    }
    assert!(long.is_empty(), "lines of pages with more than {MAX_COLUMNS} columns: {long:#?}");
}

#[test]
fn the_rule_of_columns_spares_code_and_tables_of_figures() {
    let wide = "x".repeat(MAX_COLUMNS + 1);
    let long = |text: String| long_lines(&text).into_iter().map(|(number, _)| number).collect::<Vec<_>>();
    assert_eq!(long(format!("{wide}\n- {wide}\n{}", "é".repeat(MAX_COLUMNS))), [1, 2]);
    assert!(long(format!("```\n{wide}\n```\n")).is_empty());
    assert_eq!(long(format!("| a | b |\n|---|---|\n| {wide} | |")), [3]);
    assert_eq!(long(format!("| {wide} | b |\n|---|--:|\n| {wide} | 1 |\n\n| a | {wide} |\n|---|---|")), [5]);
}

#[test]
fn the_rule_of_names_sees_files_and_folders_only() {
    let line =
        "`a/b.rs::test`, `c/`, `../d.md`, `a.rs`; not `.rs`, `/etc/x.txt`, `a/*.rs`, `FILE=a.txt`, `x.y` or e.rs";
    assert_eq!(files(line).collect::<Vec<_>>(), ["a/b.rs", "c/", "d.md", "a.rs"]);
    let known = ends(["a/b/c.rs".to_owned()].into_iter());
    assert!(["a", "b", "a/b", "b/c.rs", "c.rs"].iter().all(|end| known.contains(*end)) && !known.contains("a/c.rs"));
    assert_eq!(lines("a\n```\nb\n```\nc").collect::<Vec<_>>(), [(1, "a"), (5, "c")]);
}
