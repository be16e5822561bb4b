//! Scans of values that the IR has no operation for, and scans over some invocations only: each invocation combines its
//! value with that of the previous member and follows that one's link, so four steps cover the subgroup (Wyllie's list
//! ranking).

use super::MaskRelation;
use crate::front::spirv::arithmetic::{Num, widths};
use crate::front::spirv::scalar::Scalar;
use crate::front::spirv::translate::Translator;
use crate::front::spirv::words::InstResult;
use crate::ir::{self, Op, SubgroupOp, Type, Value};

/// Which members' values are combined.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum ScanKind {
    All,
    Inclusive,
    Exclusive,
}

/// The identity of an operation, as the bits of a number of that type.
pub(super) fn identity(ty: Scalar, op: Op) -> Option<u64> {
    let all = u64::MAX >> (64 - ty.bits());
    let float = |wide: f64, half: u32| match ty {
        Scalar::F64 => wide.to_bits(),
        // Halves are represented as floats.
        _ => u64::from(half),
    };
    Some(match op {
        Op::IAdd | Op::Or | Op::Xor | Op::UMax => 0,
        Op::IMul => 1,
        Op::And | Op::UMin => all,
        Op::SMin => all >> 1,
        Op::SMax => all ^ (all >> 1),
        Op::FAdd => 0,
        Op::FMul => float(1.0, ir::identity(op)?),
        Op::FMin => float(f64::INFINITY, ir::identity(op)?),
        Op::FMax => float(f64::NEG_INFINITY, ir::identity(op)?),
        _ => return None,
    })
}

impl Translator<'_> {
    /// Scans the values of the members; the mask must be the same for all members.
    pub(super) fn scan_by_ranking(&mut self, op: Op, num: Num, members: Value, part: ScanKind) -> InstResult<Num> {
        let none = self.builder.constant(u32::MAX);
        let below = self.among(members, Some(MaskRelation::Lt));
        let before = self.builder.pure(Op::FindUMsb, &[below]);
        let (mut from, mut sum) = (before, num);
        for step in 0..4 {
            let is_there = self.builder.pure(Op::INe, &[from, none]);
            let other = self.num_of(sum, from);
            let both = widths::pure(&mut self.builder, op, &[other, sum])?;
            sum = widths::select(&mut self.builder, is_there, both, sum);
            if step < 3 {
                let next = self.builder.subgroup(SubgroupOp::Shuffle(Type::I32), &[from, from]);
                from = self.builder.select(is_there, next, none);
            }
        }
        Ok(match part {
            ScanKind::Inclusive => sum,
            ScanKind::All => {
                let last = self.builder.pure(Op::FindUMsb, &[members]);
                self.num_of(sum, last)
            }
            ScanKind::Exclusive => {
                let is_there = self.builder.pure(Op::INe, &[before, none]);
                let other = self.num_of(sum, before);
                let bits = identity(num.ty, op).ok_or("the operation has no identity")?;
                let words = [bits as u32, (bits >> 32) as u32];
                let words = match num.ty.ty() {
                    Type::F32 => words.map(|word| self.builder.constant(f32::from_bits(word))),
                    _ => words.map(|word| self.builder.constant(word)),
                };
                let identity = if num.ty.words() == 2 { Num::wide(num.ty, words) } else { Num::new(num.ty, words[0]) };
                widths::select(&mut self.builder, is_there, other, identity)
            }
        })
    }
}
