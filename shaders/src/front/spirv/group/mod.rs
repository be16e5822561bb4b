//! Group and subgroup instructions, in terms of the IR's three kinds of operations: ballots, shuffles and scans.
//!
//! A ballot is one word, since a subgroup has 16 invocations; the other words of SPIR-V's vectors are 0.

mod arithmetic;
mod ballot;
mod list_ranking;
mod shuffle;

use smallvec::SmallVec;
use spirv::Op;

use super::arithmetic::{ArithmeticType, Num, Nums, widths};
use super::composite::Composite;
use super::scalar::Scalar;
use super::translate::Translator;
use super::words::{Id, Inst, InstResult, operand};
use crate::abi::SUBGROUP_SIZE;
use crate::ir::{self, BuiltIn, Scope, SubgroupOp, Type, Value};

/// One bit for each invocation.
const ALL: u32 = (1 << SUBGROUP_SIZE) - 1;

/// A built-in subgroup mask, by its relation to the invocation.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum MaskRelation {
    Eq,
    Ge,
    Gt,
    Le,
    Lt,
}

impl Translator<'_> {
    /// The result of a group instruction: its first operand is the scope.
    pub(super) fn group(&mut self, inst: &Inst, operands: &[u32]) -> InstResult<Composite> {
        self.group_scope(operands)?;
        self.subgroup(inst, &operands[1..])
    }

    /// The result of a subgroup instruction without a scope.
    pub(super) fn subgroup(&mut self, inst: &Inst, operands: &[u32]) -> InstResult<Composite> {
        let values = self.group_values(inst, operands)?;
        self.typed(inst.ty, &values)
    }

    /// Vulkan's groups are subgroups (VUID-StandaloneSpirv-None-04642).
    fn group_scope(&self, operands: &[u32]) -> InstResult<()> {
        match self.scope(operand(operands, 0)?)? {
            Scope::Subgroup => Ok(()),
            other => Err(format!("the scope is {}, but must be Subgroup", other.name())),
        }
    }

    /// The values of the operands after the scope.
    fn group_values(&mut self, inst: &Inst, operands: &[u32]) -> InstResult<Vec<Value>> {
        let at = |index| operand(operands, index);
        let one = |value: Value| Ok(vec![value]);
        match inst.op {
            Op::GroupNonUniformElect => {
                let first = self.first_active();
                let own = self.subgroup_local_id();
                one(self.builder.pure(ir::Op::IEq, &[own, first]))
            }
            Op::GroupNonUniformAll | Op::SubgroupAllKHR => {
                let condition = self.scalar(at(0)?, Scalar::Bool)?;
                one(self.all(condition))
            }
            Op::GroupNonUniformAny | Op::SubgroupAnyKHR => {
                let condition = self.scalar(at(0)?, Scalar::Bool)?;
                one(self.any(condition))
            }
            Op::GroupNonUniformAllEqual | Op::SubgroupAllEqualKHR => {
                let value = self.group_operand(at(0)?)?;
                one(self.all_equal(&value)?)
            }
            Op::GroupNonUniformPartitionEXT => {
                let value = self.group_operand(at(0)?)?;
                let mask = self.partition(&value)?;
                Ok(self.ballot_vector(mask))
            }
            Op::GroupNonUniformBroadcast
            | Op::GroupNonUniformShuffle
            | Op::GroupNonUniformShuffleXor
            | Op::GroupNonUniformShuffleUp
            | Op::GroupNonUniformShuffleDown
            | Op::GroupNonUniformRotateKHR
            | Op::GroupNonUniformQuadBroadcast
            | Op::GroupNonUniformQuadSwap
            | Op::GroupNonUniformBroadcastFirst
            | Op::SubgroupReadInvocationKHR
            | Op::SubgroupFirstInvocationKHR => self.shuffled(inst, operands),
            Op::GroupNonUniformBallot
            | Op::GroupNonUniformInverseBallot
            | Op::GroupNonUniformBallotBitExtract
            | Op::GroupNonUniformBallotBitCount
            | Op::GroupNonUniformBallotFindLSB
            | Op::GroupNonUniformBallotFindMSB
            | Op::GroupNonUniformQuadAllKHR
            | Op::GroupNonUniformQuadAnyKHR
            | Op::SubgroupBallotKHR => self.ballots(inst.op, inst.ty, operands),
            _ => self.combine_values(inst, operands),
        }
    }

    /// Scalars of a scalar or vector operand.
    fn group_operand(&mut self, id: Id) -> InstResult<(Composite, Nums)> {
        let value = self.value(id)?;
        let shape = match self.types.shape(value.ty)? {
            Some(shape @ (ArithmeticType::Scalar(_) | ArithmeticType::Vector(..))) => shape,
            _ => return Err(format!("{} is not a scalar or vector", self.sections.describe(id))),
        };
        let nums = super::arithmetic::of_values(shape, &value.values);
        let nums = nums.ok_or("the operand does not have the scalars of its type")?;
        if nums.iter().any(|num| num.ty == Scalar::Handle) {
            return Err("images and samplers cannot be subgroup operands".into());
        }
        Ok((value, nums))
    }

    /// An operand of the result's type.
    fn group_operand_of(&mut self, inst: &Inst, id: Id) -> InstResult<Nums> {
        let (value, nums) = self.group_operand(id)?;
        super::composite::expect_type(inst.ty, value.ty)?;
        Ok(nums)
    }

    /// The invocation's index in its subgroup.
    fn subgroup_local_id(&mut self) -> Value {
        self.builtin(BuiltIn::SubgroupLocalInvocationId, 0)
    }

    fn ballot(&mut self, condition: Value) -> Value {
        self.builder.subgroup(SubgroupOp::Ballot, &[condition])
    }

    /// The active invocations of the subgroup.
    fn active(&mut self) -> Value {
        let yes = self.builder.constant(true);
        self.ballot(yes)
    }

    /// The first active invocation.
    fn first_active(&mut self) -> Value {
        let active = self.active();
        self.builder.pure(ir::Op::FindLsb, &[active])
    }

    fn any(&mut self, condition: Value) -> Value {
        let ballot = self.ballot(condition);
        let zero = self.builder.constant(0u32);
        self.builder.pure(ir::Op::INe, &[ballot, zero])
    }

    fn all(&mut self, condition: Value) -> Value {
        let not = self.builder.pure(ir::Op::LNot, &[condition]);
        let ballot = self.ballot(not);
        let zero = self.builder.constant(0u32);
        self.builder.pure(ir::Op::IEq, &[ballot, zero])
    }

    /// The value in another invocation.
    fn num_of(&mut self, num: Num, number: Value) -> Num {
        if num.ty == Scalar::Bool {
            let word = self.builder.pure(ir::Op::BoolToInt, &[num.low]);
            let word = self.builder.subgroup(SubgroupOp::Shuffle(Type::I32), &[word, number]);
            let zero = self.builder.constant(0u32);
            return Num::new(num.ty, self.builder.pure(ir::Op::INe, &[word, zero]));
        }
        let words: SmallVec<[Value; 2]> =
            num.values().map(|word| self.builder.subgroup(SubgroupOp::Shuffle(num.ty.ty()), &[word, number])).collect();
        match words[..] {
            [low, high] => Num::wide(num.ty, [low, high]),
            _ => Num::new(num.ty, words[0]),
        }
    }

    /// Whether two values of one type are equal; floats are compared as numbers.
    fn equal(&mut self, a: Num, b: Num) -> InstResult<Value> {
        let op = match a.ty {
            Scalar::Bool => {
                let differ = self.builder.pure(ir::Op::LXor, &[a.low, b.low]);
                return Ok(self.builder.pure(ir::Op::LNot, &[differ]));
            }
            ty if ty.is_float() => ir::Op::FOrdEq,
            _ => ir::Op::IEq,
        };
        Ok(widths::pure(&mut self.builder, op, &[a, b])?.low)
    }

    /// Whether all components equal those of another invocation.
    fn equals_that_of(&mut self, value: &(Composite, Nums), number: Value) -> InstResult<Value> {
        let mut all = self.builder.constant(true);
        for &num in &value.1 {
            let other = self.num_of(num, number);
            let equal = self.equal(num, other)?;
            all = self.builder.pure(ir::Op::LAnd, &[all, equal]);
        }
        Ok(all)
    }

    fn all_equal(&mut self, value: &(Composite, Nums)) -> InstResult<Value> {
        let first = self.first_active();
        let equal = self.equals_that_of(value, first)?;
        Ok(self.all(equal))
    }

    /// For each invocation, the mask of those with the same value: compares with the value of each invocation in turn.
    fn partition(&mut self, value: &(Composite, Nums)) -> InstResult<Value> {
        let mut mask = self.builder.constant(0u32);
        for number in 0..SUBGROUP_SIZE {
            let number = self.builder.constant(number);
            let equal = self.equals_that_of(value, number)?;
            let ballot = self.ballot(equal);
            // Invocations with equal values form one part.
            mask = self.builder.select(equal, ballot, mask);
        }
        // A value that does not equal itself (NaN) is a part of its own.
        let own = self.relation_mask(MaskRelation::Eq);
        Ok(self.builder.pure(ir::Op::Or, &[mask, own]))
    }

    /// As `SubgroupEqMask` and its siblings are laid out: a word, then zeros.
    pub(super) fn relation(&mut self, relation: MaskRelation) -> Vec<Value> {
        let mask = self.relation_mask(relation);
        self.ballot_vector(mask)
    }

    /// The invocations that are in a relation to this one.
    fn relation_mask(&mut self, relation: MaskRelation) -> Value {
        let own = self.subgroup_local_id();
        let [one, two, all] = [1u32, 2, ALL].map(|number| self.builder.constant(number));
        let bit = if matches!(relation, MaskRelation::Le | MaskRelation::Gt) { two } else { one };
        let bit = self.builder.pure(ir::Op::Shl, &[bit, own]);
        let below = |this: &mut Self| this.builder.pure(ir::Op::ISub, &[bit, one]);
        match relation {
            MaskRelation::Eq => bit,
            MaskRelation::Lt | MaskRelation::Le => below(self),
            MaskRelation::Ge | MaskRelation::Gt => {
                let below = below(self);
                self.builder.pure(ir::Op::Xor, &[below, all])
            }
        }
    }

    fn ballot_vector(&mut self, mask: Value) -> Vec<Value> {
        let zero = self.builder.constant(0u32);
        vec![mask, zero, zero, zero]
    }
}
