//! Job arrays: shards that are killed, continued and merged give what a run without shards gives.

#![expect(clippy::unwrap_used, reason = "the helpers of tests are tests too")]

use crate::common::Folder;

/// 60 blocks of 64 programs.
const JOBS: &str = "litmus --generate --events 3 --count 3840";

/// The JSON object of a run that ends with this status.
fn json_of(folder: &Folder, status: i32, line: &str) -> serde_json::Value {
    let ended = folder.spelter(line);
    assert_eq!(ended.status, status, "{line}: {}", ended.stderr);
    serde_json::from_str(&ended.stdout).unwrap()
}

fn text_of(folder: &Folder, name: &str) -> String {
    String::from_utf8(folder.read(name)).unwrap()
}

#[test]
fn shards_are_continued_and_merged() {
    let folder = Folder::new("jobs_shards");
    folder.good(&format!("{JOBS} --results whole.jsonl"));
    assert_eq!(text_of(&folder, "whole.jsonl").lines().count(), 61);
    folder.good(&format!("{JOBS} --shard 1/3 --results 1.jsonl"));
    folder.good(&format!("{JOBS} --shard 3/3 --results 3.jsonl"));
    // The second shard was killed while it wrote its fifth result.
    let second = folder.good(&format!("{JOBS} --shard 2/3 --results 2.jsonl"));
    assert_eq!(second, "20 of 60 blocks of programs, shard 2/3, in 2.jsonl\n");
    let complete = text_of(&folder, "2.jsonl");
    let part: Vec<&str> = complete.lines().take(5).collect();
    folder.write("2.jsonl", format!("{}\n{{\"job\":13,\"re", part.join("\n")).as_bytes());

    let ended = folder.spelter("merge 1.jsonl 2.jsonl 3.jsonl --out part.jsonl");
    assert_eq!((ended.status, ended.stdout.lines().next()), (1, Some("litmus --generate: 44 of 60 jobs")));
    assert!(ended.stderr.starts_with("error: 16 of 60 jobs are missing: 13, 16, 19, 22,"), "{}", ended.stderr);

    // Of a shard that has no file, jobs are not listed.
    let ended = folder.spelter("merge 1.jsonl 2.jsonl");
    let message = "error: 36 of 60 jobs are missing: shard 3/3 has no file; 2/3 lacks 16 jobs\n";
    assert_eq!((ended.status, ended.stderr.as_str()), (1, message));
    let value = json_of(&folder, 1, "merge 2.jsonl --json");
    assert_eq!(value["missing_shards"], serde_json::json!(["1/3", "3/3"]));
    let ended = folder.spelter("merge 2.jsonl");
    assert!(
        ended.stderr.ends_with("missing: shards 1/3 and 3/3 have no file; 2/3 lacks 16 jobs\n"),
        "{}",
        ended.stderr
    );

    assert_eq!(folder.good(&format!("{JOBS} --shard 2/3 --results 2.jsonl")), second);
    assert_eq!(text_of(&folder, "2.jsonl"), complete);
    let done = folder.json(&format!("{JOBS} --shard 2/3 --results 2.jsonl --json"));
    assert_eq!(done, serde_json::json!({ "done": 20, "jobs": 60, "shard": "2/3", "results": "2.jsonl" }));
    let value = folder.json("merge 3.jsonl 2.jsonl 1.jsonl --out all.jsonl --json");
    assert_eq!((&value["done"], &value["missing"]), (&60.into(), &serde_json::json!([])));
    assert_eq!(value["totals"]["tests"], 3840);
    assert_eq!((&value["failed"], &value["missing_shards"]), (&0.into(), &serde_json::json!([])));
    assert_eq!(text_of(&folder, "all.jsonl"), text_of(&folder, "whole.jsonl"));
}

