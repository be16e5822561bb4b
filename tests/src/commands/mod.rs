//! Random and given programs of commands, for checked mode at the level of the API.
//!
//! A [`Program`] has a text form (`text.rs`). A [`Machine`] runs it on a device in checked mode. [`Comparison`]
//! compares what the device reports with what the axioms of the memory model say of the same execution: `history.rs`
//! lists the accesses and dependencies by the words of the chapter "Synchronization and Cache Control", and
//! `axioms.rs` makes a trace of operations of the memory model of them. Neither uses code of the device.

mod axioms;
mod compare;
mod generate;
mod history;
mod kernels;
mod machine;
mod parse;
mod print;
pub mod program;
mod text;

pub use compare::{Comparison, Owner, Pair};
pub use machine::{Machine, Pace};
pub use program::Program;
