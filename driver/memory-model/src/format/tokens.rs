//! The tokens of `.litmus` texts, and a cursor over them.

use super::Error;
use super::lex::shown;
use crate::program::Place;

/// A token.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) enum TokenKind<'a> {
    Name(&'a str),
    Number(i64),
    Sign(&'static str),
    End,
}

/// A token and its place.
#[derive(Clone, Copy, Debug)]
pub(super) struct Token<'a> {
    pub(super) kind: TokenKind<'a>,
    pub(super) place: Place,
    /// Its first byte, and the one after it.
    pub(super) start: usize,
    pub(super) end: usize,
}

impl Token<'_> {
    pub(super) fn error(&self, message: impl Into<String>) -> Error {
        Error::new(self.place, message)
    }

    pub(super) fn shown(&self) -> String {
        match self.kind {
            TokenKind::Name(name) => format!("`{}`", shown(name)),
            TokenKind::Number(number) => format!("`{number}`"),
            TokenKind::Sign(sign) => format!("`{sign}`"),
            TokenKind::End => "the end".to_owned(),
        }
    }
}

const SIGNS: [&str; 24] = [
    "/\\", "\\/", "==", "!=", "<=", ">=", "{", "}", "(", ")", "[", "]", ";", "|", ",", ".", ":", "@", "=", "<", ">",
    "~", "&", "-",
];

/// The tokens of a text, without comments and quoted strings. The rest of the line after the header, or after a quoted
/// string above the first `{`, is also omitted: such a string may contain quotes.
pub(super) fn tokens(text: &str) -> Result<Vec<Token<'_>>, Error> {
    let mut tokens = Vec::new();
    let (mut at, mut line, mut column) = (0, 1, 1);
    let mut header = true;
    while let Some(c) = text[at..].chars().next() {
        let place = Place { line, column };
        let rest = &text[at..];
        let skip_to =
            |end: Option<usize>, what: &str| end.ok_or_else(|| Error::new(place, format!("{what} does not end")));
        let length = if header && !tokens.is_empty() {
            header = false;
            rest.find(['\n', '"', '{']).unwrap_or(rest.len())
        } else if c.is_whitespace() {
            c.len_utf8()
        } else if c == '"' {
            header = tokens.len() == 1;
            skip_to(rest[1..].find('"'), "the quoted text")? + 2
        } else if rest.starts_with("(*") {
            skip_to(rest.find("*)"), "the comment")? + 2
        } else if rest.starts_with("//") {
            rest.find('\n').unwrap_or(rest.len())
        } else if c.is_alphabetic() || c == '_' {
            let length = rest.find(|c: char| !c.is_alphanumeric() && c != '_').unwrap_or(rest.len());
            tokens.push(Token { kind: TokenKind::Name(&rest[..length]), place, start: at, end: at + length });
            length
        } else if c.is_ascii_digit() {
            let length = rest.find(|c: char| !c.is_alphanumeric()).unwrap_or(rest.len());
            let digits = &rest[..length];
            let number = match digits.strip_prefix("0x") {
                Some(hex) => i64::from_str_radix(hex, 16),
                None => digits.parse(),
            };
            let number =
                number.map_err(|_| Error::new(place, format!("`{}` is not a 64-bit number", shown(digits))))?;
            tokens.push(Token { kind: TokenKind::Number(number), place, start: at, end: at + length });
            length
        } else if let Some(sign) = SIGNS.into_iter().find(|sign| rest.starts_with(sign)) {
            tokens.push(Token { kind: TokenKind::Sign(sign), place, start: at, end: at + sign.len() });
            sign.len()
        } else {
            return Err(Error::new(place, format!("`{c}` is unexpected here")));
        };
        for c in text[at..at + length].chars() {
            (line, column) = if c == '\n' { (line + 1, 1) } else { (line, column + 1) };
        }
        at += length;
    }
    tokens.push(Token { kind: TokenKind::End, place: Place { line, column }, start: at, end: at });
    Ok(tokens)
}

/// Tokens with a position.
pub(super) struct Cursor<'a> {
    pub(super) text: &'a str,
    pub(super) tokens: Vec<Token<'a>>,
    pub(super) at: usize,
}

impl<'a> Cursor<'a> {
    pub(super) fn peek(&self) -> Token<'a> {
        self.tokens[self.at.min(self.tokens.len() - 1)]
    }

    pub(super) fn next(&mut self) -> Token<'a> {
        let token = self.peek();
        self.at += 1;
        token
    }

    pub(super) fn takes(&mut self, sign: &'static str) -> bool {
        let there = self.peek().kind == TokenKind::Sign(sign);
        self.at += usize::from(there);
        there
    }

    pub(super) fn takes_name(&mut self, name: &str) -> bool {
        let there = self.peek().kind == TokenKind::Name(name);
        self.at += usize::from(there);
        there
    }

    pub(super) fn sign(&mut self, sign: &'static str) -> Result<Token<'a>, Error> {
        let token = self.next();
        if token.kind == TokenKind::Sign(sign) {
            return Ok(token);
        }
        Err(token.error(format!("`{sign}` is expected here, not {}", token.shown())))
    }

    pub(super) fn name(&mut self, what: &str) -> Result<(&'a str, Token<'a>), Error> {
        let token = self.next();
        match token.kind {
            TokenKind::Name(name) => Ok((name, token)),
            _ => Err(token.error(format!("{what} is expected here, not {}", token.shown()))),
        }
    }

    pub(super) fn number(&mut self, what: &str) -> Result<i64, Error> {
        let negative = self.takes("-");
        let token = self.next();
        match token.kind {
            TokenKind::Number(number) => Ok(if negative { number.wrapping_neg() } else { number }),
            _ => Err(token.error(format!("{what} is expected here, not {}", token.shown()))),
        }
    }

    pub(super) fn id(&mut self, what: &str) -> Result<u32, Error> {
        let token = self.peek();
        u32::try_from(self.number(what)?).map_err(|_| token.error(format!("{what} is from 0 to {}", u32::MAX)))
    }
}
