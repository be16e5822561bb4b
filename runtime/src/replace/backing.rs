//! What stands behind a resource: its object, what of it holds data, who has it mapped, and what the host is copying.
//!
//! All of it is behind the resource's lock, and each of these is one step under that lock: a command takes note of its use
//! ([`Backing::enter`]), the host begins a copy ([`Backing::begin`]) or a mapping, and a rename decides ([`Backing::fate`])
//! and swaps. So of two that meet one comes first, and the other finds what it did. Only the module above swaps objects.
//! The protocols are in the book's architecture, "What threads agree on"; `loom_tests` explores this code.

use std::ops::Range;
use std::sync::Arc;

use smallvec::SmallVec;

use crate::barrier::By;
use crate::object::ObjectId;
use crate::serial::{Access, Clock, First, Flight, Serial, Usage};
use crate::transfer::Maps;
use crate::valid::Valid;

/// Storage that batches use.
pub(crate) trait Object {
    /// What names a batch on its way.
    type Flight: Flight;

    /// A number that no other object has.
    fn id(&self) -> ObjectId;

    /// Who uses it until when.
    fn usage(&self) -> &Usage<Self::Flight>;
}

/// The part of a resource that changes.
#[derive(Debug)]
pub(crate) struct Backing<O> {
    /// The storage; none once the resource is destroyed.
    object: Option<Arc<O>>,
    /// How often the object was replaced.
    generation: u64,
    /// Bytes of a buffer, subresources of an image, that may hold defined data.
    valid: Valid,
    /// What was forgotten while commands used it: it holds nothing, but whoever writes it comes after them.
    fading: Valid,
    /// Ranges that the program has mapped.
    pub(crate) maps: Maps,
    /// Whether a slot or a dispatch ever named the object: then others must learn of what happens to it.
    pub(crate) bound: bool,
    /// What the host is copying in or out, with no lock held.
    copies: SmallVec<[HostCopy; 1]>,
    next: u64,
    /// The last command that may have made anything valid.
    author: Author,
    /// How often that was another one, or the host.
    authors: u64,
}

/// Bytes that the host is copying.
#[derive(Debug)]
struct HostCopy {
    number: u64,
    range: Range<u64>,
    /// Whether they are written.
    access: Access,
}

/// A command's attempt to be recorded: a context, its open batch, and a number there.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Author(pub(crate) u64, pub(crate) Serial, pub(crate) u32);

/// What a command does with a resource.
#[derive(Clone, Debug)]
pub(crate) struct Entry<'a, F: Flight> {
    pub(crate) clock: &'a Arc<Clock<F>>,
    /// The open batch that it goes to.
    pub(crate) serial: Serial,
    pub(crate) range: &'a Range<u64>,
    pub(crate) access: Access,
    pub(crate) by: By,
    pub(crate) author: Author,
}

/// What came of it.
#[derive(Debug)]
pub(crate) struct Entered {
    /// It is the batch's first use of the object.
    pub(crate) first: bool,
    /// It writes nothing but what was never valid.
    pub(crate) fresh: bool,
    /// What it made valid.
    pub(crate) added: Option<Added>,
}

/// What a command made valid, to be taken back if it is refused.
#[derive(Debug)]
pub(crate) struct Added {
    gaps: SmallVec<[Range<u64>; 1]>,
    authors: u64,
}

/// Why a command cannot use an object now.
#[derive(Debug)]
pub(crate) enum Refused<F: Flight> {
    /// It is not the resource's object any more, or mapped: look again.
    Again,
    /// The host is copying bytes that it uses.
    Copying,
    /// Another context's batch comes first.
    First(First<F>),
}

