//! Where the words of a text come from: what is refused of the words is told with the lines and the names of the text.

use std::collections::{BTreeMap, HashMap};

use crate::front::Error;
use crate::ir::SourceLine;

/// The lines that instructions stand in, and the names of ids.
#[derive(Clone, Debug, Default)]
pub struct Places {
    /// By the offset of an instruction's first word.
    pub(super) lines: BTreeMap<usize, u32>,
    /// With their `%`.
    pub(super) ids: HashMap<u32, String>,
}

impl Places {
    /// An error of the words as one of the text, which it calls `spvasm`.
    pub fn told(&self, error: Error) -> Error {
        let line = error.word.and_then(|word| self.lines.range(..=word).next_back());
        let message = self.named(&error.message);
        match line {
            Some((_, &line)) => {
                Error { message, word: None, line: Some(SourceLine { file: "spvasm".into(), line, column: 0 }) }
            }
            None => Error { message, ..error },
        }
    }

    /// A message with names for the numbers behind each `%`.
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
