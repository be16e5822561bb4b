//! Integer arithmetic on lanes.

use iced_x86::Code;
use regalloc2::VReg;

use super::super::super::vcode::{Build, View};
use super::super::{Result, Select};
use super::Avx512;
use super::compare::Comparison;
use super::operand::Source;
use crate::ir::op::works_on_subwords;
use crate::ir::{Op, Type};
use crate::simd::{Inst, InstData, Value};

impl Select<'_, Avx512> {
    /// An operation on vectors.
    pub(super) fn lane_op(&mut self, inst: Inst, op: Op, args: &[Value]) -> Result {
        self.code.floats |= op.result() == Type::F32 || op.params().contains(&Type::F32);
        if self.double_op(inst, op, args)? {
            return Ok(());
        }
        if self.fused(inst, op, args)? {
            return Ok(());
        }
        if works_on_subwords(op) && self.packed(inst, op, args)? {
            return Ok(());
        }
        if let Some((code, commutes)) = binary(op) {
            return self.binary(inst, code, commutes, args);
        }
        if let Some(comparison) = Comparison::of(op, args) {
            return self.compare_lanes(inst, comparison, None);
        }
        match op {
            Op::Shl | Op::LShr | Op::AShr => self.shift_lanes(inst, op, args),
            Op::UMulHigh => self.high_products(inst, Code::EVEX_Vpmuludq_zmm_k1z_zmm_zmmm512b64, args),
            Op::SMulHigh => self.high_products(inst, Code::EVEX_Vpmuldq_zmm_k1z_zmm_zmmm512b64, args),
            Op::INeg => self.constant_with(inst, Code::EVEX_Vpsubd_zmm_k1z_zmm_zmmm512b32, 0, args[0]),
            Op::Not => self.with_constant(inst, Code::EVEX_Vpxord_zmm_k1z_zmm_zmmm512b32, args[0], u32::MAX),
            Op::SAbs => self.unary_lanes(inst, Code::EVEX_Vpabsd_zmm_k1z_zmmm512b32, args[0]),
            Op::BitCount => self.bit_count(inst, args[0]),
            Op::FindUMsb => {
                let zeros = self.lanes_reg();
                let arg = self.source(args[0])?;
                self.push_with(Build::new(Code::EVEX_Vplzcntd_zmm_k1z_zmmm512b32).def(zeros, View::Zmm), arg, None);
                let top = self.lanes_reg();
                self.set_lanes(top, 31);
                let result = self.define_lanes(inst);
                self.lanes3(Code::EVEX_Vpsubd_zmm_k1z_zmm_zmmm512b32, result, top, zeros);
                Ok(())
            }
            _ => self.float_op(inst, op, args),
        }
    }

    /// Three registers: `result = a op b`.
    pub(super) fn lanes3(&mut self, code: Code, result: VReg, a: VReg, b: VReg) {
        Build::new(code).def(result, View::Zmm).reads(a, View::Zmm).reads(b, View::Zmm).push(&mut self.code);
    }

    pub(super) fn unary_lanes(&mut self, inst: Inst, code: Code, arg: Value) -> Result {
        let arg = self.source(arg)?;
        let result = self.define_lanes(inst);
        self.push_with(Build::new(code).def(result, View::Zmm), arg, None);
        Ok(())
    }

    fn binary(&mut self, inst: Inst, code: Code, commutes: bool, args: &[Value]) -> Result {
        let (mut a, mut b) = (args[0], args[1]);
        if commutes && self.is_memory(a) && !self.is_memory(b) {
            (a, b) = (b, a);
        }
        let a = self.lanes(a)?;
        let b = self.source(b)?;
        let result = self.define_lanes(inst);
        self.push_with(Build::new(code).def(result, View::Zmm).reads(a, View::Zmm), b, None);
        Ok(())
    }

    /// Whether a value can be an operand in memory.
    pub(super) fn is_memory(&self, value: Value) -> bool {
        self.constant(value).is_some() || matches!(self.deferred_def(value), Some((_, InstData::Load { .. })))
    }

    /// `constant op arg`.
    fn constant_with(&mut self, inst: Inst, code: Code, constant: u32, arg: Value) -> Result {
        let first = self.lanes_reg();
        self.set_lanes(first, constant);
        let arg = self.source(arg)?;
        let result = self.define_lanes(inst);
        self.push_with(Build::new(code).def(result, View::Zmm).reads(first, View::Zmm), arg, None);
        Ok(())
    }

    /// `arg op constant`.
    pub(super) fn with_constant(&mut self, inst: Inst, code: Code, arg: Value, bits: u32) -> Result {
        let arg = self.lanes(arg)?;
        let result = self.define_lanes(inst);
        let build = Build::new(code).def(result, View::Zmm).reads(arg, View::Zmm);
        self.push_with(build, Source::Word(bits), None);
        Ok(())
    }

    fn shift_lanes(&mut self, inst: Inst, op: Op, args: &[Value]) -> Result {
        let (by_lane, by_imm) = match op {
            Op::Shl => (Code::EVEX_Vpsllvd_zmm_k1z_zmm_zmmm512b32, Code::EVEX_Vpslld_zmm_k1z_zmmm512b32_imm8),
            Op::LShr => (Code::EVEX_Vpsrlvd_zmm_k1z_zmm_zmmm512b32, Code::EVEX_Vpsrld_zmm_k1z_zmmm512b32_imm8),
            _ => (Code::EVEX_Vpsravd_zmm_k1z_zmm_zmmm512b32, Code::EVEX_Vpsrad_zmm_k1z_zmmm512b32_imm8),
        };
        if let Some(amount) = self.constant(args[1]) {
            let a = self.source(args[0])?;
            let result = self.define_lanes(inst);
            self.push_with(Build::new(by_imm).def(result, View::Zmm), a, Some(amount as u8 & 31));
            return Ok(());
        }
        let [a, amount] = self.both(args)?;
        if self.is_shift_amount(args[1]) {
            let result = self.define_lanes(inst);
            self.lanes3(by_lane, result, a, amount);
            return Ok(());
        }
        let low = self.lanes_reg();
        let build = Build::new(Code::EVEX_Vpandd_zmm_k1z_zmm_zmmm512b32).def(low, View::Zmm).reads(amount, View::Zmm);
        self.push_with(build, Source::Word(31), None);
        let result = self.define_lanes(inst);
        self.lanes3(by_lane, result, a, low);
        Ok(())
    }

    /// High halves of the 64-bit products: even and odd lanes separately, then combined.
    fn high_products(&mut self, inst: Inst, multiply: Code, args: &[Value]) -> Result {
        let [a, b] = self.both(args)?;
        let [odd_a, odd_b, even, odd, order] = std::array::from_fn(|_| self.lanes_reg());
        for (from, to) in [(a, odd_a), (b, odd_b)] {
            let build = Build::new(Code::EVEX_Vpsrlq_zmm_k1z_zmmm512b64_imm8).def(to, View::Zmm);
            build.reads(from, View::Zmm).imm8(32).push(&mut self.code);
        }
        self.lanes3(multiply, even, a, b);
        self.lanes3(multiply, odd, odd_a, odd_b);
        // Word 2i + 1 of `even` for lane 2i, and of `odd`, the second table, for lane 2i + 1.
        self.load_constant_lanes(order, std::array::from_fn(|lane| (lane as u32 | 1) + (lane as u32 & 1) * 16));
        let result = self.define_lanes(inst);
        let build = Build::new(Code::EVEX_Vpermt2d_zmm_k1z_zmm_zmmm512b32).modify(result, even, View::Zmm);
        build.reads(order, View::Zmm).reads(odd, View::Zmm).push(&mut self.code);
        Ok(())
    }

    /// By a table of 16 entries for each nibble, then the sum of a word's bytes.
    fn bit_count(&mut self, inst: Inst, arg: Value) -> Result {
        const COUNTS: [u32; 4] = [0x0201_0100, 0x0302_0201, 0x0302_0201, 0x0403_0302];
        let arg = self.lanes(arg)?;
        let [table, low, shifted, high, low_counts, high_counts, counts, ones, pairs] =
            std::array::from_fn(|_| self.lanes_reg());
        self.load_constant_lanes(table, std::array::from_fn(|lane| COUNTS[lane % 4]));
        let and = Code::EVEX_Vpandd_zmm_k1z_zmm_zmmm512b32;
        let build = Build::new(and).def(low, View::Zmm).reads(arg, View::Zmm);
        self.push_with(build, Source::Word(0x0f0f_0f0f), None);
        let build = Build::new(Code::EVEX_Vpsrld_zmm_k1z_zmmm512b32_imm8).def(shifted, View::Zmm);
        build.reads(arg, View::Zmm).imm8(4).push(&mut self.code);
        let build = Build::new(and).def(high, View::Zmm).reads(shifted, View::Zmm);
        self.push_with(build, Source::Word(0x0f0f_0f0f), None);
        self.lanes3(Code::EVEX_Vpshufb_zmm_k1z_zmm_zmmm512, low_counts, table, low);
        self.lanes3(Code::EVEX_Vpshufb_zmm_k1z_zmm_zmmm512, high_counts, table, high);
        self.lanes3(Code::EVEX_Vpaddb_zmm_k1z_zmm_zmmm512, counts, low_counts, high_counts);
        self.set_lanes(ones, 0x0101_0101);
        self.lanes3(Code::EVEX_Vpmaddubsw_zmm_k1z_zmm_zmmm512, pairs, counts, ones);
        let halves = self.lanes_reg();
        self.set_lanes(halves, 0x0001_0001);
        let result = self.define_lanes(inst);
        self.lanes3(Code::EVEX_Vpmaddwd_zmm_k1z_zmm_zmmm512, result, pairs, halves);
        Ok(())
    }
}

