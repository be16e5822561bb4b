//! No lock of a process is one that its forked processes would wait for.

use super::sources;

/// Types that wait for a thread, which a forked process may not have.
const WAITING: [&str; 6] = ["Mutex", "RwLock", "Once", "OnceLock", "LazyLock", "Condvar"];

/// The statics of a text, up to its tests, whose type is or contains such a type outside of a `PerProcess`.
fn waiting(text: &str) -> Vec<&str> {
    let code = text.split("#[cfg(test)]").next().unwrap_or_default();
    let statics = code.split("static ").skip(1).filter_map(|rest| rest.split_once(" = "));
    let declared = statics.map(|(declared, _)| declared).filter(|declared| {
        let name = declared.split(':').next().unwrap_or_default();
        !name.is_empty() && name.chars().all(|c| c.is_ascii_uppercase() || c.is_ascii_digit() || c == '_')
    });
    let waits = |declared: &&str| {
        let mut words = declared.split(|c: char| !c.is_alphanumeric() && c != '_');
        !declared.contains("PerProcess<") && words.any(|word| WAITING.contains(&word))
    };
    declared.filter(waits).collect()
}

/// A lock in a static is held by some thread at a fork, and in the forked process for ever. (The programs of
/// `runtime/cli` and of tests do not fork.)
#[test]
fn no_static_has_a_lock_that_a_forked_process_would_wait_for() {
    let is_of_driver = |path: &str| {
        path.contains("/src/") && ["shaders/", "driver/", "runtime/src/"].iter().any(|start| path.starts_with(start))
    };
    let mut wrong = Vec::new();
    for (path, text) in sources().iter().filter(|(path, _)| is_of_driver(path) && !path.ends_with("/tests.rs")) {
        wrong.extend(waiting(text).into_iter().map(|declared| format!("{path}: {declared}")));
    }
    assert!(wrong.is_empty(), "use `PerProcess` or `Computed` (driver/locks): {wrong:#?}");
}

#[test]
fn the_rule_of_statics_sees_each_form() {
    let text = "static A: Mutex<()> = Mutex::new(());\npub static B: std::sync::LazyLock<u8> = x;\n    static C: \
        [OnceLock<u8>; 2] = y;\nstatic D: PerProcess<Mutex<u8>> = z;\nstatic E: Computed<u8> = v;\nfn f(a: &'static Mutex<u8>) \
        { let b = 1; }\n#[cfg(test)] static F: Once = w;";
    let found: Vec<_> = waiting(text).into_iter().map(|declared| &declared[..1]).collect();
    assert_eq!(found, ["A", "B", "C"]);
}
