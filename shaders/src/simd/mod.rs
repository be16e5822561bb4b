//! The SIMD form: the scalar IR of one invocation becomes code for whole workgroups, 16 invocations at a time.
//!
//! Read `inst.rs` for what the virtual machine can do and `docs/simd.md` for the text form.

mod builder;
mod cost;
mod dominance;
mod entities;
mod hoist;
mod inst;
mod inst_parse;
mod join;
mod kernel;
mod names;
mod operands;
mod pair;
mod parse;
mod print;
mod repeat;
mod routine;
mod schedule;
mod ssa;
mod subsets;
mod types;
mod verify;
mod verify_inst;
mod verify_lanes;
mod verify_scalars;
mod wide;
mod widen;

pub use entities::{Block, Inst, Value};
pub use hoist::hoist;
pub use inst::{Address, BlockCall, Elements, InstData, LANES, LaneAddress, Row, Spacing, Strips, pure_result};
pub use join::join;
pub use kernel::{BlockData, Kernel, ValueDef};
pub use pair::{Pairs, pair};
pub use repeat::repeat;
pub(crate) use routine::MOST_WORDS;
pub use routine::Routine;
pub use schedule::{Scheduled, schedule};
pub use types::Type;
pub use verify::{VerifyError, verify};
pub use wide::{Field, WideOp};

pub use crate::text::ParseError;
pub use widen::{Unsupported, widen};
