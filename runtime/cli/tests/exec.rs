//! `spelter exec` and `spelter icd`: the environment of programs and the loader's manifests.

#![allow(clippy::unwrap_used, reason = "a failing test panics")]

use std::os::unix::process::ExitStatusExt as _;
use std::path::Path;
use std::process::{Command, Stdio};

use crate::common::Folder;

#[test]
fn a_program_finds_the_driver_in_its_environment() {
    let folder = Folder::new("exec");
    let shown = folder.good("exec --graphics --workers 3 -- env");
    let value = |name: &str| shown.lines().find_map(|line| line.strip_prefix(&format!("{name}="))).unwrap_or_default();
    assert_eq!(value("VK_DRIVER_FILES"), value("VK_ICD_FILENAMES"));
    assert!(value("VK_DRIVER_FILES").ends_with("spelter_icd.json"), "{shown}");
    assert_eq!((value("SPELTER_ADVERTISE_GRAPHICS"), value("SPELTER_WORKERS")), ("1", "3"));
    let manifest: serde_json::Value =
        serde_json::from_slice(&std::fs::read(value("VK_DRIVER_FILES")).unwrap()).unwrap();
    assert!(Path::new(manifest["ICD"]["library_path"].as_str().unwrap()).is_file(), "{manifest}");
    // Without a cache the manifest lasts as long as the program.
    let (status, other, _) = with(&[("XDG_CACHE_HOME", "/dev/null/no")], "exec -- sh -c env;false");
    assert_eq!(status, 1);
    let manifest = other.lines().find_map(|line| line.strip_prefix("VK_DRIVER_FILES=")).unwrap();
    assert!(!Path::new(manifest).exists(), "{manifest} still exists");
    // What wgpu needs to show the device, unless the user has said something else.
    let for_wgpu = |shown: &str| {
        let lines = shown.lines().filter(|line| line.contains("NONCOMPLIANT") || line.contains("CONFORMANCE"));
        let mut lines: Vec<_> = lines.map(str::to_owned).collect();
        lines.sort_unstable();
        lines
    };
    let wanted = ["SPELTER_CONFORMANCE=1.3.0.0", "WGPU_ALLOW_UNDERLYING_NONCOMPLIANT_ADAPTER=1"];
    assert_eq!(for_wgpu(&shown), wanted);
    assert_eq!(for_wgpu(&folder.good("exec -- env")), [""; 0]);
    let (_, shown, _) = with(&[("SPELTER_CONFORMANCE", "0")], "exec --graphics -- env");
    assert_eq!(for_wgpu(&shown)[0], "SPELTER_CONFORMANCE=0");
}

#[test]
fn without_a_loader_the_driver_is_in_its_place() {
    let folder = Folder::new("no-loader");
    let script = "echo $LD_LIBRARY_PATH; readlink ${LD_LIBRARY_PATH%%:*}/libvulkan.so.1";
    folder.write("show.sh", script.as_bytes());
    let shown = folder.good("exec --no-loader -- sh show.sh");
    let (_, library) = shown.trim_end().split_once('\n').unwrap();
    assert!(library.ends_with("libvulkan_spelter.so") && Path::new(library).is_file(), "{shown}");
    let (_, shown, _) = with(
        &[("XDG_CACHE_HOME", "/dev/null/no")],
        &format!("exec --no-loader -- sh {}", folder.path().join("show.sh").display()),
    );
    let (search, library) = shown.trim_end().split_once('\n').unwrap();
    assert!(library.ends_with("libvulkan_spelter.so"), "{shown}");
    let place = search.split(':').next().unwrap();
    assert!(!Path::new(place).exists(), "{place} still exists");
    // Folders that are searched already are searched after it.
    let mut command = Command::new(env!("CARGO_BIN_EXE_spelter"));
    let output =
        command.args(["exec", "--no-loader", "--", "env"]).env("LD_LIBRARY_PATH", "/one::/two").output().unwrap();
    let shown = String::from_utf8(output.stdout).unwrap();
    assert!(shown.lines().any(|line| line.starts_with("LD_LIBRARY_PATH=/") && line.ends_with(":/one:/two")), "{shown}");
}

