//! The detector: proposes every pair of accesses that may race in the execution that it observes.
//!
//! It never takes an unordered pair for ordered. The reverse may happen, and each candidate is for the axioms of the
//! crate `memory-model` to confirm. `docs/checked-mode-internals.md` has the protocol and its proof.

use std::sync::Arc;

use cranelift_entity::{EntityRef as _, PrimaryMap};
use smallvec::SmallVec;

use super::attributes::{self, Action, CLASSES};
use super::barrier::Member;
use super::candidate::{
    Agents, Candidate, Candidates, Cause, Collection, Distance, First, GivenUp, Kind, NonUniformBarrier, Note,
    NoteKind, Second,
};
use super::cells::{Cell, CellLayout, Epochs, Group, Owner};
use super::heads::Locations;
use super::history::{Access, Atomic, Attributes, History, Level, Reference};
use super::inline::InlineMemory;
use super::judge::{Now, Verdict};
use super::observer::{Invocation, Lanes, Memory, Observer, Target};
use super::page::{AttributeId, PAGE_BYTES};
use super::planes::Planes;
use super::settings::{Launch, Limits, Profile};
use super::shadow::Shadow;
use super::words::{Judges, WHOLE, relation};
use super::workgroup::Workgroup;
use crate::guest::GuestSlice;
use crate::ir::{InlineChecks, Plane, PlaneSet, Scope, Site, SiteData};

/// Listens to the dispatches of a window: of commands without a dependency between them.
#[derive(Debug)]
pub struct Detector {
    profile: Profile,
    pub(super) limits: Limits,
    /// Whether private accesses of the present command count as non-private inside a workgroup.
    lenient: bool,
    pub(super) actions: Vec<Action>,
    /// Whether the present command has fences that acquire.
    pub(super) acquire_fences: bool,
    pub(super) epochs: Epochs,
    pub(super) workgroup: Workgroup,
    /// Whether a workgroup of the present command has begun.
    running: bool,
    /// What machine code reads, if it settles accesses itself.
    pub(super) inlined: Option<GuestSlice>,
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
    references: Vec<[Option<AttributeId>; CLASSES]>,
    /// References in all commands of the window so far.
    next_reference: u32,
    /// Histories of words that there are.
    history_count: u64,
    findings: Vec<(Access, Verdict)>,
    candidates: Collection,
    barriers: Vec<NonUniformBarrier>,
    notes: Vec<Note>,
    given_up: GivenUp,
}

/// The attributes of accesses through several references, which have the first numbers.
fn mixed_attributes() -> Vec<Attributes> {
    let of = |class| [false, true].map(|private| Attributes { class, reference: Reference::MIXED, private });
    (0..CLASSES).flat_map(of).collect()
}

/// The number of such an attribute.
fn mixed(class: usize, private: bool) -> AttributeId {
    2 * class as AttributeId + AttributeId::from(private)
}

/// Epochs from which a dispatch begins with the lowest ones again: most are left for it.
const RESTART: u32 = 1 << 29;

