//! Double precision: the mapping of word operations to doubles, and the doubles that the current block has in
//! registers.
//!
//! The IR has doubles as pairs of 32-bit words; machine instructions need them as 64-bit lanes. An operation
//! interleaves its operands' words and splits its result only for users that need words: a following double operation
//! in the same block uses the doubles directly.

use foldhash::HashMap;
use regalloc2::VReg;
use smallvec::SmallVec;

use super::{Result, Select, VectorIsa};
use crate::ir::Op;
use crate::simd::{Block, Inst, InstData, Value};

/// A double-precision operation.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) enum Double {
    Add,
    Sub,
    Mul,
    Div,
    Sqrt,
    /// With the rounding immediate.
    Round(u8),
    FromFloat,
}

/// The operation that a word operation belongs to, and whether it yields the high word.
pub(super) fn word_of(op: Op) -> Option<(Double, bool)> {
    use Op::*;
    Some(match op {
        DAddLow => (Double::Add, false),
        DAddHigh => (Double::Add, true),
        DSubLow => (Double::Sub, false),
        DSubHigh => (Double::Sub, true),
        DMulLow => (Double::Mul, false),
        DMulHigh => (Double::Mul, true),
        DDivLow => (Double::Div, false),
        DDivHigh => (Double::Div, true),
        DSqrtLow => (Double::Sqrt, false),
        DSqrtHigh => (Double::Sqrt, true),
        DRoundEvenLow => (Double::Round(8), false),
        DRoundEvenHigh => (Double::Round(8), true),
        DFloorLow => (Double::Round(9), false),
        DFloorHigh => (Double::Round(9), true),
        DCeilLow => (Double::Round(10), false),
        DCeilHigh => (Double::Round(10), true),
        DTruncLow => (Double::Round(11), false),
        DTruncHigh => (Double::Round(11), true),
        DFromFloatLow => (Double::FromFloat, false),
        DFromFloatHigh => (Double::FromFloat, true),
        _ => return None,
    })
}

/// The predicate immediate of a comparison.
pub(super) fn predicate(op: Op) -> Option<u8> {
    Some(match op {
        Op::DEq => 0,
        Op::DLt => 0x11,
        Op::DLe => 0x12,
        _ => return None,
    })
}

/// The words of the canonical NaN, in every double lane.
pub(super) const NAN: [u32; 16] = {
    let mut words = [0; 16];
    let mut lane = 1;
    while lane < 16 {
        words[lane] = 0x7ff8_0000;
        lane += 2;
    }
    words
};

/// Registers with the doubles of all lanes: two of 8 doubles or four of 4, in the order in which words interleave.
pub(super) type DoubleRegisters = SmallVec<[VReg; 4]>;

/// An operation with its operand words.
type DoubleKey = (Double, SmallVec<[Value; 4]>);

/// The doubles available in the current block.
#[derive(Debug, Default)]
pub(super) struct AvailableDoubles {
    block: Option<Block>,
    results: HashMap<DoubleKey, DoubleRegisters>,
    pairs: HashMap<[Value; 2], DoubleRegisters>,
}

impl<V: VectorIsa> Select<'_, V> {
    fn key(&self, double: Double, args: &[Value]) -> DoubleKey {
        (double, args.iter().map(|&arg| self.uses.canonical(arg)).collect())
    }

    fn known(&mut self) -> &mut AvailableDoubles {
        if self.doubles.block != Some(self.block) {
            self.doubles = AvailableDoubles { block: Some(self.block), ..AvailableDoubles::default() };
        }
        &mut self.doubles
    }

    /// The results of an operation.
    pub(super) fn doubles(&mut self, double: Double, args: &[Value]) -> Result<DoubleRegisters> {
        if let Some(known) = self.known_result(double, args) {
            return Ok(known);
        }
        self.code.floats = true;
        let doubles = V::doubles(self, double, args)?;
        let key = self.key(double, args);
        self.known().results.insert(key, doubles.clone());
        Ok(doubles)
    }

    /// The doubles of low and high words.
    pub(super) fn joined(&mut self, low: Value, high: Value) -> Result<DoubleRegisters> {
        if let Some(known) = self.known_pair(low, high) {
            return Ok(known);
        }
        let doubles = V::interleave_words(self, low, high)?;
        let pair = [low, high].map(|word| self.uses.canonical(word));
        self.known().pairs.insert(pair, doubles.clone());
        Ok(doubles)
    }

    /// The result of an operation, if it was computed in this block.
    fn known_result(&mut self, double: Double, args: &[Value]) -> Option<DoubleRegisters> {
        let key = self.key(double, args);
        self.known().results.get(&key).cloned()
    }

    /// The doubles of a word pair, if the block has them: as a result, or interleaved before.
    fn known_pair(&mut self, low: Value, high: Value) -> Option<DoubleRegisters> {
        let [low, high] = [low, high].map(|word| self.uses.canonical(word));
        if let Some(pair) = self.known().pairs.get(&[low, high]) {
            return Some(pair.clone());
        }
        let kernel = self.kernel;
        let (Some(InstData::Pure { op: of_low, args }), Some(InstData::Pure { op: of_high, args: others })) =
            (kernel.definition(low), kernel.definition(high))
        else {
            return None;
        };
        let ((double, false), (other, true)) = (word_of(*of_low)?, word_of(*of_high)?) else { return None };
        if double != other || self.key(double, args) != self.key(other, others) {
            return None;
        }
        self.known_result(double, args)
    }

    /// Computes the doubles of a word operation and defers the extraction of the word to its users, if all of them are
    /// in this block.
    pub(super) fn leaves_word(&mut self, inst: Inst) -> Result<bool> {
        let kernel = self.kernel;
        let InstData::Pure { op, args } = &kernel.insts[inst] else { return Ok(false) };
        let Some((double, _)) = word_of(*op) else { return Ok(false) };
        if !self.uses.is_local(kernel.results[inst][0], self.block) {
            return Ok(false);
        }
        self.doubles(double, args)?;
        Ok(true)
    }
}
