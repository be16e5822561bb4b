//! The workgroup that runs: what its invocations know, and what they have released or may still acquire.
//!
//! Workgroups run one after another, so only the invocations of one of them are alive. What the others knew is in the
//! heads of atomic locations.

use smallvec::SmallVec;

use super::attributes::{CLASSES, Classes, MemoryOrder};
use super::cells::{Cell, CellLayout, Epochs, Group, Owner, Slot};
use super::heads::{self, Head, Reach};
use super::history::MemoryScope;
use super::known::{self, Record};
use super::nodes::NodeTable;
use crate::ir::Site;

/// A release fence, which later atomic writes of its invocation carry.
#[derive(Clone, Debug)]
pub(super) struct Fence {
    /// What it orders.
    pub(super) order: MemoryOrder,
    /// Accesses of the invocation below this epoch precede it.
    pub(super) epoch: u32,
    /// What it releases: all that was known, and the invocation's own accesses.
    pub(super) known: [Record; CLASSES],
}

/// The state of an invocation that synchronizes by other means than complete barriers.
#[derive(Debug, Default)]
pub(super) struct Agent {
    /// What it knows, by the class of the memory.
    pub(super) known: [Record; CLASSES],
    /// Its release fences, the last of each scope and semantics; the very last one is at the end.
    pub(super) fences: SmallVec<[Box<Fence>; 1]>,
    /// What its atomics read, for a later acquire fence, by the class of the atomic's memory.
    pub(super) read: [SmallVec<[Head; 1]>; CLASSES],
    /// What barriers without acquire semantics brought, for a later acquire fence.
    pub(super) met: [Record; CLASSES],
    /// Whether any of the above is set.
    touched: bool,
}

/// The state of a workgroup.
#[derive(Debug)]
pub(super) struct Workgroup {
    /// The encoding of its cells.
    pub(super) layout: CellLayout,
    /// Its place in the command.
    pub(super) slot: Slot,
    /// Its first epoch.
    pub(super) first: u32,
    /// The present epoch.
    pub(super) epoch: u32,
    /// Linear number of the workgroup.
    pub(super) workgroup: u64,
    /// For each class, the epoch below which all accesses of the workgroup are known to all of it.
    pub(super) known: [u32; CLASSES],
    /// The same for each subgroup.
    known_in_subgroup: Vec<[u32; CLASSES]>,
    /// Whether one of them is above the first epoch.
    met_in_subgroups: bool,
    /// Accesses below precede a barrier of the workgroup, whatever its semantics.
    pub(super) met: u32,
    /// Invocations.
    pub(super) agents: Vec<Agent>,
    /// The invocations whose state is not the initial one.
    touched: Vec<u32>,
    /// The control barrier at which each invocation waits.
    pub(super) waits: Vec<Option<Site>>,
    /// Whether one waited.
    pub(super) waited: bool,
    /// Whether each invocation made an access since its last release fence.
    pub(super) accessed: Vec<bool>,
    /// Whether there was a release fence.
    fenced: bool,
    /// Whether there is an access with the present epoch.
    pub(super) used: bool,
    /// The nodes of records, and joins, as the invocations of this workgroup and of those before it made them.
    pub(super) nodes: NodeTable,
}

impl Workgroup {
    pub(super) fn new(layout: CellLayout, nodes: NodeTable) -> Self {
        let size = layout.workgroup_size as usize;
        let subgroups = size.div_ceil(layout.subgroup_size as usize);
        Self {
            layout,
            slot: 0,
            first: 0,
            epoch: 0,
            workgroup: 0,
            known: [0; CLASSES],
            known_in_subgroup: vec![[0; CLASSES]; subgroups],
            met_in_subgroups: false,
            met: 0,
            agents: std::iter::repeat_with(Agent::default).take(size).collect(),
            touched: Vec::new(),
            waits: vec![None; size],
            waited: false,
            accessed: vec![true; size],
            fenced: false,
            used: false,
            nodes,
        }
    }

    /// Begins the next workgroup.
    pub(super) fn begin(&mut self, workgroup: u64, slot: Slot, first: u32) {
        self.workgroup = workgroup;
        if std::mem::take(&mut self.waited) {
            self.waits.fill(None);
        }
        self.forget(slot, first);
    }

