//! Subgroup arithmetic: reductions, scans, clusters and partitions.
//!
//! Up to 32 bits, an instruction is one operation of the IR, with the result truncated or rounded to the operand width;
//! halves are combined as floats and rounded once. Wider values, and partitions, are scanned by list ranking
//! (`list_ranking`). Booleans use ballots.

use spirv::{GroupOperation, Op};

use super::super::arithmetic::{Num, widths};
use super::super::scalar::Scalar;
use super::super::translate::Translator;
use super::super::words::{Inst, InstResult, operand};
use super::MaskRelation;
use super::list_ranking::ScanKind;
use crate::abi::SUBGROUP_SIZE;
use crate::ir::{self, SubgroupOp, Value};

/// Which values are combined.
#[derive(Clone, Copy, Debug)]
enum CombinedLanes {
    /// Those of aligned clusters of this size.
    Cluster(u32),
    Inclusive,
    Exclusive,
    /// Those of the invocations in a mask.
    Partition(Value, ScanKind),
}

/// The binary operation.
fn binary(op: Op) -> ir::Op {
    match op {
        Op::GroupNonUniformIAdd => ir::Op::IAdd,
        Op::GroupNonUniformFAdd => ir::Op::FAdd,
        Op::GroupNonUniformIMul => ir::Op::IMul,
        Op::GroupNonUniformFMul => ir::Op::FMul,
        Op::GroupNonUniformSMin => ir::Op::SMin,
        Op::GroupNonUniformUMin => ir::Op::UMin,
        Op::GroupNonUniformFMin => ir::Op::FMin,
        Op::GroupNonUniformSMax => ir::Op::SMax,
        Op::GroupNonUniformUMax => ir::Op::UMax,
        Op::GroupNonUniformFMax => ir::Op::FMax,
        Op::GroupNonUniformBitwiseAnd => ir::Op::And,
        Op::GroupNonUniformBitwiseOr => ir::Op::Or,
        Op::GroupNonUniformBitwiseXor => ir::Op::Xor,
        Op::GroupNonUniformLogicalAnd => ir::Op::LAnd,
        Op::GroupNonUniformLogicalOr => ir::Op::LOr,
        _ => ir::Op::LXor,
    }
}

