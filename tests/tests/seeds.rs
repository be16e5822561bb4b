//! `docs/seeds.md` is true: each file that it names exists, each test that it names is a test, and a rule without tests
//! says why.

#![expect(clippy::unwrap_used, reason = "the helpers of tests are tests too")]

use std::path::{Path, PathBuf};

/// How the reason starts that a rule which is not held to has in place of files.
const REASONS: [&str; 3] = ["By design: ", "Waits for ", "Open: "];

/// What rules may wait for, and the file or folder of the sources with which it begins: once that exists, it has
/// landed, and they have a place and a test, or say by which design they have none. Whatever lands in another place
/// changes this table. The longest of several that fit counts.
const AWAITED: [(&str, &str); 3] = [
    ("the checked mode of the driver with caches", "driver/src/check/caches.rs"),
    ("the checked mode of the driver", "driver/src/check"),
    ("the SIMD form as a language", "runtime/cli/src/run/simd.rs"),
];

/// Why a rule must not wait for this any more.
fn landed(place: &str, exists: impl Fn(&str) -> bool) -> Option<String> {
    let subject = place.strip_prefix("Waits for ")?;
    match AWAITED.iter().find(|(awaited, _)| subject.starts_with(awaited)) {
        None => Some(format!("waits for what is not awaited, or has landed: {subject}")),
        Some((awaited, begins)) => exists(begins).then(|| format!("waits for {awaited}, which has landed: {begins}")),
    }
}

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("..")
}

/// The path of a name in the page: kernels and litmus tests are named without their folders.
fn path_of(name: &str) -> PathBuf {
    let folder = match name.split('/').next() {
        Some("kernels") => "tests",
        Some("litmus") => "driver/memory-model/tests",
        _ => "",
    };
    root().join(folder).join(name)
}

/// The texts between backticks of a text that name files: they contain a slash.
fn names(text: &str) -> impl Iterator<Item = &str> {
    text.split('`').skip(1).step_by(2).filter(|name| name.contains('/'))
}

/// Whether a source has a test of this name: `#[test]` is one of the attributes before the function. Tests of
/// `proptest!` and of loom have the attribute, too.
fn has_test(source: &str, test: &str) -> bool {
    let lines: Vec<_> = source.lines().map(str::trim).collect();
    let is_it = |line: &str| line.strip_prefix("fn ").is_some_and(|rest| rest.starts_with(&format!("{test}(")));
    lines.iter().enumerate().filter(|(_, line)| is_it(line)).any(|(at, _)| {
        let mut before = lines[..at].iter().rev().take_while(|line| line.starts_with("#[") || line.starts_with("//"));
        before.any(|line| line.starts_with("#[test]"))
    })
}

/// Why a name of the page is wrong.
fn wrong(name: &str) -> Option<String> {
    let (file, test) = match name.split_once("::") {
        Some((file, test)) => (file, Some(test)),
        None => (name, None),
    };
    let path = path_of(file);
    let there = if test.is_some() { path.is_file() } else { path.exists() };
    if !there {
        return Some(format!("{file} does not exist"));
    }
    let test = test?;
    (!has_test(&std::fs::read_to_string(path).unwrap(), test)).then(|| format!("{file} has no test {test}"))
}

/// The items of a page's sections, with the items below them, each in one line.
fn items(page: &str) -> Vec<(String, String, Vec<String>)> {
    let mut section = String::new();
    let mut items: Vec<(String, String, Vec<String>)> = Vec::new();
    for line in page.lines() {
        if let Some(title) = line.strip_prefix("## ") {
            section = title.to_owned();
        } else if let Some(rule) = line.strip_prefix("- ") {
            items.push((section.clone(), rule.to_owned(), Vec::new()));
        } else if let (Some(part), Some((_, _, parts))) = (line.strip_prefix("  - "), items.last_mut()) {
            parts.push(part.to_owned());
        } else if let (true, Some((_, rule, parts))) = (line.starts_with("  "), items.last_mut()) {
            *parts.last_mut().unwrap_or(rule) += &format!(" {}", line.trim_start());
        }
    }
    items
}

