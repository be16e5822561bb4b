//! Atomics, barriers and fences, with scope and semantics.

use std::rc::Rc;

use spirv::Op;

use super::composite::{Composite, expect_type};
use super::translate::Translator;
use super::types::{Scalar, Type};
use super::words::{Checked, Id, Inst, operand};
use crate::ir::{self, AtomicOp, InstData, Scope, Semantics, Value};

impl Translator<'_> {
    /// The instructions of this chapter; `None` for any other.
    pub(super) fn atomic(&mut self, inst: &Inst, operands: &[u32]) -> Option<Checked<()>> {
        let op = match inst.op {
            Op::ControlBarrier => return Some(self.control_barrier(operands)),
            Op::MemoryBarrier => return Some(self.memory_barrier(operands)),
            Op::AtomicStore => return Some(self.atomic_store(operands)),
            Op::AtomicCompareExchange => return Some(self.compare_exchange(inst, operands)),
            Op::AtomicIIncrement => return Some(self.by_one(inst, AtomicOp::Add, operands)),
            Op::AtomicIDecrement => return Some(self.by_one(inst, AtomicOp::Sub, operands)),
            Op::AtomicLoad => AtomicOp::Load,
            Op::AtomicExchange => AtomicOp::Exchange,
            Op::AtomicIAdd => AtomicOp::Add,
            Op::AtomicISub => AtomicOp::Sub,
            Op::AtomicSMin => AtomicOp::SMin,
            Op::AtomicUMin => AtomicOp::UMin,
            Op::AtomicSMax => AtomicOp::SMax,
            Op::AtomicUMax => AtomicOp::UMax,
            Op::AtomicAnd => AtomicOp::And,
            Op::AtomicOr => AtomicOp::Or,
            Op::AtomicXor => AtomicOp::Xor,
            _ => return None,
        };
        Some(self.read_modify_write(inst, op, operands))
    }

    fn read_modify_write(&mut self, inst: &Inst, op: AtomicOp, operands: &[u32]) -> Checked<()> {
        let value = match op {
            AtomicOp::Load => None,
            _ => Some(self.integer(operand(operands, 3)?)?),
        };
        let order = self.order(operand(operands, 1)?, operand(operands, 2)?)?;
        self.emit(inst, op, operand(operands, 0)?, order, value)
    }

    fn by_one(&mut self, inst: &Inst, op: AtomicOp, operands: &[u32]) -> Checked<()> {
        let order = self.order(operand(operands, 1)?, operand(operands, 2)?)?;
        let one = self.builder.constant(1u32);
        self.emit(inst, op, operand(operands, 0)?, order, Some(one))
    }

    fn emit(
        &mut self,
        inst: &Inst,
        op: AtomicOp,
        pointer: Id,
        (scope, semantics): (Scope, Semantics),
        value: Option<Value>,
    ) -> Checked<()> {
        let (pointer, place) = self.atomic_place(pointer)?;
        expect_type(pointer.pointee(), inst.ty)?;
        if op != AtomicOp::Load {
            pointer.check_writable()?;
        }
        let unequal = Semantics::default();
        let data = InstData::Atomic { op, place, value, comparator: None, scope, semantics, unequal };
        self.result(inst, data)
    }

    fn result(&mut self, inst: &Inst, data: InstData) -> Checked<()> {
        if !matches!(self.types.get(inst.ty)?.ty, Type::Scalar(Scalar::I32)) {
            return Err("the result is not a 32-bit integer".into());
        }
        let value = self.builder.push_value(data, ir::Type::I32);
        self.bind(inst.id, Composite { ty: inst.ty, values: Rc::from([value]) });
        Ok(())
    }

    fn atomic_store(&mut self, operands: &[u32]) -> Checked<()> {
        let (pointer, place) = self.atomic_place(operand(operands, 0)?)?;
        pointer.check_writable()?;
        let (scope, semantics) = self.order(operand(operands, 1)?, operand(operands, 2)?)?;
        let value = Some(self.integer(operand(operands, 3)?)?);
        let unequal = Semantics::default();
        let op = AtomicOp::Store;
        self.builder.push(InstData::Atomic { op, place, value, comparator: None, scope, semantics, unequal });
        Ok(())
    }

    fn compare_exchange(&mut self, inst: &Inst, operands: &[u32]) -> Checked<()> {
        let (pointer, place) = self.atomic_place(operand(operands, 0)?)?;
        expect_type(pointer.pointee(), inst.ty)?;
        pointer.check_writable()?;
        let (scope, semantics) = self.order(operand(operands, 1)?, operand(operands, 2)?)?;
        let unequal = self.semantics(operand(operands, 3)?)?;
        let value = Some(self.integer(operand(operands, 4)?)?);
        let comparator = Some(self.integer(operand(operands, 5)?)?);
        let op = AtomicOp::CompareExchange;
        self.result(inst, InstData::Atomic { op, place, value, comparator, scope, semantics, unequal })
    }

    fn control_barrier(&mut self, operands: &[u32]) -> Checked<()> {
        let execution = self.scope(operand(operands, 0)?)?;
        if !matches!(execution, Scope::Workgroup | Scope::Subgroup) {
            return Err(format!("a barrier of execution scope {execution:?} is not supported"));
        }
        let (memory, semantics) = self.order(operand(operands, 1)?, operand(operands, 2)?)?;
        self.builder.push(InstData::Barrier { execution, memory, semantics });
        Ok(())
    }

    fn memory_barrier(&mut self, operands: &[u32]) -> Checked<()> {
        let (scope, semantics) = self.order(operand(operands, 0)?, operand(operands, 1)?)?;
        self.builder.push(InstData::Fence { scope, semantics });
        Ok(())
    }

    fn order(&self, scope: Id, semantics: Id) -> Checked<(Scope, Semantics)> {
        Ok((self.scope(scope)?, self.semantics(semantics)?))
    }

    /// The scope that a constant names.
    pub(super) fn scope(&self, id: Id) -> Checked<Scope> {
        let number = self.constants.uint(&self.types, id)?;
        Ok(match spirv::Scope::from_u32(number) {
            Some(spirv::Scope::CrossDevice) => Scope::CrossDevice,
            Some(spirv::Scope::Device) => Scope::Device,
            Some(spirv::Scope::Workgroup) => Scope::Workgroup,
            Some(spirv::Scope::Subgroup) => Scope::Subgroup,
            Some(spirv::Scope::Invocation) => Scope::Invocation,
            Some(spirv::Scope::QueueFamily) => Scope::QueueFamily,
            _ => return Err(format!("scope {number} is not supported")),
        })
    }

    fn semantics(&self, id: Id) -> Checked<Semantics> {
        self.constants.uint(&self.types, id).map(Semantics)
    }
}
