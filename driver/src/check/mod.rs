//! Checked mode: data races of kernels, found while they run, confirmed by the axioms of the memory model, explained and
//! repaired.
//!
//! A device with [`DeviceOptions::check`](crate::DeviceOptions::check) has one worker and interprets instrumented kernels
//! ([`code`]). A detector proposes candidates; for each the dispatch is run again and recorded, and the axioms decide.

mod checker;
mod finding;
mod options;

pub(crate) use checker::Checker;
pub use finding::{Finding, FoundAccess, FoundMemory, FoundPlace, Hazard, Repair, Rule, Severity};
pub use options::{CheckOptions, Profile, Shard};
