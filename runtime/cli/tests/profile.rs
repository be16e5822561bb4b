//! `spelter profile`, `spelter exec --profile` and `spelter trace summary`: times by program, and bad input.

#![allow(clippy::unwrap_used, reason = "a failing test panics")]

use crate::common::Folder;

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
    assert!(row.starts_with("double") && row.contains("100.0 %") && row.contains("  1280  "), "{text}");
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
        "busy_ns":3000,"elapsed_ns":2000,"shortest_ns":900,"longest_ns":1100,
        "times_ns":[[900,1],[1100,1]]}"#;
    let echo = format!("echo '{{\"programs\":[{row}]}}'");
    let write = format!("{echo} > $SPELTER_PROFILE\n{echo} > ${{SPELTER_PROFILE%.json}}.77.json");
    let command = program(&folder, "two.sh", &write);
    let ended = folder.spelter(&format!("exec --profile -- {command}"));
    assert_eq!((ended.status, ended.stdout.as_str()), (3, "own output\n"), "{}", ended.stderr);
    let lines: Vec<_> = ended.stderr.lines().collect();
    assert!(lines[0].starts_with("program") && lines[0].contains("share"), "{}", ended.stderr);
    let cells: Vec<_> = lines[1].split("  ").map(str::trim).filter(|cell| !cell.is_empty()).collect();
    let times = ["4.00 µs", "1.00 µs", "0.90 µs", "1.10 µs", "6.00 µs"];
    let wanted = [&["main", "4"], &times[..], &["100.0 %", "16", "4.00 M", "0.03"]].concat();
    assert_eq!(cells, wanted, "{}", ended.stderr);
    // `spelter profile` is the same command.
    let profiled = folder.spelter(&format!("profile -- {command}"));
    assert_eq!((profiled.status, &profiled.stdout, &profiled.stderr), (3, &ended.stdout, &ended.stderr));
    let saved = folder.spelter(&format!("profile --json --save saved.json -- {command}"));
    assert_eq!((saved.status, saved.stderr.as_str()), (3, ""));
    let ended = folder.spelter(&format!("exec --profile=times.json --json -- {command}"));
    assert_eq!((ended.status, ended.stderr.as_str()), (3, ""));
    let json: serde_json::Value = serde_json::from_slice(&folder.read("times.json")).unwrap();
    assert_eq!((&json["processes"], &json["programs"][0]["calls"]), (&2.into(), &4.into()));
    assert_eq!(folder.read("times.json"), folder.read("saved.json"));
}

#[test]
fn a_profile_that_cannot_be_had_is_reported() {
    let folder = Folder::new("exec-profile-errors");
    let ended = folder.spelter("exec --profile -- true");
    let nothing = "no dispatches: 0 processes created a device of Spelter\n";
    assert_eq!((ended.status, ended.stderr.as_str()), (0, nothing));
    let ended = folder.spelter("exec --profile --json -- true");
    let object: serde_json::Value = serde_json::from_str(&ended.stderr).unwrap();
    assert_eq!((&object["processes"], object["programs"].as_array().map(Vec::len)), (&0.into(), Some(0)));
    let message = folder.error("exec --profile=no/such/file.txt -- touch ran");
    assert!(message.starts_with("no/such/file.txt: "), "{message}");
    assert_eq!(folder.spelter("exec -- test -e ran").status, 1, "the program ran");
    let command = program(&folder, "bad.sh", "echo nonsense > $SPELTER_PROFILE");
    let ended = folder.spelter(&format!("exec --profile -- {command}"));
    assert!(ended.status == 1 && ended.stderr.contains("profile.json: "), "{}", ended.stderr);
    assert!(folder.usage("exec --json -- true").contains("--profile"));
}

const TWO: &str = "
var<immediate> factor: f32;
@group(0) @binding(0) var<storage, read_write> data: array<f32>;
@group(0) @binding(1) var<storage, read_write> sum: f32;
@compute @workgroup_size(64) fn scale(@builtin(global_invocation_id) id: vec3u) { data[id.x] *= factor; }
@compute @workgroup_size(1) fn reduce() { sum = data[0] + data[1]; }";

/// An entry point that is given twice is dispatched twice in each round, and is one program in the table.
#[test]
fn an_entry_point_may_be_given_twice() {
    let folder = Folder::with("profile-twice", "two.wgsl", TWO);
    let shown = folder.json("profile two.wgsl --entry reduce --entry reduce --repeat 20 --groups 4 --json");
    let [reduce] = &shown["programs"].as_array().unwrap()[..] else { panic!("{shown}") };
    assert_eq!((&reduce["calls"], &reduce["workgroups"]), (&40.into(), &160.into()));
    // One sum for each workgroup.
    let flops = reduce["flops_per_second"].as_f64().unwrap() * reduce["total_seconds"].as_f64().unwrap();
    assert!((flops / 160.0 - 1.0).abs() < 1e-9, "{flops}");
}

