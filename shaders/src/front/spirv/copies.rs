//! Copies of large composites as loops over elements, where a load and a store per scalar would be too many.

use spirv::{Op, StorageClass};

use super::pointer::{Pointer, Root};
use super::translate::Translator;
use super::types::{Member, SpirvType};
use super::words::{Id, Inst, InstResult, operand};
use crate::ir::{self, Access, BlockCall, InstData, Merge, Value, ValueDef};

/// Scalars of a composite that is copied without a loop, at most: optimisations see through such copies.
const MAX_SCALARS_AT_ONCE: u32 = 256;

/// Source of a copy.
#[derive(Clone, Debug)]
enum From {
    /// With the word of the instruction that loads.
    Memory(Pointer, Access, u32),
    /// Zeros.
    Null,
}

impl From {
    fn map(&self, step: impl FnOnce(&Pointer) -> InstResult<Pointer>) -> InstResult<Self> {
        Ok(match self {
            Self::Memory(pointer, access, word) => Self::Memory(step(pointer)?, *access, *word),
            Self::Null => Self::Null,
        })
    }
}

impl Translator<'_> {
    /// Whether values of a type are large: copied in loops.
    pub(super) fn is_large(&self, ty: Id) -> bool {
        self.types.get(ty).is_ok_and(|info| info.scalars > MAX_SCALARS_AT_ONCE)
    }

    /// Copies a large composite from a load to the store that follows and is its only use; returns whether it did.
    pub(super) fn load_and_store(&mut self, load: &Inst, next: Option<&Inst>) -> InstResult<bool> {
        let Some(store) = next.filter(|next| load.op == Op::Load && next.op == Op::Store) else { return Ok(false) };
        if !self.is_large(load.ty) || self.mentions(load.id).all != 1 {
            return Ok(false);
        }
        let words = &self.sections.words;
        let (loads, stores) = (words.operands(load), words.operands(store));
        if operand(stores, 1)? != load.id {
            return Ok(false);
        }
        let (source, target) = (self.pointer(operand(loads, 0)?)?, self.pointer(operand(stores, 0)?)?);
        if source.pointee() != load.ty || target.pointee() != load.ty || !self.are_apart(&target, &source) {
            return Ok(false);
        }
        let from = self.memory_operands(&loads[1..])?.0.load;
        let to = self.memory_operands(&stores[2..])?.0.store;
        self.builder.set_origin(store.word);
        target.check_writable()?;
        self.copy(&target, to, &From::Memory(source, from, load.word))?;
        Ok(true)
    }

    /// Copies a large composite between pointers; returns whether it did.
    pub(super) fn copy_large(
        &mut self,
        target: &Pointer,
        to: Access,
        source: &Pointer,
        from: Access,
    ) -> InstResult<bool> {
        let one_type = target.pointee() == source.pointee();
        if !one_type || !self.is_large(target.pointee()) || !self.are_apart(target, source) {
            return Ok(false);
        }
        target.check_writable()?;
        self.copy(target, to, &From::Memory(source.clone(), from, self.builder.origin()))?;
        Ok(true)
    }

    /// Stores a large composite of zeros; returns whether it did.
    pub(super) fn store_null(&mut self, target: &Pointer, value: Id, access: Access) -> InstResult<bool> {
        let is_null = self.constants.get(value).is_some_and(|null| null.bits.is_none() && null.ty == target.pointee());
        if !is_null || !self.is_large(target.pointee()) || !is_plain(target) {
            return Ok(false);
        }
        target.check_writable()?;
        self.copy(target, access, &From::Null)?;
        Ok(true)
    }

    /// Whether a store is of a large null constant.
    pub(super) fn stores_large_null(&self, store: &Inst) -> bool {
        let value = self.sections.words.operands(store).get(1);
        let null = value.and_then(|&value| self.constants.get(value)).filter(|constant| constant.bits.is_none());
        null.is_some_and(|null| self.is_large(null.ty))
    }

    /// Whether two memory objects of one type are identical or disjoint, so that elements may be copied one by one.
    /// Objects in one variable are; in an array of descriptors, those in the same descriptor. Different variables are
    /// disjoint unless decorated `Aliased` (SPIR-V, 2.18.2).
    fn are_apart(&mut self, target: &Pointer, source: &Pointer) -> bool {
        let is_own = |pointer: &Pointer| matches!(pointer.class, StorageClass::Function | StorageClass::Private);
        let is_alone = |pointer: &Pointer| {
            pointer.origin != 0 && !self.sections.annotations.of(pointer.origin).is_some_and(|of| of.aliased)
        };
        let both = [target, source];
        both.iter().all(|pointer| is_plain(pointer))
            && (both.iter().any(|pointer| is_own(pointer)) || both.iter().all(|pointer| is_alone(pointer)))
            && (target.origin != source.origin || self.are_of_one_descriptor(target.root, source.root))
    }

    /// Whether two pointers into one variable use the same descriptor, or the variable is no array of descriptors.
    fn are_of_one_descriptor(&mut self, target: Root, source: Root) -> bool {
        let (Root::Buffer { buffer: a, .. }, Root::Buffer { buffer: b, .. }) = (target, source) else { return true };
        let kernel = self.builder.kernel();
        let descriptor = |buffer: Value| match kernel.values[buffer] {
            ValueDef::Result { inst, .. } => match kernel.insts[inst] {
                InstData::Buffer { binding, index } => Some((binding, index)),
                _ => None,
            },
            ValueDef::Param { .. } => None,
        };
        match (descriptor(a), descriptor(b)) {
            (Some((binding, i)), Some((_, j))) => {
                let same = kernel.constant(i).is_some_and(|number| kernel.constant(j) == Some(number));
                kernel.bindings[binding].count == 1 || i == j || same
            }
            _ => a == b,
        }
    }

    /// Copies between disjoint memory objects of one type.
    pub(super) fn copy_memory_to(
        &mut self,
        target: &Pointer,
        to: Access,
        source: &Pointer,
        from: Access,
    ) -> InstResult<()> {
        self.copy(target, to, &From::Memory(source.clone(), from, self.builder.origin()))
    }

    fn copy(&mut self, target: &Pointer, to: Access, source: &From) -> InstResult<()> {
        self.spend(1)?;
        let ty = target.pointee();
        let info = self.types.get(ty)?;
        match &info.ty {
            SpirvType::Struct { members } if self.is_large(ty) => {
                for (number, member) in (0..).zip(members) {
                    let source = source.map(|source| self.member(source, member, number))?;
                    let target = self.member(target, member, number)?;
                    self.copy(&target, to, &source)?;
                }
                Ok(())
            }
            SpirvType::Array { count, .. } if self.is_large(ty) => self.copy_elements(target, to, source, *count),
            _ => {
                let value = match source {
                    From::Memory(pointer, access, word) => {
                        let storing = self.builder.origin();
                        self.builder.set_origin(*word);
                        let value = self.load(pointer, *access)?;
                        self.builder.set_origin(storing);
                        value
                    }
                    From::Null => self.zero(ty)?,
                };
                self.store(target, &value, to)
            }
        }
    }

    fn copy_elements(&mut self, target: &Pointer, to: Access, source: &From, count: u32) -> InstResult<()> {
        let [head, body, next, done] = [(); 4].map(|()| self.builder.create_block());
        let [zero, one, count] = [0, 1, count].map(|number| self.builder.constant(number));
        self.builder.push(InstData::Jump { to: BlockCall { block: head, args: [zero].as_slice().into() } });
        self.builder.switch_to(head);
        let index = self.builder.add_param(head, ir::Type::I32);
        let more = self.builder.pure(ir::Op::ULt, &[index, count]);
        self.builder.set_merge(Merge::Loop { merge: done, continuing: next });
        let (then, otherwise) = (BlockCall::new(body), BlockCall::new(done));
        self.builder.push(InstData::Branch { condition: more, then, otherwise });
        self.builder.switch_to(body);
        let source = source.map(|source| self.element(source, index))?;
        let target = self.element(target, index)?;
        self.copy(&target, to, &source)?;
        self.builder.push(InstData::Jump { to: BlockCall::new(next) });
        self.builder.switch_to(next);
        let after = self.builder.pure(ir::Op::IAdd, &[index, one]);
        self.builder.push(InstData::Jump { to: BlockCall { block: head, args: [after].as_slice().into() } });
        self.builder.switch_to(done);
        Ok(())
    }

    /// A pointer to a member of a structure.
    pub(super) fn member(&self, pointer: &Pointer, member: &Member, number: u32) -> InstResult<Pointer> {
        let mut pointer = pointer.clone();
        pointer.step_into(&self.types, member, number)?;
        Ok(pointer)
    }

    /// A pointer to an element of an array.
    pub(super) fn element(&mut self, pointer: &Pointer, index: Value) -> InstResult<Pointer> {
        let mut pointer = pointer.clone();
        let elements = pointer.place.elements(&self.types)?;
        pointer.element_stride = Some(elements.stride);
        self.advance(&mut pointer, index, elements.stride);
        pointer.place = elements.place;
        Ok(pointer)
    }
}

/// Whether the memory is accessed without an address lookup: neither variable pointers nor physical addresses.
pub(super) fn is_plain(pointer: &Pointer) -> bool {
    !pointer.is_variable && matches!(pointer.root, Root::Buffer { .. } | Root::Variable { .. } | Root::Push)
}
