//! A kernel: tables of instructions, values, blocks, bindings and variables.

use std::collections::BTreeMap;
use std::fmt;

use cranelift_entity::{EntitySet, PrimaryMap, SecondaryMap};
use smallvec::SmallVec;

use crate::host::Message;
use crate::image::DeclaredImage;
use crate::ssa;
use crate::work::Work;

use super::{Binding, Block, BlockCall, CallPath, Inst, InstData, MemoryModel, Site, SiteData, Type, Value, Variable};

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
    /// All blocks; those not in `layout` are unused.
    pub blocks: PrimaryMap<Block, BlockData>,
    /// Blocks in reverse postorder, entry first: a block comes after its dominators.
    pub layout: Vec<Block>,
    /// All instructions.
    pub insts: PrimaryMap<Inst, InstData>,
    /// Result of each instruction that has one.
    pub results: SecondaryMap<Inst, Option<Value>>,
    /// All values.
    pub values: PrimaryMap<Value, ValueDef>,
    /// For each instruction the SPIR-V word that it comes from; 0 if unknown.
    pub origins: SecondaryMap<Inst, u32>,
    /// For each instruction the calls through which it was inlined; `None` in the entry point. Passes keep it for the
    /// instructions that they keep. Not in the text form.
    pub inlined_at: SecondaryMap<Inst, Option<CallPath>>,
    /// The inlined calls.
    pub calls: PrimaryMap<CallPath, CallData>,
    /// The rules by which accesses have the attributes of the memory model.
    pub memory_model: MemoryModel,
    /// The word `Generator's magic number` of the SPIR-V module's header: naga's is 28. Not in the text form.
    pub generator: u32,
    /// What checked mode observes; empty if the kernel has no checks.
    pub sites: PrimaryMap<Site, SiteData>,
    /// Float operations that must not be contracted (`NoContraction`, GLSL's `precise`).
    pub no_contraction: EntitySet<Inst>,
    /// First word offset → source position, from `OpLine`; empty without debug lines.
    pub lines: std::sync::Arc<BTreeMap<u32, SourceLine>>,
    /// Whether machine code takes the order of subgroups and lanes when it runs
    /// ([`Schedule`](crate::schedule::Schedule)): otherwise that is ascending, and subgroups may overlap. Not in the
    /// text form.
    pub takes_schedule: bool,
    /// In checked mode: bindings that the kernel does not write, and whose memory is not that of those that it writes.
    /// Not in the text form.
    pub inputs_apart: EntitySet<Binding>,
    /// In checked mode: stores whose checks stand for those of loads of the same memory. Not in the text form.
    pub updates: EntitySet<Site>,
    /// Whether machine code may settle checks without a call. Not in the text form.
    pub inline_checks: bool,
    /// Compile-time work so far.
    pub work: Work,
}

/// A call that was inlined.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct CallData {
    /// SPIR-V word of the call.
    pub word: u32,
    /// The call through which its function was inlined.
    pub within: Option<CallPath>,
}

/// A source position from a module's debug lines.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SourceLine {
    /// File name from `OpString`.
    pub file: std::sync::Arc<str>,
    /// Line, from 1.
    pub line: u32,
    /// Column, from 1; 0 where unknown.
    pub column: u32,
}

impl SourceLine {
    /// File and line, without the column: listings name a line once.
    pub(crate) fn place(&self) -> (&str, u32) {
        (&self.file, self.line)
    }

    /// File, line and column, for printers that know no type of this IR.
    pub(crate) fn parts(&self) -> (&str, u32, u32) {
        (&self.file, self.line, self.column)
    }

    /// The position of a word in a table as [`Kernel::lines`]; 0 has none.
    pub(crate) fn of_word(lines: &BTreeMap<u32, Self>, word: u32) -> Option<&Self> {
        (word != 0).then(|| lines.range(..=word).next_back().map(|(_, line)| line)).flatten()
    }
}

impl fmt::Display for SourceLine {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        // Compilers of text that comes from no file name none.
        if self.file.is_empty() {
            write!(f, "line {}", self.line)?;
        } else {
            write!(f, "{}:{}", self.file, self.line)?;
        }
        if self.column != 0 { write!(f, ":{}", self.column) } else { Ok(()) }
    }
}

/// The definition of a value.
pub type ValueDef = ssa::ValueDef<Block, Inst, Type>;

