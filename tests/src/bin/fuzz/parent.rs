//! The parent: starts children, restarts them when they die, collects their output.

use std::io::{BufRead as _, BufReader, Write as _};
use std::process::{Child, Command, ExitCode, Stdio};
use std::sync::mpsc::{Receiver, Sender, channel};
use std::time::{Duration, Instant};

use serde_json::{Value, json};
use spelter_jobs::{JobsLeft, Results, earlier};

use crate::args::{Args, BLOCK};
use crate::crash;
use crate::report::Report;

/// A child without output for this long hangs.
const SILENCE: Duration = Duration::from_secs(180);

/// The exit status if the file of results lacks blocks: that of a failure after which one tries again (sysexits.h).
const LEFT: u8 = 75;

/// Limit of restarts of a child.
const LIVES: u32 = 20;

enum Event {
    Line(u64, Value),
    Ended(u64),
}

struct Job {
    process: Option<Child>,
    heard: Instant,
    lives: u32,
    block: Option<Block>,
}

/// A block of programs that a child runs, for a file of results.
struct Block {
    number: u64,
    /// Program and kind of each.
    findings: Vec<Value>,
}

/// The file of results, and the blocks that it lacks.
struct Blocks {
    results: Results,
    left: JobsLeft,
}

impl Blocks {
    /// The blocks of this shard, if there is a file of results.
    fn of(args: &Args) -> Result<Option<Self>, spelter_jobs::Error> {
        let Some(results) = args.array.open(&args.job_array())? else { return Ok(None) };
        let left = results.left();
        Ok(Some(Self { results, left }))
    }
}

pub(crate) fn run(args: &Args) -> ExitCode {
    if let Err(error) = std::fs::create_dir_all(&args.out) {
        eprintln!("{}: {error}", args.out.display());
        return ExitCode::from(2);
    }
    let blocks = match Blocks::of(args) {
        Ok(blocks) => blocks,
        Err(error) => {
            eprintln!("error: {error}");
            return ExitCode::from(2);
        }
    };
    let (sender, receiver) = channel();
    let start = Instant::now();
    let mut jobs = Vec::new();
    for job in 0..args.threads() {
        let process = spawn(args, job, 0, args.limit(), &sender);
        jobs.push(Job { process, heard: start, lives: LIVES, block: None });
    }
    let mut report = Report::new(args, jobs.len());
    let earlier = earlier(blocks.as_ref().map(|blocks| &blocks.results), |result| report.earlier(result));
    match earlier.map(|blocks| blocks.len()) {
        Ok(0) => {}
        Ok(count) => eprintln!("note: {count} blocks are those of an earlier run"),
        Err(error) => {
            eprintln!("error: {error}");
            return ExitCode::from(2);
        }
    }
    let mut parent = Parent { args, sender, start, jobs, blocks, failed: None };
    (0..parent.jobs.len()).for_each(|job| parent.next_block(job));
    parent.listen(&receiver, &mut report);
    for job in 0..args.threads() {
        let _ = std::fs::remove_file(args.note(job));
        let _ = std::fs::remove_file(args.out.join(format!(".try-{}-{job}", args.array.shard.numbers().0)));
    }
    report.print();
    if let Some(error) = parent.failed {
        eprintln!("error: {error}");
        return ExitCode::from(2);
    }
    let left = parent.blocks.map_or(0, |blocks| blocks.results.left().count_left());
    if left > 0 {
        eprintln!("error: {left} blocks are left: the same command continues with them");
        return ExitCode::from(LEFT);
    }
    if report.is_clean() { ExitCode::SUCCESS } else { ExitCode::FAILURE }
}

struct Parent<'a> {
    args: &'a Args,
    sender: Sender<Event>,
    start: Instant,
    jobs: Vec<Job>,
    blocks: Option<Blocks>,
    /// Why no results can be written.
    failed: Option<spelter_jobs::Error>,
}

