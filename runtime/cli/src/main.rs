//! The program `spelter`: runs and compiles compute programs from the command line.

mod amber;
mod args;
mod bar;
mod bench;
mod chart;
mod check;
mod columns;
mod compile;
mod demo;
mod device;
mod driver_files;
mod element;
mod environment;
mod failure;
mod file;
mod glsl;
mod icd;
mod image;
mod info;
mod library;
mod litmus;
mod manual;
mod merge;
mod names;
mod output;
mod profile;
mod profile_folder;
mod random;
mod reflect;
mod rgb_picture;
mod run;
mod scalar;
mod scratch;
mod shader;
mod slot;
mod snippet;
mod statistics;
mod structured;
mod test;
mod trace;
mod usage;
mod value;

use std::io::{self, ErrorKind, Write};
use std::path::PathBuf;
use std::process::ExitCode;

use clap::Parser;

use args::{Cli, Command, TraceCommand};
use failure::Failure;
use output::Output;

/// Exits with status 0, with that of the cause and one message after a failure, or with 2 and one message for wrong
/// usage; 3 is that of `spelter litmus --deny-races`, 66 and 67 those of `spelter run --check`, `spelter test --check`
/// and `spelter check`, and 67 that of `spelter exec --require-device`.
fn main() -> ExitCode {
    silence_caught_panics();
    let mut cli = match Cli::try_parse() {
        Ok(cli) => cli,
        Err(error) => return print_clap(&usage::with_hint(error)),
    };
    output::set_color(cli.color);
    let mut output = Output::new();
    let result = match environment::complete(&mut cli.command) {
        Ok(()) => start(&cli.command, &mut output),
        Err(failure) => Err(Failure::usage(failure.to_string())),
    };
    let result = failed_in_json(&cli.command, result, &mut output);
    match status_after(result, &mut output) {
        Ok(status) => status.into(),
        Err(failure) => {
            output::report(&failure);
            failure.status().into()
        }
    }
}

/// Silences panics that the WGSL reader catches, since they are reported as errors. No other thread exists yet that
/// could replace the hook.
fn silence_caught_panics() {
    let default = std::panic::take_hook();
    std::panic::set_hook(Box::new(move |info| {
        if !spelter_shaders::front::wgsl::is_catching() {
            default(info);
        }
    }));
}

/// Prints help, version or a usage error of clap; with `--json` that is an object on standard output, too, as every
/// failure is. Help and version that cannot be written are a failure.
fn print_clap(error: &clap::Error) -> ExitCode {
    if error.use_stderr() && usage::wants_json(std::env::args_os().skip(1)) {
        let (text, mut output) = (error.to_string(), Output::new());
        let message = text.strip_prefix("error: ").unwrap_or(&text).trim_end();
        // A closed pipe has no reader of the object.
        let _ = output.json(&serde_json::json!({ "file": null, "error": message })).and_then(|()| output.flush());
    }
    let printed = error.print().and_then(|()| io::stdout().flush());
    match printed {
        Err(unwritten) if !error.use_stderr() && unwritten.kind() != ErrorKind::BrokenPipe => {
            output::report(&unwritten.into());
            ExitCode::FAILURE
        }
        _ => u8::try_from(error.exit_code()).map_or(ExitCode::FAILURE, ExitCode::from),
    }
}

/// Runs the command. Returns the exit status.
fn start(command: &Command, output: &mut Output) -> Result<u8, Failure> {
    match command {
        Command::Run(args) => run::run(args, output),
        Command::Bench(args) => bench::run(args, output).map(|()| 0),
        Command::Profile(args) => bench::profile(args, output).map(|()| 0),
        Command::Compile(args) => compile::run(args, output).map(|()| 0),
        Command::Reflect(args) => reflect::run(args, output).map(|()| 0),
        Command::Demo(args) => demo::run(args, output).map(|()| 0),
        Command::Test(args) => test::run(args, output),
        Command::Info(args) => info::run(args, output).map(|()| 0),
        Command::Litmus(args) => litmus::run(args, output),
        Command::Exec(args) => icd::exec(args),
        Command::Check(args) => check::command::run(args),
        Command::Merge(args) => merge::run(args, output),
        Command::Trace(args) => trace::run(args, output).map(|()| 0),
        Command::Icd(args) => icd::run(args, output).map(|()| 0),
        Command::Completions(args) => manual::completions(args, output).map(|()| 0),
        Command::Man(args) => manual::man(args, output).map(|()| 0),
    }
}

/// What a command with `--json` prints, and the file that a failure is about.
fn json_of(command: &Command) -> Option<(Printed, Option<&PathBuf>)> {
    fn only(files: &[PathBuf]) -> Option<&PathBuf> {
        files.first().filter(|_| files.len() == 1)
    }
    use Printed::{Lines, Object};
    let (json, printed, file) = match command {
        Command::Bench(args) => (args.json, Object, Some(&args.file)),
        Command::Profile(args) => (args.json, Object, args.file.as_ref()),
        Command::Compile(args) => (args.json, Object, Some(&args.file)),
        Command::Reflect(args) => (args.json, Object, Some(&args.file)),
        Command::Test(args) => (args.json, Object, only(&args.paths)),
        Command::Merge(args) => (args.json, Object, only(&args.files)),
        Command::Litmus(args) => (args.json, Lines, only(&args.paths)),
        Command::Demo(args) => (args.json, Lines, None),
        Command::Info(args) => (args.json, Object, None),
        Command::Trace(args) => {
            let TraceCommand::Summary { file, json } = &args.command;
            (*json, Object, Some(file))
        }
        Command::Run(args) => (args.json, Object, Some(&args.file)),
        Command::Icd(args) => (args.command.json(), Object, None),
        Command::Man(args) => (args.json, Object, Some(&args.folder)),
        _ => return None,
    };
    json.then_some((printed, file))
}

/// What a command prints with `--json`.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Printed {
    /// One object, which says what failed.
    Object,
    /// An object for each of several things, of which one failed.
    Lines,
}

/// The result of a command. With `--json`, a failure is an object on standard output, too, where programs read; not
/// after the command's only object.
fn failed_in_json(command: &Command, result: Result<u8, Failure>, output: &mut Output) -> Result<u8, Failure> {
    if let (Some((printed, file)), Err(failure)) = (json_of(command), &result)
        && (printed == Printed::Lines || !output.has_json())
    {
        let file = file.map(|path| path.display().to_string());
        output.json(&serde_json::json!({ "file": file, "error": failure.to_string() }))?;
    }
    result
}

/// The result of a command, after its output is flushed, so that it precedes the message of a failure.
fn status_after(result: Result<u8, Failure>, output: &mut Output) -> Result<u8, Failure> {
    let flushed = output.flush();
    result.and_then(|status| flushed.map(|()| status))
}