/// What an invalidation comes to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Fate {
    /// Nothing is valid: nothing to do.
    Nothing,
    /// The host has it mapped: it stays.
    Mapped,
    /// Nobody uses it: the contents are forgotten.
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
            fading: Valid::new(),
            maps: Maps::default(),
            bound: false,
            copies: SmallVec::new(),
            next: 0,
            author: Author::default(),
            authors: 0,
        }
    }

    /// The storage; none once the resource is destroyed.
    pub(crate) fn storage(&self) -> Option<&Arc<O>> {
        self.object.as_ref()
    }

    /// Whether that is the object.
    pub(crate) fn has(&self, object: &Arc<O>) -> bool {
        self.object.as_ref().is_some_and(|own| Arc::ptr_eq(own, object))
    }

    /// How often the object was replaced.
    pub(crate) fn generation(&self) -> u64 {
        self.generation
    }

    /// What may hold defined data.
    pub(crate) fn valid(&self) -> &Valid {
        &self.valid
    }

    /// The host, or a slot where kernels can write, makes that valid.
    pub(crate) fn add(&mut self, range: Range<u64>) {
        (self.author, self.authors) = (Author::default(), self.authors + 1);
        self.valid.add(range);
    }

    /// There is no object from now on.
    pub(crate) fn destroy(&mut self) -> Option<Arc<O>> {
        self.object.take()
    }

    /// Another object stands there from now on, of which that much is valid; the one that did.
    pub(super) fn swap(&mut self, new: Arc<O>, valid: Valid) -> Option<Arc<O>> {
        self.generation += 1;
        (self.valid, self.fading) = (valid, Valid::new());
        // Those are of the old one.
        self.copies.clear();
        self.object.replace(new)
    }

    /// What forgetting all of it comes to.
    pub(crate) fn fate(&self) -> Fate {
        if self.valid.is_empty() {
            Fate::Nothing
        } else if self.maps.any() {
            Fate::Mapped
        } else if self.is_busy() {
            Fate::InUse
        } else {
            Fate::Idle
        }
    }

    /// Whether any batch that is not done uses it.
    pub(crate) fn is_busy(&self) -> bool {
        self.object.as_ref().is_some_and(|object| object.usage().is_busy(Access::Write))
    }

    /// Whether writing there must wait for those who use the object.
    pub(crate) fn is_wanted(&self, range: &Range<u64>) -> bool {
        self.valid.intersects(range) || self.fading.intersects(range)
    }

    /// That holds nothing any more. The object is idle.
    pub(super) fn forget(&mut self, range: Range<u64>) {
        self.valid.remove(range);
        self.fading = Valid::new();
    }

    /// That holds nothing any more, and whoever writes there comes after those who use it now.
    pub(super) fn fade(&mut self, range: Range<u64>) {
        self.valid.remove(range.clone());
        self.fading.add(range);
    }

    /// What was forgotten while it was in use.
    pub(super) fn fading(&self) -> &Valid {
        &self.fading
    }

    /// The host begins to copy bytes in, which nobody is in the way of; the copy's number. They count as valid.
    pub(crate) fn begin(&mut self, range: Range<u64>) -> u64 {
        self.add(range.clone());
        self.note_copy(range, Access::Write)
    }

    /// The host begins to copy bytes out, which nobody is writing; the copy's number.
    pub(crate) fn begin_read(&mut self, range: Range<u64>) -> u64 {
        self.note_copy(range, Access::Read)
    }

    fn note_copy(&mut self, range: Range<u64>, access: Access) -> u64 {
        self.next += 1;
        self.copies.push(HostCopy { number: self.next, range, access });
        self.next
    }

    /// The copy of that number is done.
    pub(crate) fn end(&mut self, number: u64) {
        self.copies.retain(|copy| copy.number != number);
    }

    /// Whether the host is copying any of that, and is in the way of this access.
    pub(crate) fn is_copied(&self, range: &Range<u64>, access: Access) -> bool {
        let meets = |bytes: &Range<u64>| range.start < bytes.end && bytes.start < range.end;
        self.copies.iter().any(|copy| (copy.access.writes() || access.writes()) && meets(&copy.range))
    }

    /// A command takes note of its use, if that is still the object and nobody has it mapped; what it writes counts as
    /// valid.
    pub(crate) fn enter(
        &mut self,
        object: &Arc<O>,
        entry: Entry<'_, O::Flight>,
    ) -> Result<Entered, Refused<O::Flight>> {
        let Entry { clock, serial, range, access, by, author } = entry;
        let mapped = match by {
            By::Command => self.maps.forbid_commands(),
            By::Host => self.maps.forbid_writes(range),
            By::Mapping => false,
        };
        if mapped || !self.has(object) {
            return Err(Refused::Again);
        }
        if self.is_copied(range, access) {
            return Err(Refused::Copying);
        }
        let news = access.writes() && !self.valid.contains(range);
        let fresh = news && !self.is_wanted(range);
        let first = object.usage().enter(clock, serial, access, fresh).map_err(Refused::First)?;
        let mut added = None;
        if access.writes() {
            if self.author != author {
                (self.author, self.authors) = (author, self.authors + 1);
            }
            if news {
                let gaps = self.valid.gaps(range);
                self.valid.add(range.clone());
                added = Some(Added { gaps, authors: self.authors });
            }
        }
        Ok(Entered { first, fresh, added })
    }

    /// The command was refused: what it alone made valid is not. If others came since it stays, as they may have written
    /// there.
    pub(crate) fn take_back(&mut self, added: Added) {
        if self.authors == added.authors {
            added.gaps.into_iter().for_each(|gap| self.valid.remove(gap));
        }
    }
}
