//! Texts that naga would need too much stack or time for, refused before it sees them.
//!
//! naga walks expressions, `else if` chains and declarations that name each other by recursion, one level for each link,
//! and an overflow of the stack ends the process. So the links are counted here, on the bare text: operators and
//! brackets since the last separator, within every bracket that is open; `else`s in a row; declarations. The caps are far
//! above what people and generators write, and within the two megabytes of stack that a Rust thread has by default.

/// Operators and brackets on the way to one operand.
const MAX_CHAIN: u32 = 1000;
/// `else`s on the way to one statement.
const MAX_ELSES: u32 = 400;
/// Declarations of a module.
const MAX_DECLARATIONS: u32 = 2048;
/// Bytes of a module.
const MAX_BYTES: usize = 4 << 20;

/// What is counted within one open bracket.
#[derive(Default)]
struct Level {
    chain: u32,
    elses: u32,
    /// The last token was the `}` of a block in here.
    after_block: bool,
}

/// Why a text is refused, and the byte where that showed.
pub(super) fn check(source: &str) -> Result<(), (String, usize)> {
    if source.len() > MAX_BYTES {
        return Err((format!("a text of more than {MAX_BYTES} bytes"), MAX_BYTES));
    }
    let mut levels = vec![Level::default()];
    let (mut chain, mut elses, mut declarations) = (0, 0, 0);
    let mut rest = Tokens { source, at: 0 };
    while let Some((at, token)) = rest.next()? {
        let Some(level) = levels.last_mut() else { break };
        let after_block = std::mem::take(&mut level.after_block);
        match token {
            Token::Else if after_block => {
                level.elses += 1;
                elses += 1;
            }
            _ if after_block => elses -= std::mem::take(&mut level.elses),
            _ => {}
        }
        match token {
            Token::Else | Token::Word => {}
            Token::Operator => {
                level.chain += 1;
                chain += 1;
            }
            Token::Separator => chain -= std::mem::take(&mut level.chain),
            Token::Open { block } => {
                if block {
                    chain -= std::mem::take(&mut level.chain);
                } else {
                    level.chain += 1;
                    chain += 1;
                }
                levels.push(Level::default());
            }
            Token::Close { block } => {
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
        let ends = matches!(token, Token::Separator | Token::Close { block: true });
        declarations += u32::from(ends && levels.len() == 1);
        for (count, most, what) in [
            (chain, MAX_CHAIN, "operators and brackets in one expression"),
            (elses, MAX_ELSES, "`else`s in one chain"),
            (declarations, MAX_DECLARATIONS, "declarations"),
        ] {
            if count > most {
                return Err((format!("more than {most} {what}"), at));
            }
        }
    }
    Ok(())
}

#[derive(Clone, Copy)]
enum Token {
    Else,
    Word,
    Operator,
    Separator,
    Open { block: bool },
    Close { block: bool },
}

/// The text without white space and comments.
struct Tokens<'a> {
    source: &'a str,
    at: usize,
}

impl Tokens<'_> {
    fn next(&mut self) -> Result<Option<(usize, Token)>, (String, usize)> {
        loop {
            let at = self.at;
            let rest = &self.source[at..];
            let Some(first) = rest.chars().next() else { return Ok(None) };
            self.at += first.len_utf8();
            let token = match first {
                _ if rest.starts_with("//") => {
                    self.at = at + rest.find(['\n', '\r']).unwrap_or(rest.len());
                    continue;
                }
                _ if rest.starts_with("/*") => {
                    self.at = at + comment(rest);
                    continue;
                }
                _ if first.is_whitespace() => continue,
                _ if first.is_control() => {
                    return Err((format!("the control character {:?}", first), at));
                }
                '(' | '[' => Token::Open { block: false },
                '{' => Token::Open { block: true },
                ')' | ']' => Token::Close { block: false },
                '}' => Token::Close { block: true },
                ';' | ',' => Token::Separator,
                _ if first == '_' || first.is_alphanumeric() => {
                    let end = rest.find(|c: char| c != '_' && !c.is_alphanumeric()).unwrap_or(rest.len());
                    self.at = at + end;
                    if &rest[..end] == "else" { Token::Else } else { Token::Word }
                }
                _ => Token::Operator,
            };
            return Ok(Some((at, token)));
        }
    }
}

/// Length of the comment that the text begins with; block comments nest.
pub(super) fn comment(text: &str) -> usize {
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
    fn declarations_and_control_characters() {
        assert_eq!(refused(&"alias a = b;".repeat(5000)), "more than 2048 declarations");
        assert_eq!(check("fn\u{0} f"), Err(("the control character '\\0'".into(), 2)));
        assert_eq!(refused("}} ] ) ".repeat(9000).as_str()), "more than 2048 declarations");
    }
}
