//! Resources: buffers and images as contexts see them. A resource has its current object and the valid ranges.

use std::fmt;
use std::ops::Range;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use ash::vk;
use spelter_driver::Misuse;
use spelter_locks::Mutex;

use crate::error::{Error, rule};
use crate::ids::ResourceId;
use crate::journal::ResourceChange;
use crate::memory::{Spares, Template};
use crate::object::{InitialContents, ResourceObject};
use crate::outcome::OutcomeCounts;
use crate::replace::Backing;
use crate::share::Share;

/// A buffer or an image.
pub(crate) struct Resource {
    id: ResourceId,
    share: Arc<Share>,
    label: Option<Box<str>>,
    /// The description of its objects. Written under the lock of `state`, since a resource with another size has
    /// another object. Callers that do not hold that lock check again when they do. A leaf lock.
    template: Mutex<Template>,
    /// Bytes of storage, written as `template`.
    bytes: AtomicU64,
    /// Receives the storage of replaced objects. A leaf lock.
    spares: Mutex<Spares>,
    /// The results of calls.
    pub(crate) outcomes: OutcomeCounts,
    /// Locked after a context's state, before an object's usage.
    state: Mutex<ResourceState>,
}

/// The mutable part of a resource.
pub(crate) type ResourceState = Backing<ResourceObject>;

impl Resource {
    pub(crate) fn new(
        share: &Arc<Share>,
        template: Template,
        label: Option<Box<str>>,
        contents: InitialContents,
    ) -> Result<Self, Error> {
        static NEXT: AtomicU64 = AtomicU64::new(1);
        // Relaxed: numbers only have to differ.
        let id = ResourceId(NEXT.fetch_add(1, Ordering::Relaxed));
        let spares = Spares::new(&share.memory().spare);
        let make = || ResourceObject::new(share.memory(), Some(id), &template, contents, &spares);
        let object = share.with_pressure_relieved(make).map_err(|error| named(error, &template, label.as_deref()))?;
        let (bytes, state) = (object.size(), ResourceState::new(Arc::new(object)));
        let mut resource = Self {
            id,
            share: Arc::clone(share),
            label,
            template: Mutex::new(template),
            bytes: AtomicU64::new(bytes),
            spares: Mutex::new(spares),
            outcomes: OutcomeCounts::default(),
            state: Mutex::new(state),
        };
        if contents == InitialContents::Zero {
            let whole = resource.whole();
            resource.state.get_mut().add(whole);
        }
        Ok(resource)
    }

    pub(crate) fn destroy(&self) {
        let mut state = self.state();
        let old = state.destroy();
        let bound = state.bound;
        self.report_loss(bound, old.as_ref());
        let named = old.as_ref().filter(|_| state.recorded);
        let recordings = named.map(|old| self.share.recordings().lose(old.id()));
        drop(state);
        drop(recordings); // when no lock is held
        self.release(old, bound);
    }

    /// Reports the loss of the object to all contexts. The resource is locked or exclusively owned.
    fn report_loss(&self, bound: bool, old: Option<&Arc<ResourceObject>>) {
        if let Some(old) = old.filter(|_| bound) {
            self.share.journal().note(ResourceChange { resource: self.id, lost: Some(old.id()) });
        }
    }

    /// Frees the memory as soon as nothing uses it: contexts that keep the object without using it drop it now.
    fn release(&self, old: Option<Arc<ResourceObject>>, bound: bool) {
        self.spares().close();
        // Batches may keep it, or, if it was ever bound, slots and descriptor sets.
        let is_kept = old.as_ref().is_some_and(|old| bound || Arc::strong_count(old) > 1);
        drop(old);
        if is_kept {
            self.share.retire_all();
        }
    }

    /// The description of its objects.
    pub(crate) fn template(&self) -> Template {
        *self.template.lock()
    }

    /// Receives the storage of replaced objects.
    pub(crate) fn spares(&self) -> Spares {
        self.spares.lock().clone()
    }

    /// An object for another description, and the place of its spare storage.
    pub(crate) fn object_like(&self, template: &Template) -> Result<(ResourceObject, Spares), Error> {
        let spares = Spares::new(&self.share.memory().spare);
        let object =
            ResourceObject::new(self.share.memory(), Some(self.id), template, InitialContents::Undefined, &spares);
        object.map(|object| (object, spares)).map_err(|error| named(error, template, self.label()))
    }

    /// Its objects are described so from now on. The resource is locked, and gets such an object in the same step.
    /// Returns the place of the spare storage of its objects so far.
    pub(crate) fn respecify(&self, template: Template, bytes: u64, spares: Spares) -> Spares {
        *self.template.lock() = template;
        // Relaxed: callers without the resource's lock check again when they hold it.
        self.bytes.store(bytes, Ordering::Relaxed);
        std::mem::replace(&mut *self.spares.lock(), spares)
    }

