//! `spelter run`: runs one shader with resources from the command line and prints results.

pub(crate) mod automatic;
pub(crate) mod bind;
mod checked;
pub(crate) mod images;
mod messages;
mod misuse;
pub(crate) mod names;
mod notes;
mod orders;
mod progress;
mod report;

use std::time::{Duration, Instant};

use serde_json::json;
use spelter::check::{CheckStats, Finding};
use spelter::{Context, Printer, Program, Schedule};

use crate::args::RunArgs;
use crate::check;
use crate::device;
use crate::failure::Failure;
use crate::output::{self, Output};
use crate::shader::{self, Shader};
use crate::slot::named;
use crate::trace;
use bind::BoundResources;
use checked::Checked;
use messages::Messages;

/// Runs the shader as the options say. With `--json`, a failure is printed as a JSON object, too. Returns the exit
/// status.
pub(crate) fn run(args: &RunArgs, output: &mut Output) -> Result<u8, Failure> {
    let messages = Messages::new(args.json);
    let mut found = None;
    let result = execute(args, &messages, output, &mut found);
    if let (true, Err(failure)) = (args.json, &result) {
        let file = args.file.display().to_string();
        let mut object = json!({ "file": file, "error": failure.to_string(), "messages": messages.json() });
        if let (Some(object), Some(found)) = (object.as_object_mut(), &found) {
            object.extend(found.json());
        }
        output.json(&object)?;
    } else if let Some(found) = &found {
        found.print(false);
    }
    result
}

/// If it fails in checked mode, `found` is what was found before.
fn execute(
    args: &RunArgs,
    messages: &Messages,
    output: &mut Output,
    found: &mut Option<Checked>,
) -> Result<u8, Failure> {
    let shader = shader::load(&args.file)?;
    let args = &names::resolved(args, &shader)?;
    if args.check.has_no_order() {
        return checked::without_orders(&shader, args, output);
    }
    let Launched { context, program, bound } = launch(&shader, args, messages.printer())?;
    report::check(&bound, args)?;
    check::check_targets(&args.check.files)?;
    orders::check_results(&shader, args)?;
    let times = match progress::shown(&context, || dispatch(&context, (&shader, &program), &bound, args)) {
        Ok(times) => times,
        Err(failure) => {
            // A race is often why a kernel does not end.
            let failure = match args.device.schedule {
                Some(schedule) if schedule != Schedule::Ascending => {
                    failure.with_order(format_args!("--schedule {schedule}"))
                }
                _ => failure,
            };
            return Err(checked::after_a_failure(&context, &shader, args, failure, found));
        }
    };
    let checked = checked::report(&context, &shader, &bound, args, found)?;
    let saved = report::save(&context, &bound, args)?;
    args.trace.iter().try_for_each(|path| trace::write(&context, path))?;
    let mut notes = bound.notes.clone();
    notes.extend(notes::of(&program, &bound, args));
    notes.extend(saved);
    notes.extend(checked.iter().flat_map(|checked| checked.notes(&args.check)));
    report::print(&context, &program, &bound, (&times, &notes, messages, checked.as_ref()), args, output)?;
    notes.iter().for_each(output::note);
    let Some(checked) = checked else { return Ok(0) };
    if !args.json {
        // Results go to standard output, findings to standard error: after them.
        output.flush()?;
        checked.print(true);
    }
    checked.denied(&args.check).iter().for_each(output::report);
    check::write_files(&args.check.files, checked.findings(), &args.file)?;
    Ok(checked.status(&args.check))
}

/// A device with everything that a dispatch needs.
struct Launched {
    context: Context,
    program: Program,
    bound: BoundResources,
}

fn launch(shader: &Shader, args: &RunArgs, printer: Printer) -> Result<Launched, Failure> {
    let context = device::with_printer(&args.device, args.trace.is_some(), printer, args.check.options())?;
    let program = shader.program_with_arrays(&context, args.entry.as_deref(), &args.spec, &names::elements(args))?;
    let bound = bind::all(&context, &program, args)?;
    Ok(Launched { context, program, bound })
}

/// What a run did.
pub(crate) struct Ran {
    /// The names of the buffers and images: `0.1 (data)`.
    pub(crate) names: Vec<String>,
    /// Their final contents; none after a failure.
    pub(crate) contents: Vec<Vec<u8>>,
    /// What checked mode found, also before a failure.
    pub(crate) findings: Vec<Finding>,
    pub(crate) stats: CheckStats,
    pub(crate) failure: Option<Failure>,
}

/// Runs a shader on a device of its own, for its effects only. An error if it cannot be started.
pub(crate) fn once(shader: &Shader, args: &RunArgs, printer: Printer) -> Result<Ran, Failure> {
    let Launched { context, program, bound } = launch(shader, args, printer)?;
    let ended = dispatch(&context, (shader, &program), &bound, args);
    let (findings, stats) = (context.device().take_findings(), context.check_stats());
    let contents = ended.and_then(|_| bound.contents(&context));
    let slots = bound.buffers.iter().map(|buffer| buffer.slot).chain(bound.images.iter().map(|image| image.slot));
    let names = slots.map(|slot| {
        let info = bind::info_of(program.bindings(), slot);
        named(bind::shown(slot, info), info.and_then(bind::variable))
    });
    let names = names.collect();
    let (contents, failure) = match contents {
        Ok(contents) => (contents, None),
        Err(failure) => (Vec::new(), Some(failure)),
    };
    Ok(Ran { names, contents, findings, stats, failure })
}

/// The first difference of final contents, in a phrase.
pub(crate) fn difference(names: &[String], expected: &[Vec<u8>], found: &[Vec<u8>]) -> Option<String> {
    let mut all = names.iter().zip(expected.iter().zip(found));
    all.find(|(_, (expected, found))| expected != found).map(|(name, (expected, found))| {
        let at = expected.iter().zip(found).position(|(expected, found)| expected != found).unwrap_or(0);
        format!("{name} differs at byte {at}")
    })
}

/// The time of each repetition, from recording it to its end.
fn dispatch(
    context: &Context,
    (shader, program): (&Shader, &Program),
    bound: &BoundResources,
    args: &RunArgs,
) -> Result<Vec<Duration>, Failure> {
    (0..args.repeat)
        .map(|_| {
            let start = Instant::now();
            let mut dispatch = bound.to(context.dispatch(program));
            dispatch = args.push.iter().flat_map(|push| &push.0).fold(dispatch, |dispatch, byte| dispatch.push(byte));
            let groups = args.groups(program.workgroup_size());
            dispatch.groups(groups).map_err(|error| misuse::failure(error, program, args))?;
            context.finish().map_err(|error| shader.failed(error))?;
            Ok(start.elapsed())
        })
        .collect()
}
