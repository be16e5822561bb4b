//! What can be found out about a kernel without changing it.

mod dominators;
mod loops;
mod tree;

pub use dominators::Dominators;
pub use loops::{Loop, Loops, positions, predecessors};
pub use tree::{Step, dominator_walk};
