//! A child: program after program, with one line of JSON for each finding and, periodically, for the progress.

use std::fs::File;
use std::io::{Seek as _, SeekFrom, Write as _};
use std::process::ExitCode;
use std::time::{Duration, Instant};

use serde_json::json;
use spelter_tests::fuzz::{
    Bench, Coverage, Feature, Finding, Options, Program, Tape, generate, quiet_panics, reduce, shrink, text,
};

use crate::args::Args;

/// Interval of progress reports.
const REPORT: Duration = Duration::from_millis(500);

/// One program in this many also runs with coverage marks.
const MARKED: u64 = 64;

/// Attempts to reduce a finding.
const SHRINK: u32 = 4000;

/// Findings of one kind that are reduced and kept.
const KEPT: u32 = 4;

pub(crate) fn run(args: &Args, job: u64) -> ExitCode {
    quiet_panics();
    let Ok(note) = File::create(args.note(job)) else { return ExitCode::FAILURE };
    let mut child = Child { args, note, bench: args.bench(), coverage: Coverage::default(), kinds: Vec::new() };
    if args.blocks {
        child.blocks()
    } else {
        child.work(job)
    }
    ExitCode::SUCCESS
}

struct Child<'a> {
    args: &'a Args,
    note: File,
    bench: Bench,
    coverage: Coverage,
    /// Findings by kind.
    kinds: Vec<(String, u32)>,
}

impl Child<'_> {
    fn work(&mut self, job: u64) {
        let (start, mut reported) = (Instant::now(), Instant::now());
        let (index, count) = self.args.array.shard.numbers();
        let (threads, limit) = (self.args.threads(), self.args.limit());
        let mine = (0..self.args.programs.unwrap_or(u64::MAX)).filter(|at| at % threads == job);
        for number in mine.map(|at| at * count + index).skip_while(|&number| number < self.args.first) {
            if limit.is_some_and(|limit| start.elapsed() > limit) {
                break;
            }
            self.program(number);
            if reported.elapsed() > REPORT {
                reported = Instant::now();
                self.report();
            }
        }
        self.report();
    }

    /// Runs the blocks that standard input names, each with its first program to be run.
    fn blocks(&mut self) {
        for line in std::io::stdin().lines().map_while(Result::ok) {
            let Some((Ok(block), Ok(first))) = line.split_once(' ').map(|(a, b)| (a.parse(), b.parse())) else {
                return;
            };
            self.args.block(block, first).for_each(|number| self.program(number));
            self.report();
            println!("{}", json!({ "block": block }));
        }
    }

    fn program(&mut self, number: u64) {
        // The parent reads this number if the child dies.
        let _ = self.note.seek(SeekFrom::Start(0)).and_then(|_| self.note.write_all(&number.to_le_bytes()));
        let options = self.args.options();
        let (generated, tape) = self.args.program(number, options);
        self.coverage.add(&generated.features);
        if number % MARKED == self.args.array.shard.numbers().0 % MARKED {
            let (marked, _) = self.args.program(number, Options { marks: true, ..options });
            if let Ok(reached) = self.bench.reached(&marked.program) {
                self.coverage.add_reached(&marked.features, &reached);
            }
        }
        if let Err(finding) = self.bench.check(&generated.program) {
            self.found(number, tape, &finding);
        }
    }

    fn found(&mut self, number: u64, tape: Vec<u32>, finding: &Finding) {
        let at = self.kinds.iter().position(|(kind, _)| *kind == finding.what).unwrap_or_else(|| {
            self.kinds.push((finding.what.clone(), 0));
            self.kinds.len() - 1
        });
        self.kinds[at].1 += 1;
        if self.kinds[at].1 > KEPT {
            println!("{}", json!({ "again": finding.what, "program": number }));
            return;
        }
        println!("{}", json!({ "shrinking": finding.what, "program": number }));
        let same =
            |bench: &mut Bench, program: &Program| bench.check(program).is_err_and(|other| other.what == finding.what);
        let bench = &mut self.bench;
        let tape = shrink(tape, self.args.options(), SHRINK, &mut |program| same(bench, program));
        let (generated, _) = generate(Tape::fixed(tape), self.args.options());
        let program = reduce(generated.program, SHRINK, &mut |program| same(bench, program));
        let detail = bench.check(&program).err().map_or_else(String::new, |finding| finding.detail);
        let seed = self.args.seed;
        let about = format!("{}: {detail}\nseed {seed}, program {number}", finding.what);
        let text = text::write(&program, &about);
        println!("{}", json!({ "finding": finding.what, "detail": detail, "program": number, "text": text }));
    }

    fn report(&self) {
        let of =
            |counts: &[u64]| -> Vec<u64> { Feature::ALL.iter().map(|&feature| counts[feature as usize]).collect() };
        let coverage = &self.coverage;
        println!(
            "{}",
            json!({
                "programs": coverage.programs,
                "looked_at": coverage.looked_at,
                "contained": of(&coverage.contained),
                "marked": of(&coverage.marked),
                "reached": of(&coverage.reached),
            })
        );
        let _ = std::io::stdout().flush();
    }
}