    /// Forgets all order; barriers go on.
    pub(super) fn forget(&mut self, slot: Slot, first: u32) {
        // Epochs rise, unless they begin again: what subgroups knew of earlier workgroups is below.
        let again = first < self.first;
        (self.slot, self.first, self.epoch) = (slot, first, first);
        self.known = [first; CLASSES];
        if std::mem::take(&mut self.met_in_subgroups) || again {
            self.known_in_subgroup.fill(self.known);
        }
        self.met = first;
        self.forget_agents();
        if std::mem::take(&mut self.fenced) {
            self.accessed.fill(true);
        }
        self.used = false;
    }

    /// Forgets all records and fences of invocations.
    pub(super) fn forget_agents(&mut self) {
        for local in self.touched.drain(..) {
            self.agents[local as usize] = Agent::default();
        }
    }

    /// The state of an invocation, to be changed.
    pub(super) fn agent(&mut self, local: u32) -> &mut Agent {
        let agent = &mut self.agents[local as usize];
        if !agent.touched {
            agent.touched = true;
            self.touched.push(local);
        }
        agent
    }

    /// All of a subgroup know its accesses below `now`.
    pub(super) fn know_in_subgroup(&mut self, subgroup: u32, class: usize, now: u32) {
        self.known_in_subgroup[subgroup as usize][class] = now;
        self.met_in_subgroups = true;
    }

    /// Whether a subgroup has met at a barrier of its own.
    pub(super) fn met_in_subgroups(&self) -> bool {
        self.met_in_subgroups
    }

    /// Whether no invocation has anything but the initial state.
    pub(super) fn untouched(&self) -> bool {
        self.touched.is_empty()
    }

    /// The cell of an access of an invocation now.
    #[inline]
    pub(super) fn cell(&self, local: u32) -> Cell {
        self.layout.cell(self.epoch, Group::Invocation(local))
    }

    /// Whether the cell is one of this workgroup.
    #[inline]
    pub(super) fn owns(&self, cell: Cell) -> bool {
        cell.0 >= self.first
    }

    /// Whether the cell is of exactly this invocation of this workgroup.
    #[inline]
    pub(super) fn is_own(&self, cell: Cell, local: u32) -> bool {
        self.owns(cell) && self.layout.group(cell) == Group::Invocation(local)
    }

    /// Whether the non-private accesses that the cell stands for are ordered before the invocation's next access in
    /// memory of the class.
    pub(super) fn knows(&self, epochs: &Epochs, cell: Cell, class: usize, local: u32) -> bool {
        let agent = &self.agents[local as usize].known[class];
        let of_record = |slot: Slot, layout: CellLayout| {
            let Some(known) = agent else { return false };
            let group = layout.group(cell);
            layout.epoch(cell) < known.upto(slot, group, layout.subgroup_of(group))
        };
        if self.owns(cell) {
            let (epoch, group) = (self.layout.epoch(cell), self.layout.group(cell));
            let subgroup = self.layout.subgroup(local);
            let in_subgroup = || {
                self.layout.subgroup_of(group) == Some(subgroup)
                    && epoch < self.known_in_subgroup[subgroup as usize][class]
            };
            return epoch < self.known[class] || in_subgroup() || of_record(self.slot, self.layout);
        }
        if agent.is_none() {
            return false;
        }
        match epochs.owner(cell) {
            Some((Owner::Workgroup { command, slot }, layout)) if command == epochs.command() => {
                of_record(slot, layout)
            }
            _ => false,
        }
    }

    /// One cell that stands for the agents of both.
    pub(super) fn join(&self, epochs: &Epochs, a: Cell, b: Cell) -> Cell {
        let same = match (self.owns(a), self.owns(b)) {
            (true, true) => true,
            (false, false) => self.of_one_workgroup(epochs, a, b),
            _ => false,
        };
        if !same {
            return self.layout.cell(epochs.several(), Group::Workgroup);
        }
        let group = self.layout.join(self.layout.group(a), self.layout.group(b));
        self.layout.cell(self.layout.epoch(a).max(self.layout.epoch(b)), group)
    }

    /// Whether both cells are of the same workgroup of the present command.
    pub(super) fn of_one_workgroup(&self, epochs: &Epochs, a: Cell, b: Cell) -> bool {
        match (epochs.owner(a), epochs.owner(b)) {
            (Some((a @ Owner::Workgroup { command, .. }, _)), Some((b, _))) => a == b && command == epochs.command(),
            _ => false,
        }
    }

