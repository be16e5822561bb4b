//! State of control-flow linearization, which is kept from block to block.

use cranelift_entity::SecondaryMap;
use foldhash::HashMap;

use crate::analysis::Predecessors;
use crate::ir;
use crate::simd::Block;
use crate::simd::ssa::Variable;

/// The masks of blocks and edges during translation.
#[derive(Debug, Default)]
pub(in crate::vectorize) struct Control {
    /// The SIMD block of each scalar block.
    pub(super) blocks: SecondaryMap<ir::Block, Option<Block>>,
    /// By loop: the SIMD block that decides whether a divergent loop has another iteration.
    pub(super) loop_ends: Vec<Option<Block>>,
    pub(in crate::vectorize) positions: SecondaryMap<ir::Block, u32>,
    pub(super) predecessors: Predecessors,
    /// Positions of the blocks in which subgroups suspend, ascending.
    pub(super) stops: Vec<u32>,
    /// By block: its block-in mask.
    pub(super) block_in: HashMap<ir::Block, Variable>,
    /// By parameter: the argument.
    pub(super) passed: HashMap<ir::Value, Variable>,
    /// By block with a divergent branch: its mask, which the reconvergence point takes over.
    pub(super) at_split: HashMap<ir::Block, Variable>,
    /// The mask of the active lanes.
    pub(super) lanes: Option<Variable>,
    /// By block: the first branch in the layout that leads there, which finds an empty block-in mask.
    pub(super) first_branch: HashMap<ir::Block, ir::Block>,
    /// By block: the blocks that it immediately dominates whose block-in masks are empty until its terminator.
    pub(super) empty_after: HashMap<ir::Block, Vec<ir::Block>>,
    /// By loop: live-out values to reset before it is entered.
    pub(super) live_outs: HashMap<usize, Vec<Variable>>,
    /// Follows the subgroup's last instruction.
    pub(super) end: Option<Block>,
}
