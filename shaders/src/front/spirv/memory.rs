//! Memory instructions: function variables, loads, stores, copies, array lengths.

use std::rc::Rc;

use spirv::{MemoryAccess, StorageClass};

use super::composite::{Composite, expect_type};
use super::layout::{LayoutRules, Spot};
use super::pointer::{Input, Pointer, Root};
use super::scalar::Scalar;
use super::translate::{IdDefinition, Translator, shared};
use super::types::SpirvType;
use super::words::{Id, Inst, InstResult, operand};
use crate::ir::{self, Access, InstData, Value, Width};

/// Memory operands of an instruction that loads, stores, or both.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct MemoryOperands {
    /// Of what it loads: with the scope of `MakePointerVisible`.
    pub(super) load: Access,
    /// Of what it stores: with the scope of `MakePointerAvailable`.
    pub(super) store: Access,
    /// `Aligned`.
    pub(super) alignment: Option<u32>,
}

impl Translator<'_> {
    pub(super) fn function_variable(&mut self, inst: &Inst, operands: &[u32]) -> InstResult<()> {
        let SpirvType::Pointer { class: StorageClass::Function, pointee } = self.types.get(inst.ty)?.ty else {
            return Err("a variable in a function must have storage class Function".into());
        };
        let pointer = self.storage(inst.id, StorageClass::Function, pointee)?;
        self.bind_pointer(inst.id, pointer.clone());
        let Some(&initializer) = operands.get(1) else { return Ok(()) };
        // The entry point runs once, and memory is initially 0.
        let is_null = self.constants.get(initializer).is_some_and(|constant| constant.bits.is_none());
        if is_null && self.calls.len() == 1 {
            return Ok(());
        }
        if self.store_null(&pointer, initializer, Access::default())? {
            return Ok(());
        }
        let value = self.value(initializer)?;
        self.store(&pointer, &value, Access::default())
    }

    pub(super) fn load_op(&mut self, inst: &Inst, operands: &[u32]) -> InstResult<()> {
        let pointer = self.pointer(operand(operands, 0)?)?;
        let (MemoryOperands { load: access, alignment, .. }, _) = self.memory_operands(&operands[1..])?;
        if self.load_by_reference(inst, &pointer, access)? {
            return Ok(());
        }
        let pointer = self.aligned_to(pointer, alignment)?;
        let value = match self.load_handle(&pointer)? {
            Some(handle) => handle,
            None => self.load(&pointer, access)?,
        };
        expect_type(inst.ty, value.ty)?;
        self.bind(inst.id, value);
        Ok(())
    }

    pub(super) fn store_op(&mut self, operands: &[u32]) -> InstResult<()> {
        let pointer = self.pointer(operand(operands, 0)?)?;
        let (MemoryOperands { store: access, alignment, .. }, _) = self.memory_operands(&operands[2..])?;
        let value = operand(operands, 1)?;
        if self.store_null(&pointer, value, access)? || self.store_by_reference(&pointer, value, access)? {
            return Ok(());
        }
        let value = self.value(value)?;
        let pointer = self.aligned_to(pointer, alignment)?;
        self.store(&pointer, &value, access)
    }

    pub(super) fn copy_memory(&mut self, operands: &[u32]) -> InstResult<()> {
        let target = self.pointer(operand(operands, 0)?)?;
        let source = self.pointer(operand(operands, 1)?)?;
        // The first operands are of both, or of the target if more follow.
        let (of_target, rest) = self.memory_operands(&operands[2..])?;
        let of_source = if rest.is_empty() { of_target } else { self.memory_operands(rest)?.0 };
        let (to, from) = (of_target.store, of_source.load);
        let target = self.aligned_to(target, of_target.alignment)?;
        let source = self.aligned_to(source, of_source.alignment)?;
        if self.copy_large(&target, to, &source, from)? {
            return Ok(());
        }
        let value = self.load(&source, from)?;
        self.store(&target, &value, to)
    }

    pub(super) fn copy_object(&mut self, inst: &Inst, operands: &[u32]) -> InstResult<()> {
        let from = operand(operands, 0)?;
        if let Some(IdDefinition::Undefined(ty)) = self.frame.values.get(&from).cloned() {
            expect_type(inst.ty, ty)?;
            self.frame.values.insert(inst.id, IdDefinition::Undefined(ty));
            return Ok(());
        }
        if let Some(IdDefinition::Pointer(pointer)) = self.frame.values.get(&from).cloned() {
            pointer.expect_type(&self.types, inst.ty)?;
            self.bind_pointer(inst.id, pointer);
            return Ok(());
        }
        if self.variables.is_global(from) {
            let pointer = self.pointer(from)?;
            pointer.expect_type(&self.types, inst.ty)?;
            self.bind_pointer(inst.id, pointer);
            return Ok(());
        }
        let value = self.value(from)?;
        expect_type(inst.ty, value.ty)?;
        self.bind(inst.id, value);
        Ok(())
    }

    /// `(size - offset) / stride`; 0 if the buffer ends before the array.
    pub(super) fn array_length(&mut self, inst: &Inst, operands: &[u32]) -> InstResult<()> {
        let pointer = self.pointer(operand(operands, 0)?)?;
        let number = operand(operands, 1)?;
        if pointer.is_variable {
            return Err("queries the length of an array through a variable pointer".into());
        }
        let Root::Buffer { buffer, .. } = pointer.root else {
            return Err("queries the length of an array that is not in a buffer".into());
        };
        let info = self.types.get(pointer.pointee())?;
        let SpirvType::Struct { members } = &info.ty else { return Err("the pointer is not to a structure".into()) };
        let member = members.get(number as usize).ok_or_else(|| format!("no member {number}"))?;
        let (place, offset) = pointer.place.member(&self.types, member, number)?;
        if !matches!(self.types.get(place.ty)?.ty, SpirvType::RuntimeArray { .. }) {
            return Err(format!("member {number} is not a runtime array"));
        }
        let stride = place.elements(&self.types)?.stride;
        if stride == 0 {
            return Err("the array has an ArrayStride of 0".into());
        }
        let offset = self.offset(&pointer, offset);
        let size = self.builder.push_value(InstData::BufferSize { buffer }, ir::Type::I32);
        let end = self.builder.pure(ir::Op::UMax, &[size, offset]);
        let bytes = self.builder.pure(ir::Op::ISub, &[end, offset]);
        let stride = self.builder.constant(stride);
        let count = self.builder.pure(ir::Op::UDiv, &[bytes, stride]);
        if !matches!(self.types.get(inst.ty)?.ty, SpirvType::Scalar(Scalar::I32)) {
            return Err("the result is not an integer".into());
        }
        self.bind(inst.id, Composite { ty: inst.ty, values: Rc::from([count]) });
        Ok(())
    }

    /// Parses the memory operands at the start of a list, and returns the remaining operands.
    pub(super) fn memory_operands<'a>(&self, operands: &'a [u32]) -> InstResult<(MemoryOperands, &'a [u32])> {
        let mut parsed = MemoryOperands::default();
        let Some((&word, mut rest)) = operands.split_first() else { return Ok((parsed, operands)) };
        let mask = MemoryAccess::from_bits(word).ok_or_else(|| format!("unknown memory operands {word:#x}"))?;
        let mut next = || {
            let (&first, after) = rest.split_first().ok_or("a memory operand is missing")?;
            rest = after;
            InstResult::Ok(first)
        };
        if mask.contains(MemoryAccess::ALIGNED) {
            parsed.alignment = Some(next()?);
        }
        if mask.contains(MemoryAccess::MAKE_POINTER_AVAILABLE) {
            parsed.store.available_visible = Some(self.scope(next()?)?);
        }
        if mask.contains(MemoryAccess::MAKE_POINTER_VISIBLE) {
            parsed.load.available_visible = Some(self.scope(next()?)?);
        }
        for access in [&mut parsed.load, &mut parsed.store] {
            access.volatile = mask.contains(MemoryAccess::VOLATILE);
            access.non_private = mask.contains(MemoryAccess::NON_PRIVATE_POINTER);
        }
        let known = MemoryAccess::ALIGNED
            | MemoryAccess::MAKE_POINTER_AVAILABLE
            | MemoryAccess::MAKE_POINTER_VISIBLE
            | MemoryAccess::VOLATILE
            | MemoryAccess::NON_PRIVATE_POINTER
            | MemoryAccess::NONTEMPORAL;
        if known.contains(mask) {
            Ok((parsed, rest))
        } else {
            Err(format!("memory operands {mask:?} are not supported"))
        }
    }

    fn spots(&mut self, pointer: &Pointer) -> InstResult<Vec<Spot>> {
        let count = self.types.scalars(pointer.pointee())?.len();
        self.spend(count)?;
        let mut spots = Vec::with_capacity(count);
        pointer.place.spots(&self.types, 0, &mut spots)?;
        let has_bool = spots.iter().any(|(_, scalar)| *scalar == Scalar::Bool);
        if has_bool && pointer.place.layout == LayoutRules::Explicit {
            return Err("a bool has no place in a block".into());
        }
        Ok(spots)
    }

    fn combine(&self, pointer: &Pointer, access: Access) -> Access {
        let declared = self.access_of(pointer);
        Access {
            volatile: access.volatile || declared.volatile,
            non_private: access.non_private || declared.non_private,
            ..access
        }
    }

    /// Loads the value that a pointer points to.
    pub(super) fn load(&mut self, pointer: &Pointer, access: Access) -> InstResult<Composite> {
        let access = self.combine(pointer, access);
        let spots = self.spots(pointer)?;
        let Some((near, reached)) = self.near(pointer, &spots) else {
            return self.load_spots(pointer, &spots, access);
        };
        let paths = self.open_paths(reached);
        let near = self.load_spots(&near, &spots, access)?;
        for &value in &*near.values {
            let ty = self.builder.ty(value);
            self.builder.add_param(paths.join, ty);
        }
        self.other_path(&paths, &near.values);
        let exact = self.exact(pointer)?;
        let far = self.load_spots(&exact, &spots, access)?;
        self.close_paths(&paths, &far.values);
        let values = self.builder.kernel().blocks[paths.join].params.as_slice().into();
        Ok(Composite { ty: pointer.pointee(), values })
    }

    fn load_spots(&mut self, pointer: &Pointer, spots: &[Spot], access: Access) -> InstResult<Composite> {
        let mut values = Vec::with_capacity(spots.len());
        let mut at = 0;
        while let Some(&(delta, scalar)) = spots.get(at) {
            let Some(place) = self.ir_place(pointer, delta)? else {
                values.push(self.load_input(pointer, delta)?);
                at += 1;
                continue;
            };
            let parts = self.subwords_of_word(pointer, &spots[at..]);
            if parts > 1 {
                let word = self.builder.load(ir::Type::I32, place, access);
                values.extend((0..parts).map(|part| self.subword(word, part as u32, scalar)));
            } else {
                values.push(self.load_scalar(pointer, place, scalar, access));
            }
            at += parts;
        }
        Ok(Composite { ty: pointer.pointee(), values: values.into() })
    }

    /// Number of the next scalars that form one aligned word; 1 if they do not.
    fn subwords_of_word(&self, pointer: &Pointer, spots: &[Spot]) -> usize {
        let (first, scalar) = spots[0];
        let bytes = scalar.bytes();
        let count = (4 / bytes.max(1)).max(1) as usize;
        if count < 2 || pointer.place.layout != LayoutRules::Explicit || !pointer.is_aligned(first) {
            return 1;
        }
        let next = |(spot, number): (&Spot, u32)| *spot == (first.wrapping_add(number * bytes), scalar);
        let complete = spots.len() >= count && spots.iter().zip(0..).take(count).all(next);
        if complete { count } else { 1 }
    }

    /// Extracts one sub-word from a word.
    fn subword(&mut self, word: Value, number: u32, scalar: Scalar) -> Value {
        let distance = self.builder.constant(number * scalar.bits());
        let moved = if number == 0 { word } else { self.builder.pure(ir::Op::LShr, &[word, distance]) };
        if scalar == Scalar::F16 {
            return self.builder.pure(ir::Op::HalfFromBits, &[moved]);
        }
        let mask = self.builder.constant(u32::MAX >> (32 - scalar.bits()));
        self.builder.pure(ir::Op::And, &[moved, mask])
    }

    fn load_scalar(&mut self, pointer: &Pointer, place: ir::Place, scalar: Scalar, access: Access) -> Value {
        match (scalar, width(pointer, scalar)) {
            (Scalar::Bool, _) => {
                let word = self.builder.load(ir::Type::I32, place, access);
                let zero = self.builder.constant(0u32);
                self.builder.pure(ir::Op::INe, &[word, zero])
            }
            (Scalar::Buffer, _) => {
                let number = self.builder.load(ir::Type::I32, place, access);
                self.builder.push_value(InstData::BufferOf { number }, ir::Type::Buffer)
            }
            (_, Width::Word) => self.builder.load(scalar.ty(), place, access),
            (_, width) => {
                let bits = self.builder.load_bytes(width, place, access);
                if scalar == Scalar::F16 { self.builder.pure(ir::Op::HalfFromBits, &[bits]) } else { bits }
            }
        }
    }

    fn load_input(&mut self, pointer: &Pointer, delta: u32) -> InstResult<Value> {
        let Root::Input { source } = pointer.root else { return Err("the pointer has no place in memory".into()) };
        let components: Rc<[Value]> = match source {
            Input::Constant(value) => shared([self.builder.constant(value)]),
            Input::Mask(relation) => shared(self.relation(relation)),
            Input::BuiltIn(builtin) => {
                let count = super::entry::components(builtin);
                shared((0..count).map(|component| self.builtin(builtin, component)).collect::<Vec<_>>())
            }
        };
        let offset = self.offset(pointer, delta);
        let four = self.builder.constant(2u32);
        let index = self.builder.pure(ir::Op::LShr, &[offset, four]);
        Ok(self.pick(&components, index))
    }

    /// Stores a value through a pointer.
    pub(super) fn store(&mut self, pointer: &Pointer, value: &Composite, access: Access) -> InstResult<()> {
        expect_type(pointer.pointee(), value.ty)?;
        pointer.check_writable()?;
        let access = self.combine(pointer, access);
        let spots = self.spots(pointer)?;
        let Some((near, reached)) = self.near(pointer, &spots) else {
            return self.store_spots(pointer, &spots, value, access);
        };
        let paths = self.open_paths(reached);
        self.store_spots(&near, &spots, value, access)?;
        self.other_path(&paths, &[]);
        let exact = self.exact(pointer)?;
        self.store_spots(&exact, &spots, value, access)?;
        self.close_paths(&paths, &[]);
        Ok(())
    }

    fn store_spots(&mut self, pointer: &Pointer, spots: &[Spot], value: &Composite, access: Access) -> InstResult<()> {
        let mut at = 0;
        while let Some(&(delta, scalar)) = spots.get(at) {
            let parts = self.subwords_of_word(pointer, &spots[at..]);
            let values = &value.values[at..at + parts];
            at += parts;
            let Some(place) = self.ir_place(pointer, delta)? else { continue };
            if parts > 1 {
                let word = self.word_of(values, scalar);
                self.builder.store(place, word, access);
                continue;
            }
            match (scalar, width(pointer, scalar)) {
                (Scalar::Bool, _) => {
                    let word = self.builder.pure(ir::Op::BoolToInt, &[values[0]]);
                    self.builder.store(place, word, access);
                }
                (Scalar::Buffer, _) => {
                    let data = InstData::BufferNumber { buffer: values[0] };
                    let number = self.builder.push_value(data, ir::Type::I32);
                    self.builder.store(place, number, access);
                }
                (_, Width::Word) => self.builder.store(place, values[0], access),
                (_, width) => {
                    let bits = self.stored_bits(values[0], scalar);
                    self.builder.store_bytes(width, place, bits, access);
                }
            }
        }
        Ok(())
    }

    fn stored_bits(&mut self, value: Value, scalar: Scalar) -> Value {
        if scalar == Scalar::F16 { self.builder.pure(ir::Op::HalfBits, &[value]) } else { value }
    }

    /// Combines sub-words into a word.
    fn word_of(&mut self, values: &[Value], scalar: Scalar) -> Value {
        let mut word = self.stored_bits(values[0], scalar);
        for (number, &value) in (1u32..).zip(&values[1..]) {
            let bits = self.stored_bits(value, scalar);
            let distance = self.builder.constant(number * scalar.bits());
            let placed = self.builder.pure(ir::Op::Shl, &[bits, distance]);
            word = self.builder.pure(ir::Op::Or, &[word, placed]);
        }
        word
    }

    /// The place of an atomic's scalar, its type, and its access width.
    pub(super) fn atomic_place(&mut self, id: Id) -> InstResult<(Pointer, ir::Place, Scalar, Width)> {
        let mut pointer = self.pointer(id)?;
        if let Root::Address { .. } = pointer.root {
            // Smaller if the type requires less.
            pointer = self.aligned_to(pointer, Some(4))?;
            pointer = self.exact(&pointer)?;
        }
        let scalar = match self.types.get(pointer.pointee())?.ty {
            SpirvType::Scalar(scalar) if scalar == Scalar::F16 || scalar != Scalar::Bool && scalar.bits() >= 32 => {
                scalar
            }
            _ => return Err("atomics are on integers of 32 and 64 bits and on floats only".into()),
        };
        let width = width(&pointer, scalar);
        let allowed = match pointer.root {
            Root::Buffer { space, .. } => space == ir::BufferSpace::Storage,
            Root::Variable { .. } => pointer.class == StorageClass::Workgroup,
            Root::Address { .. } => true,
            _ => false,
        };
        match self.ir_place(&pointer, 0)? {
            Some(place) if allowed => Ok((pointer, place, scalar, width)),
            _ => Err(format!("an atomic on memory of storage class {:?}", pointer.class)),
        }
    }
}

/// Access width of a scalar: sub-word only if the layout is explicit.
fn width(pointer: &Pointer, scalar: Scalar) -> Width {
    match (pointer.place.layout, scalar.bits()) {
        (LayoutRules::Explicit, 8) => Width::Byte,
        (LayoutRules::Explicit, 16) => Width::Half,
        _ => Width::Word,
    }
}
