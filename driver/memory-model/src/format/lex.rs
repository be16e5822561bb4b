//! Lines and words of a text with their places.

use super::Error;
use crate::program::Place;

/// A piece of a line, and its place.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Piece<'a> {
    pub(super) text: &'a str,
    pub(super) place: Place,
}

impl<'a> Piece<'a> {
    pub(super) fn error(&self, message: impl Into<String>) -> Error {
        Error::new(self.place, message)
    }

    /// The piece from byte `from`.
    pub(super) fn after(&self, from: usize) -> Self {
        let skipped = self.text[..from].chars().count() as u32;
        let place = Place { column: self.place.column + skipped, ..self.place };
        Self { text: &self.text[from..], place }
    }

    /// The piece up to byte `to`.
    pub(super) fn before(&self, to: usize) -> Self {
        Self { text: &self.text[..to], ..*self }
    }

    /// The piece without white space at both ends.
    pub(super) fn trimmed(&self) -> Self {
        let start = self.text.len() - self.text.trim_start().len();
        let piece = self.after(start);
        piece.before(piece.text.trim_end().len())
    }

    /// The pieces between separators.
    pub(super) fn split(&self, is_separator: impl Fn(char) -> bool) -> Vec<Self> {
        let mut pieces = Vec::new();
        let mut start = 0;
        for (at, c) in self.text.char_indices() {
            if is_separator(c) {
                pieces.push(self.before(at).after(start));
                start = at + c.len_utf8();
            }
        }
        pieces.push(self.after(start));
        pieces
    }

    /// The words between white space.
    pub(super) fn words(&self) -> Vec<Self> {
        self.split(char::is_whitespace).into_iter().filter(|word| !word.text.is_empty()).collect()
    }

    /// Parses a number.
    pub(super) fn number<N: std::str::FromStr>(&self, what: &str) -> Result<N, Error> {
        self.text.parse().map_err(|_| self.error(format!("{what} is a number, not `{}`", shown(self.text))))
    }
}

/// The lines of a text, without their ends.
pub(super) fn lines(text: &str) -> impl Iterator<Item = Piece<'_>> {
    text.lines().enumerate().map(|(at, text)| {
        let place = Place { line: at as u32 + 1, column: 1 };
        Piece { text: text.strip_suffix('\r').unwrap_or(text), place }
    })
}

/// Shortens a text for a message.
pub(super) fn shown(text: &str) -> String {
    match text.char_indices().nth(40) {
        Some((end, _)) => format!("{}…", &text[..end]),
        None => text.to_owned(),
    }
}
