//! Analyses of kernels: dominators, loops, value ranges, uniformity, reconvergence. They change nothing.

mod clobbers;
mod induction;
mod lane_affine;
mod loops;
mod operations;
mod ranges;
mod reconvergence;
mod tree;
mod trip_count;
mod uniformity;

pub use crate::ssa::{FlowGraph, predecessors};
use crate::{ir, ssa};
pub(crate) use clobbers::Clobbers;
pub use induction::{Induction, max_trip_count, sum, terms};
pub use lane_affine::{BlockShapes, LaneAffine, LaneConstants, LaneOffsetTable, LaneOffsets, Shape, UniformTerm};
pub use loops::{Loop, Loops, positions};
pub use operations::{Counts, Operations};
pub use ranges::{Range, Ranges};
pub use reconvergence::{Linearization, Next};
pub use tree::{WalkStep, dominator_walk};
pub(crate) use trip_count::{LoopExit, Steps, TripCounts};
pub use uniformity::Uniformity;

/// Dominator tree, of a scalar kernel where nothing else is said.
pub type Dominators<Block = ir::Block> = ssa::Dominators<Block>;

/// Predecessors by block, of a scalar kernel where nothing else is said.
pub type Predecessors<Block = ir::Block> = ssa::Predecessors<Block>;
