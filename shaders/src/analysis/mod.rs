//! What can be found out about a kernel without changing it.

mod dominators;
mod flow;
mod loops;
mod patterns;
mod postdominators;
mod ranges;
mod tree;
mod uniformity;
mod zeros;

pub use dominators::{Dominators, FlowGraph};
pub use flow::{Flow, Next};
pub use loops::{Loop, Loops, Predecessors, positions, predecessors};
pub use patterns::{Pattern, Patterns, Shape};
pub use postdominators::Postdominators;
pub use ranges::{Range, Ranges};
pub use tree::{Step, dominator_walk};
pub use uniformity::Uniformity;
