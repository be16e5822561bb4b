//! The detector: proposes every pair of accesses that may race in the execution that it observes.
//!
//! It never takes an unordered pair for ordered. The reverse may happen, and each candidate is for the axioms of the
//! crate `memory-model` to confirm. `docs/checked-mode-internals.md` has the protocol and its proof.

use std::ops::Range;
use std::sync::Arc;

use cranelift_entity::PrimaryMap;
use smallvec::SmallVec;

use super::attributes::{self, Action, CLASSES};
use super::candidate::{Candidates, Collection, GivenUp, NonUniformBarrier, Note};
use super::cells::{Cell, CellLayout, Epochs, Group};
use super::heads::Locations;
use super::history::{Attributes, History, Reference, WordAccess};
use super::judge::Verdict;
use super::nodes::NodeTable;
use super::page::AttributeId;
use super::parts::AllParts;
use super::planes::Planes;
use super::settings::{Launch, Limits, Profile};
use super::shadow::Shadow;
use super::workgroup::Workgroup;
use crate::guest::GuestSlice;
use crate::ir::{PlaneSet, Site, SiteData};

/// Listens to the dispatches of a window: of commands without a dependency between them.
#[derive(Debug)]
pub struct Detector {
    profile: Profile,
    pub(super) limits: Limits,
    /// Whether private accesses of the present command count as non-private inside a workgroup.
    pub(super) lenient: bool,
    pub(super) actions: Vec<Action>,
    /// Whether the present command has fences that acquire.
    pub(super) acquire_fences: bool,
    pub(super) epochs: Epochs,
    pub(super) workgroup: Workgroup,
    /// Whether a workgroup of the present command has begun.
    running: bool,
    /// What machine code reads, if it settles accesses itself.
    pub(super) inlined: Option<GuestSlice>,
    /// Memory that has cells for less than a word in the present dispatch.
    pub(super) parts: AllParts,
    /// The addresses of device memory, if they were given.
    pub(super) memory: Range<u64>,
    /// Planes whose cells say that all words have histories, and the bytes of memory for which they do.
    pub(super) histories: Option<(u64, Arc<Planes>)>,
    /// Device memory: cells below are settled.
    pub(super) base: u32,
    pub(super) device: Shadow,
    pub(super) shared: Shadow,
    pub(super) locations: Locations,
    pub(super) shared_locations: Locations,
    pub(super) attributes: Vec<Attributes>,
    /// For each reference of the command and class, the number of its attribute if non-private; private is the next.
    pub(super) references: Vec<[Option<AttributeId>; CLASSES]>,
    /// References in all commands of the window so far.
    pub(super) next_reference: u32,
    /// The attributes of memory that one reference writes and others read, for machine code.
    pub(super) writers: SmallVec<[AttributeId; 2]>,
    /// Histories of words that there are.
    pub(super) history_count: u64,
    pub(super) findings: Vec<(WordAccess, Verdict)>,
    pub(super) candidates: Collection,
    pub(super) barriers: Vec<NonUniformBarrier>,
    pub(super) notes: Vec<Note>,
    pub(super) given_up: GivenUp,
    /// Accesses with cells below may have been ordered by records that were forgotten.
    pub(super) forgotten: u32,
    /// Bytes of records when known joins, unused nodes and records were last given up for the shadow.
    squeezed: u64,
}

/// The attributes of accesses through several references, which have the first numbers.
fn mixed_attributes() -> Vec<Attributes> {
    let of = |class| [false, true].map(|private| Attributes { class, reference: Reference::MIXED, private });
    (0..CLASSES).flat_map(of).collect()
}

/// The part of the memory that known joins of records may have: an eighth.
const MAX_OF_KNOWN_JOINS: u64 = 8;

/// The part that records may have with them: a quarter.
const MAX_OF_RECORDS: u64 = 4;

/// The part that records may have even if others leave less: without records, accesses that are ordered are
/// candidates.
const MIN_OF_RECORDS: u64 = 16;

/// Epochs from which a dispatch begins with the lowest ones again: most are left for it.
const RESTART: u32 = 1 << 29;

impl Detector {
    /// A detector that is ready for the first dispatch: of a kernel with these sites.
    pub fn new(sites: &PrimaryMap<Site, SiteData>, launch: Launch, profile: Profile, limits: Limits) -> Self {
        let mut detector = Self {
            profile,
            limits,
            lenient: false,
            actions: Vec::new(),
            acquire_fences: false,
            epochs: Epochs::default(),
            workgroup: Workgroup::new(CellLayout::new(1, 1), NodeTable::within(limits.bytes / MAX_OF_KNOWN_JOINS)),
            running: false,
            inlined: None,
            parts: AllParts::default(),
            memory: 0..0,
            histories: None,
            base: 1,
            device: Shadow::default(),
            shared: Shadow::default(),
            locations: Locations::default(),
            shared_locations: Locations::default(),
            attributes: mixed_attributes(),
            references: Vec::new(),
            next_reference: 0,
            writers: SmallVec::new(),
            history_count: 0,
            findings: Vec::new(),
            candidates: Collection::default(),
            barriers: Vec::new(),
            notes: Vec::new(),
            given_up: GivenUp::default(),
            forgotten: 0,
            squeezed: 0,
        };
        detector.dispatch(sites, launch);
        detector
    }

