//! Sources of a kernel's descriptors: slots of sets, flattened in the order of the kernel's bindings.

use std::any::Any;
use std::ops::Range;
use std::sync::Arc;

use smallvec::SmallVec;
use spelter_shaders::guest::GuestSlice;
use spelter_shaders::image::Descriptor;

use super::{Contents, WeakSet};
use crate::exec::LateDescriptors;

/// Slots of one set that a kernel uses.
#[derive(Debug)]
struct SetSlots {
    set: WeakSet,
    late: bool,
    contents: Arc<Contents>,
    offsets: Arc<[u32]>,
    slots: Range<usize>,
}

impl SetSlots {
    /// The current contents of the set, or the last known if it was freed.
    fn latest(&self) -> Arc<Contents> {
        self.set.contents().filter(|_| self.late).unwrap_or_else(|| Arc::clone(&self.contents))
    }
}

/// Sources of a kernel's descriptors in the order of its bindings, for submissions that have to resolve them again.
#[derive(Debug, Default)]
pub(crate) struct DescriptorSources {
    slots: Vec<SetSlots>,
    has_images: bool,
}

/// The descriptors of a kernel, flattened.
#[derive(Default)]
pub(crate) struct FlatDescriptors {
    buffers: SmallVec<[GuestSlice; 16]>,
    /// Empty if the kernel has none.
    images: SmallVec<[Descriptor; 4]>,
}

impl FlatDescriptors {
    /// Adds the descriptors of these slots.
    pub(crate) fn add(&mut self, contents: &Contents, offsets: &[u32], slots: Range<usize>, has_images: bool) {
        let offset = |slot: usize| offsets.get(slot).copied().unwrap_or(0);
        self.buffers.extend(slots.clone().map(|slot| contents.slice(slot, offset(slot))));
        if has_images {
            self.images.extend(slots.map(|slot| contents.image(slot)));
        }
    }

    /// Buffers and images, for a dispatch state.
    pub(crate) fn share(&self) -> (Arc<[GuestSlice]>, Arc<[Descriptor]>) {
        (self.buffers.as_slice().into(), self.images.as_slice().into())
    }
}

impl DescriptorSources {
    pub(crate) fn new(has_images: bool) -> Self {
        Self { slots: Vec::new(), has_images }
    }

    /// Adds slots of a set. A `late` set may be updated until submission.
    pub(crate) fn add(
        &mut self,
        (set, late): (&WeakSet, bool),
        contents: &Arc<Contents>,
        offsets: &Arc<[u32]>,
        slots: Range<usize>,
    ) {
        let (set, contents, offsets) = (set.clone(), Arc::clone(contents), Arc::clone(offsets));
        self.slots.push(SetSlots { set, late, contents, offsets, slots });
    }
}

impl LateDescriptors for DescriptorSources {
    fn resolve(&self, keep: &mut dyn FnMut(Arc<dyn Any + Send + Sync>)) -> (Arc<[GuestSlice]>, Arc<[Descriptor]>) {
        let mut flat = FlatDescriptors::default();
        for part in &self.slots {
            let contents = part.latest();
            flat.add(&contents, &part.offsets, part.slots.clone(), self.has_images);
            keep(contents);
        }
        flat.share()
    }
}
