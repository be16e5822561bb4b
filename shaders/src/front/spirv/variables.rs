//! Variables: descriptor bindings, push constants, workgroup and private memory, built-ins.
//!
//! A kernel declares only the variables that its entry point reaches, so each variable is declared at its first use.

use cranelift_entity::{EntityRef, PrimaryMap};
use foldhash::HashMap;
use spirv::StorageClass;

use super::decorations::MemoryDecorations;
use super::image::{binding_kind, declared};
use super::layout::{LayoutRules, Pointee};
use super::pointer::{Pointer, Root};
use super::translate::Translator;
use super::types::{SpirvType, Types};
use super::words::{Id, Inst, InstResult};
use crate::abi::MAX_PUSH_BYTES;
use crate::ir::{
    self, Access, Binding, BindingData, BindingKind, BufferSpace, BuiltIn, InstData, Kernel, Value, VariableData,
    VariableSpace,
};

/// Bytes of workgroup memory, at most.
const MAX_SHARED_BYTES: u32 = 1 << 20;

/// Bytes of private memory of one invocation, at most.
const MAX_PRIVATE_BYTES: u32 = 1 << 22;

/// Descriptor bindings of a kernel, at most.
const MAX_BINDINGS: usize = 1 << 12;

/// Elements of a descriptor array, at most. The sum over all bindings fits 32 bits.
const MAX_DESCRIPTORS: u32 = 1_000_000;

/// The variables declared so far.
#[derive(Debug, Default)]
pub(super) struct Variables {
    declarations: HashMap<Id, Inst>,
    globals: HashMap<Id, Pointer>,
    /// One for each variable of a function, for all its calls: without recursion only one is live.
    storage: HashMap<Id, ir::Variable>,
    buffers: HashMap<(Binding, u64), Value>,
    builtins: HashMap<(BuiltIn, u8), Value>,
    /// Memory decorations of images, by descriptor value.
    pub(super) image_memory: HashMap<Value, MemoryDecorations>,
    shared_bytes: u32,
    private_bytes: u32,
    /// The declaration of a variable that is rejected.
    pub(super) refused: Option<Inst>,
    /// Workgroup memory that variables share: those with an explicit layout, or all if there are variable pointers to
    /// it.
    pub(super) shared_blocks: Option<ir::Variable>,
    /// Offset of each variable in that memory, if there are variable pointers to it.
    shared_places: HashMap<Id, u32>,
}

impl Variables {
    /// Records a global variable of the module.
    pub(super) fn declare(&mut self, inst: &Inst) {
        self.declarations.insert(inst.id, *inst);
    }

    /// Whether an id is a global variable.
    pub(super) fn is_global(&self, id: Id) -> bool {
        self.declarations.contains_key(&id)
    }
}

/// The descriptor type that serves both an image and a sampler.
fn combined(a: BindingKind, b: BindingKind) -> Option<BindingKind> {
    use BindingKind::{CombinedImageSampler, SampledImage, Sampler};
    let parts = [SampledImage, Sampler, CombinedImageSampler];
    (a != b && parts.contains(&a) && parts.contains(&b)).then_some(CombinedImageSampler)
}

/// Number of descriptors of a type: 1 for a block, more for arrays.
pub(super) fn descriptor_count(types: &Types, ty: Id) -> InstResult<u32> {
    match &types.get(ty)?.ty {
        SpirvType::Struct { .. } | SpirvType::Image(_) | SpirvType::Sampler | SpirvType::SampledImage { .. } => Ok(1),
        SpirvType::Array { element, count, .. } => {
            let all = count.checked_mul(descriptor_count(types, *element)?);
            all.filter(|all| (1..=MAX_DESCRIPTORS).contains(all))
                .ok_or_else(|| format!("a descriptor array has 0 or more than {MAX_DESCRIPTORS} elements"))
        }
        // The pipeline layout gives the size.
        SpirvType::RuntimeArray { element, .. } if descriptor_count(types, *element)? == 1 => Ok(0),
        SpirvType::RuntimeArray { .. } => Err("a runtime array of descriptor arrays".into()),
        _ => Err(format!("%{ty} is not a block")),
    }
}

