//! The backing of a resource: its object, the valid ranges, the mappings and the host copies in progress.
//!
//! The resource's lock protects all of it, and each of these is one step under that lock: a command notes its use
//! ([`Backing::enter`]), the host begins a copy ([`Backing::begin`]) or a mapping, and a rename decides
//! ([`Backing::fate`]) and swaps. So of two concurrent steps one comes first, and the other finds its effect. Only the
//! parent module swaps objects. The protocols are in the book's architecture, "What threads agree on"; `loom_tests`
//! explores this code.

use std::ops::Range;
use std::sync::Arc;

use smallvec::SmallVec;

use crate::error::Error;
use crate::gate::Gate;
use crate::ids::{Access, ResourceId, Serial};
use crate::mappings::{Mappings, UseOrigin};
use crate::serial::{Clock, MustPrecede, Object, SubmittedBatch};
use crate::valid::Valid;

/// The mutable part of a resource.
#[derive(Debug)]
pub(crate) struct Backing<O> {
    /// The storage; none once the resource is destroyed.
    object: Option<Arc<O>>,
    /// How often the object was replaced.
    generation: u64,
    /// Bytes of a buffer, subresources of an image, that may hold defined data.
    valid: Valid,
    /// Ranges that were forgotten while commands used them: they hold no defined data, but writes there come after
    /// those commands.
    forgotten_in_use: Valid,
    /// Mapped ranges.
    pub(crate) mappings: Mappings,
    /// Whether a slot or a dispatch ever named the object: then other contexts must be notified of its changes.
    pub(crate) bound: bool,
    /// Whether a command buffer was ever recorded with the object: then `share.recordings()` must be notified when the
    /// resource loses it.
    pub(crate) recorded: bool,
    /// Host copies in or out that are in progress, with no lock held.
    copies: SmallVec<[HostCopy; 1]>,
    next: u64,
    /// The last command that may have added a valid range; the default value if it was the host.
    writer: WriterId,
    /// The version of the valid ranges: the number of changes of `writer` and of ranges that the host added.
    write_version: u64,
}

/// A host copy in progress.
#[derive(Debug)]
struct HostCopy {
    number: u64,
    range: Range<u64>,
    /// Whether the bytes are written.
    access: Access,
}

/// The identity of the last writer: an attempt to record a command, as context, open batch and number of the attempt.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct WriterId(pub(crate) u64, pub(crate) Serial, pub(crate) u32);

/// A command's use of a resource.
#[derive(Clone, Debug)]
pub(crate) struct CommandUse<'a, S: SubmittedBatch> {
    pub(crate) clock: &'a Arc<Clock<S>>,
    /// The open batch that the command is recorded in.
    pub(crate) serial: Serial,
    pub(crate) range: &'a Range<u64>,
    pub(crate) access: Access,
    pub(crate) origin: UseOrigin,
    pub(crate) writer: WriterId,
    /// Counts the host copies that end.
    pub(crate) gate: &'a Gate,
}

/// The result of [`Backing::enter`].
#[derive(Debug)]
pub(crate) struct Entered {
    /// It is the batch's first use of the object.
    pub(crate) first: bool,
    /// The use writes only bytes that were never valid.
    pub(crate) fresh: bool,
    /// The ranges that it made valid.
    pub(crate) added: Option<Added>,
}

/// Ranges that a command made valid, to be removed if it is refused.
#[derive(Debug)]
pub(crate) struct Added {
    gaps: SmallVec<[Range<u64>; 1]>,
    write_version: u64,
}

/// The reason why a command was not recorded. Except for errors the caller tries again.
#[derive(Debug)]
pub(crate) enum Refusal<S: SubmittedBatch> {
    /// The command is invalid, or something failed.
    Error(Error),
    /// A batch of another context must be done or submitted first. Nothing was recorded.
    MustPrecede(MustPrecede<S>),
    /// The host is copying bytes of the resource that the command uses: retry when more than this number of copies have
    /// ended ([`Gate::wait`]). Nothing was recorded.
    Copying(u64, Option<ResourceId>),
    /// A resource was mapped or got another object meanwhile: the objects must be looked up again. Nothing was
    /// recorded.
    Again,
}

impl<S: SubmittedBatch> Refusal<S> {
    /// The same, about a resource.
    pub(crate) fn about(self, resource: ResourceId) -> Self {
        match self {
            Self::Copying(seen, _) => Self::Copying(seen, Some(resource)),
            refusal => refusal,
        }
    }
}

impl<S: SubmittedBatch> From<Error> for Refusal<S> {
    fn from(error: Error) -> Self {
        Self::Error(error)
    }
}

impl<S: SubmittedBatch> From<spelter_driver::Error> for Refusal<S> {
    fn from(error: spelter_driver::Error) -> Self {
        Self::Error(error.into())
    }
}

/// The case of an invalidation.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Fate {
    /// Nothing is valid: nothing to do.
    Nothing,
    /// The host has it mapped: it keeps its contents.
    Mapped,
    /// No batch uses it: the contents are forgotten.
    Idle,
    /// It is in use: it is to be replaced.
    InUse,
}

impl<O: Object> Backing<O> {
    pub(crate) fn new(object: Arc<O>) -> Self {
        Self {
            object: Some(object),
            generation: 0,
            valid: Valid::new(),
            forgotten_in_use: Valid::new(),
            mappings: Mappings::default(),
            bound: false,
            recorded: false,
            copies: SmallVec::new(),
            next: 0,
            writer: WriterId::default(),
            write_version: 0,
        }
    }

