//! `spelter trace summary` and `spelter exec --profile`: times by program, and bad input.

#![allow(clippy::unwrap_used, reason = "a failing test panics")]

mod common;

use common::Folder;

const DOUBLE: &str = "@group(0) @binding(0) var<storage, read_write> data: array<u32>;
@compute @workgroup_size(64) fn double(@builtin(global_invocation_id) id: vec3u) { data[id.x] *= 2u; }";

#[test]
fn a_timeline_is_summed_up_by_program() {
    let folder = Folder::with("trace-summary", "double.wgsl", DOUBLE);
    folder.good("run double.wgsl --bind 0.0=u32:range:4096 --groups 64 --repeat 20 --trace line.json");
    let shown = folder.json("trace summary line.json --json");
    let [double] = &shown["programs"].as_array().unwrap()[..] else { panic!("{shown}") };
    assert_eq!((&double["name"], &double["calls"]), (&"double".into(), &20.into()));
    assert_eq!((&double["workgroups"], &double["bytes"]), (&(20 * 64).into(), &(20 * 4096 * 4).into()));
    assert_eq!(double["share"], 1.0);
    let number = |name: &str| double[name].as_f64().unwrap();
    assert!((number("mean_seconds") * 20.0 / number("total_seconds") - 1.0).abs() < 1e-9);
    assert!(number("shortest_seconds") <= number("longest_seconds"));
    assert_eq!(shown["submissions"]["count"], 20);
    assert!((0.0..=1.0).contains(&shown["workers"]["busy"].as_f64().unwrap()));
    let text = folder.good("trace summary line.json");
    let row = text.lines().nth(1).unwrap();
    assert!(row.starts_with("double") && row.contains("100.0 %") && row.ends_with("1280"), "{text}");
    assert!(text.contains("submissions") && text.contains("workers"), "{text}");
}

#[test]
fn other_files_are_no_timelines() {
    let folder = Folder::new("trace-errors");
    for (text, problem) in [
        ("", "EOF"),
        ("{}", "not a timeline: neither a list nor `traceEvents`"),
        ("[1]", "event 0: not an object"),
        (r#"[{"ph":"X","name":"a","ts":"1","dur":1}]"#, "event 0: `ts` is not a number"),
        (r#"[{"ph":"X","name":"a","ts":1,"dur":1}]"#, "not a timeline of Spelter"),
        (r#"[{"ph":"X","cat":"dispatch","name":"a","ts":1,"dur":1}]"#, "event 0: `args.busy_us` is not a number"),
    ] {
        folder.write("line.json", text.as_bytes());
        let message = folder.error("trace summary line.json");
        assert!(message.starts_with("line.json: ") && message.contains(problem), "{message}");
    }
    assert!(folder.error("trace summary missing.json").starts_with("missing.json: "));
    assert!(folder.usage("trace").contains("summary"));
    // A timeline without work is one.
    folder.write("line.json", b"[\n]\n");
    assert_eq!(folder.json("trace summary line.json --json")["programs"], serde_json::json!([]));
    let text = folder.good("trace summary line.json");
    assert!(text.contains("0, busy 0.0 %"), "{text}");
}

#[test]
fn waits_and_workers_that_ran_nothing_are_in_the_summary() {
    let text = "@group(0) @binding(0) var<storage, read_write> data: array<u32>;
        @compute @workgroup_size(64) fn long(@builtin(global_invocation_id) id: vec3u) {
            for (var i = 0u; i < 300000u; i++) { data[id.x] = data[id.x] * 3u + i; }
        }";
    let folder = Folder::with("trace-waits", "double.wgsl", text);
    // One workgroup: one of the workers runs it.
    let run = "run double.wgsl --bind 0.0=u32:range:64 --groups 1 --repeat 3 --trace line.json";
    let ended = std::process::Command::new(env!("CARGO_BIN_EXE_spelter"))
        .current_dir(folder.path())
        .args(run.split_whitespace())
        .env("SPELTER_WORKERS", "4")
        .output()
        .unwrap();
    assert!(ended.status.success(), "{ended:?}");
    let shown = folder.json("trace summary line.json --json");
    // A run may be over before the wait for it.
    assert!((1..=3).contains(&shown["waits"]["wait: fence"]["count"].as_u64().unwrap()), "{shown}");
    assert!(shown["workers"]["count"].as_u64().unwrap() >= 4, "{shown}");
}

/// A program that writes what the driver writes.
fn program(folder: &Folder, name: &str, profile: &str) -> String {
    folder.write(name, format!("echo own output\n{profile}\nexit 3\n").as_bytes());
    format!("sh {name}")
}

#[test]
fn a_foreign_program_is_profiled() {
    let folder = Folder::new("exec-profile");
    let row = r#"{"name":"main","pipeline":"0123456789abcdef","calls":2,"workgroups":8,"bytes":64,
        "busy_ns":3000,"elapsed_ns":2000,"shortest_ns":900,"longest_ns":1100}"#;
    let echo = format!("echo '{{\"programs\":[{row}]}}'");
    let write = format!("{echo} > $SPELTER_PROFILE\n{echo} > ${{SPELTER_PROFILE%.json}}.77.json");
    let command = program(&folder, "two.sh", &write);
    let ended = folder.spelter(&format!("exec --profile -- {command}"));
    assert_eq!((ended.status, ended.stdout.as_str()), (3, "own output\n"), "{}", ended.stderr);
    let lines: Vec<_> = ended.stderr.lines().collect();
    assert!(lines[0].starts_with("program") && lines[0].contains("share"), "{}", ended.stderr);
    let cells: Vec<_> = lines[1].split_whitespace().collect();
    assert_eq!(cells, ["main", "4", "4.00", "µs", "1.00", "µs", "6.00", "µs", "100.0", "%", "16"], "{}", ended.stderr);
    let ended = folder.spelter(&format!("exec --profile=times.json --json -- {command}"));
    assert_eq!((ended.status, ended.stderr.as_str()), (3, ""));
    let json: serde_json::Value = serde_json::from_slice(&folder.read("times.json")).unwrap();
    assert_eq!((&json["processes"], &json["programs"][0]["calls"]), (&2.into(), &4.into()));
}

#[test]
fn a_profile_that_cannot_be_had_is_reported() {
    let folder = Folder::new("exec-profile-errors");
    let ended = folder.spelter("exec --profile -- true");
    let nothing = "no dispatches: 0 processes created a device of Spelter\n";
    assert_eq!((ended.status, ended.stderr.as_str()), (0, nothing));
    let message = folder.error("exec --profile=no/such/file.txt -- touch ran");
    assert!(message.starts_with("no/such/file.txt: "), "{message}");
    assert_eq!(folder.spelter("exec -- test -e ran").status, 1, "the program ran");
    let command = program(&folder, "bad.sh", "echo nonsense > $SPELTER_PROFILE");
    let ended = folder.spelter(&format!("exec --profile -- {command}"));
    assert!(ended.status == 1 && ended.stderr.contains("profile.json: "), "{}", ended.stderr);
    assert!(folder.usage("exec --json -- true").contains("--profile"));
}
