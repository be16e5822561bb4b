//! The parent: gives files to children, replaces those that end or hang with one, collects their output.

use std::collections::VecDeque;
use std::io::Write as _;
use std::path::PathBuf;
use std::process::{Child, Command, ExitCode, Stdio};
use std::sync::mpsc::{RecvTimeoutError, Sender, channel};
use std::time::{Duration, Instant};

use serde_json::{Value, json};
use spelter_jobs::{JobArray, digest, digest_files, earlier, jobs_left};
use spelter_tests::children;

use crate::Args;
use crate::summary::Summary;

/// A child without output for this long hangs.
const SILENCE: Duration = Duration::from_secs(900);

/// A child and its file.
struct Worker {
    process: Option<Child>,
    heard: Instant,
    /// The number of the file that it has, and the lines about that.
    file: Option<u64>,
    lines: Vec<Value>,
}

pub(crate) fn run(args: &Args) -> Result<ExitCode, String> {
    let files = args.files();
    let array = job_array(args, &files);
    let mut results = args.array.open(&array).map_err(|error| error.to_string())?;
    let mut left: VecDeque<u64> = jobs_left(results.as_ref(), &array, args.array.shard).collect();
    let mut summary = Summary::new(args.json);
    let of_file = |result: &Value| {
        result["entries"].as_array()?.iter().for_each(|line| summary.line(line));
        Some(())
    };
    match earlier(results.as_ref(), of_file).map_err(|error| error.to_string())?.len() {
        0 => {}
        before => eprintln!("note: {before} files are those of an earlier run"),
    }
    let (sender, receiver) = channel();
    let count = args.jobs.clamp(1, left.len().max(1));
    let mut workers: Vec<Worker> = (0..count).map(|number| Worker::new(args, number, &sender)).collect();
    workers.iter_mut().for_each(|worker| worker.next(&mut left));
    while workers.iter().any(|worker| worker.process.is_some()) {
        match receiver.recv_timeout(Duration::from_secs(1)) {
            Ok((number, Some(line))) => {
                let worker: &mut Worker = &mut workers[number];
                worker.heard = Instant::now();
                if line["end"].is_null() {
                    summary.line(&line);
                    worker.lines.push(line);
                    continue;
                }
                if let (Some(results), Some(file)) = (&mut results, worker.file) {
                    results
                        .record(file, &result(&worker.lines), failed(&worker.lines))
                        .map_err(|error| error.to_string())?;
                }
                worker.next(&mut left);
            }
            Ok((number, None)) => {
                let worker = &mut workers[number];
                let status = worker.process.take().and_then(|mut process| process.wait().ok());
                let Some(file) = worker.file.take() else { continue };
                let status = status.map_or_else(|| "it has no status".to_owned(), |status| status.to_string());
                let finding = json!({ "what": format!("the process dies: {status}"), "detail": "" });
                let line = json!({ "file": files.get(file as usize), "entry": "", "findings": [finding] });
                summary.line(&line);
                worker.lines.push(line);
                if let Some(results) = &mut results {
                    results
                        .record(file, &result(&worker.lines), failed(&worker.lines))
                        .map_err(|error| error.to_string())?;
                }
                *worker = Worker::new(args, number, &sender);
                worker.next(&mut left);
            }
            Err(RecvTimeoutError::Timeout) => {}
            Err(RecvTimeoutError::Disconnected) => break,
        }
        for worker in &mut workers {
            if let (true, Some(process)) = (worker.heard.elapsed() > SILENCE, &mut worker.process) {
                let _ = process.kill();
            }
        }
    }
    summary.print();
    match left.len() {
        0 if summary.is_clean() => Ok(ExitCode::SUCCESS),
        0 => Ok(ExitCode::FAILURE),
        count => Err(format!("{count} files are left, since no process could be started")),
    }
}

/// The files as a job array: equal for the same contents and options.
fn job_array(args: &Args, files: &[PathBuf]) -> JobArray {
    let Args { seeds, groups, spec, families, engine, .. } = args;
    let table = families.iter().map(|families| &families.path);
    let named = files.iter().chain(table).map(|path| (path.display().to_string(), path.as_path()));
    let contents = digest_files(named, |path| std::fs::read(path));
    let options = digest(&format!("{:?}", (seeds, groups, spec, families.is_some(), engine)));
    let settings = json!({ "files": contents, "options": options });
    JobArray { name: "modules".to_owned(), settings, jobs: files.len() as u64 }
}

/// The lines about a file, without what differs from run to run.
fn result(lines: &[Value]) -> Value {
    let mut entries = lines.to_vec();
    entries.iter_mut().filter_map(Value::as_object_mut).for_each(|line| drop(line.remove("compile_ms")));
    json!({ "entries": entries })
}

/// Whether one of the lines has a finding.
fn failed(lines: &[Value]) -> bool {
    lines.iter().any(|line| line["findings"].as_array().is_some_and(|findings| !findings.is_empty()))
}

impl Worker {
    fn new(args: &Args, number: usize, sender: &Sender<(usize, Option<Value>)>) -> Self {
        let process = spawn(args, number, sender);
        Self { process, heard: Instant::now(), file: None, lines: Vec::new() }
    }

    /// Gives the child the next file. Without one its input ends, and so does the child.
    fn next(&mut self, left: &mut VecDeque<u64>) {
        self.lines.clear();
        self.heard = Instant::now();
        let Some(process) = &mut self.process else { return };
        self.file = left.pop_front();
        match (self.file, &mut process.stdin) {
            // A child that has ended cannot read it: its end is a message, and the file a finding.
            (Some(file), Some(input)) => drop(writeln!(input, "{file}")),
            (_, input) => *input = None,
        }
    }
}

fn spawn(args: &Args, number: usize, sender: &Sender<(usize, Option<Value>)>) -> Option<Child> {
    let [x, y, z] = args.groups;
    let mut command = Command::new(std::env::current_exe().ok()?);
    command.arg("--child").arg("--seeds").arg(args.seeds.to_string()).arg("--groups").arg(format!("{x},{y},{z}"));
    command.arg("--engine").arg(&args.engine).args(&args.paths);
    for (id, value) in &args.spec {
        command.arg("--spec").arg(format!("{id}={value}"));
    }
    if let Some(families) = &args.families {
        command.arg("--families").arg(&families.path);
    }
    let mut process = command.stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().ok()?;
    children::listen(&mut process, number, sender)?;
    Some(process)
}
