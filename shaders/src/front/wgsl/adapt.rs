//! Rewrites WGSL words that naga rejects although they have no effect here: a word is blanked out or replaced, and
//! every other character keeps its position, so that lines and columns in messages are those of the text.
//!
//! - `enable subgroups;` is required by the standard before subgroup functions; naga supports them without it and
//!   rejects the line.
//! - `var<push_constant>` is the former name of `var<immediate>`.

use std::borrow::Cow;
use std::ops::Range;

use super::guard::comment_or_space;

/// Extensions whose functions are available without being enabled.
const NEEDLESS: [&str; 1] = ["subgroups"];

/// The text for naga, with the same number of bytes and lines.
pub(super) fn adapted(source: &str) -> Cow<'_, str> {
    if !NEEDLESS.iter().chain(&[PUSH]).any(|word| source.contains(word)) {
        return Cow::Borrowed(source);
    }
    let tokens = tokens(source);
    let mut text = source.to_owned();
    let mut put = |place: &Range<usize>, word: &str| {
        let width = place.end - place.start;
        text.replace_range(place.clone(), &format!("{word:width$}"));
    };
    for at in 0..tokens.len() {
        let word = |after: usize| tokens.get(at + after).map_or("", |place| &source[place.clone()]);
        if [word(0), word(1), word(2)] == ["var", "<", PUSH] {
            put(&tokens[at + 2], "immediate");
        }
        if word(0) == "enable" && (at == 0 || &source[tokens[at - 1].clone()] == ";") {
            let names = tokens[at + 1..].iter().take_while(|place| &source[(*place).clone()] != ";").count();
            let directive = &tokens[at..(at + names + 2).min(tokens.len())];
            needless(source, directive).into_iter().for_each(|place| put(place, ""));
        }
    }
    Cow::Owned(text)
}

const PUSH: &str = "push_constant";

/// The parts of an `enable` directive, from its first word to its semicolon, that naga must not see.
fn needless<'a>(source: &str, directive: &'a [Range<usize>]) -> Vec<&'a Range<usize>> {
    let is = |place: &Range<usize>, text: &str| &source[place.clone()] == text;
    let names: Vec<_> = directive[1..].iter().filter(|place| !is(place, ",") && !is(place, ";")).collect();
    let drops = |place: &&Range<usize>| NEEDLESS.iter().any(|name| is(place, name));
    let kept = names.iter().filter(|place| !drops(place)).count();
    if kept == 0 && !names.is_empty() {
        return directive.iter().collect();
    }
    let mut gone: Vec<_> = names.into_iter().filter(drops).collect();
    // With each name goes the comma after it, or before it if it is the last.
    let commas = |name: &&Range<usize>| {
        let at = directive.iter().position(|place| place == *name)?;
        let next = directive.get(at + 1).filter(|place| is(place, ","));
        next.or_else(|| directive.get(at - 1).filter(|place| is(place, ",")))
    };
    let separators: Vec<_> = gone.iter().filter_map(commas).collect();
    gone.extend(separators);
    gone
}

/// Words and single characters, without white space and comments.
pub(super) fn tokens(source: &str) -> Vec<Range<usize>> {
    let (mut list, mut at) = (Vec::new(), 0);
    while let Some(first) = source[at..].chars().next() {
        let rest = &source[at..];
        let skipped = comment_or_space(rest);
        let is_word = |c: char| c == '_' || c.is_alphanumeric();
        let end = match first {
            _ if skipped > 0 => skipped,
            _ if is_word(first) => rest.find(|c| !is_word(c)).unwrap_or(rest.len()),
            _ => first.len_utf8(),
        };
        if skipped == 0 {
            list.push(at..at + end);
        }
        at += end;
    }
    list
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