    pub(crate) fn label(&self) -> Option<&str> {
        self.label.as_deref()
    }

    /// The whole range: bytes of a buffer, subresources of an image.
    pub(crate) fn whole(&self) -> Range<u64> {
        match self.template() {
            Template::Buffer(bytes) => 0..bytes,
            Template::Image(info) => 0..u64::from(info.levels) * u64::from(info.layers),
        }
    }

    pub(crate) fn id(&self) -> ResourceId {
        self.id
    }

    /// Bytes of storage.
    pub(crate) fn size(&self) -> u64 {
        // Relaxed: as in `respecify`.
        self.bytes.load(Ordering::Relaxed)
    }

    pub(crate) fn state(&self) -> spelter_locks::MutexGuard<'_, ResourceState> {
        self.state.lock()
    }

    /// The object, for a command called `what`; an error if the resource is destroyed, or mapped other than
    /// persistently.
    pub(crate) fn object_for_command(&self, what: &str) -> Result<Arc<ResourceObject>, Error> {
        let state = self.state();
        let object = state.object(self, what)?;
        if state.mappings.forbid_commands() {
            return Err(Error::resource(format!("{what}: {} is mapped", self.described()), rule::MAPPED));
        }
        Ok(Arc::clone(object))
    }

    /// The object, for a command buffer that keeps it until the resource loses it; errors as for a command.
    pub(crate) fn object_for_recording(&self, what: &str) -> Result<Arc<ResourceObject>, Error> {
        // Set first: if the resource loses the object from now on, `recordings.rs` is notified.
        self.state().recorded = true;
        self.object_for_command(what)
    }

    pub(crate) fn share(&self) -> &Arc<Share> {
        &self.share
    }

    pub(crate) fn is_of(&self, share: &Arc<Share>) -> bool {
        Arc::ptr_eq(&self.share, share)
    }

    /// "a buffer of 64 bytes", or "buffer `label` of 64 bytes".
    pub(crate) fn described(&self) -> String {
        described(&self.template(), self.label())
    }
}

/// An error of a new object, with the name of its resource.
fn named(error: Error, template: &Template, label: Option<&str>) -> Error {
    match (error, label) {
        (Error::Misuse(misuse), Some(label)) => {
            Error::Misuse(Misuse { problem: format!("`{label}`: {}", misuse.problem), ..misuse })
        }
        (error, label) => error.for_memory_of(|| described(template, label)),
    }
}

fn described(template: &Template, label: Option<&str>) -> String {
    let (kind, article, what) = match template {
        Template::Buffer(bytes) => ("buffer", "a", format!("{bytes} bytes")),
        Template::Image(info) => {
            let vk::Extent3D { width, height, depth } = info.extent;
            ("image", "an", format!("{width}x{height}x{depth} {:?}", info.format))
        }
    };
    match label {
        Some(label) => format!("{kind} `{label}` of {what}"),
        None => format!("{article} {kind} of {what}"),
    }
}

impl ResourceState {
    /// The object, for a command or transfer called `what`; an error if the resource is destroyed.
    pub(crate) fn object(&self, resource: &Resource, what: &str) -> Result<&Arc<ResourceObject>, Error> {
        self.storage()
            .ok_or_else(|| Error::resource(format!("{what}: {} is destroyed", resource.described()), rule::DESTROYED))
    }
}

/// A host copy into an object or out of it, made while no lock is held. Other accesses to its bytes wait until this is
/// dropped.
#[derive(Debug)]
pub(crate) struct HostCopyGuard<'a> {
    resource: &'a Resource,
    number: u64,
}

impl<'a> HostCopyGuard<'a> {
    /// `state` belongs to `resource`. No other access conflicts with the bytes, or the caller waits for it before it
    /// copies.
    pub(crate) fn new(resource: &'a Resource, state: &mut ResourceState, range: Range<u64>) -> Self {
        Self { resource, number: state.begin(range) }
    }

    /// Like [`HostCopyGuard::new`], for bytes that are only read.
    pub(crate) fn reading(resource: &'a Resource, state: &mut ResourceState, range: Range<u64>) -> Self {
        Self { resource, number: state.begin_read(range) }
    }
}

impl Drop for HostCopyGuard<'_> {
    fn drop(&mut self) {
        self.resource.state().end(self.number);
        self.resource.share.gate().end();
    }
}

impl Drop for Resource {
    fn drop(&mut self) {
        let state = self.state.get_mut();
        let (old, bound) = (state.destroy(), state.bound);
        self.report_loss(bound, old.as_ref());
        self.release(old, bound);
    }
}

impl fmt::Debug for Resource {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.described())
    }
}
