//! Vector clocks: for each agent, which accesses of others are ordered before its next one.
//!
//! A record's copies share what they have in common: all invocations that leave a barrier have the same one, and an
//! atomic adds a few entries to that of the one before. Its entry `(slot, group) → epoch` says that the accesses of
//! the group's invocations whose cells are below the epoch are known. Forgetting an entry is always allowed, since a
//! record only ever claims order.

use super::cells::{Group, Slot};
use super::map::Map;
use super::nodes::NodeTable;

/// Entries of a record; what is above is forgotten.
pub(super) const MAX_ENTRIES: usize = 1 << 16;

/// The entries.
#[derive(Clone, Debug, Default)]
pub(super) struct Known {
    entries: Map,
}

/// A record, or nothing known.
pub(super) type Record = Option<Known>;

/// The key of a group of a workgroup. Those of a workgroup are consecutive.
fn key(slot: Slot, group: Group) -> u64 {
    let code = match group {
        Group::Invocation(local) => local,
        Group::Subgroup(subgroup) => 1 << 31 | subgroup,
        Group::Workgroup => u32::MAX,
    };
    u64::from(slot) << 32 | u64::from(code)
}

impl Known {
    /// The accesses of `group` below `epoch`.
    pub(super) fn add(&mut self, slot: Slot, group: Group, epoch: u32, nodes: &mut NodeTable) {
        if self.entries.len() < MAX_ENTRIES || self.exactly(slot, group) > 0 {
            self.entries.raise(key(slot, group), epoch, nodes);
        } else {
            nodes.forget_some();
        }
    }

    /// The epoch below which accesses of exactly this group are known.
    fn exactly(&self, slot: Slot, group: Group) -> u32 {
        self.entries.get(key(slot, group)).unwrap_or(0)
    }

    /// The epoch below which accesses of the group, which is in `subgroup` if that is given, are known.
    pub(super) fn upto(&self, slot: Slot, group: Group, subgroup: Option<u32>) -> u32 {
        let own = self.exactly(slot, group);
        let in_subgroup = subgroup.map_or(0, |subgroup| self.exactly(slot, Group::Subgroup(subgroup)));
        own.max(in_subgroup).max(self.exactly(slot, Group::Workgroup))
    }

    /// Both records in one; the larger one if that has too many entries.
    fn union(&self, other: &Self, nodes: &mut NodeTable) -> Self {
        let entries = self.entries.union(&other.entries, nodes);
        if entries.len() <= MAX_ENTRIES {
            return Self { entries };
        }
        nodes.forget_some();
        if self.entries.len() >= other.entries.len() { self.clone() } else { other.clone() }
    }

    /// Without what is known of the workgroup `slot` below `epoch`, which is known anyway.
    pub(super) fn without(record: Record, slot: Slot, epoch: u32, nodes: &mut NodeTable) -> Record {
        let [first, last] = [Group::Invocation(0), Group::Workgroup].map(|group| key(slot, group));
        let entries = record?.entries.without(first, last, epoch, nodes);
        (!entries.is_empty()).then_some(Self { entries })
    }

    /// Number of entries.
    #[cfg(test)]
    pub(super) fn len(&self) -> usize {
        self.entries.len()
    }
}

/// Joins `other` to `record`.
pub(super) fn join(record: &mut Record, other: &Record, nodes: &mut NodeTable) {
    let Some(theirs) = other else { return };
    *record = Some(match record {
        None => theirs.clone(),
        Some(mine) => mine.union(theirs, nodes),
    });
}

#[cfg(test)]
mod tests {
    use super::*;

    fn known(entries: &[(Slot, Group, u32)]) -> Record {
        let mut known = Known::default();
        entries.iter().for_each(|&(slot, group, epoch)| known.add(slot, group, epoch, &mut NodeTable::default()));
        Some(known)
    }

    #[test]
    fn a_group_is_known_through_every_group_that_contains_it() {
        let record = known(&[(1, Group::Invocation(3), 10), (1, Group::Subgroup(0), 20), (2, Group::Workgroup, 30)]);
        let upto = |slot, group, subgroup| record.as_ref().unwrap().upto(slot, group, subgroup);
        assert_eq!(upto(1, Group::Invocation(3), Some(0)), 20);
        assert_eq!(upto(1, Group::Subgroup(0), Some(0)), 20);
        assert_eq!(upto(1, Group::Workgroup, None), 0);
        assert_eq!(upto(1, Group::Invocation(17), Some(1)), 0);
        assert_eq!(upto(2, Group::Invocation(17), Some(1)), 30);
    }

    #[test]
    fn a_union_has_the_higher_epoch_of_each_group() {
        let mut record = known(&[(1, Group::Workgroup, 10), (3, Group::Workgroup, 5)]);
        let other = known(&[(1, Group::Workgroup, 4), (2, Group::Workgroup, 7), (3, Group::Workgroup, 6)]);
        join(&mut record, &other, &mut NodeTable::default());
        let epochs = |record: &Record| [1, 2, 3].map(|slot| record.as_ref().unwrap().exactly(slot, Group::Workgroup));
        assert_eq!(epochs(&record), [10, 7, 6]);
        assert_eq!(epochs(&Known::without(record.clone(), 3, 6, &mut NodeTable::default())), [10, 7, 0]);
        assert_eq!(epochs(&Known::without(record, 3, 5, &mut NodeTable::default())), [10, 7, 6]);
    }

    #[test]
    fn entries_above_the_limit_are_forgotten() {
        let list: Vec<_> = (0..MAX_ENTRIES as u32 + 10).map(|slot| (slot, Group::Workgroup, 1)).collect();
        let mut record = known(&list);
        assert_eq!(record.as_ref().unwrap().len(), MAX_ENTRIES);
        join(&mut record, &known(&[(MAX_ENTRIES as u32 + 20, Group::Workgroup, 1)]), &mut NodeTable::default());
        assert_eq!(record.unwrap().len(), MAX_ENTRIES);
    }
}
