//! Registers of values: those that have one, new ones for results, and constants, which get one where they are used.

use std::ops::Deref;

use iced_x86::{Code, OpKind};
use regalloc2::{Operand, OperandConstraint, OperandKind, OperandPos, RegClass, VReg};
use smallvec::SmallVec;

use super::super::vcode::{Build, InstKind, View};
use super::{Result, Select, VectorIsa, class_of};
use crate::simd::{Inst, InstData, Type, Value, ValueDef, WideOp};

/// Operands of an instruction; an operand's slot is its position.
#[derive(Debug, Default)]
pub(super) struct OperandSlots(SmallVec<[Operand; 16]>);

impl OperandSlots {
    /// Adds an operand after those that there are; returns its slot.
    pub(super) fn add(&mut self, operand: Operand) -> u8 {
        self.0.push(operand);
        self.0.len() as u8 - 1
    }
}

impl Deref for OperandSlots {
    type Target = [Operand];

    fn deref(&self) -> &[Operand] {
        &self.0
    }
}

impl FromIterator<Operand> for OperandSlots {
    fn from_iter<I: IntoIterator<Item = Operand>>(operands: I) -> Self {
        Self(operands.into_iter().collect())
    }
}

impl<V: VectorIsa> Select<'_, V> {
    /// The register of a scalar; emits the scalar first if it is deferred.
    pub(super) fn reg(&mut self, value: Value) -> Result<VReg> {
        debug_assert!(!self.kernel.ty(value).is_vector(), "{value} is not a scalar");
        let value = self.uses.canonical(value);
        if let Some(reg) = self.regs[value] {
            return Ok(reg);
        }
        if let ValueDef::Result { inst, .. } = self.kernel.values[value] {
            match &self.kernel.insts[inst] {
                InstData::Const { bits, .. } => return Ok(self.constant_reg(*bits)),
                InstData::Undef { .. } => return Ok(self.constant_reg(0)),
                _ => {}
            }
            if let Some((base, disp)) = self.offset(inst) {
                let place = Self::at(self.reg(base)?, disp);
                let sum = self.general();
                Build::new(Code::Lea_r64_m).def(sum, View::Qword).at(&place).push(&mut self.code);
                return Ok(sum);
            }
        }
        self.written(value)
    }

    /// The first register of a value that is no constant; emits the value first if it is deferred.
    pub(super) fn written(&mut self, value: Value) -> Result<VReg> {
        if let (None, ValueDef::Result { inst, .. }) = (self.regs[value], self.kernel.values[value]) {
            self.write(inst)?;
        }
        // Verified kernels define values before their uses; a rejected kernel gets an arbitrary register.
        let class = class_of(self.kernel.ty(value));
        Ok(*self.regs[value].get_or_insert_with(|| self.code.vreg(class)))
    }

    /// The base and the constant displacement of an address sum, which is deferred to all its users. Of a chain of sums
    /// only every other one is, so that no use follows a long chain.
    pub(super) fn offset(&self, inst: Inst) -> Option<(Value, i32)> {
        let InstData::Wide { op: WideOp::Add, args } = &self.kernel.insts[inst] else { return None };
        let disp = self.immediate(args[1])?;
        let of_a_sum = match self.kernel.values[self.uses.canonical(args[0])] {
            ValueDef::Result { inst, .. } => self.deferred[inst] != 0,
            ValueDef::Param { .. } => false,
        };
        (!of_a_sum || self.deferred[inst] != 0).then_some((args[0], disp))
    }

    /// An unspecified value, defined without code: each use has its own, in any register or spill slot.
    pub(super) fn undefined(&mut self, ty: Type) -> VReg {
        let reg = self.code.vreg(class_of(ty));
        let anywhere = Operand::new(reg, OperandConstraint::Any, OperandKind::Def, OperandPos::Late);
        self.code.push(InstKind::Define, &[anywhere]);
        reg
    }

    /// Materializes a scalar constant in a new register.
    pub(super) fn constant_reg(&mut self, bits: u64) -> VReg {
        let reg = self.general();
        self.set(reg, bits);
        reg
    }

    /// Loads an immediate into a general register.
    pub(super) fn set(&mut self, reg: VReg, bits: u64) {
        let build = match u32::try_from(bits) {
            Ok(bits) => Build::new(Code::Mov_r32_imm32).def(reg, View::Dword).imm(OpKind::Immediate32, i64::from(bits)),
            Err(_) => Build::new(Code::Mov_r64_imm64).def(reg, View::Qword).imm(OpKind::Immediate64, bits as i64),
        };
        build.push(&mut self.code);
    }

    /// A new register for the first result, a scalar.
    pub(super) fn define(&mut self, inst: Inst) -> VReg {
        let value = self.kernel.results[inst][0];
        debug_assert!(!self.kernel.ty(value).is_vector(), "{value} is not a scalar");
        let reg = self.general();
        self.regs[value] = Some(reg);
        reg
    }

    /// Defines the first result as the number of the lowest active lane, 16 if none is active, by the mask's bits;
    /// `stopped` is a temporary.
    pub(super) fn lowest_lane(&mut self, inst: Inst, bits: VReg, stopped: VReg) {
        let build = Build::new(Code::Or_rm32_imm32).modify(stopped, bits, View::Dword);
        build.imm(OpKind::Immediate32, 0x1_0000).push(&mut self.code);
        let result = self.define(inst);
        Build::new(Code::Tzcnt_r32_rm32).def(result, View::Dword).reads(stopped, View::Dword).push(&mut self.code);
    }

    pub(super) fn general(&mut self) -> VReg {
        self.code.vreg(RegClass::Int)
    }

    /// A new vector register.
    pub(super) fn lanes_reg(&mut self) -> VReg {
        self.code.vreg(RegClass::Float)
    }

    /// Whether a mask is the constant of all lanes.
    pub(super) fn is_all(&self, mask: Value) -> bool {
        self.constant(mask).is_some_and(|bits| bits as u16 == u16::MAX)
    }

    /// The registers of a vector's or mask's lowest and highest lanes: the same one if one holds all of them.
    pub(super) fn halves(&mut self, value: Value) -> Result<[VReg; 2]> {
        let regs = V::registers(self, value)?;
        let regs = regs.as_ref();
        Ok([regs[0], regs[regs.len() - 1]])
    }

    /// The bits of a constant, through bit-equal aliases.
    pub(super) fn constant(&self, value: Value) -> Option<u64> {
        self.kernel.constant(self.uses.canonical(value))
    }

    /// A constant that fits a sign-extended immediate.
    pub(super) fn immediate(&self, value: Value) -> Option<i32> {
        let bits = self.constant(value)?;
        if self.kernel.ty(value) == Type::S64 { i32::try_from(bits as i64).ok() } else { Some(bits as i32) }
    }
}
