//! `spelter check -- COMMAND`: the variables of the program, what its processes found in one report, files, statuses.
//! The programs are scripts that write what the driver would: the driver's own tests are in `driver/icd`.

#![allow(clippy::unwrap_used, reason = "the helpers of tests are tests too")]

use std::io::{BufRead, BufReader, Read};
use std::path::Path;
use std::process::{Command, Stdio};

use crate::common::Folder;
use serde_json::{Value as Json, json};

/// A line about a finding.
fn finding(fingerprint: &str, severity: &str, schedule: &str) -> Json {
    let access = |action: &str, line: u64| {
        json!({
            "action": action, "kernel": "main", "file": "scan.comp", "line": line, "column": 5, "text": null,
            "path": [], "word": line * 10, "workgroup": [0, 0, 0], "local": [0, 0, 0],
        })
    };
    json!({
        "id": "SPELTER-RACE-RAW", "severity": severity, "title": "data race (read after write)", "memory": null,
        "first": access("write", 3), "second": access("read", 4), "conditions": ["nothing orders them"],
        "repair": [{ "text": "barrier()", "line": null }], "count": 2, "schedule": schedule,
        "confirmed": severity == "error", "fingerprint": fingerprint, "replay": "THE TEST", "process": "PROCESS",
    })
}

/// Writes a script `program` that appends these lines, in which PROCESS stands for its number, and runs `end`.
fn script(folder: &Folder, lines: &[Json], end: &str) {
    let mut text = String::from("emit() { sed \"s/\\\"PROCESS\\\"/$$/g\" >> \"$SPELTER_CHECK_JSON\"; }\n");
    let summary = json!({ "summary": {
        "process": "PROCESS", "suppressed": 1, "counts": { "aa": 7 },
        "checked": { "dispatches": 5, "skipped": 1, "undecided": 1, "accesses_not_checked": 9 },
    } });
    let started = json!({ "started": { "process": "PROCESS", "program": "script" } });
    text += &format!("emit <<'END'\n{started}\nEND\n");
    for line in lines {
        text += &format!("emit <<'END'\n{line}\nEND\n");
    }
    text += &format!("case \"$1\" in kill) kill -9 $$;; esac\nemit <<'END'\n{summary}\nEND\n{end}\n");
    folder.write("program", text.as_bytes());
}

fn lines(folder: &Folder, name: &str) -> Vec<Json> {
    let text = String::from_utf8(folder.read(name)).unwrap();
    text.lines().map(|line| serde_json::from_str(line).unwrap()).collect()
}

#[test]
fn the_program_gets_what_to_check_in_variables() {
    let folder = Folder::new("check-variables");
    folder.write("known.txt", b"kernel:k  # known\n");
    let line = "check --profile spec --shard 2/3 --check-memory 2M --only RACE-*,BARRIER --suppress line:a.comp:7 \
        --suppressions known.txt --host trap --schedule random:7 --graphics -- sh program";
    folder.write("program", b"env | grep -e SPELTER_ -e VK_DRIVER; cat $SPELTER_CHECK_SUPPRESSIONS\n");
    let ended = folder.spelter(line);
    // Without a device nothing is checked.
    assert_eq!(ended.status, 67, "{}", ended.stderr);
    for expected in [
        "SPELTER_CHECK=spec\n",
        "SPELTER_CHECK_SHARD=2/3\n",
        "SPELTER_CHECK_MEMORY=2097152\n",
        "SPELTER_CHECK_ONLY=RACE-*,BARRIER\n",
        "SPELTER_CHECK_EXITCODE=0\n",
        "SPELTER_CHECK_HOST=trap\n",
        "SPELTER_SCHEDULE=random:7\n",
        "SPELTER_ADVERTISE_GRAPHICS=1\n",
        "VK_DRIVER_FILES=",
        "line:a.comp:7\nkernel:k\n",
    ] {
        assert!(ended.stdout.contains(expected), "{expected}\n{}", ended.stdout);
    }
    let note = "note: nothing was checked: no process created a device of Spelter\n\
        note: SPELTER_CHECK=1 cargo test checks tests with the crates spelter and spelter-wgpu\n";
    assert_eq!(ended.stderr, note);
    let path = ended.stdout.lines().find_map(|line| line.strip_prefix("SPELTER_CHECK_JSON=")).unwrap();
    assert!(!Path::new(path).parent().unwrap().exists(), "the folder still exists");
}

