//! Locks and atomics of the protocols between contexts: the real ones, or loom's under `cfg(loom)`.
//!
//! `serial.rs`, `journal.rs`, `gate.rs`, `events.rs`, `callbacks.rs`, `holds.rs`, `recordings.rs`,
//! `commands/current.rs` and `memory/spares.rs` use these, so that loom explores the code that runs in production;
//! `replace/backing.rs` and `set/place.rs` run under their caller's lock.

#[cfg(not(loom))]
mod primitive {
    pub(crate) use spelter_locks::{Condvar, Mutex};
    pub(crate) use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
}

#[cfg(loom)]
mod primitive {
    pub(crate) use loom::sync::atomic::{AtomicBool, AtomicU64, Ordering};
    pub(crate) use spelter_locks::model::{Condvar, Mutex};
}

pub(crate) use primitive::*;