/// JSON lists some of a huge number of shards, and has the number of all.
#[test]
fn shards_without_a_file_are_counted() {
    let folder = Folder::new("jobs_count");
    folder.good(&format!("{JOBS} --shard 2/3 --results 2.jsonl"));
    let value = json_of(&folder, 1, "merge 2.jsonl --json");
    assert_eq!(
        (&value["missing_shards"], &value["missing_shards_count"]),
        (&serde_json::json!(["1/3", "3/3"]), &2.into())
    );
    folder.good(&format!("{JOBS} --results whole.jsonl"));
    assert_eq!(folder.json("merge whole.jsonl --json")["missing_shards_count"], 0);
    let header = r#"{"build":null,"command":"c","jobs":2000000000000,"settings":{},"shard":"7/1000000000000"}"#;
    folder.write("huge.jsonl", format!("{header}\n").as_bytes());
    let value = json_of(&folder, 1, "merge huge.jsonl --json");
    assert_eq!(value["missing_shards_count"], 999_999_999_999_u64);
    // One of the shards that are listed has a file.
    assert_eq!(value["missing_shards"].as_array().map(Vec::len), Some(65_535));
}

/// A finding has the title and the place of one job, whatever the order of the files.
#[test]
fn the_order_of_files_does_not_matter() {
    let folder = Folder::new("jobs_order");
    for (job, severity) in [(0, "warning"), (1, "error"), (2, "error")] {
        let name = format!("{}.jsonl", job + 1);
        let header = serde_json::json!({
            "build": null, "command": "c", "jobs": 3, "settings": {}, "shard": format!("{}/3", job + 1),
        });
        let finding = serde_json::json!({
            "fingerprint": "aa", "id": "R", "severity": severity, "title": format!("of job {job}"), "count": 1,
            "second": { "file": "a.wgsl", "line": 10 + job, "column": 2 },
        });
        let line = serde_json::json!({ "failed": false, "job": job, "result": { "findings": [finding] } });
        folder.write(&name, format!("{header}\n{line}\n").as_bytes());
    }
    for files in ["1 2 3", "1 3 2", "2 1 3", "2 3 1", "3 1 2", "3 2 1"] {
        let names: Vec<String> = files.split(' ').map(|number| format!("{number}.jsonl")).collect();
        let text = folder.good(&format!("merge {}", names.join(" ")));
        let finding = "error[R]: of job 1 at a.wgsl:11:2: 3 times, in 3 jobs, first in job 0";
        assert_eq!(text.lines().last(), Some(finding), "{files}");
    }
}

#[test]
fn files_of_other_job_arrays_are_refused() {
    let folder = Folder::new("jobs_refused");
    folder.good(&format!("{JOBS} --shard 1/2 --results a.jsonl"));
    for (line, expected) in [
        (format!("{JOBS} --results a.jsonl"), "a.jsonl: it is of shard 1/2, not of 1/1"),
        ("litmus --generate --events 2 --shard 1/2 --results a.jsonl".to_owned(), "a.jsonl: it has results of another"),
        ("merge a.jsonl b.jsonl".to_owned(), "b.jsonl"),
    ] {
        let message = folder.error(&line);
        assert!(message.starts_with(expected), "{line}: {message}");
    }
    folder.write("b.jsonl", b"something else\n");
    assert!(folder.error("merge a.jsonl b.jsonl").starts_with("b.jsonl: not a file of results"));
    let other = text_of(&folder, "a.jsonl").replacen("\"racy\":", "\"racy\":7", 1);
    folder.write("b.jsonl", other.as_bytes());
    let message = folder.error("merge a.jsonl b.jsonl");
    assert!(message.contains("has another result in an earlier file"), "{message}");
}

#[test]
fn results_of_two_builds_are_kept_apart() {
    let folder = Folder::new("jobs_builds");
    folder.good(&format!("{JOBS} --shard 1/2 --results 1.jsonl"));
    folder.good(&format!("{JOBS} --shard 2/2 --results 2.jsonl"));
    let second = text_of(&folder, "2.jsonl");
    let build = second.split('"').nth(3).unwrap();
    assert!(second.starts_with("{\"build\":\"") && build.starts_with(env!("CARGO_PKG_VERSION")), "{build}");
    let lines: Vec<&str> = second.lines().take(5).collect();
    folder.write("2.jsonl", format!("{}\n", lines.join("\n").replace(build, "0.0.1 other")).as_bytes());
    let line = format!("{JOBS} --shard 2/2 --results 2.jsonl");
    let message = folder.error(&line);
    assert!(message.contains(&format!("another build, 0.0.1 other, not of {build}: --any-build")), "{message}");
    folder.good(&format!("{line} --any-build"));
    let message = folder.error("merge 1.jsonl 2.jsonl");
    assert!(message.starts_with("2.jsonl: it has results of another build, 0.0.1 other"), "{message}");
    let value = folder.json("merge 1.jsonl 2.jsonl --any-build --json");
    assert_eq!((&value["done"], &value["build"]), (&60.into(), &serde_json::Value::Null));
    assert!(folder.usage("litmus --generate --any-build").contains("--results"));
}

