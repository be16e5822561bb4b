//! Analyses of kernels: dominators, loops, value ranges, uniformity, reconvergence. They change nothing.

mod dominators;
mod lane_affine;
mod loops;
mod postdominators;
mod ranges;
mod reconvergence;
mod tree;
mod uniformity;

pub use dominators::{Dominators, FlowGraph};
pub use lane_affine::{BlockShapes, LaneAffine, LaneConstants, LaneOffsetTable, LaneOffsets, Shape, UniformTerm};
pub use loops::{Loop, Loops, Predecessors, positions, predecessors};
pub use postdominators::Postdominators;
pub use ranges::{Range, Ranges};
pub use reconvergence::{Linearization, Next};
pub use tree::{Step, dominator_walk};
pub use uniformity::Uniformity;
