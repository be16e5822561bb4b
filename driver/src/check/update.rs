//! The repair of a lost update: a statement that reads a place and writes it again, `c[0] += 1`, as an atomic function.
//! So of two statements, `i = n` and `n = i + 1`.
//!
//! Which two instructions make the update is known from the recording, and that the two invocations' updates are of one
//! line, or that the one instruction writes what is computed from the value that the other one reads; what the
//! statements compute is read from their text. Where that is not clear, the repair names no function.

use spelter_shaders::front::Language;

use super::explanation::named;
use super::finding::{FoundAccess, Repair};

/// A statement that updates a place.
#[derive(Debug, PartialEq, Eq)]
struct Statement<'a> {
    /// The place, as it is written.
    place: &'a str,
    function: Function,
    /// The other operand.
    operand: &'a str,
}

/// How a statement updates a place.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Function {
    /// By an atomic function of integers: `Add`, `Sub`, `And`, `Or`, `Xor`, `Max`, `Min`.
    Atomic(&'static str),
    /// By an operation that no atomic function has: a product, a quotient, a shift.
    Other,
}

/// What an update changes, as far as its instructions tell.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Updated {
    /// An integer of 32 bits.
    Integer,
    /// A float of 32 bits.
    Float,
    /// An integer of 64 bits.
    Long,
    /// A float of 64 bits.
    Double,
    /// Several components at once.
    Vector,
    /// A number of 8 or 16 bits.
    Narrow,
    /// A texel.
    Other,
}

impl Updated {
    /// The same, where the instructions are those of a vector and the text declares the place as a number of 64 bits:
    /// such a number is two words, too.
    fn declared(self, place: &str, source: &str) -> Self {
        let (name, mut before, mut found) = (name_of(place), None, None);
        for (at, word) in words(source) {
            let follows = |end: usize| source[end..at].chars().all(char::is_whitespace);
            if let Some((ty, end)) = before.take()
                && word == name
                && follows(end)
            {
                found = found.or(Some(ty));
            }
            before = match word {
                "uint64_t" | "int64_t" => Some((Self::Long, at + word.len())),
                "double" | "float64_t" => Some((Self::Double, at + word.len())),
                _ => None,
            };
        }
        if self == Self::Vector { found.unwrap_or(self) } else { self }
    }
}

/// The repair of an update of one statement whose write is `access`.
pub(super) fn repair(language: Language, access: &FoundAccess, updated: Updated) -> Repair {
    let statement = access.quoted().and_then(|line| statement(line).or_else(|| two_statements(line, line)));
    described(language, access, &update_at(access), updated, statement.as_ref())
}

/// The repair of an update of two statements: `read` is that of the value from which `write` writes another one.
pub(super) fn of_two_statements(
    language: Language,
    write: &FoundAccess,
    read: &FoundAccess,
    updated: Updated,
) -> Repair {
    let texts = read.quoted().zip(write.quoted());
    let statement = texts.and_then(|(read, write)| two_statements(read, write));
    let at = format!("{} and {}", named(read), named(write));
    described(language, write, &at, updated, statement.as_ref())
}

/// The statement of an update in a sentence.
fn update_at(write: &FoundAccess) -> String {
    write.position().map_or("the update".to_owned(), |position| format!("the update at {position}"))
}

/// The repair of an update by a condition, `if (best < x) { best = x; }`, whose condition `read` executes: `None` if
/// that is not what the two lines are.
pub(super) fn conditional(
    language: Language,
    write: &FoundAccess,
    read: &FoundAccess,
    updated: Updated,
) -> Option<Repair> {
    let (read, written) = (read.quoted()?, write.quoted()?);
    let statement = match read == written {
        true => in_one_line(written),
        false => conditional_statement(read, written),
    };
    Some(described(language, write, &update_at(write), updated, Some(&statement?)))
}

