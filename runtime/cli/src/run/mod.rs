//! `spelter run`: runs one shader with buffers from the command line and prints results.

mod bind;
mod misuse;
mod notes;
mod report;

use std::time::{Duration, Instant};

use spelter::{Context, Program};

use crate::args::RunArgs;
use crate::device;
use crate::failure::Failure;
use crate::output::{self, Output};
use crate::shader::{self, Shader};
use bind::BoundBuffer;

/// Runs the shader as the options say.
pub(crate) fn run(args: &RunArgs, output: &mut Output) -> Result<(), Failure> {
    let shader = shader::load(&args.file)?;
    let context = device::traced(&args.device, args.trace.is_some())?;
    let program = shader.program(&context, args.entry.as_deref(), &args.spec)?;
    let bound = bind::all(&context, &program, args)?;
    report::check(&bound, args)?;
    let times = dispatch(&context, (&shader, &program), &bound, args)?;
    report::save(&context, &bound, args)?;
    report::trace(&context, args)?;
    let notes = notes::of(&program, &bound, args);
    report::print(&context, &program, &bound, (&times, &notes), args, output)?;
    notes.iter().for_each(output::note);
    Ok(())
}

/// The time of each repetition, from recording it to its end.
fn dispatch(
    context: &Context,
    (shader, program): (&Shader, &Program),
    bound: &[BoundBuffer],
    args: &RunArgs,
) -> Result<Vec<Duration>, Failure> {
    (0..args.repeat)
        .map(|_| {
            let start = Instant::now();
            let mut dispatch = context.dispatch(program);
            for BoundBuffer { slot, buffer, .. } in bound {
                dispatch = dispatch.bind_element(slot.group, slot.binding, slot.element, buffer, 0..buffer.size());
            }
            dispatch = args.push.iter().flat_map(|push| &push.0).fold(dispatch, |dispatch, byte| dispatch.push(byte));
            dispatch.groups(args.groups()).map_err(|error| misuse::failure(error, program))?;
            context.wait().map_err(|error| shader.failed(error))?;
            Ok(start.elapsed())
        })
        .collect()
}
