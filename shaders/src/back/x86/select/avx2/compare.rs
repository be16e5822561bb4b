//! Comparisons of lanes, and masks that are held as their complement.
//!
//! The instruction set compares integers for equality and for signed greater. A comparison that it has only the
//! complement of is held so, and most users merge the complement: there is an "and not", and selects exchange their
//! operands.

use iced_x86::Code;

use super::super::super::CompileError;
use super::super::{Result, Select};
use super::Avx2;
use super::operand::RegisterPair;
use crate::ir::Op;
use crate::simd::{InstData, Type, Value};

const EQUAL: Code = Code::VEX_Vpcmpeqd_ymm_ymm_ymmm256;
const GREATER: Code = Code::VEX_Vpcmpgtd_ymm_ymm_ymmm256;
const LESSER: Code = Code::VEX_Vpminud_ymm_ymm_ymmm256;
const GREATEST: Code = Code::VEX_Vpmaxud_ymm_ymm_ymmm256;
/// Compares floats by a predicate.
pub(super) const FLOATS: Code = Code::VEX_Vcmpps_ymm_ymm_ymmm256_imm8;
/// The predicate that either operand is NaN.
pub(super) const UNORDERED: u8 = 0x03;

/// A mask, or the complement of one.
#[derive(Clone, Copy, Debug)]
pub(super) struct Mask {
    pub lanes: RegisterPair,
    pub complement: bool,
}

impl Select<'_, Avx2> {
    /// A mask for users that accept complements.
    pub(super) fn mask(&mut self, value: Value) -> Result<Mask> {
        if let Some((inst, InstData::Pure { op, args })) = self.deferred_def(value) {
            if *op == Op::LNot {
                self.deferred[inst] = 0;
                let mask = self.mask(args[0])?;
                return Ok(Mask { complement: !mask.complement, ..mask });
            }
            if self.kernel.ty(args[0]) == Type::V32 {
                self.deferred[inst] = 0;
                return self.compare_lanes(*op, args)?.ok_or(CompileError::Unsupported(*op));
            }
        }
        Ok(Mask { lanes: self.pair(value)?, complement: false })
    }

    /// Materializes the mask itself.
    pub(super) fn materialise(&mut self, mask: Mask) -> RegisterPair {
        if !mask.complement {
            return mask.lanes;
        }
        let all = self.word(u32::MAX);
        self.op2(Code::VEX_Vpxor_ymm_ymm_ymmm256, mask.lanes, all)
    }

    /// A comparison, if the operation is one.
    pub(super) fn compare_lanes(&mut self, op: Op, args: &[Value]) -> Result<Option<Mask>> {
        let (lanes, complement) = match op {
            Op::IEq | Op::INe => (self.equal(args[0], args[1])?, op == Op::INe),
            Op::SLt => (self.greater(args[1], args[0])?, false),
            Op::SLe => (self.greater(args[0], args[1])?, true),
            Op::ULe => (self.at_most(args[0], args[1])?, false),
            Op::ULt => return self.below(args[0], args[1]).map(Some),
            Op::IsInf => {
                let magnitude = self.with_word(Code::VEX_Vpand_ymm_ymm_ymmm256, args[0], 0x7fff_ffff)?;
                let infinity = self.word(f32::INFINITY.to_bits());
                (self.op2(EQUAL, magnitude, infinity), false)
            }
            _ => {
                let Some(predicate) = predicate(op) else { return Ok(None) };
                self.code.floats = true;
                let first = self.pair(args[0])?;
                let second = if args.len() > 1 { self.source(args[1])? } else { first.into() };
                (self.op(FLOATS, &[first], second, Some(predicate)), false)
            }
        };
        Ok(Some(Mask { lanes, complement }))
    }

    fn equal(&mut self, mut a: Value, mut b: Value) -> Result<RegisterPair> {
        if self.is_memory(a) {
            (a, b) = (b, a);
        }
        let a = self.pair(a)?;
        let b = self.source(b)?;
        Ok(self.op2(EQUAL, a, b))
    }

    fn greater(&mut self, a: Value, b: Value) -> Result<RegisterPair> {
        let a = self.pair(a)?;
        let b = self.source(b)?;
        Ok(self.op2(GREATER, a, b))
    }

    /// Unsigned `a <= b`: `a` is the minimum, or `b` the maximum of both.
    fn at_most(&mut self, a: Value, b: Value) -> Result<RegisterPair> {
        let (code, same, other) = if self.is_memory(a) { (GREATEST, b, a) } else { (LESSER, a, b) };
        let same = self.pair(same)?;
        let other = self.source(other)?;
        let extreme = self.op2(code, same, other);
        Ok(self.op2(EQUAL, extreme, same))
    }

    /// Unsigned `a < b`: `a <= b - 1` for a constant, else the complement of `b <= a`.
    fn below(&mut self, a: Value, b: Value) -> Result<Mask> {
        if let Some(bits) = self.constant(b).filter(|&bits| bits as u32 != 0) {
            let a = self.pair(a)?;
            let last = self.word(bits as u32 - 1);
            let lesser = self.op2(LESSER, a, last);
            return Ok(Mask { lanes: self.op2(EQUAL, lesser, a), complement: false });
        }
        Ok(Mask { lanes: self.at_most(b, a)?, complement: true })
    }
}

/// Predicates that raise no exception on quiet NaN; Q and S forms compare the same.
fn predicate(op: Op) -> Option<u8> {
    Some(match op {
        Op::FOrdEq => 0x00,
        Op::FOrdNe => 0x0c,
        Op::FOrdLt => 0x11,
        Op::FOrdLe => 0x12,
        Op::FUnordEq => 0x08,
        Op::FUnordNe => 0x04,
        Op::FUnordLt => 0x19,
        Op::FUnordLe => 0x1a,
        Op::IsNan => UNORDERED,
        _ => return None,
    })
}
