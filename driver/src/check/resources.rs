//! Where the buffers and images of a device are, so that findings about transfers and the host name them.

use std::collections::btree_map::Entry;
use std::collections::{BTreeMap, BTreeSet};
use std::ops::Range;
use std::sync::Arc;

use spelter_locks::Mutex;
use spelter_shaders::guest::GuestSlice;

use super::found_memory::{FoundMemory, FoundPlace, FoundResource, ResourceKind, ResourceRole};

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
    /// The numbers of roles, by kind, usage and size: of those that a resource has.
    roles: BTreeMap<(ResourceKind, u32, u64), RoleNumbers>,
    /// The most bytes that one ever had.
    longest: u64,
}

/// The numbers of the buffers or images of one kind, usage and size.
#[derive(Debug, Default)]
struct RoleNumbers {
    /// Those below that none has.
    free: BTreeSet<u64>,
    next: u64,
}

impl RoleNumbers {
    fn take(&mut self) -> u64 {
        self.free.pop_first().unwrap_or_else(|| {
            self.next += 1;
            self.next - 1
        })
    }
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

    /// A buffer or image, by its kind, usage and number, gets memory.
    pub(crate) fn add(
        &self,
        (kind, usage, number): (ResourceKind, u32, u64),
        memory: GuestSlice,
        name: Option<Arc<str>>,
    ) -> ResourceId {
        let mut state = self.state.lock();
        let numbers = state.roles.entry((kind, usage, memory.len())).or_default();
        let role = ResourceRole { usage, number: numbers.take() };
        let key = (memory.address() as u64, state.next);
        state.next += 1;
        state.longest = state.longest.max(memory.len());
        state.places.insert(key, FoundResource { kind, name, number, bytes: memory.len(), role });
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
        let mut state = self.state.lock();
        let Some(FoundResource { kind, role, bytes, .. }) = state.places.remove(&id.0) else { return };
        if let Entry::Occupied(mut numbers) = state.roles.entry((kind, role.usage, bytes)) {
            numbers.get_mut().free.insert(role.number);
            // A program may make buffers of ever other sizes.
            if numbers.get().free.len() as u64 == numbers.get().next {
                numbers.remove();
            }
        }
    }

    /// The addresses where buffers and images begin and end.
    pub(super) fn bounds(&self) -> BTreeSet<u64> {
        let state = self.state.lock();
        state.places.iter().flat_map(|(&(start, _), of)| [start, start.saturating_add(of.bytes)]).collect()
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
            resources.add((kind, 1, resources.create(kind)), memory.slice(start, len), name.map(Arc::from))
        };
        assert_eq!(find(0, 4), None);
        let large = add(ResourceKind::Buffer, 0, 256, Some("arena"));
        add(ResourceKind::Image, 64, 64, None);
        assert_eq!(find(72, 80).as_deref(), Some("buffer `arena`, bytes 72..80"));
        resources.rename(large, None);
        assert_eq!(find(72, 80).as_deref(), Some("image 0 (of 64 bytes), bytes 8..16"));
        assert_eq!(find(128, 132).as_deref(), Some("buffer 0 (of 256 bytes), bytes 128..132"));
        assert_eq!(resources.bounds(), [0, 64, 128, 256].map(at).into());
        resources.remove(large);
        assert_eq!(find(128, 132), None);
    }

    #[test]
    fn the_successor_of_a_resource_has_its_role() {
        let (resources, memory) = (Resources::default(), GuestSlice::leak(64));
        let sized = |usage, bytes| {
            let kind = ResourceKind::Buffer;
            resources.add((kind, usage, resources.create(kind)), memory.slice(0, bytes), None)
        };
        let add = |usage| sized(usage, 64);
        let role = |id: ResourceId| {
            let ResourceRole { usage, number } = resources.state.lock().places[&id.0].role;
            (usage, number)
        };
        let [first, second, other] = [1, 1, 2].map(add);
        assert_eq!([first, second, other].map(role), [(1, 0), (1, 1), (2, 0)]);
        resources.remove(first);
        let next = [1, 1, 2].map(add);
        assert_eq!(next.map(role), [(1, 0), (1, 2), (2, 1)]);
        // Of another size, it has other ones of its own.
        assert_eq!(role(sized(1, 32)), (1, 0));
        [second, next[0], next[1]].into_iter().for_each(|id| resources.remove(id));
        assert_eq!(role(add(1)), (1, 0));
        assert_eq!(resources.state.lock().roles.len(), 3);
    }
}
