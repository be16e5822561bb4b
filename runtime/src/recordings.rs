//! The command buffers that name an object: when a resource loses its object, they drop what they recorded with it, so
//! that the object's memory is free as soon as its batches have retired, however long a command buffer is kept.
//!
//! A command buffer registers under its own lock when it stores a recording. Then it checks that the objects are still
//! those of their resources: [`Batch::enter`](crate::batch::Batch::enter) does that for a submission. A thread that
//! takes an object from its resource does so under the resource's lock, then looks here. So it finds the registration,
//! or the check finds the loss.

use std::any::Any;
use std::collections::{BTreeMap, HashMap};
use std::sync::Weak;

use foldhash::fast::FixedState;
use smallvec::SmallVec;

use crate::ids::{CommandBufferId, ObjectId, ResourceId};
use crate::named_by::NamedBy;
use crate::sync::Mutex;

/// What was recorded with a lost object, to be dropped when no lock is held.
pub(crate) type LostRecording = Box<dyn Any + Send>;

/// A command buffer that keeps what it recorded.
pub(crate) trait NamesObjects: Send + Sync {
    /// Drops what was recorded with the object. The caller may lock resources, so this locks nothing above a leaf.
    fn forget(&self, object: ObjectId) -> Option<LostRecording>;
}

/// A command buffer, as the list of all of them has it.
pub(crate) trait NamesResources: Send + Sync {
    /// How its commands name a resource, if they do.
    fn named_by(&self, resource: ResourceId) -> Option<NamedBy>;
}

/// The command buffers that name an object.
type Naming = SmallVec<[Weak<dyn NamesObjects>; 1]>;

/// By object, the command buffers that name it.
#[derive(Default)]
pub(crate) struct Recordings {
    /// A leaf lock.
    by_object: Mutex<HashMap<ObjectId, Naming, FixedState>>,
    /// All command buffers. A leaf lock.
    all: Mutex<BTreeMap<CommandBufferId, Weak<dyn NamesResources>>>,
    /// Held while a command buffer gets commands that execute others, so that two threads cannot close a cycle.
    pub(crate) nesting: Mutex<()>,
}

impl Recordings {
    pub(crate) fn register(&self, id: CommandBufferId, commands: Weak<dyn NamesResources>) {
        self.all.lock().insert(id, commands);
    }

    pub(crate) fn unregister(&self, id: CommandBufferId) {
        self.all.lock().remove(&id);
    }

    /// How command buffers name a resource. The caller holds no lock.
    pub(crate) fn named_by(&self, resource: ResourceId) -> Vec<NamedBy> {
        let all: Vec<_> = self.all.lock().values().filter_map(Weak::upgrade).collect();
        all.iter().filter_map(|commands| commands.named_by(resource)).collect()
    }

    /// Adds objects that a command buffer names from now on.
    pub(crate) fn add(&self, recording: &Weak<dyn NamesObjects>, objects: impl Iterator<Item = ObjectId>) {
        let mut by_object = self.by_object.lock();
        for object in objects {
            by_object.entry(object).or_default().push(Weak::clone(recording));
        }
    }

    /// Removes objects that the command buffer at this address does not name any more.
    pub(crate) fn remove(&self, recording: usize, objects: impl Iterator<Item = ObjectId>) {
        let mut by_object = self.by_object.lock();
        for object in objects {
            if let Some(list) = by_object.get_mut(&object) {
                list.retain(|known| known.as_ptr().addr() != recording);
                if list.is_empty() {
                    by_object.remove(&object);
                }
            }
        }
    }

    /// A resource has lost the object: command buffers drop what they recorded with it. Returns that, to be dropped
    /// when no lock is held.
    pub(crate) fn lose(&self, object: ObjectId) -> Vec<LostRecording> {
        let list = self.by_object.lock().remove(&object).unwrap_or_default();
        let mut lost: Vec<LostRecording> = Vec::new();
        for recording in list.iter().filter_map(Weak::upgrade) {
            lost.extend(recording.forget(object));
            // If this is the last handle by now, it is dropped with the rest.
            lost.push(Box::new(recording));
        }
        lost
    }
}

impl std::fmt::Debug for Recordings {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "Recordings({} objects)", self.by_object.lock().len())
    }
}