#[test]
fn the_driver_is_unpacked_under_both_names() {
    let folder = Folder::new("unpack");
    let shown = folder.good("icd unpack driver/new");
    let names: Vec<_> = shown.lines().map(|line| line.strip_prefix("driver/new/").unwrap()).collect();
    let object = folder.json("icd unpack driver/new --json");
    assert_eq!(object, serde_json::json!({ "files": shown.lines().collect::<Vec<_>>() }));
    assert_eq!(names, ["libvulkan_spelter.so", "libvulkan.so.1", "spelter_icd.json"]);
    let manifest: serde_json::Value = serde_json::from_slice(&folder.read("driver/new/spelter_icd.json")).unwrap();
    assert_eq!(manifest["ICD"]["library_path"], "./libvulkan_spelter.so", "relative to the manifest");
    // The files differ in their names for the dynamic linker only.
    let (driver, renamed) = (folder.read("driver/new/libvulkan_spelter.so"), folder.read("driver/new/libvulkan.so.1"));
    assert_eq!(driver.len(), renamed.len());
    let differ: Vec<usize> = (0..driver.len()).filter(|&at| driver[at] != renamed[at]).collect();
    assert!(differ[differ.len() - 1] - differ[0] < "libvulkan_spelter.so".len(), "{differ:?}");
    let _ = std::fs::remove_dir_all(folder.path().join("driver"));
    folder.write("file", b"");
    assert!(folder.error("icd unpack file").starts_with("file/libvulkan_spelter.so: "));
}

#[test]
fn cargo_runs_programs_on_the_driver() {
    let folder = Folder::new("runner");
    folder.write("Cargo.toml", b"[package]\nname = \"shows\"\nedition = \"2024\"\n\n[workspace]\n");
    folder.write("src/main.rs", b"fn main() { println!(\"{:?}\", std::env::var(\"SPELTER_ADVERTISE_GRAPHICS\")); }");
    // The line of docs/vulkan.md, with the path of this build.
    let runner = format!("runner = \"{} exec --graphics --\"", env!("CARGO_BIN_EXE_spelter"));
    let config = format!("[target.'cfg(target_os = \"linux\")']\n{runner}\n");
    folder.write(".cargo/config.toml", config.as_bytes());
    let mut cargo = Command::new(std::env::var_os("CARGO").unwrap_or("cargo".into()));
    cargo.args(["run", "--quiet", "--offline"]).current_dir(folder.path());
    // This build's own settings are not those of the user's.
    for name in ["CARGO_TARGET_DIR", "RUSTFLAGS", "CARGO_ENCODED_RUSTFLAGS", "CARGO_BUILD_TARGET"] {
        cargo.env_remove(name);
    }
    let output = cargo.output().unwrap();
    assert_eq!(String::from_utf8_lossy(&output.stdout), "Ok(\"1\")\n", "{}", String::from_utf8_lossy(&output.stderr));
}

#[test]
fn the_program_gets_the_process_and_its_signals() {
    let mut command = Command::new(env!("CARGO_BIN_EXE_spelter"));
    command.args(["exec", "--", "sh", "-c", "echo $$; kill -TERM $$; echo alive"]).stdout(Stdio::piped());
    let child = command.spawn().unwrap();
    let process = child.id();
    let output = child.wait_with_output().unwrap();
    assert_eq!(String::from_utf8(output.stdout).unwrap(), format!("{process}\n"));
    assert_eq!(output.status.signal(), Some(15));
}

