//! What can be found out about a kernel without changing it.

mod dominators;
mod loops;

pub use dominators::Dominators;
pub use loops::{Loop, Loops, positions, predecessors};
