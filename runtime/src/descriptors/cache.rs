//! The cache of descriptor sets of a context: a set is allocated and written when its state is first seen, reused when
//! the state repeats, and dropped when one of its objects is replaced or destroyed.

use std::collections::HashMap;
use std::sync::Arc;

use foldhash::fast::FixedState;
use spelter_driver::{BufferInfo, DescriptorImageInfo, DescriptorPool, DescriptorSet, DescriptorSetLayout, Device};

use super::key::DescriptorKey;
use crate::error::{Error, rule};
use crate::ids::ObjectId;
use crate::program::{Declared, SetLayout};
use crate::slot_state::SlotState;
use crate::stats::Counters;
use crate::view::{Part, View};

/// Sets in a pool; when a pool is exhausted another one is created.
const SETS_IN_POOL: u32 = 32;
/// The largest number of cached sets; if there are more, the least recently used half is dropped.
const MAX_SETS: usize = 1024;

/// A set and its state.
#[derive(Debug)]
pub(crate) struct CachedSet {
    pub(crate) set: DescriptorSet,
    /// The number of the set, unique in its context.
    pub(crate) number: u64,
    layout: usize,
    keys: Box<[DescriptorKey]>,
    hash: u64,
}

/// The sets of a context.
#[derive(Debug, Default)]
pub(crate) struct SetCache {
    /// By hash of layout and state.
    sets: HashMap<u64, Vec<CacheEntry>, FixedState>,
    /// Hashes of the sets that name an object.
    by_object: HashMap<u64, Vec<u64>, FixedState>,
    layouts: Vec<(DescriptorSetLayout, Option<DescriptorPool>)>,
    count: usize,
    next: u64,
}

#[derive(Debug)]
struct CacheEntry {
    set: Arc<CachedSet>,
    /// The value of `next` when it was last used.
    used: u64,
}

impl SetCache {
    /// The number of a layout in this cache; the same for identically defined layouts.
    pub(super) fn layout(&mut self, layout: &DescriptorSetLayout) -> usize {
        if let Some(at) = self.layouts.iter().position(|(known, _)| known == layout) {
            return at;
        }
        self.layouts.push((layout.clone(), None));
        self.layouts.len() - 1
    }

    /// The set of a layout with this state: `keys`, whose summands of the hash add up to `hash`. A new set is written
    /// from `descriptors`.
    pub(super) fn set<'a>(
        &mut self,
        device: &Device,
        (number, layout): (usize, &SetLayout),
        (keys, hash): (&[DescriptorKey], u64),
        descriptors: impl Iterator<Item = &'a SlotState>,
        counters: &Counters,
    ) -> Result<Arc<CachedSet>, Error> {
        self.next += 1;
        let hash = hash ^ (number as u64).wrapping_mul(0xd6e8_feb8_6659_fd93);
        let found = self.sets.get_mut(&hash).into_iter().flatten();
        let found = found.into_iter().find(|kept| kept.set.layout == number && *kept.set.keys == *keys);
        if let Some(kept) = found {
            kept.used = self.next;
            counters.sets_reused.one();
            return Ok(Arc::clone(&kept.set));
        }
        let set = allocate(device, &mut self.layouts[number].1, layout, SETS_IN_POOL)?;
        write(&set, layout, descriptors)?;
        counters.sets_allocated.one();
        if self.count >= MAX_SETS {
            self.evict(counters);
        }
        let set = Arc::new(CachedSet { set, number: self.next, layout: number, keys: keys.into(), hash });
        self.keep(&set);
        Ok(set)
    }

    fn keep(&mut self, set: &Arc<CachedSet>) {
        self.count += 1;
        self.sets.entry(set.hash).or_default().push(CacheEntry { set: Arc::clone(set), used: self.next });
        for key in &set.keys {
            let hashes = self.by_object.entry(key.object).or_default();
            if hashes.last() != Some(&set.hash) {
                hashes.push(set.hash);
            }
        }
    }

    /// Drops the sets that name an object that was destroyed or replaced.
    pub(crate) fn drop_object(&mut self, object: ObjectId, counters: &Counters) {
        for hash in self.by_object.remove(&object.0).unwrap_or_default() {
            self.drop_where(hash, counters, |kept| kept.set.keys.iter().any(|key| key.object == object.0));
        }
    }

    /// Drops the sets of a hash for which `goes` is true, and their entries in `by_object`.
    fn drop_where(&mut self, hash: u64, counters: &Counters, goes: impl Fn(&CacheEntry) -> bool) {
        let Some(sets) = self.sets.get_mut(&hash) else { return };
        let (gone, stay): (Vec<_>, Vec<_>) = std::mem::take(sets).into_iter().partition(goes);
        let last = stay.is_empty();
        *sets = stay;
        if last {
            self.sets.remove(&hash);
        }
        self.count -= gone.len();
        counters.sets_dropped.add(gone.len() as u64);
        for key in gone.iter().filter(|_| last).flat_map(|kept| &kept.set.keys) {
            if let Some(hashes) = self.by_object.get_mut(&key.object) {
                hashes.retain(|other| *other != hash);
                if hashes.is_empty() {
                    self.by_object.remove(&key.object);
                }
            }
        }
    }

    /// Drops the least recently used half.
    fn evict(&mut self, counters: &Counters) {
        let mut used: Vec<u64> = self.sets.values().flatten().map(|kept| kept.used).collect();
        let middle = used.len() / 2;
        let (_, oldest, _) = used.select_nth_unstable(middle);
        let limit = *oldest;
        let hashes: Vec<u64> = self.sets.keys().copied().collect();
        for hash in hashes {
            self.drop_where(hash, counters, |kept| kept.used < limit);
        }
    }

    /// Drops all sets.
    pub(crate) fn clear(&mut self, counters: &Counters) {
        counters.sets_dropped.add(self.count as u64);
        (self.sets, self.by_object, self.count) = Default::default();
    }

    /// The number of cached sets.
    pub(crate) fn len(&self) -> usize {
        self.count
    }
}

