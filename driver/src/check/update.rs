//! The repair of a lost update: a statement that reads a place and writes it again, `c[0] += 1`, as an atomic function.
//! So of two statements, `i = n` and `n = i + 1`.
//!
//! Which two instructions make the update is known from the recording, and that the two invocations' updates are of one
//! line, or that the one instruction writes what is computed from the value that the other one reads; what the
//! statements compute is read from their text. Where that is not clear, the repair names no function.

use spelter_shaders::front::Language;

use super::explanation::named;
use super::finding::{FoundAccess, Repair};
use super::one_statement::WrittenStatement;
use super::statement::{
    Function, Statement, assigns_once, conditional_statement, has_update, in_one_line, is_simple, name_of, root_of,
    statement, two_statements, words,
};

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

/// The memory of an update: how its source may name it, and what of it is updated.
#[derive(Debug)]
pub(super) struct UpdatedMemory {
    pub(super) language: Language,
    pub(super) updated: Updated,
    /// The names with which a place in it may begin; none if they are not known. Beside it a line may update variables
    /// of the invocation.
    pub(super) names: Vec<String>,
    /// The atomic functions that the instructions may be if the value that is read is an operand of what is written:
    /// two statements may compute more than their text tells.
    pub(super) functions: &'static [&'static str],
}

impl UpdatedMemory {
    fn has(&self, place: &str) -> bool {
        self.names.is_empty() || self.names.iter().any(|name| name == root_of(place))
    }

    /// The update by two statements in the first and the last of some lines.
    fn of_lines<'a>(&self, lines: &[&'a str]) -> Option<Statement<'a>> {
        two_statements(lines).filter(|found| {
            let is_computed = match found.function {
                Function::Atomic(function) => self.functions.contains(&function),
                Function::Other => true,
            };
            is_computed && self.has(found.place)
        })
    }

    /// The repair of an update of one statement whose write is `access`.
    pub(super) fn repair(&self, access: &FoundAccess) -> Repair {
        // Without names a line that assigns to several places does not tell which of them is in the memory.
        let is_known = |line| !self.names.is_empty() || assigns_once(line);
        let of_one = |line| statement(line, &|place| self.has(place)).filter(|_| is_known(line));
        let of_line = |line| of_one(line).or_else(|| self.of_lines(&[line]));
        self.described(access, &update_at(access), access.quoted().and_then(of_line).as_ref())
    }

    /// The repair of an update of one statement that `write` ends, and in which `read` reads the memory, too: `None` if
    /// that is not what they are.
    pub(super) fn beside_read(&self, write: &FoundAccess, read: &FoundAccess) -> Option<Repair> {
        let is_of_it = |place: &str| self.has(place);
        let whole = WrittenStatement::of(write).filter(|whole| whole.has(read, &is_of_it))?;
        if !has_update(&whole.text, &is_of_it) {
            return None;
        }
        // An operand that reads the memory is not read together with the place.
        let reads = |found: &Statement<'_>| words(found.operand).any(|(_, word)| self.has(word));
        let found = statement(&whole.text, &is_of_it).filter(|found| !reads(found));
        let mut repair = self.described(write, &update_at(write), found.as_ref());
        repair.text += &format!("; its other reads of this memory become {}", self.atomic_load("…"));
        Some(repair)
    }

    /// The atomic read of a place, in words.
    fn atomic_load(&self, place: &str) -> String {
        match self.language {
            Language::Glsl => format!(
                "atomicLoad({place}, gl_ScopeDevice, gl_StorageSemanticsNone, gl_SemanticsRelaxed), with \
                 `#extension GL_KHR_memory_scope_semantics : require`"
            ),
            Language::Wgsl => format!("atomicLoad(&{place})"),
            Language::Spirv => "OpAtomicLoad".to_owned(),
        }
    }

    /// The repair of an update of two statements: `read` is that of the value from which `write` writes another one.
    pub(super) fn of_two_statements(&self, write: &FoundAccess, read: &FoundAccess) -> Repair {
        let lines = read.quoted_up_to(write);
        let at = format!("{} and {}", named(read), named(write));
        self.described(write, &at, lines.and_then(|lines| self.of_lines(&lines)).as_ref())
    }

    /// The repair of an update by a condition, `if (best < x) { best = x; }`, whose condition `read` executes: `None`
    /// if that is not what the two lines are.
    pub(super) fn conditional(&self, write: &FoundAccess, read: &FoundAccess) -> Option<Repair> {
        let (read, written) = (read.quoted()?, write.quoted()?);
        let statement = match read == written {
            true => in_one_line(written),
            false => conditional_statement(read, written),
        };
        let statement = statement.filter(|found| self.has(found.place))?;
        Some(self.described(write, &update_at(write), Some(&statement)))
    }

    /// The repair in place of `at`, what the text has for it.
    fn described(&self, access: &FoundAccess, at: &str, statement: Option<&Statement<'_>>) -> Repair {
        let mut repair = described(self.language, access, at, self.updated, statement);
        // A branch with more in it than the update remains, and its condition reads what others update atomically.
        if let Some(found) = statement.filter(|found| found.is_conditional && self.language != Language::Spirv) {
            repair.text += &format!("; a condition that remains reads it by {}", self.atomic_load(found.place));
        }
        repair
    }
}

