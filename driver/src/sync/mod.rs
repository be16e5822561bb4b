//! Synchronization primitives: what hosts and queues wait for.

mod counter;
mod fence;
mod wait;
mod wake;

pub(crate) use counter::{Counter, Target};
pub(crate) use fence::FenceState;
pub(crate) use wait::{Until, WAIT_SPIN, wait};
pub(crate) use wake::{Helper, Wake, Watchers};
