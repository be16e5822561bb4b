//! SIMD IR: code for whole workgroups, 16 invocations (a subgroup) at a time. `vectorize` makes it from the scalar IR
//! of one invocation.
//!
//! `inst.rs` defines the instructions, `docs/simd.md` the text form and the rules that the verifier checks.

mod address;
pub(crate) mod builder;
mod check_routine;
mod cost;
pub(crate) mod dominance;
mod entities;
mod hoist_shared_loads;
mod inst;
mod inst_parse;
mod kernel;
mod merge_simd_blocks;
mod names;
mod operands;
mod parse;
mod print;
mod routine;
mod schedule;
pub(crate) mod ssa;
mod subsets;
mod types;
mod unroll_and_jam;
mod verify;
mod verify_inst;
mod verify_lanes;
mod verify_loops;
mod verify_scalars;
mod wide;
mod workgroup_loop;

pub use address::{Address, BoundedIndex, Elements, LaneAddress, Row, Segments, Spacing};
pub use check_routine::CheckRoutine;
pub use entities::{Block, Inst, Value};
pub use hoist_shared_loads::hoist_shared_loads;
pub use inst::{BlockCall, InstData, LANES, pure_result};
pub use kernel::{BlockData, Kernel, SubgroupLoop, ValueDef};
pub use merge_simd_blocks::merge_simd_blocks;
pub use routine::Routine;
pub use schedule::{Scheduled, schedule};
pub use types::Type;
pub use unroll_and_jam::{Interleave, unroll_and_jam};
pub use verify::{VerifyError, verify};
pub use wide::{ContextField, WideOp};
pub use workgroup_loop::workgroup_loop;

pub use crate::text::ParseError;