/// The report of a continued run is that of all its tests, also the exit status.
#[test]
fn a_failure_of_an_earlier_run_stays_one() {
    let folder = Folder::new("jobs_failures");
    let test = include_str!("../../../driver/memory-model/tests/litmus/extra/mp-private.test");
    let wrong = test.replace("SATISFIABLE", "NOSOLUTION");
    assert_ne!(test, wrong);
    folder.write("tests/a.test", wrong.as_bytes());
    folder.write("tests/b.test", b"no test\n");
    let first = folder.spelter("litmus tests --results r.jsonl");
    let again = folder.spelter("litmus tests --results r.jsonl");
    assert_eq!((first.status, again.status), (1, 1), "{}", again.stderr);
    // After the time.
    let counts =
        |stdout: &str| stdout.lines().last().and_then(|line| line.split_once(" ms: ")).map(|(_, of)| of.to_owned());
    assert_eq!(counts(&first.stdout), counts(&again.stdout));
    assert!(counts(&first.stdout).is_some(), "{}", first.stdout);
    let error = |stderr: &str| stderr.lines().last().map(str::to_owned);
    assert_eq!(error(&first.stderr), error(&again.stderr));
    let merged = json_of(&folder, 3, "merge r.jsonl --json");
    assert_eq!(merged["failed"], 2);
    assert_eq!((&merged["totals"]["differences"], &merged["totals"]["error"]), (&1.into(), &1.into()));
    // The results of a file that was changed since are not of its text.
    folder.write("tests/a.test", test.as_bytes());
    assert!(folder.error("litmus tests --results r.jsonl").contains("results of another"));
    // What is put together is not overwritten.
    assert!(folder.error("merge r.jsonl --out r.jsonl").contains("--out needs another name"));
}

/// So are scripts; the report is that of all, whichever run had them.
#[test]
fn scripts_are_divided_and_continued() {
    let folder = Folder::new("jobs_scripts");
    let script = |expected: u32| {
        format!(
            "#!amber\nBUFFER data DATA_TYPE uint32 SIZE 4 FILL 7\nEXPECT data IDX 0 EQ {expected} {expected} \
             {expected} {expected}\n"
        )
    };
    for (name, expected) in [("a", 7), ("b", 8), ("c", 7), ("d", 7)] {
        folder.write(&format!("scripts/{name}.amber"), script(expected).as_bytes());
    }
    let whole = folder.spelter("test scripts --results whole.jsonl");
    assert_eq!((whole.status, whole.stdout.lines().last()), (1, Some("3 passed, 1 failed, 0 skipped")));
    folder.spelter("test scripts --shard 1/2 --results 1.jsonl");
    folder.spelter("test scripts --shard 2/2 --results 2.jsonl");
    // The second shard was killed after its first script.
    let part: Vec<_> = text_of(&folder, "2.jsonl").lines().take(2).map(str::to_owned).collect();
    folder.write("2.jsonl", format!("{}\n{{\"jo", part.join("\n")).as_bytes());
    let ended = folder.spelter("test scripts --shard 2/2 --results 2.jsonl");
    let lines = [
        "FAIL  scripts/b.amber, of an earlier run",
        "      3:1: byte 0 of `data` (value 0): 7 EQ 8 is false",
        "pass  scripts/d.amber",
        "1 passed, 1 failed, 0 skipped",
    ];
    assert_eq!(ended.stdout.lines().collect::<Vec<_>>(), lines);
    assert_eq!(ended.status, 1, "the failure of the earlier run");
    assert!(ended.stderr.starts_with("note: 1 of these results"), "{}", ended.stderr);
    let merged = folder.spelter("merge 2.jsonl 1.jsonl --out all.jsonl");
    assert_eq!((merged.status, merged.stderr.as_str()), (3, "error: 1 job failed: 1\n"));
    // What is missing comes first: the command has to be continued.
    let merged = folder.spelter("merge 2.jsonl");
    let message = "error: 2 of 4 jobs are missing: shard 1/2 has no file; 1 job failed: 1\n";
    assert_eq!((merged.status, merged.stderr.as_str()), (1, message));
    assert_eq!(text_of(&folder, "all.jsonl"), text_of(&folder, "whole.jsonl"));
}