/// The repair in place of `at`, what the text has for it.
fn described(
    language: Language,
    access: &FoundAccess,
    at: &str,
    updated: Updated,
    statement: Option<&Statement<'_>>,
) -> Repair {
    let source = access.source.as_deref().unwrap_or_default();
    let lost = "updates between the read and the write of another invocation are lost";
    let updated = match (language, statement) {
        (Language::Glsl, Some(statement)) => updated.declared(statement.place, source),
        _ => updated,
    };
    let loops = match (language, updated) {
        (Language::Glsl, Updated::Long) => {
            "a loop with atomicCompSwap, with `#extension GL_EXT_shader_atomic_int64 : require`,"
        }
        (Language::Glsl, Updated::Double) => {
            "a loop with atomicCompSwap on its bits, which are declared as a uint64_t, with `#extension \
             GL_EXT_shader_atomic_int64 : require`,"
        }
        (Language::Glsl, Updated::Float) => "a loop with atomicCompSwap on its bits, which are declared as a uint,",
        (Language::Glsl, _) => "a loop with atomicCompSwap",
        (Language::Wgsl, Updated::Float) => {
            "a loop with atomicCompareExchangeWeak on its bits, which are declared as an atomic<u32>,"
        }
        (Language::Wgsl, _) => "a loop with atomicCompareExchangeWeak",
        (Language::Spirv, _) => "a loop with OpAtomicCompareExchange",
    };
    let call = statement.and_then(|statement| match (language, statement.function) {
        (_, Function::Other) | (Language::Spirv, _) => None,
        (Language::Glsl, Function::Atomic(function)) => in_glsl(statement, function, updated),
        (Language::Wgsl, Function::Atomic(function)) => in_wgsl(statement, function, updated, source),
    });
    let text = match (call, updated) {
        (Some((call, with)), _) => format!("{call} in place of {at}{with}: {lost}"),
        (None, Updated::Vector) => {
            format!("an atomic operation for each component in place of {at}, since none changes a vector: {lost}")
        }
        (None, Updated::Narrow) => format!(
            "{loops} on the word of 32 bits that contains it, or two dispatches, in place of {at}, \
             since without extensions no atomic operation is of 8 or 16 bits: {lost}"
        ),
        (None, Updated::Other) => {
            let loops = loops.trim_end_matches(',');
            format!("{loops}, or two dispatches, in place of {at}: {lost}")
        }
        (None, _) if statement.is_some() => format!("{loops} in place of {at}: {lost}"),
        (None, _) => {
            format!("one atomic operation, or {loops}, in place of {at}: {lost}")
        }
    };
    Repair { text, line: access.line.clone() }
}

/// `atomicAdd(c[0], 1u)`, and what else is needed; `None` if there is no such function. A difference has no function of
/// its own: it is the sum with the opposite.
fn in_glsl(statement: &Statement<'_>, function: &str, updated: Updated) -> Option<(String, String)> {
    let Statement { place, operand, .. } = statement;
    let (function, operand) = match function {
        "Sub" if is_simple(operand, "") => ("Add", format!("-{operand}")),
        "Sub" => ("Add", format!("-({operand})")),
        function => (function, (*operand).to_owned()),
    };
    let with = match (updated, function) {
        (Updated::Integer, _) => "",
        (Updated::Long, _) => ", with `#extension GL_EXT_shader_atomic_int64 : require`",
        (Updated::Float | Updated::Double, "Add") => ", with `#extension GL_EXT_shader_atomic_float : require`",
        (Updated::Float | Updated::Double, "Max" | "Min") => {
            ", with `#extension GL_EXT_shader_atomic_float2 : require`"
        }
        _ => return None,
    };
    Some((format!("atomic{function}({place}, {operand})"), with.to_owned()))
}

