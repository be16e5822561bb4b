//! One access against an earlier one: ordered, mutually ordered, or perhaps a race.

use super::candidate::Cause;
use super::cells::{Cell, Epochs, Group};
use super::history::{MemoryScope, WordAccess};
use super::workgroup::Workgroup;

/// The access that is made now.
#[derive(Clone, Copy, Debug)]
pub(super) struct Now {
    /// The access; its cell is that of its invocation at present.
    pub(super) access: WordAccess,
    /// The invocation.
    pub(super) local: u32,
    /// The class of the memory.
    pub(super) class: usize,
    /// Cells below are settled: something outside of the shader orders them before.
    pub(super) base: u32,
}

/// How an earlier access relates to the present one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Verdict {
    /// Location-ordered before it. `lenient`: if private accesses count as non-private inside a workgroup.
    Ordered { lenient: bool },
    /// Mutually ordered atomics.
    Mutual,
    /// Neither, as far as the detector knows.
    Racy(Cause),
}

impl Workgroup {
    /// Judges two accesses to a common byte, whether or not one of them writes.
    pub(super) fn judge(&self, epochs: &Epochs, earlier: &WordAccess, now: &Now, lenient: bool) -> Verdict {
        let cell = earlier.cell;
        if cell.0 < now.base {
            return Verdict::Ordered { lenient: false };
        }
        let (a, b) = (earlier.attributes, now.access.attributes);
        let same_reference = a.reference.is(b.reference);
        let private = a.private || b.private;
        if self.is_own(cell, now.local) {
            // The earlier access may have superseded those of other agents, which are not ordered before a private one
            // or one of another class.
            let through_any = earlier.reads && (!private || lenient) && a.class == b.class;
            let ordered = same_reference && (a.private || !b.private) || through_any;
            return if ordered {
                Verdict::Ordered { lenient: false }
            } else {
                Verdict::Racy(if same_reference { Cause::Private } else { Cause::Reference })
            };
        }
        let unordered = match (earlier.atomic, now.access.atomic) {
            (Some(x), Some(y)) if same_reference && (x.start, x.bytes) == (y.start, y.bytes) => {
                let mutual = self.includes(x.scope, cell, now.local) && self.includes(y.scope, cell, now.local);
                if mutual {
                    return Verdict::Mutual;
                }
                Cause::Scope
            }
            (Some(_), Some(_)) if same_reference => Cause::Overlap,
            _ => Cause::Unordered,
        };
        let is_own = self.owns(cell);
        // What one class orders says nothing of accesses of another class to the same memory.
        if a.class == now.class && self.knows(epochs, cell, now.class, now.local) {
            if private && !(lenient && is_own) {
                return Verdict::Racy(Cause::Private);
            }
            if earlier.reads || same_reference {
                return Verdict::Ordered { lenient: private };
            }
            return Verdict::Racy(Cause::Reference);
        }
        Verdict::Racy(if cell.0 < epochs.several() {
            Cause::Command
        } else if unordered != Cause::Unordered {
            unordered
        } else if is_own && self.layout.epoch(cell) < self.met {
            if private { Cause::Private } else { Cause::Barrier }
        } else {
            Cause::Unordered
        })
    }

    /// Whether both the agents of the cell and the invocation are in one instance of the scope.
    pub(super) fn includes(&self, scope: MemoryScope, cell: Cell, local: u32) -> bool {
        match scope {
            // The accesses of one invocation are judged before.
            MemoryScope::Invocation => false,
            MemoryScope::Subgroup => {
                let subgroup = self.layout.subgroup_of(self.layout.group(cell));
                self.owns(cell) && subgroup == Some(self.layout.subgroup(local))
            }
            MemoryScope::Workgroup => self.owns(cell),
            MemoryScope::Device => true,
        }
    }

    /// Whether an earlier access, with this verdict, may be forgotten once the present one is recorded: what is ordered
    /// after the present access, or mutually ordered with it, is so with the earlier one.
    pub(super) fn supersedes(&self, earlier: &WordAccess, now: &Now, verdict: Verdict, lenient: bool) -> bool {
        let (x, cell) = (&now.access, earlier.cell);
        if cell.0 < now.base {
            return true;
        }
        let Verdict::Ordered { .. } = verdict else { return false };
        let same_reference = earlier.attributes.reference.is(x.attributes.reference);
        let same_agent = self.is_own(cell, now.local);
        let covered = earlier.mask & !x.mask == 0 && (x.writes || !earlier.writes);
        // A later access may be ordered after the present one only through its reference, or through any if it reads.
        let referenced = if same_agent {
            same_reference && (earlier.reads || !x.reads)
        } else {
            earlier.reads || same_reference && !x.reads
        };
        let private = (!earlier.attributes.private || x.attributes.private)
            && (!x.attributes.private || same_agent || lenient && self.owns(cell));
        let alike = x.atomic == earlier.atomic && same_reference && self.in_subgroup(cell, now.local);
        let mutual = x.atomic.is_none() || alike;
        covered && referenced && private && mutual
    }

    /// Whether the cell is of this workgroup and of the invocation's subgroup only.
    fn in_subgroup(&self, cell: Cell, local: u32) -> bool {
        let group: Group = self.layout.group(cell);
        self.owns(cell) && self.layout.subgroup_of(group) == Some(self.layout.subgroup(local))
    }
}