#[test]
fn a_plain_program_of_wgpu_finds_the_device_by_graphics() {
    let spelter = Path::new(env!("CARGO_BIN_EXE_spelter"));
    let program = spelter.with_file_name("examples").join("plain_wgpu");
    assert!(program.is_file(), "{} is missing: build it with `cargo test --workspace`", program.display());
    for loader in [&[][..], &["--no-loader"]] {
        let mut command = Command::new(spelter);
        let output = command.args(["exec", "--graphics"]).args(loader).arg("--").arg(&program).output().unwrap();
        let stdout = String::from_utf8_lossy(&output.stdout);
        let stderr = String::from_utf8_lossy(&output.stderr);
        assert!(stdout.starts_with("Spelter") && stdout.ends_with(" 32640\n"), "{loader:?}: {stdout}{stderr}");
    }
}

#[test]
fn a_device_can_be_required() {
    let folder = Folder::new("exec-require");
    let none = "note: no process created a device of Spelter\n";
    let hint = "note: programs that require a graphics queue (wgpu, Dawn, taichi) need --graphics\n";
    // Silent without the option, as `env` and the like are.
    let ended = folder.spelter("exec -- true");
    assert_eq!((ended.status, ended.stderr.as_str()), (0, ""));
    let ended = folder.spelter("exec --require-device -- true");
    assert_eq!((ended.status, ended.stderr), (67, format!("{none}{hint}")));
    let ended = folder.spelter("exec --require-device --graphics -- true");
    assert_eq!((ended.status, ended.stderr.as_str()), (67, none));
    // A failure of the program counts for more, and the note may be its reason.
    let ended = folder.spelter("exec --require-device --graphics -- false");
    assert_eq!((ended.status, ended.stderr.as_str()), (1, none));
    let ended = folder.spelter("exec --require-device -- there-is-no-such-program");
    assert!(ended.status == 127 && !ended.stderr.contains("device"), "{}", ended.stderr);
    // The device of a child process counts. No file stays.
    let program = Path::new(env!("CARGO_BIN_EXE_spelter")).with_file_name("examples").join("plain_wgpu");
    let script = format!("echo $SPELTER_DEVICE_MARK; {}; true", program.display());
    folder.write("script.sh", script.as_bytes());
    let shown = folder.good("exec --require-device --graphics -- sh script.sh");
    let (mark, computed) = shown.split_once('\n').unwrap();
    assert!(computed.ends_with(" 32640\n") && mark.ends_with("/device"), "{shown}");
    assert!(!Path::new(mark).parent().unwrap().exists(), "{mark}");
}

#[test]
fn the_status_is_the_programs() {
    let folder = Folder::new("exec-status");
    assert_eq!(folder.spelter("exec -- false").status, 1);
    assert_eq!(folder.spelter("exec -- true").status, 0);
    // Also without the two hyphens, and with options of the program.
    assert_eq!(folder.good("exec echo --graphics -n --workers"), "--graphics -n --workers\n");
    // The statuses of shells, env and sudo.
    for (program, status) in [("there-is-no-such-program", 127), ("/", 126)] {
        let ended = folder.spelter(&format!("exec -- {program}"));
        assert_eq!((ended.status, ended.stdout.as_str()), (status, ""));
        assert!(ended.stderr.starts_with(&format!("error: {program}: ")), "{}", ended.stderr);
    }
    assert!(folder.usage("exec").contains("COMMAND"));
    assert!(folder.usage("exec --graphix true").contains("--graphix"));
}

#[test]
fn a_timeline_that_cannot_be_written_is_reported_before_the_program_runs() {
    let folder = Folder::new("exec-trace");
    let message = folder.error("exec --trace no/such/folder.json -- touch ran");
    assert!(message.starts_with("no/such/folder.json: "), "{message}");
    assert!(folder.spelter("exec -- test -e ran").status == 1, "the program ran");
    let shown = folder.good("exec --trace line.json -- env");
    let path = shown.lines().find_map(|line| line.strip_prefix("SPELTER_TRACE=")).unwrap();
    assert!(Path::new(path).is_absolute() && path.ends_with("line.json"), "{path}");
    assert_eq!(folder.read("line.json"), b"[\n]\n", "a list without anything in it");
}

