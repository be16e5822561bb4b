//! Ballots, queries of ballots, and quad votes.

use spirv::{GroupOperation, Op};

use super::super::arithmetic::ArithmeticType;
use super::super::scalar::Scalar;
use super::super::translate::Translator;
use super::super::words::{Id, InstResult, operand};
use super::{ALL, MaskRelation};
use crate::ir::{self, Value};

impl Translator<'_> {
    pub(super) fn ballots(&mut self, op: Op, result: Id, operands: &[u32]) -> InstResult<Vec<Value>> {
        let at = |index| operand(operands, index);
        let word = match op {
            Op::GroupNonUniformBallot | Op::SubgroupBallotKHR => {
                let condition = self.scalar(at(0)?, Scalar::Bool)?;
                let mask = self.ballot(condition);
                return Ok(self.ballot_vector(mask));
            }
            Op::GroupNonUniformInverseBallot => {
                let mask = self.mask_operand(at(0)?)?;
                let own = self.subgroup_local_id();
                self.bit_of(mask, own)
            }
            Op::GroupNonUniformBallotBitExtract => {
                let mask = self.mask_operand(at(0)?)?;
                let number = self.index(at(1)?)?;
                self.bit_of(mask, number)
            }
            Op::GroupNonUniformBallotBitCount => {
                let mask = self.mask_operand(at(1)?)?;
                let count = self.bit_count(at(0)?, mask)?;
                return self.integer_result(result, &[count]);
            }
            Op::GroupNonUniformBallotFindLSB | Op::GroupNonUniformBallotFindMSB => {
                let mask = self.mask_operand(at(0)?)?;
                let is_first = op == Op::GroupNonUniformBallotFindLSB;
                let found = self.builder.pure(if is_first { ir::Op::FindLsb } else { ir::Op::FindUMsb }, &[mask]);
                return self.integer_result(result, &[found]);
            }
            _ => {
                let condition = self.scalar(at(0)?, Scalar::Bool)?;
                self.of_quad(op == Op::GroupNonUniformQuadAllKHR, condition)
            }
        };
        Ok(vec![word])
    }

    /// The bits of a ballot that belong to invocations.
    pub(super) fn mask_operand(&mut self, id: Id) -> InstResult<Value> {
        let value = self.value(id)?;
        if self.types.shape(value.ty)? != Some(ArithmeticType::Vector(Scalar::I32, 4)) {
            return Err(format!("{} is not a vector of 4 i32", self.sections.describe(id)));
        }
        let all = self.builder.constant(ALL);
        Ok(self.builder.pure(ir::Op::And, &[value.values[0], all]))
    }

    fn bit_of(&mut self, mask: Value, number: Value) -> Value {
        let [zero, one] = [0u32, 1].map(|number| self.builder.constant(number));
        let moved = self.builder.pure(ir::Op::LShr, &[mask, number]);
        let bit = self.builder.pure(ir::Op::And, &[moved, one]);
        self.builder.pure(ir::Op::INe, &[bit, zero])
    }

    /// `operation` is the group operation literal.
    fn bit_count(&mut self, operation: u32, mask: Value) -> InstResult<Value> {
        let relation = match GroupOperation::from_u32(operation) {
            Some(GroupOperation::Reduce) => None,
            Some(GroupOperation::InclusiveScan) => Some(MaskRelation::Le),
            Some(GroupOperation::ExclusiveScan) => Some(MaskRelation::Lt),
            other => return Err(format!("group operation {other:?} does not count bits")),
        };
        let counted = self.among(mask, relation);
        Ok(self.builder.pure(ir::Op::BitCount, &[counted]))
    }

    /// The bits of a mask for invocations in a relation to this one.
    pub(super) fn among(&mut self, mask: Value, relation: Option<MaskRelation>) -> Value {
        match relation {
            None => mask,
            Some(relation) => {
                let others = self.relation_mask(relation);
                self.builder.pure(ir::Op::And, &[mask, others])
            }
        }
    }

    /// The bits of a mask for the invocation's cluster.
    pub(super) fn of_cluster(&mut self, mask: Value, cluster: u32) -> Value {
        if cluster > 16 {
            return mask;
        }
        let own = self.subgroup_local_id();
        let begin = self.builder.constant(!(cluster - 1));
        let first = self.builder.pure(ir::Op::And, &[own, begin]);
        let members = self.builder.constant((1u32 << cluster) - 1);
        let members = self.builder.pure(ir::Op::Shl, &[members, first]);
        self.builder.pure(ir::Op::And, &[mask, members])
    }

    fn of_quad(&mut self, all: bool, condition: Value) -> Value {
        let asked = if all { self.builder.pure(ir::Op::LNot, &[condition]) } else { condition };
        let ballot = self.ballot(asked);
        let quad = self.of_cluster(ballot, 4);
        let zero = self.builder.constant(0u32);
        self.builder.pure(if all { ir::Op::IEq } else { ir::Op::INe }, &[quad, zero])
    }
}
