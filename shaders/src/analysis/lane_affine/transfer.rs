//! Transfer functions of shapes: what operations make of lane-affine operands.

use super::offsets::{LaneOffsetTable, Shape};
use super::trailing_zeros;
use crate::ir::Op;

/// An operand of an operation.
#[derive(Clone, Copy, Debug)]
pub(in crate::analysis) struct OperandShape {
    pub(in crate::analysis) shape: Shape,
    /// Known trailing zeros of the base.
    pub(in crate::analysis) zeros: u8,
    /// Its bits, if it is a constant.
    pub(in crate::analysis) constant: Option<u32>,
}

impl Shape {
    /// The shape of a value that is one of two.
    pub(in crate::analysis) fn join(self, other: Self) -> Self {
        if self == other { self } else { Self::Varying }
    }
}

impl LaneOffsetTable {
    /// The shape of an operation's result.
    pub(in crate::analysis) fn pure(&mut self, op: Op, operands: &[OperandShape]) -> Shape {
        if operands.iter().all(|operand| operand.shape == Shape::Uniform) {
            return Shape::Uniform;
        }
        match (op, operands) {
            (Op::IAdd, [a, b]) => self.combine(a.shape, b.shape, u32::wrapping_add),
            (Op::ISub, [a, b]) => self.combine(a.shape, b.shape, u32::wrapping_sub),
            (
                Op::IMul,
                [lanes, OperandShape { constant: Some(factor), .. }]
                | [OperandShape { constant: Some(factor), .. }, lanes],
            ) => self.map(lanes.shape, |lane| lane.wrapping_mul(*factor)),
            (Op::Shl, [lanes, OperandShape { constant: Some(amount), .. }]) => {
                self.map(lanes.shape, |lane| lane.wrapping_shl(*amount))
            }
            (Op::LShr | Op::AShr, [lanes, OperandShape { constant: Some(amount), .. }])
                if self.fit(lanes, lanes.zeros.min(31)) =>
            {
                self.map(lanes.shape, |lane| lane.wrapping_shr(*amount))
            }
            (Op::And | Op::Or | Op::Xor, [a, b]) => self.bitwise(op, a, b),
            _ => Shape::Varying,
        }
    }

    /// The shape of an operation on the offsets of one shape.
    fn map(&mut self, shape: Shape, of: impl Fn(u32) -> u32) -> Shape {
        match self.offsets(shape) {
            Some(lanes) => self.shape(lanes.map(of)),
            None => Shape::Varying,
        }
    }

    /// Whether the offsets are below 2^`zeros`, so that they do not touch higher bits of the base.
    fn fit(&self, operand: &OperandShape, zeros: u8) -> bool {
        let lanes = self.offsets(operand.shape);
        lanes.is_some_and(|lanes| lanes.iter().all(|&lane| trailing_zeros::low_bits(lane, zeros) == lane))
    }

    /// The shape of `and`, `or` and `xor`: affine only if the offsets fit in the known trailing zeros of the bases.
    fn bitwise(&mut self, op: Op, a: &OperandShape, b: &OperandShape) -> Shape {
        let zeros = match (a.constant, b.constant) {
            (None, Some(_)) => a.zeros,
            (Some(_), None) => b.zeros,
            _ => a.zeros.min(b.zeros),
        };
        if !self.fit(a, zeros) || !self.fit(b, zeros) {
            return Shape::Varying;
        }
        // The low bits of a constant are operands in every lane. The result's base already contains their result: it is
        // subtracted from the offsets.
        let [first, second] = [a, b].map(|operand| trailing_zeros::low_bits(operand.constant.unwrap_or(0), zeros));
        let fold = |a: u32, b: u32| op.fold(&[a.into(), b.into()]) as u32;
        let base = fold(first, second);
        self.combine(a.shape, b.shape, |a, b| fold(a | first, b | second).wrapping_sub(base))
    }
}
