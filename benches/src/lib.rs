//! Shared code of the benches: the kernels with plain Rust equivalents, the machine's limits, and the table of both.
//!
//! A kernel is a shader under `kernels/` or in the library, and a file in [`kernels`] with its input, the same work in
//! plain Rust, and the comparison of the two. `tests/kernels.rs` runs all of them small, `benches/kernels.rs` times
//! them.

#[macro_use]
mod native;

pub mod engine;
pub mod kernels;
pub mod machine;
pub mod manifests;
pub mod measure;
pub mod overhead;
pub mod summary;
pub mod unit;
pub mod work;

mod check;
mod data;

/// Any failure of a bench, or a wrong result.
pub type Error = Box<dyn std::error::Error>;