/// Two programs that share a buffer, at two sizes.
#[test]
fn dispatches_of_several_programs_are_profiled() {
    let folder = Folder::with("profile-two", "two.wgsl", TWO);
    let line =
        "profile two.wgsl --entry scale --entry reduce --push f32:1 --repeat 20 --workers 2 --groups 4 --groups 16";
    let shown = folder.json(&format!("{line} --json --trace line.json"));
    let programs = shown["programs"].as_array().unwrap();
    let of = |name: &str| programs.iter().find(|program| program["name"] == name).unwrap();
    let (scale, reduce) = (of("scale"), of("reduce"));
    assert_eq!((&scale["calls"], &scale["workgroups"]), (&40.into(), &(20 * (4 + 16)).into()));
    assert_eq!((&reduce["calls"], &reduce["workgroups"]), (&40.into(), &(20 * (4 + 16)).into()));
    // A buffer for the largest dispatch: 16 workgroups of 64 floats, and one float more in the other buffer.
    assert_eq!((&scale["bytes"], &reduce["bytes"]), (&(40 * 4096).into(), &(40 * 4100).into()));
    let number = |program: &serde_json::Value, name: &str| program[name].as_f64().unwrap();
    let near = |a: f64, b: f64| assert!((a / b - 1.0).abs() < 1e-9, "{a} {b}");
    for program in [scale, reduce] {
        let total = number(program, "total_seconds");
        near(number(program, "workgroups_per_second"), 400.0 / total);
        near(number(program, "bytes_per_second"), number(program, "bytes") / total);
        let times =
            ["shortest_seconds", "p50_seconds", "p99_seconds", "longest_seconds"].map(|name| number(program, name));
        assert!(times.is_sorted(), "{times:?}");
    }
    // One product for each invocation, and one sum for each workgroup of one invocation.
    near(number(scale, "flops_per_second"), 400.0 * 64.0 / number(scale, "total_seconds"));
    near(number(reduce, "flops_per_second"), 400.0 / number(reduce, "total_seconds"));
    near(programs.iter().map(|program| number(program, "share")).sum(), 1.0);
    assert_eq!((&shown["workers"]["count"], shown["workers"]["busy"].as_array().unwrap().len()), (&2.into(), 2));
    let dispatches = shown["dispatches"].as_array().unwrap();
    let order: Vec<_> =
        dispatches[..4].iter().map(|one| (one["program"].as_str().unwrap(), &one["groups"][0])).collect();
    assert_eq!(order, [("scale", &4.into()), ("scale", &16.into()), ("reduce", &4.into()), ("reduce", &16.into())]);
    assert!(dispatches.len() == 80 && shown["dropped"] == 0);
    assert!(dispatches.iter().all(|one| number(one, "begin_seconds") <= number(one, "end_seconds")));
    // The timeline has the rounds before these as well.
    let timeline = folder.json("trace summary line.json --json");
    assert_eq!(timeline["programs"].as_array().unwrap().iter().filter(|program| program["calls"] == 46).count(), 2);
    let text = folder.good(line);
    let lines: Vec<_> = text.lines().collect();
    assert!(lines[0].starts_with("program") && lines[0].ends_with("GFLOP/s"), "{text}");
    assert!(
        lines.len() == 6 && lines[4].starts_with("rounds   20, ") && lines[5].starts_with("workers  2, busy "),
        "{text}"
    );
}

#[test]
fn what_cannot_be_profiled_is_an_error() {
    let folder = Folder::with("profile-errors", "two.wgsl", TWO);
    folder.write(
        "other.wgsl",
        b"
        @group(0) @binding(0) var<uniform> step: vec4f;
        @group(0) @binding(1) var<storage, read_write> to: f32;
        @group(0) @binding(0) var<storage, read_write> all: array<f32>;
        @compute @workgroup_size(1) fn a() { to = step.x; }
        @compute @workgroup_size(1) fn b() { all[0] = 1.0; }",
    );
    for (line, message) in [
        (
            "other.wgsl --entry a --entry b",
            "binding 0.0: \"a\" and \"b\" declare it as different kinds of descriptors: profile them one at a time",
        ),
        ("other.wgsl --entry b --push f32:1", "--push: no program has push constants"),
        ("two.wgsl --entry scale --bind 0.7=zeros:4 --push f32:1", "--bind 0.7: \"scale\" does not use it"),
        ("two.wgsl --entry reduce --trace no/such/line.json", "no/such/line.json: its folder does not exist"),
    ] {
        assert_eq!(folder.error(&format!("profile {line}")), message, "{line}");
    }
    let error = folder.error("profile two.wgsl --entry scale");
    assert!(error.starts_with("--push: \"scale\" declares bytes 0..4, 0 bytes were given"), "{error}");
    for (line, part) in [
        ("profile", "<FILE>"),
        ("profile two.wgsl -- true", "cannot be used with"),
        ("profile --groups 4 -- true", "cannot be used with"),
        ("profile two.wgsl --save table.txt", "cannot be used with"),
        ("profile two.wgsl --repeat 0", "--repeat"),
        ("profile two.wgsl --graphics", "cannot be used with"),
    ] {
        assert!(folder.usage(line).contains(part), "{line}: {}", folder.usage(line));
    }
}
