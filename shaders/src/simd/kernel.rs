//! A kernel in the SIMD form: it runs workgroups, each subgroup by subgroup.

use cranelift_entity::{EntitySet, PrimaryMap, SecondaryMap};
use smallvec::SmallVec;

use super::{Block, BlockCall, Inst, InstData, Type, Value};
use crate::work::Work;

/// A kernel for whole workgroups.
#[derive(Clone, Debug)]
pub struct Kernel {
    /// Name of the entry point.
    pub name: String,
    /// Descriptors in the flattened list.
    pub descriptors: u32,
    /// Bytes of workgroup memory.
    pub shared_bytes: u32,
    /// Bytes of private memory for one workgroup.
    pub private_bytes: u32,
    /// Bytes of frames for one workgroup.
    pub frame_bytes: u32,
    /// Bytes of rows for calls.
    pub call_bytes: u32,
    /// Workgroups that it runs at once, next to each other in x: `workgroup_id.0` is the first one's, and only lanes of those below
    /// `row_end` are on.
    pub abreast: u32,
    /// Invocations of each of them in each dimension, to tell which invocation a lane is. The text form does not have it.
    pub workgroup_size: [u32; 3],
    /// Whether other workgroups can learn from it, while it runs, what it has written: it has fences or atomics that reach
    /// beyond the workgroup.
    pub publishes: bool,
    /// Steps of a workgroup at most, as [`Code::most_steps`](crate::back::Code::most_steps) counts them, if that is known.
    /// The text form does not have it.
    pub most_steps: Option<u64>,
    /// What compiling it has taken so far.
    pub work: Work,
    /// Constant words that it reads.
    pub tables: Vec<u32>,
    /// All blocks; `layout` says which are in use.
    pub blocks: PrimaryMap<Block, BlockData>,
    /// Blocks in order, entry first: a block comes after all that dominate it.
    pub layout: Vec<Block>,
    /// All instructions.
    pub insts: PrimaryMap<Inst, InstData>,
    /// Results of an instruction.
    pub results: SecondaryMap<Inst, SmallVec<[Value; 4]>>,
    /// All values.
    pub values: PrimaryMap<Value, ValueDef>,
}

/// Where a value comes from.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ValueDef {
    /// Result of an instruction.
    Result {
        /// The instruction.
        inst: Inst,
        /// Its place among the results.
        index: u32,
        /// Its type.
        ty: Type,
    },
    /// Parameter of a block.
    Param {
        /// The block.
        block: Block,
        /// Its place in the list.
        index: u32,
        /// Its type.
        ty: Type,
    },
}

impl ValueDef {
    /// The value's type.
    pub fn ty(self) -> Type {
        match self {
            Self::Result { ty, .. } | Self::Param { ty, .. } => ty,
        }
    }
}

/// A basic block: parameters, instructions, the last of which is its only terminator.
#[derive(Clone, Debug, Default)]
pub struct BlockData {
    /// Values that each branch to the block passes.
    pub params: SmallVec<[Value; 4]>,
    /// Instructions in order.
    pub insts: Vec<Inst>,
    /// The lanes that are on in this block, where the block works for lanes at all.
    pub exec: Option<Value>,
    /// Whether a subgroup begins here, or goes on after others had their turn: with the lanes of [`BlockData::exec`].
    pub begins: bool,
}

/// By block: where control comes from.
pub(crate) type Predecessors = SecondaryMap<Block, SmallVec<[Block; 2]>>;

/// All blocks on ways from a loop's header to its latch.
pub(crate) fn loop_body(predecessors: &Predecessors, header: Block, latch: Block) -> EntitySet<Block> {
    let mut body = EntitySet::new();
    body.insert(header);
    let mut work = vec![latch];
    while let Some(block) = work.pop() {
        if body.insert(block) {
            work.extend(&predecessors[block]);
        }
    }
    body
}

/// Room that is made for the instructions of a new kernel, so that small ones do not grow step by step.
const ROOM: usize = 128;

impl Kernel {
    /// A kernel without blocks.
    pub fn new(name: impl Into<String>) -> Self {
        Self {
            name: name.into(),
            descriptors: 0,
            shared_bytes: 0,
            private_bytes: 0,
            frame_bytes: 0,
            call_bytes: 0,
            abreast: 1,
            publishes: false,
            most_steps: None,
            workgroup_size: [1; 3],
            work: Work::default(),
            tables: Vec::new(),
            blocks: PrimaryMap::new(),
            layout: Vec::new(),
            insts: PrimaryMap::with_capacity(ROOM),
            results: SecondaryMap::with_capacity(ROOM),
            values: PrimaryMap::with_capacity(ROOM),
        }
    }

    /// Blocks and instructions in the layout, parameters of blocks and what branches pass to them.
    pub fn size(&self) -> usize {
        let block = |&block: &Block| {
            let BlockData { params, insts, .. } = &self.blocks[block];
            let calls = insts.last().map(|&last| self.insts[last].targets()).unwrap_or_default();
            1 + params.len() + insts.len() + calls.iter().map(|call| call.args.len()).sum::<usize>()
        };
        self.layout.iter().map(block).sum()
    }

    /// Type of a value.
    pub fn ty(&self, value: Value) -> Type {
        self.values[value].ty()
    }

    /// The instruction that defines a value; `None` for parameters.
    pub fn definition(&self, value: Value) -> Option<&InstData> {
        match self.values[value] {
            ValueDef::Result { inst, .. } => Some(&self.insts[inst]),
            ValueDef::Param { .. } => None,
        }
    }

    /// The last instruction of a block, which ends it in a kernel that is whole.
    pub(crate) fn terminator(&self, block: Block) -> Option<&InstData> {
        self.blocks[block].insts.last().map(|&last| &self.insts[last])
    }

    /// The ways out of a block.
    pub(crate) fn targets(&self, block: Block) -> SmallVec<[&BlockCall; 2]> {
        self.terminator(block).map(InstData::targets).unwrap_or_default()
    }

    /// For each block those that go there, once for each way.
    pub(crate) fn predecessors(&self) -> Predecessors {
        let mut predecessors = Predecessors::new();
        for &block in &self.layout {
            self.targets(block).iter().for_each(|call| predecessors[call.block].push(block));
        }
        predecessors
    }

    /// Bits of a value that is a constant: the same in each lane, for vectors.
    pub fn constant(&self, value: Value) -> Option<u64> {
        match self.definition(value)? {
            InstData::Const { bits, .. } => Some(*bits),
            _ => None,
        }
    }
}
