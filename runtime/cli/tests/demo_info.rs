//! `spelter demo` and `spelter info`, and output to a closed pipe.

use std::process::{Command, Stdio};

use crate::common::Folder;

#[test]
fn the_gallery_is_listed() {
    let folder = Folder::new("list");
    let names: Vec<String> =
        folder.good("demo --list").lines().filter_map(|l| l.split_whitespace().next().map(String::from)).collect();
    assert_eq!(names, ["saxpy", "reduce", "scan", "histogram", "matmul", "nbody", "mandelbrot", "pathtracer"]);
    assert_eq!(folder.json("demo scan --list --json")["name"], "scan");
}

#[test]
fn a_demo_computes_and_is_checked() {
    let folder = Folder::new("demo");
    let lines = folder.good("demo scan histogram --json --workers 2");
    let lines: Vec<serde_json::Value> = lines.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    let names: Vec<_> = lines.iter().map(|line| line["name"].as_str().unwrap()).collect();
    assert_eq!(names, ["scan", "histogram"]);
    assert!(lines.iter().all(|line| line["correct"] == true && line["rate"].as_f64() > Some(0.0)));
    // The run that is checked is a warm-up; rates are those of the median of several others.
    for line in &lines {
        let number = |name: &str| line[name].as_f64().unwrap();
        assert!(number("runs") >= 5.0 && number("spread") >= 0.0, "{line}");
        assert!(0.0 < number("best_seconds") && number("best_seconds") <= number("seconds"), "{line}");
    }
    let text = folder.good("demo histogram");
    assert!(text.starts_with("ok  histogram") && text.contains("spread"), "{text}");
}

#[test]
fn pictures_go_to_a_folder() {
    let folder = Folder::with("not-a-folder", "file", "");
    assert_eq!(folder.error("demo saxpy --out file"), "file: not a directory");
}

#[test]
fn an_unknown_demo() {
    let message = Folder::new("unknown-demo").usage("demo tetris");
    assert!(message.contains("'tetris'") && message.contains("saxpy, reduce"), "{message}");
}

#[test]
fn info() {
    let folder = Folder::new("info");
    let shown = folder.json("info --json --workers 3 --time-limit 1.5");
    assert_eq!((&shown["workers"], &shown["time_limit_seconds"]), (&3.into(), &1.5.into()));
    assert!(shown["memory_bytes"].as_u64() > Some(0));
    assert!(shown["limits"]["workgroup_invocations"].as_u64() >= Some(256));
    let text = folder.good("info");
    for word in ["spelter", "workers", "SIMD", "memory", "push constants"] {
        assert!(text.contains(word), "{text}");
    }
    // Each line names its counter.
    for line in [
        "descriptor sets  numbered 0 to 7 (@group in WGSL)",
        "dispatch         at most 65535 x 65535 x 65535 workgroups",
        "workgroup        at most 1024 x 1024 x 64 and 1024 invocations",
        "time limit       60 s for a dispatch or transfer, then the device is lost",
        "uniform buffer   at most 64 KiB in a binding",
    ] {
        assert!(text.lines().any(|shown| shown == line), "{line}:\n{text}");
    }
    assert!(!text.contains('\x1b'), "colours are for terminals");
}

#[test]
fn info_names_the_driver() {
    let folder = Folder::new("info-driver");
    let driver = folder.json("info --json")["driver"].clone();
    let path = driver["path"].as_str().unwrap_or_default();
    assert!(path.ends_with("/libvulkan_spelter.so") && std::path::Path::new(path).is_file(), "{driver}");
    assert_eq!(driver["inside"], false);
    assert!(folder.good("info").lines().any(|line| line == format!("driver           {path}")));
    // A copy without a driver beside it computes, but has none for other programs.
    let alone = folder.path().join("bin/spelter");
    folder.write("bin/README", b"");
    std::fs::hard_link(env!("CARGO_BIN_EXE_spelter"), &alone).expect("the same file system");
    let run = |words: &[&str]| {
        let output = Command::new(&alone).args(words).env_remove("SPELTER_ICD_LIBRARY").output().expect("it starts");
        let text = |bytes| String::from_utf8(bytes).expect("text");
        (output.status.code(), text(output.stdout), text(output.stderr))
    };
    let (status, shown, _) = run(&["info"]);
    let line = shown.lines().find(|line| line.starts_with("driver ")).unwrap_or_default();
    assert!(
        status == Some(0) && line.contains("none: the Vulkan driver, libvulkan_spelter.so, is not with"),
        "{shown}"
    );
    for words in [&["exec", "--", "true"][..], &["check", "--", "true"], &["icd", "manifest"]] {
        let (status, shown, message) = run(words);
        assert_eq!((status, shown.as_str()), (Some(1), ""), "{words:?}");
        // What is looked for, where, and what to do.
        let lib = folder.path().join("lib/spelter").display().to_string();
        for part in
            ["libvulkan_spelter.so", &lib, "spelter-driver-", "cargo build -p spelter-icd", "SPELTER_ICD_LIBRARY"]
        {
            assert!(message.contains(part), "{words:?}: {part} is not in {message}");
        }
        assert!(message.lines().count() == 1 && !message.contains(".."), "{message}");
    }
}

#[test]
fn versions_and_help() {
    let folder = Folder::new("help");
    assert!(folder.good("--version").starts_with("spelter "));
    assert!(folder.good("run --help").contains("TYPE:random:N:SEED"));
}

#[test]
fn a_reader_that_goes_away_is_no_error() {
    let folder = Folder::with(
        "pipe",
        "fill.wgsl",
        "@group(0) @binding(0) var<storage, read_write> a: array<u32>; @compute @workgroup_size(1) fn main() { a[0] = 1u; }",
    );
    let at = std::path::Path::new(env!("CARGO_TARGET_TMPDIR")).join("pipe");
    let mut child = Command::new(env!("CARGO_BIN_EXE_spelter"))
        .args(["run", "fill.wgsl", "--groups", "1", "--bind", "0.0=u32:range:1000000", "--out", "0.0=u32"])
        .current_dir(at)
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    drop(child.stdout.take());
    let ended = child.wait_with_output().unwrap();
    assert_eq!((ended.status.code(), String::from_utf8(ended.stderr).unwrap()), (Some(0), String::new()));
    drop(folder);
}
