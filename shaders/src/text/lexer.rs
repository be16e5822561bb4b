//! Cuts a line of the text form into tokens, and reads them one by one with the place for messages.

use super::ParseError;

type Result<T> = std::result::Result<T, ParseError>;

/// A token and its column, from 1.
#[derive(Debug)]
struct Token<'a> {
    column: u32,
    kind: TokenKind<'a>,
}

#[derive(Debug)]
enum TokenKind<'a> {
    /// Letters, digits, `_` and `.`: names, mnemonics, ids.
    Word(&'a str),
    /// Begins with a digit or `-`.
    Number(&'a str),
    /// In quotes, unescaped.
    Text(String),
    Symbol(char),
}

/// The tokens of one line.
#[derive(Debug)]
pub(crate) struct Line<'a> {
    number: u32,
    tokens: Vec<Token<'a>>,
    at: usize,
    /// Column after the last character.
    end: u32,
}

impl<'a> Line<'a> {
    /// Cuts line `number`; a `;` outside quotes begins a comment.
    pub(crate) fn new(number: u32, text: &'a str) -> Result<Self> {
        let mut line = Self { number, tokens: Vec::new(), at: 0, end: text.chars().count() as u32 + 1 };
        let (mut rest, mut column) = (text, 1);
        loop {
            let trimmed = rest.trim_start();
            column += rest[..rest.len() - trimmed.len()].chars().count() as u32;
            let Some(first) = trimmed.chars().next().filter(|&first| first != ';') else { return Ok(line) };
            let (kind, bytes) = token(trimmed, first).map_err(|message| line.error_at(column, message))?;
            line.tokens.push(Token { column, kind });
            column += trimmed[..bytes].chars().count() as u32;
            rest = &trimmed[bytes..];
        }
    }

    /// Whether all tokens have been read.
    pub(crate) fn is_done(&self) -> bool {
        self.at == self.tokens.len()
    }

    /// Line and column of the next token.
    pub(crate) fn position(&self) -> (u32, u32) {
        (self.number, self.tokens.get(self.at).map_or(self.end, |token| token.column))
    }

    /// An error at the next token.
    pub(crate) fn error(&self, message: impl Into<String>) -> ParseError {
        self.error_at(self.position().1, message)
    }

    fn error_at(&self, column: u32, message: impl Into<String>) -> ParseError {
        ParseError { line: self.number, column, message: message.into() }
    }

