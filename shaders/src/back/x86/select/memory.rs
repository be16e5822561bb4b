//! Scalars in memory: context fields, descriptors, frames and uniform words.

use iced_x86::{Code, ConditionCode, OpKind};
use regalloc2::{Operand, VReg};

use super::super::call::offset;
use super::super::encode::conditional;
use super::super::vcode::{AddressRegisters, AddressingMode, Base, Build, Check, CheckBound, InstKind, View};
use super::{Result, Select, VectorIsa};
use crate::simd::{Address, BoundedIndex, ContextField, Inst, LANES, Type, Value, ValueDef};

/// Size of a descriptor's slice (address, length) in bytes.
pub(super) const SLICE_BYTES: u32 = 16;
pub(super) const LEN_AT: i32 = 8;

/// An address and the condition under which it is in bounds.
#[derive(Clone, Copy, Debug)]
pub(super) struct CheckedAddress {
    pub place: AddressRegisters,
    pub bounds: Option<(Side, Side)>,
    pub view: View,
}

/// The index or the limit of a bounds check.
#[derive(Clone, Copy, Debug)]
pub(super) enum Side {
    Reg(VReg),
    Constant(i32),
}

impl<V: VectorIsa> Select<'_, V> {
    /// `base + disp` without an index.
    pub(super) fn at(base: VReg, disp: i32) -> AddressRegisters {
        AddressRegisters { base, index: None, scale: 1, disp, broadcast: false }
    }

    pub(super) fn load_dword(&mut self, result: VReg, place: &AddressRegisters) {
        Build::new(Code::Mov_r32_rm32).def(result, View::Dword).at(place).push(&mut self.code);
    }

    pub(super) fn load_qword(&mut self, result: VReg, place: &AddressRegisters) {
        Build::new(Code::Mov_r64_rm64).def(result, View::Qword).at(place).push(&mut self.code);
    }

    pub(super) fn context_field(&mut self, inst: Inst, field: ContextField) {
        if field == ContextField::Tables {
            let disp = self.code.pool.table(&self.kernel.tables).disp();
            let result = self.define(inst);
            let memory = AddressingMode { base: Base::Pool, index: None, scale: 1, disp, broadcast: false };
            Build::new(Code::Lea_r64_m).def(result, View::Qword).memory(memory).push(&mut self.code);
            return;
        }
        let component = |first: i32, number: u8| first + 4 * i32::from(number.min(2));
        let at = match field {
            ContextField::NumWorkgroups(number) => component(offset::NUM_WORKGROUPS, number),
            ContextField::WorkgroupId(number) => component(offset::WORKGROUP, number),
            ContextField::RowEnd => offset::ROW_END,
            ContextField::Push => offset::PUSH,
            ContextField::Shared => offset::SHARED,
            ContextField::Private => offset::PRIVATE,
            ContextField::Calls => offset::CALLS,
            ContextField::SubgroupOrder => offset::SUBGROUP_ORDER,
            ContextField::Frames | ContextField::Tables => offset::FRAMES,
        };
        let place = Self::at(self.context, at);
        let result = self.define(inst);
        if field.ty() == Type::S32 { self.load_dword(result, &place) } else { self.load_qword(result, &place) }
    }

    /// Address of the order of lanes, if the code takes it.
    pub(super) fn lane_order(&mut self) -> Option<VReg> {
        (self.kernel.subgroup_order > 0).then(|| {
            let order = self.general();
            self.load_qword(order, &Self::at(self.context, offset::LANE_ORDER));
            order
        })
    }

    /// Address of a descriptor's slice. The caller passes at least as many slices as the kernel has descriptors; an
    /// out-of-range number counts as 0.
    fn slice(&mut self, buffer: Value, disp: i32) -> Result<AddressRegisters> {
        let list = self.general();
        self.load_qword(list, &Self::at(self.context, offset::BUFFERS));
        if let Some(number) = self.constant(buffer) {
            let number = if number < u64::from(self.kernel.descriptors) { number as u32 } else { 0 };
            return Ok(Self::at(list, number.saturating_mul(SLICE_BYTES).cast_signed() + disp));
        }
        let number = self.reg(buffer)?;
        let [none, valid, scaled] = [self.general(), self.general(), self.general()];
        self.set(none, 0);
        self.compare_with_count(number);
        let build = Build::new(conditional(ConditionCode::ae).1).modify(valid, number, View::Dword);
        build.reads(none, View::Dword).push(&mut self.code);
        Build::new(Code::Shl_rm64_imm8).modify(scaled, valid, View::Qword).imm8(4).push(&mut self.code);
        Ok(AddressRegisters { index: Some(scaled), ..Self::at(list, disp) })
    }

    /// Compares a buffer number with the number of slices: the descriptors, and the address ranges of device memory if
    /// the kernel accesses any.
    fn compare_with_count(&mut self, number: VReg) {
        if self.code.address_ranges {
            let count = self.general();
            self.load_dword(count, &Self::at(self.context, offset::BUFFER_COUNT));
            let build = Build::new(Code::Cmp_r32_rm32).reads(number, View::Dword).reads(count, View::Dword);
            build.push(&mut self.code);
        } else {
            self.compare_with(number, self.kernel.descriptors);
        }
    }

    pub(super) fn compare_with(&mut self, reg: VReg, constant: u32) {
        let build = Build::new(Code::Cmp_rm32_imm32).reads(reg, View::Dword);
        build.imm(OpKind::Immediate32, i64::from(constant)).push(&mut self.code);
    }

    pub(super) fn buffer_base(&mut self, inst: Inst, buffer: Value) -> Result {
        if self.kernel.descriptors == 0 && !self.code.address_ranges {
            let result = self.define(inst);
            self.set(result, 0);
            return Ok(());
        }
        let place = self.slice(buffer, 0)?;
        let result = self.define(inst);
        self.load_qword(result, &place);
        Ok(())
    }

    pub(super) fn buffer_len(&mut self, inst: Inst, buffer: Value) -> Result {
        let descriptors = self.kernel.descriptors;
        let constant = self.constant(buffer);
        if descriptors == 0 && !self.code.address_ranges
            || constant.is_some_and(|number| number >= u64::from(descriptors))
        {
            let result = self.define(inst);
            self.set(result, 0);
            return Ok(());
        }
        let place = self.slice(buffer, LEN_AT)?;
        let [len, max] = [self.general(), self.general()];
        self.load_qword(len, &place);
        self.set(max, u64::from(u32::MAX));
        Build::new(Code::Cmp_r64_rm64).reads(len, View::Qword).reads(max, View::Qword).push(&mut self.code);
        let clamp = conditional(ConditionCode::a).2;
        if constant.is_some() {
            let result = self.define(inst);
            Build::new(clamp).modify(result, len, View::Qword).reads(max, View::Qword).push(&mut self.code);
            return Ok(());
        }
        let [clamped, none] = [self.general(), self.general()];
        Build::new(clamp).modify(clamped, len, View::Qword).reads(max, View::Qword).push(&mut self.code);
        self.set(none, 0);
        let number = self.reg(buffer)?;
        self.compare_with_count(number);
        let result = self.define(inst);
        let build = Build::new(conditional(ConditionCode::ae).2).modify(result, clamped, View::Qword);
        build.reads(none, View::Qword).push(&mut self.code);
        Ok(())
    }

    pub(super) fn frame_load(&mut self, inst: Inst, ty: Type, frame: Value, at: u32) -> Result {
        let place = Self::at(self.reg(frame)?, at.cast_signed());
        let result = self.define(inst);
        if ty == Type::S64 {
            self.load_qword(result, &place)
        } else {
            self.load_dword(result, &place)
        }
        Ok(())
    }

    pub(super) fn frame_store(&mut self, frame: Value, at: u32, value: Value) -> Result {
        let place = Self::at(self.reg(frame)?, at.cast_signed());
        let reg = self.reg(value)?;
        let (code, view) = match self.kernel.ty(value) {
            Type::S64 => (Code::Mov_rm64_r64, View::Qword),
            _ => (Code::Mov_rm32_r32, View::Dword),
        };
        Build::new(code).at(&place).reads(reg, view).push(&mut self.code);
        Ok(())
    }

    /// The base of an address, with a deferred constant sum folded into the displacement if it fits.
    pub(super) fn base(&mut self, base: Value, disp: i32) -> Result<(VReg, i32)> {
        if let ValueDef::Result { inst, .. } = self.kernel.values[self.uses.canonical(base)]
            && self.deferred[inst] != 0
            && let Some((sum_of, bytes)) = self.offset(inst)
            && let Some(disp) = disp.checked_add(bytes)
            && disp.unsigned_abs() < 1 << 30
        {
            return Ok((self.reg(sum_of)?, disp));
        }
        Ok((self.reg(base)?, disp))
    }

    /// The register of the index of a row's first word, if the whole row is provably below the limit.
    pub(super) fn inside(&mut self, index: Value, limit: Value) -> Result<Option<VReg>> {
        let last = self.ranges.upper(index).checked_add(LANES - 1);
        let known = self.constant(limit).is_some_and(|limit| last.is_some_and(|last| u64::from(last) < limit));
        if known { Ok(Some(self.reg(index)?)) } else { Ok(None) }
    }

    /// Registers of an address and its bounds check; no check if the access is provably in bounds.
    pub(super) fn address(&mut self, address: &Address) -> Result<CheckedAddress> {
        let Some(BoundedIndex { index, limit }) = address.index else {
            let (base, disp) = self.base(address.base, address.disp)?;
            return Ok(CheckedAddress { place: Self::at(base, disp), bounds: None, view: View::Dword });
        };
        let view = if self.kernel.ty(index) == Type::S64 { View::Qword } else { View::Dword };
        let (base, disp) = self.base(address.base, address.disp)?;
        // A constant index moves into the displacement.
        let small = self.constant(index).filter(|&bits| bits < 1 << 20);
        let moved = small.and_then(|bits| disp.checked_add(bits as i32 * i32::from(address.scale)));
        let limit_constant = self.immediate(limit).filter(|&limit| view == View::Dword || limit >= 0);
        if let (Some(bits), Some(disp)) = (small, moved) {
            let place = Self::at(base, disp);
            let bounds = match limit_constant {
                Some(limit) if (bits as u32) < limit.cast_unsigned() => None,
                Some(limit) => Some((Side::Constant(bits as i32), Side::Constant(limit))),
                None => Some((Side::Constant(bits as i32), Side::Reg(self.reg(limit)?))),
            };
            return Ok(CheckedAddress { place, bounds, view });
        }
        let max = self.ranges.upper(index);
        let index = self.reg(index)?;
        let is_less = view == View::Dword && limit_constant.is_some_and(|limit| max < limit.cast_unsigned());
        if is_less {
            let place = AddressRegisters { base, index: Some(index), scale: address.scale, disp, broadcast: false };
            return Ok(CheckedAddress { place, bounds: None, view });
        }
        let limit = match limit_constant {
            Some(limit) => Side::Constant(limit),
            None => Side::Reg(self.reg(limit)?),
        };
        let place = AddressRegisters { base, index: Some(index), scale: address.scale, disp, broadcast: false };
        Ok(CheckedAddress { place, bounds: Some((Side::Reg(index), limit)), view })
    }

    /// Pushes an instruction with a checked memory operand; out of bounds it reads zeros.
    pub(super) fn push_checked(&mut self, mut build: Build, checked: &CheckedAddress) {
        let Some((index, limit)) = checked.bounds else {
            build.push(&mut self.code);
            return;
        };
        let mut side = |side| match side {
            Side::Reg(reg) => CheckBound::Slot(build.slot(Operand::reg_use(reg))),
            Side::Constant(value) => CheckBound::Constant(value),
        };
        let check = Check { index: side(index), limit: side(limit), view: checked.view };
        self.code.push(InstKind::Checked(build.asm, check), &build.operands);
    }

    /// Loads a uniform word as a scalar.
    pub(super) fn load(&mut self, inst: Inst, address: &Address) -> Result {
        let checked = self.address(address)?;
        let result = self.define(inst);
        let build = Build::new(Code::Mov_r32_rm32).def(result, View::Dword).at(&checked.place);
        self.push_checked(build, &checked);
        Ok(())
    }
}
