//! Rejects texts for which naga would need too much stack or time, before it sees them.
//!
//! naga visits expressions, `else if` chains and declarations that name each other by recursion, one level per link,
//! and a stack overflow ends the process. So the links are counted here, on the bare text: operators and brackets since
//! the last separator, in every open bracket; consecutive `else`s; declarations. The limits are far above what people
//! and generators write, and fit the two megabytes of stack that a Rust thread has by default.

use super::lexer::{WgslToken, tokens};

/// Operators and brackets around one operand, at most.
const MAX_CHAIN: u32 = 1000;
/// `else`s before one statement, at most.
const MAX_ELSES: u32 = 400;
/// Declarations of a module, at most.
const MAX_DECLARATIONS: u32 = 2048;
/// Bytes of a module, at most.
const MAX_BYTES: usize = 4 << 20;
/// Items of one comma-separated list, at most: an instruction of SPIR-V has 65,535 words.
const MAX_LIST: u32 = 65_000;
/// Selectors of one `switch`, at most: SPIR-V's universal limit.
const MAX_SELECTORS: u32 = 16_383;
/// Members of a structure, at most: naga's member lookup is a linear search.
const MAX_MEMBERS: u32 = 4096;
/// Letters of a name, at most.
const MAX_NAME: usize = 4096;

/// Counts within one open bracket.
#[derive(Default)]
struct BracketLevel {
    chain: u32,
    elses: u32,
    /// Commas of a list in brackets.
    commas: u32,
    /// Byte offset of the `switch` whose selectors are counted.
    switch: usize,
    selectors: u32,
    /// Whether the next word or bracket other than `default` starts a selector, and the next comma is followed by one.
    selects: bool,
    in_case: bool,
    /// Colons of a structure's members.
    colons: u32,
    kind: NestingKind,
    /// Whether the last token was the `}` of a block at this level.
    after_block: bool,
}

#[derive(Clone, Copy, Default, PartialEq, Eq)]
enum NestingKind {
    #[default]
    Block,
    Bracket,
    Struct,
}

impl BracketLevel {
    /// The error and position of a list of this level that is too long at a byte offset.
    fn too_long(&self, at: usize) -> Option<(String, usize)> {
        match self.kind {
            NestingKind::Block if self.selectors > MAX_SELECTORS => {
                Some((format!("more than {MAX_SELECTORS} selectors of one `switch`"), self.switch))
            }
            NestingKind::Bracket if self.commas > MAX_LIST => {
                Some((format!("more than {MAX_LIST} commas in one list"), at))
            }
            NestingKind::Struct if self.colons > MAX_MEMBERS => {
                Some((format!("more than {MAX_MEMBERS} members of one structure"), at))
            }
            _ => None,
        }
    }

    /// Counts the selectors of a `switch` by its tokens.
    fn count_selectors(&mut self, token: TokenClass, text: &str) {
        match token {
            _ if text == "case" => (self.in_case, self.selects) = (true, true),
            TokenClass::Open { block: true } => self.in_case = false,
            _ if text == ":" => self.in_case = false,
            TokenClass::Separator => self.selects = true,
            _ if self.in_case => self.selectors += u32::from(std::mem::take(&mut self.selects) && text != "default"),
            _ => {}
        }
    }
}

/// The error for a rejected text, and the byte offset where it was detected.
pub(super) fn check(source: &str) -> Result<(), (String, usize)> {
    if source.len() > MAX_BYTES {
        return Err((format!("a text of more than {MAX_BYTES} bytes"), MAX_BYTES));
    }
    let mut levels = vec![BracketLevel::default()];
    let (mut chain, mut elses, mut declarations) = (0, 0, 0);
    // Whether the next block is that of a structure, and the byte offset of the `switch` that it belongs to.
    let (mut is_struct, mut switch) = (false, 0);
    for found in tokens(source) {
        let WgslToken { at, text } = found;
        if let Some(control) = text.chars().next().filter(|first| first.is_control()) {
            return Err((format!("the control character {control:?}"), at));
        }
        let token = TokenClass::of(found);
        let word = if token == TokenClass::Word { text } else { "" };
        if word.len() > MAX_NAME {
            return Err((format!("a name of more than {MAX_NAME} bytes"), at));
        }
        let Some(level) = levels.last_mut() else { break };
        let after_block = std::mem::take(&mut level.after_block);
        match token {
            TokenClass::Else if after_block => {
                level.elses += 1;
                elses += 1;
            }
            _ if after_block => elses -= std::mem::take(&mut level.elses),
            _ => {}
        }
        let was_struct = is_struct;
        is_struct = word == "struct" || was_struct && token == TokenClass::Word;
        switch = if word == "switch" { at } else { switch };
        level.count_selectors(token, text);
        level.commas += u32::from(text == ",");
        level.colons += u32::from(text == ":");
        if let Some(problem) = level.too_long(at) {
            return Err(problem);
        }
        match token {
            TokenClass::Else | TokenClass::Word => {}
            TokenClass::Operator => {
                level.chain += 1;
                chain += 1;
            }
            TokenClass::Separator => chain -= std::mem::take(&mut level.chain),
            TokenClass::Open { block } => {
                if block {
                    chain -= std::mem::take(&mut level.chain);
                } else {
                    level.chain += 1;
                    chain += 1;
                }
                let kind = match block {
                    true if was_struct => NestingKind::Struct,
                    true => NestingKind::Block,
                    false => NestingKind::Bracket,
                };
                levels.push(BracketLevel { kind, switch, ..BracketLevel::default() });
            }
            TokenClass::Close { block } => {
                if levels.len() > 1 {
                    let closed = levels.pop().unwrap_or_default();
                    chain -= closed.chain;
                    elses -= closed.elses;
                }
                if let (true, Some(level)) = (block, levels.last_mut()) {
                    level.after_block = true;
                }
            }
        }
        // A semicolon after a brace ends no further statement.
        let ends = token == TokenClass::Close { block: true } || !after_block && text == ";";
        declarations += u32::from(ends && levels.len() == 1);
        for (count, max, what) in [
            (chain, MAX_CHAIN, "operators and brackets in one expression"),
            (elses, MAX_ELSES, "`else`s in one chain"),
            (declarations, MAX_DECLARATIONS, "declarations"),
        ] {
            if count > max {
                return Err((format!("more than {max} {what}"), at));
            }
        }
    }
    Ok(())
}

