//! `spelter run`: runs one shader with resources from the command line and prints results.

mod bind;
pub(crate) mod images;
mod messages;
mod misuse;
mod names;
mod notes;
mod report;

use std::time::{Duration, Instant};

use serde_json::json;
use spelter::{Context, Program};

use crate::args::RunArgs;
use crate::device;
use crate::failure::Failure;
use crate::output::{self, Output};
use crate::shader::{self, Shader};
use bind::Bound;
use messages::Messages;

/// Runs the shader as the options say. With `--json`, a failure is printed as a JSON object, too.
pub(crate) fn run(args: &RunArgs, output: &mut Output) -> Result<(), Failure> {
    let messages = Messages::new(args.json);
    let result = execute(args, &messages, output);
    if let (true, Err(failure)) = (args.json, &result) {
        let file = args.file.display().to_string();
        output.json(&json!({ "file": file, "error": failure.to_string(), "messages": messages.json() }))?;
    }
    result
}

fn execute(args: &RunArgs, messages: &Messages, output: &mut Output) -> Result<(), Failure> {
    let shader = shader::load(&args.file)?;
    let args = &names::resolved(args, &shader)?;
    let context = device::with_printer(&args.device, args.trace.is_some(), messages.printer())?;
    let program = shader.program_with_arrays(&context, args.entry.as_deref(), &args.spec, &names::elements(args))?;
    let bound = bind::all(&context, &program, args)?;
    report::check(&bound, args)?;
    let times = dispatch(&context, (&shader, &program), &bound, args)?;
    let saved = report::save(&context, &bound, args)?;
    report::trace(&context, args)?;
    let mut notes = notes::of(&program, &bound, args);
    notes.extend(saved);
    report::print(&context, &program, &bound, (&times, &notes, messages), args, output)?;
    notes.iter().for_each(output::note);
    Ok(())
}

/// The time of each repetition, from recording it to its end.
fn dispatch(
    context: &Context,
    (shader, program): (&Shader, &Program),
    bound: &Bound,
    args: &RunArgs,
) -> Result<Vec<Duration>, Failure> {
    (0..args.repeat)
        .map(|_| {
            let start = Instant::now();
            let mut dispatch = bound.to(context.dispatch(program));
            dispatch = args.push.iter().flat_map(|push| &push.0).fold(dispatch, |dispatch, byte| dispatch.push(byte));
            let groups = args.groups(program.workgroup_size());
            dispatch.groups(groups).map_err(|error| misuse::failure(error, program))?;
            context.finish().map_err(|error| shader.failed(error))?;
            Ok(start.elapsed())
        })
        .collect()
}
