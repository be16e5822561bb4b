//! 64-bit floats: two words of bits, with one IR operation for each word of a result.

use super::super::super::scalar::Scalar;
use super::super::num::Num;
use super::result_type;
use crate::ir::{Builder, Op, Value, WordPair};

pub(super) fn pure(builder: &mut Builder, op: Op, args: &[Num]) -> Option<Num> {
    let mut doubles = Doubles { builder };
    if let Some(truth) = doubles.test(op, args) {
        return Some(Num::new(Scalar::Bool, truth));
    }
    if op == Op::FrexpExponent {
        let exponent = doubles.exponent(args[0].words());
        return Some(Num::new(Scalar::I32, exponent));
    }
    let pair = doubles.arithmetic(op, args)?;
    Some(Num::wide(result_type(op, Scalar::F64), pair))
}

/// Operations on doubles.
pub(in super::super) struct Doubles<'a> {
    /// Receives the emitted operations.
    pub builder: &'a mut Builder,
}

impl Doubles<'_> {
    /// An operation of the IR.
    pub(in super::super) fn op<const N: usize>(&mut self, op: Op, args: [Value; N]) -> Value {
        self.builder.pure(op, &args)
    }

    /// A constant word.
    pub(in super::super) fn word(&mut self, word: u32) -> Value {
        self.builder.constant(word)
    }

    /// A constant.
    pub(in super::super) fn constant(&mut self, value: f64) -> WordPair {
        super::words(self.builder, value.to_bits())
    }

    /// Both words of an operation on two doubles.
    pub(in super::super) fn binary(&mut self, ops: [Op; 2], a: WordPair, b: WordPair) -> WordPair {
        ops.map(|op| self.op(op, [a[0], a[1], b[0], b[1]]))
    }

    /// Both words of an operation on one double.
    pub(in super::super) fn unary(&mut self, ops: [Op; 2], a: WordPair) -> WordPair {
        ops.map(|op| self.op(op, [a[0], a[1]]))
    }

    pub(in super::super) fn add(&mut self, a: WordPair, b: WordPair) -> WordPair {
        self.binary([Op::DAddLow, Op::DAddHigh], a, b)
    }

    pub(in super::super) fn sub(&mut self, a: WordPair, b: WordPair) -> WordPair {
        self.binary([Op::DSubLow, Op::DSubHigh], a, b)
    }

    pub(in super::super) fn mul(&mut self, a: WordPair, b: WordPair) -> WordPair {
        self.binary([Op::DMulLow, Op::DMulHigh], a, b)
    }

    fn div(&mut self, a: WordPair, b: WordPair) -> WordPair {
        self.binary([Op::DDivLow, Op::DDivHigh], a, b)
    }

    pub(in super::super) fn trunc(&mut self, a: WordPair) -> WordPair {
        self.unary([Op::DTruncLow, Op::DTruncHigh], a)
    }

    pub(in super::super) fn floor(&mut self, a: WordPair) -> WordPair {
        self.unary([Op::DFloorLow, Op::DFloorHigh], a)
    }

    /// An ordered comparison: `DEq`, `DLt` or `DLe`.
    pub(in super::super) fn compare(&mut self, op: Op, a: WordPair, b: WordPair) -> Value {
        self.op(op, [a[0], a[1], b[0], b[1]])
    }

    /// Selects one of two doubles.
    pub(in super::super) fn pick(&mut self, condition: Value, then: WordPair, otherwise: WordPair) -> WordPair {
        [0, 1].map(|word| self.builder.select(condition, then[word], otherwise[word]))
    }

    fn negated(&mut self, [low, high]: WordPair) -> WordPair {
        let sign = self.word(1 << 31);
        [low, self.op(Op::Xor, [high, sign])]
    }

    /// Clears the sign.
    pub(in super::super) fn magnitude(&mut self, [low, high]: WordPair) -> WordPair {
        let rest = self.word(u32::MAX >> 1);
        [low, self.op(Op::And, [high, rest])]
    }

    /// The magnitude of `a` with the sign of `sign`.
    fn copysign(&mut self, a: WordPair, sign: WordPair) -> WordPair {
        let [low, high] = self.magnitude(a);
        let bit = self.word(1 << 31);
        let bit = self.op(Op::And, [sign[1], bit]);
        [low, self.op(Op::Or, [high, bit])]
    }

    fn not(&mut self, truth: Value) -> Value {
        self.op(Op::LNot, [truth])
    }

    fn test(&mut self, op: Op, args: &[Num]) -> Option<Value> {
        let a = args[0].words();
        if op == Op::IsNan {
            let number = self.compare(Op::DEq, a, a);
            return Some(self.not(number));
        }
        if op == Op::IsInf {
            return Some(self.is_infinite(a));
        }
        let &[_, b] = args else { return None };
        let b = b.words();
        Some(match op {
            Op::FOrdEq => self.compare(Op::DEq, a, b),
            Op::FOrdLt => self.compare(Op::DLt, a, b),
            Op::FOrdLe => self.compare(Op::DLe, a, b),
            Op::FOrdNe => self.differs(a, b),
            Op::FUnordEq => {
                let differs = self.differs(a, b);
                self.not(differs)
            }
            Op::FUnordNe => {
                let equal = self.compare(Op::DEq, a, b);
                self.not(equal)
            }
            Op::FUnordLt => {
                let not_less = self.compare(Op::DLe, b, a);
                self.not(not_less)
            }
            Op::FUnordLe => {
                let greater = self.compare(Op::DLt, b, a);
                self.not(greater)
            }
            _ => return None,
        })
    }

    fn is_infinite(&mut self, a: WordPair) -> Value {
        let [low, high] = self.magnitude(a);
        let (infinite, zero) = (self.word(0x7ff0_0000), self.word(0));
        let high = self.op(Op::IEq, [high, infinite]);
        let low = self.op(Op::IEq, [low, zero]);
        self.op(Op::LAnd, [high, low])
    }

    /// Less than or greater than.
    fn differs(&mut self, a: WordPair, b: WordPair) -> Value {
        let [less, greater] = [self.compare(Op::DLt, a, b), self.compare(Op::DLt, b, a)];
        self.op(Op::LOr, [less, greater])
    }

    fn arithmetic(&mut self, op: Op, args: &[Num]) -> Option<WordPair> {
        let pair = |number: usize| args[number].words();
        Some(match (op, args.len()) {
            (Op::FAdd, 2) => self.add(pair(0), pair(1)),
            (Op::FSub, 2) => self.sub(pair(0), pair(1)),
            (Op::FMul, 2) => self.mul(pair(0), pair(1)),
            (Op::FDiv, 2) => self.div(pair(0), pair(1)),
            (Op::FNeg, 1) => self.negated(pair(0)),
            (Op::FAbs, 1) => self.magnitude(pair(0)),
            (Op::FSign, 1) => self.sign(pair(0)),
            (Op::FRem | Op::FMod, 2) => self.remainder(op, pair(0), pair(1)),
            (Op::Fma, 3) => {
                let product = self.mul(pair(0), pair(1));
                self.add(product, pair(2))
            }
            (Op::FMin | Op::FMax, 2) => self.extreme(op, pair(0), pair(1)),
            (Op::FClamp, 3) => {
                let min = self.extreme(Op::FMax, pair(0), pair(1));
                self.extreme(Op::FMin, min, pair(2))
            }
            (Op::Sqrt, 1) => self.unary([Op::DSqrtLow, Op::DSqrtHigh], pair(0)),
            (Op::InverseSqrt, 1) => {
                let root = self.unary([Op::DSqrtLow, Op::DSqrtHigh], pair(0));
                let one = self.constant(1.0);
                self.div(one, root)
            }
            (Op::RoundEven, 1) => self.unary([Op::DRoundEvenLow, Op::DRoundEvenHigh], pair(0)),
            (Op::Trunc, 1) => self.trunc(pair(0)),
            (Op::Floor, 1) => self.floor(pair(0)),
            (Op::Ceil, 1) => self.unary([Op::DCeilLow, Op::DCeilHigh], pair(0)),
            (Op::Fract, 1) => {
                let whole = self.floor(pair(0));
                self.sub(pair(0), whole)
            }
            (Op::ModfFract, 1) => self.fraction(pair(0)),
            (Op::FrexpSignificand, 1) => self.significand(pair(0)),
            (Op::Ldexp, 2) => self.scaled(pair(0), args[1].low),
            (Op::FMix, 3) => {
                let one = self.constant(1.0);
                let rest = self.sub(one, pair(2));
                let first = self.mul(pair(0), rest);
                let second = self.mul(pair(1), pair(2));
                self.add(first, second)
            }
            (Op::Step, 2) => {
                let below = self.compare(Op::DLt, pair(1), pair(0));
                let (zero, one) = (self.constant(0.0), self.constant(1.0));
                self.pick(below, zero, one)
            }
            (Op::SmoothStep, 3) => self.smooth_step(pair(0), pair(1), pair(2)),
            _ => return None,
        })
    }

    fn sign(&mut self, a: WordPair) -> WordPair {
        let (zero, one) = (self.constant(0.0), self.constant(1.0));
        let signed = self.copysign(one, a);
        let differs = self.differs(a, zero);
        self.pick(differs, signed, a)
    }

    /// `a - b * trunc(a / b)`, or with `floor`, as Vulkan defines them.
    fn remainder(&mut self, op: Op, a: WordPair, b: WordPair) -> WordPair {
        let quotient = self.div(a, b);
        let whole = if op == Op::FRem { self.trunc(quotient) } else { self.floor(quotient) };
        let product = self.mul(b, whole);
        self.sub(a, product)
    }

    /// Minimum or maximum: for a number and a NaN, the number; for equal zeros, the first.
    fn extreme(&mut self, op: Op, a: WordPair, b: WordPair) -> WordPair {
        let second = if op == Op::FMin { self.compare(Op::DLt, b, a) } else { self.compare(Op::DLt, a, b) };
        let number = self.compare(Op::DEq, a, a);
        let nan = self.not(number);
        let second = self.op(Op::LOr, [second, nan]);
        self.pick(second, b, a)
    }

    fn fraction(&mut self, a: WordPair) -> WordPair {
        let whole = self.trunc(a);
        let rest = self.sub(a, whole);
        let zero = self.constant(0.0);
        let infinite = self.is_infinite(a);
        let rest = self.pick(infinite, zero, rest);
        self.copysign(rest, a)
    }

    /// Scales denormals by 2⁵⁴, so that the exponent field is valid; also whether it did.
    fn with_exponent(&mut self, a: WordPair) -> (WordPair, Value) {
        let [_, high] = self.magnitude(a);
        let min = self.word(0x0010_0000);
        let small = self.op(Op::ULt, [high, min]);
        let factor = self.constant(f64::from_bits(0x4350_0000_0000_0000));
        let scaled = self.mul(a, factor);
        (self.pick(small, scaled, a), small)
    }

    /// Whether the number is neither 0 nor infinite nor NaN.
    fn is_finite_nonzero(&mut self, a: WordPair) -> Value {
        let [low, high] = self.magnitude(a);
        let (infinite, zero) = (self.word(0x7ff0_0000), self.word(0));
        let finite = self.op(Op::ULt, [high, infinite]);
        let bits = self.op(Op::Or, [low, high]);
        let some = self.op(Op::INe, [bits, zero]);
        self.op(Op::LAnd, [finite, some])
    }

    fn significand(&mut self, a: WordPair) -> WordPair {
        let ([low, high], _) = self.with_exponent(a);
        let (kept, half) = (self.word(0x800f_ffff), self.word(0x3fe0_0000));
        let high = self.op(Op::And, [high, kept]);
        let high = self.op(Op::Or, [high, half]);
        let split = self.is_finite_nonzero(a);
        self.pick(split, [low, high], a)
    }

    fn exponent(&mut self, a: WordPair) -> Value {
        let ([_, high], small) = self.with_exponent(a);
        let (twenty, eleven_ones) = (self.word(20), self.word(0x7ff));
        let biased = self.op(Op::LShr, [high, twenty]);
        let biased = self.op(Op::And, [biased, eleven_ones]);
        let (of_small, of_others) = (self.word(1022 + 54), self.word(1022));
        let bias = self.builder.select(small, of_small, of_others);
        let exponent = self.op(Op::ISub, [biased, bias]);
        let split = self.is_finite_nonzero(a);
        let zero = self.word(0);
        self.builder.select(split, exponent, zero)
    }

    /// Multiplies by a power of 2 from -1022 to 1023.
    fn times_power(&mut self, a: WordPair, exponent: Value) -> WordPair {
        let (bias, twenty, zero) = (self.word(1023), self.word(20), self.word(0));
        let biased = self.op(Op::IAdd, [exponent, bias]);
        let high = self.op(Op::Shl, [biased, twenty]);
        self.mul(a, [zero, high])
    }

    /// Multiplies by any power of 2, rounded once: in steps, of which only the last can leave the normal range, unless
    /// the result is 0 anyway.
    fn scaled(&mut self, a: WordPair, exponent: Value) -> WordPair {
        let mut number = a;
        let mut left = exponent;
        let max = self.word(1023);
        let min = self.word((-1022i32).cast_unsigned());
        let step = self.word((-969i32).cast_unsigned());
        for _ in 0..2 {
            let far = self.op(Op::SLt, [left, min]);
            let near = self.op(Op::SMin, [left, max]);
            let now = self.builder.select(far, step, near);
            number = self.times_power(number, now);
            left = self.op(Op::ISub, [left, now]);
        }
        let last = self.op(Op::SMin, [left, max]);
        let last = self.op(Op::SMax, [last, min]);
        self.times_power(number, last)
    }

    fn smooth_step(&mut self, low: WordPair, high: WordPair, a: WordPair) -> WordPair {
        let (way, length) = (self.sub(a, low), self.sub(high, low));
        let t = self.div(way, length);
        let (zero, one) = (self.constant(0.0), self.constant(1.0));
        let t = self.extreme(Op::FMax, t, zero);
        let t = self.extreme(Op::FMin, t, one);
        let twice = self.add(t, t);
        let three = self.constant(3.0);
        let factor = self.sub(three, twice);
        let square = self.mul(t, t);
        self.mul(square, factor)
    }
}