/// What a token counts as.
#[derive(Clone, Copy, PartialEq, Eq)]
enum TokenClass {
    Else,
    Word,
    Operator,
    Separator,
    Open { block: bool },
    Close { block: bool },
}

impl TokenClass {
    fn of(token: WgslToken<'_>) -> Self {
        match token.text {
            "(" | "[" => Self::Open { block: false },
            "{" => Self::Open { block: true },
            ")" | "]" => Self::Close { block: false },
            "}" => Self::Close { block: true },
            ";" | "," => Self::Separator,
            "else" => Self::Else,
            _ if token.is_word_or_number() => Self::Word,
            _ => Self::Operator,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::check;

    fn refused(text: &str) -> String {
        check(text).unwrap_err().0
    }

    #[test]
    fn chains_are_counted_across_open_brackets() {
        assert!(check(&format!("x = {}1;", "1+".repeat(1000 - 1))).is_ok());
        assert_eq!(
            refused(&format!("x = {}1;", "1+".repeat(1001))),
            "more than 1000 operators and brackets in one expression"
        );
        assert!(refused(&format!("x = {}(({}1));", "1+".repeat(600), "a.b".repeat(400))).contains("1000"));
        assert!(check(&format!("x = f({});", "1+1,".repeat(5000))).is_ok());
        assert!(check(&"x = a + b; /* + + */ // + + \n".repeat(3000)).is_err_and(|(m, _)| m.contains("declarations")));
        assert!(check(&format!("fn f() {{ {} }}", "x = a + b; /* + + */ // + + \n".repeat(2000))).is_ok());
    }

    #[test]
    fn elses_are_counted_in_a_row() {
        let chain = |count| format!("if a {{}} {}", "else if b { x = 1; } ".repeat(count));
        assert!(check(&chain(400)).is_ok());
        assert_eq!(refused(&chain(401)), "more than 400 `else`s in one chain");
        assert!(check(&format!("fn f() {{ {} }}", chain(300).repeat(10))).is_ok());
    }

    #[test]
    fn lists_and_names_have_an_end() {
        // The maximum, with each selector in a case with others, in a case of its own, or next to `default`.
        let selectors = |count: usize| {
            let (list, own) = ("1u,".repeat(count - 4), "case (2) { y = f(a, b, c); } case -3: {}".repeat(2));
            format!(
                "fn f() {{\nswitch x {{ case {list} {{}} {own} default: {{}} }}\nswitch x {{ case default {{}} }} }}"
            )
        };
        assert_eq!(check(&selectors(16_383)), Ok(()));
        assert_eq!(check(&selectors(16_383).replace("1u, ", "1u, default, ")), Ok(()));
        let expected = ("more than 16383 selectors of one `switch`".to_owned(), 9);
        assert_eq!(check(&selectors(16_384)), Err(expected));
        let members = |count| {
            format!("struct S {{ {} }} fn f() {{ {} }}", "a: u32,".repeat(count), "let a: u32 = 1;".repeat(9000))
        };
        assert!(check(&members(4096)).is_ok());
        assert_eq!(check(&members(4097)).unwrap_err(), ("more than 4096 members of one structure".into(), 28_684));
        assert_eq!(
            refused(&format!("const a = array({});", "1,".repeat(65_001))),
            "more than 65000 commas in one list"
        );
        assert_eq!(refused(&"a".repeat(4097)), "a name of more than 4096 bytes");
    }

    #[test]
    fn declarations_and_control_characters() {
        assert_eq!(refused(&"alias a = b;".repeat(5000)), "more than 2048 declarations");
        assert!(check(&"alias a = array<b, 1>;".repeat(2048)).is_ok());
        assert!(check(&"@group(0) @binding(0) var<storage, read_write> a: b;".repeat(2048)).is_ok());
        assert!(check(&"struct A { a: b };".repeat(2048)).is_ok());
        assert_eq!(refused(&"struct A { a: b };".repeat(2049)), "more than 2048 declarations");
        assert_eq!(check("fn\u{0} f"), Err(("the control character '\\0'".into(), 2)));
        assert_eq!(refused("}} ] ) ".repeat(9000).as_str()), "more than 2048 declarations");
    }
}