/// Non-uniform barriers and notes that are listed.
const MAX_LISTED: usize = 256;

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
            workgroup: Workgroup::new(CellLayout::new(1, 1)),
            running: false,
            inlined: None,
            histories: None,
            base: 1,
            device: Shadow::default(),
            shared: Shadow::default(),
            locations: Locations::default(),
            shared_locations: Locations::default(),
            attributes: mixed_attributes(),
            references: Vec::new(),
            next_reference: 0,
            history_count: 0,
            findings: Vec::new(),
            candidates: Collection::default(),
            barriers: Vec::new(),
            notes: Vec::new(),
            given_up: GivenUp::default(),
        };
        detector.dispatch(sites, launch);
        detector
    }

    /// Begins the next dispatch of the window. Its accesses are not ordered with those of earlier dispatches, and its
    /// references are others.
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
            self.workgroup = Workgroup::new(layout);
        }
        (self.running, self.inlined) = (false, None);
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
        self.locations.clear();
        self.shared_locations.clear();
        self.history_count = 0;
        let others = self.bytes() - self.device.bytes();
        self.device.settle(self.limits.bytes.saturating_sub(others));
        self.shared.settle(u64::MAX);
        self.attributes.truncate(2 * CLASSES);
        self.references.clear();
        self.next_reference = 0;
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
        let histories = self.history_count * History::BYTES + self.histories.as_ref().map_or(0, |(bytes, _)| *bytes);
        self.device.bytes() + self.shared.bytes() + tables + histories
    }

    /// Bytes that are left for more.
    #[inline]
    pub(super) fn left(&self) -> u64 {
        self.limits.bytes.saturating_sub(self.bytes())
    }

    /// Begins again with the lowest epochs. Each access so far becomes one of the largest group that has its agents: of
    /// the present workgroup, or of several. So more may look racy afterwards, and nothing less.
    #[cold]
    fn new_era(&mut self) {
        self.given_up.eras += 1;
        let (base, before) = (self.base, self.workgroup.first);
        self.epochs.restart();
        self.base = 1;
        self.locations.clear();
        self.shared_locations.clear();
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

    /// The number of the attributes of accesses through a reference of the present command.
    #[inline]
    pub(super) fn attribute(&mut self, reference: u32, class: usize, private: bool) -> AttributeId {
        match self.references.get(reference as usize).and_then(|known| known[class]) {
            Some(first) => first + AttributeId::from(private),
            None => self.new_attribute(reference, class, private),
        }
    }

    #[cold]
    fn new_attribute(&mut self, reference: u32, class: usize, private: bool) -> AttributeId {
        let place = reference as usize;
        if place >= 1 << 16 || self.attributes.len() + 2 > usize::from(AttributeId::MAX) {
            return mixed(class, private);
        }
        if place >= self.references.len() {
            self.references.resize(place + 1, [None; CLASSES]);
        }
        let reference = Reference(self.next_reference);
        self.next_reference += 1;
        let first = self.attributes.len() as AttributeId;
        self.attributes.extend([false, true].map(|private| Attributes { class, reference, private }));
        self.references[place][class] = Some(first);
        first + AttributeId::from(private)
    }

    /// Judges and records an access to the bytes of the target, word by word.
    fn record(&mut self, by: Invocation, site: Site, target: Target, what: What) {
        let attribute = self.attribute(target.reference, what.class, what.private);
        let (start, base, shared) = match target.memory {
            Memory::Device(address) => (address, self.base, false),
            Memory::Workgroup(offset) => (u64::from(offset), self.workgroup.first, true),
        };
        let end = start.saturating_add(u64::from(target.bytes));
        self.workgroup.used = true;
        self.workgroup.accessed[by.local as usize] = true;
        let attributes = self.attributes[usize::from(attribute)];
        let cell = self.workgroup.cell(by.local);
        // What cells cannot express has a history, which the cell of writes says.
        let is_plain = what.scope.is_none() && start.is_multiple_of(4) && target.bytes.is_multiple_of(4);
        let needs = planes(shared, what.writes || !is_plain, what.reads && is_plain);
        let mut accepted = false;
        let mut at = start & !3;
        while at < end {
            let mask = mask(start, end, at);
            let atomic = what.scope.map(|scope| Atomic {
                scope,
                start: (start as i64 - at as i64) as i8,
                bytes: target.bytes.min(255) as u8,
            });
            let (reads, writes) = (what.reads, what.writes);
            let access = Access { cell, mask, reads, writes, attributes, atomic };
            let now = Now { access, local: by.local, class: what.class, base };
            let left = self.left();
            let mut room = left / History::BYTES;
            let before = room;
            let shadow = if shared { &mut self.shared } else { &mut self.device };
            let limit = shadow.bytes() + left;
            let Some(page) = shadow.page(at / PAGE_BYTES, attribute, needs, limit) else {
                self.given_up.accesses += 1;
                at += 4;
                continue;
            };
            let word = (at % PAGE_BYTES / 4) as u16;
            let detailed = page.cells(word).0 == Cell::DETAILED;
            let mut judges = Judges {
                workgroup: &self.workgroup,
                epochs: &self.epochs,
                lenient: self.lenient,
                attributes: &self.attributes,
                mixed: mixed(what.class, false),
                findings: &mut self.findings,
                accepted: false,
                room: &mut room,
                lost: false,
            };
            judges.word(page, word, &now, attribute);
            let Judges { accepted: also_accepted, lost, .. } = judges;
            accepted |= also_accepted;
            self.given_up.accesses += u64::from(lost);
            self.history_count = self.history_count + before - room;
            // Heads are kept only while plain writes cannot pass unnoticed.
            let condensed = page.cells(word).0 != Cell::DETAILED;
            if detailed && (condensed || writes && what.scope.is_none()) {
                let locations = if shared { &mut self.shared_locations } else { &mut self.locations };
                let from = at.max(start);
                locations.cut(place(shared, from), (end.min(at + 4) - from) as u32);
            }
            if !self.findings.is_empty() {
                self.report(by, site, &now, place(shared, at));
            }
            at += 4;
        }
        if accepted {
            self.note(NoteKind::Private, by, site);
        }
    }

    /// Turns the findings of an access into candidates.
    #[cold]
    fn report(&mut self, by: Invocation, site: Site, now: &Now, word: Memory) {
        let command = self.epochs.command();
        let second = Second { command, invocation: by, site };
        let mut findings = std::mem::take(&mut self.findings);
        for (earlier, verdict) in findings.drain(..) {
            let Verdict::Racy(cause) = verdict else { continue };
            let agents = self.agents(earlier.cell);
            let distance = if cause == Cause::Command {
                Distance::Command
            } else if self.workgroup.is_own(earlier.cell, by.local) {
                Distance::Invocation
            } else if self.workgroup.owns(earlier.cell) {
                Distance::Workgroup
            } else {
                Distance::Dispatch
            };
            let relation = relation(&earlier, &now.access);
            let atomic = earlier.atomic.is_some();
            let common = earlier.mask & now.access.mask;
            let byte = common.trailing_zeros().min(3);
            let bytes = (common >> byte).trailing_ones();
            let memory = match word {
                Memory::Device(address) => Memory::Device(address + u64::from(byte)),
                Memory::Workgroup(offset) => Memory::Workgroup(offset + byte),
            };
            let candidate = || Candidate { second, first: First { agents, atomic }, memory, bytes, relation, cause };
            let kind = Kind { site, command, distance, atomic, relation, cause };
            if !self.candidates.add(kind, self.limits.kinds, self.limits.examples, candidate) {
                self.given_up.candidates += 1;
            }
        }
        // Its memory serves the next findings.
        self.findings = findings;
    }

    /// The agents of a cell.
    fn agents(&self, cell: Cell) -> Agents {
        match self.epochs.owner(cell) {
            None => Agents::Several { command: 0 },
            Some((Owner::Command(command), _)) => Agents::Several { command },
            Some((Owner::Workgroup { command, slot }, layout)) => {
                let workgroup = self.epochs.workgroup_of(command, slot).unwrap_or(0);
                match layout.group(cell) {
                    Group::Invocation(local) => {
                        Agents::Invocation { command, invocation: Invocation { workgroup, local } }
                    }
                    Group::Subgroup(subgroup) => Agents::Subgroup { command, workgroup, subgroup },
                    Group::Workgroup => Agents::Workgroup { command, workgroup },
                }
            }
        }
    }

    #[cold]
    fn note(&mut self, kind: NoteKind, invocation: Invocation, site: Site) {
        let command = self.epochs.command();
        let noted = self.notes.iter().any(|note| note.kind == kind && note.second.command == command);
        if !noted && self.notes.len() < MAX_LISTED {
            self.notes.push(Note { kind, second: Second { command, invocation, site } });
        }
    }
}

