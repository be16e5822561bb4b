//! `spelter completions` and `spelter man`.

#![allow(clippy::unwrap_used, reason = "a failing test panics")]

use crate::common::Folder;

#[test]
fn shells_get_their_script() {
    let folder = Folder::new("completions");
    let parts = [("bash", "complete -F _spelter"), ("zsh", "#compdef spelter"), ("fish", "complete -c spelter")];
    for (shell, part) in parts {
        let script = folder.good(&format!("completions {shell}"));
        assert!(script.contains(part) && script.contains("invocations"), "{script}");
    }
    assert!(folder.usage("completions cmd").contains("[possible values: bash,"));
}

#[test]
fn each_command_has_a_page() {
    let folder = Folder::new("man");
    let shown = folder.good("man new/man1");
    let pages: Vec<_> = shown.lines().map(|path| path.strip_prefix("new/man1/").unwrap()).collect();
    for page in ["spelter.1", "spelter-run.1", "spelter-icd-install.1", "spelter-trace-summary.1"] {
        assert!(pages.contains(&page), "{pages:?}");
    }
    let pages = folder.json("man new/man1 --json")["files"].as_array().map(Vec::len);
    assert_eq!(pages, Some(shown.lines().count()));
    let page = |name: &str| String::from_utf8(folder.read(&format!("new/man1/{name}"))).unwrap();
    let title = page("spelter-run.1").lines().find(|line| line.starts_with(".TH ")).unwrap().to_owned();
    assert!(title.starts_with(".TH spelter-run 1 ") && title.contains("spelter 0."), "{title}");
    assert!(page("spelter-run.1").contains("invocations") && page("spelter.1").contains("Exit status"));
    folder.write("file", b"");
    assert!(folder.error("man file").starts_with("file: "));
}
