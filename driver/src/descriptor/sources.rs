//! Where a kernel's descriptors come from: slots of sets, flattened for the kernel.

use std::ops::Range;
use std::sync::Arc;

use spelter_shaders::guest::GuestSlice;
use spelter_shaders::image::Descriptor;

use super::{Contents, WeakSet};

/// Slots of one set, of which a kernel takes the descriptors.
#[derive(Debug)]
struct Slots {
    set: WeakSet,
    late: bool,
    contents: Arc<Contents>,
    offsets: Arc<[u32]>,
    slots: Range<usize>,
}

impl Slots {
    /// What the set holds now, or held last if it is gone.
    fn latest(&self) -> Arc<Contents> {
        self.set.contents().filter(|_| self.late).unwrap_or_else(|| Arc::clone(&self.contents))
    }
}

/// Where a kernel's descriptors come from, in the order of its bindings.
#[derive(Debug, Default)]
pub(crate) struct Sources {
    slots: Vec<Slots>,
    has_images: bool,
}

/// A kernel's descriptors, flattened.
#[derive(Clone)]
pub(crate) struct Resolved {
    pub(crate) buffers: Arc<[GuestSlice]>,
    /// Empty if the kernel has none.
    pub(crate) images: Arc<[Descriptor]>,
    /// Where they come from, if a submission has to look again.
    pub(crate) late: Option<Arc<Sources>>,
}

impl Sources {
    pub(crate) fn new(has_images: bool) -> Self {
        Self { slots: Vec::new(), has_images }
    }

    /// Adds slots of a set, which may be updated until it is submitted if it is `late`.
    pub(crate) fn add(
        &mut self,
        (set, late): (&WeakSet, bool),
        contents: &Arc<Contents>,
        offsets: &Arc<[u32]>,
        slots: Range<usize>,
    ) {
        let (set, contents, offsets) = (set.clone(), Arc::clone(contents), Arc::clone(offsets));
        self.slots.push(Slots { set, late, contents, offsets, slots });
    }

    /// Looks at the sets as they are now; what they hold is given to `keep`.
    pub(crate) fn resolve(self: Arc<Self>, mut keep: impl FnMut(Arc<Contents>)) -> Resolved {
        let (mut buffers, mut images) = (Vec::new(), Vec::new());
        for part in &self.slots {
            let contents = part.latest();
            let offset = |slot: usize| part.offsets.get(slot).copied().unwrap_or(0);
            buffers.extend(part.slots.clone().map(|slot| contents.slice(slot, offset(slot))));
            if self.has_images {
                images.extend(part.slots.clone().map(|slot| contents.image(slot)));
            }
            keep(contents);
        }
        let late = self.slots.iter().any(|part| part.late);
        Resolved { buffers: buffers.into(), images: images.into(), late: late.then_some(self) }
    }
}
