//! A map from integers to numbers, copies of which share what they have in common: to add an entry, or to join two maps
//! that differ in little, costs little, however large they are.
//!
//! It is a big-endian Patricia trie (Okasaki and Gill, *Fast Mergeable Integer Maps*, 1998): a branch has the keys that
//! agree in all bits above one, and divides them by that bit. The keys determine the shape, so maps with equal entries
//! have equal shapes, and a join visits only the nodes that the two maps do not share.

use std::sync::Arc;

/// A persistent map: copies share what they have in common.
#[derive(Clone, Debug, Default)]
pub struct Map(Option<Arc<Node>>);

#[derive(Debug)]
enum Node {
    Leaf {
        key: u64,
        value: u32,
    },
    Branch {
        /// The bits above `bit` of all keys.
        prefix: u64,
        /// One bit.
        bit: u64,
        /// The keys without that bit, and those with it.
        sides: [Arc<Node>; 2],
        /// Number of entries.
        len: usize,
    },
}

impl Map {
    /// Number of entries.
    pub fn len(&self) -> usize {
        self.0.as_ref().map_or(0, |root| root.len())
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
                Node::Branch { bit, sides, .. } => node = &sides[usize::from(wanted & bit != 0)],
            }
        }
    }

    /// Adds an entry, or raises the value of one.
    pub fn raise(&mut self, key: u64, value: u32) {
        let leaf = Arc::new(Node::Leaf { key, value });
        self.0 = Some(match &self.0 {
            None => leaf,
            Some(root) => join(root, &leaf, None),
        });
    }

    /// The entries of both, with the higher value of each key.
    pub fn union(&self, other: &Self, joins: &mut KnownJoins) -> Self {
        match (&self.0, &other.0) {
            (Some(a), Some(b)) => Self(Some(join(a, b, Some(joins)))),
            (None, one) | (one, None) => Self(one.clone()),
        }
    }

    /// Without the entries of keys from `first` to `last` that have a value of at most `value`.
    pub(super) fn without(&self, first: u64, last: u64, value: u32) -> Self {
        Self(self.0.as_ref().and_then(|root| without(root, first, last, value)))
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
    fn len(&self) -> usize {
        match self {
            Self::Leaf { .. } => 1,
            Self::Branch { len, .. } => *len,
        }
    }

    /// The number of the bit that divides the keys.
    fn level(&self) -> usize {
        match self {
            Self::Leaf { .. } => 0,
            Self::Branch { bit, .. } => bit.trailing_zeros() as usize,
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

/// Latest joins of branches, with their results. Where invocations acquire what many others released, maps that differ
/// in little are joined with others of that kind, over and over: each join visits only the branches that no other one
/// has joined.
///
/// Nodes never change, so a known join stays right however long it is kept. It is forgotten for its memory only.
#[derive(Debug)]
pub struct KnownJoins {
    /// Two branches and their join; they stay alive, so that no other node has their address. A join is in one set of
    /// [`WAYS`] places, the last used one first, and each set is for branches of one level: the joins of large ones,
    /// which each join of their maps asks for, stay while those of thousands of small ones come and go.
    known: Vec<Option<[Arc<Node>; 3]>>,
    /// Sets of places for each level.
    sets: usize,
    /// Joins that were made since all were forgotten, and how many may be made before they are: each keeps its
    /// operands, which nothing else may use any more.
    made: usize,
    max_made: usize,
}

/// Places of a set, and levels: a branch's is the number of its bit, modulo this.
const WAYS: usize = 4;
const LEVELS: usize = 32;

/// Sets of a level, and joins that are made before all are forgotten, at most.
const MAX_SETS: usize = 32;
const MAX_MADE: usize = 1 << 17;

/// Bytes of a join, about: a branch of its result, and one of its operands.
const BYTES_OF_A_JOIN: u64 = 2 * (size_of::<Node>() as u64 + 16);
const BYTES_OF_A_PLACE: u64 = size_of::<Option<[Arc<Node>; 3]>>() as u64;

impl Default for KnownJoins {
    fn default() -> Self {
        Self::within(u64::MAX)
    }
}

impl KnownJoins {
    /// Of joins that take no more bytes than that, about.
    pub(super) fn within(bytes: u64) -> Self {
        let of = |size: u64, most: usize| usize::try_from(bytes / 2 / size).unwrap_or(most).clamp(1, most);
        let sets = of((LEVELS * WAYS) as u64 * BYTES_OF_A_PLACE, MAX_SETS);
        Self { known: Vec::new(), sets, made: 0, max_made: of(BYTES_OF_A_JOIN, MAX_MADE) }
    }

    /// Bytes that they occupy, about.
    #[inline]
    pub(super) fn bytes(&self) -> u64 {
        self.known.len() as u64 * BYTES_OF_A_PLACE + self.made as u64 * BYTES_OF_A_JOIN
    }

    /// The places of a join.
    fn set(&mut self, [a, b]: [&Arc<Node>; 2]) -> Option<&mut [Option<[Arc<Node>; 3]>]> {
        let level = a.level().max(b.level()) % LEVELS;
        let [a, b] = [a, b].map(|node| Arc::as_ptr(node) as usize as u64);
        let hash = (a ^ b.rotate_left(32)).wrapping_mul(0x9e37_79b9_7f4a_7c15);
        let first = (level * self.sets + (hash >> 40) as usize % self.sets) * WAYS;
        self.known.get_mut(first..first + WAYS)
    }

    fn get(&mut self, [a, b]: [&Arc<Node>; 2]) -> Option<Arc<Node>> {
        let set = self.set([a, b])?;
        let is_of = |[one, other, _]: &[Arc<Node>; 3]| Arc::ptr_eq(one, a) && Arc::ptr_eq(other, b);
        let at = set.iter().position(|known| known.as_ref().is_some_and(is_of))?;
        set[..=at].rotate_right(1);
        set[0].as_ref().map(|[.., joined]| Arc::clone(joined))
    }

    fn put(&mut self, [a, b]: [&Arc<Node>; 2], joined: &Arc<Node>) {
        if self.made >= self.max_made {
            self.clear();
        }
        self.made += 1;
        self.known.resize(LEVELS * self.sets * WAYS, None);
        if let Some(set) = self.set([a, b]) {
            set.rotate_right(1);
            set[0] = Some([a, b, joined].map(Arc::clone));
        }
    }

    /// Forgets all.
    pub(super) fn clear(&mut self) {
        self.known.clear();
        self.made = 0;
    }
}

/// The bits of a key above one bit.
fn above(key: u64, bit: u64) -> u64 {
    key & !(bit | (bit - 1))
}

fn branch(prefix: u64, bit: u64, sides: [Arc<Node>; 2]) -> Arc<Node> {
    let len = sides[0].len() + sides[1].len();
    Arc::new(Node::Branch { prefix, bit, sides, len })
}

/// Two tries with different prefixes in one.
fn fork(a: &Arc<Node>, b: &Arc<Node>) -> Arc<Node> {
    let (key, other) = (a.prefix(), b.prefix());
    // The highest bit in which they differ.
    let bit = 1 << (63 - (key ^ other).leading_zeros());
    let sides = if key & bit == 0 { [a, b] } else { [b, a] };
    branch(above(key, bit), bit, sides.map(Arc::clone))
}

/// `node` with one of its sides joined with `other`, whose keys all belong there.
fn join_side(node: &Arc<Node>, other: &Arc<Node>, joins: Option<&mut KnownJoins>) -> Arc<Node> {
    let Node::Branch { prefix, bit, sides, .. } = &**node else { return fork(node, other) };
    let at = usize::from(other.prefix() & bit != 0);
    let joined = join(&sides[at], other, joins);
    if Arc::ptr_eq(&joined, &sides[at]) {
        return Arc::clone(node);
    }
    let mut sides = sides.clone();
    sides[at] = joined;
    branch(*prefix, *bit, sides)
}

/// The entries of both. It is one of the two itself if that has all entries of the other. A leaf has no branches that
/// other joins might have met: it is joined without known ones.
fn join(a: &Arc<Node>, b: &Arc<Node>, joins: Option<&mut KnownJoins>) -> Arc<Node> {
    if Arc::ptr_eq(a, b) {
        return Arc::clone(a);
    }
    if let (Some(joins), Node::Branch { .. }, Node::Branch { .. }) = (joins, &**a, &**b) {
        if let Some(known) = joins.get([a, b]) {
            return known;
        }
        let joined = join_anew(a, b, Some(&mut *joins));
        joins.put([a, b], &joined);
        return joined;
    }
    join_anew(a, b, None)
}

/// The same of two nodes whose join is not known.
fn join_anew(a: &Arc<Node>, b: &Arc<Node>, mut joins: Option<&mut KnownJoins>) -> Arc<Node> {
    match (&**a, &**b) {
        (Node::Leaf { key, value }, Node::Leaf { key: other, value: theirs }) if key == other => {
            Arc::clone(if value >= theirs { a } else { b })
        }
        (
            Node::Branch { prefix, bit, sides, .. },
            Node::Branch { prefix: other_prefix, bit: other_bit, sides: theirs, .. },
        ) if prefix == other_prefix && bit == other_bit => {
            let joined = [0, 1].map(|side| join(&sides[side], &theirs[side], joins.as_deref_mut()));
            let is = |sides: &[Arc<Node>; 2]| joined.iter().zip(sides).all(|(joined, side)| Arc::ptr_eq(joined, side));
            if is(sides) {
                Arc::clone(a)
            } else if is(theirs) {
                Arc::clone(b)
            } else {
                branch(*prefix, *bit, joined)
            }
        }
        _ if contains(a, b) => join_side(a, b, joins),
        _ if contains(b, a) => join_side(b, a, joins),
        _ => fork(a, b),
    }
}

/// Whether all keys of `inner` belong to one side of the branch `outer`.
fn contains(outer: &Node, inner: &Node) -> bool {
    let Node::Branch { prefix, bit, .. } = outer else { return false };
    let below = match inner {
        Node::Leaf { .. } => true,
        Node::Branch { bit: other, .. } => other < bit,
    };
    below && above(inner.prefix(), *bit) == *prefix
}

fn without(node: &Arc<Node>, first: u64, last: u64, max: u32) -> Option<Arc<Node>> {
    match &**node {
        Node::Leaf { key, value } => {
            let goes = (first..=last).contains(key) && *value <= max;
            (!goes).then(|| Arc::clone(node))
        }
        Node::Branch { prefix, bit, sides, .. } => {
            if *prefix > last || (prefix | bit | (bit - 1)) < first {
                return Some(Arc::clone(node));
            }
            match [0, 1].map(|side| without(&sides[side], first, last, max)) {
                [Some(zeros), Some(ones)] if Arc::ptr_eq(&zeros, &sides[0]) && Arc::ptr_eq(&ones, &sides[1]) => {
                    Some(Arc::clone(node))
                }
                [Some(zeros), Some(ones)] => Some(branch(*prefix, *bit, [zeros, ones])),
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
                Node::Branch { prefix, bit, sides, len } => {
                    let before = list.len();
                    for (side, node) in sides.iter().enumerate() {
                        let from = list.len();
                        collect(node, list);
                        for (key, _) in &list[from..] {
                            assert_eq!((above(*key, *bit), usize::from(key & bit != 0)), (*prefix, side));
                        }
                    }
                    assert_eq!(list.len() - before, *len);
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
        let mut joins = KnownJoins::default();
        for seed in 0..200 {
            let mut next = numbers(seed);
            let (mut map, mut model) = (Map::default(), BTreeMap::new());
            let (mut other, mut theirs) = (Map::default(), BTreeMap::new());
            for _ in 0..next(60) {
                let (key, value) = (next(8) << 32 | next(4) | next(2) << 63, next(9) as u32);
                let (map, model) = if next(2) == 0 { (&mut map, &mut model) } else { (&mut other, &mut theirs) };
                map.raise(key, value);
                let known: &mut u32 = model.entry(key).or_insert(value);
                *known = value.max(*known);
                assert_eq!(map.get(key), Some(*known));
                assert_eq!(map.get(key ^ 8), None);
            }
            for (key, value) in &theirs {
                let known = model.entry(*key).or_insert(*value);
                *known = (*value).max(*known);
            }
            let both = map.union(&other, &mut joins);
            assert_eq!(entries(&both), Vec::from_iter(model.clone()), "seed {seed}");
            // Joins of branches are known then, and others are small.
            let again = map.union(&other, &mut joins);
            assert!(again.is(&both) || map.len().min(other.len()) < 2, "seed {seed}");
            assert_eq!((both.len(), entries(&other.union(&map, &mut joins))), (model.len(), entries(&both)));
            let (first, last) = (next(8) << 32, next(8) << 32 | 3);
            model.retain(|key, value| !(first..=last).contains(key) || *value > 4);
            assert_eq!(entries(&both.without(first, last, 4)), Vec::from_iter(model), "seed {seed}");
        }
    }

    #[test]
    fn a_join_with_a_part_of_itself_is_the_map_itself() {
        let mut map = Map::default();
        (0..100).for_each(|key| map.raise(key * 7, key as u32));
        let part = map.clone();
        map.raise(5, 5);
        let joins = &mut KnownJoins::default();
        assert!(map.union(&part, joins).is(&map) && part.union(&map, joins).is(&map) && !map.is(&part));
        assert!(map.without(1000, 2000, 9).is(&map));
        map.raise(7, 0);
        assert_eq!(map.get(7), Some(1), "a value never falls");
    }

    /// Each of many invocations adds an entry of its own to a map of a round before, and to one of the present round
    /// that goes from one to the next: of the joins of both, most branches are those of other joins.
    #[test]
    fn joins_of_maps_that_differ_in_little_visit_few_branches() {
        let (count, mut joins) = (1024, KnownJoins::default());
        let mut own = vec![Map::default(); count as usize];
        for round in 1..4 {
            let mut shared = Map::default();
            let before = joins.made;
            for key in 0..count {
                own[key as usize] = own[key as usize].union(&shared, &mut joins);
                own[key as usize].raise(key, round);
                shared = shared.union(&own[key as usize], &mut joins);
            }
            let made = joins.made.wrapping_sub(before) as u64;
            assert!(made < count * 64, "{made} joins of branches for {count} maps");
            assert_eq!(shared.len() as u64, count);
        }
        joins.clear();
        assert_eq!(joins.bytes(), 0);
    }

    /// Invocations of many workgroups update one counter and then another one, and acquire and release by both. What
    /// the second one brought differs from what the first one did in each entry, and the join of both is that of the
    /// invocation before but for a few branches.
    #[test]
    fn joins_of_two_maps_that_grow_visit_the_new_branches_only() {
        let (mut first, mut second, mut joins) = (Map::default(), Map::default(), KnownJoins::default());
        let mut made = |slots: std::ops::Range<u64>, joins: &mut KnownJoins| {
            let mut made = 0;
            for slot in slots {
                let key = slot << 32;
                first.raise(key, 2 * slot as u32);
                let mut known = first.union(&second, joins);
                known.raise(key, 2 * slot as u32 + 1);
                second = second.union(&known, joins);
                made += std::mem::take(&mut joins.made);
            }
            made
        };
        let (half, all) = (8_192, 16_384);
        let [once, again] = [0..half, half..all].map(|slots| made(slots, &mut joins));
        assert!(again as f64 / (once as f64) < 1.4, "{once} joins of branches, {again} for as many more");
        // Once all are forgotten they are made once.
        joins.clear();
        let after = made(all..all + 1_000, &mut joins);
        assert!(after < all as usize + 1_000 * 64, "{after} joins of branches");
    }

    #[test]
    fn known_joins_stay_within_their_bytes() {
        for bytes in [1 << 13, 1 << 16, 1 << 20] {
            let mut joins = KnownJoins::within(bytes);
            let (mut map, mut other) = (Map::default(), Map::default());
            for key in 0..512 {
                map.raise(key * 3, 1);
                other.raise(key * 5, 2);
                map.union(&other, &mut joins);
                assert!(joins.bytes() <= bytes, "{} of {bytes}", joins.bytes());
            }
        }
    }
}