/// The device counts as it takes effect, so that options, variables and defaults that mean the same are one job array.
#[test]
fn scripts_on_another_device_are_another_job_array() {
    let folder =
        Folder::with("jobs_device", "a.amber", "#!amber\nBUFFER b DATA_TYPE uint32 DATA 7 END\nEXPECT b IDX 0 EQ 7\n");
    let run = |options: &str, variable: (&str, &str)| {
        folder.with_environment(&format!("test a.amber --results r.jsonl {options}"), &[variable])
    };
    let same = [
        ("--backend interpreter --workers 3", ("SPELTER_STATS", "")),
        ("--backend interpreter --workers 3 --time-limit 60 --schedule ascending", ("SPELTER_STATS", "")),
        ("--backend interpreter", ("SPELTER_WORKERS", "3")),
    ];
    for (options, variable) in same {
        let ended = run(options, variable);
        assert_eq!(ended.status, 0, "{options} {variable:?}: {}", ended.stderr);
    }
    for (options, variable, problem) in [
        ("--backend interpreter --workers 2", ("SPELTER_STATS", ""), "its device.workers is 3, not 2"),
        ("--backend interpreter", ("SPELTER_WORKERS", "5"), "its device.workers is 3, not 5"),
        (
            "--workers 3 --backend interpreter --schedule reverse",
            ("SPELTER_STATS", ""),
            "its device.schedule is \"ascending\", not \"reverse\"",
        ),
    ] {
        let ended = run(options, variable);
        let message = format!("error: r.jsonl: it has results of another job array: {problem}\n");
        assert_eq!((ended.status, ended.stderr), (1, message), "{options} {variable:?}");
    }
}

/// So are the orders of a checked run.
#[test]
fn orders_of_a_run_are_divided() {
    let text = "@group(0) @binding(0) var<storage, read_write> last: u32;
        @compute @workgroup_size(1) fn main(@builtin(workgroup_id) id: vec3<u32>) { last = id.x; }";
    let folder = Folder::with("jobs_orders", "last.wgsl", text);
    let line = "run last.wgsl --bind 0.0=zeros:4 --groups 4 --check --error-exitcode 0 --many-seeds 6";
    for (shard, file) in [("1/1", "whole.jsonl"), ("1/2", "1.jsonl"), ("2/2", "2.jsonl"), ("2/2", "2.jsonl")] {
        let ended = folder.spelter(&format!("{line} --shard {shard} --results {file}"));
        assert_eq!(ended.status, 0, "{}", ended.stderr);
    }
    // Errors of orders that ran earlier count, too.
    let again = line.replace("--error-exitcode 0", "--error-exitcode 9");
    let again = folder.spelter(&format!("{again} --shard 2/2 --results 2.jsonl"));
    assert_eq!(again.status, 9, "{}", again.stderr);
    assert!(again.stderr.contains("note: 2.jsonl has errors of orders that ran earlier: "), "{}", again.stderr);
    // A continued run reports what the earlier orders found, too: as often as all in one process.
    let whole = folder.spelter(&format!("{line} --json"));
    let again = folder.spelter(&format!("{line} --results whole.jsonl --json"));
    let [whole, again] = [whole, again].map(|ended| serde_json::from_str::<serde_json::Value>(&ended.stdout).unwrap());
    assert_eq!(again["findings"][0]["count"], whole["findings"][0]["count"], "{again}");
    assert_eq!(again["depends_on_order"], whole["depends_on_order"]);
    assert!(whole["depends_on_order"].is_string(), "{whole}");
    let other =
        folder.error("run last.wgsl --bind 0.0=zeros:4 --groups 5 --check --many-seeds 6 --results whole.jsonl");
    assert_eq!(other, "whole.jsonl: it has results of another job array: other options or suppressions were given");
    let other = folder.error(&format!("{line} --results whole.jsonl --time-limit 7"));
    assert!(other.ends_with("another job array: its device.time_limit is 60.0, not 7.0"), "{other}");
    let value = folder.json("merge 1.jsonl 2.jsonl --out all.jsonl --json");
    assert_eq!(value["done"], 6);
    assert!(value["totals"]["findings"].as_u64().unwrap() >= 6, "{value}");
    assert_eq!(text_of(&folder, "all.jsonl"), text_of(&folder, "whole.jsonl"));
}

