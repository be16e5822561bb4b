//! 64-bit integer division: two steps in doubles, which have 53 significant bits.
//!
//! The first quotient is the dividend rounded to 53 bits by the divisor: its remainder is small against the dividend,
//! of either sign. The second quotient divides that remainder. The last remainder is less than slightly more than the
//! divisor, and one step up or down corrects it. Remainders are integers, exact modulo 2⁶⁴.

use super::emit::Emit;
use crate::ir::{Op, Value, WordPair};

pub(super) fn expand(e: &mut Emit<'_>, op: Op, args: &[Value]) -> Option<Value> {
    let (word, remainder) = match op {
        Op::UDiv64Low => (0, false),
        Op::UDiv64High => (1, false),
        Op::UMod64Low => (0, true),
        Op::UMod64High => (1, true),
        _ => return None,
    };
    let &[a_low, a_high, b_low, b_high] = args else { return None };
    let [quotient, rest] = e.division([a_low, a_high, b_low, b_high], divide);
    Some(if remainder { rest[word] } else { quotient[word] })
}

/// Quotient and remainder; zeros for a divisor of 0.
fn divide(e: &mut Emit<'_>, args: [Value; 4]) -> [WordPair; 2] {
    let (a, b) = ([args[0], args[1]], [args[2], args[3]]);
    let divisor = to_double(e, b);
    let one = double(e, 1.0);
    let reciprocal = binary(e, [Op::DDivLow, Op::DDivHigh], one, divisor);
    let mut quotient = first_quotient(e, a, reciprocal);
    let rest = less_product(e, a, quotient, b);
    // The remainder may be negative.
    let negative = e.slt(rest[1], 0i32);
    let negated = negate(e, rest);
    let magnitude = pick(e, negative, negated, rest);
    let more = first_quotient(e, magnitude, reciprocal);
    // One more for a negative remainder, `-(more + 1)` is `!more`: the final one is at least 0, or slightly negative.
    let less = more.map(|word| e.not(word));
    let step = pick(e, negative, less, more);
    quotient = add(e, quotient, step);
    let rest = less_product(e, a, quotient, b);
    // Corrects a quotient that is one too large or one too small.
    let below = e.slt(rest[1], 0i32);
    let minus_one = [e.word(u32::MAX), e.word(u32::MAX)];
    let nothing = [e.word(0), e.word(0)];
    let (up, down) = (b, negate(e, b));
    let rest_up = add(e, rest, up);
    let large_divisor = e.slt(b[1], 0i32);
    // A quotient by a divisor from 2⁶³ on is at most 1: its remainders need all 64 bits.
    let fits = not_less(e, a, b);
    let a_less = add(e, a, down);
    let one_word = [e.word(1), e.word(0)];
    let large_quotient = pick(e, fits, one_word, nothing);
    let large_rest = pick(e, fits, a_less, a);
    let corrected = pick(e, below, rest_up, rest);
    let change = pick(e, below, minus_one, nothing);
    quotient = add(e, quotient, change);
    let again = not_less(e, corrected, b);
    let rest_down = add(e, corrected, down);
    let corrected = pick(e, again, rest_down, corrected);
    let change = pick(e, again, one_word, nothing);
    quotient = add(e, quotient, change);
    quotient = pick(e, large_divisor, large_quotient, quotient);
    let corrected = pick(e, large_divisor, large_rest, corrected);
    let bits = e.or(b[0], b[1]);
    let none = e.ieq(bits, 0u32);
    [pick(e, none, nothing, quotient), pick(e, none, nothing, corrected)]
}

