//! The book: each page is in its contents, and each link leads to a file and a heading that exist.

#![expect(clippy::unwrap_used, reason = "the helpers of tests are tests too")]

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Component, Path, PathBuf};

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("..")
}

/// The pages below a folder, by their path from the root of the repository.
fn pages(folder: &str, into: &mut BTreeMap<PathBuf, String>) {
    for entry in std::fs::read_dir(root().join(folder)).unwrap().map(|entry| entry.unwrap().path()) {
        let path = Path::new(folder).join(entry.file_name().unwrap());
        if entry.is_dir() {
            pages(path.to_str().unwrap(), into);
        } else if path.extension().is_some_and(|extension| extension == "md") {
            into.insert(path, std::fs::read_to_string(entry).unwrap());
        }
    }
}

fn all() -> BTreeMap<PathBuf, String> {
    let mut all = BTreeMap::new();
    pages("docs", &mut all);
    for name in ["README.md", "CONTRIBUTING.md"] {
        all.insert(name.into(), std::fs::read_to_string(root().join(name)).unwrap());
    }
    all
}

/// The lines outside of code blocks.
fn prose(text: &str) -> impl Iterator<Item = (usize, &str)> {
    let mut in_code = false;
    text.lines().enumerate().filter(move |(_, line)| {
        let fence = line.trim_start().starts_with("```");
        in_code ^= fence;
        !in_code && !fence
    })
}

/// The anchors of a page: its headings as mdBook and GitHub name them, a repeated one with its number.
fn anchors(text: &str) -> BTreeSet<String> {
    let mut times = BTreeMap::<String, u32>::new();
    let headings = prose(text).filter(|(_, line)| line.starts_with('#')).map(|(_, line)| line.trim_start_matches('#'));
    headings
        .filter(|rest| rest.starts_with(' '))
        .map(|heading| {
            let kept = heading.trim().chars().filter(|c| c.is_alphanumeric() || " -_".contains(*c));
            let slug: String = kept.map(|c| if c == ' ' { '-' } else { c }).collect::<String>().to_lowercase();
            let time = times.entry(slug.clone()).or_default();
            *time += 1;
            if *time == 1 { slug } else { format!("{slug}-{}", *time - 1) }
        })
        .collect()
}

/// The targets of the links in a line; code is left out.
fn links(line: &str) -> Vec<&str> {
    let mut found = Vec::new();
    for (at, part) in line.split('`').enumerate() {
        // Odd parts are code, but a link's text may be code: its target is in the next part then.
        if at % 2 == 0 {
            let targets = part.match_indices("](").filter_map(|(start, _)| part[start + 2..].split(')').next());
            found.extend(targets);
        }
    }
    found
}

/// The path of a link's target from the root of the repository.
fn resolved(page: &Path, target: &str) -> PathBuf {
    let mut path = page.parent().unwrap().to_path_buf();
    for component in Path::new(target).components() {
        match component {
            Component::ParentDir => _ = path.pop(),
            other => path.push(other),
        }
    }
    path
}

#[test]
fn each_link_leads_somewhere() {
    let all = all();
    let (mut broken, mut count) = (Vec::new(), 0);
    for (page, text) in &all {
        for (number, line) in prose(text) {
            for link in links(line).into_iter().filter(|link| !link.contains("://") && !link.starts_with("mailto:")) {
                count += 1;
                let (target, anchor) = link.split_once('#').unwrap_or((link, ""));
                let path = if target.is_empty() { page.clone() } else { resolved(page, target) };
                let there = root().join(&path).exists();
                let found = match all.get(&path) {
                    _ if anchor.is_empty() => there,
                    Some(text) => anchors(text).contains(anchor),
                    None => there,
                };
                if !found {
                    broken.push(format!("{}:{}: {link}", page.display(), number + 1));
                }
            }
        }
    }
    assert!(broken.is_empty(), "links that lead nowhere: {broken:#?}");
    assert!(count > 100, "{count} links are found");
}

/// mdBook builds the pages of the contents only, and copies what lies below `docs`. A link to another place works on
/// the site that hosts the code, and is dead in the book.
#[test]
fn links_of_the_book_stay_in_it() {
    let all = all();
    let mut outside = Vec::new();
    for (page, text) in all.iter().filter(|(page, _)| page.starts_with("docs")) {
        for (number, line) in prose(text) {
            let local = links(line).into_iter().filter(|link| !link.contains("://") && !link.starts_with("mailto:"));
            let away = local.filter(|link| !resolved(page, link.split('#').next().unwrap_or("")).starts_with("docs"));
            outside.extend(away.map(|link| format!("{}:{}: {link}", page.display(), number + 1)));
        }
    }
    assert!(outside.is_empty(), "links that leave the book: {outside:#?}");
}

/// Links in other forms would not be checked by the tests above.
#[test]
fn links_have_one_form() {
    for (page, text) in all() {
        for (number, line) in prose(&text) {
            let place = format!("{}:{}: {line}", page.display(), number + 1);
            let parts: Vec<_> = line.split('`').step_by(2).collect();
            let has = |what: &str| parts.iter().any(|part| part.contains(what));
            assert!(!has("href=") && !has("src=") && !has("]["), "a link that is not [TEXT](TARGET): {place}");
            assert!(!(line.starts_with('[') && line.contains("]: ")), "a definition of a link: {place}");
        }
    }
}

/// The form that mdBook reads: titles of parts, and items with one link, each to another page; those below an item are
/// indented.
#[test]
fn the_contents_are_those_of_a_book() {
    let mut all = all();
    let contents = all.remove(Path::new("docs/SUMMARY.md")).unwrap();
    let (mut listed, mut wrong) = (BTreeSet::new(), Vec::new());
    for (number, line) in contents.lines().enumerate().filter(|(_, line)| !line.is_empty() && !line.starts_with("# ")) {
        let line = line.strip_prefix("  ").unwrap_or(line);
        let item =
            line.strip_prefix("- [").and_then(|rest| rest.strip_suffix(")")).and_then(|rest| rest.split_once("]("));
        let page = item.filter(|(title, _)| !title.is_empty()).map(|(_, target)| Path::new("docs").join(target));
        match page.filter(|page| all.contains_key(page)) {
            Some(page) if listed.insert(page.clone()) => {}
            _ => wrong.push(format!("docs/SUMMARY.md:{}: {line}", number + 1)),
        }
    }
    let missing: Vec<_> = all.keys().filter(|page| page.starts_with("docs") && !listed.contains(*page)).collect();
    assert!(wrong.is_empty(), "not `- [TITLE](PAGE.md)` with a page that no other line has: {wrong:#?}");
    assert!(missing.is_empty(), "not in docs/SUMMARY.md: {missing:?}");
    for page in &listed {
        let titles: Vec<_> = prose(&all[page]).filter(|(_, line)| line.starts_with("# ")).collect();
        assert!(
            matches!(titles[..], [(0, _)]),
            "{}: a page has one title, in its first line: {titles:?}",
            page.display()
        );
    }
}

#[test]
fn anchors_are_those_of_mdbook() {
    let text = "# A title\n```\n# no heading\n```\n## Why `x` is (not) 1\n## Why\n## Why\n#hash";
    assert_eq!(anchors(text).into_iter().collect::<Vec<_>>(), ["a-title", "why", "why-1", "why-x-is-not-1"]);
    assert_eq!(links("[a](b.md#c) and `[x](y)` and [`d`](../e)"), ["b.md#c", "../e"]);
}
