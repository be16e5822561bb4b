//! Sites as the detector uses them: scopes in levels, semantics as the classes that they order in full.

use crate::ir::{AtomicOp, Scope, Semantics, SiteAction, SiteData, StorageClass};

use super::history::MemoryScope;

/// Number of storage classes: index of the arrays by class.
pub(super) const CLASSES: usize = 3;

const ALL: [StorageClass; CLASSES] = [StorageClass::Uniform, StorageClass::Workgroup, StorageClass::Image];

/// The index of a class.
pub(super) fn index(class: StorageClass) -> usize {
    class as usize
}

const ACQUIRE: u32 = 0x2;
const RELEASE: u32 = 0x4;
const ACQUIRE_RELEASE: u32 = 0x8;
const SEQUENTIALLY_CONSISTENT: u32 = 0x10;
const MAKE_AVAILABLE: u32 = 0x2000;
const MAKE_VISIBLE: u32 = 0x4000;

/// A set of storage classes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Classes(u8);

impl Classes {
    pub(super) fn contains(self, class: usize) -> bool {
        self.0 >> class & 1 != 0
    }

    pub(super) fn is_empty(self) -> bool {
        self.0 == 0
    }

    /// Whether all of them are in another set.
    pub(super) fn are_in(self, other: Self) -> bool {
        self.0 & !other.0 == 0
    }

    /// Those that are in one of the sets.
    pub(super) fn or(self, other: Self) -> Self {
        Self(self.0 | other.0)
    }

    /// Those that are in both sets.
    pub(super) fn and(self, other: Self) -> Self {
        Self(self.0 & other.0)
    }

    pub(super) fn iter(self) -> impl Iterator<Item = usize> {
        (0..CLASSES).filter(move |&class| self.contains(class))
    }
}

impl FromIterator<usize> for Classes {
    fn from_iter<I: IntoIterator<Item = usize>>(classes: I) -> Self {
        Self(classes.into_iter().fold(0, |set, class| set | 1 << class))
    }
}

/// What an instruction orders.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct MemoryOrder {
    /// Memory scope.
    pub(super) scope: MemoryScope,
    /// The classes of its semantics.
    pub(super) classes: Classes,
    /// Those of them that it releases and makes available.
    pub(super) releases: Classes,
    /// Those of them that it acquires and makes visible.
    pub(super) acquires: Classes,
}

impl MemoryOrder {
    pub(super) fn new(scope: Scope, Semantics(bits): Semantics) -> Self {
        let in_semantics = |class: &usize| bits & ALL[*class].bit() != 0;
        let classes = Classes((0..CLASSES).filter(in_semantics).fold(0, |set, class| set | 1 << class));
        let has = |order: u32, made: u32| {
            let ordered = bits & (order | ACQUIRE_RELEASE | SEQUENTIALLY_CONSISTENT) != 0;
            if ordered && bits & made != 0 { classes } else { Classes::default() }
        };
        Self {
            scope: memory_scope(scope),
            classes,
            releases: has(RELEASE, MAKE_AVAILABLE),
            acquires: has(ACQUIRE, MAKE_VISIBLE),
        }
    }
}

/// A scope as observers know it. All invocations of a device are of one queue family, and the host is none of them.
pub(super) fn memory_scope(scope: Scope) -> MemoryScope {
    match scope {
        Scope::Invocation => MemoryScope::Invocation,
        Scope::Subgroup => MemoryScope::Subgroup,
        Scope::Workgroup => MemoryScope::Workgroup,
        Scope::QueueFamily | Scope::Device | Scope::CrossDevice => MemoryScope::Device,
    }
}

/// What a site does.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Action {
    /// A plain access.
    Access { class: usize, private: bool, writes: bool },
    /// An atomic operation.
    Atomic { class: usize, reads: bool, order: MemoryOrder, unequal: MemoryOrder },
    /// A memory barrier.
    Fence(MemoryOrder),
    /// A control barrier.
    Barrier { order: MemoryOrder },
}

