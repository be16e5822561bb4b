//! A range of a resource that the host has mapped: while it exists, the resource records it, so that commands and other
//! mappings of the range are rejected.

use std::ops::Range;
use std::sync::Arc;

use super::flags::MapFlags;
use crate::context::ContextInner;
use crate::resource::{Resource, ResourceState};
use crate::share::Share;

/// A range that its resource records as mapped until this is dropped.
#[derive(Debug)]
pub(super) struct MappedRange {
    share: Arc<Share>,
    resource: Arc<Resource>,
    number: u64,
}

impl MappedRange {
    /// `state` belongs to `resource`.
    pub(super) fn new(
        context: &ContextInner,
        resource: &Arc<Resource>,
        state: &mut ResourceState,
        range: &Range<u64>,
        flags: MapFlags,
    ) -> Self {
        if flags.contains(MapFlags::WRITE) && flags.intersects(MapFlags::PERSISTENT | MapFlags::UNSYNCHRONIZED) {
            // Such a mapping may be written at any time, so the range is valid from now on.
            state.add(range.clone());
        }
        let persistent = flags.contains(MapFlags::PERSISTENT);
        let number = state.mappings.add(range.clone(), persistent);
        if !persistent {
            context.share.mapped();
        }
        Self { share: Arc::clone(&context.share), resource: Arc::clone(resource), number }
    }
}

impl Drop for MappedRange {
    fn drop(&mut self) {
        let mut state = self.resource.state();
        if state.mappings.remove(self.number) {
            self.share.unmapped();
        }
    }
}
