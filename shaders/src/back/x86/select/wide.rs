//! 64-bit scalars: addresses, lengths, and offsets before their bounds checks.

use iced_x86::{Code, ConditionCode, OpKind};
use regalloc2::{PReg, RegClass};

use super::super::encode::conditional;
use super::super::vcode::{AddressRegisters, Build, View};
use super::{Result, Select, VectorIsa};
use crate::simd::{Inst, Value, WideOp};

impl<V: VectorIsa> Select<'_, V> {
    /// A 64-bit operation.
    pub(super) fn wide(&mut self, inst: Inst, op: WideOp, args: &[Value]) -> Result {
        if op == WideOp::Lt {
            return self.truth(inst);
        }
        let a = self.reg(args[0])?;
        match op {
            WideOp::Truncate => {
                let result = self.define(inst);
                Build::new(Code::Mov_r32_rm32).def(result, View::Dword).reads(a, View::Dword).push(&mut self.code);
            }
            WideOp::Add => {
                let (index, disp) = match self.immediate(args[1]) {
                    Some(disp) => (None, disp),
                    None => (Some(self.reg(args[1])?), 0),
                };
                let result = self.define(inst);
                let place = AddressRegisters { base: a, index, scale: 1, disp, broadcast: false };
                Build::new(Code::Lea_r64_m).def(result, View::Qword).at(&place).push(&mut self.code);
            }
            WideOp::SubSat => {
                let b = match self.immediate(args[1]) {
                    Some(constant) => Err(constant),
                    None => Ok(self.reg(args[1])?),
                };
                let [none, difference] = [self.general(), self.general()];
                let result = self.define(inst);
                self.set(none, 0);
                let build = match b {
                    Ok(b) => {
                        let build = Build::new(Code::Sub_r64_rm64).modify(difference, a, View::Qword);
                        build.reads(b, View::Qword)
                    }
                    Err(constant) => {
                        let build = Build::new(Code::Sub_rm64_imm32).modify(difference, a, View::Qword);
                        build.imm(OpKind::Immediate32to64, i64::from(constant))
                    }
                };
                build.push(&mut self.code);
                let build = Build::new(conditional(ConditionCode::b).2).modify(result, difference, View::Qword);
                build.reads(none, View::Qword).push(&mut self.code);
            }
            WideOp::Mul => self.wide_product(inst, args)?,
            WideOp::MulHigh => {
                const RDX: PReg = PReg::new(2, RegClass::Int);
                let b = self.reg(args[1])?;
                let result = self.define(inst);
                // `mulx` with the same register for both results keeps the high half.
                let mut build = Build::new(Code::VEX_Mulx_r64_r64_rm64).def(result, View::Qword);
                build = build.again(0).reads(b, View::Qword).fixed(a, RDX);
                build.push(&mut self.code);
            }
            WideOp::Min => {
                let b = self.reg(args[1])?;
                let result = self.define(inst);
                Build::new(Code::Cmp_r64_rm64).reads(a, View::Qword).reads(b, View::Qword).push(&mut self.code);
                let build = Build::new(conditional(ConditionCode::b).2).modify(result, b, View::Qword);
                build.reads(a, View::Qword).push(&mut self.code);
            }
            WideOp::Shr => {
                let build = match self.constant(args[1]) {
                    Some(amount) => {
                        let result = self.define(inst);
                        Build::new(Code::Shr_rm64_imm8).modify(result, a, View::Qword).imm8(amount as u8 & 63)
                    }
                    None => {
                        let amount = self.reg(args[1])?;
                        let result = self.define(inst);
                        let build = Build::new(Code::VEX_Shrx_r64_rm64_r64).def(result, View::Qword);
                        build.reads(a, View::Qword).reads(amount, View::Qword)
                    }
                };
                build.push(&mut self.code);
            }
            WideOp::Extend | WideOp::Lt => unreachable!("{} is an alias or a comparison", op.name()),
        }
        Ok(())
    }

    fn wide_product(&mut self, inst: Inst, args: &[Value]) -> Result {
        let (a, b) = if self.constant(args[0]).is_some() { (args[1], args[0]) } else { (args[0], args[1]) };
        let a = self.reg(a)?;
        let build = match self.constant(b) {
            Some(bits) if bits.is_power_of_two() => {
                let result = self.define(inst);
                Build::new(Code::Shl_rm64_imm8).modify(result, a, View::Qword).imm8(bits.trailing_zeros() as u8)
            }
            Some(bits) if i32::try_from(bits as i64).is_ok() => {
                let result = self.define(inst);
                let build = Build::new(Code::Imul_r64_rm64_imm32).def(result, View::Qword).reads(a, View::Qword);
                build.imm(OpKind::Immediate32to64, bits as i64)
            }
            _ => {
                let b = self.reg(b)?;
                let result = self.define(inst);
                Build::new(Code::Imul_r64_rm64).modify(result, a, View::Qword).reads(b, View::Qword)
            }
        };
        build.push(&mut self.code);
        Ok(())
    }
}
