//! Splits text into tokens: words, ids, strings. White space and comments separate tokens; line ends have no meaning.

use crate::front::Error;
use crate::ir::SourceLine;

/// A position in the text, from 1.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Position {
    line: u32,
    column: u32,
}

impl Position {
    pub(super) fn error(self, message: impl Into<String>) -> Error {
        let line = SourceLine { file: "spvasm".into(), line: self.line, column: self.column };
        Error { message: message.into(), word: None, line: Some(line) }
    }
}

/// A token of the text; a string keeps its quotes and escapes.
#[derive(Clone, Copy, Debug)]
pub(super) struct SpvasmToken<'t> {
    pub(super) text: &'t str,
    position: Position,
}

impl SpvasmToken<'_> {
    /// The token's line, from 1.
    pub(super) fn line(self) -> u32 {
        self.position.line
    }

    pub(super) fn error(self, message: impl Into<String>) -> Error {
        self.position.error(message)
    }

    pub(super) fn is_id(self) -> bool {
        self.text.len() > 1 && self.text.starts_with('%')
    }

    /// Whether it is `Op` with a capital letter: `OptNoneEXT` is an operand.
    pub(super) fn is_opcode(self) -> bool {
        self.text.strip_prefix("Op").is_some_and(|rest| rest.starts_with(|c: char| c.is_ascii_uppercase()))
    }

    /// The contents of a string with escapes resolved: a backslash escapes the character after it.
    pub(super) fn string(self) -> Option<String> {
        let inner = self.text.strip_prefix('"')?.strip_suffix('"')?;
        let mut chars = inner.chars();
        let mut string = String::with_capacity(inner.len());
        while let Some(c) = chars.next() {
            string.push(if c == '\\' { chars.next()? } else { c });
        }
        Some(string)
    }
}

/// Splits the whole text.
pub(super) fn tokens(text: &str) -> Result<Vec<SpvasmToken<'_>>, Error> {
    let mut tokens = Vec::new();
    let mut cursor = Cursor { rest: text, position: Position { line: 1, column: 1 } };
    while let Some(c) = cursor.rest.chars().next() {
        match c {
            ';' => cursor.advance(cursor.rest.find('\n').unwrap_or(cursor.rest.len())),
            c if c.is_whitespace() => cursor.advance(c.len_utf8()),
            _ => {
                let position = cursor.position;
                let length = token_length(cursor.rest).ok_or_else(|| position.error("a string without an end"))?;
                tokens.push(SpvasmToken { text: &cursor.rest[..length], position });
                cursor.advance(length);
            }
        }
    }
    Ok(tokens)
}

/// Bytes of the token at the start of `text`; `None` for an unterminated string.
fn token_length(text: &str) -> Option<usize> {
    let mut quoted = false;
    let mut escaped = false;
    for (at, c) in text.char_indices() {
        match c {
            _ if escaped => escaped = false,
            '\\' if quoted => escaped = true,
            '"' => quoted = !quoted,
            c if !quoted && (c.is_whitespace() || c == ';') => return Some(at),
            _ => {}
        }
    }
    (!quoted).then_some(text.len())
}

struct Cursor<'t> {
    rest: &'t str,
    position: Position,
}

impl Cursor<'_> {
    fn advance(&mut self, bytes: usize) {
        let (passed, rest) = self.rest.split_at(bytes);
        self.rest = rest;
        self.position = self.position.after(passed);
    }
}

impl Position {
    fn after(self, text: &str) -> Self {
        text.chars().fold(self, |at, c| match c {
            '\n' => Self { line: at.line + 1, column: 1 },
            _ => Self { column: at.column + 1, ..at },
        })
    }
}

/// The position of the end of the text.
pub(super) fn end(text: &str) -> Position {
    Position { line: 1, column: 1 }.after(text)
}

/// The header's version word: from a comment `; Version: 1.5`, as disassemblers write it, else 1.3.
pub(super) fn version(text: &str) -> u32 {
    let minor = text.lines().filter_map(|line| line.trim_start().strip_prefix(';')).find_map(|comment| {
        let (key, value) = comment.split_once(':')?;
        let minor: u32 = value.trim().strip_prefix("1.")?.parse().ok()?;
        (key.trim().eq_ignore_ascii_case("version") && minor < 256).then_some(minor)
    });
    0x0001_0000 | minor.unwrap_or(3) << 8
}

/// A string as SPIR-V packs it: UTF-8, at least one null byte, little-endian words.
pub(super) fn pack(string: &str) -> Vec<u32> {
    let mut bytes = string.as_bytes().to_vec();
    bytes.resize(bytes.len() / 4 * 4 + 4, 0);
    bytes.chunks_exact(4).map(|b| u32::from_le_bytes([b[0], b[1], b[2], b[3]])).collect()
}

/// The string that [`pack`] packed.
pub(super) fn unpack(words: &[u32]) -> String {
    let bytes: Vec<u8> = words.iter().flat_map(|word| word.to_le_bytes()).take_while(|byte| *byte != 0).collect();
    String::from_utf8_lossy(&bytes).into_owned()
}
