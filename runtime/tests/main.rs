//! Tests of the crate through its public API, in one program: one link, and one pool of test threads.

mod article;
mod card;
mod checked;
mod commands;
mod contents;
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
mod wgsl_errors;

/// Whether `SPELTER_CHECK` turns checked mode on for contexts whose builders do not: then a test fails if commands
/// race. By the rules of Vulkan those do that read undefined bytes which another command, or the host, writes
/// meanwhile; the tracker lets them, since what they read is undefined either way. So tests that read such bytes leave
/// that out here, or ask for findings themselves.
fn is_checked() -> bool {
    std::env::var("SPELTER_CHECK").is_ok_and(|value| !matches!(&*value, "" | "0"))
}
