//! The statements of source texts that update a place in memory, as far as a line or two tell.

/// A statement that updates a place.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Statement<'a> {
    /// The place, as it is written.
    pub(super) place: &'a str,
    pub(super) function: Function,
    /// The other operand.
    pub(super) operand: &'a str,
    /// Whether a condition decides about it, which reads the place, too.
    pub(super) is_conditional: bool,
}

impl<'a> Statement<'a> {
    fn new(place: &'a str, function: Function, operand: &'a str) -> Self {
        Self { place, function, operand, is_conditional: false }
    }
}

/// How a statement updates a place.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Function {
    /// By an atomic function of integers: `Add`, `Sub`, `And`, `Or`, `Xor`, `Max`, `Min`.
    Atomic(&'static str),
    /// By an operation that no atomic function has: a product, a quotient, a shift.
    Other,
}

/// The name of what is declared: of `s.counts[i]` it is `counts`.
pub(super) fn name_of(place: &str) -> &str {
    let mut place = place;
    while let Some(open) = place.strip_suffix(']').and_then(|_| matching(place)) {
        place = place[..open].trim_end();
    }
    place.rsplit('.').next().unwrap_or(place).trim()
}

/// The name with which the place begins: of `s.counts[i]` it is `s`.
pub(super) fn root_of(place: &str) -> &str {
    place.split(|c| !is_word(c)).next().unwrap_or(place)
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
pub(super) fn words(text: &str) -> impl Iterator<Item = (usize, &str)> {
    let places = text.char_indices().filter(|&(at, c)| is_word(c) && !text[..at].ends_with(is_word));
    places.map(|(at, _)| (at, text[at..].split(|c| !is_word(c)).next().unwrap_or_default()))
}

/// Whether an expression is one operand: words, members, elements and calls, and the operators of `also`.
pub(super) fn is_simple(expression: &str, also: &str) -> bool {
    let mut depth = 0;
    is_whole(expression)
        && expression.chars().all(|c| {
            depth += i32::from("[(".contains(c)) - i32::from("])".contains(c));
            is_word(c) || "[]().".contains(c) || depth > 0 || also.contains(c)
        })
}

/// Whether an expression closes each parenthesis and bracket that it opens, and no other.
fn is_whole(expression: &str) -> bool {
    let mut open = Vec::new();
    let is_balanced = expression.chars().all(|c| match c {
        '(' | '[' => {
            open.push(c);
            true
        }
        ')' => open.pop() == Some('('),
        ']' => open.pop() == Some('['),
        _ => true,
    });
    is_balanced && open.is_empty() && !expression.is_empty()
}

/// The update in a line of source text of a place that is asked for, if there is one and it is clear.
pub(super) fn statement<'a>(line: &'a str, is_asked_for: &dyn Fn(&str) -> bool) -> Option<Statement<'a>> {
    let line = line.split("//").next().unwrap_or(line);
    let condition = condition_in(line).filter(|(found, _)| is_asked_for(found.place));
    if condition.as_ref().is_some_and(|(_, is_all)| !is_all) {
        return None;
    }
    let all = condition.map(|(found, _)| found).into_iter().chain(statements(line).filter_map(update));
    let mut found = all.filter(|found| is_asked_for(found.place));
    let first = found.next()?;
    found.next().is_none().then_some(first)
}

/// The update by a condition that a line is.
pub(super) fn in_one_line(line: &str) -> Option<Statement<'_>> {
    condition_in(line).filter(|(_, is_all)| *is_all).map(|(found, _)| found)
}

/// The update by a condition with which a line begins, and whether nothing follows.
fn condition_in(line: &str) -> Option<(Statement<'_>, bool)> {
    let (read, write) = line.split_once('{').or_else(|| after_condition(line))?;
    condition_and_rest(read, write)
}

/// A line that begins with `if (…)`, split after the condition.
fn after_condition(line: &str) -> Option<(&str, &str)> {
    let line = line.trim_start();
    let rest = line.strip_prefix("if")?.trim_start();
    if !rest.starts_with('(') {
        return None;
    }
    let mut depth = 0;
    let end = rest.char_indices().find_map(|(at, c)| {
        depth += i32::from(c == '(') - i32::from(c == ')');
        (depth == 0).then_some(at)
    })?;
    Some(line.split_at(line.len() - rest.len() + end + 1))
}

