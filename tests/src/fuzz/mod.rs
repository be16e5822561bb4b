//! Differential fuzzing: random structured programs with deterministic results, run on every engine.
//!
//! [`generate`] makes a verified kernel with its dispatch and memory from a [`Tape`]. Its results do not depend on the
//! order in which invocations run: see `layout`. [`Bench`] runs a program on every engine and compares every byte,
//! [`shrink`] and [`reduce`] reduce failing programs, [`text`] writes them to files that can be run again.
//! [`Coverage`] counts what was tested.

mod bench;
mod expression;
mod feature;
mod flow;
mod gallery;
mod index;
mod layout;
mod maker;
mod memory;
mod narrow;
mod picture;
mod pointer;
mod program;
mod reduce;
mod repeat;
mod scope;
mod setup;
mod shrink;
mod statement;
mod subgroup;
mod sync;
mod tape;
pub mod text;
mod texture;
mod walk;

pub use bench::{Bench, Finding, quiet_panics, stages};
pub(crate) use bench::{caught, finding, is_exact, lowered, optimized, uncontracted};
pub use expression::is_transcendental;
pub use feature::{Coverage, Feature, Features};
pub use maker::Options;
pub use program::{Buffer, Generated, Program, fill};
pub use reduce::reduce;
pub use setup::generate;
pub use shrink::shrink;
pub use tape::Tape;
pub use texture::{Shape, Texture};
