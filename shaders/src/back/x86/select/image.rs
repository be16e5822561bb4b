//! Images: descriptor fields inline, everything else by calls.

use iced_x86::{Code, ConditionCode, OpKind};
use regalloc2::{Operand, PReg, RegClass};

use super::super::call::offset;
use super::super::encode::conditional;
use super::super::vcode::{AddressRegisters, Build, InstKind, View};
use super::{Result, Select, VectorIsa};
use crate::image::{Descriptor, Field, direct};
use crate::simd::{CheckRoutine, Inst, Routine, Value};

/// Size of an image descriptor in bytes.
const STRIDE: u32 = size_of::<Descriptor>() as u32;

/// The registers of a call's first two arguments.
const FIRST: PReg = PReg::new(7, RegClass::Int);
const SECOND: PReg = PReg::new(6, RegClass::Int);

impl<V: VectorIsa> Select<'_, V> {
    /// Loads a field of an image descriptor. As with buffers, an out-of-range number counts as 0.
    pub(super) fn image_field(&mut self, inst: Inst, image: Value, field: Field) -> Result {
        let descriptors = self.kernel.descriptors;
        if descriptors == 0 {
            let result = self.define(inst);
            self.set(result, 0);
            return Ok(());
        }
        self.code.images = true;
        let list = self.general();
        self.load_qword(list, &Self::at(self.context, offset::IMAGES));
        let disp = field.offset() as i32;
        if let Some(number) = self.constant(image) {
            let number = if number < u64::from(descriptors) { number as u32 } else { 0 };
            let place = Self::at(list, number.saturating_mul(STRIDE).min(i32::MAX as u32 / 2).cast_signed() + disp);
            let result = self.define(inst);
            self.load_dword(result, &place);
            return Ok(());
        }
        let number = self.reg(image)?;
        let [none, valid, scaled] = [self.general(), self.general(), self.general()];
        self.set(none, 0);
        self.compare_with(number, descriptors);
        let build = Build::new(conditional(ConditionCode::ae).1).modify(valid, number, View::Dword);
        build.reads(none, View::Dword).push(&mut self.code);
        let build = Build::new(Code::Imul_r64_rm64_imm32).def(scaled, View::Qword).reads(valid, View::Qword);
        build.imm(OpKind::Immediate32to64, i64::from(STRIDE)).push(&mut self.code);
        let place = AddressRegisters { index: Some(scaled), ..Self::at(list, disp) };
        let result = self.define(inst);
        self.load_dword(result, &place);
        Ok(())
    }

    /// Calls a routine; its operand rows are in memory already.
    pub(super) fn call(&mut self, routine: &Routine, area: Value) -> Result {
        let area = self.reg(area)?;
        let number = self.code.routine(routine);
        self.code.calls = true;
        self.code.images |= matches!(routine, Routine::Image(_) | Routine::Check(CheckRoutine::Image(..)));
        // The callee expects the same rounding mode as machine code.
        self.code.floats = true;
        let operands = [Operand::reg_fixed_use(self.context, FIRST), Operand::reg_fixed_use(area, SECOND)];
        // Kernels access such images directly and call only as a fallback: a cold path.
        let preserves_all = matches!(routine, Routine::Image(op) if direct::may_be(op));
        self.code.push(InstKind::Call { routine: number, preserves_all }, &operands);
        Ok(())
    }
}
