//! Kernels of the SIMD IR: tables of blocks, instructions and values. A kernel runs workgroups, subgroup by subgroup.

use cranelift_entity::{EntitySet, PrimaryMap, SecondaryMap};
use smallvec::SmallVec;

use super::{Block, BlockCall, Inst, InstData, Type, Value};
use crate::work::Work;

/// A kernel for whole workgroups.
#[derive(Clone, Debug)]
pub struct Kernel {
    /// Name of the entry point.
    pub name: String,
    /// Number of descriptors in the flattened list.
    pub descriptors: u32,
    /// Bytes of workgroup memory.
    pub shared_bytes: u32,
    /// Bytes of private memory for one workgroup.
    pub private_bytes: u32,
    /// Bytes of the context frames for one workgroup.
    pub frame_bytes: u32,
    /// Bytes of the operand and result rows of calls.
    pub call_bytes: u32,
    /// Number of merged workgroups, adjacent in x: `workgroup_id.0` is that of the first one, and only lanes of workgroups
    /// below `row_end` are active.
    pub merged_workgroups: u32,
    /// Invocations of one workgroup in x, y and z, to identify the invocation of a lane in messages. Not in the text form.
    pub workgroup_size: [u32; 3],
    /// Whether it has release operations with a scope larger than the workgroup (fences, atomics): its writes can become
    /// visible to other workgroups while it runs.
    pub releases: bool,
    /// Upper bound of a workgroup's steps, as [`Code::max_steps`](crate::back::Code::max_steps) counts them, if known.
    /// Not in the text form.
    pub max_steps: Option<u64>,
    /// Compile-time work so far.
    pub work: Work,
    /// Words of its constant arrays.
    pub tables: Vec<u32>,
    /// The loops over the subgroups. A kernel with one subgroup may have none.
    pub subgroup_loops: Vec<SubgroupLoop>,
    /// All blocks; those not in `layout` are unused.
    pub blocks: PrimaryMap<Block, BlockData>,
    /// Blocks in order, entry first: a block comes after its dominators.
    pub layout: Vec<Block>,
    /// All instructions.
    pub insts: PrimaryMap<Inst, InstData>,
    /// Results of an instruction.
    pub results: SecondaryMap<Inst, SmallVec<[Value; 4]>>,
    /// All values.
    pub values: PrimaryMap<Value, ValueDef>,
}

/// The definition of a value.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ValueDef {
    /// Result of an instruction.
    Result {
        /// The instruction.
        inst: Inst,
        /// Its index in the results.
        index: u32,
        /// Its type.
        ty: Type,
    },
    /// Parameter of a block.
    Param {
        /// The block.
        block: Block,
        /// Its index in the parameters.
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

/// A basic block: parameters and instructions, of which the last is the only terminator.
#[derive(Clone, Debug, Default)]
pub struct BlockData {
    /// Parameters: each branch to the block passes an argument for each.
    pub params: SmallVec<[Value; 4]>,
    /// Instructions in order.
    pub insts: Vec<Inst>,
    /// The execution mask: active lanes of this block. `None` for blocks without effects for lanes.
    pub exec: Option<Value>,
    /// Whether a subgroup enters a parallel region here: starts, or resumes after a barrier, with [`BlockData::exec`].
    pub is_region_entry: bool,
}

/// A loop over the subgroups of a workgroup (a work-item loop, in steps of 16 lanes): each iteration runs a parallel region
/// for one subgroup.
///
/// ```text
/// preheader:                 jump header(0, …)
/// header(index, …) begin m:  the region of subgroup `index`
/// latch:                     next = iadd index, step
///                            branch (ult next, count), header(next, …), exit
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SubgroupLoop {
    /// The only predecessor of the header outside of the loop. It ends with a jump to the header.
    pub preheader: Block,
    /// The first block, with [`BlockData::is_region_entry`].
    pub header: Block,
    /// The block with the only back edge.
    pub latch: Block,
    /// The number of the subgroup: a parameter of the header.
    pub index: Value,
    /// Subgroups per iteration: 2 after unroll-and-jam.
    pub step: u32,
    /// The number of subgroups that the loop runs, a constant. At least one runs.
    pub count: Value,
}

/// Predecessors by block.
pub(crate) type Predecessors = SecondaryMap<Block, SmallVec<[Block; 2]>>;

/// Initial capacity of the tables: those of small kernels do not reallocate.
const CAPACITY: usize = 128;

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
            merged_workgroups: 1,
            releases: false,
            max_steps: None,
            workgroup_size: [1; 3],
            work: Work::default(),
            tables: Vec::new(),
            subgroup_loops: Vec::new(),
            blocks: PrimaryMap::new(),
            layout: Vec::new(),
            insts: PrimaryMap::with_capacity(CAPACITY),
            results: SecondaryMap::with_capacity(CAPACITY),
            values: PrimaryMap::with_capacity(CAPACITY),
        }
    }

    /// Size of the kernel: number of blocks, instructions, block parameters and block arguments in the layout.
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

    /// The last instruction of a block: its terminator, if the block is complete.
    pub(crate) fn terminator(&self, block: Block) -> Option<&InstData> {
        self.blocks[block].insts.last().map(|&last| &self.insts[last])
    }

    /// Targets of a block's terminator.
    pub(crate) fn targets(&self, block: Block) -> SmallVec<[&BlockCall; 2]> {
        self.terminator(block).map(InstData::targets).unwrap_or_default()
    }

    /// Predecessors of each block, once per edge.
    pub(crate) fn predecessors(&self) -> Predecessors {
        let mut predecessors = Predecessors::new();
        for &block in &self.layout {
            self.targets(block).iter().for_each(|call| predecessors[call.block].push(block));
        }
        predecessors
    }

    /// The blocks of a subgroup loop in the layout's order, header first.
    pub(crate) fn loop_blocks(&self, predecessors: &Predecessors, subgroup_loop: &SubgroupLoop) -> Vec<Block> {
        let mut body = EntitySet::new();
        body.insert(subgroup_loop.header);
        let mut work = vec![subgroup_loop.latch];
        while let Some(block) = work.pop() {
            if body.insert(block) {
                work.extend(&predecessors[block]);
            }
        }
        self.layout.iter().copied().filter(|&block| body.contains(block)).collect()
    }

    /// Bits of a constant: of one lane for vectors (all lanes are equal), of all lanes for masks.
    pub fn constant(&self, value: Value) -> Option<u64> {
        match self.definition(value)? {
            InstData::Const { bits, .. } => Some(*bits),
            _ => None,
        }
    }
}
