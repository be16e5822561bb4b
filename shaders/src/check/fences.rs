//! Memory barriers beside control barriers of the workgroup, as in `memoryBarrierBuffer(); barrier();
//! memoryBarrierBuffer();`: for the detector all of them are one control barrier, which machine code settles without a
//! call.
//!
//! A release fence before the barrier and an acquire fence after it, with no access between them, are the same full
//! link between all invocations as the barrier is with their storage classes. Where it has all classes of the fences,
//! they order nothing else, unless an atomic carries what they release or brings what they acquire. If that holds for
//! all fences of a kernel, none is left; `docs/checked-mode-internals.md` has the proof. Replays run the kernel as it
//! is.

use std::collections::{BTreeMap, HashSet};

use super::attributes::{self, CLASSES, Classes, MemoryOrder};
use super::history::MemoryScope;
use crate::ir::{Inst, InstData, Kernel, Place, Site, SiteAction, VariableSpace};

/// Of the kernel, what decides which fences are needed.
struct FenceNeeds {
    /// Classes of memory that no instruction accesses: no order of it matters.
    unused: Classes,
    /// Those that atomics access.
    atomic: Classes,
}

/// Removes the syncs of all fences of the kernel and gives the control barriers beside them the storage classes, if
/// these barriers can stand for all of them. The instructions stay.
pub fn merge_fences(kernel: &mut Kernel) {
    let all = || kernel.layout.iter().flat_map(|&block| &kernel.blocks[block].insts);
    let fences: Vec<Inst> = all().copied().filter(|&inst| fence(kernel, inst).is_some()).collect();
    if fences.is_empty() {
        return;
    }
    let needs = FenceNeeds::new(kernel);
    let mut redundant = HashSet::new();
    // What the barriers of a site become: all the same, or nothing is merged.
    let mut becomes: BTreeMap<Site, Option<Classes>> = BTreeMap::new();
    for insts in kernel.layout.iter().map(|&block| &kernel.blocks[block].insts) {
        for (at, &inst) in insts.iter().enumerate() {
            let InstData::Sync { site, place: None, .. } = kernel.insts[inst] else { continue };
            let Some(own) = attributes::order_of_barrier(&kernel.sites[site].action) else { continue };
            let classes = merge(kernel, &needs, own, (&insts[..at], &insts[at + 1..]), &mut redundant);
            if *becomes.entry(site).or_insert(classes) != classes {
                return;
            }
        }
    }
    // Beside a fence that stays, nothing would be gained: its kernel has calls for all checks.
    if !fences.iter().all(|fence| redundant.contains(fence)) {
        return;
    }
    for (site, classes) in becomes {
        if let (SiteAction::Barrier { semantics, .. }, Some(classes)) = (&mut kernel.sites[site].action, classes) {
            *semantics = attributes::full_semantics(classes);
        }
    }
    for number in 0..kernel.layout.len() {
        let block = kernel.layout[number];
        kernel.blocks[block].insts.retain(|inst| !redundant.contains(inst));
    }
}

impl FenceNeeds {
    fn new(kernel: &Kernel) -> Self {
        let sites = || kernel.sites.values().map(|site| &site.action);
        let used = sites().map(attributes::classes_of_access).fold(Classes::default(), Classes::or);
        let atomics = sites().filter(|action| matches!(action, SiteAction::Atomic { .. }));
        Self {
            unused: (0..CLASSES).filter(|&class| !used.contains(class)).collect(),
            atomic: atomics.map(attributes::classes_of_access).fold(Classes::default(), Classes::or),
        }
    }
}

/// The classes that a barrier orders in full together with the fences in its block before and after it, for which it
/// can stand: those are added to `redundant`. `None` if it only stands for itself.
fn merge(
    kernel: &Kernel,
    needs: &FenceNeeds,
    own: MemoryOrder,
    (before, after): (&[Inst], &[Inst]),
    redundant: &mut HashSet<Inst>,
) -> Option<Classes> {
    let before: Vec<_> = fences(kernel, before.iter().rev()).collect();
    let after: Vec<_> = fences(kernel, after.iter()).collect();
    // With a smaller scope a barrier makes nothing known to the workgroup.
    if own.scope < MemoryScope::Workgroup || before.is_empty() && after.is_empty() {
        return None;
    }
    let with = |own: Classes, fences: &[(Inst, MemoryOrder)], of: fn(&MemoryOrder) -> Classes| {
        let wide = fences.iter().filter(|(_, order)| order.scope >= MemoryScope::Workgroup);
        wide.map(|(_, order)| of(order)).fold(own, Classes::or)
    };
    let released = with(own.releases, &before, |order| order.releases);
    let acquired = with(own.acquires, &after, |order| order.acquires);
    let classes = released.and(acquired);
    let known = classes.or(needs.unused);
    // A barrier that orders a class in part stays as it is.
    if !own.classes.are_in(known) {
        return None;
    }
    let is_redundant = |order: &MemoryOrder| order.classes.are_in(known) && order.classes.and(needs.atomic).is_empty();
    let merged = before.iter().chain(&after).filter(|(_, order)| is_redundant(order));
    redundant.extend(merged.map(|(fence, _)| *fence));
    Some(classes)
}

/// The syncs of fences that follow each other there, with no access to memory of others between them.
fn fences<'k>(
    kernel: &'k Kernel,
    insts: impl Iterator<Item = &'k Inst> + 'k,
) -> impl Iterator<Item = (Inst, MemoryOrder)> + 'k {
    let next = move |&inst: &Inst| match kernel.insts[inst] {
        InstData::Sync { .. } => fence(kernel, inst).map(|order| Some((inst, order))),
        InstData::Const { .. } | InstData::Pure { .. } | InstData::Fence { .. } | InstData::Barrier { .. } => {
            Some(None)
        }
        InstData::Load { ref place, .. } | InstData::Store { ref place, .. } if is_own(kernel, place) => Some(None),
        _ => None,
    };
    insts.map_while(next).flatten()
}

/// What the sync of a fence orders; `None` if it is another instruction.
fn fence(kernel: &Kernel, inst: Inst) -> Option<MemoryOrder> {
    let InstData::Sync { site, place: None, .. } = kernel.insts[inst] else { return None };
    attributes::order_of_fence(&kernel.sites[site].action)
}

/// Whether no other invocation accesses the memory.
fn is_own(kernel: &Kernel, place: &Place) -> bool {
    matches!(*place, Place::Variable { variable, .. } if kernel.variables[variable].space != VariableSpace::Workgroup)
}
