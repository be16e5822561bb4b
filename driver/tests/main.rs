//! Tests of the device through its public API, in one program. `leaks` and `checked_robustness` count what their
//! process has, so they are alone.

mod addresses;
mod checked_commands;
mod checked_essay;
mod checked_reasons;
mod checked_repairs;
mod checking_page;
mod common;
mod deferred;
mod descriptor_indexing;
mod dispatch;
mod host_atomics;
mod images;
mod lifecycle;
mod loss;
mod misuse;
mod pipelines;
mod printing;
mod recordings;
mod scoped_races;
mod shipped_races;
mod stopped;
mod stored;
mod sync;
mod transfer;
