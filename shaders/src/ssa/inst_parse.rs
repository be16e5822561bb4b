//! Parts of instructions that both text forms share: operand lists, constants, atomic operands and terminators.

use smallvec::SmallVec;

use super::{BlockCall, Function, Parser, Syntax, Terminator};
use crate::text::{Line, ParseError, hexadecimal};

type Result<T> = std::result::Result<T, ParseError>;
type KernelBlockCall<K> = BlockCall<<K as Function>::Block, <K as Function>::Value>;
type KernelTerminator<K> = Terminator<<K as Function>::Block, <K as Function>::Value>;

/// `v0, v1, v2`: a number of values.
pub(crate) fn values<K: Syntax, const N: usize>(
    parser: &mut Parser<K>,
    line: &mut Line<'_>,
    count: usize,
) -> Result<SmallVec<[K::Value; N]>>
where
    [K::Value; N]: smallvec::Array<Item = K::Value>,
{
    let mut values = SmallVec::new();
    for position in 0..count {
        values.push(if position == 0 { parser.value(line)? } else { operand(parser, line)? });
    }
    Ok(values)
}

/// `, v0`
pub(crate) fn operand<K: Syntax>(parser: &mut Parser<K>, line: &mut Line<'_>) -> Result<K::Value> {
    line.expect(',')?;
    parser.value(line)
}

/// `v0, v1`
pub(crate) fn value_pair<K: Syntax>(parser: &mut Parser<K>, line: &mut Line<'_>) -> Result<[K::Value; 2]> {
    Ok([parser.value(line)?, operand(parser, line)?])
}

/// `v0 + v1`
pub(crate) fn address_pair<K: Syntax>(parser: &mut Parser<K>, line: &mut Line<'_>) -> Result<[K::Value; 2]> {
    let base = parser.value(line)?;
    line.expect('+')?;
    Ok([base, parser.value(line)?])
}

/// Operand and comparator of an atomic operation; for 64 bits the high words of both.
type AtomicOperands<Value> = (Option<Value>, Option<Value>, Option<[Option<Value>; 2]>);

/// `, v1, v2`: operand and comparator of an atomic operation; with 64 bits, each low word is followed by its high word.
pub(crate) fn atomic_operands<K: Syntax>(
    parser: &mut Parser<K>,
    line: &mut Line<'_>,
    is_wide: bool,
) -> Result<AtomicOperands<K::Value>> {
    let mut next = |wanted: bool| {
        if wanted && line.eat(',') { parser.value(line).map(Some) } else { Ok(None) }
    };
    let (value, value_high) = (next(true)?, next(is_wide)?);
    let (comparator, comparator_high) = (next(true)?, next(is_wide)?);
    Ok((value, comparator, is_wide.then_some([value_high, comparator_high])))
}

/// A number in hexadecimal, or the syntax that `decimal` parses.
pub(crate) fn number_or_bits(line: &mut Line<'_>, decimal: impl FnOnce(&str) -> Option<u64>) -> Result<u64> {
    line.number_as("a constant of the type", |text| hexadecimal(text).or_else(|| decimal(text)))
}

/// A terminator, if `word` is the mnemonic of one.
pub(crate) fn control<K: Syntax>(
    parser: &mut Parser<K>,
    line: &mut Line<'_>,
    word: &str,
) -> Result<Option<KernelTerminator<K>>> {
    Ok(Some(match word {
        "jump" => Terminator::Jump { to: call(parser, line)? },
        "branch" => {
            let condition = parser.value(line)?;
            line.expect(',')?;
            let then = call(parser, line)?;
            line.expect(',')?;
            Terminator::Branch { condition, then, otherwise: call(parser, line)? }
        }
        "switch" => switch(parser, line)?,
        "return" => Terminator::Return,
        _ => return Ok(None),
    }))
}

/// `v0, block9 [1: block2, 5: block3(v1)]`
fn switch<K: Syntax>(parser: &mut Parser<K>, line: &mut Line<'_>) -> Result<KernelTerminator<K>> {
    let selector = parser.value(line)?;
    line.expect(',')?;
    let default = call(parser, line)?;
    line.expect('[')?;
    let mut cases = Vec::new();
    while !line.eat(']') {
        if !cases.is_empty() {
            line.expect(',')?;
        }
        let literal = line.unsigned()?;
        line.expect(':')?;
        cases.push((literal, call(parser, line)?));
    }
    Ok(Terminator::Switch { selector, default, cases })
}

/// `block1(v0, v1)`
fn call<K: Syntax>(parser: &mut Parser<K>, line: &mut Line<'_>) -> Result<KernelBlockCall<K>> {
    let mut call = BlockCall::new(parser.block(line)?);
    if line.eat('(') {
        call.args.push(parser.value(line)?);
        while line.eat(',') {
            call.args.push(parser.value(line)?);
        }
        line.expect(')')?;
    }
    Ok(call)
}

/// A 32-bit integer, signed or unsigned.
pub(crate) fn word(text: &str) -> Option<u64> {
    let wide: i64 = text.parse().ok()?;
    (wide >= i64::from(i32::MIN) && wide <= i64::from(u32::MAX)).then_some(u64::from(wide as u32))
}

/// The bits of a 32-bit float.
pub(crate) fn float(text: &str) -> Option<u64> {
    Some(u64::from(text.parse::<f32>().ok()?.to_bits()))
}