/// The rules of the page: section, rule, place (or the reason why there is none), tests.
fn rules(page: &str) -> Vec<[String; 4]> {
    let rules = items(page).into_iter().map(|(section, rule, parts)| {
        let (mut place, mut tests) = (String::new(), String::new());
        for part in parts {
            match (part.strip_prefix("where: "), part.strip_prefix("tests: ")) {
                (Some(files), _) => place = files.to_owned(),
                (_, Some(names)) => tests = names.to_owned(),
                _ => place = part,
            }
        }
        [section, rule, place, tests]
    });
    rules.collect()
}

#[test]
fn every_test_and_file_of_the_page_exists() {
    let page = std::fs::read_to_string(root().join("docs/seeds.md")).unwrap();
    let mut faults = Vec::new();
    for [_, rule, place, tests] in rules(&page) {
        faults.extend(names(&place).chain(names(&tests)).filter_map(|name| Some(format!("{rule}: {}", wrong(name)?))));
        let exists = |path: &str| root().join(path).exists();
        faults.extend(landed(&place, exists).map(|fault| format!("{rule}: {fault}")));
        let reason = REASONS.iter().any(|reason| place.starts_with(reason));
        if !reason && (names(&tests).next().is_none() || names(&place).next().is_none()) {
            faults.push(format!("{rule}: neither a reason, nor a place and a test"));
        }
    }
    assert!(faults.is_empty(), "{}", faults.join("\n"));
}

/// One item for each rule that was found in the documents, and the table at the head of the page counts them.
#[test]
fn no_rule_is_lost() {
    let page = std::fs::read_to_string(root().join("docs/seeds.md")).unwrap();
    let found = rules(&page);
    for (title, rules) in [
        ("The Vulkan memory model", 64),
        ("Variable pointers", 39),
        ("Resources and invalidation", 39),
        ("The execution model of vISA", 89),
        ("Memory dependencies and caches", 77),
    ] {
        let places: Vec<_> = found.iter().filter(|rule| rule[0] == title).map(|rule| &rule[2]).collect();
        assert_eq!(places.len(), rules, "{title}");
        let [design, waits, open] =
            REASONS.map(|reason| places.iter().filter(|place| place.starts_with(reason)).count());
        let held = rules - design - waits - open;
        let sum = format!("| {title} | {held} | {design} | {waits} | {open} |");
        assert!(page.lines().any(|line| line == sum), "the first table lacks {sum}");
    }
}

#[test]
fn a_rule_waits_only_for_what_has_not_landed() {
    let (place, all) = ("Waits for the checked mode of the driver, which derives edges", |_: &str| true);
    assert!(landed(place, all).unwrap().contains("which has landed: driver/src/check"));
    assert_eq!(landed(place, |path| path.ends_with("caches.rs")), None, "its caches are another subject");
    assert_eq!(landed("`driver/src/lib.rs`", all), None);
    assert!(landed("Waits for the events of a context: an invalidation returns what it did", |_| false).is_some());
}

#[test]
fn tests_are_found_in_sources() {
    let attribute = "#[test]";
    let source = format!("{attribute}\n/// Says.\n#[should_panic]\nfn found() {{}}\n\nfn helper() {{}}\n");
    assert!(has_test(&source, "found") && !has_test(&source, "helper") && !has_test(&source, "foun"));
    assert_eq!(names("see `a/b.rs::c`, `OpSelect` and `d/e`").collect::<Vec<_>>(), ["a/b.rs::c", "d/e"]);
    assert!(wrong("kernels/pointers/advance.spvasm").is_none() && wrong("litmus/khronos/mp.test").is_none());
    assert!(wrong("kernels/pointers/absent.spvasm").is_some() && wrong("tests/tests/seeds.rs::absent").is_some());
}
