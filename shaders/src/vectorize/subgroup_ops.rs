//! What lanes do together: ballots, shuffles, reductions and scans.
//!
//! Lanes that are off take part as the operation's identity, so that every step is one for all lanes.

use super::{Type, Value, Widen};
use crate::analysis::Shape;
use crate::ir::{self, Op, SubgroupOp, identity};
use crate::simd::builder::ALL;
use crate::simd::{InstData, LANES};

impl Widen<'_> {
    /// An operation of the subgroup's lanes that are on.
    pub(super) fn across(&mut self, result: ir::Value, op: SubgroupOp, args: &[ir::Value]) {
        let value = match op {
            SubgroupOp::Ballot => {
                let condition = self.vector(args[0]);
                let mask = self.builder.and(self.exec, condition);
                self.builder.mask_bits(mask)
            }
            SubgroupOp::Shuffle(_) => self.shuffle(args[0], args[1]),
            SubgroupOp::Reduce(op, cluster) => {
                let value = self.with_others(args[0], identity(op).unwrap_or(0));
                self.reduce(op, value, cluster)
            }
            SubgroupOp::Inclusive(op) => self.inclusive(op, args[0]),
            SubgroupOp::Exclusive(op) => {
                let value = self.inclusive(op, args[0]);
                self.moved_up(value, 1, identity(op).unwrap_or(0))
            }
        };
        self.define_as(result, value);
    }

    /// A value in each lane, with a constant in those that are off.
    fn with_others(&mut self, value: ir::Value, others: u32) -> Value {
        let value = self.vector(value);
        if self.builder.kernel.constant(self.exec) == Some(ALL) {
            return value;
        }
        let others = self.builder.constant(Type::V32, others.into());
        self.builder.select(self.exec, value, others)
    }

    fn shuffle(&mut self, value: ir::Value, from: ir::Value) -> Value {
        let vector = self.with_others(value, 0);
        let last = self.builder.s32(LANES - 1);
        match self.shape(from) {
            Shape::Uniform => {
                let from = self.scalar(from);
                let lane = self.builder.pure(Op::And, &[from, last]);
                self.builder.emit_one(InstData::Extract { vector, lane })
            }
            Shape::Pattern(pattern) => {
                let base = self.get(from);
                match self.builder.kernel.constant(base) {
                    Some(base) => {
                        let lanes = self.uniformity.patterns.lanes(pattern);
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

    /// Of each lane the word that the one so far below has, or a constant.
    fn moved_up(&mut self, value: Value, by: u8, others: u32) -> Value {
        let others = self.builder.constant(Type::V32, others.into());
        let from = |lane: u8| lane.checked_sub(by).unwrap_or(LANES as u8 + lane);
        self.pick_words(value, others, std::array::from_fn(|lane| from(lane as u8)))
    }

    /// As [`SubgroupOp::run`] does it: of two lanes the lower one comes first.
    fn reduce(&mut self, op: Op, mut value: Value, cluster: u8) -> Value {
        let mut apart = 1;
        while apart < cluster {
            let lanes = |lane: &dyn Fn(u8) -> u8| std::array::from_fn(|number| lane(number as u8));
            let args = if op.is_commutative() {
                let other = self.pick_words(value, value, lanes(&|lane| lane ^ apart));
                [value, other]
            } else {
                let lower = self.pick_words(value, value, lanes(&|lane| lane & !apart));
                [lower, self.pick_words(value, value, lanes(&|lane| lane | apart))]
            };
            value = self.builder.pure(op, &args);
            apart *= 2;
        }
        value
    }

    fn inclusive(&mut self, op: Op, value: ir::Value) -> Value {
        let identity = identity(op).unwrap_or(0);
        let mut value = self.with_others(value, identity);
        for apart in [1, 2, 4, 8] {
            let below = self.moved_up(value, apart, identity);
            value = self.builder.pure(op, &[below, value]);
        }
        value
    }
}
