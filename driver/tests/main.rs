//! Tests of the device through its public API, in one program. `leaks` counts what its process has, so it is alone.

mod addresses;
mod checked_commands;
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
mod stopped;
mod stored;
mod sync;
mod transfer;
