//! `spelter litmus --generate`: small programs as Khronos tests that contain the model's answer.

use std::path::Path;

use serde_json::json;
use spelter_memory_model::answer::{Options, find_race};
use spelter_memory_model::event::Scope;
use spelter_memory_model::format::write_khronos;
use spelter_memory_model::generate::{Bounds, Groups, Kind, programs};

use crate::args::{KindName, LitmusArgs, ScopeName};
use crate::failure::Failure;
use crate::output::Output;

use super::undecided;

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
    let numbered = programs(bounds).map_err(|bound| Failure::new(bound.to_string()))?.enumerate();
    for (number, program) in args.shard.pick(numbered).take(args.count.unwrap_or(usize::MAX)) {
        let racy = find_race(&program, None, options).map_err(|bound| Failure::new(undecided(&bound)))?.is_some();
        let program_text = write_khronos(&program).map_err(|error| Failure::new(error.to_string()))?;
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
