//! The SIMD form at its boundaries.

mod ahead;
mod groups;
mod lanes;
mod pairs;
#[path = "../ir/random.rs"]
mod random;
mod schedule;
mod serial;
mod text;
mod verify;
mod widened;
