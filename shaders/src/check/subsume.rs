//! Removes checks that another check of the same block makes redundant: a load's, if the same invocation checks a store
//! to the same memory before the next synchronization, and the later one of two equal checks.
//!
//! Whatever races with the load in its dispatch races with the store, too, as far as the load has no weaker attributes
//! than the store. Reports then name the load: replays run the kernel with all checks. Between commands a read needs
//! what a write does not, so [`Kernel::updates`] has the stores that stand for loads.

use std::collections::HashSet;

use super::written::binding_of;
use crate::ir::{AccessSite, Inst, InstData, Kernel, Place, Scope, Site, SiteAction, Value, Width};

/// Removes redundant checks. Places are compared by their values, so value numbering comes first
/// ([`NUMBERING`](crate::opt::NUMBERING)).
pub fn subsume(kernel: &mut Kernel) {
    for number in 0..kernel.layout.len() {
        let block = kernel.layout[number];
        let mut insts = std::mem::take(&mut kernel.blocks[block].insts);
        drop_repeated(kernel, &mut insts);
        drop_loads(kernel, &mut insts);
        kernel.blocks[block].insts = insts;
    }
}

/// The memory of a check: two checks with one key are of the same bytes.
type MemoryKey = ([Option<Value>; 2], Option<u32>, u32);

fn memory(place: &Place, width: Width) -> MemoryKey {
    let values = match *place {
        Place::Buffer { buffer, offset, .. } => ([Some(buffer), Some(offset)], None),
        Place::Push { offset } => ([None, Some(offset)], None),
        Place::Variable { variable, offset } => ([None, Some(offset)], Some(variable.as_u32())),
    };
    (values.0, values.1, width.bytes())
}

/// Removes each check that comes after an equal one, with no synchronization between them. A read is not ordered after
/// what its own invocation wrote through another descriptor, so that one after such a write has a check of its own.
fn drop_repeated(kernel: &Kernel, insts: &mut Vec<Inst>) {
    let mut known: HashSet<(SiteAction, MemoryKey)> = HashSet::new();
    let is_apart = |other| binding_of(kernel, other).is_some_and(|binding| kernel.inputs_apart.contains(binding));
    let forget = |known: &mut HashSet<(SiteAction, MemoryKey)>, written: Value| {
        known.retain(|(action, (values, ..))| {
            let fits = values[0].is_none_or(|other| other == written || is_apart(other));
            fits || !matches!(action, SiteAction::Read(_))
        });
    };
    insts.retain(|&inst| match kernel.insts[inst] {
        InstData::Check { site, ref place, width } => {
            let action = kernel.sites[site].action;
            if let (SiteAction::Write(_), Place::Buffer { buffer, .. }) = (action, place) {
                forget(&mut known, *buffer);
            }
            known.insert((action, memory(place, width)))
        }
        InstData::CheckImage { site, image, .. } => {
            if matches!(kernel.sites[site].action, SiteAction::Write(_)) {
                forget(&mut known, image);
            }
            true
        }
        InstData::Sync { .. } => {
            known.clear();
            true
        }
        _ => true,
    });
}

/// Removes each check of a load that a check of a store follows, with no synchronization between them.
fn drop_loads(kernel: &mut Kernel, insts: &mut Vec<Inst>) {
    let mut stored: Vec<(MemoryKey, AccessSite, Site)> = Vec::new();
    insts.reverse();
    insts.retain(|&inst| match kernel.insts[inst] {
        InstData::Check { site, ref place, width } => {
            let of = memory(place, width);
            match kernel.sites[site].action {
                SiteAction::Write(store) => {
                    stored.push((of, store, site));
                    true
                }
                SiteAction::Read(load) => {
                    let known = stored.iter().find(|(at, store, _)| *at == of && is_as_strong(load, *store));
                    known.is_none_or(|&(.., store)| {
                        kernel.updates.insert(store);
                        false
                    })
                }
                _ => true,
            }
        }
        InstData::Sync { .. } => {
            stored.clear();
            true
        }
        _ => true,
    });
    insts.reverse();
}

/// Whether a load is ordered by all that orders a store.
fn is_as_strong(load: AccessSite, store: AccessSite) -> bool {
    let size = |scope: Option<Scope>| match scope {
        None => 0,
        Some(Scope::Invocation) => 1,
        Some(Scope::Subgroup) => 2,
        Some(Scope::Workgroup) => 3,
        Some(Scope::QueueFamily) => 4,
        Some(Scope::Device) => 5,
        Some(Scope::CrossDevice) => 6,
    };
    load.class == store.class
        && (load.non_private || !store.non_private)
        && load.volatile >= store.volatile
        && size(load.scope) >= size(store.scope)
}
