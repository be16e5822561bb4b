//! External compilers, assemblers and optimizers: text in, SPIR-V words out.

use std::io::{ErrorKind, Write};
use std::process::{Command, Stdio};

use crate::amber::Stop;

/// The result of an external program.
pub(super) enum ToolResult {
    /// Its standard output.
    Output(Vec<u8>),
    /// Its messages, if it rejected the text.
    Rejected(String),
    /// The program is not installed.
    Missing,
}

/// Runs a program with that input. `Stop::Fail` if it is installed but cannot be run.
pub(super) fn run(program: &str, arguments: &[&str], input: &[u8]) -> Result<ToolResult, Stop> {
    let broken = |error: std::io::Error| Stop::Fail(format!("{program}: {error}"));
    let spawned = Command::new(program)
        .args(arguments)
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn();
    let mut child = match spawned {
        Ok(child) => child,
        Err(error) if error.kind() == ErrorKind::NotFound => return Ok(ToolResult::Missing),
        Err(error) => return Err(broken(error)),
    };
    let stdin = child.stdin.take();
    // The program may write before it has read everything, so input is written by another thread.
    let output = std::thread::scope(|scope| {
        scope.spawn(move || {
            // A program that closes its input early reports the reason by its status.
            let _ = stdin.map(|mut stdin| stdin.write_all(input));
        });
        child.wait_with_output()
    });
    let output = output.map_err(broken)?;
    if output.status.success() {
        return Ok(ToolResult::Output(output.stdout));
    }
    let messages = [output.stdout, output.stderr].concat();
    Ok(ToolResult::Rejected(String::from_utf8_lossy(&messages).trim().to_owned()))
}
