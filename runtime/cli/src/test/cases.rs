//! Test cases that the command line names: scripts, and in checked mode shaders and lists of launches.

use std::path::{Path, PathBuf};

use spelter_jobs::{digest, digest_bytes};

use super::{MAX_BYTES, list};
use crate::amber;
use crate::args::RunArgs;
use crate::failure::Failure;
use crate::file;
use crate::output;
use crate::shader::{self, is_shader};

/// Something that is run.
#[derive(Debug)]
pub(super) struct Case {
    /// The script or the shader.
    pub(super) path: PathBuf,
    /// The path, or the place of the launch and its shader.
    pub(super) name: String,
    pub(super) kind: CaseKind,
}

/// How it is run.
#[derive(Debug)]
pub(super) enum CaseKind {
    Script,
    /// A shader without a launch.
    Shader,
    /// A shader with the launch of a list, and the text of that.
    Launch(Box<RunArgs>, String),
}

impl Case {
    fn of_file(path: PathBuf, kind: CaseKind) -> Self {
        Self { name: path.display().to_string(), path, kind }
    }

    /// A digest of what its result depends on: the contents of its files, those that they include among them.
    pub(super) fn digest(&self) -> String {
        // By their numbers: the name and the launch have their names.
        let files = |paths: Vec<&Path>| {
            file::digest((0..).zip(paths).map(|(number, path): (u32, _)| (number.to_string(), path)), MAX_BYTES)
        };
        let own = files(vec![&self.path]);
        let contents = match &self.kind {
            CaseKind::Script => script_contents(&self.path, files),
            CaseKind::Shader => shader_contents(&self.path),
            CaseKind::Launch(args, text) => {
                format!("{text} {} {}", shader_contents(&self.path), files(args.input_files()))
            }
        };
        digest(&format!("{} {own} {contents}", self.name))
    }
}

/// A digest of a compiled shader, which includes other files perhaps. One that does not compile has its message.
fn shader_contents(path: &Path) -> String {
    shader::load(path).map_or_else(|failure| failure.to_string(), |shader| shader.digest())
}

/// A digest of the files that a script names.
fn script_contents(path: &Path, files: impl Fn(Vec<&Path>) -> String) -> String {
    let folder = path.parent().unwrap_or(Path::new(""));
    let text = file::read(path, MAX_BYTES).map(|bytes| String::from_utf8_lossy(&bytes).into_owned());
    let Ok(script) = amber::parse(&text.unwrap_or_default(), folder) else { return String::new() };
    let shaders: Vec<PathBuf> = script.shader_files().map(|path| folder.join(path)).collect();
    let buffers = script.buffers.iter().map(|buffer| digest_bytes(&buffer.bytes));
    [files(shaders.iter().map(PathBuf::as_path).collect())].into_iter().chain(buffers).collect::<Vec<_>>().join(" ")
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
        } else if extension(path) == list::EXTENSION {
            found.extend(list::launches(path)?);
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
    match found.iter().find(|case| !matches!(case.kind, CaseKind::Script)) {
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

fn of_file(path: PathBuf) -> Case {
    let kind = if is_shader(&path) { CaseKind::Shader } else { CaseKind::Script };
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
        } else if extension(&path) == list::EXTENSION {
            lists.push(path);
        }
    }
    Ok(())
}
