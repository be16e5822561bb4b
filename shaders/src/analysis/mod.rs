//! What can be found out about a kernel without changing it.

mod dominators;
mod loops;
mod patterns;
mod postdominators;
mod ranges;
mod reconvergence;
mod trailing_zeros;
mod tree;
mod uniformity;

pub use dominators::{Dominators, FlowGraph};
pub use loops::{Loop, Loops, Predecessors, positions, predecessors};
pub use patterns::{Pattern, Patterns, Shape};
pub use postdominators::Postdominators;
pub use ranges::{Range, Ranges};
pub use reconvergence::{Flow, Next};
pub use tree::{Step, dominator_walk};
pub use uniformity::Uniformity;
