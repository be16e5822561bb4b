//! `spelter litmus --generate`: small programs as Khronos tests that contain the model's answer.

use std::path::Path;

use serde_json::json;
use spelter_jobs::JobArray;
use spelter_memory_model::answer::{Options, find_race};
use spelter_memory_model::event::Scope;
use spelter_memory_model::format::write_khronos;
use spelter_memory_model::generate::{Bounds, Groups, Kind, Programs, programs};
use spelter_memory_model::program::Program;

use crate::args::{KindName, LitmusArgs, ScopeName};
use crate::bar::styled;
use crate::failure::Failure;
use crate::output::Output;

use super::undecided;

/// Programs of a job.
const BLOCK: usize = 64;

/// Prints the programs of this shard, or writes each to a file of a folder.
pub(crate) fn run(args: &LitmusArgs, options: &Options, output: &mut Output) -> Result<(), Failure> {
    let scopes = args.scopes.iter().map(|scope| match scope {
        ScopeName::Subgroup => Scope::Subgroup,
        ScopeName::Workgroup => Scope::Workgroup,
        ScopeName::QueueFamily => Scope::QueueFamily,
        ScopeName::Device => Scope::Device,
    });
    let kinds = args.operations.iter().map(|kind| match kind {
        KindName::Plain => Kind::Plain,
        KindName::Atomic => Kind::Atomic,
        KindName::Rmw => Kind::Update,
        KindName::Fence => Kind::Fence,
        KindName::Barrier => Kind::Barrier,
    });
    let bounds = Bounds {
        threads: args.threads.into(),
        events: args.events.into(),
        locations: args.locations.into(),
        scopes: scopes.collect(),
        classes: args.classes.into(),
        groups: Groups {
            threads: args.threads_per_subgroup.into(),
            subgroups: args.subgroups_per_workgroup.into(),
            workgroups: args.workgroups_per_queue_family.into(),
            queue_families: args.queue_families.into(),
        },
        kinds: kinds.collect(),
        conflicting: true,
    };
    if let Some(folder) = &args.out {
        std::fs::create_dir_all(folder).map_err(|error| Failure::file(folder, error))?;
    }
    let all = || programs(bounds.clone()).map_err(|bound| Failure::new(bound.to_string()));
    if args.array.results.is_some() {
        let count = all()?.take(args.count.unwrap_or(usize::MAX)).count();
        return decide_blocks(args, options, all()?, count, output);
    }
    for (number, program) in args.array.shard.pick(all()?.enumerate()).take(args.count.unwrap_or(usize::MAX)) {
        let (racy, text) = answered(number, &program, options)?;
        match &args.out {
            Some(folder) => write(&folder.join(format!("{number:08}.test")), &text)?,
            None if args.json => output.json(&json!({ "number": number, "racy": racy, "test": text }))?,
            None => output.line(text)?,
        }
    }
    Ok(())
}

/// Whether a program races, and its test with that answer.
fn answered(number: usize, program: &Program, options: &Options) -> Result<(bool, String), Failure> {
    let racy = find_race(program, None, options).map_err(|bound| Failure::new(undecided(&bound)))?.is_some();
    let program_text = write_khronos(program).map_err(|error| Failure::new(error.to_string()))?;
    let (free, races) = if racy { ("", "SATISFIABLE") } else { ("SATISFIABLE consistent[X] && #dr=0\n", "NOSOLUTION") };
    Ok((racy, format!("// generated {number}\n{program_text}{free}{races} consistent[X] && #dr>0\n")))
}

/// Decides the blocks of programs of this shard that the file of results lacks.
fn decide_blocks(
    args: &LitmusArgs,
    options: &Options,
    all: Programs,
    count: usize,
    output: &mut Output,
) -> Result<(), Failure> {
    let settings = json!({
        "model": options.model.to_string(), "unroll": args.unroll, "steps": args.steps, "threads": args.threads,
        "events": args.events, "locations": args.locations, "threads_per_subgroup": args.threads_per_subgroup,
        "subgroups_per_workgroup": args.subgroups_per_workgroup,
        "workgroups_per_queue_family": args.workgroups_per_queue_family, "queue_families": args.queue_families,
        "scopes": format!("{:?}", args.scopes), "classes": args.classes,
        "operations": format!("{:?}", args.operations), "programs": count,
    });
    let jobs = count.div_ceil(BLOCK) as u64;
    let array = JobArray { name: "litmus --generate".to_owned(), settings, jobs };
    let failed = |error: spelter_jobs::Error| Failure::new(error.to_string());
    let Some(mut results) = args.array.open(&array).map_err(failed)? else { return Ok(()) };
    let left = results.left();
    let progress = styled(left.count_left() * BLOCK as u64, "{bar:30} {pos}/{len} programs, {eta} left");
    let mut all = all.take(count).enumerate();
    // The number of the next program that `all` gives.
    let mut next = 0;
    for job in left {
        let first = usize::try_from(job).unwrap_or(usize::MAX).saturating_mul(BLOCK);
        let (mut racy_programs, mut tests) = (0, Vec::new());
        for (number, program) in all.by_ref().skip(first - next).take(BLOCK) {
            let (racy, text) = answered(number, &program, options)?;
            if let Some(folder) = &args.out {
                write(&folder.join(format!("{number:08}.test")), &text)?;
            }
            racy_programs += u64::from(racy);
            tests.push(text);
        }
        next = first.saturating_add(BLOCK);
        results.record(job, &json!({ "racy": racy_programs, "tests": tests }), false).map_err(failed)?;
        progress.inc(BLOCK as u64);
    }
    progress.finish_and_clear();
    let path = args.array.results.as_deref().unwrap_or(Path::new("")).display();
    if args.json {
        let (done, shard) = (results.done(), args.array.shard.to_string());
        return output.json(&json!({ "done": done, "jobs": jobs, "shard": shard, "results": path.to_string() }));
    }
    output.line(format!("{} of {jobs} blocks of programs, shard {}, in {path}", results.done(), args.array.shard))
}

fn write(path: &Path, text: &str) -> Result<(), Failure> {
    std::fs::write(path, text).map_err(|error| Failure::file(path, error))
}
