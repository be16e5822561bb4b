//! Double precision: four registers of four doubles, two for each half of the lanes.

use iced_x86::Code;
use regalloc2::VReg;

use super::super::super::vcode::{AddressingMode, Base, Build, View};
use super::super::double::{Double, DoubleRegisters, NAN, predicate, word_of};
use super::super::{Result, Select};
use super::Avx2;
use super::operand::RegisterPair;
use crate::ir::Op;
use crate::simd::Value;

const COMPARE: Code = Code::VEX_Vcmppd_ymm_ymm_ymmm256_imm8;
const UNORDERED: u8 = 3;
/// The order of word pairs when words interleave; applied twice it is the identity.
const ORDER: u8 = 0xd8;

impl Select<'_, Avx2> {
    /// An operation on doubles; `None` for any other.
    pub(super) fn double_op(&mut self, op: Op, args: &[Value]) -> Result<Option<RegisterPair>> {
        self.code.floats = true;
        if let Some((double, high)) = word_of(op) {
            let doubles = self.doubles(double, args)?;
            return Ok(Some(self.words(&doubles, if high { 0xdd } else { 0x88 })));
        }
        if let Some(predicate) = predicate(op) {
            let (a, b) = (self.joined(args[0], args[1])?, self.joined(args[2], args[3])?);
            let each = a.into_iter().zip(b).map(|(a, b)| self.two(COMPARE, a, b, Some(predicate)));
            let lanes: DoubleRegisters = each.collect();
            return Ok(Some(self.words(&lanes, 0x88)));
        }
        if op == Op::DToFloat {
            let doubles = self.joined(args[0], args[1])?;
            return Ok(Some(self.narrowed(&doubles)));
        }
        Ok(None)
    }

    /// The low or the high words of the doubles of each half.
    fn words(&mut self, doubles: &DoubleRegisters, which: u8) -> RegisterPair {
        std::array::from_fn(|half| {
            let [first, second] = [doubles[2 * half], doubles[2 * half + 1]];
            self.two(Code::VEX_Vshufps_ymm_ymm_ymmm256_imm8, first, second, Some(which))
        })
    }

    fn two(&mut self, code: Code, a: VReg, b: VReg, immediate: Option<u8>) -> VReg {
        let result = self.lanes_reg();
        let build = Build::new(code).def(result, View::Ymm).reads(a, View::Ymm).reads(b, View::Ymm);
        match immediate {
            Some(immediate) => build.imm8(immediate),
            None => build,
        }
        .push(&mut self.code);
        result
    }

    fn one(&mut self, code: Code, a: VReg, immediate: Option<u8>) -> VReg {
        let result = self.lanes_reg();
        let build = Build::new(code).def(result, View::Ymm).reads(a, View::Ymm);
        match immediate {
            Some(immediate) => build.imm8(immediate),
            None => build,
        }
        .push(&mut self.code);
        result
    }

    /// The results of an operation, with canonical NaNs.
    pub(super) fn compute_doubles(&mut self, double: Double, args: &[Value]) -> Result<DoubleRegisters> {
        let code = match double {
            Double::Add => Code::VEX_Vaddpd_ymm_ymm_ymmm256,
            Double::Sub => Code::VEX_Vsubpd_ymm_ymm_ymmm256,
            Double::Mul => Code::VEX_Vmulpd_ymm_ymm_ymmm256,
            Double::Div => Code::VEX_Vdivpd_ymm_ymm_ymmm256,
            Double::Sqrt => Code::VEX_Vsqrtpd_ymm_ymmm256,
            Double::Round(_) => Code::VEX_Vroundpd_ymm_ymmm256_imm8,
            Double::FromFloat => Code::VEX_Vcvtps2pd_ymm_xmmm128,
        };
        let doubles: DoubleRegisters = match double {
            Double::FromFloat => self.of_floats(args[0])?,
            Double::Sqrt | Double::Round(_) => {
                let mode = if let Double::Round(mode) = double { Some(mode) } else { None };
                let a = self.joined(args[0], args[1])?;
                a.into_iter().map(|a| self.one(code, a, mode)).collect()
            }
            _ => {
                let (a, b) = (self.joined(args[0], args[1])?, self.joined(args[2], args[3])?);
                a.into_iter().zip(b).map(|(a, b)| self.two(code, a, b, None)).collect()
            }
        };
        Ok(doubles.into_iter().map(|reg| self.with_one_nan(reg)).collect())
    }

    /// The doubles of low and high words.
    pub(super) fn interleave_words(&mut self, low: Value, high: Value) -> Result<DoubleRegisters> {
        let (lows, highs) = (self.pair(low)?, self.pair(high)?);
        let codes = [Code::VEX_Vpunpckldq_ymm_ymm_ymmm256, Code::VEX_Vpunpckhdq_ymm_ymm_ymmm256];
        let halves = lows.into_iter().zip(highs);
        Ok(halves.flat_map(|(low, high)| codes.map(|code| self.two(code, low, high, None))).collect())
    }

    /// Replaces every NaN by the canonical one.
    fn with_one_nan(&mut self, reg: VReg) -> VReg {
        let unordered = self.two(COMPARE, reg, reg, Some(UNORDERED));
        let result = self.lanes_reg();
        let disp = self.code.pool.vector(NAN).disp();
        let memory = AddressingMode { base: Base::Pool, index: None, scale: 1, disp, broadcast: false };
        let build = Build::new(Code::VEX_Vblendvpd_ymm_ymm_ymmm256_ymm).def(result, View::Ymm);
        build.reads(reg, View::Ymm).memory(memory).reads(unordered, View::Ymm).push(&mut self.code);
        result
    }

    fn of_floats(&mut self, arg: Value) -> Result<DoubleRegisters> {
        let arg = self.pair(arg)?;
        let mut doubles = DoubleRegisters::new();
        for half in arg {
            let low = self.one(Code::VEX_Vpermpd_ymm_ymmm256_imm8, half, Some(ORDER));
            let high = self.lanes_reg();
            let build = Build::new(Code::VEX_Vextractf128_xmmm128_ymm_imm8).def(high, View::Xmm);
            build.reads(low, View::Ymm).imm8(1).push(&mut self.code);
            for lane128 in [low, high] {
                let result = self.lanes_reg();
                let build = Build::new(Code::VEX_Vcvtps2pd_ymm_xmmm128).def(result, View::Ymm);
                build.reads(lane128, View::Xmm).push(&mut self.code);
                doubles.push(result);
            }
        }
        Ok(doubles)
    }

    fn narrowed(&mut self, doubles: &DoubleRegisters) -> RegisterPair {
        std::array::from_fn(|half| {
            let [low, high] = [2 * half, 2 * half + 1].map(|number| {
                let result = self.lanes_reg();
                let build = Build::new(Code::VEX_Vcvtpd2ps_xmm_ymmm256).def(result, View::Xmm);
                build.reads(doubles[number], View::Ymm).push(&mut self.code);
                result
            });
            let both = self.lanes_reg();
            let build = Build::new(Code::VEX_Vinsertf128_ymm_ymm_xmmm128_imm8).def(both, View::Ymm);
            build.reads(low, View::Ymm).reads(high, View::Xmm).imm8(1).push(&mut self.code);
            self.one(Code::VEX_Vpermpd_ymm_ymmm256_imm8, both, Some(ORDER))
        })
    }

    /// Rounds floats to half precision; the result is floats.
    pub(super) fn round_half(&mut self, arg: Value) -> Result<RegisterPair> {
        const NEAREST: u8 = 0;
        let arg = self.pair(arg)?;
        Ok(arg.map(|half| {
            let (halves, result) = (self.lanes_reg(), self.lanes_reg());
            let build = Build::new(Code::VEX_Vcvtps2ph_xmmm128_ymm_imm8).def(halves, View::Xmm);
            build.reads(half, View::Ymm).imm8(NEAREST).push(&mut self.code);
            let build = Build::new(Code::VEX_Vcvtph2ps_ymm_xmmm128).def(result, View::Ymm);
            build.reads(halves, View::Xmm).push(&mut self.code);
            result
        }))
    }
}
