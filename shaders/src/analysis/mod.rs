//! What can be found out about a kernel without changing it.

mod dominators;

pub use dominators::Dominators;
