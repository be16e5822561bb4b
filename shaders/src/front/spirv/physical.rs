//! Physical pointers: `PhysicalStorageBuffer`, buffer device address.
//!
//! An access looks up the base address of its access chain in the address ranges of device memory, and accesses that
//! range like a descriptor's buffer, with its bounds check. Accesses out of the range look up their own address (ADR
//! 8).

use std::rc::Rc;

use smallvec::SmallVec;
use spirv::{Op, StorageClass};

use super::arithmetic::{self, ArithmeticType, OperandValues};
use super::composite::Composite;
use super::layout::Spot;
use super::pointer::{Pointer, Root};
use super::scalar::Scalar;
use super::translate::{Translator, shared};
use super::types::SpirvType;
use super::words::{Id, Inst, InstResult, operand};
use crate::ir::{self, Block, BlockCall, BufferSpace, InstData, Merge, Value};

/// The fast and the slow path of an access, with their join block.
pub(super) struct Paths {
    far: Block,
    pub(super) join: Block,
}

impl Translator<'_> {
    /// Whether the first operand is a physical pointer.
    pub(super) fn has_address(&mut self, operands: &[u32]) -> bool {
        let first = operands.first().and_then(|&id| self.value(id).ok());
        first.is_some_and(|value| self.is_address(value.ty))
    }

    /// Whether a type is a physical pointer type.
    pub(super) fn is_address(&self, ty: Id) -> bool {
        let info = self.types.get(ty);
        info.is_ok_and(|info| matches!(info.ty, SpirvType::Pointer { class: StorageClass::PhysicalStorageBuffer, .. }))
    }

    pub(super) fn address_of_integer(&mut self, inst: &Inst, operands: &[u32], convert: bool) -> InstResult<()> {
        if !self.is_address(inst.ty) {
            return Err(format!("%{} is not the type of a pointer to PhysicalStorageBuffer", inst.ty));
        }
        let from = self.value(operand(operands, 0)?)?;
        let zero = self.builder.constant(0u32);
        let values = match (&self.types.get(from.ty)?.ty, &*from.values) {
            (SpirvType::Scalar(Scalar::I64), _) => from.values.clone(),
            (SpirvType::Vector { scalar: Scalar::I32, count: 2, .. }, _) if !convert => from.values.clone(),
            (SpirvType::Scalar(scalar), &[low]) if convert && scalar.is_int() => shared([low, zero]),
            _ if self.is_address(from.ty) && !convert => from.values.clone(),
            _ => return Err("the operand is not an integer of 64 bits".into()),
        };
        self.bind(inst.id, Composite { ty: inst.ty, values });
        Ok(())
    }

    pub(super) fn integer_of_address(&mut self, inst: &Inst, operands: &[u32], convert: bool) -> InstResult<()> {
        let from = self.value(operand(operands, 0)?)?;
        if !self.is_address(from.ty) {
            return Err("the operand is not a pointer to PhysicalStorageBuffer".into());
        }
        let values = match &self.types.get(inst.ty)?.ty {
            SpirvType::Scalar(Scalar::I64) => from.values,
            SpirvType::Vector { scalar: Scalar::I32, count: 2, .. } if !convert => from.values,
            SpirvType::Scalar(Scalar::I32) if convert => shared([from.values[0]]),
            _ => return Err("the result is not an integer of 64 bits".into()),
        };
        self.bind(inst.id, Composite { ty: inst.ty, values });
        Ok(())
    }

    /// The place `delta` bytes after the target of a physical pointer.
    pub(super) fn place_at(&mut self, pointer: &Pointer, address: [Value; 2], delta: u32) -> ir::Place {
        let [low, high] = address;
        let buffer = self.builder.push_value(InstData::BufferAt { low, high }, ir::Type::Buffer);
        let inside = self.inside(pointer, address, buffer);
        let offset = self.offset(&inside, delta);
        ir::Place::Buffer { space: BufferSpace::Storage, buffer, offset }
    }

    /// A physical pointer, rebased to an offset in a buffer.
    fn inside(&mut self, pointer: &Pointer, [low, high]: [Value; 2], buffer: Value) -> Pointer {
        let data = InstData::BufferOffset { buffer, low, high };
        let from_start = self.builder.push_value(data, ir::Type::I32);
        // Address ranges start at multiples of 64, and the access has declared the alignment of its address.
        // Out-of-bounds offsets stay out of bounds: no address range has 2³² - 4 bytes.
        let mut offset = if pointer.align > 1 {
            let amount = self.builder.constant(pointer.align.trailing_zeros());
            let units = self.builder.pure(ir::Op::LShr, &[from_start, amount]);
            let zero = self.builder.constant(0u32);
            self.builder.element(zero, units, pointer.align)
        } else {
            from_start
        };
        for &(index, stride) in &pointer.steps {
            offset = self.builder.element(offset, index, stride);
        }
        Pointer {
            root: Root::Buffer { space: BufferSpace::Storage, buffer },
            dynamic: Some(offset),
            start: 0,
            steps: SmallVec::new(),
            delta: pointer.constant_part(),
            ..pointer.clone()
        }
    }

    /// The fast path of an access by address: in the address range that contains the base of its access chain, which is
    /// mostly the same for the invocations of a subgroup. Returns the pointer into the range, and the run-time
    /// condition that the access is in bounds; `None` if the pointer is not physical.
    pub(super) fn near(&mut self, pointer: &Pointer, spots: &[Spot]) -> Option<(Pointer, Value)> {
        let Root::Address { address } = pointer.root else { return None };
        let (last, _) = *spots.last()?;
        let [low, high] = address;
        let buffer = self.builder.push_value(InstData::BufferNear { low, high }, ir::Type::Buffer);
        let near = self.inside(pointer, address, buffer);
        let offset = self.offset(&near, rounded(pointer, last));
        let reached = self.builder.push_value(InstData::Reaches { buffer, offset }, ir::Type::Bool);
        Some((near, reached))
    }

    /// The slow path: looks up the address of the access itself.
    pub(super) fn exact(&mut self, pointer: &Pointer) -> InstResult<Pointer> {
        let Root::Address { address } = pointer.root else { return Ok(pointer.clone()) };
        let address = self.whole_address(pointer, address)?;
        Ok(pointer.rebased(address))
    }

    /// Opens the path on which the condition holds.
    pub(super) fn open_paths(&mut self, condition: Value) -> Paths {
        let [near, far, join] = [(); 3].map(|()| self.builder.create_block());
        self.builder.set_merge(Merge::Selection { merge: join });
        let (then, otherwise) = (BlockCall::new(near), BlockCall::new(far));
        self.builder.push(InstData::Branch { condition, then, otherwise });
        self.builder.switch_to(near);
        Paths { far, join }
    }

    /// Ends the first path with these values, and opens the other one.
    pub(super) fn other_path(&mut self, paths: &Paths, values: &[Value]) {
        self.builder.push(InstData::Jump { to: BlockCall { block: paths.join, args: values.into() } });
        self.builder.switch_to(paths.far);
    }

    /// Ends the second path with these values, and continues at the join.
    pub(super) fn close_paths(&mut self, paths: &Paths, values: &[Value]) {
        self.builder.push(InstData::Jump { to: BlockCall { block: paths.join, args: values.into() } });
        self.builder.switch_to(paths.join);
    }

    /// Steps to an array element, whose index may be signed and of any width. A chain keeps its base address and a
    /// 32-bit offset: steps that may not fit yield a new base address.
    pub(super) fn step_by_address(&mut self, pointer: &mut Pointer, index: Id, stride: u32) -> InstResult<bool> {
        let Root::Address { address } = pointer.root else { return Ok(false) };
        let element = self.value(index)?;
        if let (SpirvType::Scalar(Scalar::I32), &[number]) = (&self.types.get(element.ty)?.ty, &*element.values) {
            let Some(number) = self.builder.kernel().constant(number) else { return Ok(false) };
            let end = u64::from(pointer.delta) + number * u64::from(stride);
            if (number as u32).cast_signed() >= 0 && u32::try_from(end).is_ok() {
                return Ok(false);
            }
        }
        let moved = self.moved_address(pointer, address, &element, stride)?;
        *pointer = pointer.rebased([moved[0], moved[1]]);
        Ok(true)
    }

    /// Applies the alignment that an access declares, but at most the type's own: compilers emit `Aligned 16` where the
    /// source declares none, and shaders step over halves with such pointers.
    pub(super) fn aligned_to(&self, pointer: Pointer, alignment: Option<u32>) -> InstResult<Pointer> {
        let Root::Address { .. } = pointer.root else { return Ok(pointer) };
        let alignment = alignment.ok_or("an access to PhysicalStorageBuffer without Aligned")?;
        if !alignment.is_power_of_two() {
            return Err(format!("Aligned {alignment} is not a power of two"));
        }
        let pointee = self.types.get(pointer.pointee())?;
        let needed = match pointee.ty {
            SpirvType::Vector { .. } | SpirvType::Matrix { .. } => 2 * pointee.align,
            _ => pointee.align,
        };
        let parts = pointer.steps.iter().map(|&(_, stride)| stride).chain([pointer.constant_part()]);
        let align =
            parts.fold(alignment.min(needed).min(4), |align, part| align.min(1 << part.trailing_zeros().min(2)));
        Ok(Pointer { align, ..pointer })
    }

    /// The full address of a pointer, with all steps of its chain.
    pub(super) fn whole_address(&mut self, pointer: &Pointer, address: [Value; 2]) -> InstResult<[Value; 2]> {
        let mut sum = address;
        for &(index, stride) in &pointer.steps {
            let high = self.sign_of(index);
            let stride = [self.builder.constant(stride), self.builder.constant(0u32)];
            let term = self.on_words(Op::IMul, [[index, high], stride])?;
            sum = self.on_words(Op::IAdd, [sum, term])?;
        }
        if pointer.constant_part() == 0 {
            return Ok(sum);
        }
        let constant = [self.builder.constant(pointer.constant_part()), self.builder.constant(0u32)];
        self.on_words(Op::IAdd, [sum, constant])
    }

    /// The address of the element with this index, relative to the pointer.
    pub(super) fn moved_address(
        &mut self,
        pointer: &Pointer,
        address: [Value; 2],
        element: &Composite,
        stride: u32,
    ) -> InstResult<Rc<[Value]>> {
        let whole = self.whole_address(pointer, address)?;
        let element = match (&self.types.get(element.ty)?.ty, &*element.values) {
            (SpirvType::Scalar(Scalar::I64), &[low, high]) => [low, high],
            (SpirvType::Scalar(scalar), &[low]) if scalar.is_int() => {
                let up = self.builder.constant(32 - scalar.bits());
                let low = self.builder.pure(ir::Op::Shl, &[low, up]);
                let low = self.builder.pure(ir::Op::AShr, &[low, up]);
                [low, self.sign_of(low)]
            }
            _ => return Err("the element is not an integer".into()),
        };
        let stride = [self.builder.constant(stride), self.builder.constant(0u32)];
        let term = self.on_words(Op::IMul, [element, stride])?;
        Ok(shared(self.on_words(Op::IAdd, [whole, term])?))
    }

    /// An operation on two 64-bit integers.
    fn on_words(&mut self, op: Op, operands: [[Value; 2]; 2]) -> InstResult<[Value; 2]> {
        let shape = ArithmeticType::Scalar(Scalar::I64);
        let operands = operands.each_ref().map(|values| OperandValues { values, shape });
        let values = arithmetic::translate(&mut self.builder, op, &shape, &operands).ok_or("no arithmetic")??;
        <[Value; 2]>::try_from(&*values).map_err(|_| "an address has two words".into())
    }
}

/// The last byte of an access, rounded up to the end of its element in the innermost array, so that one bounds check
/// serves all members of an element.
fn rounded(pointer: &Pointer, last: u32) -> u32 {
    const MAX_LENGTH: u32 = 256;
    let Some(&(_, stride)) = pointer.steps.last().filter(|&&(_, stride)| stride > 4 && stride <= MAX_LENGTH) else {
        return last;
    };
    let end = pointer.delta.saturating_add(last);
    (end - end % stride).saturating_add(stride - 1) - pointer.delta.min(end)
}
