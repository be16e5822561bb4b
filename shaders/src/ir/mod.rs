//! Scalar SSA IR: the output of every front end and the input of every back end.
//!
//! The front ends explode vectors, matrices and aggregates and inline functions, so a [`Kernel`] is one control flow
//! graph of blocks with parameters. `op/table.rs` lists the pure operations, `inst.rs` the instructions that access
//! memory, control flow or other invocations, and `docs/ir.md` describes the text form.

mod builder;
mod entities;
mod image;
mod inline_checks;
mod inst;
mod inst_parse;
mod kernel;
mod memory;
mod memory_model;
mod names;
mod observed;
pub mod op;
mod order;
mod parse;
mod print;
mod samples;
mod site;
mod site_text;
mod subgroup;
mod types;
mod verify;
mod verify_inst;

pub use builder::{Builder, element};
pub(crate) use entities::WordPair;
pub use entities::{Binding, Block, CallPath, Inst, Site, Value, Variable};
pub(crate) use inline_checks::PLANES;
pub use inline_checks::{InlineChecks, Plane, PlaneSet};
pub use inst::{BlockCall, BuiltIn, InstData};
pub use kernel::{
    BindingData, BindingKind, BlockData, CallData, Kernel, Merge, SourceLine, ValueDef, VariableData, VariableSpace,
};
pub use memory::{Access, AtomicOp, BufferSpace, Place, Scope, Semantics};
pub use memory_model::MemoryModel;
pub use observed::{Observed, ObservedKind, ObservedVariable};
pub use op::Op;
pub(crate) use order::reverse_postorder;
pub use samples::SampledPair;
pub use site::{AccessSite, SiteAction, SiteData, StorageClass};
pub use subgroup::{SubgroupOp, identity};
pub use types::{ScalarValue, Type, Width};
pub(crate) use verify::VERIFIES;
pub use verify::{VerifyError, verify};

pub use crate::text::ParseError;
