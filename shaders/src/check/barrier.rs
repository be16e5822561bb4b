//! Control barriers: what the invocations that leave one together know of each other.
//!
//! A barrier that releases and acquires a class in full, with all invocations of its group, costs one epoch for all of
//! them. In all other cases each member's release (the barrier itself, or a release fence before it) is gathered, and
//! each member acquires (by the barrier itself, or by a fence after it).

use super::attributes::{CLASSES, MemoryOrder};
use super::cells::Group;
use super::history::MemoryScope;
use super::known::{self, Known, Record};
use super::nodes::NodeTable;
use super::workgroup::Workgroup;

/// An invocation that leaves a barrier, and what the barrier where it waited orders.
#[derive(Clone, Copy, Debug)]
pub(super) struct BarrierMember {
    pub(super) local: u32,
    pub(super) order: MemoryOrder,
}

/// What was accepted although the model does not guarantee it: the local index of an invocation.
pub(super) type Idiom = Option<u32>;

impl Workgroup {
    /// The members, all of the invocations of `group` if `complete`, leave their barriers together. Their accesses are
    /// below `now`. With `lenient`, a fence just before the barrier may have acquired what the barrier brings.
    pub(super) fn meet(
        &mut self,
        members: &[BarrierMember],
        group: Group,
        complete: bool,
        now: u32,
        lenient: bool,
    ) -> Idiom {
        if group == Group::Workgroup {
            self.met = now;
        }
        let mut idiom = None;
        for class in 0..CLASSES {
            if complete && self.untouched() && members.iter().all(|member| member.full(group, class)) {
                self.know(group, class, now);
                continue;
            }
            let mut nodes = std::mem::take(&mut self.nodes);
            let gathered = self.gather(members, group, (complete, now), class, &mut nodes);
            self.nodes = nodes;
            if let Some((everyone, gathered)) = gathered {
                let acquires = |member: &BarrierMember| self.acquires(member, group, class, lenient);
                let acquired: Vec<_> = members.iter().map(acquires).collect();
                if let Some(at) = acquired.iter().position(|how| *how == How::ByFenceBefore) {
                    idiom = idiom.or(Some(members[at].local));
                }
                self.distribute(members, &acquired, group, class, (everyone, now), gathered);
            }
        }
        idiom
    }

    /// Whether [`makes_all_known`] says all of a barrier at which the whole workgroup waits: no invocation has a fence
    /// or a record.
    pub(super) fn is_simple(&self, order: MemoryOrder) -> bool {
        self.untouched() && makes_all_known(order)
    }

    /// [`Workgroup::meet`] of the whole workgroup at such a barrier.
    pub(super) fn meet_all(&mut self, order: MemoryOrder, now: u32) {
        self.met = now;
        order.releases.iter().for_each(|class| self.know(Group::Workgroup, class, now));
    }

    /// All of the group know its accesses below `now`.
    fn know(&mut self, group: Group, class: usize, now: u32) {
        match group {
            Group::Workgroup => self.known[class] = now,
            Group::Subgroup(subgroup) => self.know_in_subgroup(subgroup, class, now),
            Group::Invocation(_) => {}
        }
    }

    /// What the members release together, if any does; and whether that includes all accesses of the group.
    fn gather(
        &self,
        members: &[BarrierMember],
        group: Group,
        (complete, now): (bool, u32),
        class: usize,
        nodes: &mut NodeTable,
    ) -> Option<(bool, Record)> {
        let mut records: Record = None;
        let mut parts = Vec::with_capacity(members.len());
        for member in members {
            if let Some((epoch, record)) = self.released(member, group, class, now) {
                known::join(&mut records, record, nodes);
                parts.push((member.local, epoch));
            }
        }
        if parts.is_empty() {
            return None;
        }
        let everyone = complete && parts.len() == members.len() && parts.iter().all(|(_, epoch)| *epoch == now);
        if everyone {
            return Some((true, records));
        }
        let mut known = Known::default();
        for part in parts.chunk_by(|a, b| self.layout.subgroup(a.0) == self.layout.subgroup(b.0)) {
            let subgroup = Group::Subgroup(self.layout.subgroup(part[0].0));
            if part.len() == self.layout.members(subgroup).len() {
                let epoch = part.iter().map(|part| part.1).min().unwrap_or(0);
                known.add(self.slot, subgroup, epoch, nodes);
            }
            part.iter().for_each(|&(local, epoch)| known.add(self.slot, Group::Invocation(local), epoch, nodes));
        }
        known::join(&mut records, &Some(known), nodes);
        Some((false, records))
    }

