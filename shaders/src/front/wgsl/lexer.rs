//! Tokens of a text for all that looks at it before or beside naga: split as naga's lexer splits words, white space and
//! comments.

/// A word, a number without its sign, point and exponent, or a single other character.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct WgslToken<'a> {
    /// The byte offset of its first character.
    pub(super) at: usize,
    pub(super) text: &'a str,
}

impl WgslToken<'_> {
    /// The byte offset after its last character.
    pub(super) fn end(&self) -> usize {
        self.at + self.text.len()
    }

    /// Whether it is no sign.
    pub(super) fn is_word_or_number(&self) -> bool {
        self.text.starts_with(is_of_word)
    }
}

/// The tokens of a text, without white space and comments.
pub(super) fn tokens(source: &str) -> impl Iterator<Item = WgslToken<'_>> {
    let mut at = 0;
    std::iter::from_fn(move || {
        loop {
            let rest = &source[at..];
            let first = rest.chars().next()?;
            let skipped = comment_or_space(rest);
            if skipped > 0 {
                at += skipped;
                continue;
            }
            let length = match first {
                _ if is_of_word(first) => rest.find(|c| !is_of_word(c)).unwrap_or(rest.len()),
                _ => first.len_utf8(),
            };
            let token = WgslToken { at, text: &rest[..length] };
            at = token.end();
            return Some(token);
        }
    })
}

fn is_of_word(c: char) -> bool {
    c == '_' || c.is_alphanumeric()
}

/// Length of the comment or white space at the start of the text; 0 if there is none.
fn comment_or_space(text: &str) -> usize {
    let ends_line = |c: char| matches!(c, '\n'..='\r' | '\u{85}' | '\u{2028}' | '\u{2029}');
    match text.chars().next() {
        _ if text.starts_with("//") => text.find(ends_line).unwrap_or(text.len()),
        _ if text.starts_with("/*") => comment(text),
        Some(first) if first.is_whitespace() || matches!(first, '\u{200e}' | '\u{200f}') => first.len_utf8(),
        _ => 0,
    }
}

/// Length of the comment at the start of the text; block comments nest.
fn comment(text: &str) -> usize {
    let mut depth = 0;
    let mut at = 0;
    while at < text.len() {
        let rest = &text.as_bytes()[at..];
        if rest.starts_with(b"/*") {
            depth += 1;
            at += 2;
        } else if rest.starts_with(b"*/") {
            depth -= 1;
            at += 2;
            if depth == 0 {
                return at;
            }
        } else {
            at += 1;
        }
    }
    text.len()
}

#[cfg(test)]
mod tests {
    use super::tokens;

    fn texts(source: &str) -> Vec<&str> {
        tokens(source).map(|token| token.text).collect()
    }

    #[test]
    fn words_and_signs() {
        assert_eq!(texts("a1+=_b é2.5e-3"), ["a1", "+", "=", "_b", "é2", ".", "5e", "-", "3"]);
        let ends: Vec<_> = tokens(" é = x").map(|token| (token.at, token.end())).collect();
        assert_eq!(ends, [(1, 3), (4, 5), (6, 7)]);
        assert_eq!(texts(" /* not closed /* */"), [""; 0]);
    }

    #[test]
    fn comments_end_where_naga_ends_them() {
        assert_eq!(texts("a // b\u{2028}c /* d /* e */ */\u{200e}f\u{85}g"), ["a", "c", "f", "g"]);
    }
}