impl Parent<'_> {
    fn listen(&mut self, receiver: &Receiver<Event>, report: &mut Report<'_>) {
        while self.jobs.iter().any(|job| job.process.is_some()) {
            match receiver.recv_timeout(Duration::from_secs(1)) {
                Ok(Event::Line(job, line)) => {
                    self.jobs[job as usize].heard = Instant::now();
                    report.line(job as usize, &line);
                    self.line(job as usize, &line);
                }
                Ok(Event::Ended(job)) => self.ended(job, report),
                Err(_) => {}
            }
            for job in &mut self.jobs {
                if let (true, Some(process)) = (job.heard.elapsed() > SILENCE, &mut job.process) {
                    let _ = process.kill();
                }
            }
        }
    }

    /// Gives a child its next block. Without one, or when time is over, the end of its input ends it.
    fn next_block(&mut self, job: usize) {
        let Some(blocks) = &mut self.blocks else { return };
        let is_over = self.failed.is_some() || self.args.limit().is_some_and(|limit| self.start.elapsed() > limit);
        let number = if is_over { None } else { blocks.left.next() };
        let job = &mut self.jobs[job];
        job.block = number.map(|number| Block { number, findings: Vec::new() });
        match number {
            Some(number) => job.tell(number, number * BLOCK),
            None => _ = job.process.as_mut().and_then(|process| process.stdin.take()),
        }
    }

    /// A line of a child, for the file of results.
    fn line(&mut self, number: usize, line: &Value) {
        let Some(block) = &mut self.jobs[number].block else { return };
        // Which findings of a kind are reduced depends on the child; what was found does not.
        if let Some(what) = line["finding"].as_str().or(line["again"].as_str()) {
            block.findings.push(json!({ "program": line["program"], "what": what }));
        }
        if line["block"].as_u64() != Some(block.number) {
            return;
        }
        let programs = self.args.block(block.number, block.number * BLOCK);
        let result = json!({ "programs": programs.end - programs.start, "findings": block.findings });
        let (number_of_block, failed) = (block.number, !block.findings.is_empty());
        if let Some(blocks) = &mut self.blocks
            && let Err(error) = blocks.results.record(number_of_block, &result, failed)
        {
            self.failed = Some(error);
        }
        self.next_block(number);
    }

    fn ended(&mut self, number: u64, report: &mut Report<'_>) {
        let job = &mut self.jobs[number as usize];
        let Some(status) = job.process.take().and_then(|mut process| process.wait().ok()) else { return };
        report.next_life(number as usize);
        let Some(death) = crash::death(status) else { return };
        let note = std::fs::read(self.args.note(number)).ok();
        let Some(at) = note.and_then(|note| note.try_into().ok()).map(u64::from_le_bytes) else { return };
        let what = match crash::shrunk(self.args, at, number) {
            Some((death, text)) => {
                report.finding(&death, "", at, &text);
                death
            }
            None => {
                let death = format!("{death}, but not again");
                report.finding(&death, "", at, "");
                death
            }
        };
        let job = &mut self.jobs[number as usize];
        if let Some(block) = &mut job.block {
            block.findings.push(json!({ "program": at, "what": what }));
        }
        job.lives -= 1;
        let left = self.args.limit().map(|limit| limit.saturating_sub(self.start.elapsed()));
        if job.lives > 0 && left.is_none_or(|left| left >= Duration::from_secs(1)) {
            job.heard = Instant::now();
            job.process = spawn(self.args, number, at + 1, left, &self.sender);
            if let Some(block) = job.block.as_ref().map(|block| block.number) {
                job.tell(block, at + 1);
            }
        }
    }
}

impl Job {
    /// Names a block to the child. If it has ended, that is noticed where its output ends.
    fn tell(&mut self, block: u64, first: u64) {
        if let Some(input) = self.process.as_mut().and_then(|process| process.stdin.as_mut()) {
            let _ = writeln!(input, "{block} {first}").and_then(|()| input.flush());
        }
    }
}

fn spawn(args: &Args, job: u64, first: u64, limit: Option<Duration>, sender: &Sender<Event>) -> Option<Child> {
    let mut command = Command::new(std::env::current_exe().ok()?);
    let number = |command: &mut Command, name: &str, value: u64| _ = command.arg(name).arg(value.to_string());
    number(&mut command, "--child", job);
    number(&mut command, "--first", first);
    if let Some(limit) = limit {
        number(&mut command, "--seconds", limit.as_secs());
    }
    number(&mut command, "--seed", args.seed);
    number(&mut command, "--threads", args.threads());
    if let Some(programs) = args.programs {
        number(&mut command, "--programs", programs);
    }
    if let Some(engine) = &args.engine {
        command.arg("--engine").arg(engine);
    }
    for (name, wanted) in
        [("--no-atomics", args.no_atomics), ("--race", args.race), ("--strict-returns", args.strict_returns)]
    {
        if wanted {
            command.arg(name);
        }
    }
    command.arg("--shard").arg(args.array.shard.to_string()).arg("--out").arg(&args.out);
    if args.array.results.is_some() {
        command.arg("--blocks").stdin(Stdio::piped());
    }
    let mut process = command.stdout(Stdio::piped()).spawn().ok()?;
    let output = process.stdout.take()?;
    let sender = sender.clone();
    std::thread::spawn(move || {
        for line in BufReader::new(output).lines().map_while(Result::ok) {
            if let Ok(value) = serde_json::from_str(&line) {
                let _ = sender.send(Event::Line(job, value));
            }
        }
        let _ = sender.send(Event::Ended(job));
    });
    Some(process)
}
