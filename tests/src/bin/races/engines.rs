//! Random kernels on every engine of the machine, in checked mode: reports against the axioms.

use std::process::ExitCode;

use indicatif::ProgressBar;
use serde_json::{Map, Value, json};
use spelter_jobs::{JobArray, earlier, jobs_left};
use spelter_tests::checked::{Counts, Defect, Engines};
use spelter_tests::fuzz::quiet_panics;

use super::{Args, BLOCK, failed, style};

/// Runs the programs, and prints what was compared.
pub(super) fn run(args: &Args) -> ExitCode {
    quiet_panics();
    let array = JobArray {
        name: "races".to_owned(),
        settings: json!({ "engines": true, "programs": args.programs, "from": args.from }),
        jobs: args.programs.div_ceil(BLOCK),
    };
    let mut results = match args.array.open(&array) {
        Ok(results) => results,
        Err(error) => return failed(&error),
    };
    let jobs = jobs_left(results.as_ref(), &array, args.array.shard);
    let progress = ProgressBar::new(jobs.count_left() * BLOCK).with_style(style());
    let mut engines = Engines::new();
    let mut all = Counts::default();
    match earlier(results.as_ref(), of_object) {
        Ok(blocks) => blocks.into_iter().for_each(|(_, counts)| all.join(counts)),
        Err(error) => return failed(&error),
    }
    for job in jobs {
        let number = |program: u64| args.from.saturating_add(program.min(args.programs));
        let counts = engines.compare(number(job * BLOCK)..number((job + 1) * BLOCK));
        if let Some(results) = &mut results
            && let Err(error) = results.record(job, &object(&counts), counts.defects() > 0)
        {
            return failed(&error);
        }
        all.join(counts);
        progress.set_message(format!("{} defects", all.defects()));
        progress.inc(BLOCK);
    }
    progress.finish_and_clear();
    print(args, &all);
    if all.defects() == 0 { ExitCode::SUCCESS } else { ExitCode::FAILURE }
}

/// The counts, and the defects as a list.
fn object(counts: &Counts) -> Value {
    let numbers = counts.numbers().into_iter().map(|(name, number)| (name.to_owned(), json!(number)));
    let mut object: Map<String, Value> = numbers.collect();
    let defects = counts
        .list
        .iter()
        .map(|defect| json!({ "program": defect.program, "engine": defect.engine, "problem": defect.problem }));
    object.insert("defects".to_owned(), defects.collect());
    Value::Object(object)
}

/// What [`object`] has written.
fn of_object(value: &Value) -> Option<Counts> {
    let defect = |defect: &Value| {
        let engine = defect["engine"].as_str().map(str::to_owned);
        Some(Defect { program: defect["program"].as_u64()?, engine, problem: defect["problem"].as_str()?.to_owned() })
    };
    let list = value["defects"].as_array()?.iter().map(defect).collect::<Option<_>>()?;
    Counts::of_numbers(|name| value[name].as_u64(), list)
}

fn print(args: &Args, counts: &Counts) {
    if args.json {
        println!("{}", object(counts));
    } else {
        let Counts { programs, kernels, executions, compiled, races, racy, .. } = counts;
        println!(
            "{programs} programs of {kernels} kernels, {executions} executions, {compiled} of them by machine code"
        );
        println!("{racy} executions race, with {races} races; {} candidates", counts.candidates);
        println!("{} races without a candidate, {} racy executions without an error", counts.missed, counts.unreported);
        println!(
            "{} errors, {} of them false; {} executions undecided",
            counts.errors, counts.false_errors, counts.undecided
        );
        println!("{} executions where machine code judged memory of several descriptors", counts.aliased);
        println!("{} pairs of engines in the same order, {} of them differ", counts.same_order, counts.different);
        println!("{} programs with the same pairs of lines on all engines", counts.same_lines);
        println!("{} executions that are not the program's", counts.wrong);
    }
    for defect in counts.list.iter().filter(|_| !args.json) {
        let engine = defect.engine.as_deref().unwrap_or("all engines");
        println!("program {}, {engine}: {}", defect.program, defect.problem);
    }
    let mut shown: Vec<u64> = counts.list.iter().map(|defect| defect.program).collect();
    shown.dedup();
    for program in shown.into_iter().take(args.show as usize) {
        println!("program {program}:\n{}", Engines::text(program));
    }
}
