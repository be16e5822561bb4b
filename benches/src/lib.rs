//! What the benches share: the kernels with their plain Rust, the machine's limits, and the table of both.
//!
//! A kernel is a shader under `kernels/` or in the library, and a file in [`kernels`] with its input, the same work in
//! plain Rust, and the comparison of the two. `tests/kernels.rs` runs all of them small, `benches/kernels.rs` times them.

#[macro_use]
mod native;

pub mod engine;
pub mod kernels;
pub mod machine;
pub mod measure;
pub mod overhead;
pub mod summary;
pub mod unit;
pub mod work;

mod check;
mod data;

/// Whatever keeps a bench from running, or its answer from being right.
pub type Error = Box<dyn std::error::Error>;
