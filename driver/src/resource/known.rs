//! Identity of a buffer or image in checked mode: where it is, and the name that the program gave it.

use std::sync::Arc;

use spelter_locks::Mutex;
use spelter_shaders::guest::GuestSlice;

use crate::check::{ResourceId, ResourceKind};
use crate::device::Device;

/// The name and the place of a buffer or image.
#[derive(Debug)]
pub(super) struct Known {
    kind: ResourceKind,
    /// The usage flags.
    usage: u32,
    /// Its number among those of its kind, on a device that checks.
    number: u64,
    state: Mutex<KnownState>,
}

#[derive(Debug, Default)]
struct KnownState {
    /// The debug name.
    name: Option<Arc<str>>,
    /// The checker's number for the resource, while it has memory.
    id: Option<ResourceId>,
}

impl Known {
    /// Of a buffer or image that is created now, with these usage flags.
    pub(super) fn new(device: &Device, kind: ResourceKind, usage: u32) -> Self {
        let number = device.checker().map(|checker| checker.resources().create(kind)).unwrap_or_default();
        Self { kind, usage, number, state: Mutex::default() }
    }

    /// It gets memory.
    pub(super) fn bound(&self, device: &Device, memory: GuestSlice) {
        if let Some(checker) = device.checker() {
            let mut state = self.state.lock();
            state.id = Some(checker.resources().add((self.kind, self.usage, self.number), memory, state.name.clone()));
        }
    }

    /// It gets a debug name, or loses it by an empty one.
    pub(super) fn set_name(&self, device: &Device, name: Option<&str>) {
        if let Some(checker) = device.checker() {
            let mut state = self.state.lock();
            state.name = name.filter(|name| !name.is_empty()).map(Into::into);
            state.id.inspect(|id| checker.resources().rename(*id, state.name.clone()));
        }
    }

    /// It is destroyed.
    pub(super) fn gone(&self, device: &Device) {
        let id = self.state.lock().id.take();
        if let (Some(checker), Some(id)) = (device.checker(), id) {
            checker.resources().remove(id);
        }
    }
}
