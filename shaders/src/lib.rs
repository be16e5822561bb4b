//! SPIR-V words and specialization constants in, a kernel out: a pure function.
//!
//! This crate knows no thread, clock, file or Vulkan handle. [`compile`] is the whole pipeline in one file; [`abi`] is
//! what a kernel receives when it runs; [`guest`] is the only module that touches guest memory.

pub mod abi;
pub mod analysis;
pub mod back;
pub mod check;
pub mod compile;
pub mod explain;
mod float_mode;
pub mod free_ranges;
pub mod front;
pub mod guest;
pub mod host;
pub mod image;
pub mod ir;
pub mod lower;
pub mod opt;
pub mod schedule;
pub mod simd;
pub mod ssa;
mod text;
pub mod vectorize;
pub mod work;
