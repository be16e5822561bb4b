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
use super::words::{Checked, Id, Inst};
use crate::ir;

/// Words of an instruction: opcode, type, result, two vectors and the accumulator.
const WORDS: u32 = 6;

/// Opcodes: with a 32-bit and with a 16-bit accumulator.
const OPCODES: [u32; 2] = [6916, 6917];

/// Capabilities of the extension that are supported, as the capability that they imply; the others are for other types.
pub(super) fn capability(word: u32) -> Option<Capability> {
    matches!(word, 6912 | 6913).then_some(Capability::Float16)
}

/// Whether an instruction with this first word is one of them.
pub(super) fn is_one(first: u32) -> bool {
    first >> 16 == WORDS && OPCODES.contains(&(first & 0xffff))
}

/// The opcode that stands in for them until they are translated: an instruction with operands of the same kinds.
pub(super) const STAND_IN: Op = Op::Dot;

impl Translator<'_> {
    /// The sum of two products and the accumulator.
    pub(super) fn mixed_dot(&mut self, inst: &Inst, operands: &[Id]) -> Checked<Composite> {
        let operands = self.operands(operands)?;
        let [(a, of_a), (b, of_b), (before, of_sum)] = &operands[..] else { return Err("takes 3 operands".into()) };
        let result = self.result_shape(inst.ty)?;
        let is_sum = matches!(result, ArithmeticType::Scalar(Scalar::F16 | Scalar::F32)) && *of_sum == result;
        if !is_sum || [*of_a, *of_b] != [ArithmeticType::Vector(Scalar::F16, 2); 2] {
            return Err("multiplies two vectors of two halves and adds a float, or a half".into());
        }
        // Halves are represented as floats, and the product of two is exact.
        let mut sum = before.values[0];
        for (&a, &b) in a.values.iter().zip(b.values.iter()) {
            sum = self.builder.pure(ir::Op::Fma, &[a, b, sum]);
        }
        if result == ArithmeticType::Scalar(Scalar::F16) {
            sum = self.builder.pure(ir::Op::RoundHalf, &[sum]);
        }
        self.typed(inst.ty, &[sum])
    }
}
