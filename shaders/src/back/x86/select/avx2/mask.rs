//! Masks: operations on them, and their bits in general registers.

use iced_x86::{Code, ConditionCode};
use regalloc2::VReg;

use super::super::super::CompileError;
use super::super::super::vcode::{Build, View};
use super::super::{Result, Select};
use super::Avx2;
use super::operand::{RegisterPair, Source};
use crate::ir::Op;
use crate::simd::Value;

/// All lanes.
const ALL: u16 = u16::MAX;
const AND: Code = Code::VEX_Vpand_ymm_ymm_ymmm256;
const AND_NOT: Code = Code::VEX_Vpandn_ymm_ymm_ymmm256;
const OR: Code = Code::VEX_Vpor_ymm_ymm_ymmm256;
const TEST: Code = Code::VEX_Vptest_ymm_ymmm256;

impl Select<'_, Avx2> {
    /// An operation on masks.
    pub(super) fn mask_op(&mut self, op: Op, args: &[Value]) -> Result<RegisterPair> {
        match op {
            Op::LAnd => self.mask_and(args[0], args[1]),
            Op::LOr | Op::LXor => {
                let code = if op == Op::LOr { OR } else { Code::VEX_Vpxor_ymm_ymm_ymmm256 };
                let (a, b) = (self.pair(args[0])?, self.pair(args[1])?);
                Ok(self.op2(code, a, b))
            }
            Op::LNot => {
                let mut mask = self.mask(args[0])?;
                mask.complement ^= true;
                Ok(self.materialise(mask))
            }
            Op::BoolToInt => {
                let mask = self.pair(args[0])?;
                Ok(self.shifted(Code::VEX_Vpsrld_ymm_ymm_imm8, mask, 31))
            }
            _ => Err(CompileError::Unsupported(op)),
        }
    }

    /// The "and not" instruction complements its first operand.
    fn mask_and(&mut self, a: Value, b: Value) -> Result<RegisterPair> {
        let (a, b) = (self.mask(a)?, self.mask(b)?);
        Ok(match (a.complement, b.complement) {
            (false, false) => self.op2(AND, a.lanes, b.lanes),
            (true, false) => self.op2(AND_NOT, a.lanes, b.lanes),
            (false, true) => self.op2(AND_NOT, b.lanes, a.lanes),
            (true, true) => {
                let a = self.materialise(a);
                self.op2(AND_NOT, b.lanes, a)
            }
        })
    }

    /// Sets the flags by whether a lane is active; of a complement, by whether not all are.
    pub(super) fn any_lane(&mut self, mask: Value) -> Result<ConditionCode> {
        let mask = self.mask(mask)?;
        let [low, high] = mask.lanes;
        let mut both = low;
        if low != high {
            both = self.lanes_reg();
            let code = if mask.complement { AND } else { OR };
            let build = Build::new(code).def(both, View::Ymm).reads(low, View::Ymm);
            build.reads(high, View::Ymm).push(&mut self.code);
        }
        let test = Build::new(TEST).reads(both, View::Ymm);
        if mask.complement {
            let ones = self.fill(u32::MAX);
            test.reads(ones[0], View::Ymm).push(&mut self.code);
            return Ok(ConditionCode::ae);
        }
        test.reads(both, View::Ymm).push(&mut self.code);
        Ok(ConditionCode::ne)
    }

    /// A constant mask.
    pub(super) fn constant_mask(&mut self, bits: u16) -> RegisterPair {
        match bits {
            0 => self.fill(0),
            ALL => self.fill(u32::MAX),
            _ => self.load_lanes(std::array::from_fn(|lane| if bits >> lane & 1 != 0 { u32::MAX } else { 0 })),
        }
    }

    /// The mask of all lanes or of none, by a truth value in a general register.
    pub(super) fn spread_truth(&mut self, truth: VReg) -> RegisterPair {
        let negated = self.general();
        Build::new(Code::Neg_rm32).modify(negated, truth, View::Dword).push(&mut self.code);
        self.spread(negated)
    }

    /// The bits of a mask in a general register.
    pub(super) fn mask_bits(&mut self, mask: Value) -> Result<VReg> {
        if let Some(bits) = self.constant(mask) {
            let reg = self.general();
            self.set(reg, bits & u64::from(ALL));
            return Ok(reg);
        }
        let lanes = self.pair(mask)?;
        Ok(self.lane_bits(lanes))
    }

    /// As [`Select::mask_bits`], of registers.
    pub(super) fn lane_bits(&mut self, [low, high]: RegisterPair) -> VReg {
        let [low_bits, high_bits, shifted, bits] = std::array::from_fn(|_| self.general());
        for (from, to) in [(low, low_bits), (high, high_bits)] {
            let build = Build::new(Code::VEX_Vmovmskps_r32_ymm).def(to, View::Dword).reads(from, View::Ymm);
            build.push(&mut self.code);
        }
        self.modify_imm8(Code::Shl_rm32_imm8, shifted, high_bits, 8);
        self.modify_by(Code::Or_r32_rm32, bits, shifted, low_bits);
        bits
    }

    /// The mask whose bits are in each lane.
    pub(super) fn mask_of_bits(&mut self, bits: RegisterPair) -> RegisterPair {
        let lanes: Source = self.table(std::array::from_fn(|lane| 1 << lane));
        let own = self.op2(AND, bits, lanes);
        self.op2(Code::VEX_Vpcmpeqd_ymm_ymm_ymmm256, own, lanes)
    }
}
