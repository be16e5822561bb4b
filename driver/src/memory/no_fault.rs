//! Systems on which accesses of the host to closed pages are not reported: a heap has no host's view there.

use std::io;
use std::sync::Arc;

use super::host_view::HostView;

/// Not on this system.
pub(super) fn watch(_: &Arc<HostView>) -> io::Result<()> {
    Err(io::ErrorKind::Unsupported.into())
}

/// The address, since nothing more is known of an instruction.
pub(crate) fn place_of(instruction: usize) -> String {
    format!("{instruction:#x}")
}