#[test]
fn findings_are_added_up_and_written() {
    let folder = Folder::new("check-merge");
    let found = [finding("aa", "warning", "ascending"), finding("aa", "error", "ascending")];
    script(&folder, &found, "exit 0");
    let line = "check --json out.jsonl --sarif out.sarif --litmus race.test --dot race.dot -- sh program";
    let ended = folder.spelter(line);
    assert_eq!(ended.status, 66, "{}", ended.stderr);
    for part in [
        "note: race.test: data race (read after write)\n",
        "note: race.dot: data race (read after write)\n",
        "note: 9 accesses were not checked, since the shadow of the memory exceeds --check-memory\n",
        "note: 1 suspicion was given up: it is a warning\n",
        "note: checked: 1 error, 1 suppressed; 5 dispatches, 1 not checked (--shard), 1 process\n",
    ] {
        assert!(ended.stderr.contains(part), "{part}\n{}", ended.stderr);
    }
    let written = lines(&folder, "out.jsonl");
    assert_eq!(written.len(), 2);
    assert_eq!((&written[0]["severity"], &written[0]["count"]), (&"error".into(), &7.into()));
    assert_eq!((&written[1]["summary"]["errors"], &written[1]["summary"]["processes"]), (&1.into(), &1.into()));
    let sarif: Json = serde_json::from_slice(&folder.read("out.sarif")).unwrap();
    let result = &sarif["runs"][0]["results"][0];
    assert_eq!((&result["level"], &result["occurrenceCount"]), (&"error".into(), &7.into()));
    let place = &result["locations"][0]["physicalLocation"];
    assert_eq!((&place["artifactLocation"]["uri"], &place["region"]["startLine"]), (&"scan.comp".into(), &4.into()));
    assert_eq!(folder.read("race.test"), b"// data race (read after write)\nTHE TEST");
    let picture = String::from_utf8(folder.read("race.dot")).unwrap();
    assert!(picture.contains("first -> second [label=\"nothing orders them\\l\""), "{picture}");
    assert_eq!(folder.spelter("check --error-exitcode 7 -- sh program").status, 7);
    assert_eq!(folder.spelter("check --error-exitcode 0 --allow-unchecked -- sh program").status, 0);
}

#[test]
fn the_status_is_the_programs_if_there_is_no_error() {
    let folder = Folder::new("check-status");
    script(&folder, &[finding("aa", "warning", "ascending")], "exit 5");
    let ended = folder.spelter("check -- sh program");
    assert_eq!(ended.status, 5);
    assert!(ended.stderr.contains("checked: 1 warning, 1 suppressed"), "{}", ended.stderr);
    // Not all was checked.
    script(&folder, &[finding("aa", "warning", "ascending")], "exit 0");
    assert_eq!(folder.spelter("check -- sh program").status, 67);
    assert_eq!(folder.spelter("check --allow-unchecked -- sh program").status, 0);
    // A signal, as shells have it: its findings are there, its counts are not.
    script(&folder, &[finding("aa", "note", "ascending")], "exit 0");
    let ended = folder.spelter("check -- sh program kill");
    assert_eq!(ended.status, 128 + 9, "{}", ended.stderr);
    let part = "note: 1 of 1 processes ended without their counts, which are missing below\n";
    assert!(ended.stderr.contains(part) && ended.stderr.contains("checked: 1 note; 0 dispatches"), "{}", ended.stderr);
    let ended = folder.spelter("check -- no-such-program");
    assert_eq!(ended.status, 127);
    assert!(ended.stderr.starts_with("error: no-such-program: "), "{}", ended.stderr);
}

#[test]
fn a_program_of_which_not_all_was_checked_is_no_success() {
    let folder = Folder::new("check-nothing");
    // Another driver, or none.
    folder.write("other", b"exit 0\n");
    // It has not waited for what it submitted; it ended by `_exit`.
    let started = "emit() { sed \"s/PROCESS/$$/\" >> \"$SPELTER_CHECK_JSON\"; }\n\
        echo '{\"started\":{\"process\":PROCESS}}' | emit\n";
    folder.write("killed", started.as_bytes());
    let summary = r#"echo '{"summary":{"process":PROCESS,"unfinished":true,"counts":{},"checked":{}}}' | emit"#;
    folder.write("early", format!("{started}{summary}\n").as_bytes());
    // It made a device of Spelter, and ran its kernels elsewhere.
    let summary = r#"echo '{"summary":{"process":PROCESS,"counts":{},"checked":{"dispatches":0}}}' | emit"#;
    folder.write("elsewhere", format!("{started}{summary}\n").as_bytes());
    for (program, part) in [
        ("elsewhere", "note: no dispatch and no transfer ran on a device of Spelter: nothing was checked\n"),
        ("elsewhere", "note: programs that require a graphics queue (wgpu, Dawn, taichi) need --graphics\n"),
        ("other", "note: nothing was checked: no process created a device of Spelter\n"),
        ("other", "note: programs that require a graphics queue (wgpu, Dawn, taichi) need --graphics\n"),
        ("killed", "note: 1 of 1 processes ended without their counts, which are missing below\n"),
        ("early", "note: 1 of 1 processes ended before all that they submitted had run and was checked\n"),
        ("early", "note: checked: no data race was observed in what was checked; 0 dispatches, 1 process\n"),
    ] {
        let ended = folder.spelter(&format!("check -- sh {program}"));
        assert_eq!(ended.status, 67, "{program}: {}", ended.stderr);
        assert!(ended.stderr.contains(part), "{program}: {}", ended.stderr);
        assert_eq!(folder.spelter(&format!("check --allow-unchecked -- sh {program}")).status, 0, "{program}");
    }
}