/// The statement of an update in a sentence.
fn update_at(write: &FoundAccess) -> String {
    write.position().map_or("the update".to_owned(), |position| format!("the update at {position}"))
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
        (Language::Glsl, Updated::Other) => "a loop with imageAtomicCompSwap",
        (Language::Wgsl, Updated::Other) => {
            "a loop with atomicCompareExchangeWeak on a storage buffer that has the texels,"
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
            "{loops} on the word of 32 bits that contains it, in place of {at}, since without extensions no atomic \
             operation is of 8 or 16 bits: {lost}"
        ),
        (None, updated) if statement.is_some() || updated == Updated::Other => {
            format!("{loops} in place of {at}: {lost}")
        }
        (None, _) => {
            let loops = loops.trim_end_matches(',');
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
        let with = format!(
            ", with `atomic<{declared}>` for `{declared}` in the declaration of `{name}`, and atomicLoad or atomicStore \
             in its other accesses"
        );
        (format!("atomic{function}(&{place}, {operand})"), with)
    })
}

#[cfg(test)]
mod tests {
    use spelter_shaders::ir::SourceLine;

    use super::*;

    #[test]
    fn functions_are_those_of_the_language() {
        let text = |(call, with): (String, String)| call + &with;
        let function = |found: &Statement<'_>| match found.function {
            Function::Atomic(function) => function,
            Function::Other => "",
        };
        let wgsl = |source: &str, line, updated| {
            let found = statement(line, &|_| true).expect("an update");
            in_wgsl(&found, function(&found), updated, source).map(text)
        };
        assert_eq!(
            wgsl("var<storage, read_write> c: array<u32>;\n", "c[0] += 1;", Updated::Integer).as_deref(),
            Some(
                "atomicAdd(&c[0], 1), with `atomic<u32>` for `u32` in the declaration of `c`, and atomicLoad or atomicStore \
                  in its other accesses"
            )
        );
        assert_eq!(
            wgsl("struct S { n: i32 }", "s.n -= 2;", Updated::Integer).as_deref(),
            Some(
                "atomicSub(&s.n, 2), with `atomic<i32>` for `i32` in the declaration of `n`, and atomicLoad or atomicStore \
                  in its other accesses"
            )
        );
        assert_eq!(wgsl("var<workgroup> c: array<f32, 4>;", "c[0] += 1.0;", Updated::Float), None);
        let glsl = |line, updated| {
            let found = statement(line, &|_| true).expect("an update");
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
        let text = |language, line, updated| {
            let names = ["c", "d", "h", "v"].map(str::to_owned).into();
            UpdatedMemory { language, updated, names, functions: &[] }.repair(&access(line)).text
        };
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
        assert!(
            found.starts_with("a loop with atomicCompSwap on the word of 32 bits that contains it, in place"),
            "{found}"
        );
        let found = text(Language::Glsl, "v.xy += vec2(1.0);", Updated::Vector);
        assert!(found.starts_with("an atomic operation for each component in place of the update at a.comp:1, "));
    }
}