/// The update that a statement is.
fn update(text: &str) -> Option<Statement<'_>> {
    updates(text).filter(|found| is_alone(text) && is_whole(found.operand) && assignment(found.operand).is_none())
}

/// Whether a statement is one expression: not several with commas between them, nor one of two, nor with a comment.
fn is_alone(text: &str) -> bool {
    let mut depth = 0;
    let is_one = text.chars().all(|c| {
        depth += i32::from("[(".contains(c)) - i32::from("])".contains(c));
        depth > 0 || !",?".contains(c)
    });
    is_one && !text.contains("/*") && !text.contains("*/")
}

fn updates(text: &str) -> Option<Statement<'_>> {
    for (operator, function) in [("++", "Add"), ("--", "Sub")] {
        if let Some(place) = text.strip_suffix(operator) {
            return Some(Statement::new(last_place(place)?, Function::Atomic(function), "1"));
        }
        if let Some(place) = text.strip_prefix(operator).filter(|place| last_place(place) == Some(*place)) {
            return Some(Statement::new(place, Function::Atomic(function), "1"));
        }
    }
    let (left, right) = assignment(text)?;
    if let Some((operator, function)) = FUNCTIONS.into_iter().find(|(operator, _)| left.ends_with(*operator)) {
        let place = last_place(left.strip_suffix(operator)?)?;
        return Some(Statement::new(place, Function::Atomic(function), right));
    }
    for operator in OTHERS {
        if let Some(place) = left.strip_suffix(operator) {
            return Some(Statement::new(last_place(place)?, Function::Other, right));
        }
    }
    let place = last_place(left)?;
    computed(place, right, place)
}

/// The operators that atomic functions have, and others.
const FUNCTIONS: [(char, &str); 5] = [('+', "Add"), ('-', "Sub"), ('&', "And"), ('|', "Or"), ('^', "Xor")];
const OTHERS: [&str; 5] = ["*", "/", "%", "<<", ">>"];

/// The two sides of an assignment, the left one with the operator before the `=`.
fn assignment(text: &str) -> Option<(&str, &str)> {
    let (at, _) = text.char_indices().find(|&(at, c)| {
        let before = text[..at].chars().next_back();
        let shifts = ["<<", ">>"].iter().any(|shift| text[..at].ends_with(shift));
        let compares = before.is_some_and(|before| "=!<>".contains(before)) && !shifts;
        c == '=' && !text[at + 1..].starts_with('=') && !compares
    })?;
    Some((&text[..at], text[at + 1..].trim()))
}

/// The update by a statement `i = place` in the first of some lines, and by one in the last that writes what it
/// computes from `i`, which has that value only.
pub(super) fn two_statements<'a>(lines: &[&'a str]) -> Option<Statement<'a>> {
    let (read, write) = (*lines.first()?, *lines.last()?);
    let is_assigned_once = |name| {
        let all = lines.iter().flat_map(|line| statements(line)).filter_map(assigned);
        all.filter(|place| root_of(place) == root_of(name)).count() == 1
    };
    let mut found = assignments(write).filter_map(|(left, right)| {
        let place = last_place(left).filter(|place| *place == left.trim())?;
        assignments(read).find_map(|(declared, value)| {
            // The name: of `let i`, `uint i`, `var i: u32`.
            let name = last_place(declared.split(':').next()?)?;
            (value == place && name != place && is_assigned_once(name)).then(|| computed(place, right, name))?
        })
    });
    let first = found.next()?;
    found.next().is_none().then_some(first)
}

/// Whether a line has one assignment, and no other.
pub(super) fn assigns_once(line: &str) -> bool {
    statements(line).filter_map(assigned).count() == 1
}

/// Whether a line updates a place that is asked for, whatever it computes.
pub(super) fn has_update(line: &str, is_asked_for: &dyn Fn(&str) -> bool) -> bool {
    let updates = |text: &str, place: &str| {
        let is_whole =
            |right: &str, at: usize| !right[..at].ends_with(is_word) && !right[at + place.len()..].starts_with(is_word);
        let has = |right: &str| right.match_indices(place).any(|(at, _)| is_whole(right, at));
        assignment(text).is_none_or(|(left, right)| !left.trim_end().ends_with(place) || has(right))
    };
    statements(line).any(|text| assigned(text).is_some_and(|place| is_asked_for(place) && updates(text, place)))
}

