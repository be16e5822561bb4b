//! Resource objects: the storage of resources. An object never changes its storage; it is made, used and dropped.
//!
//! Its resource owns it, and so does each batch that uses it until that batch has retired: the last owner drops it.
//! Only the module `replace` gives a resource another object.

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, OnceLock, Weak};

use spelter_driver::{Buffer, Device, Image};
use spelter_locks::Mutex;

use crate::error::Error;
use crate::ids::{ObjectId, ResourceId, SlotKind};
use crate::memory::{Memory, Spares, Storage, Template};
use crate::serial::{Object, Usage};
use crate::submission::Submission;
use crate::view::{Part, View, Views};

/// The initial bytes of a new object.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum InitialContents {
    /// Undefined.
    Undefined,
    /// All 0.
    Zero,
}

/// Storage, and the batches that use it.
#[derive(Debug)]
pub(crate) struct ResourceObject {
    id: ObjectId,
    /// The resource that it was made for; none for a staging buffer.
    owner: Option<ResourceId>,
    storage: Storage,
    /// Whether the storage was that of an earlier object.
    recycled: bool,
    /// Batches that read and write it.
    pub(crate) usage: Usage<Submission>,
    memory: Arc<Memory>,
    /// Receives the storage on drop, if this object was replaced or is a staging buffer.
    recycler: OnceLock<Spares>,
    /// Bytes that count as pending until this is dropped.
    pending_bytes: AtomicU64,
    /// Recently used views. A leaf lock.
    views: Mutex<Views>,
}

impl Object for ResourceObject {
    type Submission = Submission;

    fn id(&self) -> ObjectId {
        self.id
    }

    fn usage(&self) -> &Usage<Submission> {
        &self.usage
    }
}

impl ResourceObject {
    /// Storage as the template describes, taken from the spares if there are any, for a resource or for staging.
    pub(crate) fn new(
        memory: &Arc<Memory>,
        owner: Option<ResourceId>,
        template: &Template,
        contents: InitialContents,
        spares: &Spares,
    ) -> Result<Self, Error> {
        static NEXT: AtomicU64 = AtomicU64::new(1);
        let (mut storage, recycled) = match spares.take() {
            Some(storage) => {
                memory.counters.objects_recycled.one();
                (storage, true)
            }
            None => (memory.storage(template)?, false),
        };
        match contents {
            InitialContents::Zero => storage.clear()?,
            InitialContents::Undefined if memory.poison => storage.poison()?,
            InitialContents::Undefined => {}
        }
        memory.counters.objects_created.one();
        // Relaxed: numbers only have to differ.
        Ok(Self {
            id: ObjectId(NEXT.fetch_add(1, Ordering::Relaxed)),
            owner,
            storage,
            recycled,
            usage: Usage::default(),
            memory: Arc::clone(memory),
            recycler: OnceLock::new(),
            pending_bytes: AtomicU64::new(0),
            views: Mutex::default(),
        })
    }

    /// Its number.
    pub(crate) fn id(&self) -> ObjectId {
        self.id
    }

    /// The resource that it was made for.
    pub(crate) fn owner(&self) -> Option<ResourceId> {
        self.owner
    }

    /// Size in bytes.
    pub(crate) fn size(&self) -> u64 {
        self.storage.size()
    }

    /// Whether its storage was that of an earlier object.
    pub(crate) fn is_recycled(&self) -> bool {
        self.recycled
    }

    /// The bytes, for the host.
    pub(crate) fn storage(&self) -> &Storage {
        &self.storage
    }

    /// The driver's buffer.
    pub(crate) fn buffer(&self) -> Result<&Buffer, Error> {
        self.storage.buffer()
    }

    /// The driver's image.
    pub(crate) fn image(&self) -> Result<&Image, Error> {
        self.storage.image()
    }

    /// A view of a part of it, if shaders need one in a slot of that kind: a cached or a new one.
    pub(crate) fn view(&self, device: &Device, kind: SlotKind, part: &Part) -> Result<Option<View>, Error> {
        if !part.needs_view() {
            return Ok(None);
        }
        let mut views = self.views.lock();
        if let Some(view) = views.find(kind, part) {
            return Ok(Some(view.clone()));
        }
        let view = part.view(device, kind, &self.storage)?;
        self.memory.counters.views_created.one();
        views.keep(kind, part, &view);
        Ok(Some(view))
    }

    /// Counts its bytes as pending until it is dropped.
    fn count_as_pending(&self) {
        let bytes = self.size();
        self.memory.add_pending(bytes);
        // Relaxed: read again only on drop.
        self.pending_bytes.fetch_add(bytes, Ordering::Relaxed);
    }

    /// The object was replaced: when its last batch has retired, its storage goes to `spares`.
    pub(crate) fn recycle_into(self: &Arc<Self>, spares: &Spares) {
        if self.recycler.set(spares.clone()).is_ok() {
            self.count_as_pending();
            let object: Weak<Self> = Arc::downgrade(self);
            self.memory.note_pending(object);
        }
    }
}

impl Drop for ResourceObject {
    fn drop(&mut self) {
        self.memory.counters.objects_destroyed.one();
        self.memory.remove_pending(*self.pending_bytes.get_mut());
        if let Some(recycler) = self.recycler.take() {
            recycler.give(self.storage.hand_over());
        }
    }
}
