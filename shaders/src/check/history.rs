//! Histories: the accesses of a word that two cells cannot express: atomics, sub-word accesses, several references.
//!
//! A history is a short list of accesses with their bytes. An access is dropped once everything that is ordered after
//! its successor is also ordered after it. When the list grows too long, accesses are merged, which only ever makes
//! more of them look racy.

use smallvec::SmallVec;

use super::cells::Cell;

/// Number of a reference of a command, unique in a window.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) struct Reference(pub u32);

impl Reference {
    /// Several ones.
    pub(super) const MIXED: Self = Self(u32::MAX);

    /// Whether both are one and the same.
    pub(super) fn is(self, other: Self) -> bool {
        self == other && self != Self::MIXED
    }
}

/// Several classes.
pub(super) const MIXED_CLASS: usize = usize::MAX;

/// What accesses, atomics too, have in common.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) struct Attributes {
    /// The class of the memory: an index, or [`MIXED_CLASS`].
    pub(super) class: usize,
    /// Their reference.
    pub(super) reference: Reference,
    /// Whether they are private.
    pub(super) private: bool,
}

/// A scope, as far as invocations of a command differ.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(super) enum MemoryScope {
    /// One invocation.
    Invocation,
    /// The invocations of a subgroup.
    Subgroup,
    /// The invocations of a workgroup.
    Workgroup,
    /// All of them.
    Device,
}

/// What atomics must have in common to be mutually ordered.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) struct Atomic {
    /// Memory scope.
    pub(super) scope: MemoryScope,
    /// Where it begins, from the beginning of the word; negative in the second word of a wide one.
    pub(super) start: i8,
    /// Bytes.
    pub(super) bytes: u8,
}

/// An access to a word, or several.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct WordAccess {
    /// Its agents and time.
    pub(super) cell: Cell,
    /// The bytes of the word.
    pub(super) mask: u8,
    /// Whether all of them read.
    pub(super) reads: bool,
    /// Whether some write.
    pub(super) writes: bool,
    /// Class, reference, privacy.
    pub(super) attributes: Attributes,
    /// Atomics only.
    pub(super) atomic: Option<Atomic>,
}

impl WordAccess {
    /// Whether the accesses touch a common byte, and one of them writes.
    pub(super) fn conflicts(&self, other: &Self) -> bool {
        self.mask & other.mask != 0 && (self.writes || other.writes)
    }

    /// Whether they differ in nothing but their agents.
    pub(super) fn alike(&self, other: &Self) -> bool {
        Self { cell: other.cell, ..*self } == *other
    }

    /// Both, as one access by `cell`. Whatever is ordered with it is ordered with both.
    pub(super) fn merged(&self, other: &Self, cell: Cell) -> Self {
        let (a, b) = (self.attributes, other.attributes);
        let reference = if a.reference == b.reference { a.reference } else { Reference::MIXED };
        let class = if a.class == b.class { a.class } else { MIXED_CLASS };
        let atomic = match (self.atomic, other.atomic) {
            (Some(a), Some(b)) if a == b => Some(a),
            // Of another size than any access: it is mutually ordered with none.
            (Some(_), Some(_)) => Some(Atomic { scope: MemoryScope::Invocation, start: 0, bytes: 0 }),
            _ => None,
        };
        Self {
            cell,
            mask: self.mask | other.mask,
            reads: self.reads && other.reads,
            writes: self.writes || other.writes,
            attributes: Attributes { class, reference, private: a.private || b.private },
            atomic,
        }
    }
}

/// The accesses of a word.
#[derive(Clone, Debug, Default)]
pub(super) struct History {
    pub(super) accesses: SmallVec<[WordAccess; 4]>,
}

/// Whether two accesses are merged.
type MergeTest<'a> = &'a dyn Fn(&WordAccess, &WordAccess) -> bool;

/// Accesses above which a history is shortened.
const MAX_ACCESSES: usize = 12;

impl History {
    /// Bytes of a history, about.
    pub(super) const BYTES: u64 = 192;

    /// Adds an access. Some earlier access like it is not ordered before it, so neither replaces the other. `join`
    /// makes one cell of two, and `of_one_workgroup` says whether two cells are of one workgroup.
    pub(super) fn add(
        &mut self,
        access: WordAccess,
        join: impl Fn(Cell, Cell) -> Cell,
        of_one_workgroup: impl Fn(Cell, Cell) -> bool,
    ) {
        self.accesses.push(access);
        if self.accesses.len() <= MAX_ACCESSES {
            return;
        }
        // Accesses of one workgroup that are alike become one. If more than half of the limit are left, so do those of
        // several workgroups that are alike; if there are still more, all accesses become one, whatever they are.
        let tests: [MergeTest<'_>; 3] =
            [&|a, b| a.alike(b) && of_one_workgroup(a.cell, b.cell), &|a, b| a.alike(b), &|_, _| true];
        for test in tests {
            let mut kept: SmallVec<[WordAccess; 4]> = SmallVec::new();
            for access in self.accesses.drain(..) {
                match kept.iter_mut().find(|other| test(other, &access)) {
                    Some(other) => *other = other.merged(&access, join(other.cell, access.cell)),
                    None => kept.push(access),
                }
            }
            self.accesses = kept;
            if self.accesses.len() <= MAX_ACCESSES / 2 {
                break;
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn access(cell: u32, reference: u32) -> WordAccess {
        let attributes = Attributes { class: 0, reference: Reference(reference), private: false };
        WordAccess { cell: Cell(cell), mask: 0b1111, reads: false, writes: true, attributes, atomic: None }
    }

    #[test]
    fn a_long_history_becomes_short_and_covers_every_access() {
        let mut history = History::default();
        for at in 0..1000 {
            history.add(access(at, at % 20), |a, b| a.max(b), |a, b| a.0 / 100 == b.0 / 100);
            assert!(history.accesses.len() <= MAX_ACCESSES);
        }
        assert!(history.accesses.iter().all(|access| access.writes && access.mask == 0b1111));
        assert!(history.accesses.iter().any(|access| access.attributes.reference == Reference::MIXED));
    }

    #[test]
    fn atomics_that_differ_are_mutually_ordered_with_nothing_once_merged() {
        let atomic = |scope| Some(Atomic { scope, start: 0, bytes: 4 });
        let one = WordAccess { atomic: atomic(MemoryScope::Device), ..access(4, 0) };
        let other = WordAccess { atomic: atomic(MemoryScope::Workgroup), ..access(8, 0) };
        let both = one.merged(&other, Cell(8)).atomic.unwrap();
        assert!(both != one.atomic.unwrap() && both != other.atomic.unwrap());
        assert_eq!(one.merged(&one, Cell(4)), one);
    }
}