    /// What a release of the invocation publishes for a class: all that it knows, and its own accesses below `epoch`.
    fn published(&mut self, local: u32, class: usize, epoch: u32) -> Record {
        let mut known = self.agents[local as usize].known[class].clone().unwrap_or_default();
        let nodes = &mut self.nodes;
        if self.known[class] > self.first {
            known.add(self.slot, Group::Workgroup, self.known[class], nodes);
        }
        let subgroup = self.layout.subgroup(local);
        let in_subgroup = self.known_in_subgroup[subgroup as usize][class];
        if in_subgroup > self.first {
            known.add(self.slot, Group::Subgroup(subgroup), in_subgroup, nodes);
        }
        known.add(self.slot, Group::Invocation(local), epoch, nodes);
        Some(known)
    }

    /// The records that a release of the invocation publishes.
    fn publish(&mut self, local: u32, classes: Classes, epoch: u32) -> [Record; CLASSES] {
        std::array::from_fn(|class| if classes.contains(class) { self.published(local, class, epoch) } else { None })
    }

    /// The head of a release by the invocation.
    pub(super) fn head(&mut self, local: u32, order: MemoryOrder, epoch: u32) -> Option<Head> {
        let reach = Reach::new(order.scope, self.slot, self.layout.subgroup(local));
        (!order.releases.is_empty()).then(|| Head { reach, known: self.publish(local, order.releases, epoch) })
    }

    /// The heads that an atomic write in memory of the class carries for earlier fences of the invocation.
    pub(super) fn carried(&mut self, local: u32, class: usize) -> SmallVec<[Head; 1]> {
        let mut list = SmallVec::new();
        for fence in &self.agents[local as usize].fences {
            if fence.order.classes.contains(class) {
                let reach = Reach::new(fence.order.scope, self.slot, self.layout.subgroup(local));
                heads::add(&mut list, &Head { reach, known: fence.known.clone() }, &mut self.nodes);
            }
        }
        list
    }

    /// The invocation acquires from a head with these semantics.
    pub(super) fn acquire(&mut self, local: u32, head: &Head, order: MemoryOrder) {
        let (slot, subgroup) = (self.slot, self.layout.subgroup(local));
        if !head.reach.includes(order.scope, slot, subgroup) {
            return;
        }
        for class in order.acquires.iter().filter(|&class| head.known[class].is_some()) {
            self.learn(local, class, &head.known[class]);
        }
    }

    /// The invocation knows what a record has.
    fn learn(&mut self, local: u32, class: usize, record: &Record) {
        self.agent(local);
        known::join(&mut self.agents[local as usize].known[class], record, &mut self.nodes);
    }

    /// An atomic of the invocation reads what a release left, for a later acquire fence.
    pub(super) fn read(&mut self, local: u32, class: usize, head: &Head) {
        self.agent(local);
        heads::add(&mut self.agents[local as usize].read[class], head, &mut self.nodes);
    }

    /// An acquire fence: what atomics read and barriers brought before is acquired now.
    pub(super) fn acquire_fence(&mut self, local: u32, order: MemoryOrder) {
        if order.acquires.is_empty() || !self.agents[local as usize].touched {
            return;
        }
        for class in order.classes.iter() {
            let read = std::mem::take(&mut self.agents[local as usize].read[class]);
            read.iter().for_each(|head| self.acquire(local, head, order));
            // A later fence may have other semantics, or a larger scope.
            self.agents[local as usize].read[class] = read;
        }
        if order.scope >= MemoryScope::Workgroup {
            for class in order.acquires.iter() {
                let met = self.agents[local as usize].met[class].clone();
                self.learn(local, class, &met);
            }
        }
    }

    /// A release fence: the accesses below `epoch` precede it.
    pub(super) fn release_fence(&mut self, local: u32, order: MemoryOrder, epoch: u32) {
        if order.releases.is_empty() {
            return;
        }
        let fence = Box::new(Fence { order, epoch, known: self.publish(local, order.releases, epoch) });
        let agent = self.agent(local);
        agent.fences.retain(|other| other.order != order);
        agent.fences.push(fence);
        self.accessed[local as usize] = false;
        self.fenced = true;
    }
}
