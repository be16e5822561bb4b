//! `spelter run`: one shader, buffers from the command line, results on it.

mod bind;
mod report;
mod shader;

use std::time::{Duration, Instant};

use spelter::{Context, Program};

use crate::args::RunArgs;
use crate::device;
use crate::failure::Failure;
use crate::output::Output;
use bind::Bound;

/// Runs the shader as the options say.
pub(crate) fn run(args: &RunArgs, output: &mut Output) -> Result<(), Failure> {
    let shader = shader::load(&args.file)?;
    let context = device::context(&args.device)?;
    let program = shader.program(&context, args)?;
    let push = push_words(args, &program)?;
    let bound = bind::all(&context, &program, args)?;
    report::check(&bound, args)?;
    let times = dispatch(&context, &program, &bound, &push, args)?;
    report::save(&context, &bound, args)?;
    report::print(&context, &program, &bound, &times, args, output)
}

/// All push constants, joined; the program must declare as many bytes.
fn push_words(args: &RunArgs, program: &Program) -> Result<Vec<u32>, Failure> {
    let words: Vec<u32> = args.push.iter().flat_map(|push| push.0.iter().copied()).collect();
    let (given, wanted) = (words.len() as u64 * 4, u64::from(program.push_bytes()).next_multiple_of(4));
    if given != wanted {
        let entry = program.entry();
        return Err(Failure(format!("push constants: {entry:?} declares {wanted} bytes, --push gives {given}")));
    }
    Ok(words)
}

/// The time of each repetition, from recording it to its end.
fn dispatch(
    context: &Context,
    program: &Program,
    bound: &[Bound],
    push: &[u32],
    args: &RunArgs,
) -> Result<Vec<Duration>, Failure> {
    (0..args.repeat)
        .map(|_| {
            let start = Instant::now();
            let mut dispatch = context.dispatch(program);
            for Bound { slot, buffer } in bound {
                dispatch = dispatch.bind_element(slot.group, slot.binding, slot.element, buffer, 0..buffer.size());
            }
            dispatch = push.iter().fold(dispatch, |dispatch, word| dispatch.push(word));
            dispatch.groups(args.groups.0)?;
            context.wait()?;
            Ok(start.elapsed())
        })
        .collect()
}
