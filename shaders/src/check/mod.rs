//! Checked mode: what a kernel that runs tells about its accesses to shared memory, and the detector of data races that
//! listens.
//!
//! The kernel is instrumented as it was read, before any optimisation, so that sites are instructions of the module.
//! Every back end makes the same calls of [`Observer`](observer::Observer), in an order that the schedule determines.

mod insert;
pub mod observer;
mod insert;
pub mod observer;
mod profile;
mod subsume;

pub use insert::insert;
pub use subsume::subsume;
