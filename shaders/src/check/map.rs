//! A map from integers to numbers, copies of which share what they have in common: to add an entry, or to join two maps
//! that differ in little, costs little, however large they are.
//!
//! Each node is in a table once (`nodes.rs`), so that equal maps are one.
//!
//! It is a big-endian Patricia trie (Okasaki and Gill, *Fast Mergeable Integer Maps*, 1998): a branch has the keys that
//! agree in all bits above one, and divides them by that bit. The keys determine the shape, so maps with equal entries
//! have equal shapes, and a join visits only the nodes that the two maps do not share.

use std::hash::{Hash, Hasher};
use std::sync::Arc;

use super::nodes::NodeTable;

/// A persistent map: copies share what they have in common.
#[derive(Clone, Debug, Default)]
pub struct Map(Option<Arc<Node>>);

/// A part of a map.
#[derive(Debug)]
pub(super) enum Node {
    Leaf {
        key: u64,
        value: u32,
    },
    Branch {
        /// The bits above that of `level` of all keys.
        prefix: u64,
        /// Number of a bit.
        level: u8,
        /// The keys without that bit, and those with it.
        sides: [Arc<Node>; 2],
        /// Number of entries.
        len: u32,
    },
}

/// Nodes are equal if they have the same sides.
impl PartialEq for Node {
    fn eq(&self, other: &Self) -> bool {
        match (self, other) {
            (Self::Leaf { key, value }, Self::Leaf { key: other, value: theirs }) => (key, value) == (other, theirs),
            (
                Self::Branch { prefix, level, sides, .. },
                Self::Branch { prefix: other, level: of_other, sides: theirs, .. },
            ) => (prefix, level) == (other, of_other) && same(sides, theirs),
            _ => false,
        }
    }
}

impl Eq for Node {}

impl Hash for Node {
    fn hash<H: Hasher>(&self, state: &mut H) {
        match self {
            Self::Leaf { key, value } => (key, value).hash(state),
            Self::Branch { prefix, level, sides: [zeros, ones], .. } => {
                (prefix, level, Arc::as_ptr(zeros), Arc::as_ptr(ones)).hash(state);
            }
        }
    }
}

impl Map {
    /// Number of entries.
    pub fn len(&self) -> usize {
        self.0.as_ref().map_or(0, |root| root.len() as usize)
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.0.is_none()
    }

    /// The value of a key.
    pub fn get(&self, wanted: u64) -> Option<u32> {
        let mut node = self.0.as_deref()?;
        loop {
            match node {
                Node::Leaf { key, value } => return (*key == wanted).then_some(*value),
                Node::Branch { level, sides, .. } => node = &sides[side(wanted, *level)],
            }
        }
    }

    /// Adds an entry, or raises the value of one.
    pub fn raise(&mut self, key: u64, value: u32, nodes: &mut NodeTable) {
        let leaf = nodes.node(Node::Leaf { key, value });
        self.0 = Some(match &self.0 {
            None => leaf,
            Some(root) => join(root, &leaf, nodes),
        });
    }

    /// The entries of both, with the higher value of each key.
    pub fn union(&self, other: &Self, nodes: &mut NodeTable) -> Self {
        nodes.collect_some();
        match (&self.0, &other.0) {
            (Some(a), Some(b)) => Self(Some(join(a, b, nodes))),
            (None, one) | (one, None) => Self(one.clone()),
        }
    }

    /// Without the entries of keys from `first` to `last` that have a value of at most `value`.
    pub(super) fn without(&self, first: u64, last: u64, value: u32, nodes: &mut NodeTable) -> Self {
        Self(self.0.as_ref().and_then(|root| without(root, first, last, value, nodes)))
    }

    /// Whether both are the same map: a cheap test, which equal maps may fail.
    #[cfg(test)]
    pub(super) fn is(&self, other: &Self) -> bool {
        match (&self.0, &other.0) {
            (Some(a), Some(b)) => Arc::ptr_eq(a, b),
            (None, None) => true,
            _ => false,
        }
    }
}

impl Node {
    fn len(&self) -> u32 {
        match self {
            Self::Leaf { .. } => 1,
            Self::Branch { len, .. } => *len,
        }
    }

    fn is_branch(&self) -> bool {
        matches!(self, Self::Branch { .. })
    }

    /// The number of the bit that divides the keys.
    pub(super) fn level(&self) -> usize {
        match self {
            Self::Leaf { .. } => 0,
            Self::Branch { level, .. } => usize::from(*level),
        }
    }

    /// A key, or the common bits of all.
    fn prefix(&self) -> u64 {
        match self {
            Self::Leaf { key, .. } => *key,
            Self::Branch { prefix, .. } => *prefix,
        }
    }
}

/// The bits of a key above that of a level.
fn above(key: u64, level: u8) -> u64 {
    key & !(u64::MAX >> (63 - level))
}

/// The side of a branch of that level that a key belongs to.
fn side(key: u64, level: u8) -> usize {
    usize::from(key >> level & 1 != 0)
}

