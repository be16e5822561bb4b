//! Programs of others that shaders go through: text in, words out.

use std::io::{ErrorKind, Write};
use std::process::{Command, Stdio};

use crate::amber::Stop;

/// What came of a program.
pub(super) enum Ended {
    /// Its standard output.
    Well(Vec<u8>),
    /// What it says against the text.
    Refused(String),
    /// There is no such program here.
    Absent,
}

/// Runs a program with that input. `Stop::Fail` if it could not be run though it is here.
pub(super) fn run(program: &str, arguments: &[&str], input: &[u8]) -> Result<Ended, Stop> {
    let broken = |error: std::io::Error| Stop::Fail(format!("{program}: {error}"));
    let spawned = Command::new(program)
        .args(arguments)
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn();
    let mut child = match spawned {
        Ok(child) => child,
        Err(error) if error.kind() == ErrorKind::NotFound => return Ok(Ended::Absent),
        Err(error) => return Err(broken(error)),
    };
    let stdin = child.stdin.take();
    // It may write before it has read all: neither side must wait for the other.
    let output = std::thread::scope(|scope| {
        scope.spawn(move || {
            // A program that has seen enough says so by its status.
            let _ = stdin.map(|mut stdin| stdin.write_all(input));
        });
        child.wait_with_output()
    });
    let output = output.map_err(broken)?;
    if output.status.success() {
        return Ok(Ended::Well(output.stdout));
    }
    let said = [output.stdout, output.stderr].concat();
    Ok(Ended::Refused(String::from_utf8_lossy(&said).trim().to_owned()))
}