/// `atomicAdd(&c[0], 1)`, and the type that it needs; `None` if there is none: atomics of WGSL are integers.
fn in_wgsl(statement: &Statement<'_>, function: &str, updated: Updated, source: &str) -> Option<(String, String)> {
    let Statement { place, operand, .. } = statement;
    let name = name_of(place);
    let declared = words(source).filter(|(_, word)| *word == name).find_map(|(at, word)| {
        let rest = source[at + word.len()..].trim_start().strip_prefix(':')?;
        let end = rest.find([';', '=', '{', '}', '\n', ')']).unwrap_or(rest.len());
        words(&rest[..end]).map(|(_, word)| word).find(|word| ["u32", "i32", "f32", "f16"].contains(word))
    })?;
    (updated == Updated::Integer && ["u32", "i32"].contains(&declared)).then(|| {
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
    if let Some(found) = in_one_line(line) {
        return Some(found);
    }
    let mut found = statements(line).filter_map(update);
    let first = found.next()?;
    found.next().is_none().then_some(first)
}

/// The update by a condition that a line is.
fn in_one_line(line: &str) -> Option<Statement<'_>> {
    let (read, write) = line.split_once('{').or_else(|| after_condition(line))?;
    conditional_statement(read, write)
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
    for (operator, function) in [("++", "Add"), ("--", "Sub")] {
        if let Some(place) = text.strip_suffix(operator) {
            return Some(Statement { place: last_place(place)?, function: Function::Atomic(function), operand: "1" });
        }
        if let Some(place) = text.strip_prefix(operator).filter(|place| last_place(place) == Some(*place)) {
            return Some(Statement { place, function: Function::Atomic(function), operand: "1" });
        }
    }
    let (left, right) = assignment(text)?;
    if let Some((operator, function)) = FUNCTIONS.into_iter().find(|(operator, _)| left.ends_with(*operator)) {
        let place = last_place(left.strip_suffix(operator)?)?;
        return Some(Statement { place, function: Function::Atomic(function), operand: right });
    }
    for operator in OTHERS {
        if let Some(place) = left.strip_suffix(operator) {
            return Some(Statement { place: last_place(place)?, function: Function::Other, operand: right });
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

/// The update by a statement `i = place` in one line, and by one in another line that writes what it computes from `i`.
fn two_statements<'a>(read: &str, write: &'a str) -> Option<Statement<'a>> {
    let mut found = assignments(write).filter_map(|(left, right)| {
        let place = last_place(left).filter(|place| *place == left.trim())?;
        assignments(read).find_map(|(declared, value)| {
            // The name: of `let i`, `uint i`, `var i: u32`.
            let name = last_place(declared.split(':').next()?)?;
            (value == place && name != place).then(|| computed(place, right, name))?
        })
    });
    let first = found.next()?;
    found.next().is_none().then_some(first)
}

fn assignments(line: &str) -> impl Iterator<Item = (&str, &str)> {
    statements(line).filter_map(assignment)
}

/// The statements of a line, without its comment.
fn statements(line: &str) -> impl Iterator<Item = &str> {
    line.split("//").next().unwrap_or(line).split([';', '{', '}']).map(str::trim)
}

/// The update of a place to the right side of an assignment, in which `old` is its value before.
fn computed<'a>(place: &'a str, right: &'a str, old: &str) -> Option<Statement<'a>> {
    let atomic = |place, function, operand| Statement { place, function: Function::Atomic(function), operand };
    let other = |place, operand| Statement { place, function: Function::Other, operand };
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
    Some(Statement { place, function: Function::Atomic(function), operand: value })
}

/// The update that a condition in one line and a statement in another one are.
fn conditional_statement<'a>(read: &str, write: &'a str) -> Option<Statement<'a>> {
    let read = read.split("//").next().unwrap_or(read);
    let write = write.split("//").next().unwrap_or(write).trim().trim_start_matches('{').trim();
    let (place, value) = write.split(';').next()?.split_once('=')?;
    let place = place.trim();
    condition(read, last_place(place).filter(|found| *found == place)?, value.trim())
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
    use spelter_shaders::ir::SourceLine;

    use super::*;

    #[test]
    fn updates_are_read_from_their_statements() {
        let read = |line| statement(line).map(|found| (found.place, found.function, found.operand));
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
    fn updates_of_two_statements_are_read_from_both() {
        let read = |read, write| two_statements(read, write).map(|found| (found.place, found.function, found.operand));
        let add = Some(("n", Function::Atomic("Add"), "1u"));
        for line in ["let i = n;", "  uint i = n; // the next one", "var i: u32 = n;", "i = n;"] {
            assert_eq!(read(line, "  n = i + 1u;"), add, "{line}");
        }
        assert_eq!(
            read("int old = h[k & 3];", "h[k & 3] = max(old, x);").map(|found| found.1),
            Some(Function::Atomic("Max"))
        );
        assert_eq!(read("let i = n;", "n = i * 3u;").map(|found| found.1), Some(Function::Other));
        assert_eq!(read("let i = n; n = i + 1u;", "let i = n; n = i + 1u;"), add);
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
        let read = |line| statement(line).map(|found| (found.place, found.function, found.operand));
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

    #[test]
    fn functions_are_those_of_the_language() {
        let text = |(call, with): (String, String)| call + &with;
        let function = |found: &Statement<'_>| match found.function {
            Function::Atomic(function) => function,
            Function::Other => "",
        };
        let wgsl = |source: &str, line, updated| {
            let found = statement(line).expect("an update");
            in_wgsl(&found, function(&found), updated, source).map(text)
        };
        assert_eq!(
            wgsl("var<storage, read_write> c: array<u32>;\n", "c[0] += 1;", Updated::Integer).as_deref(),
            Some("atomicAdd(&c[0], 1), with `atomic<u32>` for `u32` in the declaration of `c`")
        );
        assert_eq!(
            wgsl("struct S { n: i32 }", "s.n -= 2;", Updated::Integer).as_deref(),
            Some("atomicSub(&s.n, 2), with `atomic<i32>` for `i32` in the declaration of `n`")
        );
        assert_eq!(wgsl("var<workgroup> c: array<f32, 4>;", "c[0] += 1.0;", Updated::Float), None);
        let glsl = |line, updated| {
            let found = statement(line).expect("an update");
            in_glsl(&found, function(&found), updated).map(text)
        };
        assert_eq!(glsl("c[0] -= n;", Updated::Integer).as_deref(), Some("atomicAdd(c[0], -n)"));
        let float = "atomicAdd(c[0], 1), with `#extension GL_EXT_shader_atomic_float : require`";
        assert_eq!(glsl("c[0]++;", Updated::Float).as_deref(), Some(float));
        assert_eq!(glsl("v.xy += vec2(1.0);", Updated::Vector), None);
        assert_eq!(glsl("v.x |= 1;", Updated::Float), None);
        let double = "atomicAdd(d, -2.0), with `#extension GL_EXT_shader_atomic_float : require`";
        assert_eq!(glsl("d -= 2.0;", Updated::Double).as_deref(), Some(double));
        let long = "atomicMax(q[1], x), with `#extension GL_EXT_shader_atomic_int64 : require`";
        assert_eq!(glsl("q[1] = max(q[1], x);", Updated::Long).as_deref(), Some(long));
    }

    #[test]
    fn a_number_of_64_bits_is_known_by_its_declaration() {
        let source = "buffer A { uint64_t q; vec4 v; double arr[4]; u64vec2 w; }; shared\n  int64_t\n s; // double v";
        let declared = |place| Updated::Vector.declared(place, source);
        assert_eq!(["q", "s", "a.q"].map(declared), [Updated::Long; 3]);
        assert_eq!(declared("arr[l & 3]"), Updated::Double);
        assert_eq!(["w", "v.xy", "t"].map(declared), [Updated::Vector; 3]);
        assert_eq!(Updated::Integer.declared("q", source), Updated::Integer);
    }

    #[test]
    fn what_no_function_does_is_a_loop() {
        let access = |line: &str| FoundAccess {
            line: Some(SourceLine { file: "a.comp".into(), line: 1, column: 0 }),
            source: Some(line.into()),
            ..FoundAccess::default()
        };
        let text = |language, line, updated| repair(language, &access(line), updated).text;
        let found = text(Language::Glsl, "c[0] *= 3;", Updated::Integer);
        assert!(found.starts_with("a loop with atomicCompSwap in place of the update at a.comp:1: "), "{found}");
        let found = text(Language::Wgsl, "c[0] *= 3.0;", Updated::Float);
        assert!(found.starts_with("a loop with atomicCompareExchangeWeak on its bits"), "{found}");
        let found = text(Language::Glsl, "double d; d *= 3.0;", Updated::Vector);
        assert!(
            found.starts_with("a loop with atomicCompSwap on its bits, which are declared as a uint64_t"),
            "{found}"
        );
        let found = text(Language::Glsl, "h += uint16_t(1);", Updated::Narrow);
        assert!(found.starts_with("a loop with atomicCompSwap on the word of 32 bits that contains it, or"), "{found}");
        let found = text(Language::Glsl, "v.xy += vec2(1.0);", Updated::Vector);
        assert!(found.starts_with("an atomic operation for each component in place of the update at a.comp:1, "));
    }
}
