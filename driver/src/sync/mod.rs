//! What a host waits for.

mod fence;

pub(crate) use fence::FenceState;