    /// Begins the next dispatch of the window. Its accesses are not ordered with those of earlier dispatches, and its
    /// references are others. A window in which machine code settled accesses of less than a word has no other
    /// dispatch: the cells of such memory are those of one dispatch.
    pub fn dispatch(&mut self, sites: &PrimaryMap<Site, SiteData>, launch: Launch) {
        self.catch_up();
        self.actions = attributes::actions(sites.values());
        let acquires = |action: &Action| matches!(action, Action::Fence(order) if !order.acquires.is_empty());
        self.acquire_fences = self.actions.iter().any(acquires);
        let private = |action: &Action| matches!(action, Action::Access { private: true, .. });
        let any_non_private =
            self.actions.iter().any(|action| matches!(action, Action::Access { .. }) && !private(action));
        self.lenient = self.profile == Profile::Common && (!launch.vulkan_model || !any_non_private);
        let layout = CellLayout::new(launch.workgroup_size, launch.subgroup_size);
        if self.workgroup.layout != layout {
            let nodes = std::mem::take(&mut self.workgroup.nodes);
            self.workgroup = Workgroup::new(layout, nodes);
        }
        (self.running, self.inlined) = (false, None);
        self.parts.clear();
        self.references.clear();
        if !self.epochs.begin(layout) {
            self.new_era();
        }
    }

    /// All accesses so far are ordered before those that follow, and are available and visible to them: by the API.
    pub fn settle(&mut self) {
        self.catch_up();
        self.base = self.epochs.bound();
        self.epochs.settle();
        self.clear_records();
        self.workgroup.nodes.keep_known(true);
        (self.forgotten, self.squeezed) = (0, 0);
        self.history_count = 0;
        let others = self.bytes() - self.device.bytes();
        self.device.settle(self.limits.bytes.saturating_sub(others));
        self.shared.settle(u64::MAX);
        self.attributes.truncate(2 * CLASSES);
        self.references.clear();
        self.next_reference = 0;
        self.writers.clear();
        self.parts.clear();
        (self.running, self.inlined) = (false, None);
    }

    /// As a new detector with the same profile and limits, which has the memory of this one: the dispatch is the first
    /// of its window, and all accesses so far are ordered before it.
    pub fn restart(&mut self, sites: &PrimaryMap<Site, SiteData>, launch: Launch) {
        self.settle();
        (self.candidates, self.given_up) = (Collection::default(), GivenUp::default());
        self.barriers.clear();
        self.notes.clear();
        if self.epochs.bound() > RESTART {
            self.epochs.restart();
            self.base = 1;
            self.device.clear();
            self.shared.clear();
        }
        self.epochs.settle();
        self.dispatch(sites, launch);
    }

    /// The candidates so far, by kind, in the order in which the kinds were found.
    pub fn candidates(&self) -> &[Candidates] {
        self.candidates.kinds()
    }

    /// The control barriers that were not uniform. They are errors, whatever the axioms say.
    pub fn barriers(&self) -> &[NonUniformBarrier] {
        &self.barriers
    }

    /// What profile `common` accepted, once a dispatch for each kind.
    pub fn notes(&self) -> &[Note] {
        &self.notes
    }

    /// What could not be checked.
    pub fn given_up(&self) -> GivenUp {
        self.given_up
    }

    /// Bytes of shadow memory and of what belongs to it, about.
    #[inline]
    pub fn bytes(&self) -> u64 {
        let tables = self.locations.bytes() + self.shared_locations.bytes() + self.epochs.bytes();
        let nodes = self.workgroup.nodes.bytes();
        let histories = self.history_count * History::BYTES + self.histories.as_ref().map_or(0, |(bytes, _)| *bytes);
        self.device.bytes() + self.shared.bytes() + tables + nodes + histories
    }

    /// Bytes that are left for more.
    #[inline]
    pub(super) fn left(&self) -> u64 {
        self.limits.bytes.saturating_sub(self.bytes())
    }

    /// Clears what invocations and locations know of other invocations.
    fn clear_records(&mut self) {
        self.locations.clear();
        self.shared_locations.clear();
        self.workgroup.forget_agents();
        self.workgroup.nodes.clear();
    }

    /// The same for lack of memory: a record only ever claims order.
    pub(super) fn forget_records(&mut self) {
        self.clear_records();
        self.given_up.records += 1;
        self.forgotten = self.epochs.bound();
    }

    /// Frees unused nodes if records have more than their memory, and forgets all records if that does not suffice.
    #[inline]
    pub(super) fn bound_records(&mut self) {
        if self.workgroup.nodes.has_forgotten() {
            self.given_up.records += 1;
            self.forgotten = self.epochs.bound();
        }
        if self.workgroup.nodes.bytes() > self.limits.records.min(self.limits.bytes / MIN_OF_RECORDS) {
            self.bound_large_records();
        }
    }