#[test]
fn a_program_that_only_transfers_is_checked() {
    let folder = Folder::new("check-transfers");
    let program = "emit() { sed \"s/PROCESS/$$/\" >> \"$SPELTER_CHECK_JSON\"; }\n\
        echo '{\"started\":{\"process\":PROCESS}}' | emit\n\
        echo '{\"summary\":{\"process\":PROCESS,\"counts\":{},\"checked\":{\"dispatches\":0,\"transfers\":3}}}' | emit\n";
    folder.write("program", program.as_bytes());
    let ended = folder.spelter("check -- sh program");
    let expected = "note: checked: no data race was observed; 0 dispatches, 3 transfers, 1 process\n";
    assert_eq!((ended.status, &ended.stderr[..]), (0, expected));
}

/// A program that reads back maps memory without a barrier to the host each time.
#[test]
fn notes_on_reads_of_the_host_are_summed_up() {
    let folder = Folder::new("check-host-notes");
    let note = |print: &str| {
        let mut note = finding(print, "note", "ascending");
        note["id"] = "SPELTER-HOST".into();
        note
    };
    let part = "note: 3 notes of SPELTER-HOST, of which each process prints the first; --json has all\n";
    for (notes, is_said) in [(&["aa", "bb", "cc"][..], true), (&["aa"][..], false)] {
        script(&folder, &notes.iter().map(|print| note(print)).collect::<Vec<_>>(), "exit 0");
        let ended = folder.spelter("check --allow-unchecked --json out.jsonl -- sh program");
        assert_eq!((ended.status, ended.stderr.contains(part)), (0, is_said), "{}", ended.stderr);
        assert_eq!(lines(&folder, "out.jsonl").len(), notes.len() + 1);
    }
}

#[test]
fn many_seeds_run_the_program_in_many_orders() {
    let folder = Folder::new("check-seeds");
    // An error in the second run only.
    script(&folder, &[], "case \"$SPELTER_SCHEDULE\" in random:1) emit < error;; esac; echo \"$SPELTER_SCHEDULE\"");
    folder.write("error", format!("{}\n", finding("bb", "error", "random:1")).as_bytes());
    let ended = folder.spelter("check --many-seeds 3 --json out.jsonl -- sh program");
    assert_eq!((ended.status, ended.stdout.as_str()), (66, "\nrandom:1\nrandom:2\n"), "{}", ended.stderr);
    assert!(ended.stderr.contains("note: run 2 of 3, --schedule random:1\n"), "{}", ended.stderr);
    let written = lines(&folder, "out.jsonl");
    assert_eq!((&written[0]["schedule"], &written[0]["count"]), (&"random:1".into(), &2.into()));
    let summary = &written[1]["summary"];
    assert_eq!(
        (&summary["runs"], &summary["processes"], &summary["checked"]["dispatches"]),
        (&3.into(), &3.into(), &15.into())
    );
}

#[test]
fn mistakes_are_reported_before_the_program_runs() {
    let folder = Folder::new("check-mistakes");
    for (options, problem) in [
        ("--json no/such/file", "no/such/file: its folder does not exist"),
        ("--sarif no/such/file", "no/such/file: its folder does not exist"),
        ("--suppressions none.txt", "none.txt: No such file"),
    ] {
        let message = folder.error(&format!("check {options} -- touch ran"));
        assert!(message.starts_with(problem), "{message}");
    }
    for (options, problem) in [
        ("--profile vague", "is not a profile"),
        ("--only nonsense", "is not a rule; the rules are SPELTER-RACE-RAW"),
        ("--shard 3/2", "there is no part 3 of 2"),
        ("--suppress nonsense", "a suppression is rule:"),
        ("--many-seeds 0", "0 is not in"),
        ("--many-seeds 2 --schedule reverse", "cannot be used with"),
        ("--error-exitcode 256", "256 is not in"),
    ] {
        let message = folder.usage(&format!("check {options} -- touch ran"));
        assert!(message.contains(problem), "{message}");
    }
    assert_eq!(folder.spelter("exec -- test -e ran").status, 1, "the program ran");
}

/// As by Ctrl-C. The program is in another process group here, and goes on.
#[cfg(unix)]
#[test]
fn the_folder_is_removed_when_a_signal_ends_the_process() {
    let folder = Folder::new("check-signal");
    folder.write("program", b"echo \"$SPELTER_CHECK_JSON\"; echo $$; exec sleep 100000\n");
    let mut command = Command::new(env!("CARGO_BIN_EXE_spelter"));
    command.current_dir(folder.path()).args(["check", "--", "sh", "program"]);
    let mut process = command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    let mut lines = BufReader::new(process.stdout.take().unwrap()).lines().map(Result::unwrap);
    let (file, program) = (lines.next().unwrap(), lines.next().unwrap());
    let temporary = Path::new(&file).parent().unwrap();
    assert!(temporary.is_dir(), "{file}");
    process.kill().unwrap();
    process.wait().unwrap();
    assert!(Command::new("sh").args(["-c", &format!("kill {program}")]).status().unwrap().success());
    // It ends when all processes have that write to it: the last one removes the folder.
    let mut errors = String::new();
    process.stderr.take().unwrap().read_to_string(&mut errors).unwrap();
    assert!(!temporary.exists(), "{file} {errors}");
}