/// Whether they are the same nodes.
fn same(a: &[Arc<Node>; 2], b: &[Arc<Node>; 2]) -> bool {
    Arc::ptr_eq(&a[0], &b[0]) && Arc::ptr_eq(&a[1], &b[1])
}

fn branch(prefix: u64, level: u8, sides: [Arc<Node>; 2], nodes: &mut NodeTable) -> Arc<Node> {
    let len = sides[0].len() + sides[1].len();
    nodes.node(Node::Branch { prefix, level, sides, len })
}

/// Two tries with different prefixes in one.
fn fork(a: &Arc<Node>, b: &Arc<Node>, nodes: &mut NodeTable) -> Arc<Node> {
    let (key, other) = (a.prefix(), b.prefix());
    // The highest bit in which they differ.
    let level = 63 - (key ^ other).leading_zeros() as u8;
    let sides = if side(key, level) == 0 { [a, b] } else { [b, a] };
    branch(above(key, level), level, sides.map(Arc::clone), nodes)
}

/// `node` with one of its sides joined with `other`, whose keys all belong there.
fn join_side(node: &Arc<Node>, other: &Arc<Node>, nodes: &mut NodeTable) -> Arc<Node> {
    let Node::Branch { prefix, level, sides, .. } = &**node else { return fork(node, other, nodes) };
    let at = side(other.prefix(), *level);
    let joined = join(&sides[at], other, nodes);
    if Arc::ptr_eq(&joined, &sides[at]) {
        return Arc::clone(node);
    }
    let mut sides = sides.clone();
    sides[at] = joined;
    branch(*prefix, *level, sides, nodes)
}

/// The entries of both. It is one of the two itself if that has all entries of the other. A leaf has no branches that
/// other joins might have met: its joins are not kept.
fn join(a: &Arc<Node>, b: &Arc<Node>, nodes: &mut NodeTable) -> Arc<Node> {
    if Arc::ptr_eq(a, b) {
        return Arc::clone(a);
    }
    if !a.is_branch() || !b.is_branch() {
        return join_anew(a, b, nodes);
    }
    if let Some(known) = nodes.get([a, b]) {
        return known;
    }
    let joined = join_anew(a, b, nodes);
    nodes.put([a, b], &joined);
    joined
}

/// The same of two nodes whose join is not known.
fn join_anew(a: &Arc<Node>, b: &Arc<Node>, nodes: &mut NodeTable) -> Arc<Node> {
    match (&**a, &**b) {
        (Node::Leaf { key, value }, Node::Leaf { key: other, value: theirs }) if key == other => {
            Arc::clone(if value >= theirs { a } else { b })
        }
        (
            Node::Branch { prefix, level, sides, .. },
            Node::Branch { prefix: other_prefix, level: other_level, sides: theirs, .. },
        ) if prefix == other_prefix && level == other_level => {
            let joined = [0, 1].map(|side| join(&sides[side], &theirs[side], nodes));
            if same(&joined, sides) {
                Arc::clone(a)
            } else if same(&joined, theirs) {
                Arc::clone(b)
            } else {
                branch(*prefix, *level, joined, nodes)
            }
        }
        _ if contains(a, b) => join_side(a, b, nodes),
        _ if contains(b, a) => join_side(b, a, nodes),
        _ => fork(a, b, nodes),
    }
}

/// Whether all keys of `inner` belong to one side of the branch `outer`.
fn contains(outer: &Node, inner: &Node) -> bool {
    let Node::Branch { prefix, level, .. } = outer else { return false };
    let below = match inner {
        Node::Leaf { .. } => true,
        Node::Branch { level: other, .. } => other < level,
    };
    below && above(inner.prefix(), *level) == *prefix
}