/// A set from a pool of `sets` sets of its layout. When the pool is exhausted another one is created.
pub(crate) fn allocate(
    device: &Device,
    pool: &mut Option<DescriptorPool>,
    layout: &SetLayout,
    sets: u32,
) -> Result<DescriptorSet, Error> {
    if let Some(pool) = pool {
        match pool.allocate(&layout.layout) {
            Err(spelter_driver::Error::OutOfPoolMemory(_)) => {}
            set => return Ok(set?),
        }
    }
    let sizes: Vec<_> = layout.bindings.iter().map(|b| (b.ty(), b.count.saturating_mul(sets))).collect();
    let pool = pool.insert(device.create_descriptor_pool(sets, &sizes)?);
    Ok(pool.allocate(&layout.layout)?)
}

/// Writes all descriptors of a set, in the layout's order.
fn write<'a>(
    set: &DescriptorSet,
    layout: &SetLayout,
    mut descriptors: impl Iterator<Item = &'a SlotState>,
) -> Result<(), Error> {
    for binding in &layout.bindings {
        for (element, bound) in (0..binding.count).zip(descriptors.by_ref()) {
            write_one(set, binding, element, bound)?;
        }
    }
    Ok(())
}

/// Writes a descriptor.
pub(crate) fn write_one(set: &DescriptorSet, binding: &Declared, element: u32, bound: &SlotState) -> Result<(), Error> {
    let (number, ty, sampler) = (binding.binding, binding.ty(), bound.sampler.as_ref());
    let written = match (&bound.view, &bound.part, &bound.object) {
        (Some(View::Texels(view)), ..) => set.write_texel_buffers(number, element, ty, &[view]),
        (Some(View::Image(view)), ..) => {
            set.write_images(number, element, ty, &[DescriptorImageInfo { sampler, view: Some(view) }])
        }
        (None, Part::Bytes(range), Some(object)) => {
            let (offset, range) = (range.start, range.end - range.start);
            set.write(number, element, ty, &[BufferInfo { buffer: object.buffer()?, offset, range }])
        }
        _ if bound.is_null() => set.write_null(number, element, ty, 1),
        (None, Part::Nothing, _) => {
            set.write_images(number, element, ty, &[DescriptorImageInfo { sampler, view: None }])
        }
        _ => {
            let problem = format!("{} has no view (rule: {})", bound.described(), rule::KIND);
            return Err(Error::binding(binding.group, number, problem));
        }
    };
    written.map_err(|error| refused(binding, element, bound, error))
}

/// An error of the driver, with the binding and the resource.
fn refused(binding: &Declared, element: u32, bound: &SlotState, error: spelter_driver::Error) -> Error {
    let spelter_driver::Error::Misuse(misuse) = error else { return error.into() };
    let at = if binding.count == 1 { String::new() } else { format!("element {element}: ") };
    let what = bound.described();
    Error::binding(binding.group, binding.binding, format!("{at}{what}: {} ({})", misuse.problem, misuse.vuid))
}
