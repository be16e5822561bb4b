//! Tokenizer of scripts: words with their places, line by line, and the raw text of embedded shaders and files.

use super::Stop;

/// A place in a script, counted from 1.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct SourcePosition {
    /// The line.
    pub(crate) line: u32,
    /// The column, in characters.
    pub(crate) column: u32,
}

impl SourcePosition {
    /// A mistake at this place.
    pub(super) fn fail(self, problem: impl AsRef<str>) -> Stop {
        Stop::Fail(format!("{}:{}: {}", self.line, self.column, problem.as_ref()))
    }

    /// Something unsupported at this place.
    pub(super) fn skip(self, reason: impl AsRef<str>) -> Stop {
        Stop::Skip(format!("{} (line {})", reason.as_ref(), self.line))
    }
}

/// A word and its place.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Word<'t> {
    pub(super) text: &'t str,
    pub(super) at: SourcePosition,
}

impl Word<'_> {
    /// A mistake in this word.
    pub(super) fn fail(&self, problem: impl AsRef<str>) -> Stop {
        self.at.fail(problem)
    }
}

/// Reads a text word by word. A comment goes from a word that begins with `#` to the end of its line; a word `\` at the
/// end of a line joins it with the next.
#[derive(Clone)]
pub(super) struct Cursor<'t> {
    text: &'t str,
    at: usize,
    place: SourcePosition,
}

impl<'t> Cursor<'t> {
    pub(super) fn new(text: &'t str) -> Self {
        Self { text, at: 0, place: SourcePosition { line: 1, column: 1 } }
    }

    fn rest(&self) -> &'t str {
        &self.text[self.at..]
    }

    fn skip(&mut self, characters: &str) {
        for c in characters.chars() {
            if c == '\n' {
                self.place = SourcePosition { line: self.place.line + 1, column: 1 };
            } else {
                self.place.column += 1;
            }
        }
        self.at += characters.len();
    }

    /// Steps over spaces, comments and joined line ends, to a word or the end of the line.
    fn trim(&mut self) {
        loop {
            let rest = self.rest();
            let blank = rest.len() - rest.trim_start_matches([' ', '\t', '\r', '\x0c']).len();
            self.skip(&rest[..blank]);
            let rest = self.rest();
            if rest.starts_with('#') {
                let end = rest.find('\n').unwrap_or(rest.len());
                self.skip(&rest[..end]);
            } else if let Some(end) = joined(rest) {
                self.skip(&rest[..end]);
            } else {
                return;
            }
        }
    }

    /// The place of the next word, or of the end of the line.
    pub(super) fn place(&mut self) -> SourcePosition {
        self.trim();
        self.place
    }

    /// The next word of this line.
    pub(super) fn peek(&mut self) -> Option<Word<'t>> {
        self.trim();
        let rest = self.rest();
        let end = rest.find(|c: char| c.is_ascii_whitespace()).unwrap_or(rest.len());
        (end > 0).then(|| Word { text: &rest[..end], at: self.place })
    }

    /// Consumes the next word of this line.
    pub(super) fn word(&mut self) -> Option<Word<'t>> {
        let word = self.peek()?;
        self.skip(word.text);
        Some(word)
    }

    /// Consumes the next word of this line, which must exist.
    pub(super) fn expect(&mut self, what: &str) -> Result<Word<'t>, Stop> {
        self.word().ok_or_else(|| self.place.fail(format!("expected {what}, found the end of the line")))
    }

    /// Consumes that keyword.
    pub(super) fn keyword(&mut self, keyword: &str) -> Result<Word<'t>, Stop> {
        let word = self.expect(&format!("`{keyword}`"))?;
        if word.text == keyword { Ok(word) } else { Err(word.fail(unexpected(keyword, word.text))) }
    }

    /// Consumes that keyword if it is next.
    pub(super) fn take(&mut self, keyword: &str) -> bool {
        let found = self.peek().is_some_and(|word| word.text == keyword);
        if found {
            self.word();
        }
        found
    }

    /// Consumes an unsigned integer in the range of the type.
    pub(super) fn integer<T: TryFrom<u64>>(&mut self, what: &str) -> Result<T, Stop> {
        let word = self.expect(what)?;
        let number = match word.text.strip_prefix("0x") {
            Some(digits) => u64::from_str_radix(digits, 16).ok(),
            None => word.text.parse().ok(),
        };
        let number = number.and_then(|number| T::try_from(number).ok());
        number.ok_or_else(|| word.fail(format!("`{}` is not a valid {what}", word.text)))
    }

    /// Checks that the line ends here.
    pub(super) fn line_end(&mut self) -> Result<(), Stop> {
        match self.peek() {
            None => Ok(()),
            Some(word) => Err(word.fail(format!("unexpected `{}` at the end of this line", word.text))),
        }
    }

    /// Consumes the next word of any line; `None` at the end of the text.
    pub(super) fn any_word(&mut self) -> Option<Word<'t>> {
        loop {
            if let Some(word) = self.word() {
                return Some(word);
            }
            if self.rest().is_empty() {
                return None;
            }
            self.skip("\n");
        }
    }

    /// Consumes the next word of any line of a block; `None` at its `END`.
    pub(super) fn in_block(&mut self, block: &str, start: SourcePosition) -> Result<Option<Word<'t>>, Stop> {
        match self.any_word() {
            None => Err(start.fail(format!("{block} has no END"))),
            Some(word) if word.text == "END" => Ok(None),
            Some(word) => Ok(Some(word)),
        }
    }

    /// Consumes the lines after this one up to `END` and returns them unchanged.
    pub(super) fn raw_block(&mut self, block: &str, start: SourcePosition) -> Result<&'t str, Stop> {
        self.line_end()?;
        let first = self.rest().find('\n').map_or(self.text.len(), |end| self.at + end + 1);
        let mut at = first;
        for line in self.text[first..].split_inclusive('\n') {
            if line.split_ascii_whitespace().next() == Some("END") {
                let body = &self.text[first..at];
                let end = at + line.find("END").unwrap_or(0) + "END".len();
                self.skip(&self.text[self.at..end]);
                return Ok(body);
            }
            at += line.len();
        }
        Err(start.fail(format!("{block} has no END")))
    }
}

