//! Source positions of assembled words, so that errors of the words are reported with the text's lines and names.

use std::collections::{BTreeMap, HashMap};

use crate::front::Error;
use crate::ir::SourceLine;

/// The lines of instructions, and the names of ids.
#[derive(Clone, Debug, Default)]
pub struct Positions {
    /// By the word offset of an instruction.
    pub(super) lines: BTreeMap<usize, u32>,
    /// Including the `%`.
    pub(super) ids: HashMap<u32, String>,
}

impl Positions {
    /// Converts an error of the words to one of the text, with the file name `spvasm`.
    pub fn in_terms_of_the_text(&self, error: Error) -> Error {
        let line = error.word.and_then(|word| self.lines.range(..=word).next_back());
        let message = self.named(&error.message);
        match line {
            Some((_, &line)) => {
                Error { message, word: None, line: Some(SourceLine { file: "spvasm".into(), line, column: 0 }) }
            }
            None => Error { message, ..error },
        }
    }

    /// Replaces the number after each `%` of a message by the id's name.
    fn named(&self, message: &str) -> String {
        let mut parts = message.split('%');
        let mut named = parts.next().unwrap_or_default().to_owned();
        for part in parts {
            let digits = part.len() - part.trim_start_matches(|c: char| c.is_ascii_digit()).len();
            let (number, rest) = part.split_at(digits);
            match number.parse().ok().and_then(|id: u32| self.ids.get(&id)) {
                Some(name) => named.push_str(name),
                None => named.extend(["%", number]),
            }
            named.push_str(rest);
        }
        named
    }
}