/// Runs `spelter` with variables set.
fn with(set: &[(&str, &str)], words: &str) -> (i32, String, String) {
    let mut command = Command::new(env!("CARGO_BIN_EXE_spelter"));
    let output = command.args(words.split_whitespace()).envs(set.iter().copied()).output().unwrap();
    let text = |bytes| String::from_utf8(bytes).unwrap();
    (output.status.code().unwrap(), text(output.stdout), text(output.stderr))
}

#[test]
fn variables_that_make_no_sense_are_errors() {
    for (name, value) in [
        ("SPELTER_WORKERS", "x"),
        ("SPELTER_BACKEND", "foo"),
        ("SPELTER_TIME_LIMIT", "-3"),
        ("SPELTER_SCHEDULE", "random:-1"),
    ] {
        for command in ["exec -- true", "info"] {
            let (status, shown, message) = with(&[(name, value)], command);
            assert_eq!((status, shown.as_str()), (2, ""), "{name} {command}");
            assert!(message.starts_with(&format!("error: {name}={value}: ")), "{message}");
        }
    }
    assert_eq!(with(&[("SPELTER_STATS", "maybe")], "exec -- true").0, 2);
    // Variables are ignored if they are empty or their option is given.
    let given = [("SPELTER_WORKERS", "x"), ("SPELTER_TIME_LIMIT", "")];
    assert_eq!(with(&given, "exec --workers 2 -- true"), (0, String::new(), String::new()));
    assert_eq!(with(&given, "info --workers 2").0, 0);
    let (_, shown, _) = with(&[("SPELTER_SCHEDULE", "reverse")], "exec --schedule random:5 -- env");
    assert!(shown.lines().any(|line| line == "SPELTER_SCHEDULE=random:5"), "{shown}");
}

#[test]
fn the_device_is_as_the_environment_says() {
    let set = [("SPELTER_WORKERS", "1"), ("SPELTER_BACKEND", "interpreter"), ("SPELTER_TIME_LIMIT", "7.5")];
    let info = |words: &str| -> serde_json::Value { serde_json::from_str(&with(&set, words).1).unwrap() };
    let shown = info("info --json");
    assert_eq!((&shown["workers"], &shown["backend"]), (&1.into(), &"interpreter".into()));
    assert_eq!(shown["time_limit_seconds"], 7.5);
    assert_eq!(info("info --json --workers 3")["workers"], 3, "an option counts for more");
}

#[test]
fn the_manifest_names_the_library() {
    let folder = Folder::new("manifest");
    let manifest = folder.json("icd manifest");
    let library = manifest["ICD"]["library_path"].as_str().unwrap();
    assert!(Path::new(library).is_file(), "{library}");
    assert_eq!(manifest["file_format_version"], "1.0.1");
    assert!(manifest["ICD"]["api_version"].as_str().unwrap().starts_with("1.3."));
}

#[test]
fn the_manifest_is_installed_and_taken_away() {
    let folder = Folder::new("install");
    let home = Path::new(env!("CARGO_TARGET_TMPDIR")).join("install");
    let run = |words: &[&str]| {
        let mut command = Command::new(env!("CARGO_BIN_EXE_spelter"));
        let output = command.args(words).env("XDG_DATA_HOME", &home).output().unwrap();
        assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
        String::from_utf8(output.stdout).unwrap()
    };
    let printed = run(&["icd", "install", "--user"]);
    let path = printed.strip_prefix("installed: ").unwrap();
    assert!(path.trim_end().ends_with("vulkan/icd.d/spelter_icd.json"), "{path}");
    let text = String::from_utf8(folder.read("vulkan/icd.d/spelter_icd.json")).unwrap();
    assert_eq!(text, run(&["icd", "manifest"]));
    assert_eq!(run(&["icd", "uninstall"]), format!("removed: {path}"));
    assert!(!Path::new(path.trim_end()).exists());
    let (status, _, message) = with(&[("XDG_DATA_HOME", home.to_str().unwrap())], "icd uninstall");
    assert!(status == 1 && message.contains("not installed"), "{message}");
}
