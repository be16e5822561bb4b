//! `SPV_VALVE_mixed_float_dot_product`: dot products of halves with an accumulator, which ggml's shaders use and
//! rspirv's grammar does not have yet.
//!
//! Order and precision are implementation-defined: each product is added in turn and rounded once; half results are
//! rounded once more at the end.

use spirv::{Capability, Op};

use super::arithmetic::ArithmeticType;
use super::composite::Composite;
use super::scalar::Scalar;
use super::translate::Translator;
use super::words::{Id, Inst, InstResult};
use crate::ir;

/// Words of an instruction: opcode, type, result, two vectors and the accumulator.
const WORDS: u32 = 6;

/// Capabilities of the extension that are supported, as the capability that they imply; the others are for other types.
pub(super) fn capability(word: u32) -> Option<Capability> {
    matches!(word, 6912 | 6913).then_some(Capability::Float16)
}

/// The type of the accumulator, if an instruction with this first word is one of them.
pub(super) fn accumulator(first: u32) -> Option<Scalar> {
    match (first >> 16, first & 0xffff) {
        (WORDS, 6916) => Some(Scalar::F32),
        (WORDS, 6917) => Some(Scalar::F16),
        _ => None,
    }
}

/// The opcode that `Inst::op` has for them.
pub(super) const STAND_IN: Op = Op::Dot;

impl Translator<'_> {
    /// The sum of two products and the accumulator, which has this type.
    pub(super) fn mixed_dot(&mut self, inst: &Inst, operands: &[Id], accumulator: Scalar) -> InstResult<Composite> {
        let operands = self.operands(operands)?;
        let [(a, of_a), (b, of_b), (before, of_sum)] = &operands[..] else {
            return Err("the instruction takes 3 operands".into());
        };
        let result = self.result_shape(inst.ty)?;
        if [result, *of_sum] != [ArithmeticType::Scalar(accumulator); 2]
            || [*of_a, *of_b] != [ArithmeticType::Vector(Scalar::F16, 2); 2]
        {
            let bits = if accumulator == Scalar::F16 { 16 } else { 32 };
            return Err(format!(
                "the instruction adds the products of two vectors of two halves to a {bits}-bit float"
            ));
        }
        // Halves are represented as floats, and the product of two is exact.
        let mut sum = before.values[0];
        for (&a, &b) in a.values.iter().zip(b.values.iter()) {
            sum = self.builder.pure(ir::Op::Fma, &[a, b, sum]);
        }
        if accumulator == Scalar::F16 {
            sum = self.builder.pure(ir::Op::RoundHalf, &[sum]);
        }
        self.typed(inst.ty, &[sum])
    }
}
