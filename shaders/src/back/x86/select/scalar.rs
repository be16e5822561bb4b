//! Uniform integers and truth values in general registers.

use iced_x86::{Code, ConditionCode, OpKind};
use regalloc2::VReg;

use super::super::CompileError;
use super::super::encode::conditional;
use super::super::vcode::{AddressRegisters, Build, View};
use super::{Result, Select, VectorIsa};
use crate::ir::Op;
use crate::simd::{Inst, Type, Value};

impl<V: VectorIsa> Select<'_, V> {
    /// A scalar operation.
    pub(super) fn scalar(&mut self, inst: Inst, op: Op, args: &[Value]) -> Result {
        match op {
            Op::IAdd | Op::ISub => self.sum(inst, op, args),
            Op::IMul => self.product(inst, args),
            Op::UMulHigh | Op::SMulHigh => self.high_product(inst, op, args),
            Op::INeg => self.modify(inst, Code::Neg_rm32, args[0]),
            Op::Not => self.modify(inst, Code::Not_rm32, args[0]),
            Op::SAbs => self.magnitude(inst, args[0]),
            Op::UMin => self.lesser(inst, ConditionCode::b, args),
            Op::UMax => self.lesser(inst, ConditionCode::a, args),
            Op::SMin => self.lesser(inst, ConditionCode::l, args),
            Op::SMax => self.lesser(inst, ConditionCode::g, args),
            Op::And | Op::LAnd => self.logic(inst, [Code::And_r32_rm32, Code::And_rm32_imm32], args),
            Op::Or | Op::LOr => self.logic(inst, [Code::Or_r32_rm32, Code::Or_rm32_imm32], args),
            Op::Xor | Op::LXor => self.logic(inst, [Code::Xor_r32_rm32, Code::Xor_rm32_imm32], args),
            Op::Shl => self.shift(inst, [Code::VEX_Shlx_r32_rm32_r32, Code::Shl_rm32_imm8], args),
            Op::LShr => self.shift(inst, [Code::VEX_Shrx_r32_rm32_r32, Code::Shr_rm32_imm8], args),
            Op::AShr => self.shift(inst, [Code::VEX_Sarx_r32_rm32_r32, Code::Sar_rm32_imm8], args),
            Op::BitCount => self.unary(inst, Code::Popcnt_r32_rm32, args[0]),
            Op::FindUMsb => self.highest_bit(inst, args[0]),
            Op::IEq | Op::INe | Op::ULt | Op::ULe | Op::SLt | Op::SLe | Op::LNot => self.truth(inst),
            _ => Err(CompileError::Unsupported(op)),
        }
    }

    /// Materializes a truth value that its user did not merge, as 0 or 1.
    pub(super) fn truth(&mut self, inst: Inst) -> Result {
        let condition = self.compare(inst)?;
        let byte = self.general();
        let result = self.define(inst);
        Build::new(conditional(condition).0).def(byte, View::Byte).push(&mut self.code);
        Build::new(Code::Movzx_r32_rm8).def(result, View::Dword).reads(byte, View::Byte).push(&mut self.code);
        Ok(())
    }

    fn sum(&mut self, inst: Inst, op: Op, args: &[Value]) -> Result {
        let (mut a, mut b) = (args[0], args[1]);
        if op == Op::IAdd && self.constant(a).is_some() {
            (a, b) = (b, a);
        }
        let base = self.reg(a)?;
        if let Some(constant) = self.immediate(b) {
            let disp = if op == Op::IAdd { constant } else { constant.wrapping_neg() };
            let result = self.define(inst);
            let place = AddressRegisters { base, index: None, scale: 1, disp, broadcast: false };
            Build::new(Code::Lea_r32_m).def(result, View::Dword).at(&place).push(&mut self.code);
        } else if op == Op::IAdd {
            let index = Some(self.reg(b)?);
            let result = self.define(inst);
            let place = AddressRegisters { base, index, scale: 1, disp: 0, broadcast: false };
            Build::new(Code::Lea_r32_m).def(result, View::Dword).at(&place).push(&mut self.code);
        } else {
            let b = self.reg(b)?;
            let result = self.define(inst);
            self.modify_by(Code::Sub_r32_rm32, result, base, b);
        }
        Ok(())
    }

    fn product(&mut self, inst: Inst, args: &[Value]) -> Result {
        let (a, b) = if self.constant(args[0]).is_some() { (args[1], args[0]) } else { (args[0], args[1]) };
        let a = self.reg(a)?;
        match self.constant(b).map(|bits| bits as u32) {
            Some(bits) if bits.is_power_of_two() => {
                let result = self.define(inst);
                self.modify_imm8(Code::Shl_rm32_imm8, result, a, bits.trailing_zeros() as u8);
            }
            Some(bits) => {
                let result = self.define(inst);
                let build = Build::new(Code::Imul_r32_rm32_imm32).def(result, View::Dword).reads(a, View::Dword);
                build.imm(OpKind::Immediate32, i64::from(bits)).push(&mut self.code);
            }
            None => {
                let b = self.reg(b)?;
                let result = self.define(inst);
                self.modify_by(Code::Imul_r32_rm32, result, a, b);
            }
        }
        Ok(())
    }

    /// The high half of the 64-bit product of two extended factors.
    fn high_product(&mut self, inst: Inst, op: Op, args: &[Value]) -> Result {
        let [mut a, mut b] = [self.reg(args[0])?, self.reg(args[1])?];
        if op == Op::SMulHigh {
            a = self.sign_extend(a);
            b = self.sign_extend(b);
        }
        let product = self.general();
        let result = self.define(inst);
        let build = Build::new(Code::Imul_r64_rm64).modify(product, a, View::Qword);
        build.reads(b, View::Qword).push(&mut self.code);
        Build::new(Code::Shr_rm64_imm8).modify(result, product, View::Qword).imm8(32).push(&mut self.code);
        Ok(())
    }

    fn sign_extend(&mut self, reg: VReg) -> VReg {
        let wide = self.general();
        Build::new(Code::Movsxd_r64_rm32).def(wide, View::Qword).reads(reg, View::Dword).push(&mut self.code);
        wide
    }

    fn modify(&mut self, inst: Inst, code: Code, arg: Value) -> Result {
        let arg = self.reg(arg)?;
        let result = self.define(inst);
        Build::new(code).modify(result, arg, View::Dword).push(&mut self.code);
        Ok(())
    }

    fn unary(&mut self, inst: Inst, code: Code, arg: Value) -> Result {
        let arg = self.reg(arg)?;
        let result = self.define(inst);
        Build::new(code).def(result, View::Dword).reads(arg, View::Dword).push(&mut self.code);
        Ok(())
    }

    /// `result = a op b` for an instruction that overwrites `a`.
    pub(super) fn modify_by(&mut self, code: Code, result: VReg, a: VReg, b: VReg) {
        Build::new(code).modify(result, a, View::Dword).reads(b, View::Dword).push(&mut self.code);
    }

    pub(super) fn modify_imm8(&mut self, code: Code, result: VReg, a: VReg, value: u8) {
        Build::new(code).modify(result, a, View::Dword).imm8(value).push(&mut self.code);
    }

    /// Absolute value: negates, and selects the original if the negated number is negative.
    fn magnitude(&mut self, inst: Inst, arg: Value) -> Result {
        let arg = self.reg(arg)?;
        let negated = self.general();
        let result = self.define(inst);
        Build::new(Code::Neg_rm32).modify(negated, arg, View::Dword).push(&mut self.code);
        self.modify_by(Code::Cmovs_r32_rm32, result, negated, arg);
        Ok(())
    }

    /// The first operand if `condition` holds for first and second, else the second.
    fn lesser(&mut self, inst: Inst, condition: ConditionCode, args: &[Value]) -> Result {
        let [a, b] = [self.reg(args[0])?, self.reg(args[1])?];
        let result = self.define(inst);
        Build::new(Code::Cmp_r32_rm32).reads(a, View::Dword).reads(b, View::Dword).push(&mut self.code);
        self.modify_by(conditional(condition).1, result, b, a);
        Ok(())
    }

    fn logic(&mut self, inst: Inst, [by_reg, by_imm]: [Code; 2], args: &[Value]) -> Result {
        let (a, b) = if self.constant(args[0]).is_some() { (args[1], args[0]) } else { (args[0], args[1]) };
        let a = self.reg(a)?;
        if let Some(constant) = self.immediate(b) {
            let result = self.define(inst);
            let build = Build::new(by_imm).modify(result, a, View::Dword);
            build.imm(OpKind::Immediate32, i64::from(constant)).push(&mut self.code);
        } else {
            let b = self.reg(b)?;
            let result = self.define(inst);
            self.modify_by(by_reg, result, a, b);
        }
        Ok(())
    }

    fn shift(&mut self, inst: Inst, [by_reg, by_imm]: [Code; 2], args: &[Value]) -> Result {
        let a = self.reg(args[0])?;
        if let Some(amount) = self.constant(args[1]) {
            let result = self.define(inst);
            self.modify_imm8(by_imm, result, a, amount as u8 & 31);
        } else {
            let amount = self.reg(args[1])?;
            let result = self.define(inst);
            let build = Build::new(by_reg).def(result, View::Dword).reads(a, View::Dword);
            build.reads(amount, View::Dword).push(&mut self.code);
        }
        Ok(())
    }

    /// 31 minus the number of leading zeros.
    fn highest_bit(&mut self, inst: Inst, arg: Value) -> Result {
        let arg = self.reg(arg)?;
        let [zeros, negated] = [self.general(), self.general()];
        let result = self.define(inst);
        Build::new(Code::Lzcnt_r32_rm32).def(zeros, View::Dword).reads(arg, View::Dword).push(&mut self.code);
        Build::new(Code::Neg_rm32).modify(negated, zeros, View::Dword).push(&mut self.code);
        let place = AddressRegisters { base: negated, index: None, scale: 1, disp: 31, broadcast: false };
        Build::new(Code::Lea_r32_m).def(result, View::Dword).at(&place).push(&mut self.code);
        Ok(())
    }

    /// A select between scalars.
    pub(super) fn scalar_select(&mut self, inst: Inst, condition: Value, then: Value, otherwise: Value) -> Result {
        let [a, b] = [self.reg(then)?, self.reg(otherwise)?];
        let condition = self.condition(condition)?;
        let result = self.define(inst);
        let (_, dword, qword) = conditional(condition);
        let wide = self.kernel.ty(then) == Type::S64;
        let (code, view) = if wide { (qword, View::Qword) } else { (dword, View::Dword) };
        Build::new(code).modify(result, b, view).reads(a, view).push(&mut self.code);
        Ok(())
    }
}
