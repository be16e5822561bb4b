//! A kernel: tables of instructions, values, blocks, bindings and variables.

use std::collections::BTreeMap;
use std::fmt;

use cranelift_entity::{EntitySet, PrimaryMap, SecondaryMap};
use smallvec::SmallVec;

use crate::host::Message;
use crate::image::DeclaredImage;
use crate::ssa;
use crate::work::Work;

use super::{Binding, Block, BlockCall, Inst, InstData, Type, Value, Variable};

/// One compute entry point, specialized, with all functions inlined.
#[derive(Clone, Debug)]
pub struct Kernel {
    /// Name of the entry point.
    pub name: String,
    /// `LocalSize`, `LocalSizeId` or the `WorkgroupSize` constant, after specialization.
    pub workgroup_size: [u32; 3],
    /// Descriptor bindings that the entry point may use.
    pub bindings: PrimaryMap<Binding, BindingData>,
    /// Workgroup, private and function variables.
    pub variables: PrimaryMap<Variable, VariableData>,
    /// Messages that invocations print.
    pub messages: Vec<Message>,
    /// Bytes of push constants that the shader declares, from 0.
    pub push_bytes: u32,
    /// All blocks; `layout` says which are in use.
    pub blocks: PrimaryMap<Block, BlockData>,
    /// Blocks in order, entry first, reverse postorder: a block comes after all that dominate it.
    pub layout: Vec<Block>,
    /// All instructions.
    pub insts: PrimaryMap<Inst, InstData>,
    /// Result of an instruction, where it has one.
    pub results: SecondaryMap<Inst, Option<Value>>,
    /// All values.
    pub values: PrimaryMap<Value, ValueDef>,
    /// Word of the SPIR-V module that an instruction comes from; 0 where there is none.
    pub origins: SecondaryMap<Inst, u32>,
    /// Float operations that must not become part of a fused one (`NoContraction`, GLSL's `precise`).
    pub no_contraction: EntitySet<Inst>,
    /// First word offset → source position, from `OpLine`; empty without debug lines.
    pub lines: std::sync::Arc<BTreeMap<u32, SourceLine>>,
    /// Compile-time work so far.
    pub work: Work,
}

/// A position in the source that a module's debug lines name.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SourceLine {
    /// File name from `OpString`.
    pub file: std::sync::Arc<str>,
    /// Line, from 1.
    pub line: u32,
    /// Column, from 1; 0 where unknown.
    pub column: u32,
}

impl fmt::Display for SourceLine {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}:{}", self.file, self.line)?;
        if self.column != 0 { write!(f, ":{}", self.column) } else { Ok(()) }
    }
}

/// The definition of a value.
pub type ValueDef = ssa::ValueDef<Block, Inst, Type>;

/// A basic block: parameters, instructions, the last of which is its only terminator.
#[derive(Clone, Debug, Default)]
pub struct BlockData {
    /// Values that each branch to the block passes (SPIR-V `OpPhi`).
    pub params: SmallVec<[Value; 4]>,
    /// Instructions in order.
    pub insts: Vec<Inst>,
    /// The construct that the terminator opens.
    pub merge: Option<Merge>,
}

/// A structured construct (`OpSelectionMerge`, `OpLoopMerge`), kept for the SIMD form and for messages.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Merge {
    /// The block's terminator selects; control comes together in `merge`.
    Selection {
        /// The merge block.
        merge: Block,
    },
    /// The block is a loop header.
    Loop {
        /// Where control comes together after the loop.
        merge: Block,
        /// The continue target: dominates the back edge.
        continuing: Block,
    },
}

/// A descriptor binding.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct BindingData {
    /// `DescriptorSet`.
    pub set: u32,
    /// `Binding`.
    pub binding: u32,
    /// Storage or uniform.
    pub kind: BindingKind,
    /// Array elements; 1 for a single descriptor, 0 for an array to which the shader gives no size.
    pub count: u32,
    /// Bytes that the fixed part of the block needs; a smaller buffer is legal, reads beyond it give 0.
    pub min_bytes: u32,
    /// Bytes of an element of the array without a size at the block's end; 0 if it has none. The text form does not have it.
    pub element_bytes: u32,
    /// `NonWritable` on the variable or on all members.
    pub read_only: bool,
    /// What is declared of the images there; `None` of other descriptors, and where variables that share the binding declare
    /// different ones.
    pub image: Option<DeclaredImage>,
}

