//! Atomics, barriers and fences with their scope and semantics.

use std::rc::Rc;

use super::composite::{Composite, expect_type};
use super::pointer::Pointer;
use super::scalar::Scalar;
use super::translate::Translator;
use super::types::SpirvType;
use super::words::{Id, Inst, InstResult, operand};
use crate::ir::{self, AtomicOp, InstData, Scope, Semantics, Value, Width};

/// The bit of `SequentiallyConsistent` in memory semantics.
pub(super) const SEQUENTIALLY_CONSISTENT: u32 = spirv::MemorySemantics::SEQUENTIALLY_CONSISTENT.bits();

/// The bits of memory semantics of which one at most is set: the memory order.
const ORDERS: u32 = spirv::MemorySemantics::ACQUIRE.bits()
    | spirv::MemorySemantics::RELEASE.bits()
    | spirv::MemorySemantics::ACQUIRE_RELEASE.bits()
    | SEQUENTIALLY_CONSISTENT;

/// Memory operand of an atomic.
struct AtomicPointer {
    pointer: Pointer,
    place: ir::Place,
    scalar: Scalar,
    /// The operation.
    op: AtomicOp,
}

impl Translator<'_> {
    /// A read-modify-write or load instruction with one memory operand.
    pub(super) fn read_modify_write(&mut self, inst: &Inst, op: AtomicOp, operands: &[u32]) -> InstResult<()> {
        let value = match op {
            AtomicOp::Load => None,
            _ => Some(operand(operands, 3)?),
        };
        let order = self.order(operand(operands, 1)?, operand(operands, 2)?)?;
        let AtomicPointer { pointer, place, scalar, op } = self.target(operand(operands, 0)?, op)?;
        expect_type(pointer.pointee(), inst.ty)?;
        let value = value.map(|id| self.words_of(id, scalar, op)).transpose()?;
        self.emit(Some(inst), op, place, order, [value, None], scalar)
    }

    pub(super) fn by_one(&mut self, inst: &Inst, op: AtomicOp, operands: &[u32]) -> InstResult<()> {
        let order = self.order(operand(operands, 1)?, operand(operands, 2)?)?;
        let AtomicPointer { pointer, place, scalar, op } = self.target(operand(operands, 0)?, op)?;
        expect_type(pointer.pointee(), inst.ty)?;
        let one = [self.builder.constant(1u32), self.builder.constant(0u32)];
        self.emit(Some(inst), op, place, order, [Some(one), None], scalar)
    }

    /// The address and type of an atomic; checks that the operation exists for the type.
    fn target(&mut self, id: Id, op: AtomicOp) -> InstResult<AtomicPointer> {
        let (pointer, place, scalar, width) = self.atomic_place(id)?;
        if op != AtomicOp::Load {
            pointer.check_writable()?;
        }
        let moves = matches!(op, AtomicOp::Load | AtomicOp::Store | AtomicOp::Exchange);
        let op = match (scalar, width) {
            _ if !moves && op.is_float() != scalar.is_float() => None,
            (Scalar::F16, Width::Half) => op.on_halves(),
            (Scalar::F16, _) if op == AtomicOp::FAdd => Some(AtomicOp::FAddHalf),
            _ => Some(op),
        };
        let op = op.ok_or_else(|| format!("the operation does not exist for {scalar}"))?;
        Ok(AtomicPointer { pointer, place, scalar, op })
    }

    /// The bits of a value as two words: low and high, or a single word twice.
    fn words_of(&mut self, id: Id, scalar: Scalar, op: AtomicOp) -> InstResult<[Value; 2]> {
        let value = self.value(id)?;
        match self.types.get(value.ty)?.ty {
            SpirvType::Scalar(is) if is == scalar => {}
            _ => return Err(format!("{} is not a scalar of type {scalar}", self.sections.describe(id))),
        }
        let [low, high] = [value.values[0], value.values[value.values.len() - 1]];
        if !matches!(scalar, Scalar::F16 | Scalar::F32) {
            return Ok([low, high]);
        }
        let bits = if op.is_half() { ir::Op::HalfBits } else { ir::Op::FloatBits };
        let bits = self.builder.pure(bits, &[low]);
        Ok([bits, bits])
    }

    fn emit(
        &mut self,
        inst: Option<&Inst>,
        op: AtomicOp,
        place: ir::Place,
        order: (Scope, Semantics),
        operands: [Option<[Value; 2]>; 2],
        scalar: Scalar,
    ) -> InstResult<()> {
        self.emit_ordered(inst, op, place, (order.0, order.1, Semantics::default()), operands, scalar)
    }

    fn emit_ordered(
        &mut self,
        inst: Option<&Inst>,
        op: AtomicOp,
        place: ir::Place,
        (scope, semantics, unequal): (Scope, Semantics, Semantics),
        operands: [Option<[Value; 2]>; 2],
        scalar: Scalar,
    ) -> InstResult<()> {
        let [value, comparator] = operands.map(|words| words.map(|words| words[0]));
        let wide = (scalar.words() == 2).then(|| operands.map(|words| words.map(|words| words[1])));
        let data = InstData::Atomic { op, place, value, comparator, wide, scope, semantics, unequal };
        let Some(inst) = inst else {
            self.builder.push(data);
            return Ok(());
        };
        let low = self.builder.push_value(data, ir::Type::I32);
        let values: Rc<[Value]> = match scalar {
            Scalar::F16 if op.is_half() => Rc::from([self.builder.pure(ir::Op::HalfFromBits, &[low])]),
            Scalar::F16 | Scalar::F32 => Rc::from([self.builder.pure(ir::Op::FloatFromBits, &[low])]),
            _ if scalar.words() == 2 => {
                let high = self.builder.push_value(InstData::HighWord { of: low }, ir::Type::I32);
                Rc::from([low, high])
            }
            _ => Rc::from([low]),
        };
        self.bind(inst.id, Composite { ty: inst.ty, values });
        Ok(())
    }

    pub(super) fn atomic_store(&mut self, operands: &[u32]) -> InstResult<()> {
        let AtomicPointer { place, scalar, op, .. } = self.target(operand(operands, 0)?, AtomicOp::Store)?;
        let order = self.order(operand(operands, 1)?, operand(operands, 2)?)?;
        let value = self.words_of(operand(operands, 3)?, scalar, op)?;
        self.emit(None, op, place, order, [Some(value), None], scalar)
    }

    pub(super) fn compare_exchange(&mut self, inst: &Inst, operands: &[u32]) -> InstResult<()> {
        let op = AtomicOp::CompareExchange;
        let AtomicPointer { pointer, place, scalar, op } = self.target(operand(operands, 0)?, op)?;
        expect_type(pointer.pointee(), inst.ty)?;
        let (scope, semantics) = self.order(operand(operands, 1)?, operand(operands, 2)?)?;
        let unequal = self.semantics(operand(operands, 3)?)?;
        let value = self.words_of(operand(operands, 4)?, scalar, op)?;
        let comparator = self.words_of(operand(operands, 5)?, scalar, op)?;
        self.emit_ordered(Some(inst), op, place, (scope, semantics, unequal), [Some(value), Some(comparator)], scalar)
    }

    pub(super) fn control_barrier(&mut self, operands: &[u32]) -> InstResult<()> {
        let execution = self.scope(operand(operands, 0)?)?;
        if !matches!(execution, Scope::Workgroup | Scope::Subgroup) {
            let rule = "VUID-StandaloneSpirv-None-04636";
            return Err(format!("execution scope {execution:?}, which is neither Workgroup nor Subgroup ({rule})"));
        }
        let (memory, semantics) = self.order(operand(operands, 1)?, operand(operands, 2)?)?;
        self.builder.push(InstData::Barrier { execution, memory, semantics });
        Ok(())
    }

    pub(super) fn memory_barrier(&mut self, operands: &[u32]) -> InstResult<()> {
        let (scope, semantics) = self.order(operand(operands, 0)?, operand(operands, 1)?)?;
        self.builder.push(InstData::Fence { scope, semantics });
        Ok(())
    }

    fn order(&self, scope: Id, semantics: Id) -> InstResult<(Scope, Semantics)> {
        Ok((self.scope(scope)?, self.semantics(semantics)?))
    }

    /// The scope of a constant.
    pub(super) fn scope(&self, id: Id) -> InstResult<Scope> {
        let number = self.constants.uint(&self.types, id)?;
        Ok(match spirv::Scope::from_u32(number) {
            Some(spirv::Scope::CrossDevice) => {
                return Err("scope CrossDevice is the host's (VUID-StandaloneSpirv-None-04638)".into());
            }
            Some(spirv::Scope::Device) => Scope::Device,
            Some(spirv::Scope::Workgroup) => Scope::Workgroup,
            Some(spirv::Scope::Subgroup) => Scope::Subgroup,
            Some(spirv::Scope::Invocation) => Scope::Invocation,
            Some(spirv::Scope::QueueFamily) => Scope::QueueFamily,
            _ => return Err(format!("scope {number} is not supported")),
        })
    }

    /// Memory semantics of a constant. The Vulkan memory model has no sequential consistency; modules of the older one
    /// that ask for it get it (`remark`).
    fn semantics(&self, id: Id) -> InstResult<Semantics> {
        let bits = self.constants.uint(&self.types, id)?;
        if self.sections.is_vulkan_memory_model() && bits & SEQUENTIALLY_CONSISTENT != 0 {
            let rule = "VUID-StandaloneSpirv-MemorySemantics-10866";
            return Err(format!("SequentiallyConsistent semantics in the Vulkan memory model ({rule})"));
        }
        if (bits & ORDERS).count_ones() > 1 {
            let rule = "VUID-StandaloneSpirv-MemorySemantics-10865";
            return Err(format!("semantics {bits:#x} have more than one memory order ({rule})"));
        }
        Ok(Semantics(bits))
    }
}