impl Translator<'_> {
    pub(super) fn combine_values(&mut self, inst: &Inst, operands: &[u32]) -> InstResult<Vec<Value>> {
        let op = binary(inst.op);
        let nums = self.group_operand_of(inst, operand(operands, 1)?)?;
        let which = self.which(operand(operands, 0)?, operands.get(2).copied())?;
        let fits = match op.params()[0] {
            ir::Type::Bool => nums[0].ty == Scalar::Bool,
            ir::Type::F32 => nums[0].ty.is_float(),
            _ => nums[0].ty.is_int(),
        };
        if !fits {
            return Err(format!("the operation does not exist for {}", nums[0].ty));
        }
        let results: InstResult<Vec<Num>> = nums.into_iter().map(|num| self.one_together(op, num, which)).collect();
        Ok(Self::flat_words(results?))
    }

    fn which(&mut self, operation: u32, last: Option<u32>) -> InstResult<CombinedLanes> {
        let last = || last.ok_or("the last operand is missing");
        Ok(match GroupOperation::from_u32(operation) {
            Some(GroupOperation::Reduce) => CombinedLanes::Cluster(SUBGROUP_SIZE),
            Some(GroupOperation::InclusiveScan) => CombinedLanes::Inclusive,
            Some(GroupOperation::ExclusiveScan) => CombinedLanes::Exclusive,
            // A cluster is at most the subgroup, even if the module asks for more.
            Some(GroupOperation::ClusteredReduce) => CombinedLanes::Cluster(self.cluster(last()?)?.min(SUBGROUP_SIZE)),
            Some(GroupOperation::PartitionedReduceEXT) => {
                CombinedLanes::Partition(self.mask_operand(last()?)?, ScanKind::All)
            }
            Some(GroupOperation::PartitionedInclusiveScanEXT) => {
                CombinedLanes::Partition(self.mask_operand(last()?)?, ScanKind::Inclusive)
            }
            Some(GroupOperation::PartitionedExclusiveScanEXT) => {
                CombinedLanes::Partition(self.mask_operand(last()?)?, ScanKind::Exclusive)
            }
            None => return Err(format!("there is no group operation {operation}")),
        })
    }

    fn one_together(&mut self, op: ir::Op, num: Num, which: CombinedLanes) -> InstResult<Num> {
        if num.ty == Scalar::Bool {
            return Ok(Num::new(num.ty, self.combine_bools(op, num.low, which)));
        }
        let (members, part) = match which {
            CombinedLanes::Partition(mask, part) => {
                let active = self.active();
                (self.builder.pure(ir::Op::And, &[mask, active]), part)
            }
            _ if num.ty.words() == 1 => return Ok(self.combine_words(op, num, which)),
            CombinedLanes::Cluster(cluster) => {
                let active = self.active();
                (self.of_cluster(active, cluster), ScanKind::All)
            }
            CombinedLanes::Inclusive => (self.active(), ScanKind::Inclusive),
            CombinedLanes::Exclusive => (self.active(), ScanKind::Exclusive),
        };
        self.scan_by_ranking(op, num, members, part)
    }

    /// Combines values of one word.
    fn combine_words(&mut self, op: ir::Op, num: Num, which: CombinedLanes) -> Num {
        let signed = matches!(op, ir::Op::SMin | ir::Op::SMax);
        let value = if signed { widths::signed(&mut self.builder, num) } else { num.low };
        let together = match which {
            CombinedLanes::Inclusive => SubgroupOp::Inclusive(op),
            CombinedLanes::Exclusive => SubgroupOp::Exclusive(op),
            CombinedLanes::Cluster(cluster) => SubgroupOp::Reduce(op, cluster as u8),
            CombinedLanes::Partition(..) => unreachable!("partitions use list ranking"),
        };
        let value = self.builder.subgroup(together, &[value]);
        let value = match num.ty {
            Scalar::F16 if matches!(op, ir::Op::FAdd | ir::Op::FMul) => self.builder.pure(ir::Op::RoundHalf, &[value]),
            // The identity of a 32-bit operation differs from that of a narrower one.
            Scalar::I8 | Scalar::I16 if matches!(op, ir::Op::SMin | ir::Op::SMax | ir::Op::UMin) => {
                let identity = super::list_ranking::identity(num.ty, op).unwrap_or(0) as u32;
                let above = 32 - num.ty.bits();
                let limit =
                    if signed { ((identity << above).cast_signed() >> above).cast_unsigned() } else { identity };
                let limit = self.builder.constant(limit);
                self.builder.pure(op, &[value, limit])
            }
            _ => value,
        };
        Num::new(num.ty, widths::cut(&mut self.builder, value, num.ty))
    }

    fn combine_bools(&mut self, op: ir::Op, value: Value, which: CombinedLanes) -> Value {
        let [zero, one] = [0u32, 1].map(|number| self.builder.constant(number));
        // All are true if none is false.
        let asked = if op == ir::Op::LAnd { self.builder.pure(ir::Op::LNot, &[value]) } else { value };
        let ballot = self.ballot(asked);
        let part = |part| match part {
            ScanKind::All => None,
            ScanKind::Inclusive => Some(MaskRelation::Le),
            ScanKind::Exclusive => Some(MaskRelation::Lt),
        };
        let members = match which {
            CombinedLanes::Cluster(SUBGROUP_SIZE) => ballot,
            CombinedLanes::Cluster(cluster) => self.of_cluster(ballot, cluster),
            CombinedLanes::Inclusive => self.among(ballot, Some(MaskRelation::Le)),
            CombinedLanes::Exclusive => self.among(ballot, Some(MaskRelation::Lt)),
            CombinedLanes::Partition(mask, which) => {
                let members = self.builder.pure(ir::Op::And, &[ballot, mask]);
                self.among(members, part(which))
            }
        };
        match op {
            ir::Op::LAnd => self.builder.pure(ir::Op::IEq, &[members, zero]),
            ir::Op::LOr => self.builder.pure(ir::Op::INe, &[members, zero]),
            _ => {
                let count = self.builder.pure(ir::Op::BitCount, &[members]);
                let odd = self.builder.pure(ir::Op::And, &[count, one]);
                self.builder.pure(ir::Op::INe, &[odd, zero])
            }
        }
    }
}
