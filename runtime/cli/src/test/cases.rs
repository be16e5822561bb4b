//! What the command line names: scripts, and in checked mode shaders and lists of launches.

use std::path::{Path, PathBuf};

use clap::Parser;

use crate::args::{Cli, Command, RunArgs};
use crate::failure::Failure;
use crate::file;
use crate::output;

/// Extensions of shaders.
const SHADERS: [&str; 5] = ["wgsl", "spv", "spvasm", "comp", "glsl"];

/// The extension of a list of launches.
const LIST: &str = "launches";

/// The largest list in bytes.
const MAX_LIST: u64 = 16 << 20;

/// Something that is run.
#[derive(Debug)]
pub(super) struct Case {
    /// The script or the shader.
    pub(super) path: PathBuf,
    /// The path, or the place of the launch and its shader.
    pub(super) name: String,
    pub(super) kind: Kind,
}

/// How it is run.
#[derive(Debug)]
pub(super) enum Kind {
    Script,
    /// A shader without a launch.
    Shader,
    /// A shader with the launch of a list, and the text of that.
    Launch(Box<RunArgs>, String),
}

impl Case {
    fn of_file(path: PathBuf, kind: Kind) -> Self {
        Self { name: path.display().to_string(), path, kind }
    }

    /// The files on which its result depends, with the names that they have in a job array.
    pub(super) fn files(&self) -> Vec<(String, &Path)> {
        let Kind::Launch(args, text) = &self.kind else { return vec![(self.name.clone(), &self.path)] };
        let all = [self.path.as_path()].into_iter().chain(args.input_files());
        all.map(|path| (format!("{} {text} {}", self.name, path.display()), path)).collect()
    }
}

/// The files, and those in folders and their subfolders, in the order of the arguments, then by name: scripts, and
/// shaders if they are checked. A list of launches in a folder is passed over, with a note.
pub(super) fn find(paths: &[PathBuf], is_checked: bool) -> Result<Vec<Case>, Failure> {
    let (mut found, mut lists) = (Vec::new(), Vec::new());
    for path in paths {
        if path.is_dir() {
            let mut files = Vec::new();
            below(path, is_checked, &mut files, &mut lists)?;
            if files.is_empty() {
                let what = if is_checked { "no .amber file and no shader" } else { "no .amber file" };
                return Err(Failure::file(path, format!("there is {what} in it")));
            }
            files.sort();
            found.extend(files.into_iter().map(of_file));
        } else if extension(path) == LIST {
            found.extend(launches(path)?);
        } else {
            found.push(of_file(path.clone()));
        }
    }
    lists.retain(|list| !paths.iter().any(|path| is_same(path, list)));
    lists.sort();
    lists.dedup();
    if let Some(list) = lists.first() {
        let more = if lists.len() > 1 { format!(" and {} more", lists.len() - 1) } else { String::new() };
        output::note(format_args!("passed over: {}{more}; a list of launches must be named", list.display()));
    }
    match found.iter().find(|case| !matches!(case.kind, Kind::Script)) {
        Some(shader) if !is_checked => Err(Failure::usage(format!(
            "{}: a shader has no expectation that could fail: --check checks it",
            shader.name
        ))),
        _ => Ok(found),
    }
}

fn extension(path: &Path) -> String {
    path.extension().and_then(|extension| extension.to_str()).unwrap_or_default().to_ascii_lowercase()
}

fn is_shader(path: &Path) -> bool {
    SHADERS.contains(&extension(path).as_str())
}

fn of_file(path: PathBuf) -> Case {
    let kind = if is_shader(&path) { Kind::Shader } else { Kind::Script };
    Case::of_file(path, kind)
}

/// Whether two names are those of one file.
fn is_same(a: &Path, b: &Path) -> bool {
    a == b || matches!((a.canonicalize(), b.canonicalize()), (Ok(a), Ok(b)) if a == b)
}

/// Adds the files in a folder that are run, and the lists of launches, which are not.
fn below(folder: &Path, is_checked: bool, found: &mut Vec<PathBuf>, lists: &mut Vec<PathBuf>) -> Result<(), Failure> {
    let failure = |error| Failure::file(folder, error);
    for entry in std::fs::read_dir(folder).map_err(failure)? {
        let entry = entry.map_err(failure)?;
        let (path, kind) = (entry.path(), entry.file_type().map_err(failure)?);
        // Links to folders are not followed: they may lead back.
        if kind.is_dir() {
            below(&path, is_checked, found, lists)?;
        } else if extension(&path) == "amber" || is_checked && is_shader(&path) {
            found.push(path);
        } else if extension(&path) == LIST {
            lists.push(path);
        }
    }
    Ok(())
}

/// The launches of a list: one a line, `#` begins a comment.
fn launches(path: &Path) -> Result<Vec<Case>, Failure> {
    let text = String::from_utf8(file::read(path, MAX_LIST)?).map_err(|_| Failure::file(path, "not a text"))?;
    let lines = (1..).zip(text.lines().map(|line| line.split('#').next().unwrap_or_default().trim()));
    let lines = lines.filter(|(_, line)| !line.is_empty());
    let cases = lines.map(|(number, line)| {
        let place = format!("{}:{number}", path.display());
        let args = launch(line).map_err(|problem| Failure::new(format!("{place}: {problem}")))?;
        let name = format!("{place} {}", args.file.display());
        Ok(Case { path: args.file.clone(), name, kind: Kind::Launch(Box::new(args), line.to_owned()) })
    });
    let cases = cases.collect::<Result<Vec<_>, Failure>>()?;
    if cases.is_empty() { Err(Failure::file(path, "there is no launch in it")) } else { Ok(cases) }
}

/// The options of a line: what follows `spelter run`, without what says how to run it or what to do with results.
fn launch(line: &str) -> Result<RunArgs, String> {
    let words = ["spelter", "run"].into_iter().chain(line.split_whitespace());
    let args = match Cli::try_parse_from(words) {
        Ok(Cli { command: Command::Run(args), .. }) => args,
        Ok(_) => return Err("not a launch".to_owned()),
        Err(error) => {
            let text = error.to_string();
            let first = text.lines().next().unwrap_or_default();
            return Err(first.strip_prefix("error: ").unwrap_or(first).to_owned());
        }
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
    match given.into_iter().find(|(_, given)| *given) {
        Some((option, _)) => Err(format!("{option} is no option of a launch")),
        None => match args.check.without_check() {
            Some(option) => Err(format!("{option} is no option of a launch")),
            None => Ok(args),
        },
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_launch_is_what_follows_run() {
        let args = launch("a.wgsl --groups 4 --bind 0.0=zeros:64").unwrap();
        assert_eq!((args.file.to_str(), args.bind.len()), (Some("a.wgsl"), 1));
        for (line, part) in [
            ("--groups 4", "required arguments"),
            ("a.wgsl --group", "unexpected argument"),
            ("a.wgsl --check", "--check is no option of a launch"),
            ("a.wgsl --shard 1/2", "--shard is no option of a launch"),
            ("a.wgsl --out 0.0=u32", "--out is no option of a launch"),
            ("a.wgsl --workers 2", "--workers is no option of a launch"),
        ] {
            let problem = launch(line).unwrap_err();
            assert!(problem.contains(part), "{line}: {problem}");
        }
    }
}
