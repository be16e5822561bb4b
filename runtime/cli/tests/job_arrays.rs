//! Job arrays: shards that are killed, continued and merged give what a run without shards gives.

#![expect(clippy::unwrap_used, reason = "the helpers of tests are tests too")]

use crate::common::Folder;

const JOBS: &str = "litmus --generate --events 3 --count 60";

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
    assert_eq!(second, "20 of 60 programs, shard 2/3, in 2.jsonl\n");
    let complete = text_of(&folder, "2.jsonl");
    let part: Vec<&str> = complete.lines().take(5).collect();
    folder.write("2.jsonl", format!("{}\n{{\"job\":13,\"re", part.join("\n")).as_bytes());

    let ended = folder.spelter("merge 1.jsonl 2.jsonl 3.jsonl --out part.jsonl");
    assert_eq!((ended.status, ended.stdout.lines().next()), (1, Some("litmus --generate: 44 of 60 jobs")));
    assert!(ended.stderr.starts_with("error: 16 of 60 jobs are missing: 13, 16, 19, 22,"), "{}", ended.stderr);

    assert_eq!(folder.good(&format!("{JOBS} --shard 2/3 --results 2.jsonl")), second);
    assert_eq!(text_of(&folder, "2.jsonl"), complete);
    let value = folder.json("merge 3.jsonl 2.jsonl 1.jsonl --out all.jsonl --json");
    assert_eq!((&value["done"], &value["missing"]), (&60.into(), &serde_json::json!([])));
    assert_eq!(text_of(&folder, "all.jsonl"), text_of(&folder, "whole.jsonl"));
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
    let other = text_of(&folder, "a.jsonl").replacen("\"racy\":1", "\"racy\":7", 1);
    folder.write("b.jsonl", other.as_bytes());
    let message = folder.error("merge a.jsonl b.jsonl");
    assert!(message.contains("has another result in an earlier file"), "{message}");
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
    let value = folder.json("merge 1.jsonl 2.jsonl --out all.jsonl --json");
    assert_eq!(value["done"], 6);
    assert!(value["totals"]["findings"].as_u64().unwrap() >= 6, "{value}");
    assert_eq!(text_of(&folder, "all.jsonl"), text_of(&folder, "whole.jsonl"));
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
