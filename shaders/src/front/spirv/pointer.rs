//! Pointers: resolved during translation, since functions are inlined, except for variable pointers
//! (`pointer_value.rs`).

use smallvec::SmallVec;
use spirv::StorageClass;

use super::decorations::MemoryDecorations;
use super::group::MaskRelation;
use super::layout::{LayoutRules, Pointee};
use super::translate::{IdDefinition, Translator};
use super::types::{Member, SpirvType, Types};
use super::words::{Id, Inst, InstResult, operand};
use crate::ir::{self, Access, Binding, BufferSpace, BuiltIn, Value, Variable};

/// The memory that a pointer refers to.
#[derive(Clone, Copy, Debug)]
pub(super) enum Root {
    /// An array of descriptors that has not been fully indexed; with the first element's index, as far as known.
    Descriptors { binding: Binding, space: BufferSpace, index: Option<Value> },
    /// A descriptor's buffer.
    Buffer { space: BufferSpace, buffer: Value },
    /// Device memory at an address: low and high word.
    Address { address: [Value; 2] },
    /// The push constants.
    Push,
    /// A variable with storage.
    Variable { variable: Variable },
    /// A built-in.
    Input { source: Input },
}

/// Source of an input variable's scalars.
#[derive(Clone, Copy, Debug)]
pub(super) enum Input {
    /// A built-in of the invocation.
    BuiltIn(BuiltIn),
    /// A constant.
    Constant(u32),
    /// A mask of the subgroup's invocations in a relation to this one.
    Mask(MaskRelation),
}

/// A pointer: a root, and the offset and type of its target.
#[derive(Clone, Debug)]
pub(super) struct Pointer {
    /// Storage class.
    pub(super) class: StorageClass,
    /// The target's type and layout.
    pub(super) place: Pointee,
    /// The memory.
    pub(super) root: Root,
    /// The run-time part of the byte offset.
    pub(super) dynamic: Option<Value>,
    /// The components of `dynamic`: a constant, and indices with their strides.
    pub(super) start: u32,
    pub(super) steps: SmallVec<[(Value, u32); 2]>,
    /// The compile-time part of the byte offset.
    pub(super) delta: u32,
    /// Known alignment of the run-time part: 1, 2 or 4.
    pub(super) align: u32,
    /// Stride in bytes, if the target is an array element.
    pub(super) element_stride: Option<u32>,
    /// The declared pointer type; 0 if there is none.
    pub(super) ty: Id,
    /// The variable that it is derived from; 0 if unknown.
    pub(super) origin: Id,
    /// Whether it is a variable pointer (SPIR-V, 2.2.2).
    pub(super) is_variable: bool,
    /// Whether the target extends to the end of its variable or block, so that out-of-range accesses are out of bounds
    /// anyway.
    pub(super) is_last: bool,
    /// Decorations of the variable and of the members along the chain.
    pub(super) memory: MemoryDecorations,
}

impl Pointer {
    /// A pointer to a whole variable.
    pub(super) fn new(class: StorageClass, place: Pointee, root: Root, memory: MemoryDecorations) -> Self {
        Self {
            class,
            place,
            root,
            dynamic: None,
            start: 0,
            steps: SmallVec::new(),
            delta: 0,
            align: 4,
            element_stride: None,
            ty: 0,
            origin: 0,
            is_variable: false,
            is_last: true,
            memory,
        }
    }

    /// The pointer `delta` bytes further, before any run-time step.
    pub(super) fn after(self, delta: u32) -> Self {
        Self { delta, ..self }
    }

    /// A pointer to the same target, given its address.
    pub(super) fn rebased(&self, address: [Value; 2]) -> Self {
        let root = Root::Address { address };
        Self { root, dynamic: None, start: 0, steps: SmallVec::new(), delta: 0, ..self.clone() }
    }

    /// Steps to a structure member.
    pub(super) fn step_into(&mut self, types: &Types, member: &Member, number: u32) -> InstResult<()> {
        let (place, offset) = self.place.member(types, member, number)?;
        self.is_last &= self.place.is_last_member(types, number)?;
        self.place = place;
        self.delta = self.delta.saturating_add(offset);
        self.element_stride = None;
        if place.layout == LayoutRules::Explicit {
            self.memory = self.memory.or(member.matrix.memory);
        }
        Ok(())
    }

    /// The compile-time part of the byte offset.
    pub(super) fn constant_part(&self) -> u32 {
        self.start.saturating_add(self.delta)
    }

    /// Whether the word `delta` bytes further is aligned.
    pub(super) fn is_aligned(&self, delta: u32) -> bool {
        self.align == 4 && self.delta.wrapping_add(delta).is_multiple_of(4)
    }

