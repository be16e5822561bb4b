//! Device memory: allocations from one reserved address range.
//!
//! Host and device use the same addresses. Pages are committed when they are first touched and returned to the system
//! when their allocation drops, so a later allocation reads as zero.

mod addresses;
mod heap;
mod import;
mod reserve;

pub(crate) use heap::{Allocation, Heap, default_bytes};
#[cfg(not(loom))]
pub(crate) use reserve::ForkDetector;
pub(crate) use reserve::Reservation;