fn without(node: &Arc<Node>, first: u64, last: u64, max: u32, nodes: &mut NodeTable) -> Option<Arc<Node>> {
    match &**node {
        Node::Leaf { key, value } => {
            let goes = (first..=last).contains(key) && *value <= max;
            (!goes).then(|| Arc::clone(node))
        }
        Node::Branch { prefix, level, sides, .. } => {
            if *prefix > last || (prefix | u64::MAX >> (63 - level)) < first {
                return Some(Arc::clone(node));
            }
            match [0, 1].map(|side| without(&sides[side], first, last, max, nodes)) {
                [Some(zeros), Some(ones)] => {
                    let rest = [zeros, ones];
                    Some(if same(&rest, sides) { Arc::clone(node) } else { branch(*prefix, *level, rest, nodes) })
                }
                [one, other] => one.or(other),
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use super::*;

    /// The entries, in order, and whether each branch divides its keys as it says.
    fn entries(map: &Map) -> Vec<(u64, u32)> {
        fn collect(node: &Node, list: &mut Vec<(u64, u32)>) {
            match node {
                Node::Leaf { key, value } => list.push((*key, *value)),
                Node::Branch { prefix, level, sides, len } => {
                    let before = list.len();
                    for (at, node) in sides.iter().enumerate() {
                        let from = list.len();
                        collect(node, list);
                        for (key, _) in &list[from..] {
                            assert_eq!((above(*key, *level), side(*key, *level)), (*prefix, at));
                        }
                    }
                    assert_eq!(list.len() - before, *len as usize);
                }
            }
        }
        let mut list = Vec::new();
        map.0.iter().for_each(|root| collect(root, &mut list));
        list
    }

    /// Numbers that are the same everywhere.
    fn numbers(seed: u64) -> impl FnMut(u64) -> u64 {
        let mut state = seed;
        move |below| {
            state = state.wrapping_mul(0x5851_f42d_4c95_7f2d).wrapping_add(0x1405_7b7e_f767_814f);
            (state >> 33) % below
        }
    }

    #[test]
    fn it_is_a_map() {
        let mut nodes = NodeTable::default();
        for seed in 0..200 {
            let mut next = numbers(seed);
            let (mut map, mut model) = (Map::default(), BTreeMap::new());
            let (mut other, mut theirs) = (Map::default(), BTreeMap::new());
            for _ in 0..next(60) {
                let (key, value) = (next(8) << 32 | next(4) | next(2) << 63, next(9) as u32);
                let (map, model) = if next(2) == 0 { (&mut map, &mut model) } else { (&mut other, &mut theirs) };
                map.raise(key, value, &mut nodes);
                let known: &mut u32 = model.entry(key).or_insert(value);
                *known = value.max(*known);
                assert_eq!(map.get(key), Some(*known));
                assert_eq!(map.get(key ^ 8), None);
            }
            for (key, value) in &theirs {
                let known = model.entry(*key).or_insert(*value);
                *known = (*value).max(*known);
            }
            let both = map.union(&other, &mut nodes);
            assert_eq!(entries(&both), Vec::from_iter(model.clone()), "seed {seed}");
            // Joins of branches are known then, and others are small.
            let again = map.union(&other, &mut nodes);
            assert!(again.is(&both) || map.len().min(other.len()) < 2, "seed {seed}");
            assert_eq!((both.len(), entries(&other.union(&map, &mut nodes))), (model.len(), entries(&both)));
            let (first, last) = (next(8) << 32, next(8) << 32 | 3);
            model.retain(|key, value| !(first..=last).contains(key) || *value > 4);
            assert_eq!(entries(&both.without(first, last, 4, &mut nodes)), Vec::from_iter(model), "seed {seed}");
        }
    }

    #[test]
    fn a_join_with_a_part_of_itself_is_the_map_itself() {
        let (mut map, nodes) = (Map::default(), &mut NodeTable::default());
        (0..100).for_each(|key| map.raise(key * 7, key as u32, nodes));
        let part = map.clone();
        map.raise(5, 5, nodes);
        assert!(map.union(&part, nodes).is(&map) && part.union(&map, nodes).is(&map) && !map.is(&part));
        assert!(map.without(1000, 2000, 9, nodes).is(&map));
        map.raise(7, 0, nodes);
        assert_eq!(map.get(7), Some(1), "a value never falls");
    }

    /// Each of many invocations adds an entry of its own to a map of a round before, and to one of the present round
    /// that goes from one to the next: of the joins of both, most branches are those of other joins.
    #[test]
    fn joins_of_maps_that_differ_in_little_visit_few_branches() {
        let (count, mut nodes) = (1024, NodeTable::default());
        let mut own = vec![Map::default(); count as usize];
        for round in 1..4 {
            let mut shared = Map::default();
            let before = nodes.made;
            for key in 0..count {
                own[key as usize] = own[key as usize].union(&shared, &mut nodes);
                own[key as usize].raise(key, round, &mut nodes);
                shared = shared.union(&own[key as usize], &mut nodes);
            }
            let made = nodes.made - before;
            assert!(made < count * 64, "{made} joins of branches for {count} maps");
            assert_eq!(shared.len() as u64, count);
        }
        nodes.clear();
        assert_eq!(nodes.bytes(), 0);
    }

    /// Invocations of many workgroups update one counter and then another one, and acquire and release by both. What
    /// the second one brought differs from what the first one did in each entry, and the join of both is that of the
    /// invocation before but for a few branches.
    #[test]
    fn joins_of_two_maps_that_grow_visit_the_new_branches_only() {
        let (mut first, mut second, mut nodes) = (Map::default(), Map::default(), NodeTable::default());
        let mut made = |slots: std::ops::Range<u64>, nodes: &mut NodeTable| {
            let mut made = 0;
            for slot in slots {
                let key = slot << 32;
                first.raise(key, 2 * slot as u32, nodes);
                let mut known = first.union(&second, nodes);
                known.raise(key, 2 * slot as u32 + 1, nodes);
                second = second.union(&known, nodes);
                made += std::mem::take(&mut nodes.made);
            }
            made
        };
        let (half, all) = (8_192, 16_384);
        let [once, again] = [0..half, half..all].map(|slots| made(slots, &mut nodes));
        assert!(again as f64 / (once as f64) < 1.4, "{once} joins of branches, {again} for as many more");
        // Once all are forgotten they are made once.
        nodes.clear();
        let after = made(all..all + 1_000, &mut nodes);
        assert!(after < all + 1_000 * 64, "{after} joins of branches");
    }
}