/// What an access does.
#[derive(Clone, Copy, Debug)]
struct What {
    class: usize,
    private: bool,
    reads: bool,
    writes: bool,
    /// The scope of an atomic.
    scope: Option<Level>,
}

/// The bytes from `start` to `end` in the word at `at`, as bits.
fn mask(start: u64, end: u64, at: u64) -> u8 {
    let from = start.saturating_sub(at).min(4);
    let to = (end - at).min(4);
    (WHOLE << from) & (WHOLE >> (4 - to))
}

/// The planes that a plain access to whole words may write: cells, and in device memory the marks of observers, which
/// they keep for the same words.
#[inline]
pub(super) fn planes(shared: bool, writes: bool, reads: bool) -> PlaneSet {
    let of = |does: bool, cell, mark| match (does, shared) {
        (false, _) => PlaneSet::NONE,
        (true, true) => PlaneSet::of(cell),
        (true, false) => PlaneSet::of(cell).and(mark),
    };
    of(writes, Plane::Written, Plane::Wrote).or(of(reads, Plane::Read, Plane::HasRead))
}

/// A place in memory.
fn place(shared: bool, at: u64) -> Memory {
    if shared { Memory::Workgroup(at as u32) } else { Memory::Device(at) }
}

impl Observer for Detector {
    fn inline(&mut self, checks: &InlineChecks, buffers: &[GuestSlice]) -> Option<InlineMemory> {
        self.offer(checks, buffers)
    }

    fn begin(&mut self, workgroup: u64) {
        self.enter(workgroup);
    }

    fn access(&mut self, by: Invocation, site: Site, target: Target) {
        self.enter(by.workgroup);
        let Some(&Action::Access { class, private, writes }) = self.actions.get(site.index()) else { return };
        self.record(by, site, target, What { class, private, reads: !writes, writes, scope: None });
        self.may_settle(site);
    }

    fn accesses(&mut self, by: Lanes, site: Site, target: Target, offsets: &[u32; 16]) {
        self.enter(by.workgroup);
        self.record_lanes(by, site, target, offsets);
        self.may_settle(site);
    }

    fn atomic(&mut self, by: Invocation, site: Site, target: Target, wrote: bool) {
        self.enter(by.workgroup);
        let Some(&Action::Atomic { class, reads, order, unequal }) = self.actions.get(site.index()) else { return };
        let order = if wrote { order } else { unequal };
        if reads {
            self.read_heads(by, target, class, order);
        }
        self.record(by, site, target, What { class, private: false, reads, writes: wrote, scope: Some(order.scope) });
        if wrote {
            self.write_heads(by, target, class, order, reads);
        }
        self.publish();
        self.may_settle(site);
    }

