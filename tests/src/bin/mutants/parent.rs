//! The parent: starts children with a memory cap, restarts them after a mutant that ends them, and writes that mutant
//! to a file.

use std::collections::BTreeMap;
use std::io::Write as _;
use std::path::PathBuf;
use std::process::{Child, Command, ExitCode, ExitStatus, Stdio};
use std::sync::mpsc::{Sender, channel};
use std::time::Instant;

use serde_json::{Value, json};
use spelter_jobs::{JobArray, earlier, jobs_left};
use spelter_tests::children;

use crate::child::TIMEOUT_STATUS;
use crate::mutant::Corpus;
use crate::{Args, BLOCK};

/// Findings of one kind that are written to files.
const SHOWN: u64 = 8;

/// A child, and what it works on.
struct Job {
    process: Option<Child>,
    /// Where the child records its current mutant.
    at: PathBuf,
    block: Option<Block>,
}

/// A block of mutants that a child runs.
struct Block {
    number: u64,
    counts: Counts,
    findings: Vec<Value>,
}

/// Numbers of mutants.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Counts {
    pub(crate) done: u64,
    pub(crate) ran: u64,
    pub(crate) interpreted: u64,
}

impl Counts {
    /// What a child records: its current mutant, and the counts of its block before it.
    pub(crate) fn note(self, number: u64) -> [u8; 32] {
        let mut bytes = [0; 32];
        let words = [number, self.done, self.ran, self.interpreted];
        bytes.as_chunks_mut::<8>().0.iter_mut().zip(words).for_each(|(bytes, word)| *bytes = word.to_le_bytes());
        bytes
    }

    /// Reads [`Counts::note`].
    fn from_note(bytes: &[u8]) -> Option<(u64, Self)> {
        let word = |at: usize| Some(u64::from_le_bytes(bytes.get(8 * at..8 * at + 8)?.try_into().ok()?));
        Some((word(0)?, Self { done: word(1)?, ran: word(2)?, interpreted: word(3)? }))
    }

    fn add(&mut self, other: Self) {
        self.done += other.done;
        self.ran += other.ran;
        self.interpreted += other.interpreted;
    }
}

/// What all children found.
struct Totals<'a> {
    args: &'a Args,
    corpus: Corpus,
    counts: Counts,
    /// By kind: the number of findings.
    findings: BTreeMap<String, u64>,
    /// Mutants of an earlier run.
    earlier: u64,
}

pub(crate) fn run(args: &Args) -> ExitCode {
    let start = Instant::now();
    let array = JobArray {
        name: "mutants".to_owned(),
        settings: json!({ "count": args.count, "seed": args.seed, "kind": kind(args), "seconds": args.seconds,
            "memory": args.memory }),
        jobs: args.count.div_ceil(BLOCK),
    };
    let mut results = match args.array.open(&array) {
        Ok(results) => results,
        Err(error) => return failed(&error),
    };
    let mut left = jobs_left(results.as_ref(), &array, args.array.shard);
    let (sender, receiver) = channel();
    let mut jobs: Vec<Job> = Vec::new();
    for job in 0..args.jobs.max(1) {
        let at = std::env::temp_dir().join(format!("mutants-{}-{job}", std::process::id()));
        let mut job = Job { process: None, at, block: None };
        job.process = spawn(args, &job, jobs.len(), &sender);
        job.start(left.next());
        jobs.push(job);
    }
    let corpus = Corpus::new(args);
    let mut totals = Totals { args, corpus, counts: Counts::default(), findings: BTreeMap::new(), earlier: 0 };
    match earlier(results.as_ref(), Block::of_json) {
        Ok(blocks) => blocks.into_iter().for_each(|(_, block)| totals.earlier(&block)),
        Err(error) => return failed(&error),
    }
    while jobs.iter().any(|job| job.process.is_some()) {
        let Ok((number, line)) = receiver.recv() else { break };
        let job: &mut Job = &mut jobs[number];
        let Some(line) = line else {
            let status = job.process.take().and_then(|mut process| process.wait().ok());
            if let Some(status) = status.filter(|status| !status.success()) {
                let Some((mutant, counts)) = std::fs::read(&job.at).ok().and_then(|note| Counts::from_note(&note))
                else {
                    break;
                };
                let what = ended(status, args);
                totals.finding(mutant, &what);
                job.process = spawn(args, job, number, &sender);
                job.go_on(mutant, counts, &what);
            }
            continue;
        };
        totals.line(&line);
        if let Some(block) = job.line(&line) {
            totals.counts.add(block.counts);
            if let Some(results) = &mut results
                && let Err(error) = results.record(block.number, &block.json(), !block.findings.is_empty())
            {
                return failed(&error);
            }
            job.start(left.next());
        }
    }
    jobs.iter().for_each(|job| _ = std::fs::remove_file(&job.at));
    totals.print(start.elapsed().as_secs_f64())
}

