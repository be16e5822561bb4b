//! Checked mode: data races of kernels, found while they run, confirmed by the axioms of the memory model, explained
//! and repaired.
//!
//! A device with [`DeviceOptions::check`](crate::DeviceOptions::check) has one worker and runs instrumented kernels
//! (`run.rs`). A detector proposes candidates, and may suspect too much. So the dispatch runs again in the same order
//! (`replays.rs`), with a [`Recorder`] as its observer, and of the [`Log`] only the events that can order the two
//! accesses become a trace of the memory model: a slice, of at most [`MAX_EVENTS`] events. The axioms decide
//! ([`confirm()`]).

mod barrier_order;
mod bounded;
mod checker;
mod code;
mod commands;
mod confirm;
mod deadline;
mod dispatch;
mod errors;
mod examine;
mod explanation;
mod finding;
mod found_command;
mod found_memory;
mod further;
mod group;
mod guards;
mod identity;
mod kernel;
mod link_order;
mod log;
mod names;
mod noted;
mod notes;
mod one_statement;
mod operation;
mod options;
mod progress;
mod reach;
mod record;
mod recorder;
mod reduce;
mod repair;
mod replays;
pub mod report;
mod resources;
mod results;
mod run;
mod second_pass;
mod settled;
mod slice;
mod snapshot;
mod statement;
mod step;
mod suspicion;
mod untouched;
mod update;
mod word_facts;
mod words;

pub use checker::CheckStats;
pub(crate) use checker::Checker;
pub(crate) use code::CheckedCode;
pub use confirm::{AccessFilter, Candidate, Confirmed, Verdict, confirm, verdict};
pub use finding::{Finding, FoundAccess, FoundInvocation, Hazard, Repair, Rule, Severity};
pub use found_command::FoundCommand;
pub use found_memory::{FoundMemory, FoundPlace, FoundResource, ResourceKind, ResourceRole};
pub use group::FindingGroup;
pub use identity::FindingIdentity;
pub use kernel::{CheckedKernel, KernelChecker};
pub use log::{Accessed, Dispatch, Log, Word};
pub(crate) use names::KernelNames;
pub use operation::{operation, scope, set_semantics};
pub use options::{CheckOptions, MappedAccesses, Profile, Shard};
pub use progress::CheckProgress;
pub use recorder::Recorder;
pub(crate) use resources::ResourceId;
pub use results::CheckResults;
pub use slice::{MAX_EVENTS, Purpose, Slice, Undecided, slice};
pub use step::FoundStep;
