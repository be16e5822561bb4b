//! Checked mode: whether what the detector suspects is a data race.
//!
//! The detector may suspect too much. So the dispatch runs again in the same order, with a [`Recorder`] as its
//! observer, and of the [`Log`] only the events that can order the two accesses become a trace of the memory model: a
//! slice, of at most [`MAX_EVENTS`] events. The axioms decide ([`confirm()`]).

mod confirm;
mod log;
mod operation;
mod reach;
mod recorder;
mod reduce;
mod slice;

pub use confirm::{Candidate, Confirmed, Filter, Verdict, confirm, verdict};
pub use log::{Accessed, Dispatch, Log, Word};
pub use operation::operation;
pub use recorder::Recorder;
pub use slice::{MAX_EVENTS, Purpose, Slice, Undecided, slice};