/// The dividend times a reciprocal, as an integer whose last digits may be wrong. Its words are converted one by one:
/// 2⁵² and a number below it are a double whose low bits are that number.
fn first_quotient(e: &mut Emit<'_>, a: WordPair, reciprocal: WordPair) -> WordPair {
    let number = to_double(e, a);
    let product = binary(e, [Op::DMulLow, Op::DMulHigh], number, reciprocal);
    let (down, up, magic) = (double(e, (-32f64).exp2()), double(e, 32f64.exp2()), double(e, 52f64.exp2()));
    let whole = unary(e, [Op::DFloorLow, Op::DFloorHigh], product);
    let high = binary(e, [Op::DMulLow, Op::DMulHigh], whole, down);
    let high = unary(e, [Op::DFloorLow, Op::DFloorHigh], high);
    let above = binary(e, [Op::DMulLow, Op::DMulHigh], high, up);
    let low = binary(e, [Op::DSubLow, Op::DSubHigh], whole, above);
    let [low, _] = binary(e, [Op::DAddLow, Op::DAddHigh], low, magic);
    let [high, _] = binary(e, [Op::DAddLow, Op::DAddHigh], high, magic);
    [low, high]
}

fn double(e: &mut Emit<'_>, value: f64) -> WordPair {
    let bits = value.to_bits();
    [e.word(bits as u32), e.word((bits >> 32) as u32)]
}

fn binary(e: &mut Emit<'_>, ops: [Op; 2], a: WordPair, b: WordPair) -> WordPair {
    ops.map(|op| e.operation(op, [a[0], a[1], b[0], b[1]]))
}

fn unary(e: &mut Emit<'_>, ops: [Op; 2], a: WordPair) -> WordPair {
    ops.map(|op| e.operation(op, a))
}

/// Places the words into the low bits of large doubles, then subtracts these: 2⁵² for the low word and 2⁸⁴ for the high
/// one, which counts 2³² times as much.
fn to_double(e: &mut Emit<'_>, a: WordPair) -> WordPair {
    let less = double(e, 84f64.exp2() + 52f64.exp2());
    // The upper words of 2⁵² and of 2⁸⁴.
    let (low_mark, high_mark) = (e.word(0x4330_0000), e.word(0x4530_0000));
    let high = binary(e, [Op::DSubLow, Op::DSubHigh], [a[1], high_mark], less);
    binary(e, [Op::DAddLow, Op::DAddHigh], high, [a[0], low_mark])
}

fn add(e: &mut Emit<'_>, a: WordPair, b: WordPair) -> WordPair {
    let low = e.iadd(a[0], b[0]);
    let carry = e.ult(low, a[0]);
    let carry = e.bool_to_int(carry);
    let high = e.iadd(a[1], b[1]);
    [low, e.iadd(high, carry)]
}

fn negate(e: &mut Emit<'_>, a: WordPair) -> WordPair {
    let low = e.ineg(a[0]);
    let some = e.ine(a[0], 0u32);
    let borrow = e.bool_to_int(some);
    let high = e.ineg(a[1]);
    [low, e.isub(high, borrow)]
}

fn pick(e: &mut Emit<'_>, condition: Value, then: WordPair, otherwise: WordPair) -> WordPair {
    [e.select(condition, then[0], otherwise[0]), e.select(condition, then[1], otherwise[1])]
}

/// `a - quotient * b`, modulo 2⁶⁴.
fn less_product(e: &mut Emit<'_>, a: WordPair, quotient: WordPair, b: WordPair) -> WordPair {
    let low = e.imul(quotient[0], b[0]);
    let high = e.umul_high(quotient[0], b[0]);
    let (one, two) = (e.imul(quotient[0], b[1]), e.imul(quotient[1], b[0]));
    let cross = e.iadd(one, two);
    let high = e.iadd(high, cross);
    let negative = negate(e, [low, high]);
    add(e, a, negative)
}

/// `a >= b`, unsigned.
fn not_less(e: &mut Emit<'_>, a: WordPair, b: WordPair) -> Value {
    let low = e.ule(b[0], a[0]);
    let same = e.ieq(a[1], b[1]);
    let high = e.ult(b[1], a[1]);
    let by_low = e.land(same, low);
    e.lor(high, by_low)
}
