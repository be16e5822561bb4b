//! The program `spelter`: runs compute programs from the command line, and shows what they become.

mod amber;
mod args;
mod compile;
mod demo;
mod device;
mod environment;
mod failure;
mod file;
mod icd;
mod info;
mod litmus;
mod output;
mod random;
mod run;
mod scalar;
mod shader;
mod slot;
mod test;
mod value;

use std::io::{self, ErrorKind, Write};
use std::process::ExitCode;

use clap::Parser;

use args::{Cli, Command};
use failure::Failure;
use output::Output;

/// Status of wrong usage: of the command line, or of the environment.
const USAGE: u8 = 2;

/// Ends with status 0, or with 1 and one message, or with 2 and one message for wrong usage.
fn main() -> ExitCode {
    quiet_where_caught();
    let mut cli = match Cli::try_parse() {
        Ok(cli) => cli,
        Err(said) => return say(&said),
    };
    if let Err(failure) = environment::complete(&mut cli.command) {
        output::report(&failure);
        return USAGE.into();
    }
    match start(&cli) {
        Ok(()) => ExitCode::SUCCESS,
        Err(failure) => {
            output::report(&failure);
            ExitCode::FAILURE
        }
    }
}

/// A panic that becomes an error is told by the error alone. No other thread runs yet that could set a hook meanwhile.
fn quiet_where_caught() {
    let tell = std::panic::take_hook();
    std::panic::set_hook(Box::new(move |info| {
        if !spelter_shaders::front::wgsl::is_catching() {
            tell(info);
        }
    }));
}

/// Prints what clap says: help and version, where a text that does not arrive is a failure, or what is wrong with the usage.
fn say(said: &clap::Error) -> ExitCode {
    let printed = said.print().and_then(|()| io::stdout().flush());
    match printed {
        Err(error) if !said.use_stderr() && error.kind() != ErrorKind::BrokenPipe => {
            output::report(&error.into());
            ExitCode::FAILURE
        }
        _ => u8::try_from(said.exit_code()).map_or(ExitCode::FAILURE, ExitCode::from),
    }
}

fn start(cli: &Cli) -> Result<(), Failure> {
    let mut output = Output::new();
    let result = match &cli.command {
        Command::Run(args) => run::run(args, &mut output),
        Command::Compile(args) => compile::run(args, &mut output),
        Command::Demo(args) => demo::run(args, &mut output),
        Command::Test(args) => test::run(args, &mut output),
        Command::Info(args) => info::run(args, &mut output),
        Command::Litmus(args) => litmus::run(args, &mut output),
        Command::Exec(args) => icd::exec(args),
        Command::Icd(args) => icd::run(args, &mut output),
    };
    // What was printed before a failure stands before its message.
    let flushed = output.flush();
    result.and(flushed)
}
