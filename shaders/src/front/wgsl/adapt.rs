//! Rewrites WGSL words that naga rejects although they have no effect here: a word is blanked out or replaced, and
//! every other character keeps its position, so that lines and columns in messages are those of the text.
//!
//! - `enable subgroups;` is required by the standard before subgroup functions; naga supports them without it and
//!   rejects the line.
//! - `var<push_constant>` is the former name of `var<immediate>`.

use std::borrow::Cow;

use super::lexer::{WgslToken, tokens};

/// Extensions whose functions are available without being enabled.
const NEEDLESS: [&str; 1] = ["subgroups"];

/// The text for naga, with the same number of bytes and lines.
pub(super) fn adapted(source: &str) -> Cow<'_, str> {
    if !NEEDLESS.iter().chain(&[PUSH]).any(|word| source.contains(word)) {
        return Cow::Borrowed(source);
    }
    let tokens: Vec<WgslToken<'_>> = tokens(source).collect();
    let mut text = source.to_owned();
    let mut put = |token: &WgslToken<'_>, word: &str| {
        let width = token.text.len();
        text.replace_range(token.at..token.end(), &format!("{word:width$}"));
    };
    for at in 0..tokens.len() {
        let word = |after: usize| tokens.get(at + after).map_or("", |token| token.text);
        if [word(0), word(1), word(2)] == ["var", "<", PUSH] {
            put(&tokens[at + 2], "immediate");
        }
        if word(0) == "enable" && (at == 0 || tokens[at - 1].text == ";") {
            let names = tokens[at + 1..].iter().take_while(|token| token.text != ";").count();
            let directive = &tokens[at..(at + names + 2).min(tokens.len())];
            needless(directive).into_iter().for_each(|token| put(token, ""));
        }
    }
    Cow::Owned(text)
}

const PUSH: &str = "push_constant";

/// The parts of an `enable` directive, from its first word to its semicolon, that naga must not see.
fn needless<'a, 'b>(directive: &'a [WgslToken<'b>]) -> Vec<&'a WgslToken<'b>> {
    let names: Vec<_> = directive[1..].iter().filter(|token| !matches!(token.text, "," | ";")).collect();
    let drops = |token: &&WgslToken<'_>| NEEDLESS.contains(&token.text);
    let kept = names.iter().filter(|token| !drops(token)).count();
    if kept == 0 && !names.is_empty() {
        return directive.iter().collect();
    }
    let mut gone: Vec<_> = names.into_iter().filter(drops).collect();
    // With each name goes the comma after it, or before it if it is the last.
    let commas = |name: &&WgslToken<'_>| {
        let at = directive.iter().position(|token| token == *name)?;
        let next = directive.get(at + 1).filter(|token| token.text == ",");
        next.or_else(|| directive.get(at - 1).filter(|token| token.text == ","))
    };
    let separators: Vec<_> = gone.iter().filter_map(commas).collect();
    gone.extend(separators);
    gone
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_what_is_needless_is_blanked_out() {
        for (text, seen) in [
            ("enable subgroups;\nfn f() {}", "                 \nfn f() {}"),
            ("/* é */ enable // x\n subgroups ;x", "/* é */        // x\n            x"),
            ("enable f16, subgroups;", "enable f16           ;"),
            ("enable subgroups, f16;", "enable            f16;"),
            ("enable f16;\nenable subgroups,;", "enable f16;\n                  "),
            ("var<push_constant> p: u32;", "var<immediate    > p: u32;"),
            ("var < push_constant > p: u32;", "var < immediate     > p: u32;"),
            // The program's own names, and comments.
            (
                "let subgroups = push_constant; // enable subgroups;",
                "let subgroups = push_constant; // enable subgroups;",
            ),
            ("fn f() { enable subgroups; }", "fn f() { enable subgroups; }"),
            ("enable;subgroups", "enable;subgroups"),
            ("enable subgroups", "                "),
        ] {
            assert_eq!(adapted(text), seen, "{text}");
        }
    }
}
