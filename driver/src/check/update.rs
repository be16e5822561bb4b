//! The repair of a lost update: a statement that reads a place and writes it again, `c[0] += 1`, as an atomic function.
//!
//! Which two instructions make the update is known from the recording, and that the two invocations' updates are of one
//! line; what the statement computes is read from its text. Where that is not clear, the repair names no function.

use spelter_shaders::front::Language;

use super::finding::{FoundAccess, Repair};

/// A statement that updates a place.
#[derive(Debug, PartialEq, Eq)]
struct Statement<'a> {
    /// The place, as it is written.
    place: &'a str,
    /// The function of the update: `Add`, `Sub`, `And`, `Or`, `Xor`, `Max`, `Min`.
    function: &'static str,
    /// The other operand.
    operand: &'a str,
}

/// The repair of an update whose write is `access`.
pub(super) fn repair(language: Language, access: &FoundAccess) -> Repair {
    let position = access.position().map(|position| format!(" at {position}")).unwrap_or_default();
    let statement = access.quoted().and_then(statement);
    let source = access.source.as_deref().unwrap_or_default();
    let call = statement.and_then(|statement| match language {
        Language::Glsl => Some(in_glsl(&statement, source)),
        Language::Wgsl => in_wgsl(&statement, source),
        Language::Spirv => None,
    });
    let lost = "updates between the read and the write of another invocation are lost";
    let text = match call {
        Some((call, with)) => format!("{call} in place of the update{position}{with}: {lost}"),
        None => format!("one atomic operation (an add, and, or, max …) in place of the update{position}: {lost}"),
    };
    Repair { text, line: access.line.clone() }
}

/// `atomicAdd(c[0], 1u)`, and what else is needed. A difference has no function of its own: it is the sum with the
/// opposite.
fn in_glsl(Statement { place, function, operand }: &Statement<'_>, source: &str) -> (String, String) {
    let (function, operand) = match *function {
        "Sub" if is_simple(operand, "") => ("Add", format!("-{operand}")),
        "Sub" => ("Add", format!("-({operand})")),
        function => (function, (*operand).to_owned()),
    };
    let follows = |(at, word): (usize, &str)| is_next(&source[at + word.len()..], name_of(place));
    let is_float = words(source).any(|found| found.1 == "float" && follows(found));
    let with = if is_float { ", with GL_EXT_shader_atomic_float" } else { "" };
    (format!("atomic{function}({place}, {operand})"), with.to_owned())
}

/// `atomicAdd(&c[0], 1)`, and the type that it needs; `None` if there is none.
fn in_wgsl(Statement { place, function, operand }: &Statement<'_>, source: &str) -> Option<(String, String)> {
    let name = name_of(place);
    let declared = words(source).filter(|(_, word)| *word == name).find_map(|(at, word)| {
        let rest = source[at + word.len()..].trim_start().strip_prefix(':')?;
        let end = rest.find([';', '=', '{', '}', '\n', ')']).unwrap_or(rest.len());
        words(&rest[..end]).map(|(_, word)| word).find(|word| ["u32", "i32", "f32", "f16"].contains(word))
    })?;
    // Atomics of WGSL are integers.
    ["u32", "i32"].contains(&declared).then(|| {
        let with = format!(", with `atomic<{declared}>` for `{declared}` in the declaration of `{name}`");
        (format!("atomic{function}(&{place}, {operand})"), with)
    })
}

/// The name of what is declared: of `s.counts[i]` it is `counts`.
fn name_of(place: &str) -> &str {
    let mut place = place;
    while let Some(open) = place.strip_suffix(']').and_then(|_| matching(place)) {
        place = place[..open].trim_end();
    }
    place.rsplit('.').next().unwrap_or(place).trim()
}

/// Where the bracket opens that ends `text`.
fn matching(text: &str) -> Option<usize> {
    let mut depth = 0;
    text.char_indices().rev().find_map(|(at, c)| {
        depth += i32::from(c == ']') - i32::from(c == '[');
        (depth == 0).then_some(at)
    })
}

fn is_word(c: char) -> bool {
    c.is_ascii_alphanumeric() || c == '_'
}

/// The words of a text, each with its place.
fn words(text: &str) -> impl Iterator<Item = (usize, &str)> {
    let places = text.char_indices().filter(|&(at, c)| is_word(c) && !text[..at].ends_with(is_word));
    places.map(|(at, _)| (at, text[at..].split(|c| !is_word(c)).next().unwrap_or_default()))
}

/// Whether the first word of a text is this one, with nothing but spaces before it.
fn is_next(text: &str, word: &str) -> bool {
    words(text.trim_start()).next() == Some((0, word))
}

/// Whether an expression is one operand: words, members, elements and calls, and the operators of `also`.
fn is_simple(expression: &str, also: &str) -> bool {
    let mut depth = 0;
    !expression.is_empty()
        && expression.chars().all(|c| {
            depth += i32::from("[(".contains(c)) - i32::from("])".contains(c));
            is_word(c) || "[]().".contains(c) || depth > 0 || also.contains(c)
        })
        && depth == 0
}

/// The update in a line of source text, if there is one and it is clear.
fn statement(line: &str) -> Option<Statement<'_>> {
    let line = line.split("//").next().unwrap_or(line);
    let mut found = line.split([';', '{', '}']).filter_map(|part| update(part.trim()));
    let first = found.next()?;
    found.next().is_none().then_some(first)
}

