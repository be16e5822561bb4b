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

use std::process::ExitCode;

use clap::Parser;

use args::{Cli, Command};
use failure::Failure;
use output::Output;

/// Ends with status 0, or with 1 and one message; clap has ended wrong usage with 2 before.
fn main() -> ExitCode {
    quiet_where_caught();
    match start(&mut Cli::parse()) {
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

fn start(cli: &mut Cli) -> Result<(), Failure> {
    environment::complete(&mut cli.command)?;
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
