//! Shared by the text forms of the scalar IR and of the SIMD form: tokens, ids, lists, errors.

mod lexer;

use std::fmt::{self, Display, Formatter};

use cranelift_entity::{EntityRef, PrimaryMap};

pub(crate) use lexer::{Line, hexadecimal};

/// A parse error with its position.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{line}:{column}: {message}")]
pub struct ParseError {
    /// Line, from 1.
    pub line: u32,
    /// Column in characters, from 1.
    pub column: u32,
    /// What was expected or is wrong.
    pub message: String,
}

/// Exclusive limit of ids in a text of that many bytes. Tables are as long as the greatest id, so without a limit a
/// short text could request any amount of memory.
pub(crate) fn id_limit(bytes: usize) -> usize {
    bytes.max(1 << 16)
}

/// An id whose table is made long enough.
pub(crate) fn named<K: EntityRef, V>(
    line: &mut Line<'_>,
    what: &str,
    prefix: &str,
    table: &mut PrimaryMap<K, V>,
    limit: usize,
    fill: impl Fn() -> V,
) -> Result<K, ParseError> {
    let id: K = line.word(what, |word| id(prefix, word).filter(|id: &K| id.index() < limit))?;
    while !table.is_valid(id) {
        table.push(fill());
    }
    Ok(id)
}

/// Parses an id: `v7` with prefix `v` → 7. Only in its printed form, so that two spellings never name one id.
pub(crate) fn id<K: EntityRef>(prefix: &str, word: &str) -> Option<K> {
    let digits = word.strip_prefix(prefix)?;
    let number: u32 = digits.parse().ok()?;
    (digits == "0" || !digits.starts_with(['0', '+'])).then_some(number)?;
    (number < u32::MAX).then(|| K::new(number as usize))
}

/// `2, 3]`: the rest of a list of numbers.
pub(crate) fn numbers(line: &mut Line<'_>) -> Result<Vec<u32>, ParseError> {
    let mut numbers = vec![line.unsigned()?];
    while line.eat(',') {
        numbers.push(line.unsigned()?);
    }
    line.expect(']')?;
    Ok(numbers)
}

/// Items separated by commas; prints nothing if there are none.
pub(crate) fn list<T: Display>(
    f: &mut Formatter<'_>,
    open: &str,
    items: impl IntoIterator<Item = T>,
    close: &str,
) -> fmt::Result {
    let mut separator = open;
    for item in items {
        write!(f, "{separator}{item}")?;
        separator = ", ";
    }
    if separator == open { Ok(()) } else { f.write_str(close) }
}

/// `switch v0, block9 [1: block2, 5: block3(v1)]`
pub(crate) fn switch<C: Display>(
    f: &mut Formatter<'_>,
    selector: impl Display,
    default: &C,
    cases: &[(u32, C)],
) -> fmt::Result {
    write!(f, "switch {selector}, {default} [")?;
    for (position, (literal, call)) in cases.iter().enumerate() {
        let comma = if position == 0 { "" } else { ", " };
        write!(f, "{comma}{literal}: {call}")?;
    }
    f.write_str("]")
}
