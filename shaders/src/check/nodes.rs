//! The nodes of maps, each of them once, and the latest joins: maps with equal entries are one map, however they arose,
//! so that their join ends where it begins.

use std::collections::HashSet;
use std::sync::Arc;

use super::map::Node;

/// Nodes that joins made, and the latest joins of branches with their results.
///
/// Each content has one node (hash-consing). Invocations that acquire by many locations get the same entries by
/// different joins; these are equal branches, at one address, and a join of two maps visits only what differs.
///
/// Where invocations acquire what many others released, maps that differ in little are joined with others of that kind,
/// over and over: each join visits only the branches that no other one has joined. Nodes never change, so a known join
/// stays right however long it is kept. It is forgotten for its memory only.
#[derive(Debug)]
pub struct KnownJoins {
    nodes: HashSet<Arc<Node>, foldhash::fast::FixedState>,
    /// Nodes above which those that nothing uses are sought.
    collect_at: usize,
    /// Two branches and their join; they stay alive, so that no other node has their address. A join is in one set of
    /// [`WAYS`] places, the last used one first, and each set is for branches of one level: the joins of large ones,
    /// which each join of their maps asks for, stay while those of thousands of small ones come and go.
    known: Vec<Option<[Arc<Node>; 3]>>,
    /// Sets of places for each level, and whether there may be any.
    sets: usize,
    keeps: bool,
    /// Joins of branches that were made.
    pub(super) made: u64,
}

/// Places of a set, and levels: a branch's is the number of its bit, modulo this.
const WAYS: usize = 4;
const LEVELS: usize = 32;

/// Sets of a level, at most.
const MAX_SETS: usize = 32;

/// Nodes that are kept without a search for unused ones.
const MIN_COLLECTED: usize = 1 << 14;

/// Bytes of a node, about: it has two counters, an allocator's header, and a place in the table.
const BYTES_OF_A_NODE: u64 = size_of::<Node>() as u64 + 48;
const BYTES_OF_A_PLACE: u64 = size_of::<Option<[Arc<Node>; 3]>>() as u64;

impl Default for KnownJoins {
    fn default() -> Self {
        Self::within(u64::MAX)
    }
}

impl KnownJoins {
    /// With places for known joins that take no more bytes than that.
    pub(super) fn within(bytes: u64) -> Self {
        let sets = usize::try_from(bytes / ((LEVELS * WAYS) as u64 * BYTES_OF_A_PLACE)).unwrap_or(MAX_SETS);
        Self {
            nodes: HashSet::default(),
            collect_at: MIN_COLLECTED,
            known: Vec::new(),
            sets: sets.clamp(1, MAX_SETS),
            keeps: true,
            made: 0,
        }
    }

    /// Bytes of the nodes and of the known joins, about.
    #[inline]
    pub(super) fn bytes(&self) -> u64 {
        self.nodes.len() as u64 * BYTES_OF_A_NODE + self.known.len() as u64 * BYTES_OF_A_PLACE
    }

    /// The node with this content.
    pub(super) fn node(&mut self, node: Node) -> Arc<Node> {
        if let Some(known) = self.nodes.get(&node) {
            return Arc::clone(known);
        }
        let node = Arc::new(node);
        self.nodes.insert(Arc::clone(&node));
        node
    }

    /// The places of a join.
    fn set(&mut self, [a, b]: [&Arc<Node>; 2]) -> Option<&mut [Option<[Arc<Node>; 3]>]> {
        let level = a.level().max(b.level()) % LEVELS;
        let [a, b] = [a, b].map(|node| Arc::as_ptr(node) as usize as u64);
        let hash = (a ^ b.rotate_left(32)).wrapping_mul(0x9e37_79b9_7f4a_7c15);
        let first = (level * self.sets + (hash >> 40) as usize % self.sets) * WAYS;
        self.known.get_mut(first..first + WAYS)
    }

    /// The join of two branches, if it is known.
    pub(super) fn get(&mut self, [a, b]: [&Arc<Node>; 2]) -> Option<Arc<Node>> {
        let set = self.set([a, b])?;
        let is_of = |[one, other, _]: &[Arc<Node>; 3]| Arc::ptr_eq(one, a) && Arc::ptr_eq(other, b);
        let at = set.iter().position(|known| known.as_ref().is_some_and(is_of))?;
        set[..=at].rotate_right(1);
        set[0].as_ref().map(|[.., joined]| Arc::clone(joined))
    }

    /// Two branches were joined.
    pub(super) fn put(&mut self, [a, b]: [&Arc<Node>; 2], joined: &Arc<Node>) {
        self.made += 1;
        if self.keeps {
            self.known.resize(LEVELS * self.sets * WAYS, None);
        }
        if let Some(set) = self.set([a, b]) {
            set.rotate_right(1);
            set[0] = Some([a, b, joined].map(Arc::clone));
        }
    }