/// The place to which a statement assigns.
fn assigned(text: &str) -> Option<&str> {
    let left = match assignment(text) {
        // The name without its type: of `let i`, `uint i`, `var i: u32`.
        Some((left, _)) => left.split(':').next()?.trim_end_matches(|c| "+-*/%&|^<>".contains(c)),
        None => {
            let after = text.strip_suffix("++").or_else(|| text.strip_suffix("--"));
            after.or_else(|| text.strip_prefix("++")).or_else(|| text.strip_prefix("--"))?
        }
    };
    last_place(left)
}

fn assignments(line: &str) -> impl Iterator<Item = (&str, &str)> {
    statements(line).filter_map(assignment)
}

/// The statements that end in a line, and the steps of loops, which their parenthesis ends; without its comment.
pub(super) fn statements(line: &str) -> impl Iterator<Item = &str> {
    let pieces = line.split("//").next().unwrap_or(line).split_inclusive([';', '{', '}']);
    let parts = pieces.flat_map(|piece| {
        let (step, rest) = match unopened(piece) {
            Some(at) => (Some(&piece[..at]), &piece[at + 1..]),
            None => (None, piece),
        };
        step.into_iter().chain(rest.strip_suffix(';'))
    });
    parts.map(str::trim)
}

/// Where a parenthesis closes that does not open in the text.
fn unopened(text: &str) -> Option<usize> {
    let mut depth = 0;
    text.char_indices().find_map(|(at, c)| {
        depth += i32::from(c == '(') - i32::from(c == ')');
        (depth < 0).then_some(at)
    })
}

/// The update of a place to the right side of an assignment, in which `old` is its value before.
fn computed<'a>(place: &'a str, right: &'a str, old: &str) -> Option<Statement<'a>> {
    let atomic = |place, function, operand| Statement::new(place, Function::Atomic(function), operand);
    let other = |place, operand| Statement::new(place, Function::Other, operand);
    for (name, function) in [("max(", "Max"), ("min(", "Min")] {
        if let Some(arguments) = right.strip_prefix(name).and_then(|rest| rest.strip_suffix(')')) {
            let operand = arguments.strip_prefix(old).and_then(|rest| rest.trim_start().strip_prefix(','))?.trim();
            return is_simple(operand, "").then_some(atomic(place, function, operand));
        }
    }
    for operator in OTHERS {
        let operand = right.strip_prefix(old).and_then(|rest| rest.trim_start().strip_prefix(operator));
        if let Some(operand) = operand.filter(|operand| is_simple(operand.trim(), "")) {
            return Some(other(place, operand.trim()));
        }
    }
    FUNCTIONS.into_iter().find_map(|(operator, function)| {
        // A product binds more strongly than a sum.
        let also = if "+-".contains(operator) { "* " } else { "" };
        let after = |rest: &str| Some(rest.trim_start().strip_prefix(operator)?.trim().len());
        let operand = match right.strip_prefix(old).and_then(after) {
            Some(len) => &right[right.len() - len..],
            None if operator == '-' => return None,
            None => right.strip_suffix(old)?.trim_end().strip_suffix(operator)?.trim_end(),
        };
        is_simple(operand, also).then_some(atomic(place, function, operand))
    })
}

/// The update by a condition whose text ends with `before`: `if (c < x)` before `c = x` keeps the larger one.
fn condition<'a>(before: &str, place: &'a str, value: &'a str) -> Option<Statement<'a>> {
    let condition = before.trim().trim_end_matches('{').trim().strip_prefix("if")?.trim();
    let condition = condition.strip_prefix('(').and_then(|inner| inner.strip_suffix(')')).unwrap_or(condition).trim();
    let found = [("<=", "Max", "Min"), (">=", "Min", "Max"), ("<", "Max", "Min"), (">", "Min", "Max")];
    let (operator, of_place, of_value) = found.into_iter().find(|(operator, ..)| condition.contains(operator))?;
    let (left, right) = condition.split_once(operator)?;
    let function = match (left.trim(), right.trim()) {
        (left, right) if left == place && right == value => of_place,
        (left, right) if left == value && right == place => of_value,
        _ => return None,
    };
    is_whole(value)
        .then_some(Statement { is_conditional: true, ..Statement::new(place, Function::Atomic(function), value) })
}

