//! Findings of the detector: candidates for races, barriers that are not uniform, notes, and what it gave up.

use std::collections::{HashMap, HashSet};

use super::observer::{Invocation, Memory};
use super::settings::Limits;
use crate::ir::Site;

/// An access that the detector saw.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Second {
    /// The command, counted from the last [`settle`](super::Detector::settle).
    pub command: u32,
    /// The invocation.
    pub invocation: Invocation,
    /// The instruction.
    pub site: Site,
}

/// What a cell knows of an earlier access.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct First {
    /// The agents.
    pub agents: Agents,
    /// Whether it was atomic.
    pub atomic: bool,
}

/// One or several invocations.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Agents {
    /// One invocation of a command of the window.
    Invocation {
        /// The command, counted from the last settlement.
        command: u32,
        /// The invocation.
        invocation: Invocation,
    },
    /// Some invocations of a subgroup.
    Subgroup {
        /// The command.
        command: u32,
        /// Linear number of the workgroup.
        workgroup: u64,
        /// Number of the subgroup in the workgroup.
        subgroup: u32,
    },
    /// Some invocations of a workgroup.
    Workgroup {
        /// The command.
        command: u32,
        /// Linear number of the workgroup.
        workgroup: u64,
    },
    /// Some invocations of several workgroups, of commands up to this one.
    Several {
        /// The command.
        command: u32,
    },
}

/// How a later access depends on an earlier one.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Relation {
    /// Read after write.
    Raw,
    /// Write after read.
    War,
    /// Write after write.
    Waw,
}

/// The first condition that the detector found unfulfilled. The axioms have the last word.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Cause {
    /// Nothing orders them.
    Unordered,
    /// A control barrier is between them, but its semantics or scope do not cover this memory.
    Barrier,
    /// An access is private.
    Private,
    /// They use different references.
    Reference,
    /// Atomics whose scopes do not include each other's invocation.
    Scope,
    /// Atomics of different sizes or places.
    Overlap,
    /// They belong to commands without a dependency between them.
    Command,
}

/// Two accesses that may race.
///
/// The first is the last access that is not ordered before the second as far as the detector knows. Accesses that
/// precede the first one may race with the second, too, and are not named: if the axioms refute the named pair, the
/// earlier accesses to the same word are to be tried.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Candidate {
    /// The later access.
    pub second: Second,
    /// The earlier access.
    pub first: First,
    /// The first byte that both access, in a word.
    pub memory: Memory,
    /// How many bytes of the word both access from there on.
    pub bytes: u32,
    /// Which of them writes.
    pub relation: Relation,
    /// A hint at the cause.
    pub cause: Cause,
}

/// Where the first access was, seen from the second.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Distance {
    /// The same invocation.
    Invocation,
    /// The same workgroup.
    Workgroup,
    /// Another workgroup, or several.
    Dispatch,
    /// Another command.
    Command,
}

/// Candidates of one kind: the instruction, what the first access was, and the cause are alike.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct CandidateKind {
    /// The later access.
    pub site: Site,
    /// The command of the later access.
    pub command: u32,
    /// Where the earlier access was.
    pub distance: Distance,
    /// Whether the earlier access was atomic.
    pub atomic: bool,
    /// Which of them writes.
    pub relation: Relation,
    /// A hint at the cause.
    pub cause: Cause,
    /// Whether less is known of the earlier access than others show: it stands for several workgroups, or what ordered
    /// it was given up. Most such candidates are no races, and none of the others is to be lost among them.
    pub vague: bool,
}

/// The candidates of a kind.
#[derive(Clone, Debug)]
pub struct Candidates {
    /// The kind.
    pub kind: CandidateKind,
    /// How many there were.
    pub count: u64,
    /// The first ones, as many as [`Limits::examples`](super::Limits::examples).
    pub examples: Vec<Candidate>,
    /// Others, at equal distances: their earlier accesses may be by other instructions.
    pub later: Vec<Candidate>,
    /// The number of the candidate that is the next of these, and the distance of two.
    next: u64,
    distance: u64,
}

/// Later examples of a kind, at most, and whatever memory is left.
const MAX_LATER: usize = 504;
const MIN_LATER: usize = 56;

/// A control barrier that not all invocations of its scope reached together.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct NonUniformBarrier {
    /// The command, counted from the last settlement.
    pub command: u32,
    /// A barrier at which an invocation waited.
    pub site: Site,
    /// That invocation.
    pub waits: Invocation,
    /// An invocation that waited at another barrier, and that barrier; or one that had ended.
    pub other: (Invocation, Option<Site>),
}

