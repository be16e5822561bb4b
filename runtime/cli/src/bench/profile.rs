//! `spelter profile`: timestamps of the dispatches of one or several kernels, added up by program. It measures many
//! equal rounds as they overlap in a real program, where `spelter bench` measures one kernel at many sizes.

use std::collections::BTreeMap;
use std::path::Path;

use serde_json::{Value as Json, json};
use spelter::{BindingInfo, Context, DispatchTime, Error, Fence, ProfileReport, Program};

use super::inputs::{Declared, Inputs};
use super::measure::{MeasuredDispatch, busy_shares};
use super::resources::{self, BenchResources};
use super::work::OperationCounts;
use super::{failure, invocations, progress};
use crate::args::{ProfileArgs, push_bytes};
use crate::columns::{self, percent, seconds};
use crate::device;
use crate::failure::Failure;
use crate::file;
use crate::icd;
use crate::output::{self, Output};
use crate::profile::{ProgramRow, Programs};
use crate::shader;
use crate::trace;

/// Profiles a shader, or a command as `spelter exec --profile` does.
pub(crate) fn run(args: &ProfileArgs, output: &mut Output) -> Result<(), Failure> {
    match &args.file {
        Some(path) => shader(args, path, output),
        // The status after success is 0: only `--require-device`, which `spelter profile` lacks, gives another one.
        None => icd::exec(&args.exec()).map(drop),
    }
}

/// One dispatch of a round.
struct Call<'a> {
    program: &'a Program,
    groups: [u32; 3],
    push: Vec<u8>,
    /// An upper bound of the float operations of all its invocations, if there is one.
    flops: Option<f64>,
}

fn shader(args: &ProfileArgs, path: &Path, output: &mut Output) -> Result<(), Failure> {
    let shader = shader::load(path)?;
    args.trace.iter().try_for_each(|path| file::check_target(path))?;
    let names: Vec<Option<&str>> = match &args.entry[..] {
        [] => vec![None],
        names => names.iter().map(|name| Some(name.as_str())).collect(),
    };
    let inputs = Inputs::new(&shader, (&names, &args.spec), (&args.bind, &args.uniform), args.images())?;
    let context = device::profiled(&args.device, args.trace.is_some())?;
    let programs: Vec<(Program, OperationCounts)> = names
        .into_iter()
        .map(|entry| {
            let program = shader.program_with_arrays(&context, entry, &args.spec, &inputs.elements())?;
            Ok((program, OperationCounts::new(&shader, (entry, &args.spec), context.device().properties().backend)?))
        })
        .collect::<Result<_, Failure>>()?;
    let calls = calls(args, &programs)?;
    let _bound = bind(&context, args, &programs, &inputs)?;
    let report = measure(&context, args, &calls).map_err(|error| failure(&shader, error))?;
    args.trace.iter().try_for_each(|path| trace::write(&context, path))?;
    print(args, &shown(&context, path, &report, totals(&report, &calls, args.repeat)), output)?;
    for (program, _) in &programs {
        inputs.notes(program.bindings()).iter().for_each(output::note);
    }
    notes(&programs);
    Ok(())
}

/// The dispatches of a round, in order.
fn calls<'a>(args: &ProfileArgs, programs: &'a [(Program, OperationCounts)]) -> Result<Vec<Call<'a>>, Failure> {
    let sizes: Vec<[u32; 3]> = match &args.groups[..] {
        [] => vec![[1; 3]],
        groups => groups.iter().map(|groups| groups.0).collect(),
    };
    let one = |(program, work): &'a (Program, OperationCounts), groups: [u32; 3]| {
        let (invocations_per_dimension, invocations) = invocations(groups, program.workgroup_size())?;
        let push = match program.push_bytes() {
            0 => Vec::new(),
            _ => push_bytes(&args.push, invocations_per_dimension).map_err(Failure::misuse)?,
        };
        let flops = work.of(&push).max.map(|max| max.flops as f64 * invocations as f64);
        Ok(Call { program, groups, push, flops })
    };
    if !args.push.is_empty() && programs.iter().all(|(program, _)| program.push_bytes() == 0) {
        return Err(Failure::misuse("--push: no program has push constants".to_owned()));
    }
    programs.iter().flat_map(|program| sizes.iter().map(move |groups| one(program, *groups))).collect()
}

