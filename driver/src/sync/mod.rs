//! Synchronization primitives: what hosts and queues wait for.

mod counter;
mod fence;
mod task;
mod wait;
mod wake;

pub(crate) use counter::{Counter, Target};
pub(crate) use fence::FenceState;
pub(crate) use task::TaskRegistration;
pub(crate) use wait::{Until, WAIT_SPIN, wait};
pub(crate) use wake::{Helper, Wake, Watchers};
