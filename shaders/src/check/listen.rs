//! The detector as an observer: accesses, atomics and fences in their order, and the barriers where invocations meet.

use cranelift_entity::EntityRef as _;
use smallvec::SmallVec;

use super::attributes::Action;
use super::barrier::BarrierMember;
use super::candidate::NoteKind;
use super::cells::Group;
use super::detector::Detector;
use super::inline::InlineMemory;
use super::observer::{Invocation, Lanes, Observer, Target};
use super::record::What;
use crate::guest::GuestSlice;
use crate::ir::{InlineChecks, Scope, Site};

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
        self.bound_records();
        self.publish();
        self.may_settle(site);
    }

    fn fence(&mut self, by: Invocation, site: Site) {
        self.enter(by.workgroup);
        let Some(&Action::Fence(order)) = self.actions.get(site.index()) else { return };
        // Machine code does not note for each invocation that it made an access since its last fence.
        debug_assert!(self.inlined.is_none(), "a kernel with fences has calls for all checks");
        self.workgroup.acquire_fence(by.local, order);
        if !order.releases.is_empty() {
            let epoch = self.tick();
            self.workgroup.release_fence(by.local, order, epoch);
        }
        self.bound_records();
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
        let mut arrived: SmallVec<[(Site, Vec<BarrierMember>); 1]> = SmallVec::new();
        let mut missing = None;
        for local in range.clone() {
            let Some(site) = self.workgroup.waits[local as usize].take() else {
                missing = missing.or(Some(local));
                continue;
            };
            let Some(&Action::Barrier { order }) = self.actions.get(site.index()) else { continue };
            let member = BarrierMember { local, order };
            match arrived.iter_mut().find(|group| group.0 == site) {
                Some(group) => group.1.push(member),
                None => {
                    let mut members = Vec::with_capacity(range.len());
                    members.push(member);
                    arrived.push((site, members));
                }
            }
        }
        if let (Some(waits), Some(local)) = (arrived.first(), missing) {
            self.non_uniform(waits.1[0].local, waits.0, (local, None));
        }
        for pair in arrived.windows(2) {
            self.non_uniform(pair[0].1[0].local, pair[0].0, (pair[1].1[0].local, Some(pair[1].0)));
        }
        for (site, members) in &arrived {
            let complete = members.len() == range.len();
            if let Some(local) = self.workgroup.meet(members, group, complete, now, self.lenient) {
                self.note(NoteKind::AcquireBeforeBarrier, Invocation { workgroup, local }, *site);
            }
        }
        self.bound_records();
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
}
