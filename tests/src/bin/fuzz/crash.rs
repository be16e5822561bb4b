//! Programs that end their process: each attempt to reduce one is a process of its own.

use std::path::Path;
use std::process::{Command, ExitCode, ExitStatus, Stdio};
use std::time::{Duration, Instant};

use spelter_tests::fuzz::{Program, Tape, generate, quiet_panics, reduce, shrink, text};

use crate::args::Args;

/// Attempts to reduce a crash.
const SHRINK: u32 = 500;

/// Time limit of an attempt.
const PATIENCE: Duration = Duration::from_secs(60);

/// Runs the program in a file; any finding is a success, as long as the process lives.
pub(crate) fn check(args: &Args, path: &Path) -> ExitCode {
    quiet_panics();
    let program = std::fs::read_to_string(path).map_err(|error| error.to_string()).and_then(|text| text::read(&text));
    match program {
        Ok(program) => _ = args.bench().check(&program),
        Err(error) => {
            eprintln!("{error}");
            return ExitCode::from(2);
        }
    }
    ExitCode::SUCCESS
}

/// How a process died unexpectedly.
pub(crate) fn death(status: ExitStatus) -> Option<String> {
    match status.code() {
        Some(0 | 2) => None,
        Some(code) => Some(format!("the process ends with {code}")),
        None => Some(format!("the process dies: {status}")),
    }
}

/// How the process that runs this program dies, if it does.
fn dies(args: &Args, program: &Program, job: u64) -> Option<String> {
    let path = args.out.join(format!(".try-{}-{job}", args.array.shard.numbers().0));
    std::fs::write(&path, text::write(program, "")).ok()?;
    let mut command = Command::new(std::env::current_exe().ok()?);
    command.arg("--check").arg(&path).stdout(Stdio::null()).stderr(Stdio::null());
    if let Some(engine) = &args.engine {
        command.arg("--engine").arg(engine);
    }
    if args.race {
        command.arg("--race");
    }
    let mut process = command.spawn().ok()?;
    let start = Instant::now();
    loop {
        if let Some(status) = process.try_wait().ok()? {
            return death(status);
        }
        if start.elapsed() > PATIENCE {
            let _ = process.kill();
            let _ = process.wait();
            return Some("hangs and cannot be stopped".into());
        }
        std::thread::sleep(Duration::from_millis(2));
    }
}

/// Reduces the program of that number if its process dies again; returns the cause of death and the text.
pub(crate) fn shrunk(args: &Args, number: u64, job: u64) -> Option<(String, String)> {
    let options = args.options();
    let (generated, tape) = args.program(number, options);
    let death = dies(args, &generated.program, job)?;
    let mut same = |program: &Program| dies(args, program, job).is_some_and(|other| other == death);
    let tape = shrink(tape, options, SHRINK, &mut same);
    let (generated, _) = generate(Tape::fixed(tape), options);
    let program = reduce(generated.program, SHRINK, &mut same);
    let about = format!("{death}\nseed {}, program {number}", args.seed);
    Some((death, text::write(&program, &about)))
}