/// The update that a condition in one line and a statement in another one are, if nothing follows in that line.
pub(super) fn conditional_statement<'a>(read: &str, write: &'a str) -> Option<Statement<'a>> {
    condition_and_rest(read, write).filter(|(_, is_all)| *is_all).map(|(found, _)| found)
}

/// The same, whatever follows, and whether nothing does.
fn condition_and_rest<'a>(read: &str, write: &'a str) -> Option<(Statement<'a>, bool)> {
    let read = read.split("//").next().unwrap_or(read);
    let write = write.split("//").next().unwrap_or(write).trim().trim_start_matches('{').trim();
    let (statement, rest) = write.split_once(';')?;
    let (place, value) = statement.split_once('=')?;
    let place = place.trim();
    let found = condition(read, last_place(place).filter(|found| *found == place)?, value.trim())?;
    Some((found, rest.chars().all(|c| c == '}' || c.is_whitespace())))
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

    /// The update of any place in a line.
    fn any(line: &str) -> Option<Statement<'_>> {
        statement(line, &|_| true)
    }

    #[test]
    fn updates_are_read_from_their_statements() {
        let read = |line| any(line).map(|found| (found.place, found.function, found.operand));
        let atomic = |place, function, operand| Some((place, Function::Atomic(function), operand));
        for line in ["  c[0] += 1u;", "c[0] = c[0] + 1u;", "c[0] = 1u + c[0];", "if (i < 4) { c[0] += 1u; } // = 3"] {
            assert_eq!(read(line), atomic("c[0]", "Add", "1u"), "{line}");
        }
        assert_eq!(read("else s.counts[a[i]]++;"), atomic("s.counts[a[i]]", "Add", "1"));
        assert_eq!(read("--n;"), atomic("n", "Sub", "1"));
        assert_eq!(read("h[k & 3u] |= 1u << i;"), atomic("h[k & 3u]", "Or", "1u << i"));
        assert_eq!(read("best = max(best, x[i]);"), atomic("best", "Max", "x[i]"));
        assert_eq!(read("s = s + a * b;"), atomic("s", "Add", "a * b"));
        for line in ["s *= 3.0;", "s = s * 3.0;"] {
            assert_eq!(read(line), Some(("s", Function::Other, "3.0")), "{line}");
        }
        assert_eq!(read("n <<= 1;"), Some(("n", Function::Other, "1")));
        for line in
            ["s = s - a - b;", "s = t + 1;", "s = s & a | b;", "if (s == 1) t = 2;", "a += 1; b += 1;", "s = s;", "= 3"]
        {
            assert_eq!(read(line), None, "{line}");
        }
    }

    #[test]
    fn an_update_is_that_of_the_place_that_is_asked_for() {
        let of = |root: &'static str, line: &'static str| {
            let found = statement(line, &|place| root_of(place) == root);
            found.map(|found| (found.place, found.operand))
        };
        let step = "for (uint i = 0u; i < 4u; i += 2u) c[0] += 1u;";
        assert_eq!(of("c", step), Some(("c[0]", "1u")));
        assert_eq!(of("i", step), Some(("i", "2u")));
        assert_eq!(any(step), None, "there are two");
        assert_eq!(of("c", "for (var k = 0u; k < 64u; k++) { c[k].n -= f(k, (1)); }"), Some(("c[k].n", "f(k, (1))")));
        assert_eq!(of("c", "uint t = c[0]; t += 1u; c[0] = t;"), None);
        assert_eq!(of("c", "if (c[0] < 7u) { c[0] = 7u; }"), Some(("c[0]", "7u")));
        // What follows may update the place, too.
        for rest in ["t++;", "else { c[0] = 5u; }", "c[0] += 1u;"] {
            let line = format!("if (c[0] < 7u) {{ c[0] = 7u; }} {rest}");
            assert_eq!(statement(&line, &|place| place == "c[0]"), None, "{line}");
        }
        assert_eq!(of("t", "if (c[0] < 7u) { c[0] = 7u; } t++;"), Some(("t", "1")));
        for line in [
            "c[0] += 1u, c[1] += 2u;",
            "c[0]++, c[1]++;",
            "c[0] += t = 2u;",
            "c[0] += t ? 1u : 2u;",
            "c[0] += 1u /* one */;",
            "/* c[0] += 1u;",
        ] {
            assert_eq!(of("c", line), None, "{line}");
        }
        assert_eq!(of("c", "c[0] += f(1u, 2u) + uint(t == 2u);"), Some(("c[0]", "f(1u, 2u) + uint(t == 2u)")));
        // What goes on in the next line is not known.
        for line in ["c[0] += f(1u,", "c[0] += a", "c[0] = c[0] + f(a", "if (c[0] < f(a)) c[0] = f(a", "c[0] += a[2u;"]
        {
            assert_eq!(of("c", line), None, "{line}");
        }
        let has = |line: &str| has_update(line, &|place| root_of(place) == "u");
        assert!(["u++;", "u *= 2;", "if (x) { u = u == 7 ? l : u; }", "u[1] = 2 * u[1];"].into_iter().all(has));
        assert!(!["u = uint(l);", "u[0] = u[1];", "v += u;", "uint t = u;"].into_iter().any(has));
        assert!(is_simple("f(a[1])", "") && ["a) + (b", "f(a]", "(", ""].into_iter().all(|text| !is_simple(text, "")));
    }

    #[test]
    fn updates_of_two_statements_are_read_from_both() {
        let of =
            |lines: &[&'static str]| two_statements(lines).map(|found| (found.place, found.function, found.operand));
        let read = |read, write| of(&[read, write]);
        let add = Some(("n", Function::Atomic("Add"), "1u"));
        for line in ["let i = n;", "  uint i = n; // the next one", "var i: u32 = n;", "i = n;"] {
            assert_eq!(read(line, "  n = i + 1u;"), add, "{line}");
        }
        assert_eq!(
            read("int old = h[k & 3];", "h[k & 3] = max(old, x);").map(|found| found.1),
            Some(Function::Atomic("Max"))
        );
        assert_eq!(read("let i = n;", "n = i * 3u;").map(|found| found.1), Some(Function::Other));
        assert_eq!(of(&["let i = n; n = i + 1u;"]), add);
        assert_eq!(of(&["let i = n;", "k += i; m[i] = 2;", "n = i + 1u;"]), add);
        for between in ["i *= 3u;", "if (k < 2) { i++; }", "--i; // a step back", "i = 3u;"] {
            assert_eq!(of(&["uint i = n;", between, "n = i + 1u;"]), None, "{between}");
        }
        assert_eq!(of(&["var i = n; i *= 3u; n = i + 1u;"]), None);
        for (one, other) in [
            ("let i = m;", "n = i + 1u;"),
            ("let i = n;", "n = ix + 1u;"),
            ("let i = n;", "n = i;"),
            ("", "n = i + 1;"),
        ] {
            assert_eq!(read(one, other), None, "{one} {other}");
        }
    }

    #[test]
    fn updates_by_a_condition_keep_the_larger_or_the_smaller_one() {
        let read = |line| any(line).map(|found| (found.place, found.function, found.operand));
        for line in ["if c[0] < 7u { c[0] = 7u; }", "if (c[0] < 7u) c[0] = 7u;", "if (7u > c[0]) { c[0] = 7u; }"] {
            assert_eq!(read(line), Some(("c[0]", Function::Atomic("Max"), "7u")), "{line}");
        }
        assert_eq!(read("if (x >= f(i)) { x = f(i); }"), Some(("x", Function::Atomic("Min"), "f(i)")));
        assert_eq!(read("if c[0] < 7u { c[0] = 8u; }"), None);
        assert_eq!(read("ifα[0] = (1u);"), None);
        let lines = conditional_statement("  if (best < value) {", "    best = value;");
        assert_eq!(lines.map(|found| found.function), Some(Function::Atomic("Max")));
        assert_eq!(conditional_statement("  if (best < value) {", "    best += value;"), None);
    }
}
