//! Tests of the crate through its public API, in one program: one link, and one pool of test threads.

mod article;
mod card;
mod commands;
mod context;
mod images;
mod invalidation;
mod layouts;
mod log;
mod misuse;
mod model;
mod pressure;
mod races;
mod read_back;
mod resize;
mod sets;
mod storm;
mod threads;
mod trace;
mod transfers;
mod watch;
#[cfg(feature = "wgpu-types")]
mod wgpu;
