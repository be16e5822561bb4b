//! Job arrays of this crate's programs that are continued: a failure of an earlier run is one of the whole.

#![expect(clippy::unwrap_used, reason = "the helpers of tests are tests too")]

use std::path::PathBuf;
use std::process::{Command, Output};

use serde_json::{Value, json};
use spelter_tests::corpus;

/// A program with its options, in a folder of its own.
struct Job {
    program: &'static str,
    options: Vec<String>,
    folder: PathBuf,
}

impl Job {
    fn new(name: &str, program: &'static str, options: &str) -> Self {
        let folder = std::env::temp_dir().join(format!("spelter-continued-{name}-{}", std::process::id()));
        // What an earlier process with this number left.
        let _ = std::fs::remove_dir_all(&folder);
        std::fs::create_dir_all(&folder).unwrap();
        Self { program, options: options.split_whitespace().map(str::to_owned).collect(), folder }
    }

    fn file(&self) -> PathBuf {
        self.folder.join("r.jsonl")
    }

    fn run(&self, more: &[&str]) -> Output {
        let mut command = Command::new(self.program);
        command.current_dir(&self.folder).args(&self.options).args(more).arg("--results").arg(self.file());
        command.output().unwrap()
    }

    /// The status of a run, and the last line that it printed, as JSON.
    fn ended(&self) -> (Option<i32>, Value) {
        let Output { status, stdout, stderr } = self.run(&["--json"]);
        let stdout = String::from_utf8_lossy(&stdout);
        let last = stdout.lines().last().and_then(|line| serde_json::from_str(line).ok());
        (status.code(), last.unwrap_or_else(|| panic!("{stdout}\n{}", String::from_utf8_lossy(&stderr))))
    }

    /// Runs the jobs, changes the result of the first one, and continues. `member` of the totals is that of all jobs.
    fn fails_again(self, member: &str, change: impl Fn(&mut Value)) {
        let (status, first) = self.ended();
        assert_eq!(status, Some(0), "{first}");
        let (status, same) = self.ended();
        assert_eq!((status, &same[member]), (Some(0), &first[member]), "{same}");
        assert!(first[member].as_u64().is_some_and(|count| count > 0), "{first}");
        let text = std::fs::read_to_string(self.file()).unwrap();
        let mut lines: Vec<String> = text.lines().map(str::to_owned).collect();
        let mut line: Value = serde_json::from_str(&lines[1]).unwrap();
        assert_eq!(line["failed"], json!(false));
        change(&mut line["result"]);
        lines[1] = line.to_string();
        std::fs::write(self.file(), lines.join("\n") + "\n").unwrap();
        let (status, continued) = self.ended();
        assert_eq!((status, &continued[member]), (Some(1), &first[member]), "{continued}");
        // In words, too.
        assert_eq!(self.run(&[]).status.code(), Some(1));
        // What is not a result of the program is an error, and not one that passed.
        lines[1] = json!({ "job": line["job"], "result": {} }).to_string();
        std::fs::write(self.file(), lines.join("\n") + "\n").unwrap();
        let Output { status, stderr, .. } = self.run(&[]);
        let stderr = String::from_utf8_lossy(&stderr);
        assert!(!status.success() && stderr.contains("the result of job 0 is not one of this command"), "{stderr}");
        std::fs::remove_dir_all(&self.folder).unwrap();
    }
}

#[test]
fn a_race_that_was_missed_earlier_fails() {
    Job::new("races", env!("CARGO_BIN_EXE_races"), "--programs 3").fails_again("executions", |result| {
        (result["missed"], result["first_missed_seed"]) = (json!(1), json!(2));
    });
}

#[test]
fn a_defect_of_an_engine_that_was_found_earlier_fails() {
    Job::new("engines", env!("CARGO_BIN_EXE_races"), "--engines --programs 2").fails_again("programs", |result| {
        result["unreported"] = json!(1);
        result["defects"] = json!([{ "program": 1, "engine": "interpreter", "problem": "it races" }]);
    });
}

#[test]
fn a_program_of_commands_that_differed_earlier_fails() {
    Job::new("commands", env!("CARGO_BIN_EXE_commands"), "--programs 2").fails_again("programs", |result| {
        (result["missed"], result["differing_seeds"]) = (json!(1), json!([1]));
    });
}