/// Results are of the contents of the files that options name.
#[test]
fn orders_of_other_inputs_are_another_job_array() {
    let text = "@group(0) @binding(0) var<storage, read_write> d: array<u32>;
        @compute @workgroup_size(1) fn main() { d[0] += 1u; }";
    let folder = Folder::with("jobs_inputs", "add.wgsl", text);
    folder.write("in.bin", &[0; 4]);
    folder.write("known.txt", b"rule:SPELTER-RACE-WAW\n");
    let line = "run add.wgsl --bind 0.0=@in.bin --check --many-seeds 2 --suppressions known.txt --results r.jsonl";
    assert_eq!(folder.spelter(line).status, 0);
    assert_eq!(folder.spelter(line).status, 0);
    folder.write("known.txt", b"rule:SPELTER-RACE-RAW\n");
    let error = folder.error(line);
    assert_eq!(error, "r.jsonl: it has results of another job array: other options or suppressions were given");
    folder.write("known.txt", b"rule:SPELTER-RACE-WAW\n");
    folder.write("in.bin", &[1; 4]);
    let error = folder.error(line);
    assert_eq!(error, "r.jsonl: it has results of another job array: a file that an option names has changed since");
}

/// Those of a program are of its file.
#[cfg(unix)]
#[test]
fn orders_of_another_program_are_another_job_array() {
    use std::os::unix::fs::PermissionsExt as _;
    let folder = Folder::new("jobs_program");
    let write = |text: &str| {
        folder.write("program", format!("#!/bin/sh\n{text}\n").as_bytes());
        std::fs::set_permissions(folder.path().join("program"), std::fs::Permissions::from_mode(0o755)).unwrap();
    };
    let line = "check --many-seeds 2 --allow-unchecked --results r.jsonl";
    write("exit 0");
    assert_eq!(folder.spelter(&format!("{line} -- ./program")).status, 0);
    write("true; exit 0");
    let error = folder.error(&format!("{line} -- ./program"));
    assert!(error.starts_with("r.jsonl: it has results of another build, "), "{error}");
    assert!(error.matches(" with program ").count() == 2 && error.ends_with(": --any-build continues it"), "{error}");
    assert_eq!(folder.spelter(&format!("{line} --any-build -- ./program")).status, 0);
    // Now it has those of two, so that neither of them passes as the only one.
    write("exit 0");
    assert!(folder.error(&format!("{line} -- ./program")).contains("it has results of another build"));
    assert!(folder.error("merge r.jsonl").contains("--any-build adds them"));
}

/// A program that counts its runs in a file, writes what the driver would, and has a race in the order of seed 2. While
/// the file `stop` exists, it is killed in the order of seed 3.
const PROGRAM: &str = r#"
echo "$SPELTER_SCHEDULE" >> runs
emit() { echo "$1" >> "$SPELTER_CHECK_JSON"; }
emit '{"started":{"process":'$$'}}'
case "$SPELTER_SCHEDULE" in
random:2) emit '{"id":"SPELTER-RACE-RAW","severity":"error","title":"t","count":3,"fingerprint":"aa","process":'$$'}';;
random:3) [ -e stop ] && kill -TERM $$;;
random:4) failed=5;;
esac
emit '{"summary":{"process":'$$',"suppressed":0,"counts":{},"checked":{"dispatches":2}}}'
exit ${failed:-0}
"#;

