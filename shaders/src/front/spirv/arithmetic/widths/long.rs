//! 64-bit integers as two words.

use super::super::super::scalar::Scalar;
use super::super::num::Num;
use super::result_type;
use crate::ir::{Builder, Op, Value, WordPair};

pub(super) fn pure(builder: &mut Builder, op: Op, args: &[Num]) -> Option<Num> {
    let mut longs = Longs { builder };
    if let Some(truth) = longs.compare(op, args) {
        return Some(Num::new(Scalar::Bool, truth));
    }
    let pair = longs.arithmetic(op, args)?;
    Some(Num::wide(result_type(op, Scalar::I64), pair))
}

/// Operations on pairs of words.
pub(in super::super) struct Longs<'a> {
    /// Receives the emitted operations.
    pub builder: &'a mut Builder,
}

impl Longs<'_> {
    /// An operation on words.
    pub(in super::super) fn op<const N: usize>(&mut self, op: Op, args: [Value; N]) -> Value {
        self.builder.pure(op, &args)
    }

    /// A constant word.
    pub(in super::super) fn word(&mut self, word: u32) -> Value {
        self.builder.constant(word)
    }

    /// Selects one of two pairs.
    pub(in super::super) fn pick(&mut self, condition: Value, then: WordPair, otherwise: WordPair) -> WordPair {
        [0, 1].map(|word| self.builder.select(condition, then[word], otherwise[word]))
    }

    fn compare(&mut self, op: Op, args: &[Num]) -> Option<Value> {
        let &[a, b] = args else { return None };
        let [a, b] = [a.words(), b.words()];
        Some(match op {
            Op::IEq => self.equal(a, b),
            Op::INe => {
                let equal = self.equal(a, b);
                self.op(Op::LNot, [equal])
            }
            Op::ULt | Op::SLt => self.less(op, a, b),
            Op::ULe => {
                let greater = self.less(Op::ULt, b, a);
                self.op(Op::LNot, [greater])
            }
            Op::SLe => {
                let greater = self.less(Op::SLt, b, a);
                self.op(Op::LNot, [greater])
            }
            _ => return None,
        })
    }

    fn equal(&mut self, a: WordPair, b: WordPair) -> Value {
        let [low, high] = [0, 1].map(|word| self.op(Op::IEq, [a[word], b[word]]));
        self.op(Op::LAnd, [low, high])
    }

    /// `a < b`; `op` compares the high words.
    fn less(&mut self, op: Op, a: WordPair, b: WordPair) -> Value {
        let low = self.op(Op::ULt, [a[0], b[0]]);
        let same = self.op(Op::IEq, [a[1], b[1]]);
        let high = self.op(op, [a[1], b[1]]);
        let by_low = self.op(Op::LAnd, [same, low]);
        self.op(Op::LOr, [high, by_low])
    }

    fn arithmetic(&mut self, op: Op, args: &[Num]) -> Option<WordPair> {
        let pair = |number: usize| args[number].words();
        Some(match (op, args.len()) {
            (Op::And | Op::Or | Op::Xor, 2) => [0, 1].map(|word| self.op(op, [pair(0)[word], pair(1)[word]])),
            (Op::Not, 1) => [0, 1].map(|word| self.op(op, [pair(0)[word]])),
            (Op::IAdd, 2) => self.add(pair(0), pair(1)),
            (Op::ISub, 2) => self.sub(pair(0), pair(1)),
            (Op::INeg, 1) => self.neg(pair(0)),
            (Op::IMul, 2) => self.mul(pair(0), pair(1)),
            (Op::UMulHigh, 2) => self.mul_high(pair(0), pair(1)),
            (Op::SMulHigh, 2) => self.signed_mul_high(pair(0), pair(1)),
            (Op::Shl | Op::LShr | Op::AShr, 2) => self.shift(op, pair(0), args[1].low),
            (Op::UDiv, 2) => self.divided([Op::UDiv64Low, Op::UDiv64High], pair(0), pair(1)),
            (Op::UMod, 2) => self.divided([Op::UMod64Low, Op::UMod64High], pair(0), pair(1)),
            (Op::SDiv, 2) => self.signed_quotient(pair(0), pair(1)),
            (Op::SRem, 2) => self.signed_remainder(pair(0), pair(1)),
            (Op::SMod, 2) => self.signed_modulo(pair(0), pair(1)),
            (Op::UMin | Op::UMax, 2) => self.extreme(Op::ULt, op == Op::UMin, pair(0), pair(1)),
            (Op::SMin | Op::SMax, 2) => self.extreme(Op::SLt, op == Op::SMin, pair(0), pair(1)),
            (Op::UClamp, 3) => {
                let min = self.extreme(Op::ULt, false, pair(0), pair(1));
                self.extreme(Op::ULt, true, min, pair(2))
            }
            (Op::SClamp, 3) => {
                let min = self.extreme(Op::SLt, false, pair(0), pair(1));
                self.extreme(Op::SLt, true, min, pair(2))
            }
            (Op::SAbs, 1) => self.magnitude(pair(0)),
            (Op::SSign, 1) => self.sign(pair(0)),
            (Op::UCarry, 2) => {
                let carry = self.carry(pair(0), pair(1));
                self.small(carry)
            }
            (Op::UBorrow, 2) => {
                let borrow = self.less(Op::ULt, pair(0), pair(1));
                let borrow = self.op(Op::BoolToInt, [borrow]);
                self.small(borrow)
            }
            (Op::BitReverse, 1) => [1, 0].map(|word| self.op(op, [pair(0)[word]])),
            (Op::BitCount, 1) => {
                let [low, high] = pair(0).map(|word| self.op(op, [word]));
                let sum = self.op(Op::IAdd, [low, high]);
                self.small(sum)
            }
            (Op::FindLsb, 1) => self.lowest(pair(0)),
            (Op::FindUMsb, 1) => self.highest(pair(0)),
            (Op::FindSMsb, 1) => {
                let sign = self.spread_sign(pair(0)[1]);
                let differs = [0, 1].map(|word| self.op(Op::Xor, [pair(0)[word], sign]));
                self.highest(differs)
            }
            (Op::BitInsert, 4) => self.insert(pair(0), pair(1), args[2].low, args[3].low),
            (Op::BitUExtract, 3) => self.extract(Op::LShr, pair(0), args[1].low, args[2].low),
            (Op::BitSExtract, 3) => self.extract(Op::AShr, pair(0), args[1].low, args[2].low),
            _ => return None,
        })
    }

    fn small(&mut self, low: Value) -> WordPair {
        [low, self.word(0)]
    }

    /// Sum modulo 2⁶⁴.
    pub(in super::super) fn add(&mut self, a: WordPair, b: WordPair) -> WordPair {
        let low = self.op(Op::IAdd, [a[0], b[0]]);
        let carry = self.op(Op::ULt, [low, a[0]]);
        let carry = self.op(Op::BoolToInt, [carry]);
        let high = self.op(Op::IAdd, [a[1], b[1]]);
        [low, self.op(Op::IAdd, [high, carry])]
    }

    /// The carry: 1 if the sum overflows.
    fn carry(&mut self, a: WordPair, b: WordPair) -> Value {
        let sum = self.add(a, b);
        let less = self.less(Op::ULt, sum, a);
        self.op(Op::BoolToInt, [less])
    }

    /// Difference modulo 2⁶⁴.
    pub(in super::super) fn sub(&mut self, a: WordPair, b: WordPair) -> WordPair {
        let low = self.op(Op::ISub, [a[0], b[0]]);
        let borrow = self.op(Op::ULt, [a[0], b[0]]);
        let borrow = self.op(Op::BoolToInt, [borrow]);
        let high = self.op(Op::ISub, [a[1], b[1]]);
        [low, self.op(Op::ISub, [high, borrow])]
    }

    /// Negation.
    pub(in super::super) fn neg(&mut self, a: WordPair) -> WordPair {
        let zero = self.word(0);
        self.sub([zero, zero], a)
    }

    fn mul(&mut self, a: WordPair, b: WordPair) -> WordPair {
        let low = self.op(Op::IMul, [a[0], b[0]]);
        let high = self.op(Op::UMulHigh, [a[0], b[0]]);
        let [one, two] = [self.op(Op::IMul, [a[0], b[1]]), self.op(Op::IMul, [a[1], b[0]])];
        let cross = self.op(Op::IAdd, [one, two]);
        [low, self.op(Op::IAdd, [high, cross])]
    }

    /// The product of two words.
    fn product(&mut self, a: Value, b: Value) -> WordPair {
        [self.op(Op::IMul, [a, b]), self.op(Op::UMulHigh, [a, b])]
    }

    /// The upper 64 bits of the product.
    fn mul_high(&mut self, a: WordPair, b: WordPair) -> WordPair {
        let low = self.op(Op::UMulHigh, [a[0], b[0]]);
        let [one, two] = [self.product(a[0], b[1]), self.product(a[1], b[0])];
        let high = self.product(a[1], b[1]);
        let low = self.small(low);
        // No sum of these overflows: (2³² - 1)² + 2 * (2³² - 1) is 2⁶⁴ - 1.
        let one = self.add(one, low);
        let [two_low, one_low] = [self.small(two[0]), self.small(one[0])];
        let middle = self.add(two_low, one_low);
        let [one, two, carry] = [one[1], two[1], middle[1]].map(|word| self.small(word));
        let high = self.add(high, one);
        let high = self.add(high, two);
        self.add(high, carry)
    }

    fn signed_mul_high(&mut self, a: WordPair, b: WordPair) -> WordPair {
        let high = self.mul_high(a, b);
        let [of_a, of_b] = [a, b].map(|pair| self.spread_sign(pair[1]));
        let less = [0, 1].map(|word| self.op(Op::And, [of_a, b[word]]));
        let high = self.sub(high, less);
        let less = [0, 1].map(|word| self.op(Op::And, [of_b, a[word]]));
        self.sub(high, less)
    }

    /// The sign as a word: all ones if negative, else 0.
    fn spread_sign(&mut self, high: Value) -> Value {
        let last = self.word(31);
        self.op(Op::AShr, [high, last])
    }

    /// Shifts by an amount modulo 64.
    pub(in super::super) fn shift(&mut self, op: Op, a: WordPair, amount: Value) -> WordPair {
        let [five, thirty_one, zero] = [32, 31, 0].map(|word| self.word(word));
        let far = self.op(Op::And, [amount, five]);
        let far = self.op(Op::INe, [far, zero]);
        // The bits that cross the word boundary: shifted by one, then by 31 minus the amount.
        let rest = self.op(Op::Xor, [amount, thirty_one]);
        let rest = self.op(Op::And, [rest, thirty_one]);
        let by = self.op(Op::And, [amount, thirty_one]);
        let one = self.word(1);
        if op == Op::Shl {
            let [low, high] = a.map(|word| self.op(op, [word, by]));
            let crossing = self.op(Op::LShr, [a[0], one]);
            let crossing = self.op(Op::LShr, [crossing, rest]);
            let high = self.op(Op::Or, [high, crossing]);
            return self.pick(far, [zero, low], [low, high]);
        }
        let high = self.op(op, [a[1], by]);
        let low = self.op(Op::LShr, [a[0], by]);
        let crossing = self.op(Op::Shl, [a[1], one]);
        let crossing = self.op(Op::Shl, [crossing, rest]);
        let low = self.op(Op::Or, [low, crossing]);
        let above = if op == Op::AShr { self.spread_sign(a[1]) } else { zero };
        self.pick(far, [high, above], [low, high])
    }

    fn divided(&mut self, ops: [Op; 2], a: WordPair, b: WordPair) -> WordPair {
        ops.map(|op| self.op(op, [a[0], a[1], b[0], b[1]]))
    }

    fn negative(&mut self, high: Value) -> Value {
        let zero = self.word(0);
        self.op(Op::SLt, [high, zero])
    }

    /// Magnitude; the least integer is returned unchanged.
    pub(in super::super) fn magnitude(&mut self, a: WordPair) -> WordPair {
        let negative = self.negative(a[1]);
        let negated = self.neg(a);
        self.pick(negative, negated, a)
    }

    fn signed_quotient(&mut self, a: WordPair, b: WordPair) -> WordPair {
        let [above, below] = [self.magnitude(a), self.magnitude(b)];
        let quotient = self.divided([Op::UDiv64Low, Op::UDiv64High], above, below);
        let signs = self.op(Op::Xor, [a[1], b[1]]);
        let differ = self.negative(signs);
        let negated = self.neg(quotient);
        self.pick(differ, negated, quotient)
    }

    /// Remainder with the sign of the dividend.
    fn signed_remainder(&mut self, a: WordPair, b: WordPair) -> WordPair {
        let [above, below] = [self.magnitude(a), self.magnitude(b)];
        let remainder = self.divided([Op::UMod64Low, Op::UMod64High], above, below);
        let negative = self.negative(a[1]);
        let negated = self.neg(remainder);
        self.pick(negative, negated, remainder)
    }

    /// Remainder with the sign of the divisor.
    fn signed_modulo(&mut self, a: WordPair, b: WordPair) -> WordPair {
        let remainder = self.signed_remainder(a, b);
        let signs = self.op(Op::Xor, [remainder[1], b[1]]);
        let differ = self.negative(signs);
        let zero = self.word(0);
        let nothing = self.equal(remainder, [zero, zero]);
        let some = self.op(Op::LNot, [nothing]);
        let moves = self.op(Op::LAnd, [differ, some]);
        let moved = self.add(remainder, b);
        self.pick(moves, moved, remainder)
    }

    fn extreme(&mut self, less: Op, is_min: bool, a: WordPair, b: WordPair) -> WordPair {
        let first = self.less(less, a, b);
        if is_min { self.pick(first, a, b) } else { self.pick(first, b, a) }
    }

    fn sign(&mut self, a: WordPair) -> WordPair {
        let spread = self.spread_sign(a[1]);
        let any = self.op(Op::Or, [a[0], a[1]]);
        let zero = self.word(0);
        let any = self.op(Op::INe, [any, zero]);
        let any = self.op(Op::BoolToInt, [any]);
        [self.op(Op::Or, [spread, any]), spread]
    }

    /// Index of the lowest one bit; -1 for 0.
    fn lowest(&mut self, a: WordPair) -> WordPair {
        let [low, high] = a.map(|word| self.op(Op::FindLsb, [word]));
        let zero = self.word(0);
        let in_low = self.op(Op::INe, [a[0], zero]);
        let thirty_two = self.word(32);
        let shifted = self.op(Op::IAdd, [high, thirty_two]);
        let in_high = self.op(Op::INe, [a[1], zero]);
        let high = self.builder.select(in_high, shifted, high);
        let found = self.builder.select(in_low, low, high);
        [found, self.spread_sign(found)]
    }

    /// Index of the highest one bit; -1 for 0.
    fn highest(&mut self, a: WordPair) -> WordPair {
        let [low, high] = a.map(|word| self.op(Op::FindUMsb, [word]));
        let zero = self.word(0);
        let in_high = self.op(Op::INe, [a[1], zero]);
        let thirty_two = self.word(32);
        let shifted = self.op(Op::IAdd, [high, thirty_two]);
        let found = self.builder.select(in_high, shifted, low);
        [found, self.spread_sign(found)]
    }

    /// A mask of `count` low bits; all ones from 64 on.
    fn low_ones(&mut self, count: Value) -> WordPair {
        let (all, sixty_three) = (self.word(u32::MAX), self.word(63));
        let one = self.word(1);
        let one = self.small(one);
        let bit = self.shift(Op::Shl, one, count);
        let one = self.word(1);
        let one = self.small(one);
        let ones = self.sub(bit, one);
        let full = self.op(Op::ULt, [sixty_three, count]);
        self.pick(full, [all, all], ones)
    }

    /// A shift by an amount that is not reduced modulo 64: zero from 64 on.
    fn far_shift(&mut self, op: Op, a: WordPair, amount: Value) -> WordPair {
        let moved = self.shift(op, a, amount);
        let (zero, sixty_three) = (self.word(0), self.word(63));
        let gone = self.op(Op::ULt, [sixty_three, amount]);
        self.pick(gone, [zero, zero], moved)
    }

    fn insert(&mut self, base: WordPair, insert: WordPair, offset: Value, count: Value) -> WordPair {
        let ones = self.low_ones(count);
        let mask = self.far_shift(Op::Shl, ones, offset);
        let insert = self.far_shift(Op::Shl, insert, offset);
        [0, 1].map(|word| {
            let differs = self.op(Op::Xor, [base[word], insert[word]]);
            let differs = self.op(Op::And, [differs, mask[word]]);
            self.op(Op::Xor, [base[word], differs])
        })
    }

    /// Bit-field extraction: shifts the field to the top, then down, with zero or sign extension.
    fn extract(&mut self, op: Op, base: WordPair, offset: Value, count: Value) -> WordPair {
        let (zero, sixty_three, sixty_four) = (self.word(0), self.word(63), self.word(64));
        if op == Op::LShr {
            let moved = self.far_shift(op, base, offset);
            let ones = self.low_ones(count);
            return [0, 1].map(|word| self.op(Op::And, [moved[word], ones[word]]));
        }
        let last = self.op(Op::UMin, [offset, sixty_three]);
        let moved = self.shift(op, base, last);
        let count = self.op(Op::UMin, [count, sixty_four]);
        let unused = self.op(Op::ISub, [sixty_four, count]);
        let top = self.shift(Op::Shl, moved, unused);
        let field = self.shift(op, top, unused);
        let none = self.op(Op::IEq, [count, zero]);
        self.pick(none, [zero, zero], field)
    }
}
