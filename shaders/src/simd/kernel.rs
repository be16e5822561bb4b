//! Kernels of the SIMD IR: tables of blocks, instructions and values. A kernel runs workgroups, subgroup by subgroup.

use std::collections::BTreeMap;

use cranelift_entity::{PrimaryMap, SecondaryMap};
use smallvec::SmallVec;

use super::{Block, BlockCall, Inst, InstData, Type, Value};
use crate::ir::{InlineChecks, SourceLine};
use crate::ssa::{self, Predecessors, natural_loop};
use crate::work::Work;

/// A kernel for whole workgroups.
#[derive(Clone, Debug)]
pub struct Kernel {
    /// Name of the entry point.
    pub name: String,
    /// Number of descriptors in the flattened list, those of [`Kernel::inline`] included.
    pub descriptors: u32,
    /// The memory to which its own code checks accesses; the last descriptors are for that. Not in the text form.
    pub inline: InlineChecks,
    /// Bytes of workgroup memory.
    pub shared_bytes: u32,
    /// Bytes of private memory for one workgroup.
    pub private_bytes: u32,
    /// Bytes of the context frames for one workgroup.
    pub frame_bytes: u32,
    /// Bytes of the operand and result rows of calls.
    pub call_bytes: u32,
    /// Subgroups whose order, like that of lanes, is taken when the kernel runs: words at
    /// [`ContextField::SubgroupOrder`](super::ContextField::SubgroupOrder). 0 if the order is ascending.
    pub subgroup_order: u32,
    /// Number of merged workgroups, adjacent in x: `workgroup_id.0` is that of the first one, and only lanes of
    /// workgroups below `row_end` are active.
    pub merged_workgroups: u32,
    /// Invocations of one workgroup in x, y and z, to identify the invocation of a lane in messages. Not in the text
    /// form.
    pub workgroup_size: [u32; 3],
    /// Whether it has release operations with a scope larger than the workgroup (fences, atomics): its writes can
    /// become visible to other workgroups while it runs.
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
    /// For each instruction the SPIR-V word that it comes from; 0 if unknown, and for all without debug lines. Not in
    /// the text form.
    pub origins: SecondaryMap<Inst, u32>,
    /// First word offset → source position, as in the scalar IR.
    pub lines: std::sync::Arc<BTreeMap<u32, SourceLine>>,
}

/// The definition of a value.
pub type ValueDef = ssa::ValueDef<Block, Inst, Type>;

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

/// A loop over the subgroups of a workgroup (a work-item loop, in steps of 16 lanes): each iteration runs a parallel
/// region for one subgroup.
///
/// ```text
/// preheader:                 jump header(0, …)
/// header(index, …) begin m:  the region of subgroup `index`, or of the one at that position in the order
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
    /// The number of the subgroup, or its position in the order ([`Kernel::subgroup_order`]): a parameter of the
    /// header.
    pub index: Value,
    /// Subgroups per iteration: 2 after unroll-and-jam.
    pub step: u32,
    /// The number of subgroups that the loop runs, a constant. At least one runs.
    pub count: Value,
}

/// Initial capacity of the tables: those of small kernels do not reallocate.
const CAPACITY: usize = 128;

ssa::kernel_methods!();

impl Kernel {
    /// A kernel without blocks.
    pub fn new(name: impl Into<String>) -> Self {
        Self {
            name: name.into(),
            descriptors: 0,
            inline: InlineChecks::default(),
            shared_bytes: 0,
            private_bytes: 0,
            frame_bytes: 0,
            call_bytes: 0,
            subgroup_order: 0,
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
            origins: SecondaryMap::new(),
            lines: std::sync::Arc::default(),
        }
    }

    /// The blocks of a subgroup loop in the layout's order, header first.
    pub(crate) fn loop_blocks(&self, predecessors: &Predecessors<Block>, subgroup_loop: &SubgroupLoop) -> Vec<Block> {
        let SubgroupLoop { header, latch, .. } = *subgroup_loop;
        let (_, body) = natural_loop(header, &[latch], predecessors, |_| true);
        self.layout.iter().copied().filter(|&block| body.contains(block)).collect()
    }
}