/// So are the orders in which a Vulkan program is checked. A shard whose program is killed is continued, and it reports
/// what it found before.
#[test]
fn orders_of_a_program_are_divided_and_continued() {
    let folder = Folder::with("jobs_check", "program", PROGRAM);
    let line = |options: &str| format!("check --many-seeds 6 {options} -- sh program");
    let whole = folder.spelter(&line("--results whole.jsonl --json whole.json"));
    assert_eq!(whole.status, 66, "{}", whole.stderr);
    assert!(whole.stderr.ends_with("note: checked: 1 error; 12 dispatches, 6 processes\n"), "{}", whole.stderr);

    // The program is stopped in its second order of three: the order has no result, and no other one is run.
    folder.write("stop", b"");
    folder.write("runs", b"");
    let stopped = folder.spelter(&line("--shard 2/2 --results 2.jsonl"));
    assert_eq!(stopped.status, 128 + 15, "{}", stopped.stderr);
    assert!(stopped.stderr.contains("note: order 3 has no result, since the program was stopped\n"));
    assert_eq!(text_of(&folder, "runs"), "random:1\nrandom:3\n");
    let missing = folder.spelter("merge 2.jsonl").stderr;
    assert_eq!(missing, "error: 5 of 6 jobs are missing: shard 1/2 has no file; 2/2 lacks 2 jobs\n");
    std::fs::remove_file(folder.path().join("stop")).unwrap();
    folder.write("runs", b"");
    let continued = folder.spelter(&line("--shard 2/2 --results 2.jsonl"));
    assert_eq!((continued.status, text_of(&folder, "runs").as_str()), (0, "random:3\nrandom:5\n"));
    assert!(
        continued.stderr.ends_with("note: checked: no data race was observed; 6 dispatches, 3 processes\n"),
        "{}",
        continued.stderr
    );

    // Of the other shard all is done the second time. Its error counts all the same.
    for runs in ["\nrandom:2\nrandom:4\n", ""] {
        folder.write("runs", b"");
        let ended = folder.spelter(&line("--shard 1/2 --results 1.jsonl --error-exitcode 7"));
        assert_eq!((ended.status, text_of(&folder, "runs").as_str()), (7, runs), "{}", ended.stderr);
    }
    // As does the status of a program that failed in one of its orders.
    assert_eq!(folder.spelter(&line("--shard 1/2 --results 1.jsonl --error-exitcode 0")).status, 5);

    // The order with the error, and the one whose program failed.
    let value = json_of(&folder, 3, "merge 1.jsonl 2.jsonl --out all.jsonl --json");
    assert_eq!((&value["failed"], &value["failed_jobs"]), (&2.into(), &serde_json::json!([[2, 2], [4, 4]])));
    let found = serde_json::json!([{ "fingerprint": "aa", "severity": "error", "id": "SPELTER-RACE-RAW", "title": "t",
        "place": null, "count": 3, "jobs": 1, "first_job": 2 }]);
    assert_eq!(value["findings"], found);
    assert_eq!((&value["done"], &value["totals"]["findings"]), (&6.into(), &1.into()));
    assert_eq!(text_of(&folder, "all.jsonl"), text_of(&folder, "whole.jsonl"));

    let other = folder.error("check --many-seeds 6 --profile spec --shard 1/2 --results 1.jsonl -- sh program");
    assert!(other.starts_with("1.jsonl: it has results of another job array"), "{other}");
    assert!(folder.usage("check --results r.jsonl -- sh program").contains("--many-seeds"));
    let ended = folder.spelter("check --many-seeds 2 --results none.jsonl -- no-such-program");
    assert_eq!((ended.status, text_of(&folder, "none.jsonl").lines().count()), (127, 1), "{}", ended.stderr);
    assert_eq!(ended.stderr.matches("error: no-such-program").count(), 1);
}

/// Tests of the memory model are a job array, too.
#[test]
fn litmus_tests_are_decided_once() {
    let folder = Folder::new("jobs_litmus");
    folder.good("litmus --generate --events 2 --count 6 --out tests");
    let first = folder.good("litmus tests --results r.jsonl --json");
    let kept = text_of(&folder, "r.jsonl");
    let again = folder.spelter("litmus tests --results r.jsonl --json");
    assert!(first.lines().count() > 2 && again.stdout.lines().count() == 1, "{first}\n{}", again.stdout);
    assert!(again.stderr.contains("are in the file of results"), "{}", again.stderr);
    assert_eq!(text_of(&folder, "r.jsonl"), kept);
    assert!(!kept.contains("microseconds") && !kept.contains("tests/"), "{kept}");
}