    /// A pointer at a run-time byte offset in some memory.
    pub(super) fn at(
        class: StorageClass,
        place: Pointee,
        root: Root,
        offset: Value,
        memory: MemoryDecorations,
    ) -> Self {
        Self { dynamic: Some(offset), ..Self::new(class, place, root, memory) }
    }

    /// Type of the target.
    pub(super) fn pointee(&self) -> Id {
        self.place.ty
    }

    /// Checks that stores and atomics are allowed.
    pub(super) fn check_writable(&self) -> InstResult<()> {
        let writable = match self.root {
            Root::Buffer { space, .. } => space == BufferSpace::Storage,
            // Tables are variables with `NonWritable` that compilers write once, by initializer or by store.
            Root::Variable { .. } => return Ok(()),
            Root::Address { .. } => true,
            Root::Descriptors { .. } | Root::Push | Root::Input { .. } => false,
        };
        match (writable, self.memory.non_writable) {
            (true, false) => Ok(()),
            (true, true) => Err("writes memory that is NonWritable".into()),
            (false, _) => Err(format!("writes through a pointer of storage class {:?}", self.class)),
        }
    }

    /// Checks that a declared pointer type matches.
    pub(super) fn expect_type(&self, types: &Types, ty: Id) -> InstResult<()> {
        match types.get(ty)?.ty {
            SpirvType::Pointer { class, pointee } if class == self.class && pointee == self.place.ty => Ok(()),
            SpirvType::Pointer { class, pointee } => Err(format!(
                "the pointer type %{ty} is {class:?} to %{pointee}, but the pointer is {:?} to %{}",
                self.class, self.place.ty
            )),
            _ => Err(format!("%{ty} is not a pointer type")),
        }
    }
}

