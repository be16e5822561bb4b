//! What an agent knows of others: which of their accesses are ordered before its next one.
//!
//! A record is immutable and shared: all invocations that leave a barrier have the same one. Its entry
//! `(slot, group) → number` says that the accesses of the group's invocations whose cells are below the number are
//! known. Forgetting an entry is always allowed, since a record only ever claims order.

use std::sync::Arc;

use super::cells::{Group, Slot};

/// Entries of a record; what is above is forgotten.
pub(super) const MAX_ENTRIES: usize = 4096;

/// A sorted list of entries.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Known {
    entries: Vec<((Slot, Group), u32)>,
}

/// A record, or nothing known.
pub(super) type Record = Option<Arc<Known>>;

impl Known {
    /// The accesses of `group` below `number`.
    pub(super) fn add(&mut self, slot: Slot, group: Group, number: u32) {
        match self.entries.binary_search_by_key(&(slot, group), |entry| entry.0) {
            Ok(at) => self.entries[at].1 = self.entries[at].1.max(number),
            Err(at) if self.entries.len() < MAX_ENTRIES => self.entries.insert(at, ((slot, group), number)),
            Err(_) => {}
        }
    }

    /// The number below which accesses of exactly this group are known.
    fn exactly(&self, slot: Slot, group: Group) -> u32 {
        let found = self.entries.binary_search_by_key(&(slot, group), |entry| entry.0);
        found.map_or(0, |at| self.entries[at].1)
    }

    /// The number below which accesses of the group, which is in `subgroup` if that is given, are known.
    pub(super) fn upto(&self, slot: Slot, group: Group, subgroup: Option<u32>) -> u32 {
        if self.entries.is_empty() {
            return 0;
        }
        let own = self.exactly(slot, group);
        let in_subgroup = subgroup.map_or(0, |subgroup| self.exactly(slot, Group::Subgroup(subgroup)));
        own.max(in_subgroup).max(self.exactly(slot, Group::Workgroup))
    }

    /// Both records in one.
    fn union(&self, other: &Self) -> Self {
        let mut entries = Vec::with_capacity(self.entries.len() + other.entries.len());
        let (mut a, mut b) = (&self.entries[..], &other.entries[..]);
        while let ([x, xs @ ..], [y, ys @ ..]) = (a, b) {
            if x.0 == y.0 {
                entries.push((x.0, x.1.max(y.1)));
                (a, b) = (xs, ys);
            } else if x.0 < y.0 {
                entries.push(*x);
                a = xs;
            } else {
                entries.push(*y);
                b = ys;
            }
        }
        entries.extend(a.iter().chain(b));
        entries.truncate(MAX_ENTRIES);
        Self { entries }
    }

    /// Without what is known of the workgroup `slot` below `number`, which is known anyway.
    pub(super) fn without(record: Record, slot: Slot, number: u32) -> Record {
        let known = record?;
        let stays = |entry: &&((Slot, Group), u32)| entry.0.0 != slot || entry.1 > number;
        let kept = known.entries.iter().filter(stays).count();
        if kept == known.entries.len() {
            return Some(known);
        }
        let entries: Vec<_> = known.entries.iter().filter(stays).copied().collect();
        (!entries.is_empty()).then(|| Arc::new(Self { entries }))
    }

    /// Number of entries.
    #[cfg(test)]
    pub(super) fn len(&self) -> usize {
        self.entries.len()
    }
}

/// Joins `other` to `record`.
pub(super) fn join(record: &mut Record, other: &Record) {
    let Some(theirs) = other else { return };
    match record {
        None => *record = Some(theirs.clone()),
        Some(mine) if Arc::ptr_eq(mine, theirs) => {}
        Some(mine) => *mine = Arc::new(mine.union(theirs)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn known(entries: &[(Slot, Group, u32)]) -> Record {
        let mut known = Known::default();
        entries.iter().for_each(|&(slot, group, number)| known.add(slot, group, number));
        Some(Arc::new(known))
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
    fn a_union_has_the_higher_number_of_each_group() {
        let mut record = known(&[(1, Group::Workgroup, 10), (3, Group::Workgroup, 5)]);
        join(&mut record, &known(&[(1, Group::Workgroup, 4), (2, Group::Workgroup, 7), (3, Group::Workgroup, 6)]));
        assert_eq!(record, known(&[(1, Group::Workgroup, 10), (2, Group::Workgroup, 7), (3, Group::Workgroup, 6)]));
        assert_eq!(Known::without(record, 3, 6), known(&[(1, Group::Workgroup, 10), (2, Group::Workgroup, 7)]));
    }

    #[test]
    fn entries_above_the_limit_are_forgotten() {
        let list: Vec<_> = (0..MAX_ENTRIES as u32 + 10).map(|slot| (slot, Group::Workgroup, 1)).collect();
        let mut record = known(&list);
        assert_eq!(record.as_ref().unwrap().len(), MAX_ENTRIES);
        join(&mut record, &known(&[(MAX_ENTRIES as u32 + 20, Group::Workgroup, 1)]));
        assert_eq!(record.unwrap().len(), MAX_ENTRIES);
    }
}