    /// Frees the nodes that no map has any more, once there are many new ones.
    pub(super) fn collect_some(&mut self) {
        if self.nodes.len() > self.collect_at {
            self.collect();
        }
    }

    /// Frees the nodes that no map has any more. Known joins have nodes, too: they are forgotten.
    pub(super) fn collect(&mut self) {
        self.known.fill(None);
        let unused = self.nodes.iter().filter(|node| Arc::strong_count(node) == 1);
        let mut unused: Vec<_> = unused.cloned().collect();
        while let Some(node) = unused.pop() {
            self.nodes.remove(&*node);
            if let Ok(Node::Branch { sides, .. }) = Arc::try_unwrap(node) {
                // Only the table has them, besides this one.
                unused.extend(sides.into_iter().filter(|side| Arc::strong_count(side) == 2));
            }
        }
        self.collect_at = (2 * self.nodes.len()).max(MIN_COLLECTED);
    }

    /// Keeps no known joins from here on, or does so again: they only save time.
    pub(super) fn keep(&mut self, keeps: bool) {
        self.keeps = keeps;
        if !keeps {
            self.known = Vec::new();
        }
    }

    /// Whether there are known joins.
    pub(super) fn has_known(&self) -> bool {
        !self.known.is_empty()
    }

    /// Forgets all nodes and joins. Maps that have nodes keep them.
    pub(super) fn clear(&mut self) {
        (self.nodes, self.known) = (HashSet::default(), Vec::new());
        self.collect_at = MIN_COLLECTED;
    }
}

#[cfg(test)]
mod tests {
    use super::super::map::Map;
    use super::*;

    #[test]
    fn maps_with_equal_entries_are_one_map_however_they_arose() {
        let joins = &mut KnownJoins::default();
        let of = |keys: &mut dyn Iterator<Item = u64>, joins: &mut KnownJoins| {
            let mut map = Map::default();
            keys.for_each(|key| map.add((key << 32) | (key % 3), key as u32, joins));
            map
        };
        let all = of(&mut (0..1000), joins);
        let [odd, even] = [0, 1].map(|first| of(&mut (0..500).rev().map(|key| 2 * key + first), joins));
        let before = joins.made;
        assert!(odd.union(&even, joins).is(&all));
        assert!(joins.made > before);
        let before = joins.made;
        assert!(of(&mut (0..1000).rev(), joins).union(&all, joins).is(&all));
        assert_eq!(joins.made, before, "the join of equal maps visits nothing");
    }

    #[test]
    fn nodes_of_no_map_are_freed_and_others_stay() {
        let joins = &mut KnownJoins::default();
        let mut map = Map::default();
        (0..1000).for_each(|key| map.add(key, 1, joins));
        joins.collect();
        // Leaves and branches.
        assert_eq!(joins.nodes.len(), 1999);
        let copy = map.clone();
        (0..1000).for_each(|key| map.add(key, 2, joins));
        joins.collect();
        assert_eq!(joins.nodes.len(), 2 * 1999);
        drop(copy);
        joins.collect();
        assert_eq!((joins.nodes.len(), map.len()), (1999, 1000));
        drop(map);
        joins.collect();
        assert_eq!(joins.bytes(), 0);
    }

    #[test]
    fn unused_nodes_are_fewer_than_those_in_use_or_few() {
        let joins = &mut KnownJoins::default();
        let mut map = Map::default();
        for round in 0..200 {
            (0..100).for_each(|key| map.add(key * 7, round, joins));
            map = map.union(&map.clone(), joins);
            assert!(joins.nodes.len() < 2 * MIN_COLLECTED, "{}", joins.nodes.len());
        }
    }

    #[test]
    fn known_joins_stay_within_their_bytes() {
        for bytes in [1 << 13, 1 << 16, 1 << 20] {
            let mut joins = KnownJoins::within(bytes);
            let (mut map, mut other) = (Map::default(), Map::default());
            for key in 0..512 {
                map.add(key * 3, 1, &mut joins);
                other.add(key * 5, 2, &mut joins);
                map.union(&other, &mut joins);
                let places = joins.bytes() - joins.nodes.len() as u64 * BYTES_OF_A_NODE;
                assert!(places <= bytes, "{places} of {bytes}");
            }
            joins.keep(false);
            (0..512).for_each(|key| other.add(key * 7, 3, &mut joins));
            map.union(&other, &mut joins);
            assert!(!joins.has_known(), "no known joins are kept any more");
        }
    }
}
