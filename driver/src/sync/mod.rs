//! Synchronization primitives: what hosts and queues wait for, and the loss of a device, which ends all waits.

mod counter;
mod fence;
mod loss;
pub(crate) mod primitives;
mod task;
mod wait;
mod wake;

pub(crate) use counter::{Counter, Target};
pub(crate) use fence::FenceState;
pub(crate) use loss::Loss;
pub(crate) use task::TaskRegistration;
pub(crate) use wait::{Until, WAIT_SPIN, wait};
pub(crate) use wake::{Helper, Wake};