/// Binds a resource for each descriptor; buffers are large enough for all programs and dispatches.
fn bind(
    context: &Context,
    args: &ProfileArgs,
    programs: &[(Program, OperationCounts)],
    inputs: &Inputs,
) -> Result<BenchResources, Failure> {
    let mut slots: BTreeMap<(u32, u32), (BindingInfo, &str)> = BTreeMap::new();
    for (program, _) in programs {
        for info in program.bindings() {
            let known = slots.entry((info.group, info.binding)).or_insert_with(|| (info.clone(), program.entry()));
            if known.0.kind != info.kind {
                let (BindingInfo { group, binding, .. }, other, entry) = (info, known.1, program.entry());
                let problem = format!("{other:?} and {entry:?} declare it as different kinds of descriptors");
                return Err(Failure::misuse(format!(
                    "binding {group}.{binding}: {problem}: profile them one at a time"
                )));
            }
            known.0.count = known.0.count.max(info.count);
            known.0.min_bytes = known.0.min_bytes.max(info.min_bytes);
            known.0.element_bytes = known.0.element_bytes.max(info.element_bytes);
        }
    }
    let infos: Vec<BindingInfo> = slots.into_values().map(|(info, _)| info).collect();
    let entries: Vec<_> = programs.iter().map(|(program, _)| format!("{:?}", program.entry())).collect();
    let mut max_invocations = 1;
    for (program, _) in programs {
        for groups in args.groups.iter().map(|groups| groups.0).chain([[1; 3]]) {
            max_invocations = max_invocations.max(invocations(groups, program.workgroup_size())?.1);
        }
    }
    resources::bind(context, Declared { infos: &infos, by: &entries.join(", ") }, inputs, (None, max_invocations))
}

/// Runs the rounds. One is recorded while the one before it runs, as programs with two frames in flight do.
fn measure(context: &Context, args: &ProfileArgs, calls: &[Call<'_>]) -> Result<ProfileReport, Error> {
    let bar = progress(("profile", "rounds"), u64::from(args.repeat), args.json);
    let mut before: Option<Fence> = None;
    let mut round = || {
        for Call { program, groups, push, .. } in calls {
            MeasuredDispatch { context, program, push, groups: *groups }.record()?;
        }
        before.replace(context.flush()?).map_or(Ok(()), |before| before.wait())
    };
    (0..args.warm_up).try_for_each(|_| round())?;
    context.finish()?;
    context.reset_profile();
    for _ in 0..args.repeat {
        round()?;
        bar.inc(1);
    }
    context.finish()?;
    bar.finish_and_clear();
    context.profile().ok_or_else(|| Error::Options("the device does not measure".to_owned()))
}

/// The programs of the report, with the float operations of `repeat` rounds.
fn totals(report: &ProfileReport, calls: &[Call<'_>], repeat: u32) -> Programs {
    let mut programs = Programs::default();
    for program in &report.programs {
        let own = calls.iter().filter(|call| program.pipeline.is_some() && call.program.entry() == program.name);
        let flops: Option<f64> = own.map(|call| call.flops).sum();
        let flops = flops.filter(|_| program.pipeline.is_some()).map(|flops| flops * f64::from(repeat));
        programs.add(&ProgramRow { flops, ..ProgramRow::from(program) });
    }
    programs
}

/// What is printed.
struct PrintedProfile<'a> {
    path: &'a Path,
    backend: &'static str,
    workers: usize,
    report: &'a ProfileReport,
    programs: Programs,
}

fn shown<'a>(context: &Context, path: &'a Path, report: &'a ProfileReport, programs: Programs) -> PrintedProfile<'a> {
    let properties = context.device().properties();
    PrintedProfile { path, backend: properties.backend.name(), workers: properties.workers, report, programs }
}

impl PrintedProfile<'_> {
    /// By worker, the part of the time that it was busy.
    fn busy(&self) -> Vec<f64> {
        busy_shares(self.report, self.workers)
    }

    fn json(&self, args: &ProfileArgs) -> Json {
        let time = |time: &DispatchTime| {
            json!({
                "program": time.name, "groups": time.groups,
                "begin_seconds": time.start.as_secs_f64(), "end_seconds": time.end.as_secs_f64(),
                "busy_seconds": time.busy.as_secs_f64(),
            })
        };
        json!({
            "file": self.path.display().to_string(),
            "backend": self.backend,
            "rounds": args.repeat,
            "seconds": self.report.elapsed.as_secs_f64(),
            "programs": self.programs.json(),
            "workers": { "count": self.workers, "busy": self.busy() },
            "dispatches": self.report.dispatches.iter().map(time).collect::<Vec<_>>(),
            "dropped": self.report.dropped,
        })
    }
}

fn print(args: &ProfileArgs, shown: &PrintedProfile<'_>, output: &mut Output) -> Result<(), Failure> {
    if args.json {
        return output.json(&shown.json(args));
    }
    let (head, rows) = shown.programs.table();
    columns::print(output, &head, &rows)?;
    output.line("")?;
    let busy: Vec<_> = shown.busy().into_iter().map(percent).collect();
    output.table(&[
        ("rounds", format!("{}, {} together", args.repeat, seconds(shown.report.elapsed.as_secs_f64()))),
        ("workers", format!("{}, busy {}", shown.workers, busy.join(", "))),
    ])
}

/// Notes on programs that are interpreted.
fn notes(programs: &[(Program, OperationCounts)]) {
    for (program, _) in programs {
        if let Some(reason) = program.fallback() {
            let entry = program.entry();
            output::note(format_args!("{entry:?} is interpreted, which is slow: it has no machine code ({reason})"));
        }
    }
}
