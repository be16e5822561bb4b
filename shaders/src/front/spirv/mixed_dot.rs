//! Dot products of halves with a sum, of `SPV_VALVE_mixed_float_dot_product`, which the grammar does not have yet: ggml's shaders use them.
//!
//! Order and precision are the implementation's: each product is added in turn, rounded once, and half sums once more at the end.

use spirv::{Capability, Op};

use super::arithmetic::Shape;
use super::composite::Composite;
use super::scalar::Scalar;
use super::translate::Translator;
use super::words::{Checked, Id, Inst};
use crate::ir;

/// How many words an instruction has: type, result, two vectors and the sum before.
const WORDS: u32 = 6;

/// Their opcodes: with a sum of 32 bits, and of 16.
const OPCODES: [u32; 2] = [6916, 6917];

/// What a capability of the extension's declares, the others of which are for other types.
pub(super) fn capability(word: u32) -> Option<Capability> {
    matches!(word, 6912 | 6913).then_some(Capability::Float16)
}

/// Whether an instruction that begins with this word is one of them.
pub(super) fn is_one(first: u32) -> bool {
    first >> 16 == WORDS && OPCODES.contains(&(first & 0xffff))
}

/// What the reader takes them for until they are translated: an instruction with the same kinds of operands.
pub(super) const STAND_IN: Op = Op::Dot;

impl Translator<'_> {
    /// The sum of two products and what was before.
    pub(super) fn mixed_dot(&mut self, inst: &Inst, operands: &[Id]) -> Checked<Composite> {
        let operands = self.operands(operands)?;
        let [(a, of_a), (b, of_b), (before, of_sum)] = &operands[..] else { return Err("takes 3 operands".into()) };
        let result = self.result_shape(inst.ty)?;
        let is_sum = matches!(result, Shape::Scalar(Scalar::F16 | Scalar::F32)) && *of_sum == result;
        if !is_sum || [*of_a, *of_b] != [Shape::Vector(Scalar::F16, 2); 2] {
            return Err("multiplies two vectors of two halves and adds a float, or a half".into());
        }
        // Halves are floats already, and a product of two is exact.
        let mut sum = before.values[0];
        for (&a, &b) in a.values.iter().zip(b.values.iter()) {
            sum = self.builder.pure(ir::Op::Fma, &[a, b, sum]);
        }
        if result == Shape::Scalar(Scalar::F16) {
            sum = self.builder.pure(ir::Op::RoundHalf, &[sum]);
        }
        self.typed(inst.ty, &[sum])
    }
}