/// A basic block: parameters and instructions, of which the last is the only terminator.
#[derive(Clone, Debug, Default)]
pub struct BlockData {
    /// Values that each branch to the block passes (SPIR-V `OpPhi`).
    pub params: SmallVec<[Value; 4]>,
    /// Instructions in order.
    pub insts: Vec<Inst>,
    /// The construct that the terminator opens.
    pub merge: Option<Merge>,
}

/// A structured construct (`OpSelectionMerge`, `OpLoopMerge`), kept for vectorization and for messages.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Merge {
    /// The block's terminator selects; control reconverges in `merge`.
    Selection {
        /// The merge block.
        merge: Block,
    },
    /// The block is a loop header.
    Loop {
        /// The block in which control reconverges after the loop.
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
    /// Array elements; 1 for a single descriptor, 0 for a runtime-sized array.
    pub count: u32,
    /// Size of the block's fixed part in bytes. A smaller buffer is legal; out-of-bounds reads give 0.
    pub min_bytes: u32,
    /// Array stride in bytes of the runtime array at the block's end; 0 if it has none. Not in the text form.
    pub element_bytes: u32,
    /// `NonWritable` on the variable or on all members.
    pub read_only: bool,
    /// Declared image properties; `None` for other descriptors, and if variables that share the binding declare
    /// different ones.
    pub image: Option<DeclaredImage>,
}

impl BindingData {
    /// One storage buffer that is read and written, of any size.
    pub fn storage(set: u32, binding: u32) -> Self {
        Self {
            set,
            binding,
            kind: BindingKind::StorageBuffer,
            count: 1,
            min_bytes: 0,
            element_bytes: 0,
            read_only: false,
            image: None,
        }
    }
}

/// The descriptor type of a binding.
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
    /// What its descriptors are, for messages.
    pub fn description(self) -> &'static str {
        match self {
            Self::StorageBuffer => "storage buffer",
            Self::UniformBuffer => "uniform buffer",
            Self::Sampler => "sampler",
            Self::SampledImage => "sampled image",
            Self::CombinedImageSampler => "combined image and sampler",
            Self::StorageImage => "storage image",
            Self::UniformTexelBuffer => "uniform texel buffer",
            Self::StorageTexelBuffer => "storage texel buffer",
        }
    }

    /// Whether its descriptors are images, samplers or texel buffers.
    pub fn is_image(self) -> bool {
        !matches!(self, Self::StorageBuffer | Self::UniformBuffer)
    }
}

/// Workgroup or private memory, or a constant table.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct VariableData {
    /// Address space.
    pub space: VariableSpace,
    /// Size in bytes, a multiple of 4. Memory starts as 0; initializers are stores in the entry block.
    pub bytes: u32,
    /// Contents of a constant variable, one word per 4 bytes; empty for others.
    pub words: Vec<u32>,
    /// `OpName`, for messages; may be empty.
    pub name: String,
}

/// Address space of a variable.
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
    /// SPIR-V word of a loop: where the terminator of its header comes from, or else another instruction of the header;
    /// 0 if unknown.
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
            inlined_at: SecondaryMap::new(),
            calls: PrimaryMap::new(),
            memory_model: MemoryModel::default(),
            generator: 0,
            sites: PrimaryMap::new(),
            no_contraction: EntitySet::new(),
            lines: Default::default(),
            takes_schedule: false,
            inputs_apart: EntitySet::new(),
            updates: EntitySet::new(),
            inline_checks: false,
            work: Work::default(),
        }
    }

    /// Sets the sizes of runtime-sized descriptor arrays. Until then they are 0, so every index is out of range.
    pub fn size_runtime_arrays(&mut self, count: impl Fn(&BindingData) -> u32) {
        for data in self.bindings.values_mut().filter(|data| data.count == 0) {
            data.count = count(data);
        }
    }

    /// Whether the kernel accesses memory by address, and not through descriptors only.
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

    /// Source position of a SPIR-V word, if the module has debug lines; 0 has none.
    pub fn line_of_word(&self, word: u32) -> Option<&SourceLine> {
        SourceLine::of_word(&self.lines, word)
    }

    /// SPIR-V words of the calls through which an instruction was inlined, the outermost first.
    pub fn words_of_calls(&self, inst: Inst) -> Vec<u32> {
        let within = |path: &CallPath| self.calls[*path].within;
        let paths = std::iter::successors(self.inlined_at[inst], within);
        let mut words: Vec<u32> = paths.map(|path| self.calls[path].word).collect();
        words.reverse();
        words
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
