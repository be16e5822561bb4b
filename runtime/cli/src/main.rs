//! The program `spelter`: runs and compiles compute programs from the command line.

mod amber;
mod args;
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
mod value;

use std::io::{self, ErrorKind, Write};
use std::path::PathBuf;
use std::process::ExitCode;

use clap::Parser;

use args::{Cli, Command};
use failure::{Failure, USAGE};
use output::Output;

/// Exits with status 0, with that of the cause and one message after a failure, or with 2 and one message for wrong
/// usage; 3 is that of `spelter litmus --deny-races`, 66 and 67 those of `spelter run --check` and `spelter check`,
/// and 67 that of `spelter exec --require-device`.
fn main() -> ExitCode {
    silence_caught_panics();
    let mut cli = match Cli::try_parse() {
        Ok(cli) => cli,
        Err(error) => return print_clap(&error),
    };
    output::set_color(cli.color);
    if let Err(failure) = environment::complete(&mut cli.command) {
        output::report(&failure);
        return USAGE.into();
    }
    match start(&cli) {
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

/// Prints help, version or a usage error of clap. Help and version that cannot be written are a failure.
fn print_clap(error: &clap::Error) -> ExitCode {
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
fn start(cli: &Cli) -> Result<u8, Failure> {
    let mut output = Output::new();
    let result = match &cli.command {
        Command::Run(args) => return status_after(run::run(args, &mut output), &mut output),
        Command::Bench(args) => bench::run(args, &mut output),
        Command::Profile(args) => bench::profile(args, &mut output),
        Command::Compile(args) => compile::run(args, &mut output),
        Command::Reflect(args) => {
            let result = reflect::run(args, &mut output);
            failed_in_json(args.json, Some(&args.file), result, &mut output)
        }
        Command::Demo(args) => demo::run(args, &mut output),
        Command::Test(args) => test::run(args, &mut output),
        Command::Info(args) => info::run(args, &mut output),
        Command::Litmus(args) => {
            let result = litmus::run(args, &mut output);
            let only = args.paths.first().filter(|_| args.paths.len() == 1);
            let result = failed_in_json(args.json, only, result, &mut output);
            return status_after(result, &mut output);
        }
        Command::Exec(args) => return status_after(icd::exec(args), &mut output),
        Command::Check(args) => return status_after(check::command::run(args), &mut output),
        Command::Merge(args) => {
            let ended = merge::run(args, &mut output);
            return status_after(ended, &mut output);
        }
        Command::Trace(args) => trace::run(args, &mut output),
        Command::Icd(args) => icd::run(args, &mut output),
        Command::Completions(args) => manual::completions(args, &mut output),
        Command::Man(args) => manual::man(args, &mut output),
    };
    status_after(result.map(|()| 0), &mut output)
}

/// The result of a command. With `--json`, a failure is an object on standard output, too, where programs read.
fn failed_in_json<T>(
    json: bool,
    file: Option<&PathBuf>,
    result: Result<T, Failure>,
    output: &mut Output,
) -> Result<T, Failure> {
    if let (true, Err(failure)) = (json, &result) {
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