/// The kind of descriptor that a binding wants.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum BindingKind {
    /// `VK_DESCRIPTOR_TYPE_STORAGE_BUFFER` or its dynamic form.
    StorageBuffer,
    /// `VK_DESCRIPTOR_TYPE_UNIFORM_BUFFER` or its dynamic form.
    UniformBuffer,
    /// `VK_DESCRIPTOR_TYPE_SAMPLER`.
    Sampler,
    /// `VK_DESCRIPTOR_TYPE_SAMPLED_IMAGE`.
    SampledImage,
    /// `VK_DESCRIPTOR_TYPE_COMBINED_IMAGE_SAMPLER`.
    CombinedImageSampler,
    /// `VK_DESCRIPTOR_TYPE_STORAGE_IMAGE`.
    StorageImage,
    /// `VK_DESCRIPTOR_TYPE_UNIFORM_TEXEL_BUFFER`.
    UniformTexelBuffer,
    /// `VK_DESCRIPTOR_TYPE_STORAGE_TEXEL_BUFFER`.
    StorageTexelBuffer,
}

impl BindingKind {
    /// Whether it is of images, samplers or texels.
    pub fn is_image(self) -> bool {
        !matches!(self, Self::StorageBuffer | Self::UniformBuffer)
    }
}

/// Memory of a workgroup or of an invocation, or a table.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct VariableData {
    /// Shared by the workgroup, each invocation's own, or constant.
    pub space: VariableSpace,
    /// Size in bytes, a multiple of 4. Initial contents are 0 (variables with an initialiser are stored to at the entry).
    pub bytes: u32,
    /// Contents of a constant one, a word for every 4 bytes; others have none.
    pub words: Vec<u32>,
    /// `OpName`, for messages; may be empty.
    pub name: String,
}

/// Scope in which a variable is shared.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum VariableSpace {
    /// SPIR-V `Workgroup`: one for each workgroup.
    Workgroup,
    /// SPIR-V `Private` and `Function`: one for each invocation.
    Private,
    /// A constant array: read-only, the same for all invocations.
    Constant,
}

/// Initial capacity of the tables: those of small kernels do not reallocate.
const CAPACITY: usize = 128;

ssa::kernel_methods!();

impl Kernel {
    /// Word of the module that a loop is at: where the terminator of its header comes from, or another instruction of the header
    /// if that is not known; 0 if neither is.
    pub fn word_of_loop(&self, header: Block) -> u32 {
        let insts = &self.blocks[header].insts;
        insts.last().into_iter().chain(insts).map(|&inst| self.origins[inst]).find(|&word| word != 0).unwrap_or(0)
    }

    /// A kernel without blocks.
    pub fn new(name: impl Into<String>, workgroup_size: [u32; 3]) -> Self {
        Self {
            name: name.into(),
            workgroup_size,
            bindings: PrimaryMap::new(),
            variables: PrimaryMap::new(),
            messages: Vec::new(),
            push_bytes: 0,
            blocks: PrimaryMap::new(),
            layout: Vec::new(),
            insts: PrimaryMap::with_capacity(CAPACITY),
            results: SecondaryMap::with_capacity(CAPACITY),
            values: PrimaryMap::with_capacity(CAPACITY),
            origins: SecondaryMap::with_capacity(CAPACITY),
            no_contraction: EntitySet::new(),
            lines: Default::default(),
            work: Work::default(),
        }
    }

    /// Says how many elements the arrays of descriptors have to which the shader gives no size: so far 0, so that every
    /// index is out of range.
    pub fn size_runtime_arrays(&mut self, count: impl Fn(&BindingData) -> u32) {
        for data in self.bindings.values_mut().filter(|data| data.count == 0) {
            data.count = count(data);
        }
    }

    /// Whether memory is accessed by addresses, not through descriptors only.
    pub fn has_addresses(&self) -> bool {
        let mut insts = self.layout.iter().flat_map(|&block| &self.blocks[block].insts);
        insts.any(|&inst| matches!(self.insts[inst], InstData::BufferAt { .. } | InstData::BufferNear { .. }))
    }

    /// Defines the result of an instruction.
    pub fn define(&mut self, inst: Inst, ty: Type) -> Value {
        let value = self.values.push(ValueDef::Result { inst, index: 0, ty });
        self.results[inst] = Some(value);
        value
    }

    /// Invocations in a workgroup.
    pub fn invocations(&self) -> u32 {
        self.workgroup_size.iter().product()
    }

    /// Source position of an instruction, where the module has debug lines.
    pub fn line_of(&self, inst: Inst) -> Option<&SourceLine> {
        let origin = self.origins[inst];
        (origin != 0).then(|| self.lines.range(..=origin).next_back().map(|(_, line)| line)).flatten()
    }

    /// Bytes of workgroup memory, variables packed in order, each at a multiple of 16.
    pub fn shared_bytes(&self) -> u32 {
        self.space_bytes(VariableSpace::Workgroup)
    }

    /// Bytes of private memory for one invocation, variables packed in order, each at a multiple of 16.
    pub fn private_bytes(&self) -> u32 {
        self.space_bytes(VariableSpace::Private)
    }

    fn space_bytes(&self, space: VariableSpace) -> u32 {
        self.variables.values().filter(|v| v.space == space).map(|v| v.bytes.next_multiple_of(16)).sum()
    }
}
