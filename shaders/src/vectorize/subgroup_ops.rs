//! Subgroup operations: ballots, shuffles, reductions and scans.
//!
//! Inactive lanes contribute the identity of the operation, so that every step is one unmasked operation on all 16
//! lanes.

use super::state::Widen;
use crate::analysis::Shape;
use crate::ir::{self, Op, SubgroupOp, identity};
use crate::simd::builder::ALL;
use crate::simd::{InstData, LANES, Type, Value};

impl Widen<'_> {
    /// An operation on the active lanes of the subgroup.
    pub(super) fn subgroup_op(&mut self, result: ir::Value, op: SubgroupOp, args: &[ir::Value]) {
        let value = match op {
            SubgroupOp::Ballot => {
                let condition = self.vector(args[0]);
                let mask = self.builder.and(self.exec, condition);
                self.builder.mask_bits(mask)
            }
            SubgroupOp::Shuffle(_) => self.shuffle(args[0], args[1]),
            SubgroupOp::Reduce(op, cluster) => {
                let value = self.with_inactive(args[0], identity(op).unwrap_or(0));
                self.reduce(op, value, cluster)
            }
            SubgroupOp::Inclusive(op) => self.inclusive(op, args[0]),
            SubgroupOp::Exclusive(op) => {
                let value = self.inclusive(op, args[0]);
                self.shift_up(value, 1, identity(op).unwrap_or(0))
            }
        };
        self.define_as(result, value);
    }

    /// A value in the active lanes, a constant in the inactive ones.
    fn with_inactive(&mut self, value: ir::Value, inactive: u32) -> Value {
        let value = self.vector(value);
        if self.builder.kernel.constant(self.exec) == Some(ALL) {
            return value;
        }
        let inactive = self.builder.constant(Type::V32, inactive.into());
        self.builder.select(self.exec, value, inactive)
    }

    fn shuffle(&mut self, value: ir::Value, from: ir::Value) -> Value {
        let vector = self.with_inactive(value, 0);
        let last = self.builder.s32(LANES - 1);
        match self.shape(from) {
            Shape::Uniform => {
                let from = self.scalar(from);
                let lane = self.builder.pure(Op::And, &[from, last]);
                self.builder.emit_one(InstData::Extract { vector, lane })
            }
            Shape::Affine(offsets) => {
                let base = self.get(from);
                match self.builder.kernel.constant(base) {
                    Some(base) => {
                        let lanes = self.uniformity.lane_offsets.lanes(offsets);
                        let words = lanes.map(|lane| (lane.wrapping_add(base as u32) % LANES) as u8);
                        self.pick_words(vector, vector, words)
                    }
                    None => self.permute(vector, from),
                }
            }
            Shape::Varying => self.permute(vector, from),
        }
    }

    fn permute(&mut self, vector: Value, from: ir::Value) -> Value {
        let lanes = self.vector(from);
        self.builder.emit_one(InstData::Permute { vector, lanes })
    }

    fn pick_words(&mut self, first: Value, second: Value, words: [u8; LANES as usize]) -> Value {
        self.builder.emit_one(InstData::Pick { first, second, words: Box::new(words) })
    }

    /// Moves the words of a vector up by `by` lanes; the lowest lanes get a constant.
    fn shift_up(&mut self, value: Value, by: u8, low: u32) -> Value {
        let low = self.builder.constant(Type::V32, low.into());
        let from = |lane: u8| lane.checked_sub(by).unwrap_or(LANES as u8 + lane);
        self.pick_words(value, low, std::array::from_fn(|lane| from(lane as u8)))
    }

    /// Butterfly reduction in clusters of `cluster` lanes, with the operand order of [`SubgroupOp::run`]: the lower
    /// lane first.
    fn reduce(&mut self, op: Op, mut value: Value, cluster: u8) -> Value {
        let mut distance = 1;
        while distance < cluster {
            let lanes = |lane: &dyn Fn(u8) -> u8| std::array::from_fn(|number| lane(number as u8));
            let args = if op.is_commutative() {
                let other = self.pick_words(value, value, lanes(&|lane| lane ^ distance));
                [value, other]
            } else {
                let lower = self.pick_words(value, value, lanes(&|lane| lane & !distance));
                [lower, self.pick_words(value, value, lanes(&|lane| lane | distance))]
            };
            value = self.builder.pure(op, &args);
            distance *= 2;
        }
        value
    }

    /// Inclusive scan over the 16 lanes in 4 steps (Hillis-Steele).
    fn inclusive(&mut self, op: Op, value: ir::Value) -> Value {
        let identity = identity(op).unwrap_or(0);
        let mut value = self.with_inactive(value, identity);
        for distance in [1, 2, 4, 8] {
            let below = self.shift_up(value, distance, identity);
            value = self.builder.pure(op, &[below, value]);
        }
        value
    }
}
