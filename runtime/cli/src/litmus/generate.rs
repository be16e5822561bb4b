//! `spelter litmus --generate`: small programs as Khronos tests, each with the model's answer in it.

use std::path::Path;

use serde_json::json;
use spelter_memory_model::answer::{Options, find_race};
use spelter_memory_model::event::Scope;
use spelter_memory_model::format::write_khronos;
use spelter_memory_model::generate::{Bounds, programs};

use crate::args::{LitmusArgs, ScopeName};
use crate::failure::Failure;
use crate::output::Output;

/// Prints the programs of this shard one after the other, or writes each to a file of a folder.
pub(crate) fn run(args: &LitmusArgs, options: &Options, output: &mut Output) -> Result<(), Failure> {
    let scopes = args.scopes.iter().map(|scope| match scope {
        ScopeName::Subgroup => Scope::Subgroup,
        ScopeName::Workgroup => Scope::Workgroup,
        ScopeName::QueueFamily => Scope::QueueFamily,
        ScopeName::Device => Scope::Device,
    });
    let bounds = Bounds {
        threads: args.threads.into(),
        events: args.events.into(),
        locations: args.locations.into(),
        scopes: scopes.collect(),
        classes: args.classes.into(),
        workgroups: true,
        fences: args.fences,
        conflicting: true,
    };
    if bounds.threads > bounds.events {
        return Err(Failure(format!("{} threads have no {} operations", bounds.threads, bounds.events)));
    }
    if let Some(folder) = &args.out {
        std::fs::create_dir_all(folder).map_err(|error| Failure::file(folder, error))?;
    }
    let numbered = programs(bounds).enumerate();
    for (number, program) in args.shard.pick(numbered).take(args.count.unwrap_or(usize::MAX)) {
        let racy = find_race(&program, None, options).map_err(|error| Failure(error.to_string()))?.is_some();
        let program_text = write_khronos(&program).map_err(|error| Failure(error.to_string()))?;
        let (free, races) =
            if racy { ("", "SATISFIABLE") } else { ("SATISFIABLE consistent[X] && #dr=0\n", "NOSOLUTION") };
        let text = format!("// generated {number}\n{program_text}{free}{races} consistent[X] && #dr>0\n");
        match &args.out {
            Some(folder) => write(&folder.join(format!("{number:08}.test")), &text)?,
            None if args.json => output.json(&json!({ "number": number, "racy": racy, "test": text }))?,
            None => output.line(text)?,
        }
    }
    Ok(())
}

fn write(path: &Path, text: &str) -> Result<(), Failure> {
    std::fs::write(path, text).map_err(|error| Failure::file(path, error))
}
