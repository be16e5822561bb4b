//! The parent: starts children with a memory cap, restarts them after a mutant that ends them, and writes that mutant
//! to a file.

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::process::{Child, Command, ExitCode, ExitStatus, Stdio};
use std::sync::mpsc::{Sender, channel};
use std::time::Instant;

use serde_json::{Value, json};
use spelter_tests::children;

use crate::Args;
use crate::child::TIMEOUT_STATUS;
use crate::mutant::Corpus;

/// Findings of one kind that are written to files.
const SHOWN: u64 = 8;

struct Job {
    shard: (u64, u64),
    process: Option<Child>,
    /// Where the child records its current mutant.
    at: PathBuf,
}

/// What all children found.
struct Totals<'a> {
    args: &'a Args,
    corpus: Corpus,
    done: u64,
    ran: u64,
    interpreted: u64,
    /// By kind: the number of findings.
    findings: BTreeMap<String, u64>,
}

pub(crate) fn run(args: &Args) -> ExitCode {
    let start = Instant::now();
    let (index, count) = args.shard;
    let (sender, receiver) = channel();
    let mut jobs: Vec<Job> = Vec::new();
    for job in 0..args.jobs.max(1) {
        let shard = (index + count * job, count * args.jobs.max(1));
        let at = std::env::temp_dir().join(format!("mutants-{}-{job}", std::process::id()));
        let mut job = Job { shard, process: None, at };
        job.process = spawn(args, &job, 0, jobs.len(), &sender);
        jobs.push(job);
    }
    let (done, ran, interpreted) = (0, 0, 0);
    let mut totals = Totals { args, corpus: Corpus::new(args), done, ran, interpreted, findings: BTreeMap::new() };
    while jobs.iter().any(|job| job.process.is_some()) {
        let Ok((number, line)) = receiver.recv() else { break };
        let Some(line) = line else {
            let job: &mut Job = &mut jobs[number];
            let status = job.process.take().and_then(|mut process| process.wait().ok());
            if let Some(status) = status.filter(|status| !status.success()) {
                let noted = std::fs::read(&job.at).ok().and_then(|bytes| bytes.try_into().ok()).map(u64::from_le_bytes);
                let Some(place) = noted else { break };
                totals.finding(job.shard.0 + place * job.shard.1, &ended(status, args));
                job.process = spawn(args, job, place + 1, number, &sender);
            }
            continue;
        };
        totals.line(&line);
    }
    jobs.iter().for_each(|job| _ = std::fs::remove_file(&job.at));
    totals.print(start.elapsed().as_secs_f64())
}

fn ended(status: ExitStatus, args: &Args) -> String {
    match status.code() {
        Some(TIMEOUT_STATUS) => format!("takes more than {} seconds of work", args.seconds),
        _ => format!("ends the process: {status}"),
    }
}

impl Totals<'_> {
    fn line(&mut self, line: &Value) {
        let count = |name: &str| line[name].as_u64().unwrap_or(0);
        self.done += count("done");
        self.ran += count("ran");
        self.interpreted += count("interpreted");
        if let (Some(number), Some(what)) = (line["finding"].as_u64(), line["what"].as_str()) {
            self.finding(number, what);
        }
    }

    /// Counts a finding; writes the first ones of a kind to files.
    fn finding(&mut self, number: u64, what: &str) {
        let place = what.lines().next().unwrap_or_default().to_owned();
        let times = self.findings.entry(place).or_default();
        *times += 1;
        if *times > SHOWN {
            return;
        }
        let (extension, bytes) = self.corpus.file(number);
        let name = self.corpus.name(number);
        let file = self.args.out.join(format!("{}.{extension}", name.replace(['/', ':'], "-")));
        let written = std::fs::create_dir_all(&self.args.out).and_then(|()| std::fs::write(&file, bytes));
        let file = written.map_or_else(|error| error.to_string(), |()| file.display().to_string());
        if self.args.json {
            println!("{}", json!({ "mutant": number, "name": name, "file": file, "what": what }));
        } else {
            println!("mutant {number}, {name}, in {file}: {what}");
        }
    }

    fn print(&self, seconds: f64) -> ExitCode {
        let Self { done, ran, interpreted, findings, .. } = self;
        let rate = *done as f64 / seconds;
        if self.args.json {
            println!(
                "{}",
                json!({ "mutants": done, "ran": ran, "interpreted": interpreted, "seconds": seconds,
                    "per_second": rate, "findings": findings })
            );
        } else {
            println!("{done} mutants, {ran} ran, {interpreted} interpreted, in {seconds:.1} s: {rate:.0} each second");
            findings.iter().for_each(|(what, times)| println!("{times} times: {what}"));
        }
        if findings.is_empty() { ExitCode::SUCCESS } else { ExitCode::FAILURE }
    }
}

fn spawn(args: &Args, job: &Job, first: u64, number: usize, sender: &Sender<(usize, Option<Value>)>) -> Option<Child> {
    std::fs::write(&job.at, first.to_le_bytes()).ok()?;
    let (index, count) = job.shard;
    // The shell limits the process's address space.
    let mut command = Command::new("sh");
    command.arg("-c").arg(format!("ulimit -v {}; exec \"$0\" \"$@\"", args.memory * 1024));
    command.arg(std::env::current_exe().ok()?).arg("--child").arg(first.to_string()).arg(&job.at);
    command.arg("--shard").arg(format!("{index}/{count}")).arg("--count").arg(args.count.to_string());
    command.arg("--seed").arg(args.seed.to_string()).arg("--seconds").arg(args.seconds.to_string());
    command.arg("--kind").arg(if args.kind == crate::Kind::Spirv { "spirv" } else { "wgsl" });
    let mut process = command.stdout(Stdio::piped()).spawn().ok()?;
    children::listen(&mut process, number, sender)?;
    Some(process)
}
