//! Variable pointers: results of selects, phis, calls and loads (`SPV_KHR_variable_pointers`), and pointer arithmetic.
//!
//! A pointer to a storage buffer is the buffer and an offset in units of its pointee's alignment. A pointer to
//! workgroup memory is one plus such an offset in the combined memory of all variables. ADR 7 has the reasons.

use spirv::{Capability, StorageClass};

use super::composite::Composite;
use super::layout::{LayoutRules, Pointee, natural_bytes};
use super::pointer::{Pointer, Root};
use super::scalar::Scalar;
use super::translate::{IdDefinition, Translator, shared};
use super::types::SpirvType;
use super::words::{Id, Inst, InstResult, operand};
use crate::ir::{self, BufferSpace, InstData, Value};

impl Translator<'_> {
    /// Checks the rules for variable pointers, except those about their uses.
    pub(super) fn check_variable_pointer(&self, class: StorageClass, pointee: Id) -> InstResult<()> {
        self.check_class(class)?;
        if class != StorageClass::PhysicalStorageBuffer && self.types.get(pointee)?.has_matrix {
            return Err(format!("a variable pointer to %{pointee}, which is or contains a matrix"));
        }
        Ok(())
    }

    /// Checks that pointers to a storage class may be compared.
    fn check_class(&self, class: StorageClass) -> InstResult<()> {
        let declared = |capability| self.sections.declares(capability);
        match class {
            StorageClass::StorageBuffer if declared(Capability::VariablePointersStorageBuffer) => Ok(()),
            StorageClass::StorageBuffer if declared(Capability::VariablePointers) => Ok(()),
            StorageClass::Workgroup if declared(Capability::VariablePointers) => Ok(()),
            StorageClass::PhysicalStorageBuffer => Ok(()),
            StorageClass::StorageBuffer => {
                Err("a variable pointer without the capability VariablePointersStorageBuffer".into())
            }
            StorageClass::Workgroup => {
                Err("a variable pointer into workgroup memory without the capability VariablePointers".into())
            }
            class => Err(format!("a variable pointer to storage class {class:?}")),
        }
    }

    /// As [`Translator::check_variable_pointer`], if the type is a pointer type.
    pub(super) fn check_pointer_type(&self, ty: Id) -> InstResult<()> {
        match self.types.get(ty)?.ty {
            SpirvType::Pointer { class, pointee } => self.check_variable_pointer(class, pointee),
            _ => Ok(()),
        }
    }

    /// The layout of pointees of a storage class.
    fn layout_of(&self, class: StorageClass) -> LayoutRules {
        let explicit = class != StorageClass::Workgroup || self.sections.has_workgroup_blocks;
        if explicit { LayoutRules::Explicit } else { LayoutRules::Natural }
    }

    /// Alignment of a type in bytes: the unit of offsets.
    fn unit(&self, layout: LayoutRules, pointee: Id) -> InstResult<u32> {
        Ok(if layout == LayoutRules::Explicit { self.types.get(pointee)?.align } else { 4 })
    }

    /// The value of a pointer.
    pub(super) fn value_of(&mut self, pointer: &Pointer) -> InstResult<Composite> {
        self.check_variable_pointer(pointer.class, pointer.pointee())?;
        let is_plain = pointer.place.matrix.stride.is_none() && pointer.place.component_stride.is_none();
        if !is_plain && self.types.get(pointer.pointee())?.has_matrix || pointer.place.component_stride.is_some() {
            return Err("a pointer into a matrix is not a value".into());
        }
        self.place_of_pointer(pointer)
    }

    /// As [`Translator::value_of`], for comparisons: the pointer need not be a variable pointer.
    fn place_of_pointer(&mut self, pointer: &Pointer) -> InstResult<Composite> {
        if pointer.ty == 0 {
            return Err("a pointer of unknown type is not a value".into());
        }
        let values = match pointer.root {
            Root::Buffer { space: BufferSpace::Storage, buffer } => {
                let units = self.units(pointer)?;
                shared([buffer, units])
            }
            Root::Variable { .. } if pointer.class == StorageClass::Workgroup => {
                let units = self.units(pointer)?;
                let one = self.builder.constant(1u32);
                shared([self.builder.pure(ir::Op::IAdd, &[units, one])])
            }
            Root::Address { address } => shared(self.whole_address(pointer, address)?),
            _ => return Err(format!("a pointer to storage class {:?} is not a value", pointer.class)),
        };
        Ok(Composite { ty: pointer.ty, values })
    }

    /// Offset of the target in units of the pointee's alignment, modulo 2³².
    fn units(&mut self, pointer: &Pointer) -> InstResult<Value> {
        let unit = self.unit(pointer.place.layout, pointer.pointee())?;
        let misaligned = || "the pointer is not aligned to its type".to_owned();
        let whole = |bytes: u32| bytes.is_multiple_of(unit).then_some(bytes / unit).ok_or_else(misaligned);
        let start = match pointer.constant_part() {
            // Byte offsets that do not fit 32 bits: beyond all memory.
            u32::MAX => u32::MAX / unit,
            bytes => whole(bytes)?,
        };
        let mut sum = None;
        for &(index, stride) in &pointer.steps {
            let term = self.times(index, whole(stride)?);
            sum = Some(sum.map_or(term, |sum| self.builder.pure(ir::Op::IAdd, &[sum, term])));
        }
        let start = (start, self.builder.constant(start));
        Ok(match (sum, start) {
            (None, (_, start)) => start,
            (Some(sum), (0, _)) => sum,
            (Some(sum), (_, start)) => self.builder.pure(ir::Op::IAdd, &[sum, start]),
        })
    }

    fn times(&mut self, value: Value, factor: u32) -> Value {
        if factor == 1 {
            return value;
        }
        let factor = self.builder.constant(factor);
        self.builder.pure(ir::Op::IMul, &[value, factor])
    }

    /// The pointer of a value.
    pub(super) fn pointer_of(&mut self, value: &Composite) -> InstResult<Pointer> {
        let SpirvType::Pointer { class, pointee } = self.types.get(value.ty)?.ty else {
            return Err(format!("a value of type %{} is not a pointer", value.ty));
        };
        self.check_variable_pointer(class, pointee)?;
        let layout = self.layout_of(class);
        let place = Pointee::new(pointee, layout);
        let memory = self.sections.annotations.any_memory();
        let (root, units) = match (class, &*value.values) {
            (StorageClass::StorageBuffer, &[buffer, units]) => {
                (Root::Buffer { space: BufferSpace::Storage, buffer }, units)
            }
            (StorageClass::Workgroup, &[units]) => {
                let (one, variable) = (self.builder.constant(1u32), self.workgroup_memory());
                (Root::Variable { variable }, self.builder.pure(ir::Op::ISub, &[units, one]))
            }
            (StorageClass::PhysicalStorageBuffer, &[low, high]) => {
                let root = Root::Address { address: [low, high] };
                return Ok(Pointer { ty: value.ty, ..Pointer::new(class, place, root, memory) });
            }
            _ => return Err(format!("a pointer to storage class {class:?} is not a value")),
        };
        let mut pointer =
            Pointer { ty: value.ty, is_variable: true, is_last: false, ..Pointer::new(class, place, root, memory) };
        let unit = self.unit(layout, pointee)?;
        self.advance(&mut pointer, units, unit);
        Ok(pointer)
    }

    /// `OpPtrAccessChain`: steps by a number of elements in the array that contains the base, then as `OpAccessChain`.
    pub(super) fn ptr_access_chain(&mut self, inst: &Inst, operands: &[u32]) -> InstResult<()> {
        let base = self.pointer(operand(operands, 0)?)?;
        let stride = self.stride_of(&base)?;
        let element = self.value(operand(operands, 1)?)?;
        let moved = match base.root {
            Root::Address { address } => {
                let values = self.moved_address(&base, address, &element, stride)?;
                Composite { ty: base.ty, values }
            }
            _ => {
                let unit = self.unit(base.place.layout, base.pointee())?;
                if !stride.is_multiple_of(unit) {
                    return Err(format!("ArrayStride {stride} is not a multiple of {unit}"));
                }
                let element = self.signed(&element)?;
                let steps = self.times(element, stride / unit);
                let value = self.value_of(&base)?;
                let last = value.values.len() - 1;
                let sum = self.builder.pure(ir::Op::IAdd, &[value.values[last], steps]);
                let values = value.values[..last].iter().copied().chain([sum]);
                Composite { ty: value.ty, values: shared(values.collect::<Vec<_>>()) }
            }
        };
        let mut pointer = self.pointer_of(&moved)?;
        pointer.origin = base.origin;
        pointer.memory = pointer.memory.or(base.memory);
        for &index in &operands[2..] {
            self.step(&mut pointer, index)?;
        }
        self.bind_chain(inst, pointer)
    }

    /// Stride in bytes of the array that a pointer points into.
    fn stride_of(&self, pointer: &Pointer) -> InstResult<u32> {
        self.check_variable_pointer(pointer.class, pointer.pointee())?;
        if pointer.place.layout == LayoutRules::Natural {
            return natural_bytes(&self.types, pointer.pointee());
        }
        let declared = self.sections.annotations.of(pointer.ty).and_then(|decorations| decorations.array_stride);
        declared.ok_or_else(|| format!("the pointer type %{} has no ArrayStride", pointer.ty))
    }

    /// An integer of any width, sign-extended to 32 bits; values that do not fit are out of bounds.
    fn signed(&mut self, value: &Composite) -> InstResult<Value> {
        let SpirvType::Scalar(scalar) = self.types.get(value.ty)?.ty else {
            return Err("the element is not an integer".into());
        };
        Ok(match (scalar, &*value.values) {
            (Scalar::I32, &[value]) => value,
            (Scalar::I8 | Scalar::I16, &[value]) => {
                let up = self.builder.constant(32 - scalar.bits());
                let high = self.builder.pure(ir::Op::Shl, &[value, up]);
                self.builder.pure(ir::Op::AShr, &[high, up])
            }
            (Scalar::I64, &[low, high]) => {
                let sign = self.sign_of(low);
                let fits = self.builder.pure(ir::Op::IEq, &[high, sign]);
                let far = self.builder.constant(0x8000_0000u32);
                self.builder.select(fits, low, far)
            }
            _ => return Err("the element is not an integer".into()),
        })
    }

    /// The sign as a word: all ones if negative, else 0.
    pub(super) fn sign_of(&mut self, word: Value) -> Value {
        let sign = self.builder.constant(31u32);
        self.builder.pure(ir::Op::AShr, &[word, sign])
    }

    /// Two comparable pointers of one type: the rules for variable pointers apply to variable pointers only.
    fn compared(&mut self, operands: &[u32]) -> InstResult<[(Pointer, Composite); 2]> {
        let one = self.pointer(operand(operands, 0)?)?;
        let two = self.pointer(operand(operands, 1)?)?;
        match one.class {
            StorageClass::PhysicalStorageBuffer => {
                Err("pointers to storage class PhysicalStorageBuffer can be compared as integers only".into())
            }
            class if one.ty == two.ty => {
                self.check_class(class)?;
                let values = [self.place_of_pointer(&one)?, self.place_of_pointer(&two)?];
                let [first, second] = values;
                Ok([(one, first), (two, second)])
            }
            _ => Err("the operands are not pointers of one type".into()),
        }
    }

    pub(super) fn ptr_equal(&mut self, inst: &Inst, operands: &[u32], equal: bool) -> InstResult<()> {
        let [(_, one), (_, two)] = self.compared(operands)?;
        if !matches!(self.types.get(inst.ty)?.ty, SpirvType::Scalar(Scalar::Bool)) {
            return Err("the result is not a bool".into());
        }
        let mut same = None;
        for (&a, &b) in one.values.iter().zip(&*two.values) {
            let [a, b] = [a, b].map(|value| self.as_word(value));
            let equal = self.builder.pure(ir::Op::IEq, &[a, b]);
            same = Some(same.map_or(equal, |same| self.builder.pure(ir::Op::LAnd, &[same, equal])));
        }
        let same = same.ok_or("the operands are not pointers")?;
        let result = if equal { same } else { self.builder.pure(ir::Op::LNot, &[same]) };
        self.bind(inst.id, Composite { ty: inst.ty, values: shared([result]) });
        Ok(())
    }

    fn as_word(&mut self, value: Value) -> Value {
        if self.builder.ty(value) == ir::Type::Buffer {
            return self.builder.push_value(InstData::BufferNumber { buffer: value }, ir::Type::I32);
        }
        value
    }

    /// `OpPtrDiff`: the number of elements from the second to the first pointer, which must point into one array.
    pub(super) fn ptr_diff(&mut self, inst: &Inst, operands: &[u32]) -> InstResult<()> {
        let [(base, one), (_, two)] = self.compared(operands)?;
        let unit = self.unit(base.place.layout, base.pointee())?;
        let stride = match base.element_stride {
            Some(stride) => stride,
            None => self.stride_of(&base)?,
        };
        let units = stride.max(1) / unit;
        let last = one.values.len() - 1;
        let distance = self.builder.pure(ir::Op::ISub, &[one.values[last], two.values[last]]);
        let units = self.builder.constant(units.max(1));
        let count = self.builder.pure(ir::Op::SDiv, &[distance, units]);
        let values = match self.types.get(inst.ty)?.ty {
            SpirvType::Scalar(Scalar::I32) => shared([count]),
            SpirvType::Scalar(Scalar::I64) => shared([count, self.sign_of(count)]),
            SpirvType::Scalar(scalar @ (Scalar::I8 | Scalar::I16)) => {
                let mask = self.builder.constant(u32::MAX >> (32 - scalar.bits()));
                shared([self.builder.pure(ir::Op::And, &[count, mask])])
            }
            _ => return Err("the result is not an integer".into()),
        };
        self.bind(inst.id, Composite { ty: inst.ty, values });
        Ok(())
    }

    /// The variable that a pointer is derived from, if known.
    fn origin_of(&self, id: Id) -> Option<Id> {
        let origin = match self.frame.values.get(&id) {
            Some(IdDefinition::Pointer(pointer)) => pointer.origin,
            Some(IdDefinition::Value(_) | IdDefinition::ByReference(_) | IdDefinition::Undefined(_)) => {
                self.frame.origins.get(&id).copied().unwrap_or(0)
            }
            None if self.variables.is_global(id) => id,
            None => 0,
        };
        (origin != 0).then_some(origin)
    }

    /// Records that `result` may be the pointer `from`. With the lesser capability all such pointers must be into one
    /// structure.
    pub(super) fn record_origin(&mut self, ty: Id, result: Id, from: Id) -> InstResult<()> {
        let SpirvType::Pointer { class: StorageClass::StorageBuffer, .. } = self.types.get(ty)?.ty else {
            return Ok(());
        };
        let Some(origin) = self.origin_of(from) else { return Ok(()) };
        let before = *self.frame.origins.entry(result).or_insert(origin);
        if before == origin || self.sections.declares(Capability::VariablePointers) {
            return Ok(());
        }
        Err(format!(
            "selects between pointers into {} and {}, without the capability VariablePointers",
            self.sections.describe(before),
            self.sections.describe(origin)
        ))
    }

    /// The variable that contains all workgroup memory, in modules with variable pointers to it.
    pub(super) fn workgroup_memory(&mut self) -> ir::Variable {
        let space = ir::VariableSpace::Workgroup;
        let data = ir::VariableData { space, bytes: 16, name: String::new(), words: Vec::new() };
        let builder = &mut self.builder;
        let make = || builder.kernel().variables.push(data);
        *self.variables.shared_blocks.get_or_insert_with(make)
    }

    /// The value of a null pointer.
    pub(super) fn null_pointer(&mut self, ty: Id) -> InstResult<Composite> {
        self.check_pointer_type(ty)?;
        let scalars = self.types.scalars(ty)?;
        let zero = self.builder.constant(0u32);
        let of = |scalar: &Scalar| match scalar {
            Scalar::Buffer => {
                let data = InstData::BufferOf { number: zero };
                self.builder.in_prologue(|builder| builder.push_value(data, ir::Type::Buffer))
            }
            _ => zero,
        };
        let values: smallvec::SmallVec<[Value; 2]> = scalars.iter().map(of).collect();
        Ok(Composite { ty, values: values.as_slice().into() })
    }
}
