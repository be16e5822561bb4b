//! Where the buffers and images of a device are, so that findings about transfers and the host name them.

use std::collections::BTreeMap;
use std::ops::Range;
use std::sync::Arc;

use spelter_locks::Mutex;
use spelter_shaders::guest::GuestSlice;

use super::found_memory::{FoundMemory, FoundPlace, FoundResource, ResourceKind};

/// The buffers and images that have memory.
#[derive(Debug, Default)]
pub(crate) struct Resources {
    state: Mutex<ResourceTable>,
}

#[derive(Debug, Default)]
struct ResourceTable {
    /// By address, and the order in which they got memory.
    places: BTreeMap<(u64, u64), FoundResource>,
    /// How many got memory so far.
    next: u64,
    /// The numbers of buffers and images that were created.
    created: [u64; 2],
    /// The most bytes that one ever had.
    longest: u64,
}

/// A buffer or image in [`Resources`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct ResourceId((u64, u64));

impl Resources {
    /// A buffer or image is created. Returns its number among those of its kind.
    pub(crate) fn create(&self, kind: ResourceKind) -> u64 {
        let created = &mut self.state.lock().created[kind as usize];
        *created += 1;
        *created - 1
    }

    /// A buffer or image gets memory.
    pub(crate) fn add(
        &self,
        kind: ResourceKind,
        number: u64,
        memory: GuestSlice,
        name: Option<Arc<str>>,
    ) -> ResourceId {
        let mut state = self.state.lock();
        let key = (memory.address() as u64, state.next);
        state.next += 1;
        state.longest = state.longest.max(memory.len());
        state.places.insert(key, FoundResource { kind, name, number, bytes: memory.len() });
        ResourceId(key)
    }

    /// It gets another name.
    pub(crate) fn rename(&self, id: ResourceId, name: Option<Arc<str>>) {
        if let Some(resource) = self.state.lock().places.get_mut(&id.0) {
            resource.name = name;
        }
    }

    /// It is destroyed.
    pub(crate) fn remove(&self, id: ResourceId) {
        self.state.lock().places.remove(&id.0);
    }

    /// The memory at these addresses, as a part of a buffer or image: of those with a name, if there are any, the
    /// smallest one.
    pub(super) fn find(&self, bytes: &Range<u64>) -> Option<FoundMemory> {
        let state = self.state.lock();
        let first = (bytes.start.saturating_sub(state.longest), 0);
        let has = |((start, _), of): &(&(u64, u64), &FoundResource)| bytes.start < start.saturating_add(of.bytes);
        let around = state.places.range(first..=(bytes.start, u64::MAX)).filter(has);
        let ((start, _), found) = around.min_by_key(|(_, of)| (of.name.is_none(), of.bytes))?;
        Some(FoundMemory::new(FoundPlace::Resource(found.clone()), bytes.start - start..bytes.end - start))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn memory_is_part_of_the_smallest_resource_with_a_name() {
        let (resources, memory) = (Resources::default(), GuestSlice::leak(256));
        let at = |offset: u64| memory.address() as u64 + offset;
        let find = |start, end| resources.find(&(at(start)..at(end))).map(|found| found.to_string());
        let add = |kind, start, len, name: Option<&str>| {
            resources.add(kind, resources.create(kind), memory.slice(start, len), name.map(Arc::from))
        };
        assert_eq!(find(0, 4), None);
        let large = add(ResourceKind::Buffer, 0, 256, Some("arena"));
        add(ResourceKind::Image, 64, 64, None);
        assert_eq!(find(72, 80).as_deref(), Some("buffer `arena`, bytes 72..80"));
        resources.rename(large, None);
        assert_eq!(find(72, 80).as_deref(), Some("image 0 (of 64 bytes), bytes 8..16"));
        assert_eq!(find(128, 132).as_deref(), Some("buffer 0 (of 256 bytes), bytes 128..132"));
        resources.remove(large);
        assert_eq!(find(128, 132), None);
    }
}
