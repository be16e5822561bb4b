//! Errors of naga as errors of a text: with the position, the line and the name of the file.

use super::window;
use crate::front::Error;
use crate::ir::SourceLine;

/// File name of a text whose real one the caller does not give.
pub(super) const FILE: &str = "wgsl";

/// The same error of a text in that file.
pub(super) fn in_file(mut error: Error, file: &str) -> Error {
    if file != FILE {
        error.message = error.message.replace(&format!("┌─ {FILE}:"), &format!("┌─ {file}:"));
        if let Some(line) = error.line.as_mut().filter(|line| &*line.file == FILE) {
            line.file = file.into();
        }
    }
    error
}

/// An error at a position that naga does not report: line and column are part of the message.
pub(super) fn refused_at(problem: &str, at: usize, source: &str) -> Error {
    Error { message: problem.to_owned(), word: None, line: Some(line_of(at, source)) }
}

pub(super) fn line_of(at: usize, source: &str) -> SourceLine {
    let before = &source[..at.min(source.len())];
    let line_start = before.rfind('\n').map_or(0, |end| end + 1);
    let line = before.matches('\n').count() as u32 + 1;
    let column = before[line_start..].chars().count() as u32 + 1;
    SourceLine { file: FILE.into(), line, column }
}

/// naga's message shows position and line itself.
pub(super) fn refused(message: &str) -> Error {
    let message = message.trim();
    let message = message.strip_prefix("error: ").unwrap_or(message);
    Error { message: window::windowed(message), word: None, line: None }
}