impl Action {
    fn of(action: &SiteAction) -> Self {
        match *action {
            SiteAction::Read(site) | SiteAction::Write(site) => {
                let writes = matches!(action, SiteAction::Write(_));
                Self::Access { class: index(site.class), private: site.is_private(), writes }
            }
            SiteAction::Atomic { op, class, scope, semantics, unequal } => Self::Atomic {
                class: index(class),
                reads: !op.is_store(),
                order: MemoryOrder::new(scope, semantics),
                unequal: MemoryOrder::new(scope, if op == AtomicOp::CompareExchange { unequal } else { semantics }),
            },
            SiteAction::Fence { scope, semantics } => Self::Fence(MemoryOrder::new(scope, semantics)),
            SiteAction::Barrier { memory, semantics, .. } => {
                Self::Barrier { order: MemoryOrder::new(memory, semantics) }
            }
        }
    }
}

/// Whether an action is an atomic whose scope is that one or a larger one.
pub(crate) fn is_atomic_of(action: &SiteAction, min: Scope) -> bool {
    matches!(action, SiteAction::Atomic { scope, .. } if memory_scope(*scope) >= memory_scope(min))
}

/// Whether an action is an atomic that neither releases nor acquires. A release fence before it, or an acquire fence
/// after it, may nevertheless order by it.
pub(crate) fn is_relaxed(action: &SiteAction) -> bool {
    let Action::Atomic { order, unequal, .. } = Action::of(action) else { return false };
    [order, unequal].iter().all(|order| order.releases.is_empty() && order.acquires.is_empty())
}

/// What a control barrier of the workgroup orders; `None` if it is another action.
pub(super) fn order_of_barrier(action: &SiteAction) -> Option<MemoryOrder> {
    let SiteAction::Barrier { execution, .. } = action else { return None };
    let Action::Barrier { order } = Action::of(action) else { return None };
    (memory_scope(*execution) >= MemoryScope::Workgroup).then_some(order)
}

/// What a fence orders; `None` if it is another action.
pub(super) fn order_of_fence(action: &SiteAction) -> Option<MemoryOrder> {
    match Action::of(action) {
        Action::Fence(order) => Some(order),
        _ => None,
    }
}

/// The semantics of a barrier that releases and acquires these classes in full.
pub(super) fn full_semantics(classes: Classes) -> Semantics {
    let bits = classes.iter().fold(0, |bits, class| bits | ALL[class].bit());
    Semantics(ACQUIRE_RELEASE | MAKE_AVAILABLE | MAKE_VISIBLE | bits)
}

/// The same semantics, which make available what they release and make visible what they acquire.
pub(super) fn completed(Semantics(bits): Semantics) -> Semantics {
    let has = |order: u32, made: u32| {
        let ordered = bits & (order | ACQUIRE_RELEASE | SEQUENTIALLY_CONSISTENT) != 0;
        if ordered { made } else { 0 }
    };
    Semantics(bits | has(RELEASE, MAKE_AVAILABLE) | has(ACQUIRE, MAKE_VISIBLE))
}

/// The class of the memory that an action accesses, as a set.
pub(super) fn classes_of_access(action: &SiteAction) -> Classes {
    match Action::of(action) {
        Action::Access { class, .. } | Action::Atomic { class, .. } => std::iter::once(class).collect(),
        Action::Fence(_) | Action::Barrier { .. } => Classes::default(),
    }
}

/// Whether a control barrier of the workgroup orders all non-private accesses to workgroup memory before it with those
/// after it.
pub(crate) fn orders_workgroup_memory(action: &SiteAction) -> bool {
    let class = index(StorageClass::Workgroup);
    order_of_barrier(action).is_some_and(|order| {
        let full = order.releases.contains(class) && order.acquires.contains(class);
        full && order.scope >= MemoryScope::Workgroup
    })
}

/// The sites of a kernel.
pub(super) fn actions<'a>(sites: impl Iterator<Item = &'a SiteData>) -> Vec<Action> {
    sites.map(|site| Action::of(&site.action)).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn semantics_order_a_class_in_full_only_with_every_bit() {
        let order = |bits| MemoryOrder::new(Scope::Workgroup, Semantics(bits));
        let full = order(0x8 | 0x40 | 0x6000);
        assert!(full.releases.contains(0) && full.acquires.contains(0) && !full.releases.contains(1));
        assert!(order(0x8 | 0x40).releases.is_empty(), "nothing is made available");
        assert!(order(0x8 | 0x40).classes.contains(0));
        let release = order(0x4 | 0x100 | 0x800 | 0x6000);
        assert_eq!(release.releases.iter().collect::<Vec<_>>(), [1, 2]);
        assert!(release.acquires.is_empty());
    }
}
