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
pub struct NodeTable {
    nodes: HashSet<Arc<Node>, foldhash::fast::FixedState>,
    /// Nodes above which those that nothing uses are sought.
    collect_at: usize,
    /// Two branches and their join; they stay alive, so that no other node has their address. A join is in one set of
    /// [`WAYS`] places, the last used one first, and each set is for branches of one level: the joins of large ones,
    /// which each join of their maps asks for, stay while those of thousands of small ones come and go.
    known: Vec<Option<[Arc<Node>; 3]>>,
    /// Sets of places for each level.
    sets: usize,
    /// Whether joins are kept.
    keeps_known: bool,
    /// Whether entries of a map were forgotten since this was asked.
    forgot: bool,
    /// Joins of branches that were made.
    pub(super) made: u64,
}

/// Places of a set, and levels: a branch's is the number of its bit, modulo this.
const WAYS: usize = 4;
const LEVELS: usize = 32;

/// Sets of a level, at most.
const MAX_SETS: usize = 32;

/// The least number of nodes above which unused ones are sought.
const MIN_COLLECT_AT: usize = 1 << 14;

/// Bytes of a node, about: it has two counters, an allocator's header, and a place in the table.
const BYTES_OF_A_NODE: u64 = size_of::<Node>() as u64 + 48;
const BYTES_OF_A_PLACE: u64 = size_of::<Option<[Arc<Node>; 3]>>() as u64;

impl Default for NodeTable {
    fn default() -> Self {
        Self::within(u64::MAX)
    }
}

impl NodeTable {
    /// With places for known joins that take no more bytes than that.
    pub(super) fn within(bytes: u64) -> Self {
        let sets = usize::try_from(bytes / ((LEVELS * WAYS) as u64 * BYTES_OF_A_PLACE)).unwrap_or(MAX_SETS);
        Self {
            nodes: HashSet::default(),
            collect_at: MIN_COLLECT_AT,
            known: Vec::new(),
            sets: sets.clamp(1, MAX_SETS),
            keeps_known: true,
            forgot: false,
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
        if self.keeps_known {
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
        self.collect_at = (2 * self.nodes.len()).max(MIN_COLLECT_AT);
        self.nodes.shrink_to(self.collect_at);
    }

    /// Keeps no known joins from here on, or does so again: they only save time.
    pub(super) fn keep_known(&mut self, keeps: bool) {
        self.keeps_known = keeps;
        if !keeps {
            self.known = Vec::new();
        }
    }

    /// Whether there are known joins.
    #[cfg(test)]
    pub(super) fn has_known(&self) -> bool {
        !self.known.is_empty()
    }

    /// Entries of a map are forgotten.
    pub(super) fn forget_some(&mut self) {
        self.forgot = true;
    }

    /// Whether entries of a map were forgotten since the last call.
    pub(super) fn has_forgotten(&mut self) -> bool {
        std::mem::take(&mut self.forgot)
    }

    /// Forgets all nodes and joins. Maps that have nodes keep them.
    pub(super) fn clear(&mut self) {
        (self.nodes, self.known) = (HashSet::default(), Vec::new());
        self.collect_at = MIN_COLLECT_AT;
    }
}

#[cfg(test)]
mod tests {
    use super::super::map::Map;
    use super::*;

    #[test]
    fn maps_with_equal_entries_are_one_map_however_they_arose() {
        let nodes = &mut NodeTable::default();
        let of = |keys: &mut dyn Iterator<Item = u64>, nodes: &mut NodeTable| {
            let mut map = Map::default();
            keys.for_each(|key| map.raise((key << 32) | (key % 3), key as u32, nodes));
            map
        };
        let all = of(&mut (0..1000), nodes);
        let [odd, even] = [0, 1].map(|first| of(&mut (0..500).rev().map(|key| 2 * key + first), nodes));
        let before = nodes.made;
        assert!(odd.union(&even, nodes).is(&all));
        assert!(nodes.made > before);
        let before = nodes.made;
        assert!(of(&mut (0..1000).rev(), nodes).union(&all, nodes).is(&all));
        assert_eq!(nodes.made, before, "the join of equal maps visits nothing");
    }

    #[test]
    fn nodes_of_no_map_are_freed_and_others_stay() {
        let nodes = &mut NodeTable::default();
        let mut map = Map::default();
        (0..1000).for_each(|key| map.raise(key, 1, nodes));
        nodes.collect();
        // Leaves and branches.
        assert_eq!(nodes.nodes.len(), 1999);
        let copy = map.clone();
        (0..1000).for_each(|key| map.raise(key, 2, nodes));
        nodes.collect();
        assert_eq!(nodes.nodes.len(), 2 * 1999);
        drop(copy);
        nodes.collect();
        assert_eq!((nodes.nodes.len(), map.len()), (1999, 1000));
        drop(map);
        nodes.collect();
        assert_eq!(nodes.bytes(), 0);
    }

    #[test]
    fn unused_nodes_are_fewer_than_those_in_use_or_few() {
        let nodes = &mut NodeTable::default();
        let mut map = Map::default();
        for round in 0..200 {
            (0..100).for_each(|key| map.raise(key * 7, round, nodes));
            map = map.union(&map.clone(), nodes);
            assert!(nodes.nodes.len() < 2 * MIN_COLLECT_AT, "{}", nodes.nodes.len());
        }
    }

    #[test]
    fn known_joins_stay_within_their_bytes() {
        for bytes in [1 << 13, 1 << 16, 1 << 20] {
            let mut nodes = NodeTable::within(bytes);
            let (mut map, mut other) = (Map::default(), Map::default());
            for key in 0..512 {
                map.raise(key * 3, 1, &mut nodes);
                other.raise(key * 5, 2, &mut nodes);
                map.union(&other, &mut nodes);
                let places = nodes.bytes() - nodes.nodes.len() as u64 * BYTES_OF_A_NODE;
                assert!(places <= bytes, "{places} of {bytes}");
            }
            nodes.keep_known(false);
            (0..512).for_each(|key| other.raise(key * 7, 3, &mut nodes));
            map.union(&other, &mut nodes);
            assert!(!nodes.has_known(), "no known joins are kept any more");
        }
    }
}
