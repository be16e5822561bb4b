//! A name that means several things in one crate means one: each type has a name that no other file of its crate
//! defines, so that a reader knows from the name alone what is meant.

use std::collections::{BTreeMap, BTreeSet};

use super::sources;

/// A crate, folders and files of its `src`, names that several files there may define, and why.
type Exception = (&'static str, &'static [&'static str], &'static [&'static str], &'static str);

const EXCEPTIONS: [Exception; 7] = [
    (
        "shaders",
        &["ir/", "simd/", "ssa/"],
        &[
            "BlockCall",
            "BlockData",
            "Builder",
            "InstData",
            "Kernel",
            "Operands",
            "Parser",
            "Type",
            "ValueDef",
            "VerifyError",
        ],
        "the same part of each intermediate representation, and the generic one of both",
    ),
    (
        "shaders",
        &["analysis/mod.rs", "ssa/"],
        &["Dominators", "Predecessors"],
        "a generic type, and the alias of its instance for the scalar representation",
    ),
    (
        "shaders",
        &["back/x86/select/avx2/", "back/x86/select/avx512/"],
        &["Gather", "GatherElements", "LoadRow", "MaskedRow", "Scatter", "Source", "StoreRow", "UniformStore"],
        "the same selection for two instruction sets",
    ),
    (
        "shaders",
        &["back/x86/select/mod.rs", "ir/", "simd/", "ssa/", "text/"],
        &["Result"],
        "aliases of `Result` with the error of each file",
    ),
    (
        "runtime",
        &["serial.rs", "submission.rs"],
        &["Clock", "MustPrecede", "TimelinePoint"],
        "a generic type, of which loom has other instances, and the alias of the one for real submissions",
    ),
    (
        "runtime",
        &["batch/mod.rs", "replace/backing.rs"],
        &["Refusal"],
        "a generic type, of which loom has other instances, and the alias of the one for real submissions",
    ),
    (
        "runtime",
        &["memory/"],
        &["SparePool", "Spares"],
        "a generic type, of which loom has other instances, and the alias of the one for real storages",
    ),
];

/// Whether a line is an attribute of what only tests have.
fn is_for_tests(line: &str) -> bool {
    line.starts_with("#[cfg(test)]") || line.starts_with("#[cfg(all(test,")
}

/// The names of the types that a text defines at item level, up to its module of tests.
fn types(text: &str) -> BTreeSet<&str> {
    let mut names = BTreeSet::new();
    let mut of_tests = false;
    for line in text.lines() {
        if of_tests && line.starts_with("mod ") && line.ends_with('{') {
            break;
        }
        of_tests = is_for_tests(line) || of_tests && line.starts_with("#[");
        names.extend(defined(line));
    }
    names
}

/// The name of the type whose definition a line begins. Items of the file are not indented; those of a module in it,
/// and of an invocation of a macro, are `pub`, as associated types and the types of a function are not.
fn defined(line: &str) -> Option<&str> {
    let item = line.trim_start();
    let public = match item.strip_prefix("pub(") {
        Some(rest) => rest.split_once(") ").map(|(_, item)| item),
        None => item.strip_prefix("pub "),
    };
    if public.is_none() && line.starts_with(' ') {
        return None;
    }
    let item = public.unwrap_or(item);
    let item = item.strip_prefix("unsafe ").unwrap_or(item);
    let name = ["struct ", "enum ", "union ", "trait ", "type "].iter().find_map(|start| item.strip_prefix(start))?;
    let name = name.split(|c: char| !c.is_alphanumeric() && c != '_').next()?;
    name.starts_with(|c: char| c.is_uppercase()).then_some(name)
}

/// Crate → name → the files below its `src` that define it. Files for tests and for loom are not there, nor is the
/// crate of test tools, since each of its binaries is a program of its own.
fn definitions(sources: &[(String, String)]) -> BTreeMap<&str, BTreeMap<&str, BTreeSet<&str>>> {
    let mut crates = BTreeMap::<_, BTreeMap<_, BTreeSet<_>>>::new();
    for (path, text) in sources {
        let Some((folder, below)) = path.split_once("/src/") else { continue };
        let is_of_tests = below.split('/').any(|part| part.contains("tests") || part.starts_with("loom"));
        if folder == "tests" || is_of_tests {
            continue;
        }
        for name in types(text) {
            crates.entry(folder).or_default().entry(name).or_default().insert(below);
        }
    }
    crates
}

/// What breaks the rule: a name that several files of a crate define, or an exception that is not needed.
fn problems(sources: &[(String, String)], exceptions: &[Exception]) -> Vec<String> {
    let definitions = definitions(sources);
    let is_in = |folders: &[&str], file: &str| folders.iter().any(|folder| file.starts_with(folder));
    let mut problems = Vec::new();
    for (folder, names) in &definitions {
        for (name, files) in names.iter().filter(|(_, files)| files.len() > 1) {
            let is_excepted = exceptions.iter().any(|(of, folders, names, _)| {
                of == folder && names.contains(name) && files.iter().all(|file| is_in(folders, file))
            });
            if !is_excepted {
                let files: Vec<_> = files.iter().map(|file| format!("{folder}/src/{file}")).collect();
                problems.push(format!("`{name}` is defined in {}", files.join(", ")));
            }
        }
    }
    for (folder, folders, names, reason) in exceptions {
        for name in *names {
            let files = definitions.get(folder).and_then(|of_crate| of_crate.get(name));
            let count = files.map_or(0, |files| files.iter().filter(|file| is_in(folders, file)).count());
            if count < 2 {
                problems.push(format!("no exception is needed for `{name}` of {folder} ({reason})"));
            }
        }
    }
    problems
}

#[test]
fn each_type_of_a_crate_has_its_own_name() {
    let problems = problems(&sources(), &EXCEPTIONS);
    assert!(
        problems.is_empty(),
        "a name means one thing in a crate: give the less known type another name, or say in EXCEPTIONS why both are \
         the same thing: {problems:#?}"
    );
}

#[test]
fn the_rule_of_names_sees_each_form() {
    let text = "pub struct A;\nenum B {\n    type C = u8;\n}\nimpl D {\n    type E = u8;\n}\n\
        pub(crate) type F<T> = T;\npub(in super::super) struct G;\nunsafe trait H {}\nunion I {}\n\
        #[cfg(test)]\nfn f() {\n    struct J;\n}\nflags! {\n    pub struct K: u8 {}\n}\n// struct L;\n\
        struct $name;\n#[cfg(all(test, not(loom)))]\nmod tests;\npublic struct M;\n\
        #[cfg(test)]\n#[expect(dead_code)]\nmod tests {\n    pub struct N;\n}\n";
    assert_eq!(types(text).into_iter().collect::<Vec<_>>(), ["A", "B", "F", "G", "H", "I", "K"]);
}

#[test]
fn the_rule_of_names_reports_twins_and_exceptions_without_need() {
    let file = |path: &str, text: &str| (path.to_owned(), text.to_owned());
    let sources = [
        file("a/src/one.rs", "struct A;\nstruct B;"),
        file("a/src/two/mod.rs", "struct A;\n#[cfg(test)]\nmod tests {\nstruct B;\n}"),
        file("a/src/two/tests.rs", "struct B;"),
        file("a/src/loom_two.rs", "struct B;"),
        file("a/tests/one.rs", "struct B;"),
        file("a/b/src/one.rs", "struct B;"),
        file("tests/src/one.rs", "struct C;"),
        file("tests/src/two.rs", "struct C;"),
    ];
    assert_eq!(problems(&sources, &[]), ["`A` is defined in a/src/one.rs, a/src/two/mod.rs"]);
    assert!(problems(&sources, &[("a", &["one.rs", "two/"], &["A"], "")]).is_empty());
    // An exception is for its folders only.
    assert_eq!(problems(&sources, &[("a", &["one.rs"], &["A"], "")]).len(), 2);
    let unneeded = problems(&sources, &[("a", &["one.rs", "two/"], &["A", "B"], "twins")]);
    assert_eq!(unneeded, ["no exception is needed for `B` of a (twins)"]);
}
