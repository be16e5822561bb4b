//! Double precision: two registers of eight doubles.

use iced_x86::Code;
use regalloc2::VReg;

use super::super::super::vcode::{Build, View};
use super::super::double::{Double, DoubleRegisters, NAN, predicate, word_of};
use super::super::{Result, Select};
use super::Avx512;
use crate::ir::Op;
use crate::simd::{Inst, Value};

/// The lanes in the order in which words interleave, and the position of each lane in that order.
const ORDER: [u32; 16] = [0, 1, 4, 5, 8, 9, 12, 13, 2, 3, 6, 7, 10, 11, 14, 15];
const PLACES: [u32; 16] = [0, 1, 8, 9, 2, 3, 10, 11, 4, 5, 12, 13, 6, 7, 14, 15];

const UNORDERED: u8 = 3;
const COMPARE: Code = Code::EVEX_Vcmppd_kr_k1_zmm_zmmm512b64_imm8_sae;

impl Select<'_, Avx512> {
    /// An operation on doubles; returns `false` for any other.
    pub(super) fn double_op(&mut self, inst: Inst, op: Op, args: &[Value]) -> Result<bool> {
        if let Some((double, high)) = word_of(op) {
            let doubles = self.doubles(double, args)?;
            let result = self.define_lanes(inst);
            let build = Build::new(Code::EVEX_Vshufps_zmm_k1z_zmm_zmmm512b32_imm8).def(result, View::Zmm);
            let build = build.reads(doubles[0], View::Zmm).reads(doubles[1], View::Zmm);
            build.imm8(if high { 0xdd } else { 0x88 }).push(&mut self.code);
        } else if let Some(predicate) = predicate(op) {
            self.compare_doubles(inst, predicate, args)?;
        } else if op == Op::DToFloat {
            self.doubles_to_floats(inst, args)?;
        } else {
            return Ok(false);
        }
        self.code.floats = true;
        Ok(true)
    }

    /// The results of an operation, with canonical NaNs.
    pub(super) fn compute_doubles(&mut self, double: Double, args: &[Value]) -> Result<DoubleRegisters> {
        let doubles: DoubleRegisters = match double {
            Double::FromFloat => self.floats_to_doubles(args[0])?,
            Double::Sqrt => self.each_double(Code::EVEX_Vsqrtpd_zmm_k1z_zmmm512b64_er, args, None)?,
            Double::Round(mode) => {
                self.each_double(Code::EVEX_Vrndscalepd_zmm_k1z_zmmm512b64_imm8_sae, args, Some(mode))?
            }
            Double::Add => self.both_doubles(Code::EVEX_Vaddpd_zmm_k1z_zmm_zmmm512b64_er, args)?,
            Double::Sub => self.both_doubles(Code::EVEX_Vsubpd_zmm_k1z_zmm_zmmm512b64_er, args)?,
            Double::Mul => self.both_doubles(Code::EVEX_Vmulpd_zmm_k1z_zmm_zmmm512b64_er, args)?,
            Double::Div => self.both_doubles(Code::EVEX_Vdivpd_zmm_k1z_zmm_zmmm512b64_er, args)?,
        };
        Ok(doubles.into_iter().map(|reg| self.with_one_nan(reg)).collect())
    }

    /// The doubles of low and high words.
    pub(super) fn interleave_words(&mut self, low: Value, high: Value) -> Result<DoubleRegisters> {
        let [lows, highs] = [self.lanes(low)?, self.lanes(high)?];
        let codes = [Code::EVEX_Vpunpckldq_zmm_k1z_zmm_zmmm512b32, Code::EVEX_Vpunpckhdq_zmm_k1z_zmm_zmmm512b32];
        let each = codes.into_iter().map(|code| {
            let result = self.lanes_reg();
            self.lanes3(code, result, lows, highs);
            result
        });
        Ok(each.collect())
    }

    fn both_doubles(&mut self, code: Code, args: &[Value]) -> Result<DoubleRegisters> {
        let (a, b) = (self.joined(args[0], args[1])?, self.joined(args[2], args[3])?);
        let each = a.into_iter().zip(b).map(|(a, b)| {
            let result = self.lanes_reg();
            self.lanes3(code, result, a, b);
            result
        });
        Ok(each.collect())
    }

    fn each_double(&mut self, code: Code, args: &[Value], mode: Option<u8>) -> Result<DoubleRegisters> {
        let a = self.joined(args[0], args[1])?;
        let each = a.into_iter().map(|a| {
            let result = self.lanes_reg();
            let build = Build::new(code).def(result, View::Zmm).reads(a, View::Zmm);
            match mode {
                Some(mode) => build.imm8(mode),
                None => build,
            }
            .push(&mut self.code);
            result
        });
        Ok(each.collect())
    }

    /// Replaces every NaN by the canonical one.
    fn with_one_nan(&mut self, reg: VReg) -> VReg {
        let (unordered, result) = (self.mask_reg(), self.lanes_reg());
        let build = Build::new(COMPARE).def(unordered, View::Mask).reads(reg, View::Zmm).reads(reg, View::Zmm);
        build.imm8(UNORDERED).push(&mut self.code);
        let nan = Self::pool_vector(self.code.pool.vector(NAN));
        let build = Build::new(Code::EVEX_Vmovdqa64_zmm_k1z_zmmm512).modify(result, reg, View::Zmm);
        build.memory(nan).mask(unordered).push(&mut self.code);
        result
    }

    fn permuted(&mut self, order: [u32; 16], from: VReg) -> VReg {
        let (places, result) = (self.constant_lanes(order), self.lanes_reg());
        self.lanes3(Code::EVEX_Vpermps_zmm_k1z_zmm_zmmm512b32, result, places, from);
        result
    }

    fn floats_to_doubles(&mut self, arg: Value) -> Result<DoubleRegisters> {
        let arg = self.lanes(arg)?;
        let low = self.permuted(ORDER, arg);
        let high = self.lanes_reg();
        let build = Build::new(Code::EVEX_Vextractf32x8_ymmm256_k1z_zmm_imm8).def(high, View::Ymm);
        build.reads(low, View::Zmm).imm8(1).push(&mut self.code);
        let each = [low, high].into_iter().map(|half| {
            let result = self.lanes_reg();
            let build = Build::new(Code::EVEX_Vcvtps2pd_zmm_k1z_ymmm256b32_sae).def(result, View::Zmm);
            build.reads(half, View::Ymm).push(&mut self.code);
            result
        });
        Ok(each.collect())
    }

    fn doubles_to_floats(&mut self, inst: Inst, args: &[Value]) -> Result {
        let doubles = self.joined(args[0], args[1])?;
        let halves: DoubleRegisters = doubles
            .into_iter()
            .map(|half| {
                let result = self.lanes_reg();
                let build = Build::new(Code::EVEX_Vcvtpd2ps_ymm_k1z_zmmm512b64_er).def(result, View::Ymm);
                build.reads(half, View::Zmm).push(&mut self.code);
                result
            })
            .collect();
        let both = self.lanes_reg();
        let build = Build::new(Code::EVEX_Vinsertf32x8_zmm_k1z_zmm_ymmm256_imm8).def(both, View::Zmm);
        build.reads(halves[0], View::Zmm).reads(halves[1], View::Ymm).imm8(1).push(&mut self.code);
        let places = self.constant_lanes(PLACES);
        let result = self.define_lanes(inst);
        self.lanes3(Code::EVEX_Vpermps_zmm_k1z_zmm_zmmm512b32, result, places, both);
        Ok(())
    }

    /// Masks of eight lanes become vectors of ones, whose low words are moved into order.
    fn compare_doubles(&mut self, inst: Inst, predicate: u8, args: &[Value]) -> Result {
        let (a, b) = (self.joined(args[0], args[1])?, self.joined(args[2], args[3])?);
        let lanes: DoubleRegisters = a
            .into_iter()
            .zip(b)
            .map(|(a, b)| {
                let (mask, ones) = (self.mask_reg(), self.lanes_reg());
                let build = Build::new(COMPARE).def(mask, View::Mask).reads(a, View::Zmm).reads(b, View::Zmm);
                build.imm8(predicate).push(&mut self.code);
                let build = Build::new(Code::EVEX_Vpmovm2q_zmm_kr).def(ones, View::Zmm);
                build.reads(mask, View::Mask).push(&mut self.code);
                ones
            })
            .collect();
        let words = self.lanes_reg();
        let build = Build::new(Code::EVEX_Vshufps_zmm_k1z_zmm_zmmm512b32_imm8).def(words, View::Zmm);
        build.reads(lanes[0], View::Zmm).reads(lanes[1], View::Zmm).imm8(0x88).push(&mut self.code);
        let result = self.define_lanes(inst);
        let build = Build::new(Code::EVEX_Vpmovd2m_kr_zmm).def(result, View::Mask);
        build.reads(words, View::Zmm).push(&mut self.code);
        Ok(())
    }

    /// Rounds floats to half precision; the result is floats.
    pub(super) fn round_half(&mut self, inst: Inst, arg: Value) -> Result {
        let halves = self.as_halves(arg)?;
        let result = self.define_lanes(inst);
        let build = Build::new(Code::EVEX_Vcvtph2ps_zmm_k1z_ymmm256_sae).def(result, View::Zmm);
        build.reads(halves, View::Ymm).push(&mut self.code);
        Ok(())
    }
}