/// Operations that are one instruction, and whether they commute.
fn binary(op: Op) -> Option<(Code, bool)> {
    Some(match op {
        Op::IAdd => (Code::EVEX_Vpaddd_zmm_k1z_zmm_zmmm512b32, true),
        Op::ISub => (Code::EVEX_Vpsubd_zmm_k1z_zmm_zmmm512b32, false),
        Op::IMul => (Code::EVEX_Vpmulld_zmm_k1z_zmm_zmmm512b32, true),
        Op::UMin => (Code::EVEX_Vpminud_zmm_k1z_zmm_zmmm512b32, true),
        Op::UMax => (Code::EVEX_Vpmaxud_zmm_k1z_zmm_zmmm512b32, true),
        Op::SMin => (Code::EVEX_Vpminsd_zmm_k1z_zmm_zmmm512b32, true),
        Op::SMax => (Code::EVEX_Vpmaxsd_zmm_k1z_zmm_zmmm512b32, true),
        Op::And => (Code::EVEX_Vpandd_zmm_k1z_zmm_zmmm512b32, true),
        Op::Or => (Code::EVEX_Vpord_zmm_k1z_zmm_zmmm512b32, true),
        Op::Xor => (Code::EVEX_Vpxord_zmm_k1z_zmm_zmmm512b32, true),
        Op::FAdd => (Code::EVEX_Vaddps_zmm_k1z_zmm_zmmm512b32_er, true),
        Op::FSub => (Code::EVEX_Vsubps_zmm_k1z_zmm_zmmm512b32_er, false),
        Op::FMul => (Code::EVEX_Vmulps_zmm_k1z_zmm_zmmm512b32_er, true),
        Op::FDiv => (Code::EVEX_Vdivps_zmm_k1z_zmm_zmmm512b32_er, false),
        Op::Scale => (Code::EVEX_Vscalefps_zmm_k1z_zmm_zmmm512b32_er, false),
        _ => return None,
    })
}