    #[cold]
    fn bound_large_records(&mut self) {
        let limit = self.limits.bytes;
        let most = |detector: &Self| {
            let others = detector.bytes() - detector.workgroup.nodes.bytes();
            let free = limit.saturating_sub(others);
            free.min(limit / MAX_OF_RECORDS).max(limit / MIN_OF_RECORDS).min(detector.limits.records)
        };
        if self.workgroup.nodes.bytes() <= most(self) {
            return;
        }
        self.device.make_room(PlaneSet::CELLS);
        let most = most(self);
        self.workgroup.nodes.collect();
        // If more stayed, the next search for unused nodes would be soon.
        if self.workgroup.nodes.bytes() > most / 4 * 3 {
            self.forget_records();
        }
    }

    /// Makes room for the shadow if there is no more for a page: an access without cells may be a missed race, and a
    /// record that is forgotten is none. Returns the bytes that are left.
    #[inline]
    pub(super) fn room_of_shadow(&mut self) -> u64 {
        let left = self.left();
        if left >= PlaneSet::ALL.bytes() || self.workgroup.nodes.bytes() <= self.squeezed {
            return left;
        }
        self.squeeze_records();
        self.left()
    }

    #[cold]
    fn squeeze_records(&mut self) {
        self.device.make_room(PlaneSet::CELLS);
        if self.left() < PlaneSet::ALL.bytes() {
            // They would be made and forgotten by turns from here on.
            self.workgroup.nodes.keep_known(false);
            self.workgroup.nodes.collect();
        }
        let least = self.limits.bytes / MIN_OF_RECORDS;
        if self.left() < PlaneSet::ALL.bytes() && self.workgroup.nodes.bytes() > least {
            self.forget_records();
        }
        // Again once records have grown.
        self.squeezed = self.workgroup.nodes.bytes() + least / 4;
    }

    /// Begins again with the lowest epochs. Each access so far becomes one of the largest group that has its agents: of
    /// the present workgroup, or of several. So more may look racy afterwards, and nothing less.
    #[cold]
    fn new_era(&mut self) {
        self.given_up.eras += 1;
        let (base, before) = (self.base, self.workgroup.first);
        self.epochs.restart();
        self.base = 1;
        self.clear_records();
        self.epochs.begin(self.workgroup.layout);
        let several = self.workgroup.layout.cell(self.epochs.several(), Group::Workgroup);
        let mut own = None;
        if self.running
            && let Some((slot, first)) = self.epochs.workgroup(self.workgroup.workgroup)
        {
            self.workgroup.forget(slot, first);
            own = Some(self.workgroup.layout.cell(first, Group::Workgroup));
        }
        let of_workgroup = |cell: Cell| own.filter(|_| cell.0 >= before);
        self.device.renumber(|cell| match of_workgroup(cell) {
            Some(own) => own,
            None if cell.0 >= base => several,
            None => Cell::EMPTY,
        });
        self.shared.renumber(|cell| of_workgroup(cell).unwrap_or(Cell::EMPTY));
        self.forgotten = self.epochs.bound();
        self.settle_none();
        self.publish();
    }

    /// Begins the invocation's workgroup, if another one ran.
    #[inline]
    pub(super) fn enter(&mut self, workgroup: u64) {
        self.catch_up();
        if !self.running || self.workgroup.workgroup != workgroup {
            self.begin(workgroup);
        }
    }

    #[cold]
    fn begin(&mut self, workgroup: u64) {
        self.running = false;
        let begun = self.epochs.begun() || self.epochs.begin(self.workgroup.layout);
        // The table of workgroups in no order grows with each.
        if !begun || self.left() == 0 && self.epochs.bytes() > self.limits.bytes / 8 {
            self.new_era();
        }
        self.shared_locations.clear();
        let (slot, first) = match self.epochs.workgroup(workgroup) {
            Some(begun) => begun,
            None => {
                self.new_era();
                self.epochs.workgroup(workgroup).unwrap_or((0, 1))
            }
        };
        self.workgroup.begin(workgroup, slot, first);
        self.running = true;
        self.publish();
    }

    /// Accesses so far are below the epoch that this returns, and later ones are not.
    pub(super) fn tick(&mut self) -> u32 {
        // Accesses that machine code has settled are not known here.
        if self.workgroup.used || self.inlined.is_some() {
            match self.epochs.tick() {
                Some(epoch) => {
                    self.workgroup.epoch = epoch;
                    self.workgroup.used = false;
                    self.publish();
                }
                None => {
                    self.new_era();
                    // The accesses of the workgroup have the first epoch of the era.
                    self.workgroup.epoch = self.epochs.tick().unwrap_or(self.workgroup.epoch);
                    self.publish();
                }
            }
        }
        self.workgroup.epoch
    }
}
