//! Broadcasts, shuffles, rotations, and quad operations.

use spirv::Op;

use super::super::arithmetic::Num;
use super::super::translate::Translator;
use super::super::words::{Id, Inst, InstResult, operand};
use crate::abi::SUBGROUP_SIZE;
use crate::ir::{self, Value};

impl Translator<'_> {
    /// Values of another invocation of the subgroup. Indices are modulo 16; inactive invocations yield 0.
    pub(super) fn shuffled(&mut self, inst: &Inst, operands: &[u32]) -> InstResult<Vec<Value>> {
        let nums = self.group_operand_of(inst, operand(operands, 0)?)?;
        let number = match inst.op {
            Op::GroupNonUniformBroadcastFirst | Op::SubgroupFirstInvocationKHR => self.first_active(),
            _ => self.source(inst.op, operand(operands, 1)?, operands.get(2).copied())?,
        };
        let nums: Vec<Num> = nums.into_iter().map(|num| self.num_of(num, number)).collect();
        Ok(Self::flat_words(nums))
    }

    /// The index of the source invocation.
    fn source(&mut self, op: Op, second: Id, third: Option<Id>) -> InstResult<Value> {
        let second = self.index(second)?;
        if matches!(op, Op::GroupNonUniformBroadcast | Op::GroupNonUniformShuffle | Op::SubgroupReadInvocationKHR) {
            return Ok(second);
        }
        let own = self.subgroup_local_id();
        let op = match op {
            Op::GroupNonUniformShuffleXor => ir::Op::Xor,
            Op::GroupNonUniformShuffleUp => ir::Op::ISub,
            Op::GroupNonUniformShuffleDown => ir::Op::IAdd,
            Op::GroupNonUniformQuadBroadcast => {
                let three = self.builder.constant(3u32);
                return Ok(self.within(own, second, three));
            }
            Op::GroupNonUniformQuadSwap => {
                let one = self.builder.constant(1u32);
                let flip = self.builder.pure(ir::Op::IAdd, &[second, one]);
                let three = self.builder.constant(3u32);
                let flip = self.builder.pure(ir::Op::And, &[flip, three]);
                return Ok(self.builder.pure(ir::Op::Xor, &[own, flip]));
            }
            _ => return self.rotated(own, second, third),
        };
        Ok(self.builder.pure(op, &[own, second]))
    }

    fn rotated(&mut self, own: Value, delta: Value, cluster: Option<Id>) -> InstResult<Value> {
        let cluster = cluster.map_or(Ok(SUBGROUP_SIZE), |id| self.cluster(id))?;
        let last = self.builder.constant(cluster.min(SUBGROUP_SIZE) - 1);
        let moved = self.builder.pure(ir::Op::IAdd, &[own, delta]);
        Ok(self.within(own, moved, last))
    }

    /// Combines the bits of `own` above those of `last` with the low bits of `number`.
    fn within(&mut self, own: Value, number: Value, last: Value) -> Value {
        let above = self.builder.pure(ir::Op::Not, &[last]);
        let above = self.builder.pure(ir::Op::And, &[own, above]);
        let low = self.builder.pure(ir::Op::And, &[number, last]);
        self.builder.pure(ir::Op::Or, &[above, low])
    }

    /// A constant cluster size.
    pub(super) fn cluster(&self, id: Id) -> InstResult<u32> {
        let size = self.constants.uint(&self.types, id)?;
        if size.is_power_of_two() { Ok(size) } else { Err(format!("the cluster size {size} is not a power of two")) }
    }

    /// Words of several scalars, concatenated.
    pub(super) fn flat_words(nums: impl IntoIterator<Item = Num>) -> Vec<Value> {
        nums.into_iter().flat_map(Num::values).collect()
    }
}