/// The type of a descriptor's data, inside of arrays of descriptors.
pub(super) fn block_of(types: &Types, ty: Id) -> InstResult<Id> {
    match &types.get(ty)?.ty {
        SpirvType::Array { element, .. } | SpirvType::RuntimeArray { element, .. } => block_of(types, *element),
        _ => Ok(ty),
    }
}

impl Translator<'_> {
    /// The pointer to a global variable, which is declared if needed.
    pub(super) fn global(&mut self, id: Id) -> InstResult<Pointer> {
        if let Some(pointer) = self.variables.globals.get(&id) {
            return Ok(pointer.clone());
        }
        let Some(inst) = self.variables.declarations.get(&id).copied() else {
            return Err(format!("{} is not a pointer that is defined here", self.sections.describe(id)));
        };
        let declared = self.declare(&inst).map_err(|message| {
            self.variables.refused = Some(inst);
            format!("{}: {message}", self.sections.describe(id))
        })?;
        let pointer = Pointer { ty: inst.ty, origin: id, ..declared };
        self.variables.globals.insert(id, pointer.clone());
        Ok(pointer)
    }

    fn declare(&mut self, inst: &Inst) -> InstResult<Pointer> {
        let SpirvType::Pointer { class, pointee } = self.types.get(inst.ty)?.ty else {
            return Err(format!("%{} is not a pointer type", inst.ty));
        };
        match class {
            StorageClass::StorageBuffer | StorageClass::Uniform => self.declare_binding(inst.id, class, pointee),
            StorageClass::UniformConstant => self.declare_image(inst.id, class, pointee),
            StorageClass::PushConstant => self.declare_push(class, pointee),
            StorageClass::Workgroup | StorageClass::Private => self.declare_storage(inst, class, pointee),
            StorageClass::Input => self.declare_input(inst.id, pointee),
            class => Err(format!("storage class {class:?} is not supported")),
        }
    }

    fn declare_binding(&mut self, id: Id, class: StorageClass, ty: Id) -> InstResult<Pointer> {
        let decorations = self.sections.annotations.of(id).cloned().unwrap_or_default();
        let count = descriptor_count(&self.types, ty)?;
        let block = block_of(&self.types, ty)?;
        let block_decorations = self.sections.annotations.of(block).cloned().unwrap_or_default();
        let space = match (class, block_decorations.buffer_block, block_decorations.block) {
            (StorageClass::StorageBuffer, _, true) | (StorageClass::Uniform, true, _) => BufferSpace::Storage,
            (StorageClass::Uniform, false, true) => BufferSpace::Uniform,
            _ => return Err(format!("the type %{block} is not decorated as Block")),
        };
        let (Some(set), Some(number)) = (decorations.set, decorations.binding) else {
            return Err("a resource without DescriptorSet and Binding".into());
        };
        let place = Pointee::new(ty, LayoutRules::Explicit);
        let whole = Pointee { ty: block, ..place };
        let (min_bytes, element_bytes) = (whole.bytes(&self.types)?, whole.element_bytes(&self.types)?);
        let read_only =
            space == BufferSpace::Uniform || decorations.memory.non_writable || self.all_members_non_writable(block)?;
        let kind = match space {
            BufferSpace::Storage => BindingKind::StorageBuffer,
            BufferSpace::Uniform => BindingKind::UniformBuffer,
        };
        let data = BindingData { set, binding: number, kind, count, min_bytes, element_bytes, read_only, image: None };
        let binding = self.merge_binding(data)?;
        let root = self.descriptor_root(ty, binding, space)?;
        Ok(Pointer::new(class, place, root, decorations.memory))
    }

    /// The root of pointers to a resource: its descriptor, or the descriptors of an array.
    fn descriptor_root(&mut self, ty: Id, binding: Binding, space: BufferSpace) -> InstResult<Root> {
        Ok(match self.types.get(ty)?.ty {
            SpirvType::Array { .. } | SpirvType::RuntimeArray { .. } => {
                Root::Descriptors { binding, space, index: None }
            }
            _ => {
                let first = self.builder.constant(0u32);
                Root::Buffer { space, buffer: self.buffer(binding, first) }
            }
        })
    }

    /// Declares an image, a sampler, a combined one, or an array of these.
    fn declare_image(&mut self, id: Id, class: StorageClass, ty: Id) -> InstResult<Pointer> {
        let decorations = self.sections.annotations.of(id).cloned().unwrap_or_default();
        let count = descriptor_count(&self.types, ty)?;
        let inner = block_of(&self.types, ty)?;
        let (kind, space) =
            binding_kind(&self.types, inner)?.ok_or_else(|| format!("%{inner} is neither image nor sampler"))?;
        let (Some(set), Some(number)) = (decorations.set, decorations.binding) else {
            return Err("a resource without DescriptorSet and Binding".into());
        };
        let read_only = space == BufferSpace::Uniform || decorations.memory.non_writable;
        let image = declared(&self.types, inner)?;
        let data = BindingData { set, binding: number, kind, count, min_bytes: 0, element_bytes: 0, read_only, image };
        let binding = self.merge_binding(data)?;
        let root = self.descriptor_root(ty, binding, space)?;
        Ok(Pointer::new(class, Pointee::new(ty, LayoutRules::Natural), root, decorations.memory))
    }

    fn all_members_non_writable(&self, block: Id) -> InstResult<bool> {
        match &self.types.get(block)?.ty {
            SpirvType::Struct { members } => {
                Ok(!members.is_empty() && members.iter().all(|member| member.matrix.memory.non_writable))
            }
            _ => Ok(false),
        }
    }

    /// Several variables may share a binding, which must serve all of them.
    fn merge_binding(&mut self, data: BindingData) -> InstResult<Binding> {
        let bindings = &mut self.builder.kernel().bindings;
        let same = |(_, other): &(Binding, &mut BindingData)| (other.set, other.binding) == (data.set, data.binding);
        let count = bindings.len();
        let Some((binding, other)) = bindings.iter_mut().find(same) else {
            let fits = count < MAX_BINDINGS;
            return if fits { Ok(bindings.push(data)) } else { Err(format!("more than {MAX_BINDINGS} bindings")) };
        };
        other.image = match (other.kind, data.kind) {
            (BindingKind::Sampler, _) => data.image,
            (_, BindingKind::Sampler) => other.image,
            _ => other.image.filter(|image| data.image == Some(*image)),
        };
        if let Some(both) = combined(other.kind, data.kind) {
            other.kind = both;
        }
        if other.count == 0 || data.count == 0 {
            other.count = 0;
        }
        let sizes = other.count == 0 || other.count == data.count;
        if !sizes || other.kind != data.kind && combined(other.kind, data.kind).is_none() {
            let BindingData { set, binding, .. } = data;
            return Err(format!("two variables need different descriptors at set {set}, binding {binding}"));
        }
        other.min_bytes = other.min_bytes.max(data.min_bytes);
        other.element_bytes = other.element_bytes.max(data.element_bytes);
        other.read_only &= data.read_only;
        Ok(binding)
    }

    /// A descriptor's buffer; in the prologue if the index is constant.
    pub(super) fn buffer(&mut self, binding: Binding, index: Value) -> Value {
        let data = InstData::Buffer { binding, index };
        let Some(element) = self.builder.kernel().constant(index) else {
            return self.builder.push_value(data, ir::Type::Buffer);
        };
        let builder = &mut self.builder;
        let make = || builder.in_prologue(|builder| builder.push_value(data, ir::Type::Buffer));
        *self.variables.buffers.entry((binding, element)).or_insert_with(make)
    }

    /// A component of a built-in, in the prologue.
    pub(super) fn builtin(&mut self, builtin: BuiltIn, component: u8) -> Value {
        let builder = &mut self.builder;
        let make = || builder.in_prologue(|builder| builder.builtin(builtin, component));
        *self.variables.builtins.entry((builtin, component)).or_insert_with(make)
    }

    fn declare_push(&mut self, class: StorageClass, ty: Id) -> InstResult<Pointer> {
        let place = Pointee::new(ty, LayoutRules::Explicit);
        let bytes = place.bytes(&self.types)?;
        if bytes as usize > MAX_PUSH_BYTES || self.types.get(ty)?.unsized_tail {
            return Err(format!("push constants of {bytes} bytes, more than {MAX_PUSH_BYTES}"));
        }
        let kernel = self.builder.kernel();
        kernel.push_bytes = kernel.push_bytes.max(bytes);
        Ok(Pointer::new(class, place, Root::Push, MemoryDecorations::default()))
    }

    fn declare_storage(&mut self, inst: &Inst, class: StorageClass, ty: Id) -> InstResult<Pointer> {
        let is_block = self.sections.annotations.of(ty).is_some_and(|decorations| decorations.block);
        let pointer = match class {
            StorageClass::Workgroup if self.types.get(ty)?.has_logical_pointer => {
                return Err("pointers can be stored in Function and Private variables only".into());
            }
            StorageClass::Workgroup if is_block => self.shared_block(inst.id, ty)?,
            StorageClass::Workgroup if self.sections.has_workgroup_pointers => self.workgroup_variable(inst.id, ty)?,
            _ => self.storage(inst.id, class, ty)?,
        };
        let Some(&initializer) = self.sections.words.operands(inst).get(1) else { return Ok(pointer) };
        let constant = self.constants.get(initializer);
        if constant.is_some_and(|constant| constant.bits.is_none()) {
            return Ok(pointer);
        }
        if class == StorageClass::Workgroup {
            return Err("workgroup memory can only be initialized with OpConstantNull".into());
        }
        if constant.is_none() {
            self.check_address_of(initializer)?;
        }
        let before = self.builder.set_prologue(true);
        let stored = self.value(initializer).and_then(|value| self.store(&pointer, &value, Access::default()));
        self.builder.set_prologue(before);
        stored.map(|()| pointer)
    }

    /// Checks that an initializer that is not a constant is a variable whose address is a value. That variable must not
    /// have such an initializer itself.
    fn check_address_of(&self, initializer: Id) -> InstResult<()> {
        let variable = self.variables.declarations.get(&initializer);
        let variable = variable.ok_or("the initializer is neither a constant nor a variable of the module")?;
        match self.types.get(variable.ty)?.ty {
            SpirvType::Pointer { class: StorageClass::Workgroup | StorageClass::StorageBuffer, .. } => Ok(()),
            _ => Err(format!("the address of {} is not a value", self.sections.describe(initializer))),
        }
    }

    /// The memory of a variable.
    pub(super) fn storage(&mut self, id: Id, class: StorageClass, ty: Id) -> InstResult<Pointer> {
        let variable = match self.variables.storage.get(&id) {
            Some(&variable) => variable,
            None => self.allocate(id, class, ty)?,
        };
        let memory = self.sections.annotations.of(id).map(|decorations| decorations.memory).unwrap_or_default();
        Ok(Pointer::new(class, Pointee::new(ty, LayoutRules::Natural), Root::Variable { variable }, memory))
    }

    /// Workgroup memory with an explicit layout (`SPV_KHR_workgroup_memory_explicit_layout`): all blocks start at
    /// offset 0.
    fn shared_block(&mut self, id: Id, ty: Id) -> InstResult<Pointer> {
        let place = Pointee::new(ty, LayoutRules::Explicit);
        if self.types.get(ty)?.unsized_tail {
            return Err("a variable of a type without size".into());
        }
        let bytes = place.bytes(&self.types)?.checked_next_multiple_of(16).ok_or("a variable is too large")?;
        let variable = self.shared_memory(id, bytes)?;
        let memory = self.sections.annotations.of(id).map(|decorations| decorations.memory).unwrap_or_default();
        let pointer = Pointer::new(StorageClass::Workgroup, place, Root::Variable { variable }, memory);
        Ok(Pointer { is_last: false, ..pointer })
    }

    /// A variable's part of the workgroup memory that variable pointers address.
    fn workgroup_variable(&mut self, id: Id, ty: Id) -> InstResult<Pointer> {
        let info = self.types.get(ty)?;
        if info.unsized_tail {
            return Err("a variable of a type without size".into());
        }
        let before = self.variables.shared_bytes;
        let bytes = info.scalars.max(1).checked_mul(4).and_then(|bytes| bytes.checked_next_multiple_of(16));
        let end = bytes.and_then(|bytes| bytes.checked_add(before)).ok_or("a variable is too large")?;
        let start = *self.variables.shared_places.entry(id).or_insert(before);
        let variable = self.shared_memory(id, end)?;
        let memory = self.sections.annotations.of(id).map(|decorations| decorations.memory).unwrap_or_default();
        let place = Pointee::new(ty, LayoutRules::Natural);
        let pointer = Pointer::new(StorageClass::Workgroup, place, Root::Variable { variable }, memory).after(start);
        Ok(Pointer { is_last: false, ..pointer })
    }

    /// The workgroup memory that variables share; grows to the largest request.
    fn shared_memory(&mut self, id: Id, bytes: u32) -> InstResult<ir::Variable> {
        let variable = self.workgroup_memory();
        let used = &mut self.variables.shared_bytes;
        if bytes > MAX_SHARED_BYTES {
            return Err(format!("more than {MAX_SHARED_BYTES} bytes of Workgroup variables"));
        }
        *used = bytes.max(*used);
        let data = &mut self.builder.kernel().variables[variable];
        data.bytes = data.bytes.max(bytes);
        if data.name.is_empty() {
            self.sections.annotations.name(id).clone_into(&mut data.name);
        }
        Ok(variable)
    }

    fn allocate(&mut self, id: Id, class: StorageClass, ty: Id) -> InstResult<ir::Variable> {
        let (space, used, limit) = match class {
            StorageClass::Workgroup => (VariableSpace::Workgroup, &mut self.variables.shared_bytes, MAX_SHARED_BYTES),
            _ => (VariableSpace::Private, &mut self.variables.private_bytes, MAX_PRIVATE_BYTES),
        };
        let info = self.types.get(ty)?;
        if info.unsized_tail {
            return Err("a variable of a type without size".into());
        }
        let name = self.sections.annotations.name(id).to_owned();
        let bytes = info.scalars.max(1).checked_mul(4).filter(|bytes| bytes.div_ceil(16) <= (limit - *used) / 16);
        let bytes = bytes.ok_or_else(|| format!("more than {limit} bytes of {class:?} variables"))?;
        *used += bytes.next_multiple_of(16);
        let kernel = self.builder.kernel();
        let variable = kernel.variables.push(VariableData { space, bytes, name, words: Vec::new() });
        self.variables.storage.insert(id, variable);
        Ok(variable)
    }

    fn declare_input(&mut self, id: Id, ty: Id) -> InstResult<Pointer> {
        let builtin = self.sections.annotations.of(id).and_then(|decorations| decorations.builtin);
        let builtin = builtin.ok_or("an input that is not a built-in")?;
        let (source, shape) = super::entry::input(builtin)?;
        if self.types.shape(ty)? != Some(shape) {
            return Err(format!("built-in {builtin:?} has the wrong type"));
        }
        let place = Pointee::new(ty, LayoutRules::Natural);
        Ok(Pointer::new(StorageClass::Input, place, Root::Input { source }, MemoryDecorations::default()))
    }
}

/// Sorts the bindings by set and binding number.
pub(super) fn sort_bindings(kernel: &mut Kernel) {
    let mut order: Vec<Binding> = kernel.bindings.keys().collect();
    order.sort_by_key(|&binding| (kernel.bindings[binding].set, kernel.bindings[binding].binding));
    let mut places = vec![Binding::new(0); order.len()];
    let mut sorted = PrimaryMap::new();
    for binding in order {
        places[binding.index()] = sorted.push(kernel.bindings[binding].clone());
    }
    kernel.bindings = sorted;
    for inst in kernel.insts.values_mut() {
        if let InstData::Buffer { binding, .. } = inst {
            *binding = places[binding.index()];
        }
    }
}