    fn fence(&mut self, by: Invocation, site: Site) {
        self.enter(by.workgroup);
        let Some(&Action::Fence(order)) = self.actions.get(site.index()) else { return };
        self.workgroup.acquire_fence(by.local, order);
        if !order.releases.is_empty() {
            let epoch = self.tick();
            self.workgroup.release_fence(by.local, order, epoch);
        }
    }

    fn arrive(&mut self, by: Invocation, site: Site) {
        self.enter(by.workgroup);
        self.workgroup.waits[by.local as usize] = Some(site);
        self.workgroup.waited = true;
    }

    fn meet(&mut self, workgroup: u64, site: Site, invocations: u32) {
        self.enter(workgroup);
        if !self.meet_simply(site) {
            (0..invocations).for_each(|local| self.arrive(Invocation { workgroup, local }, site));
            self.release(workgroup, Scope::Workgroup, None);
        }
    }

    fn release(&mut self, workgroup: u64, execution: Scope, subgroup: Option<u32>) {
        self.enter(workgroup);
        if subgroup.is_none() && self.all_meet() {
            return;
        }
        let group = match (execution, subgroup) {
            (Scope::Invocation, _) => return,
            (Scope::Subgroup, Some(subgroup)) => Group::Subgroup(subgroup),
            _ => Group::Workgroup,
        };
        let now = self.tick();
        let range = self.workgroup.layout.members(group);
        // Invocations at different barriers do not meet, although they go on together.
        let mut meetings: SmallVec<[(Site, Vec<Member>); 1]> = SmallVec::new();
        let mut missing = None;
        for local in range.clone() {
            let Some(site) = self.workgroup.waits[local as usize].take() else {
                missing = missing.or(Some(local));
                continue;
            };
            let Some(&Action::Barrier { order }) = self.actions.get(site.index()) else { continue };
            let member = Member { local, order };
            match meetings.iter_mut().find(|meeting| meeting.0 == site) {
                Some(meeting) => meeting.1.push(member),
                None => {
                    let mut members = Vec::with_capacity(range.len());
                    members.push(member);
                    meetings.push((site, members));
                }
            }
        }
        if let (Some(waits), Some(local)) = (meetings.first(), missing) {
            self.non_uniform(waits.1[0].local, waits.0, (local, None));
        }
        for pair in meetings.windows(2) {
            self.non_uniform(pair[0].1[0].local, pair[0].0, (pair[1].1[0].local, Some(pair[1].0)));
        }
        for (site, members) in &meetings {
            let complete = members.len() == range.len();
            if let Some(local) = self.workgroup.meet(members, group, complete, now, self.lenient) {
                self.note(NoteKind::AcquireBeforeBarrier, Invocation { workgroup, local }, *site);
            }
        }
        self.publish();
    }

    fn end(&mut self, by: Invocation) {
        self.enter(by.workgroup);
    }

    fn ends(&mut self, workgroup: u64, _: u32) {
        self.enter(workgroup);
    }
}

impl Detector {
    /// All invocations of the workgroup leave one barrier, if that is all that there is to it.
    fn all_meet(&mut self) -> bool {
        let Some((&Some(site), others)) = self.workgroup.waits.split_first() else { return false };
        if !others.iter().all(|other| *other == Some(site)) || !self.meet_simply(site) {
            return false;
        }
        self.workgroup.waits.fill(None);
        true
    }

    /// All invocations of the workgroup meet at a barrier, if it is a simple one.
    fn meet_simply(&mut self, site: Site) -> bool {
        let Some(&Action::Barrier { order }) = self.actions.get(site.index()) else { return false };
        if !self.workgroup.is_simple(order) {
            return false;
        }
        let now = self.tick();
        self.workgroup.meet_all(order, now);
        self.publish();
        true
    }

    /// Lists a control barrier that is not uniform, once for each pair of sites.
    #[cold]
    fn non_uniform(&mut self, waits: u32, site: Site, (other, at): (u32, Option<Site>)) {
        let command = self.epochs.command();
        let invocation = |local| Invocation { workgroup: self.workgroup.workgroup, local };
        let found = NonUniformBarrier { command, site, waits: invocation(waits), other: (invocation(other), at) };
        let same = |old: &NonUniformBarrier| (old.command, old.site, old.other.1) == (command, site, at);
        if self.barriers.iter().any(same) {
            return;
        }
        if self.barriers.len() < MAX_LISTED { self.barriers.push(found) } else { self.given_up.barriers += 1 }
    }
}