fn failed(error: &spelter_jobs::Error) -> ExitCode {
    eprintln!("error: {error}");
    ExitCode::from(2)
}

impl Block {
    fn json(&self) -> Value {
        let Counts { done, ran, interpreted } = self.counts;
        json!({ "mutants": done, "ran": ran, "interpreted": interpreted, "findings": self.findings })
    }

    /// What [`Block::json`] has written; its number is not needed any more.
    fn of_json(value: &Value) -> Option<Self> {
        let count = |name: &str| value[name].as_u64();
        let counts = Counts { done: count("mutants")?, ran: count("ran")?, interpreted: count("interpreted")? };
        Some(Self { number: 0, counts, findings: value["findings"].as_array()?.clone() })
    }
}

impl Job {
    /// Gives the child its next block; without one, the end of its input ends it.
    fn start(&mut self, block: Option<u64>) {
        self.block = block.map(|number| Block { number, counts: Counts::default(), findings: Vec::new() });
        match block {
            Some(number) => self.tell(number, number * BLOCK),
            None => _ = self.process.as_mut().and_then(|process| process.stdin.take()),
        }
    }

    /// A new child goes on after the mutant that ended the last one.
    fn go_on(&mut self, mutant: u64, before: Counts, what: &str) {
        let Some(block) = &mut self.block else { return self.start(None) };
        block.counts.add(Counts { done: before.done + 1, ..before });
        block.findings.push(json!({ "mutant": mutant, "what": what }));
        let number = block.number;
        self.tell(number, mutant + 1);
    }

    /// Names a block to the child. If it has ended, that is noticed where its output ends.
    fn tell(&mut self, block: u64, first: u64) {
        if let Some(input) = self.process.as_mut().and_then(|process| process.stdin.as_mut()) {
            let _ = writeln!(input, "{block} {first}").and_then(|()| input.flush());
        }
    }

    /// A line of the child: the block that it ends, if it does.
    fn line(&mut self, line: &Value) -> Option<Block> {
        let block = self.block.as_mut()?;
        if let (Some(number), Some(what)) = (line["finding"].as_u64(), line["what"].as_str()) {
            block.findings.push(json!({ "mutant": number, "what": what }));
        }
        let count = |name: &str| line[name].as_u64().unwrap_or(0);
        line["block"].as_u64().filter(|number| *number == block.number)?;
        block.counts.add(Counts { done: count("done"), ran: count("ran"), interpreted: count("interpreted") });
        self.block.take()
    }
}

fn ended(status: ExitStatus, args: &Args) -> String {
    match status.code() {
        Some(TIMEOUT_STATUS) => format!("takes more than {} seconds of work", args.seconds),
        _ => format!("ends the process: {status}"),
    }
}

impl Totals<'_> {
    fn line(&mut self, line: &Value) {
        if let (Some(number), Some(what)) = (line["finding"].as_u64(), line["what"].as_str()) {
            self.finding(number, what);
        }
    }

    /// A block that an earlier run did.
    fn earlier(&mut self, block: &Block) {
        self.counts.add(block.counts);
        self.earlier += block.counts.done;
        for finding in &block.findings {
            self.finding(finding["mutant"].as_u64().unwrap_or(0), finding["what"].as_str().unwrap_or_default());
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
        let (Counts { done, ran, interpreted }, findings) = (self.counts, &self.findings);
        let rate = (done - self.earlier) as f64 / seconds;
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

fn kind(args: &Args) -> &'static str {
    if args.kind == crate::Kind::Spirv { "spirv" } else { "wgsl" }
}

fn spawn(args: &Args, job: &Job, number: usize, sender: &Sender<(usize, Option<Value>)>) -> Option<Child> {
    std::fs::write(&job.at, Counts::default().note(0)).ok()?;
    // The shell limits the process's address space.
    let mut command = Command::new("sh");
    command.arg("-c").arg(format!("ulimit -v {}; exec \"$0\" \"$@\"", args.memory * 1024));
    command.arg(std::env::current_exe().ok()?).arg("--child").arg(&job.at);
    command.arg("--count").arg(args.count.to_string());
    command.arg("--seed").arg(args.seed.to_string()).arg("--seconds").arg(args.seconds.to_string());
    command.arg("--kind").arg(kind(args));
    let mut process = command.stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().ok()?;
    children::listen(&mut process, number, sender)?;
    Some(process)
}