/// Parts of a job array are the whole.
#[test]
fn programs_of_commands_are_divided() {
    let count = |shard: &str| {
        let job = Job::new(&format!("parts-{}", &shard[..1]), env!("CARGO_BIN_EXE_commands"), "--programs 130");
        let output = job.run(&["--json", "--shard", shard]);
        let lines = std::fs::read_to_string(job.file()).unwrap().lines().count();
        std::fs::remove_dir_all(&job.folder).unwrap();
        let object: Value = serde_json::from_slice(&output.stdout).unwrap();
        (object["programs"].as_u64().unwrap(), lines)
    };
    // The last block has two programs.
    assert_eq!((count("1/2"), count("2/2")), ((66, 3), (64, 2)));
}

#[test]
fn a_mutant_that_ended_a_process_earlier_fails() {
    Job::new("mutants", env!("CARGO_BIN_EXE_mutants"), "--count 4").fails_again("mutants", |result| {
        result["findings"] = json!([{ "mutant": 2, "what": "ends the process: signal: 11" }]);
    });
}

#[test]
fn a_program_on_which_engines_differed_earlier_fails() {
    Job::new("fuzz", env!("CARGO_BIN_EXE_fuzz"), "--programs 4 --threads 1").fails_again("programs", |result| {
        result["findings"] = json!([{ "program": 2, "what": "avx2: wrong memory" }]);
    });
}

/// Time that is over is no success: a batch system starts the shard again.
#[test]
fn blocks_of_programs_that_are_left_are_a_failure() {
    let job = Job::new("fuzz-left", env!("CARGO_BIN_EXE_fuzz"), "--programs 70 --threads 1 --shard 1/1");
    let ended = job.run(&["--seconds", "0"]);
    let stderr = String::from_utf8_lossy(&ended.stderr);
    assert_eq!(ended.status.code(), Some(75), "{stderr}");
    assert!(stderr.contains("error: 2 blocks are left: the same command continues with them"), "{stderr}");
    let (status, total) = job.ended();
    assert_eq!((status, &total["programs"]), (Some(0), &json!(70)), "{total}");
    std::fs::remove_dir_all(&job.folder).unwrap();
    // A job array has a number of jobs.
    let job = Job::new("fuzz-endless", env!("CARGO_BIN_EXE_fuzz"), "");
    assert_eq!(job.run(&[]).status.code(), Some(2));
    std::fs::remove_dir_all(&job.folder).unwrap();
}

#[test]
fn a_kernel_that_was_not_silent_earlier_fails() {
    let file = corpus::root().join("memory/workgroup_tree.wgsl");
    let options = format!("{} --originals --silent 2 --seeds 1", file.display());
    Job::new("sync_mutants", env!("CARGO_BIN_EXE_sync_mutants"), &options).fails_again("kernels", |result| {
        (result["objects"][0]["error_seed"], result["objects"][0]["errors"]) = (json!(1), json!(["RACE-RAW"]));
    });
}

#[test]
fn a_module_on_which_engines_disagreed_earlier_fails() {
    let file = corpus::root().join("memory/workgroup_tree.wgsl");
    let options = format!("{} --seeds 1", file.display());
    Job::new("modules", env!("CARGO_BIN_EXE_modules"), &options).fails_again("kernels", |result| {
        result["entries"][0]["findings"] = json!([{ "what": "avx2: wrong memory", "detail": "" }]);
    });
}

/// Results of a file are not those of the file that it has become, nor of another table of settings.
#[test]
fn results_of_a_file_that_was_edited_are_refused() {
    let text = std::fs::read_to_string(corpus::root().join("memory/workgroup_tree.wgsl")).unwrap();
    let programs = [
        ("modules", env!("CARGO_BIN_EXE_modules"), "--seeds 1"),
        ("sync_mutants", env!("CARGO_BIN_EXE_sync_mutants"), "--originals --silent 2 --seeds 1"),
    ];
    for (name, program, options) in programs {
        let job = Job::new(&format!("{name}-edited"), program, &format!("a.wgsl --families table.json {options}"));
        let write = |file: &str, text: &str| std::fs::write(job.folder.join(file), text).unwrap();
        let message = || String::from_utf8_lossy(&job.run(&[]).stderr).into_owned();
        write("a.wgsl", &text);
        write("table.json", "[]");
        assert!(job.run(&[]).status.success(), "{name}: {}", message());
        for (file, old, new) in
            [("a.wgsl", text.as_str(), format!("{text}// edited\n")), ("table.json", "[]", "[ ]".into())]
        {
            write(file, &new);
            assert!(message().contains("it has results of another job array"), "{name}: {file}: {}", message());
            write(file, old);
            assert!(job.run(&[]).status.success(), "{name}: {}", message());
        }
        std::fs::remove_dir_all(&job.folder).unwrap();
    }
}