    /// The storage; none once the resource is destroyed.
    pub(crate) fn storage(&self) -> Option<&Arc<O>> {
        self.object.as_ref()
    }

    /// Whether `object` is the current object.
    pub(crate) fn has(&self, object: &Arc<O>) -> bool {
        self.object.as_ref().is_some_and(|own| Arc::ptr_eq(own, object))
    }

    /// How often the object was replaced.
    pub(crate) fn generation(&self) -> u64 {
        self.generation
    }

    /// The ranges that may hold defined data.
    pub(crate) fn valid(&self) -> &Valid {
        &self.valid
    }

    /// Adds a range that the host wrote, or that a slot makes writable for kernels.
    pub(crate) fn add(&mut self, range: Range<u64>) {
        (self.writer, self.write_version) = (WriterId::default(), self.write_version + 1);
        self.valid.add(range);
    }

    /// Removes and returns the object.
    pub(crate) fn destroy(&mut self) -> Option<Arc<O>> {
        self.object.take()
    }

    /// Replaces the object by another one with the given valid ranges. Returns the old one.
    pub(super) fn swap(&mut self, new: Arc<O>, valid: Valid) -> Option<Arc<O>> {
        self.generation += 1;
        (self.valid, self.forgotten_in_use) = (valid, Valid::new());
        // These copies belong to the old object.
        self.copies.clear();
        self.object.replace(new)
    }

    /// The case of an invalidation of the whole resource.
    pub(crate) fn fate(&self) -> Fate {
        if self.valid.is_empty() {
            Fate::Nothing
        } else if self.mappings.any() {
            Fate::Mapped
        } else if self.is_busy() {
            Fate::InUse
        } else {
            Fate::Idle
        }
    }

    /// Whether any unfinished batch uses the object.
    pub(crate) fn is_busy(&self) -> bool {
        self.object.as_ref().is_some_and(|object| object.usage().is_busy(Access::Write))
    }

    /// Whether a write to the range must wait for the users of the object.
    pub(crate) fn write_must_wait(&self, range: &Range<u64>) -> bool {
        self.valid.intersects(range) || self.forgotten_in_use.intersects(range)
    }

    /// Forgets the contents of a range. The object is idle.
    pub(super) fn forget(&mut self, range: Range<u64>) {
        self.valid.remove(range);
        self.forgotten_in_use = Valid::new();
    }

    /// Forgets the contents of a range of an object in use: later writes there come after the current users.
    pub(super) fn forget_in_use(&mut self, range: Range<u64>) {
        self.valid.remove(range.clone());
        self.forgotten_in_use.add(range);
    }

    /// The ranges that were forgotten while the object was in use.
    pub(super) fn forgotten_in_use(&self) -> &Valid {
        &self.forgotten_in_use
    }

    /// Begins a host copy into bytes without conflicting accesses, which become valid. Returns the number of the copy.
    pub(crate) fn begin(&mut self, range: Range<u64>) -> u64 {
        self.add(range.clone());
        self.note_copy(range, Access::Write)
    }

    /// Begins a host copy out of bytes that no command writes. Returns the number of the copy.
    pub(crate) fn begin_read(&mut self, range: Range<u64>) -> u64 {
        self.note_copy(range, Access::Read)
    }

    fn note_copy(&mut self, range: Range<u64>, access: Access) -> u64 {
        self.next += 1;
        self.copies.push(HostCopy { number: self.next, range, access });
        self.next
    }

    /// Ends the copy with that number.
    pub(crate) fn end(&mut self, number: u64) {
        self.copies.retain(|copy| copy.number != number);
    }

    /// Whether a host copy of any of these bytes conflicts with the access.
    pub(crate) fn is_copied(&self, range: &Range<u64>, access: Access) -> bool {
        let meets = |bytes: &Range<u64>| range.start < bytes.end && bytes.start < range.end;
        self.copies.iter().any(|copy| (copy.access.writes() || access.writes()) && meets(&copy.range))
    }

    /// Notes a command's use, if `object` is still current and no mapping forbids it; the written range becomes valid.
    pub(crate) fn enter(
        &mut self,
        object: &Arc<O>,
        entry: CommandUse<'_, O::Submission>,
    ) -> Result<Entered, Refusal<O::Submission>> {
        let CommandUse { clock, serial, range, access, origin, writer, gate } = entry;
        if self.mappings.forbid(origin, range) || !self.has(object) {
            return Err(Refusal::Again);
        }
        if self.is_copied(range, access) {
            // Read under the resource's lock, so that the end of this copy is not missed.
            return Err(Refusal::Copying(gate.count(), None));
        }
        let news = access.writes() && !self.valid.contains(range);
        let fresh = news && !self.write_must_wait(range);
        let first = object.usage().enter(clock, serial, access, fresh).map_err(Refusal::MustPrecede)?;
        let mut added = None;
        if access.writes() {
            if self.writer != writer {
                (self.writer, self.write_version) = (writer, self.write_version + 1);
            }
            if news {
                let gaps = self.valid.gaps(range);
                self.valid.add(range.clone());
                added = Some(Added { gaps, write_version: self.write_version });
            }
        }
        Ok(Entered { first, fresh, added })
    }

    /// The command was refused: removes the ranges that it made valid. If another command or the host added ranges
    /// since, they stay valid, as that one may have written there.
    pub(crate) fn take_back(&mut self, added: Added) {
        if self.write_version == added.write_version {
            added.gaps.into_iter().for_each(|gap| self.valid.remove(gap));
        }
    }
}