/// The length of a `\` at the end of a line, with the line end.
fn joined(rest: &str) -> Option<usize> {
    ["\\\n", "\\\r\n"].iter().find(|end| rest.starts_with(**end)).map(|end| end.len())
}

fn unexpected(wanted: &str, found: &str) -> String {
    format!("expected `{wanted}`, found `{found}`")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn line<'t>(cursor: &mut Cursor<'t>) -> Vec<(&'t str, u32, u32)> {
        let mut words = Vec::new();
        while let Some(word) = cursor.word() {
            words.push((word.text, word.at.line, word.at.column));
        }
        words
    }

    #[test]
    fn words_have_places_and_comments_none() {
        let mut cursor = Cursor::new("RUN p  1 # one\n\n\tx \\\n  y\r\nz");
        assert_eq!(line(&mut cursor), [("RUN", 1, 1), ("p", 1, 5), ("1", 1, 8)]);
        let next = cursor.any_word().map(|word| (word.text, word.at.line, word.at.column));
        assert_eq!(next, Some(("x", 3, 2)));
        assert_eq!(line(&mut cursor), [("y", 4, 3)]);
        assert_eq!(cursor.any_word().map(|word| word.text), Some("z"));
        assert_eq!(cursor.any_word(), None);
    }

    #[test]
    fn a_raw_block_is_left_alone() {
        let mut cursor = Cursor::new("SHADER # s\n#version 430\n  END_OF x\n END  # shader\nRUN");
        cursor.word();
        let at = cursor.place();
        assert_eq!(cursor.raw_block("SHADER", at), Ok("#version 430\n  END_OF x\n"));
        assert_eq!(cursor.any_word().map(|word| (word.text, word.at.line)), Some(("RUN", 5)));
    }

    #[test]
    fn a_block_without_end_is_named_where_it_begins() {
        let mut cursor = Cursor::new("\nSHADER\nvoid");
        let at = cursor.any_word().map(|word| word.at);
        let stop = at.map(|at| cursor.raw_block("SHADER", at));
        assert_eq!(stop, Some(Err(Stop::Fail("2:1: SHADER has no END".into()))));
    }

    #[test]
    fn numbers_must_fit() {
        assert_eq!(Cursor::new("0xff").integer::<u32>("size"), Ok(255));
        for wrong in ["-1", "4294967296", "x", "1.5"] {
            let stop = Cursor::new(wrong).integer::<u32>("size");
            assert_eq!(stop, Err(Stop::Fail(format!("1:1: `{wrong}` is not a valid size"))));
        }
    }
}