    /// What the member releases: its accesses below an epoch, and a record.
    fn released(&self, member: &BarrierMember, group: Group, class: usize, now: u32) -> Option<(u32, &Record)> {
        let agent = &self.agents[member.local as usize];
        let reaches = |order: MemoryOrder| order.releases.contains(class) && order.scope >= scope_of(group);
        if reaches(member.order) {
            return Some((now, &agent.known[class]));
        }
        let fences = agent.fences.iter().enumerate().filter(|(_, fence)| reaches(fence.order));
        let (at, fence) = fences.max_by_key(|(_, fence)| fence.epoch)?;
        // Without an access since then, what precedes the fence is all that precedes the barrier.
        let last = at + 1 == agent.fences.len() && !self.accessed[member.local as usize];
        Some((if last { now } else { fence.epoch }, &fence.known[class]))
    }

    /// How the member acquires.
    fn acquires(&self, member: &BarrierMember, group: Group, class: usize, lenient: bool) -> How {
        let local = member.local as usize;
        let reaches = |order: MemoryOrder| order.acquires.contains(class) && order.scope >= scope_of(group);
        let before = self.agents[local].fences.last().filter(|_| lenient && !self.accessed[local]);
        if reaches(member.order) {
            How::ByBarrier
        } else if before.is_some_and(|fence| reaches(fence.order)) {
            How::ByFenceBefore
        } else {
            How::Later
        }
    }

    /// The members acquire what was gathered: all accesses of the group, if the flag before `now` is set, and a record.
    fn distribute(
        &mut self,
        members: &[BarrierMember],
        acquired: &[How],
        group: Group,
        class: usize,
        (everyone, now): (bool, u32),
        mut record: Record,
    ) {
        let at_once = everyone && acquired.iter().all(|how| *how != How::Later);
        let full = at_once && members.iter().all(|member| member.full(group, class));
        if at_once {
            self.know(group, class, now);
            if group == Group::Workgroup {
                record = Known::without(record, self.slot, now, &mut self.nodes);
            }
        } else if everyone {
            let mut known = Known::default();
            known.add(self.slot, group, now, &mut self.nodes);
            known::join(&mut record, &Some(known), &mut self.nodes);
        }
        if at_once && group == Group::Workgroup && self.untouched() || record.is_none() && at_once {
            return;
        }
        for (member, how) in members.iter().zip(acquired) {
            self.agent(member.local);
            let (agent, nodes) = (&mut self.agents[member.local as usize], &mut self.nodes);
            match how {
                // What each member knew is in what was gathered.
                How::ByBarrier if full => agent.known[class].clone_from(&record),
                How::ByBarrier | How::ByFenceBefore => known::join(&mut agent.known[class], &record, nodes),
                How::Later => known::join(&mut agent.met[class], &record, nodes),
            }
        }
    }
}

/// Whether a barrier at which the whole workgroup waits makes each class known to all of it, or orders nothing of it.
pub(super) fn makes_all_known(order: MemoryOrder) -> bool {
    (0..CLASSES).all(|class| {
        let [releases, acquires] = [order.releases, order.acquires].map(|classes| classes.contains(class));
        !releases && !acquires || releases && acquires && order.scope >= MemoryScope::Workgroup
    })
}

/// How a member of a barrier acquires a class.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum How {
    /// The barrier does.
    ByBarrier,
    /// A fence did just before the barrier, which is accepted as if it came after.
    ByFenceBefore,
    /// Perhaps a fence will.
    Later,
}

impl BarrierMember {
    /// Whether the barrier orders the class in full.
    fn full(&self, group: Group, class: usize) -> bool {
        let order = self.order;
        order.releases.contains(class) && order.acquires.contains(class) && order.scope >= scope_of(group)
    }
}

/// The scope that includes a group.
fn scope_of(group: Group) -> MemoryScope {
    match group {
        Group::Invocation(_) => MemoryScope::Invocation,
        Group::Subgroup(_) => MemoryScope::Subgroup,
        Group::Workgroup => MemoryScope::Workgroup,
    }
}
