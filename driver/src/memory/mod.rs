//! Device memory: one reserved address range, handed out piece by piece.
//!
//! Addresses are the same for host and device. Pages are committed when they are first touched and go back to the
//! system when their allocation is dropped, so what is handed out again reads as zero.

mod addresses;
mod free_list;
mod heap;
mod import;
mod reserve;

pub(crate) use heap::{Allocation, Heap, default_bytes};
#[cfg(not(loom))]
pub(crate) use reserve::Origin;
