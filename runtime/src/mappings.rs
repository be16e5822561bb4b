//! The mapped ranges of a resource, and the accesses that they forbid.

use std::ops::Range;

use smallvec::SmallVec;

/// The origin of a batch's use of a resource; mappings forbid something different for each.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum UseOrigin {
    /// A command of the program: the resource must not be mapped, except persistently.
    Command,
    /// A host write that goes through a batch: no other mapping may contain these bytes.
    Host,
    /// The bytes that a mapping collected in its staging buffer.
    Mapping,
}

/// The mappings of a resource.
#[derive(Debug, Default)]
pub(crate) struct Mappings {
    list: SmallVec<[Mapping; 1]>,
    next: u64,
}

#[derive(Debug)]
struct Mapping {
    number: u64,
    range: Range<u64>,
    persistent: bool,
}

impl Mappings {
    pub(crate) fn any(&self) -> bool {
        !self.list.is_empty()
    }

    /// Whether commands must not use the resource: it has a mapping that is not persistent.
    pub(crate) fn forbid_commands(&self) -> bool {
        self.list.iter().any(|record| !record.persistent)
    }

    /// Whether the host may write these bytes only through their mapping.
    pub(crate) fn forbid_writes(&self, range: &Range<u64>) -> bool {
        self.list.iter().any(|record| !record.persistent && record.overlaps(range))
    }

    /// Whether a batch's use of these bytes, of that origin, must not be recorded.
    pub(crate) fn forbid(&self, origin: UseOrigin, range: &Range<u64>) -> bool {
        match origin {
            UseOrigin::Command => self.forbid_commands(),
            UseOrigin::Host => self.forbid_writes(range),
            UseOrigin::Mapping => false,
        }
    }

    /// A mapped range that overlaps this one.
    pub(crate) fn overlapping(&self, range: &Range<u64>) -> Option<&Range<u64>> {
        self.list.iter().find(|record| record.overlaps(range)).map(|record| &record.range)
    }

    /// Adds a mapping and returns its number.
    pub(crate) fn add(&mut self, range: Range<u64>, persistent: bool) -> u64 {
        self.next += 1;
        self.list.push(Mapping { number: self.next, range, persistent });
        self.next
    }

    /// Removes the mapping with that number. Returns whether it forbade commands.
    pub(crate) fn remove(&mut self, number: u64) -> bool {
        let at = self.list.iter().position(|record| record.number == number);
        at.is_some_and(|at| !self.list.swap_remove(at).persistent)
    }
}

impl Mapping {
    fn overlaps(&self, range: &Range<u64>) -> bool {
        self.range.start < range.end && range.start < self.range.end
    }
}
