//! Pointers that are addresses: `PhysicalStorageBuffer`, buffer device address.
//!
//! An access looks the address that its chain begins at up among the pieces of device memory that may be addressed, and goes into
//! that piece as into a descriptor's buffer, with its bounds. What is outside of it is looked up anew. ADR 8 has the reasons.

use std::rc::Rc;

use smallvec::SmallVec;
use spirv::{Op, StorageClass};

use super::arithmetic::{self, Exploded, Shape};
use super::composite::Composite;
use super::layout::Spot;
use super::pointer::{Pointer, Root};
use super::scalar::Scalar;
use super::translate::{Translator, shared};
use super::types::Type;
use super::words::{Checked, Id, Inst, operand};
use crate::ir::{self, Block, BlockCall, BufferSpace, InstData, Merge, Value};

/// Two ways, of which control goes one, and the block where they meet.
pub(super) struct Ways {
    far: Block,
    pub(super) join: Block,
}

impl Translator<'_> {
    /// Whether the first operand is an address.
    pub(super) fn has_address(&mut self, operands: &[u32]) -> bool {
        let first = operands.first().and_then(|&id| self.value(id).ok());
        first.is_some_and(|value| self.is_address(value.ty))
    }

    /// Whether a type is one of pointers that are addresses.
    pub(super) fn is_address(&self, ty: Id) -> bool {
        let info = self.types.get(ty);
        info.is_ok_and(|info| matches!(info.ty, Type::Pointer { class: StorageClass::PhysicalStorageBuffer, .. }))
    }

    pub(super) fn address_of_integer(&mut self, inst: &Inst, operands: &[u32], convert: bool) -> Checked<()> {
        if !self.is_address(inst.ty) {
            return Err(format!("%{} is not the type of a pointer to PhysicalStorageBuffer", inst.ty));
        }
        let from = self.value(operand(operands, 0)?)?;
        let zero = self.builder.constant(0u32);
        let values = match (&self.types.get(from.ty)?.ty, &*from.values) {
            (Type::Scalar(Scalar::I64), _) => from.values.clone(),
            (Type::Vector { scalar: Scalar::I32, count: 2, .. }, _) if !convert => from.values.clone(),
            (Type::Scalar(scalar), &[low]) if convert && scalar.is_int() => shared([low, zero]),
            _ if self.is_address(from.ty) && !convert => from.values.clone(),
            _ => return Err("the operand is not an integer of 64 bits".into()),
        };
        self.bind(inst.id, Composite { ty: inst.ty, values });
        Ok(())
    }

    pub(super) fn integer_of_address(&mut self, inst: &Inst, operands: &[u32], convert: bool) -> Checked<()> {
        let from = self.value(operand(operands, 0)?)?;
        if !self.is_address(from.ty) {
            return Err("the operand is not a pointer to PhysicalStorageBuffer".into());
        }
        let values = match &self.types.get(inst.ty)?.ty {
            Type::Scalar(Scalar::I64) => from.values,
            Type::Vector { scalar: Scalar::I32, count: 2, .. } if !convert => from.values,
            Type::Scalar(Scalar::I32) if convert => shared([from.values[0]]),
            _ => return Err("the result is not an integer of 64 bits".into()),
        };
        self.bind(inst.id, Composite { ty: inst.ty, values });
        Ok(())
    }

    /// The place `delta` bytes after where a pointer that is an address points.
    pub(super) fn place_at(&mut self, pointer: &Pointer, address: [Value; 2], delta: u32) -> ir::Place {
        let [low, high] = address;
        let buffer = self.builder.push_value(InstData::BufferAt { low, high }, ir::Type::Buffer);
        let inside = self.inside(pointer, address, buffer);
        let offset = self.offset(&inside, delta);
        ir::Place::Buffer { space: BufferSpace::Storage, buffer, offset }
    }

    /// A pointer that is an address as one into a buffer.
    fn inside(&mut self, pointer: &Pointer, [low, high]: [Value; 2], buffer: Value) -> Pointer {
        let data = InstData::BufferOffset { buffer, low, high };
        let from_start = self.builder.push_value(data, ir::Type::I32);
        // Pieces begin at multiples of 64, and the access has said what its address is a multiple of. What is outside stays
        // there: no piece is as long as 2³² - 4.
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

    /// The ordinary way of an access by an address: into the piece of memory that its chain begins in, which the invocations of
    /// a subgroup mostly have in common. The pointer into it, and whether the access goes there, true or false when the
    /// kernel runs; `None` if the pointer is no address.
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

    /// The same place without a chain: its own address is looked up.
    pub(super) fn exact(&mut self, pointer: &Pointer) -> Checked<Pointer> {
        let Root::Address { address } = pointer.root else { return Ok(pointer.clone()) };
        let address = self.whole_address(pointer, address)?;
        Ok(pointer.rebased(address))
    }

    /// Begins what is done where the condition holds.
    pub(super) fn open_ways(&mut self, condition: Value) -> Ways {
        let [near, far, join] = [(); 3].map(|()| self.builder.create_block());
        self.builder.set_merge(Merge::Selection { merge: join });
        let (then, otherwise) = (BlockCall::new(near), BlockCall::new(far));
        self.builder.push(InstData::Branch { condition, then, otherwise });
        self.builder.switch_to(near);
        Ways { far, join }
    }

    /// Ends that with these values, and begins what is done elsewhere.
    pub(super) fn other_way(&mut self, ways: &Ways, values: &[Value]) {
        self.builder.push(InstData::Jump { to: BlockCall { block: ways.join, args: values.into() } });
        self.builder.switch_to(ways.far);
    }

    /// Ends that, too.
    pub(super) fn close_ways(&mut self, ways: &Ways, values: &[Value]) {
        self.builder.push(InstData::Jump { to: BlockCall { block: ways.join, args: values.into() } });
        self.builder.switch_to(ways.join);
    }

    /// Goes on to an element of an array behind an address, whose number may have a sign and any width. A chain keeps the
    /// address that it begins at and 32 bits of offset: what these may not hold gives a new address.
    pub(super) fn step_by_address(&mut self, pointer: &mut Pointer, index: Id, stride: u32) -> Checked<bool> {
        let Root::Address { address } = pointer.root else { return Ok(false) };
        let element = self.value(index)?;
        if let (Type::Scalar(Scalar::I32), &[number]) = (&self.types.get(element.ty)?.ty, &*element.values) {
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

    /// A pointer for an access that says what its address is a multiple of. Of that, no more is believed than the type
    /// needs: compilers put `Aligned 16` where the source says nothing, and shaders walk over halves with that.
    pub(super) fn aligned_to(&self, pointer: Pointer, alignment: Option<u32>) -> Checked<Pointer> {
        let Root::Address { .. } = pointer.root else { return Ok(pointer) };
        let alignment = alignment.ok_or("an access to PhysicalStorageBuffer without Aligned")?;
        if !alignment.is_power_of_two() {
            return Err(format!("Aligned {alignment} is no power of two"));
        }
        let pointee = self.types.get(pointer.pointee())?;
        let needed = match pointee.ty {
            Type::Vector { .. } | Type::Matrix { .. } => 2 * pointee.align,
            _ => pointee.align,
        };
        let parts = pointer.steps.iter().map(|&(_, stride)| stride).chain([pointer.constant_part()]);
        let align =
            parts.fold(alignment.min(needed).min(4), |align, part| align.min(1 << part.trailing_zeros().min(2)));
        Ok(Pointer { align, ..pointer })
    }

    /// The address that a pointer is, its steps taken.
    pub(super) fn whole_address(&mut self, pointer: &Pointer, address: [Value; 2]) -> Checked<[Value; 2]> {
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

    /// The address of an element so many strides further on.
    pub(super) fn moved_address(
        &mut self,
        pointer: &Pointer,
        address: [Value; 2],
        element: &Composite,
        stride: u32,
    ) -> Checked<Rc<[Value]>> {
        let whole = self.whole_address(pointer, address)?;
        let element = match (&self.types.get(element.ty)?.ty, &*element.values) {
            (Type::Scalar(Scalar::I64), &[low, high]) => [low, high],
            (Type::Scalar(scalar), &[low]) if scalar.is_int() => {
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

    /// An operation on two integers of 64 bits.
    fn on_words(&mut self, op: Op, operands: [[Value; 2]; 2]) -> Checked<[Value; 2]> {
        let shape = Shape::Scalar(Scalar::I64);
        let operands = operands.each_ref().map(|values| Exploded { values, shape });
        let values = arithmetic::translate(&mut self.builder, op, &shape, &operands).ok_or("no arithmetic")??;
        <[Value; 2]>::try_from(&*values).map_err(|_| "an address has two words".into())
    }
}

/// The last byte of an access, or one behind it in the same element of the array that was stepped through last: so members of one
/// element are reached by one test.
fn rounded(pointer: &Pointer, last: u32) -> u32 {
    const MAX_LENGTH: u32 = 256;
    let Some(&(_, stride)) = pointer.steps.last().filter(|&&(_, stride)| stride > 4 && stride <= MAX_LENGTH) else {
        return last;
    };
    let end = pointer.delta.saturating_add(last);
    (end - end % stride).saturating_add(stride - 1) - pointer.delta.min(end)
}
