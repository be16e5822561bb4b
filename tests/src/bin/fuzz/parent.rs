//! The parent: starts children, restarts them when they die, collects their output.

use std::io::{BufRead as _, BufReader};
use std::process::{Child, Command, ExitCode, Stdio};
use std::sync::mpsc::{Receiver, Sender, channel};
use std::time::{Duration, Instant};

use serde_json::Value;

use crate::args::Args;
use crate::crash;
use crate::report::Report;

/// A child without output for this long hangs.
const SILENCE: Duration = Duration::from_secs(180);

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
}

pub(crate) fn run(args: &Args) -> ExitCode {
    if let Err(error) = std::fs::create_dir_all(&args.out) {
        eprintln!("{}: {error}", args.out.display());
        return ExitCode::from(2);
    }
    let (sender, receiver) = channel();
    let start = Instant::now();
    let mut jobs = Vec::new();
    for job in 0..args.threads() {
        let process = spawn(args, job, 0, args.seconds, &sender);
        jobs.push(Job { process, heard: start, lives: LIVES });
    }
    let mut report = Report::new(args, jobs.len());
    Parent { args, sender, start, jobs }.listen(&receiver, &mut report);
    for job in 0..args.threads() {
        let _ = std::fs::remove_file(args.note(job));
        let _ = std::fs::remove_file(args.out.join(format!(".try-{}-{job}", args.shard.0)));
    }
    report.print();
    if report.is_clean() { ExitCode::SUCCESS } else { ExitCode::FAILURE }
}

struct Parent<'a> {
    args: &'a Args,
    sender: Sender<Event>,
    start: Instant,
    jobs: Vec<Job>,
}

impl Parent<'_> {
    fn listen(&mut self, receiver: &Receiver<Event>, report: &mut Report<'_>) {
        while self.jobs.iter().any(|job| job.process.is_some()) {
            match receiver.recv_timeout(Duration::from_secs(1)) {
                Ok(Event::Line(job, line)) => {
                    self.jobs[job as usize].heard = Instant::now();
                    report.line(job as usize, &line);
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

    fn ended(&mut self, number: u64, report: &mut Report<'_>) {
        let job = &mut self.jobs[number as usize];
        let Some(status) = job.process.take().and_then(|mut process| process.wait().ok()) else { return };
        report.next_life(number as usize);
        let Some(death) = crash::death(status) else { return };
        let note = std::fs::read(self.args.note(number)).ok();
        let Some(at) = note.and_then(|note| note.try_into().ok()).map(u64::from_le_bytes) else { return };
        match crash::shrunk(self.args, at, number) {
            Some((death, text)) => report.finding(&death, "", at, &text),
            None => report.finding(&format!("{death}, but not again"), "", at, ""),
        }
        job.lives -= 1;
        let left = self.args.seconds.saturating_sub(self.start.elapsed().as_secs());
        if job.lives > 0 && left > 0 {
            job.heard = Instant::now();
            job.process = spawn(self.args, number, at + 1, left, &self.sender);
        }
    }
}

fn spawn(args: &Args, job: u64, first: u64, seconds: u64, sender: &Sender<Event>) -> Option<Child> {
    let mut command = Command::new(std::env::current_exe().ok()?);
    let number = |command: &mut Command, name: &str, value: u64| _ = command.arg(name).arg(value.to_string());
    number(&mut command, "--child", job);
    number(&mut command, "--first", first);
    number(&mut command, "--seconds", seconds);
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
    command.arg("--shard").arg(format!("{}/{}", args.shard.0 + 1, args.shard.1)).arg("--out").arg(&args.out);
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