impl Translator<'_> {
    /// The pointer of an id.
    pub(super) fn pointer(&mut self, id: Id) -> InstResult<Pointer> {
        match self.frame.values.get(&id) {
            Some(IdDefinition::Pointer(pointer)) => Ok(pointer.clone()),
            Some(IdDefinition::Value(value)) => {
                let value = value.clone();
                self.pointer_of(&value)
            }
            Some(IdDefinition::ByReference(_)) => Err(format!("{} is not a pointer", self.sections.describe(id))),
            Some(IdDefinition::Undefined(_)) => Err(format!("the pointer {} is undefined", self.sections.describe(id))),
            None if self.constants.get(id).is_some() => {
                let value = self.value(id)?;
                self.pointer_of(&value)
            }
            None => self.global(id),
        }
    }

    /// `OpAccessChain` and `OpInBoundsAccessChain`.
    pub(super) fn access_chain(&mut self, inst: &Inst, operands: &[u32]) -> InstResult<()> {
        let mut pointer = self.pointer(operand(operands, 0)?)?;
        for &index in &operands[1..] {
            self.step(&mut pointer, index)?;
        }
        self.bind_chain(inst, pointer)
    }

    /// Binds the result of an access chain after checking its type.
    pub(super) fn bind_chain(&mut self, inst: &Inst, mut pointer: Pointer) -> InstResult<()> {
        pointer.expect_type(&self.types, inst.ty)?;
        let declared = self.sections.annotations.of(inst.ty).and_then(|decorations| decorations.array_stride);
        if let (Some(declared), Some(stride), LayoutRules::Explicit) =
            (declared, pointer.element_stride, pointer.place.layout)
            && declared != stride
        {
            return Err(format!(
                "the pointer type has an ArrayStride of {declared}, but the array that the element is in has one of {stride}"
            ));
        }
        pointer.ty = inst.ty;
        self.bind_pointer(inst.id, pointer);
        Ok(())
    }

    pub(super) fn step(&mut self, pointer: &mut Pointer, index: Id) -> InstResult<()> {
        self.spend(0)?;
        if let Root::Descriptors { binding, space, index: before } = pointer.root {
            return self.step_descriptor(pointer, binding, space, before, index);
        }
        let info = self.types.get(pointer.place.ty)?;
        if let SpirvType::Struct { members } = &info.ty {
            let number = self.constants.uint(&self.types, index)?;
            let member = members.get(number as usize).ok_or_else(|| format!("no member {number}"))?;
            // Comparing the last of many members with all others counts as work.
            let work = if number as usize + 1 == members.len() { members.len() / 64 } else { 0 };
            pointer.step_into(&self.types, member, number)?;
            return self.spend(work);
        }
        let elements = pointer.place.elements(&self.types)?;
        let is_array = matches!(info.ty, SpirvType::Array { .. } | SpirvType::RuntimeArray { .. });
        pointer.element_stride = is_array.then_some(elements.stride);
        if !self.step_by_address(pointer, index, elements.stride)? {
            let index = self.index(index)?;
            // A physical pointer may have a negative index, and the next row follows a column of a row-major matrix.
            let is_last = pointer.is_last && elements.place.component_stride.is_none();
            let is_open = is_last || matches!(pointer.root, Root::Address { .. });
            let index = match elements.count.filter(|_| !is_open) {
                Some(count) => self.clamped(index, count),
                None => index,
            };
            self.advance(pointer, index, elements.stride);
        }
        pointer.place = elements.place;
        pointer.is_last = false;
        Ok(())
    }

    /// Clamps an index into an array of `count` elements that is followed by other data: an out-of-range index becomes
    /// that of the last element (ADR 13).
    fn clamped(&mut self, index: Value, count: u32) -> Value {
        let last = self.builder.constant(count.saturating_sub(1));
        self.builder.pure(ir::Op::UMin, &[index, last])
    }

    pub(super) fn advance(&mut self, pointer: &mut Pointer, index: Value, stride: u32) {
        if let Some(index) = self.builder.kernel().constant(index) {
            let delta = ir::element(pointer.delta, index as u32, stride);
            // A variable pointer may temporarily point before its memory: units are counted modulo 2³².
            if delta != u32::MAX || !pointer.is_variable {
                pointer.delta = delta;
                return;
            }
        }
        let base = match pointer.dynamic {
            Some(base) => base,
            None => {
                let delta = std::mem::take(&mut pointer.delta);
                pointer.start = delta;
                pointer.align = 1 << delta.trailing_zeros().min(2);
                self.builder.constant(delta)
            }
        };
        pointer.align = pointer.align.min(1 << stride.trailing_zeros().min(2));
        pointer.steps.push((index, stride));
        pointer.dynamic = Some(self.builder.element(base, index, stride));
    }

    /// Indexes an array of descriptors, or one dimension of several.
    fn step_descriptor(
        &mut self,
        pointer: &mut Pointer,
        binding: Binding,
        space: BufferSpace,
        before: Option<Value>,
        index: Id,
    ) -> InstResult<()> {
        let index = self.index(index)?;
        let (SpirvType::Array { element, .. } | SpirvType::RuntimeArray { element, .. }) =
            self.types.get(pointer.place.ty)?.ty
        else {
            return Err("indexes something other than an array of descriptors".into());
        };
        pointer.place.ty = element;
        let inner = super::variables::descriptor_count(&self.types, element)?;
        let index = match before {
            None if inner == 1 => index,
            None => {
                let zero = self.builder.constant(0u32);
                self.builder.element(zero, index, inner)
            }
            Some(before) => self.builder.element(before, index, inner),
        };
        pointer.root = match self.types.get(element)?.ty {
            SpirvType::Array { .. } => Root::Descriptors { binding, space, index: Some(index) },
            _ => Root::Buffer { space, buffer: self.buffer(binding, index) },
        };
        Ok(())
    }

    /// The byte offset `delta` bytes after the target.
    pub(super) fn offset(&mut self, pointer: &Pointer, delta: u32) -> Value {
        // Offsets beyond 32 bits are out of bounds; the sum saturates.
        let delta = self.builder.constant(pointer.delta.saturating_add(delta));
        match pointer.dynamic {
            Some(base) => self.builder.element(base, delta, 1),
            None => delta,
        }
    }

    /// The place of a scalar, `delta` bytes after the target; `None` for inputs, which have no memory.
    pub(super) fn ir_place(&mut self, pointer: &Pointer, delta: u32) -> InstResult<Option<ir::Place>> {
        if let Root::Address { address } = pointer.root {
            return Ok(Some(self.place_at(pointer, address, delta)));
        }
        let offset = self.offset(pointer, delta);
        Ok(Some(match pointer.root {
            Root::Buffer { space, buffer } => ir::Place::Buffer { space, buffer, offset },
            Root::Push => ir::Place::Push { offset },
            Root::Variable { variable } => ir::Place::Variable { variable, offset },
            Root::Input { .. } => return Ok(None),
            Root::Address { .. } => return Err("an address has no offset".into()),
            Root::Descriptors { .. } => return Err("accesses an array of descriptors as a whole".into()),
        }))
    }

    /// The memory access that a pointer's decorations require.
    pub(super) fn access_of(&self, pointer: &Pointer) -> Access {
        Access {
            volatile: pointer.memory.volatile,
            non_private: pointer.memory.coherent && !self.sections.is_vulkan_memory_model(),
            available_visible: None,
        }
    }
}
