//! Lists of launches: files whose lines say how shaders are run.

use std::path::Path;

use clap::Parser;
use clap::error::{ContextKind, ErrorKind};

use super::cases::{Case, CaseKind};
use crate::args::{Cli, Command, RunArgs};
use crate::failure::Failure;
use crate::file;
use crate::output::Color;

/// The extension of a list.
pub(super) const EXTENSION: &str = "launches";

/// The largest list in bytes.
const MAX_BYTES: u64 = 16 << 20;

/// The launches of a list, one a line. Words, quotes and comments are those of a shell.
pub(super) fn launches(path: &Path) -> Result<Vec<Case>, Failure> {
    let text = String::from_utf8(file::read(path, MAX_BYTES)?).map_err(|_| Failure::file(path, "not a text"))?;
    let mut cases = Vec::new();
    for (number, line) in (1..).zip(text.lines()) {
        let place = format!("{}:{number}", path.display());
        let words = shlex::split(line).ok_or_else(|| Failure::new(format!("{place}: a quote has no end")))?;
        if words.is_empty() {
            continue;
        }
        let args = launch(&words).map_err(|problem| Failure::new(format!("{place}: {problem}")))?;
        let name = format!("{place} {}", args.file.display());
        cases.push(Case { path: args.file.clone(), name, kind: CaseKind::Launch(Box::new(args), words.join(" ")) });
    }
    if cases.is_empty() { Err(Failure::file(path, "there is no launch in it")) } else { Ok(cases) }
}

/// The options of a line: what follows `spelter run`, without what says how to run it or what to do with results.
fn launch(words: &[String]) -> Result<RunArgs, String> {
    let all = ["spelter", "run"].into_iter().chain(words.iter().map(String::as_str));
    let args = match Cli::try_parse_from(all) {
        Ok(Cli { color: Color::Always | Color::Never, .. }) => return Err(no_option("--color")),
        Ok(Cli { command: Command::Run(args), .. }) => args,
        Ok(_) => return Err("not a launch".to_owned()),
        Err(error) => return Err(problem(&error)),
    };
    let device = &args.device;
    let given = [
        ("--out", !args.out.is_empty()),
        ("--save", !args.save.is_empty()),
        ("--trace", args.trace.is_some()),
        ("--time", args.time),
        ("--json", args.json),
        ("--check", args.check.check.is_some()),
        ("--workers", device.workers.is_some()),
        ("--backend", device.backend.is_some()),
        ("--time-limit", device.time_limit.is_some()),
        ("--schedule", device.schedule.is_some()),
    ];
    if let Some((option, _)) = given.into_iter().find(|(_, given)| *given) {
        return Err(no_option(option));
    }
    if let Some(option) = args.check.without_check() {
        return Err(no_option(option));
    }
    if file::is_stdin(&args.file) || args.input_files().into_iter().any(file::is_stdin) {
        return Err("`-` is no file of a launch: each order reads it again".to_owned());
    }
    Ok(args)
}

fn no_option(option: &str) -> String {
    format!("{option} is no option of a launch")
}

/// What is wrong with a line, in one line.
fn problem(error: &clap::Error) -> String {
    if let ErrorKind::DisplayHelp | ErrorKind::DisplayVersion = error.kind() {
        return no_option("--help");
    }
    let text = error.to_string();
    let first = text.lines().next().unwrap_or_default();
    let first = first.strip_prefix("error: ").unwrap_or(first);
    match error.get(ContextKind::InvalidArg) {
        // The arguments are on lines of their own.
        Some(missing) if error.kind() == ErrorKind::MissingRequiredArgument => format!("{first} {missing}"),
        _ => first.to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn line(text: &str) -> Result<RunArgs, String> {
        launch(&shlex::split(text).unwrap())
    }

    #[test]
    fn a_launch_is_what_follows_run() {
        let args = line("'my a#b.wgsl' --groups 4 --bind 0.0=zeros:64 # all").unwrap();
        assert_eq!((args.file.to_str(), args.bind.len()), (Some("my a#b.wgsl"), 1));
        for (text, part) in [
            ("--groups 4", "required arguments were not provided: <FILE>"),
            ("a.wgsl --any-build", "required arguments were not provided: --many-seeds <N>, --results <FILE>"),
            ("a.wgsl --group", "unexpected argument"),
            ("a.wgsl --help", "--help is no option of a launch"),
            ("a.wgsl --color always", "--color is no option of a launch"),
            ("a.wgsl --bind 0.0=@-", "`-` is no file of a launch"),
            ("a.wgsl --check", "--check is no option of a launch"),
            ("a.wgsl --shard 1/2", "--shard is no option of a launch"),
            ("a.wgsl --out 0.0=u32", "--out is no option of a launch"),
            ("a.wgsl --workers 2", "--workers is no option of a launch"),
        ] {
            let problem = line(text).unwrap_err();
            assert!(problem.contains(part), "{text}: {problem}");
        }
    }
}
