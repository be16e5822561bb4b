//! Truth values in the flags.

use iced_x86::{Code, ConditionCode, OpKind};
use regalloc2::VReg;

use super::super::CompileError;
use super::super::encode::negated;
use super::super::vcode::{Build, View};
use super::{Result, Select, VectorIsa};
use crate::ir::Op;
use crate::simd::{Inst, InstData, Type, Value, WideOp};

impl<V: VectorIsa> Select<'_, V> {
    /// Sets the flags by a truth value; returns the condition under which it is true. The operands of the flags'
    /// consumer must be in registers by now, since emitting them could clobber the flags.
    pub(super) fn condition(&mut self, value: Value) -> Result<ConditionCode> {
        if let Some((inst, data)) = self.deferred_def(value)
            && matches!(data, InstData::Pure { .. } | InstData::Wide { .. } | InstData::Any { .. })
        {
            self.deferred[inst] = 0;
            return self.compare(inst);
        }
        let reg = self.reg(value)?;
        self.test(reg);
        Ok(ConditionCode::ne)
    }

    fn test(&mut self, reg: VReg) {
        Build::new(Code::Test_rm32_r32).reads(reg, View::Dword).reads(reg, View::Dword).push(&mut self.code);
    }

    /// Sets the flags by an instruction that yields a truth value; returns the condition under which it is true.
    pub(super) fn compare(&mut self, inst: Inst) -> Result<ConditionCode> {
        let kernel = self.kernel;
        match &kernel.insts[inst] {
            InstData::Pure { op: Op::LNot, args } => Ok(negated(self.condition(args[0])?)),
            InstData::Pure { op, args } => {
                let condition = match op {
                    Op::IEq => ConditionCode::e,
                    Op::INe => ConditionCode::ne,
                    Op::ULt => ConditionCode::b,
                    Op::ULe => ConditionCode::be,
                    Op::SLt => ConditionCode::l,
                    Op::SLe => ConditionCode::le,
                    _ => return Err(CompileError::Unsupported(*op)),
                };
                self.compare_values(condition, args[0], args[1])
            }
            InstData::Wide { op: WideOp::Lt, args } => self.compare_values(ConditionCode::b, args[0], args[1]),
            InstData::Any { mask } => V::any(self, *mask),
            _ => unreachable!("not a comparison: {inst}"),
        }
    }

    fn compare_values(&mut self, condition: ConditionCode, a: Value, b: Value) -> Result<ConditionCode> {
        let wide = self.kernel.ty(a) == Type::S64;
        if let Some(constant) = self.immediate(b) {
            let a = self.reg(a)?;
            if constant == 0 && !wide && matches!(condition, ConditionCode::e | ConditionCode::ne) {
                self.test(a);
            } else {
                self.compare_imm(a, constant, wide);
            }
            return Ok(condition);
        }
        if let Some(constant) = self.immediate(a) {
            let b = self.reg(b)?;
            self.compare_imm(b, constant, wide);
            return Ok(exchanged(condition));
        }
        let [a, b] = [self.reg(a)?, self.reg(b)?];
        let (code, view) = if wide { (Code::Cmp_r64_rm64, View::Qword) } else { (Code::Cmp_r32_rm32, View::Dword) };
        Build::new(code).reads(a, view).reads(b, view).push(&mut self.code);
        Ok(condition)
    }

    fn compare_imm(&mut self, reg: VReg, constant: i32, wide: bool) {
        let constant = i64::from(constant);
        let build = match wide {
            true => Build::new(Code::Cmp_rm64_imm32).reads(reg, View::Qword).imm(OpKind::Immediate32to64, constant),
            false => Build::new(Code::Cmp_rm32_imm32).reads(reg, View::Dword).imm(OpKind::Immediate32, constant),
        };
        build.push(&mut self.code);
    }
}

/// The condition for exchanged operands.
fn exchanged(condition: ConditionCode) -> ConditionCode {
    match condition {
        ConditionCode::b => ConditionCode::a,
        ConditionCode::be => ConditionCode::ae,
        ConditionCode::l => ConditionCode::g,
        ConditionCode::le => ConditionCode::ge,
        other => other,
    }
}
