//! Kernels with one part of their synchronization removed: checked mode must report each one that the axioms call racy.
//!
//! [`mutants`] makes the copies, [`Subject`] gives them memory, [`Bench`] runs them. [`Bench::axioms`] decides without
//! the detector, from all words that invocations share, so that it finds what the detector misses.

mod change;
mod oracle;
mod subject;
mod trial;

pub use change::{Change, Mutant, mutants};
pub use oracle::Answer;
pub use subject::{Memory, Subject};
pub use trial::{Bench, Report, Verdict};
