//! Layouts of generated programs: the number of threads, their lengths and groups; every layout up to symmetry.
//!
//! A subgroup is a list of lengths, a workgroup a list of subgroups, and so on, each list in canonical order: so
//! layouts that differ by reordering are the same list.

use super::Bounds;

/// Threads with their lengths and groups.
#[derive(Clone, Debug)]
pub(super) struct Layout {
    /// Number of operations of each thread.
    pub(super) lengths: Vec<usize>,
    /// For each thread, the numbers of its subgroup, workgroup and queue family, unique within each level.
    pub(super) groups: Vec<[u32; 3]>,
}

impl Layout {
    /// Number of operations of all threads.
    pub(super) fn events(&self) -> usize {
        self.lengths.iter().sum()
    }

    /// Index of the first operation of `thread`.
    pub(super) fn start(&self, thread: usize) -> usize {
        self.lengths[..thread].iter().sum()
    }

    /// The thread of an operation, and its index in the thread.
    pub(super) fn place(&self, operation: usize) -> (usize, usize) {
        let mut at = operation;
        for (thread, &length) in self.lengths.iter().enumerate() {
            if at < length {
                return (thread, at);
            }
            at -= length;
        }
        (self.lengths.len(), at)
    }

    /// Whether two threads are in the same group: level 0 is subgroups, 1 workgroups, 2 queue families.
    pub(super) fn shares(&self, a: usize, b: usize, level: usize) -> bool {
        self.groups[a][level] == self.groups[b][level]
    }

    /// Number of other threads in the group of `thread`.
    pub(super) fn peers(&self, thread: usize, level: usize) -> usize {
        (0..self.lengths.len()).filter(|&other| other != thread && self.shares(thread, other, level)).count()
    }

    /// The permutations of the threads that preserve the layout: lengths and groups stay equal.
    pub(super) fn symmetries(&self) -> Vec<Vec<usize>> {
        let mut found = Vec::new();
        self.extend(&mut Vec::new(), &mut found);
        found
    }

    fn extend(&self, order: &mut Vec<usize>, found: &mut Vec<Vec<usize>>) {
        let at = order.len();
        if at == self.lengths.len() {
            found.push(order.clone());
            return;
        }
        for thread in 0..self.lengths.len() {
            let alike = |earlier: usize| {
                (0..3).all(|level| self.shares(at, earlier, level) == self.shares(thread, order[earlier], level))
            };
            if !order.contains(&thread) && self.lengths[thread] == self.lengths[at] && (0..at).all(alike) {
                order.push(thread);
                self.extend(order, found);
                order.pop();
            }
        }
    }
}

/// A group: the lengths of its threads, with its groups numbered from 0.
#[derive(Clone)]
struct Group {
    threads: Vec<(usize, [u32; 3])>,
    events: usize,
}

/// The layouts within `bounds`, sorted by the number of operations, then of threads.
pub(super) fn layouts(bounds: &Bounds) -> Vec<Layout> {
    let thread = |length| Group { threads: vec![(length, [0; 3])], events: length };
    let mut groups: Vec<_> = (1..=bounds.events).map(thread).collect();
    let sizes =
        [bounds.groups.threads, bounds.groups.subgroups, bounds.groups.workgroups, bounds.groups.queue_families];
    for (level, max) in sizes.into_iter().enumerate() {
        let mut larger = Vec::new();
        lists(&groups, groups.len(), max, &Group { threads: vec![], events: 0 }, level, bounds, &mut larger);
        groups = larger;
    }
    groups.sort_by_key(|group| (group.events, group.threads.len()));
    let layout = |group: Group| {
        let (lengths, groups) = group.threads.into_iter().unzip();
        Layout { lengths, groups }
    };
    groups.into_iter().map(layout).collect()
}

/// Appends to `so_far` every list of one to `max` of the first `below` groups, the later ones first. A member gets
/// unique numbers for all groups below `level`.
fn lists(
    groups: &[Group],
    below: usize,
    max: usize,
    so_far: &Group,
    level: usize,
    bounds: &Bounds,
    found: &mut Vec<Group>,
) {
    if max == 0 {
        return;
    }
    for (at, next) in groups[..below].iter().enumerate().rev() {
        let threads = so_far.threads.len() + next.threads.len();
        if threads > bounds.threads || so_far.events + next.events > bounds.events {
            continue;
        }
        let mut longer = so_far.clone();
        let shift: [u32; 3] = std::array::from_fn(|own| {
            let used = so_far.threads.iter().map(|thread| thread.1[own] + 1).max();
            if own < level { used.unwrap_or(0) } else { 0 }
        });
        let shifted = |numbers: [u32; 3]| std::array::from_fn(|own| numbers[own] + shift[own]);
        longer.threads.extend(next.threads.iter().map(|&(length, numbers)| (length, shifted(numbers))));
        longer.events += next.events;
        found.push(longer.clone());
        lists(groups, at + 1, max - 1, &longer, level, bounds, found);
    }
}