    /// The next token if it is a word, which stays.
    pub(crate) fn peek_word(&self) -> Option<&'a str> {
        match self.tokens.get(self.at)?.kind {
            TokenKind::Word(word) => Some(word),
            _ => None,
        }
    }

    /// Whether the token after the next one is that symbol.
    pub(crate) fn second_is(&self, symbol: char) -> bool {
        self.tokens.get(self.at + 1).is_some_and(|token| matches!(token.kind, TokenKind::Symbol(is) if is == symbol))
    }

    /// Takes a word for which `read` has a meaning.
    pub(crate) fn word<T>(&mut self, what: &str, read: impl FnOnce(&'a str) -> Option<T>) -> Result<T> {
        match self.peek_word().and_then(read) {
            Some(meaning) => {
                self.at += 1;
                Ok(meaning)
            }
            None => Err(self.error(format!("expected {what}"))),
        }
    }

    /// Takes that very word, if it comes next.
    pub(crate) fn eat_word(&mut self, word: &str) -> bool {
        let found = self.peek_word() == Some(word);
        self.at += usize::from(found);
        found
    }

    /// Takes that very word.
    pub(crate) fn keyword(&mut self, word: &str) -> Result<()> {
        if self.eat_word(word) { Ok(()) } else { Err(self.error(format!("expected `{word}`"))) }
    }

    /// Takes that symbol, if it comes next.
    pub(crate) fn eat(&mut self, symbol: char) -> bool {
        let found =
            self.tokens.get(self.at).is_some_and(|token| matches!(token.kind, TokenKind::Symbol(is) if is == symbol));
        self.at += usize::from(found);
        found
    }

    /// Takes that symbol.
    pub(crate) fn expect(&mut self, symbol: char) -> Result<()> {
        if self.eat(symbol) { Ok(()) } else { Err(self.error(format!("expected `{symbol}`"))) }
    }

    /// Takes a number for which `read` has a meaning.
    pub(crate) fn number_as<T>(&mut self, what: &str, read: impl FnOnce(&'a str) -> Option<T>) -> Result<T> {
        let number = match self.tokens.get(self.at) {
            Some(&Token { kind: TokenKind::Number(number), .. }) => read(number),
            _ => None,
        };
        let number = number.ok_or_else(|| self.error(format!("expected {what}")))?;
        self.at += 1;
        Ok(number)
    }

    /// Takes an unsigned 32-bit number, decimal or hexadecimal.
    pub(crate) fn unsigned(&mut self) -> Result<u32> {
        self.number_as("a number below 2^32", |text| match hexadecimal(text) {
            Some(bits) => u32::try_from(bits).ok(),
            None => text.parse().ok(),
        })
    }

    /// Takes a quoted text.
    pub(crate) fn text(&mut self) -> Result<String> {
        match self.tokens.get_mut(self.at) {
            Some(Token { kind: TokenKind::Text(text), .. }) => {
                self.at += 1;
                Ok(std::mem::take(text))
            }
            _ => Err(self.error("expected a text in quotes")),
        }
    }

    /// Holds that nothing is left.
    pub(crate) fn finish(&self) -> Result<()> {
        if self.is_done() { Ok(()) } else { Err(self.error("expected the end of the line")) }
    }
}

/// The number that `0x…` is.
pub(crate) fn hexadecimal(text: &str) -> Option<u64> {
    text.strip_prefix("0x").and_then(|digits| u64::from_str_radix(digits, 16).ok())
}

/// The token that `text` begins with, and its length in bytes.
fn token(text: &str, first: char) -> std::result::Result<(TokenKind<'_>, usize), String> {
    if first == '"' {
        return quoted(text).map(|(text, bytes)| (TokenKind::Text(text), bytes));
    }
    if first.is_ascii_alphabetic() || first == '_' {
        let bytes = text.find(|c: char| !(c.is_ascii_alphanumeric() || "_.".contains(c))).unwrap_or(text.len());
        return Ok((TokenKind::Word(&text[..bytes]), bytes));
    }
    if first.is_ascii_digit() || first == '-' {
        // A sign inside is that of an exponent.
        let inside = |at: usize, c: char| {
            c.is_ascii_alphanumeric() || c == '.' || c == '-' && (at == 0 || text[..at].ends_with('e'))
        };
        let bytes = text.char_indices().find(|&(at, c)| !inside(at, c)).map_or(text.len(), |(at, _)| at);
        return Ok((TokenKind::Number(&text[..bytes]), bytes));
    }
    if ",:=+*|<()[]".contains(first) { Ok((TokenKind::Symbol(first), 1)) } else { Err(format!("unexpected {first:?}")) }
}

/// A text in quotes, with the escapes of [`str::escape_default`].
fn quoted(text: &str) -> std::result::Result<(String, usize), String> {
    let mut out = String::new();
    let mut chars = text.char_indices().skip(1);
    while let Some((at, c)) = chars.next() {
        match c {
            '"' => return Ok((out, at + 1)),
            '\\' => match chars.next().map(|(_, c)| c) {
                Some('t') => out.push('\t'),
                Some('r') => out.push('\r'),
                Some('n') => out.push('\n'),
                Some(c @ ('\'' | '"' | '\\')) => out.push(c),
                Some('u') => {
                    let digits: String =
                        chars.by_ref().map(|(_, c)| c).skip_while(|&c| c == '{').take_while(|&c| c != '}').collect();
                    let c = u32::from_str_radix(&digits, 16).ok().and_then(char::from_u32);
                    out.push(c.ok_or("no such character")?);
                }
                _ => return Err("no such escape".into()),
            },
            c => out.push(c),
        }
    }
    Err("the text does not end".into())
}