/// Something that the memory model does not guarantee, and that compilers nevertheless emit; profile `common` accepts
/// it inside a workgroup.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum NoteKind {
    /// Invocations exchange values through accesses that are private: a storage buffer without `Coherent`, or a module
    /// of the Vulkan memory model without `NonPrivatePointer`.
    Private,
    /// A memory barrier precedes a control barrier that has no acquire semantics of its own:
    /// `memoryBarrierBuffer(); barrier();`.
    AcquireBeforeBarrier,
}

/// A note, with the place where it was found first.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Note {
    /// What was found.
    pub kind: NoteKind,
    /// Where.
    pub second: Second,
}

/// What the detector could not check.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct GivenUp {
    /// Accesses to words for which there was no memory.
    pub accesses: u64,
    /// How often the epochs of the cells ran out, so that it is not known any more which invocations of their
    /// workgroup, or of several, made the accesses before.
    pub eras: u64,
    /// How often all records were forgotten for lack of memory: what they said to be ordered became candidates.
    pub records: u64,
    /// Kinds of candidates that were not kept, since there were too many.
    pub candidates: u64,
    /// Candidates that are no examples of their kinds, for lack of memory.
    pub examples: u64,
    /// Non-uniform barriers that were not listed.
    pub barriers: u64,
}

/// The candidates found so far, without duplicates.
#[derive(Debug, Default)]
pub(super) struct Collection {
    kinds: Vec<Candidates>,
    places: HashMap<CandidateKind, usize, foldhash::fast::FixedState>,
    /// Kinds that are not kept.
    dropped: HashSet<CandidateKind, foldhash::fast::FixedState>,
    /// Examples beyond the first ones of each kind.
    further: u64,
}

/// What became of a candidate.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum AddedCandidate {
    /// It is an example of its kind, or the kind has as many as it may have.
    Known,
    /// It would be an example if there were memory.
    WithoutRoom,
    /// It is the first one of a kind for which there is no room.
    Dropped,
}

/// Examples of each kind that are kept whatever memory is left.
const MIN_EXAMPLES: usize = 8;

/// Kinds that are not kept and are known to be counted already, at most.
const MAX_DROPPED: usize = 1 << 16;

impl Candidates {
    /// Adds a later one, and drops every second one if they are too many.
    #[cold]
    fn add_later(&mut self, candidate: Candidate, most: usize) {
        while self.later.len() >= most {
            let mut is_kept = false;
            self.later.retain(|_| {
                is_kept = !is_kept;
                is_kept
            });
            self.distance *= 2;
        }
        self.later.push(candidate);
        self.next = self.count + self.distance;
    }
}

impl Collection {
    /// Bytes of examples beyond the first ones of each kind.
    pub(super) fn bytes(&self) -> u64 {
        self.further * size_of::<Candidate>() as u64
    }

    /// Adds a candidate, within limits of kinds and examples, and whether there is room for more than a few of them.
    pub(super) fn add(
        &mut self,
        kind: CandidateKind,
        (limits, has_room): (Limits, bool),
        of: impl Fn() -> Candidate,
    ) -> AddedCandidate {
        let at = match self.places.get(&kind) {
            Some(at) => *at,
            // Of the kinds beyond that, each candidate counts as one.
            None if self.kinds.len() >= limits.kinds => {
                let is_known = self.dropped.len() < MAX_DROPPED && !self.dropped.insert(kind);
                return if is_known { AddedCandidate::Known } else { AddedCandidate::Dropped };
            }
            None => {
                self.places.insert(kind, self.kinds.len());
                self.kinds.push(Candidates {
                    kind,
                    count: 0,
                    examples: Vec::new(),
                    later: Vec::new(),
                    next: 0,
                    distance: 1,
                });
                self.kinds.len() - 1
            }
        };
        let candidates = &mut self.kinds[at];
        candidates.count += 1;
        let is_wanted = candidates.examples.len() < limits.examples;
        let is_kept = is_wanted && (has_room || candidates.examples.len() < MIN_EXAMPLES);
        if is_kept {
            self.further += u64::from(candidates.examples.len() >= MIN_EXAMPLES);
            candidates.examples.push(of());
        } else if candidates.count >= candidates.next {
            let before = candidates.later.len().saturating_sub(MIN_LATER);
            candidates.add_later(of(), if has_room { MAX_LATER } else { MIN_LATER });
            let after = candidates.later.len().saturating_sub(MIN_LATER);
            self.further = (self.further + after as u64).saturating_sub(before as u64);
        }
        if is_wanted && !is_kept { AddedCandidate::WithoutRoom } else { AddedCandidate::Known }
    }

    /// The candidates, in the order in which their kinds were found.
    pub(super) fn kinds(&self) -> &[Candidates] {
        &self.kinds
    }
}
