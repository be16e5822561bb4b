//! Checked mode: what a kernel that runs tells about its accesses to shared memory, and the detector of data races that
//! listens.
//!
//! The kernel is instrumented as it was read, before any optimisation, so that sites are instructions of the module.
//! Every back end makes the same calls of [`Observer`](observer::Observer), in an order that the schedule determines.

mod atomics;
mod attributes;
mod barrier;
mod candidate;
mod cells;
mod detector;
mod fences;
mod heads;
mod history;
pub(crate) mod inline;
mod insert;
mod judge;
mod known;
mod listen;
mod map;
mod nodes;
pub mod observer;
mod offer;
mod own_availability;
mod owners;
mod page;
mod parts;
mod planes;
mod profile;
mod record;
mod report;
mod retain;
mod rows;
mod settings;
mod shadow;
mod subsume;
#[cfg(test)]
mod tests;
mod unshared;
mod words;
mod workgroup;
mod written;

pub(crate) use attributes::{is_atomic_of, is_relaxed, orders_workgroup_memory};
pub use candidate::{
    Agents, Candidate, CandidateKind, Candidates, Cause, Distance, First, GivenUp, NonUniformBarrier, Note, NoteKind,
    Relation, Second,
};
pub(crate) use cells::{CellLayout, Group};
pub use detector::Detector;
pub use fences::merge_fences;
pub use inline::{InlineMemory, MAX_SITES};
pub use insert::insert;
pub use map::Map;
pub use nodes::NodeTable;
pub(crate) use offer::words_of_barrier;
pub use own_availability::complete_semantics;
pub use planes::{GRANULE, Planes};
pub use retain::keep_accesses;
pub use settings::{Launch, Limits, Profile};
pub use subsume::subsume;
pub use unshared::drop_unshared;
pub use written::{drop_unwritten, read_bindings, written_bindings};

pub use crate::ir::{InlineChecks, Plane, PlaneSet};
