//! Tokens of a text, with the brackets of template lists marked, and what naga makes of them.

use super::super::lexer::{WgslToken, tokens};

/// All tokens of a text.
pub(super) struct Tokens<'a> {
    source: &'a str,
    all: Vec<WgslToken<'a>>,
    /// Whether each token is a bracket of a template list such as that of `array<u32, 4>`.
    lists: Vec<bool>,
}

impl<'a> Tokens<'a> {
    pub(super) fn new(source: &'a str) -> Self {
        let all: Vec<WgslToken<'a>> = tokens(source).collect();
        let lists = vec![false; all.len()];
        let mut this = Self { source, all, lists };
        this.find_lists();
        this
    }

    pub(super) fn len(&self) -> usize {
        self.all.len()
    }

    /// The token; empty after the last one.
    pub(super) fn text(&self, at: usize) -> &'a str {
        self.all.get(at).map_or("", |token| token.text)
    }

    /// The byte offset of a token.
    pub(super) fn byte(&self, at: usize) -> usize {
        self.all.get(at).map_or(self.source.len(), |token| token.at)
    }

    pub(super) fn is_word(&self, at: usize) -> bool {
        self.text(at).starts_with(|c: char| c == '_' || c.is_alphabetic())
    }

    pub(super) fn is_number(&self, at: usize) -> bool {
        self.text(at).starts_with(|c: char| c.is_ascii_digit())
    }

    /// Whether the token opens or closes a template list.
    pub(super) fn is_list(&self, at: usize) -> bool {
        self.lists.get(at).copied().unwrap_or(false)
    }

    /// Whether there is no space between a token and the next one.
    pub(super) fn touches(&self, at: usize) -> bool {
        match (self.all.get(at), self.all.get(at + 1)) {
            (Some(this), Some(next)) => this.end() == next.at,
            _ => false,
        }
    }

    /// Whether the adjacent tokens from here on are these signs: each sign of the source is a token.
    pub(super) fn is(&self, at: usize, signs: &str) -> bool {
        self.rest(at).starts_with(signs.as_bytes())
    }

    /// The source from a token on.
    pub(super) fn rest(&self, at: usize) -> &'a [u8] {
        &self.source.as_bytes()[self.byte(at)..]
    }

    /// Number of expressions that naga makes of a token, and how often it types the newest one for it, visiting all
    /// expressions before. Calls, components and types add to that what their shape takes (`super::expression`).
    pub(super) fn expressions(&self, at: usize) -> (u64, u64) {
        let before = |at: usize| at.checked_sub(1);
        let goes_on = |at: usize| before(at).is_some_and(|before| self.is_number(before) && self.touches(before));
        let is_unary = !before(at).is_some_and(|before| self.ends_operand(before));
        match self.text(at) {
            // The condition, the selector, the first `case` of a list, a value; a `for` has a block of its own.
            "if" | "while" | "switch" | "case" | "return" => (0, 1),
            "for" => (1, 2),
            "fn" | "let" | "const" | "var" | "else" | "loop" | "continuing" | "default" | "break" | "continue"
            | "discard" => (0, 0),
            _ if self.is_word(at) => (1, 0),
            // The digits after a point.
            _ if self.is_number(at) && before(at).is_some_and(|point| self.text(point) == "." && goes_on(point)) => {
                (0, 0)
            }
            // A literal without a suffix is made once more, with the type that it needs.
            text if self.is_number(at) => (if text.ends_with(['u', 'i', 'f', 'h']) { 1 } else { 2 }, 0),
            "-" | "+" if before(at).is_some_and(|before| self.has_exponent(before)) => (0, 0),
            "." if goes_on(at) || self.is_number(at + 1) => (0, 0),
            ";" | ")" | "]" | "}" | "{" | "," | ":" | "@" => (0, 0),
            "<" | ">" if self.is_list(at) => (0, 0),
            // A bracket around an operand makes nothing.
            "(" if !before(at).is_some_and(|before| self.is_called(before)) => (0, 0),
            // The second character of an operator; those that skip an operand have a block and a variable, too.
            "=" | "&" | "|" | "<" | ">" if before(at).is_some_and(|before| self.is_two(before)) => {
                let skips = before(at).is_some_and(|before| self.is(before, "&&") || self.is(before, "||"));
                if skips { (3, 2) } else { (0, 0) }
            }
            "=" if !self.is(at, "==") => (0, 1),
            "-" | "!" | "~" | "&" | "*" if is_unary && !self.is_two(at) => (1, 0),
            _ => (1, 1),
        }
    }

    /// Whether a bracket after the token has the arguments of a call or a constructor.
    fn is_called(&self, at: usize) -> bool {
        const STATEMENTS: [&str; 7] = ["if", "while", "switch", "case", "return", "for", "else"];
        self.is_word(at) && !STATEMENTS.contains(&self.text(at)) || self.text(at) == ">" && self.is_list(at)
    }

    /// Whether the token is the first half of a decimal literal whose exponent has a sign.
    fn has_exponent(&self, at: usize) -> bool {
        let text = self.text(at);
        let is_decimal = self.is_number(at) && !text.starts_with("0x") && !text.starts_with("0X");
        is_decimal && text.ends_with(['e', 'E']) && self.touches(at) && self.touches(at + 1) && self.is_number(at + 2)
    }

    /// Whether an operand may end here, so that a sign after it is binary.
    fn ends_operand(&self, at: usize) -> bool {
        self.is_word(at) && !matches!(self.text(at), "return" | "case" | "if" | "while" | "switch")
            || self.is_number(at)
            || matches!(self.text(at), ")" | "]" | ".")
    }

    /// Whether the token and the next one are one operator.
    fn is_two(&self, at: usize) -> bool {
        let operator = match self.rest(at) {
            [b'=' | b'!' | b'<' | b'>' | b'+' | b'-' | b'*' | b'/' | b'%' | b'&' | b'|' | b'^', b'=', ..] => true,
            [first @ (b'&' | b'|' | b'<' | b'>'), second, ..] => first == second,
            _ => false,
        };
        operator && !self.is_list(at)
    }

    /// Template list discovery (WGSL specification, 3.9).
    fn find_lists(&mut self) {
        let (mut pending, mut depth): (Vec<(usize, usize)>, usize) = (Vec::new(), 0);
        let mut at = 0;
        while at < self.len() {
            let close = |pending: &mut Vec<(usize, usize)>| {
                while pending.last().is_some_and(|(_, level)| *level >= depth) {
                    pending.pop();
                }
            };
            match self.text(at) {
                _ if self.is_word(at) && self.text(at + 1) == "<" => {
                    at += 1;
                    if self.is(at, "<<") || self.is(at, "<=") {
                        at += 1;
                    } else {
                        pending.push((at, depth));
                    }
                }
                _ if self.is_word(at) => {}
                ">" => match pending.last() {
                    Some(&(open, level)) if level == depth => {
                        pending.pop();
                        self.lists[open] = true;
                        self.lists[at] = true;
                    }
                    _ => at += usize::from(self.is(at, ">=")),
                },
                "(" | "[" => depth += 1,
                ")" | "]" => {
                    close(&mut pending);
                    depth = depth.saturating_sub(1);
                }
                "!" => at += usize::from(self.is(at, "!=")),
                "=" if self.is(at, "==") => at += 1,
                "=" | ";" | "{" | ":" => {
                    depth = 0;
                    pending.clear();
                }
                "&" | "|" if self.is(at, "&&") || self.is(at, "||") => {
                    close(&mut pending);
                    at += 1;
                }
                _ => {}
            }
            at += 1;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::Tokens;

    #[test]
    fn operators_of_two_signs_are_adjacent_tokens() {
        let of = |text: &str| {
            let tokens = Tokens::new(text);
            (0..tokens.len()).filter(|&at| tokens.is_two(at)).map(|at| tokens.text(at)).collect::<String>()
        };
        assert_eq!(of("a == b != c <= d >= e && f || g << h >> i"), "=!<>&|<>");
        assert_eq!(of("a += 1; a -= 1; a *= 1; a /= 1; a %= 1; a &= 1; a |= 1; a ^= 1;"), "+-*/%&|^");
        assert_eq!(of("a = = b & & c ! = d &^ e ~= f vec2<vec2<u32>>(é)=/**/= /"), "");
        let tokens = Tokens::new("a==");
        assert!(tokens.is(1, "==") && !tokens.is(2, "==") && !tokens.is(3, "=") && !tokens.is(9, "="));
    }

    #[test]
    fn lists_are_distinguished_from_comparisons() {
        for (text, lists) in [
            ("array<u32, 4>(a)", "<>"),
            ("a < b && c > d", ""),
            ("a<b || c>d", ""),
            ("f(a<b, c>(d))", "<>"),
            ("vec4<vec2<f32>>(1)", "<<>>"),
            ("array<u32, (1 << 2)>", "<>"),
            ("array<u32, 2>= a", "<>"),
            ("if a < b { c > d }", ""),
            ("a[b<c]>d", ""),
            ("x << 2 >> y", ""),
        ] {
            let tokens = Tokens::new(text);
            let found: String = (0..tokens.len()).filter(|&at| tokens.is_list(at)).map(|at| tokens.text(at)).collect();
            assert_eq!(found, lists, "{text}");
        }
    }
}
