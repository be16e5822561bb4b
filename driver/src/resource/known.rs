//! What checked mode knows of a buffer or image: where it is, and the name that the program gave it.

use std::sync::Arc;

use spelter_locks::Mutex;
use spelter_shaders::guest::GuestSlice;

use crate::check::{ResourceId, ResourceKind};
use crate::device::Device;

/// The name and the place of a buffer or image.
#[derive(Debug, Default)]
pub(super) struct Known {
    state: Mutex<(Option<Arc<str>>, Option<ResourceId>)>,
}

impl Known {
    /// It gets memory.
    pub(super) fn bound(&self, device: &Device, kind: ResourceKind, memory: GuestSlice) {
        if let Some(checker) = device.checker() {
            let mut state = self.state.lock();
            state.1 = Some(checker.resources().add(kind, memory, state.0.clone()));
        }
    }

    /// It gets a debug name, or loses it.
    pub(super) fn set_name(&self, device: &Device, name: Option<&str>) {
        if let Some(checker) = device.checker() {
            let mut state = self.state.lock();
            state.0 = name.map(Into::into);
            state.1.inspect(|id| checker.resources().rename(*id, state.0.clone()));
        }
    }

    /// It is destroyed.
    pub(super) fn gone(&self, device: &Device) {
        let id = self.state.lock().1.take();
        if let (Some(checker), Some(id)) = (device.checker(), id) {
            checker.resources().remove(id);
        }
    }
}
