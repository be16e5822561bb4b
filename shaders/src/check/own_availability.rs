//! Barriers without `MakeAvailable` and `MakeVisible` in kernels whose accesses make their own values available and
//! visible, as those to `coherent` variables do: for the detector they have both.
//!
//! The detector calls a barrier full only with both. But an availability operation changes nothing for values that are
//! available to its scope already, nor does a visibility operation where each read makes values visible itself, from a
//! scope as large; `docs/checked-mode-internals.md` has the proof. Replays run the kernel as it is.

use super::attributes::{CLASSES, MemoryOrder, completed, index, memory_scope};
use super::history::MemoryScope;
use crate::ir::{Kernel, Scope, Semantics, SiteAction};

/// Completes the semantics of each control barrier, memory barrier and atomic all of whose storage classes are accessed
/// so, to its scope or a larger one.
///
/// Nothing changes in a kernel without non-private accesses: profile `common` lets barriers order its private ones, and
/// asks for all of their semantics.
pub fn complete_semantics(kernel: &mut Kernel) {
    let is_non_private = |action: &SiteAction| match action {
        SiteAction::Read(access) | SiteAction::Write(access) => access.non_private || access.scope.is_some(),
        SiteAction::Atomic { .. } | SiteAction::Fence { .. } | SiteAction::Barrier { .. } => false,
    };
    if !kernel.sites.values().any(|site| is_non_private(&site.action)) {
        return;
    }
    let mut least = [MemoryScope::Device; CLASSES];
    for site in kernel.sites.values() {
        let (class, scope) = match site.action {
            // A private access is ordered by no barrier.
            SiteAction::Read(_) | SiteAction::Write(_) if !is_non_private(&site.action) => continue,
            SiteAction::Read(access) | SiteAction::Write(access) => (access.class, access.scope),
            // An atomic makes its value available and visible to its own scope.
            SiteAction::Atomic { class, scope, .. } => (class, Some(scope)),
            SiteAction::Fence { .. } | SiteAction::Barrier { .. } => continue,
        };
        let own = scope.map_or(MemoryScope::Invocation, memory_scope);
        least[index(class)] = least[index(class)].min(own);
    }
    let complete = |scope: Scope, semantics: &mut Semantics| {
        let order = MemoryOrder::new(scope, *semantics);
        if order.classes.iter().all(|class| least[class] >= order.scope) {
            *semantics = completed(*semantics);
        }
    };
    for site in kernel.sites.values_mut() {
        match &mut site.action {
            SiteAction::Read(_) | SiteAction::Write(_) => {}
            SiteAction::Atomic { scope, semantics, unequal, .. } => {
                complete(*scope, semantics);
                complete(*scope, unequal);
            }
            SiteAction::Fence { scope, semantics } | SiteAction::Barrier { memory: scope, semantics, .. } => {
                complete(*scope, semantics);
            }
        }
    }
}
