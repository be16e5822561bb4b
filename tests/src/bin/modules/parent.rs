//! The parent: starts children, restarts them after a file that ends them, collects their output.

use std::process::{Child, Command, ExitCode, Stdio};
use std::sync::mpsc::{RecvTimeoutError, Sender, channel};
use std::time::{Duration, Instant};

use serde_json::{Value, json};
use spelter_tests::children;

use crate::Args;
use crate::summary::Summary;

/// A child without output for this long hangs.
const SILENCE: Duration = Duration::from_secs(900);

struct Job {
    shard: (usize, usize),
    process: Option<Child>,
    heard: Instant,
    /// Its current file.
    at: usize,
    file: Value,
}

pub(crate) fn run(args: &Args) -> ExitCode {
    let (index, count) = args.shard;
    let (sender, receiver) = channel();
    let jobs = args.jobs.max(1);
    let mut jobs: Vec<Job> = (0..jobs)
        .map(|job| {
            let shard = (index + count * job, count * jobs);
            let process = spawn(args, shard, 0, job, &sender);
            Job { shard, process, heard: Instant::now(), at: 0, file: Value::Null }
        })
        .collect();
    let mut summary = Summary::new(args.json);
    while jobs.iter().any(|job| job.process.is_some()) {
        match receiver.recv_timeout(Duration::from_secs(1)) {
            Ok((job, Some(line))) => {
                let job: &mut Job = &mut jobs[job];
                job.heard = Instant::now();
                match line["begin"].as_u64() {
                    Some(at) => (job.at, job.file) = (at as usize, line["file"].clone()),
                    None => summary.line(&line),
                }
            }
            Ok((number, None)) => {
                let job = &mut jobs[number];
                let status = job.process.take().and_then(|mut process| process.wait().ok());
                if let Some(status) = status.filter(|status| !status.success()) {
                    let finding = json!({ "what": format!("the process dies: {status}"), "detail": "" });
                    summary.line(&json!({ "file": job.file, "entry": "", "findings": [finding] }));
                    job.heard = Instant::now();
                    job.process = spawn(args, job.shard, job.at + 1, number, &sender);
                }
            }
            Err(RecvTimeoutError::Timeout) => {}
            Err(RecvTimeoutError::Disconnected) => break,
        }
        for job in &mut jobs {
            if let (true, Some(process)) = (job.heard.elapsed() > SILENCE, &mut job.process) {
                let _ = process.kill();
            }
        }
    }
    summary.print();
    if summary.is_clean() { ExitCode::SUCCESS } else { ExitCode::FAILURE }
}

fn spawn(
    args: &Args,
    (index, count): (usize, usize),
    first: usize,
    job: usize,
    sender: &Sender<(usize, Option<Value>)>,
) -> Option<Child> {
    let [x, y, z] = args.groups;
    let mut command = Command::new(std::env::current_exe().ok()?);
    command.arg("--child").arg(first.to_string()).arg("--shard").arg(format!("{}/{count}", index + 1));
    command.arg("--seeds").arg(args.seeds.to_string()).arg("--groups").arg(format!("{x},{y},{z}"));
    command.arg("--engine").arg(&args.engine).args(&args.paths);
    for (id, value) in &args.spec {
        command.arg("--spec").arg(format!("{id}={value}"));
    }
    if let Some(families) = &args.families {
        command.arg("--families").arg(&families.path);
    }
    let mut process = command.stdout(Stdio::piped()).spawn().ok()?;
    children::listen(&mut process, job, sender)?;
    Some(process)
}
