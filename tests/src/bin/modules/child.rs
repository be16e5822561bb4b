//! A child: reads the numbers of files, and writes a line of JSON for each entry point and for the end of each file.

use std::collections::hash_map::DefaultHasher;
use std::hash::{Hash, Hasher};
use std::path::Path;
use std::process::ExitCode;

use serde_json::{Value, json};
use spelter_tests::fuzz::quiet_panics;
use spelter_tests::modules::run::{Report, Runner};
use spelter_tests::modules::{EntryPoint, entry_points};

use crate::Args;

pub(crate) fn run(args: &Args) -> ExitCode {
    quiet_panics();
    let mut runner = Runner::new(&args.engine, args.groups);
    let files = args.files();
    for line in std::io::stdin().lines().map_while(Result::ok) {
        let Some(path) = line.parse().ok().and_then(|number: usize| files.get(number)) else {
            return ExitCode::FAILURE;
        };
        match entry_points(path) {
            Err(reason) => println!("{}", rejection(path, "", None, &reason)),
            Ok(entries) => entries.iter().for_each(|entry| examine(args, &mut runner, path, entry)),
        }
        println!("{}", json!({ "end": path }));
    }
    ExitCode::SUCCESS
}

fn examine(args: &Args, runner: &mut Runner, path: &Path, entry: &EntryPoint) {
    let mut hasher = DefaultHasher::new();
    entry.words.hash(&mut hasher);
    let module = format!("{:016x}", hasher.finish());
    let settings = args.families.as_ref().map(|families| families.of(path)).unwrap_or_default();
    let constants = settings.constants.iter().map(|(&id, &value)| (id, value)).chain(args.spec.iter().copied());
    let subjects = match entry.subjects(&constants.collect()) {
        Ok(subjects) => subjects,
        Err(reason) => return println!("{}", rejection(path, &entry.name, Some(&module), &reason)),
    };
    for subject in subjects {
        let report = runner.examine(&subject, args.seeds, &settings);
        let Report { instructions, compile_ms, fallback, agreed, raced, raced_apart, stopped, wrote, findings } =
            report;
        let findings: Vec<Value> =
            findings.iter().map(|finding| json!({ "what": finding.what, "detail": finding.detail })).collect();
        let line = json!({
            "file": path, "entry": entry.name, "module": module, "workgroup": subject.kernel.workgroup_size,
            "instructions": instructions, "compile_ms": compile_ms, "interpreted": fallback, "agreed": agreed,
            "raced": raced, "raced_apart": raced_apart, "stopped": stopped, "wrote": wrote, "findings": findings,
        });
        println!("{line}");
    }
}

fn rejection(path: &Path, entry: &str, module: Option<&str>, reason: &str) -> Value {
    json!({ "file": path, "entry": entry, "module": module, "refused": reason })
}
