//! Device memory: allocations from one reserved address range.
//!
//! Host and device use the same addresses. Pages are committed when they are first touched and returned to the system
//! when their allocation drops, so a later allocation reads as zero.

mod addresses;
#[cfg(all(target_os = "linux", target_arch = "x86_64"))]
mod fault;
#[cfg(not(all(target_os = "linux", target_arch = "x86_64")))]
#[path = "no_fault.rs"]
mod fault;
mod heap;
mod host_view;
mod reserve;

pub(crate) use fault::place_of;
pub(crate) use heap::{Allocation, Heap, Owner, default_bytes};
pub(crate) use host_view::{Closed, HostObserver, HostView};
pub(crate) use reserve::Reservation;
