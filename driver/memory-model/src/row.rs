//! Sets of events, one bit each: a machine word for a litmus test, a list of blocks for a recording of a real run.
//!
//! A relation is a row for each event, and the model needs only unions, intersections and differences of rows. So the
//! model is generic over this trait, and a program of 16 events has rows of 16 bits.

use std::fmt::Debug;

/// A set of event numbers below [`Row::LIMIT`].
pub trait Row: Clone + Default + PartialEq + Debug + 'static {
    /// Maximum number of events with this row.
    const LIMIT: usize;

    /// The rows of one relation.
    type Rows: Clone + Debug + PartialEq + AsRef<[Self]> + AsMut<[Self]>;

    /// `n` or more empty rows.
    fn rows(n: usize) -> Self::Rows;
    /// Adds `event`.
    fn insert(&mut self, event: usize);
    /// Whether `event` is in the set.
    fn contains(&self, event: usize) -> bool;
    /// Union.
    fn add(&mut self, other: &Self);
    /// Intersection.
    fn keep(&mut self, other: &Self);
    /// Difference.
    fn drop(&mut self, other: &Self);
    /// Whether the set is empty.
    fn is_empty(&self) -> bool;
    /// Number of events in the set.
    fn len(&self) -> usize;
    /// Whether the sets share an event.
    fn meets(&self, other: &Self) -> bool;
    /// The events in ascending order.
    fn iter(&self) -> impl Iterator<Item = usize> + '_;

    /// The set of the events below `n` for which `is_in` holds.
    fn of(n: usize, is_in: impl Fn(usize) -> bool) -> Self {
        let mut row = Self::default();
        (0..n).filter(|&event| is_in(event)).for_each(|event| row.insert(event));
        row
    }

    /// Union, as a value.
    fn with(&self, other: &Self) -> Self {
        let mut row = self.clone();
        row.add(other);
        row
    }

    /// Intersection, as a value.
    fn and(&self, other: &Self) -> Self {
        let mut row = self.clone();
        row.keep(other);
        row
    }
}

/// The events of a word in ascending order.
struct Bits<W>(W);

macro_rules! word {
    ($word:ty, $rows:ty, $n:ident => $new:expr) => {
        impl Iterator for Bits<$word> {
            type Item = usize;

            fn next(&mut self) -> Option<usize> {
                let word = self.0;
                (word != 0).then(|| {
                    self.0 = word & (word - 1);
                    word.trailing_zeros() as usize
                })
            }
        }

        impl Row for $word {
            const LIMIT: usize = <$word>::BITS as usize;
            type Rows = $rows;

            #[inline]
            fn rows($n: usize) -> Self::Rows {
                $new
            }
            #[inline]
            fn insert(&mut self, event: usize) {
                *self |= 1 << event;
            }
            #[inline]
            fn contains(&self, event: usize) -> bool {
                self >> event & 1 != 0
            }
            #[inline]
            fn add(&mut self, other: &Self) {
                *self |= other;
            }
            #[inline]
            fn keep(&mut self, other: &Self) {
                *self &= other;
            }
            #[inline]
            fn drop(&mut self, other: &Self) {
                *self &= !other;
            }
            #[inline]
            fn is_empty(&self) -> bool {
                *self == 0
            }
            #[inline]
            fn len(&self) -> usize {
                self.count_ones() as usize
            }
            #[inline]
            fn meets(&self, other: &Self) -> bool {
                self & other != 0
            }
            #[inline]
            fn iter(&self) -> impl Iterator<Item = usize> + '_ {
                Bits(*self)
            }
        }
    };
}

// Small relations are copied at every step of a search; large ones would fill the stack.
word!(u16, [u16; 16], _n => [0; 16]);
word!(u64, Vec<u64>, n => vec![0; n]);
word!(u128, Vec<u128>, n => vec![0; n]);

/// A set of any size, stored as its non-empty blocks of 64 events in ascending order.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct SparseRow {
    blocks: Vec<(u32, u64)>,
}

impl SparseRow {
    fn block(&self, block: u32) -> u64 {
        self.blocks.binary_search_by_key(&block, |entry| entry.0).map_or(0, |at| self.blocks[at].1)
    }

    /// Replaces each block by `f` of it and the corresponding block of the other set.
    fn map(&mut self, other: &Self, f: impl Fn(u64, u64) -> u64) {
        self.blocks.retain_mut(|(block, bits)| {
            *bits = f(*bits, other.block(*block));
            *bits != 0
        });
    }
}

impl Row for SparseRow {
    const LIMIT: usize = 1 << 24;
    type Rows = Vec<Self>;

    fn rows(n: usize) -> Vec<Self> {
        vec![Self::default(); n]
    }

    fn insert(&mut self, event: usize) {
        let (block, bit) = ((event / 64) as u32, 1 << (event % 64));
        match self.blocks.binary_search_by_key(&block, |entry| entry.0) {
            Ok(at) => self.blocks[at].1 |= bit,
            Err(at) => self.blocks.insert(at, (block, bit)),
        }
    }

    fn contains(&self, event: usize) -> bool {
        self.block((event / 64) as u32) >> (event % 64) & 1 != 0
    }

    fn add(&mut self, other: &Self) {
        if self.blocks.is_empty() {
            self.blocks.clone_from(&other.blocks);
            return;
        }
        let mine = std::mem::take(&mut self.blocks);
        self.blocks.reserve(mine.len().max(other.blocks.len()));
        let (mut left, mut right) = (mine.iter().peekable(), other.blocks.iter().peekable());
        while let Some(&block) = [left.peek(), right.peek()].into_iter().flatten().map(|entry| &entry.0).min() {
            let mut bits = 0;
            for side in [&mut left, &mut right] {
                bits |= side.next_if(|entry| entry.0 == block).map_or(0, |entry| entry.1);
            }
            self.blocks.push((block, bits));
        }
    }

    fn keep(&mut self, other: &Self) {
        self.map(other, |mine, theirs| mine & theirs);
    }

    fn drop(&mut self, other: &Self) {
        self.map(other, |mine, theirs| mine & !theirs);
    }

    fn is_empty(&self) -> bool {
        self.blocks.is_empty()
    }

    fn len(&self) -> usize {
        self.blocks.iter().map(|(_, bits)| bits.count_ones() as usize).sum()
    }

    fn meets(&self, other: &Self) -> bool {
        self.blocks.iter().any(|&(block, bits)| bits & other.block(block) != 0)
    }

    fn iter(&self) -> impl Iterator<Item = usize> + '_ {
        self.blocks.iter().flat_map(|&(block, bits)| Bits(bits).map(move |bit| block as usize * 64 + bit))
    }
}