/// The update that a statement is.
fn update(text: &str) -> Option<Statement<'_>> {
    for (operator, function) in [("++", "Add"), ("--", "Sub")] {
        if let Some(place) = text.strip_suffix(operator) {
            return Some(Statement { place: last_place(place)?, function, operand: "1" });
        }
        if let Some(place) = text.strip_prefix(operator).filter(|place| last_place(place) == Some(*place)) {
            return Some(Statement { place, function, operand: "1" });
        }
    }
    let assigned = text.char_indices().find(|&(at, c)| {
        let before = text[..at].chars().next_back();
        c == '=' && !text[at + 1..].starts_with('=') && !before.is_some_and(|before| "=!<>".contains(before))
    })?;
    let (left, right) = (&text[..assigned.0], text[assigned.0 + 1..].trim());
    let functions = [('+', "Add"), ('-', "Sub"), ('&', "And"), ('|', "Or"), ('^', "Xor")];
    if let Some((operator, function)) = functions.into_iter().find(|(operator, _)| left.ends_with(*operator)) {
        let place = last_place(left.strip_suffix(operator)?)?;
        return Some(Statement { place, function, operand: right });
    }
    let place = last_place(left)?;
    for (name, function) in [("max(", "Max"), ("min(", "Min")] {
        if let Some(arguments) = right.strip_prefix(name).and_then(|rest| rest.strip_suffix(')')) {
            let operand = arguments.strip_prefix(place).and_then(|rest| rest.trim_start().strip_prefix(','))?.trim();
            return is_simple(operand, "").then_some(Statement { place, function, operand });
        }
    }
    functions.into_iter().find_map(|(operator, function)| {
        // A product binds more strongly than a sum.
        let also = if "+-".contains(operator) { "* " } else { "" };
        let after = |rest: &str| Some(rest.trim_start().strip_prefix(operator)?.trim().len());
        let operand = match right.strip_prefix(place).and_then(after) {
            Some(len) => &right[right.len() - len..],
            None if operator == '-' => return None,
            None => right.strip_suffix(place)?.trim_end().strip_suffix(operator)?.trim_end(),
        };
        is_simple(operand, also).then_some(Statement { place, function, operand })
    })
}

/// The place in memory with which a text ends: a name with members and elements.
fn last_place(text: &str) -> Option<&str> {
    let text = text.trim();
    let mut start = text.len();
    while let Some(c) = text[..start].chars().next_back() {
        start = match c {
            ']' => matching(&text[..start])?,
            c if is_word(c) || c == '.' => start - 1,
            _ => break,
        };
    }
    let place = &text[start..];
    place.starts_with(|c: char| is_word(c) && !c.is_ascii_digit()).then_some(place)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn updates_are_read_from_their_statements() {
        let read = |line| statement(line).map(|found| (found.place, found.function, found.operand));
        for line in ["  c[0] += 1u;", "c[0] = c[0] + 1u;", "c[0] = 1u + c[0];", "if (i < 4) { c[0] += 1u; } // = 3"] {
            assert_eq!(read(line), Some(("c[0]", "Add", "1u")), "{line}");
        }
        assert_eq!(read("else s.counts[a[i]]++;"), Some(("s.counts[a[i]]", "Add", "1")));
        assert_eq!(read("--n;"), Some(("n", "Sub", "1")));
        assert_eq!(read("h[k & 3u] |= 1u << i;"), Some(("h[k & 3u]", "Or", "1u << i")));
        assert_eq!(read("best = max(best, x[i]);"), Some(("best", "Max", "x[i]")));
        assert_eq!(read("s = s + a * b;"), Some(("s", "Add", "a * b")));
        for line in
            ["s = s - a - b;", "s = t + 1;", "s = s & a | b;", "if (s == 1) t = 2;", "a += 1; b += 1;", "s = s;", "= 3"]
        {
            assert_eq!(read(line), None, "{line}");
        }
    }

    #[test]
    fn functions_are_those_of_the_language() {
        let text = |(call, with): (String, String)| call + &with;
        let wgsl = |source: &str, line| in_wgsl(&statement(line).expect("an update"), source).map(text);
        assert_eq!(
            wgsl("var<storage, read_write> c: array<u32>;\n", "c[0] += 1;").as_deref(),
            Some("atomicAdd(&c[0], 1), with `atomic<u32>` for `u32` in the declaration of `c`")
        );
        assert_eq!(
            wgsl("struct S { n: i32 }", "s.n -= 2;").as_deref(),
            Some("atomicSub(&s.n, 2), with `atomic<i32>` for `i32` in the declaration of `n`")
        );
        assert_eq!(wgsl("var<workgroup> c: array<f32, 4>;", "c[0] += 1.0;"), None);
        let glsl = |source: &str, line| text(in_glsl(&statement(line).expect("an update"), source));
        assert_eq!(glsl("buffer B { uint c[]; };", "c[0] -= n;"), "atomicAdd(c[0], -n)");
        assert_eq!(glsl("buffer B { float c[]; };", "c[0]++;"), "atomicAdd(c[0], 1), with GL_EXT_shader_atomic_float");
    }
}
