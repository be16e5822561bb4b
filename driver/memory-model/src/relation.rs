//! Binary relations between events, and the operations on them.

use crate::row::Row;

/// Pairs of events: the row of `a` holds every `b` with `a → b`.
#[derive(Clone, Debug, PartialEq)]
pub struct Relation<R: Row> {
    rows: R::Rows,
    n: usize,
}

impl<R: Row> Relation<R> {
    /// The empty relation over `n` events. `n` is at most [`Row::LIMIT`].
    pub fn new(n: usize) -> Self {
        Self { rows: R::rows(n), n }
    }

    /// All pairs for which `holds` is true.
    pub fn of(n: usize, holds: impl Fn(usize, usize) -> bool) -> Self {
        let mut relation = Self::new(n);
        for (a, row) in relation.rows.as_mut().iter_mut().enumerate().take(n) {
            *row = R::of(n, |b| holds(a, b));
        }
        relation
    }

    /// `a → a` for each `a` in `set`.
    pub fn identity(n: usize, set: &R) -> Self {
        let mut relation = Self::new(n);
        set.iter().for_each(|a| relation.insert(a, a));
        relation
    }

    /// Every event of `left` with every event of `right`.
    pub fn product(n: usize, left: &R, right: &R) -> Self {
        let mut relation = Self::new(n);
        left.iter().for_each(|a| relation.rows.as_mut()[a] = right.clone());
        relation
    }

    /// Number of events.
    pub fn events(&self) -> usize {
        self.n
    }

    /// The events related to `a` on its right.
    #[inline]
    pub fn row(&self, a: usize) -> &R {
        &self.rows.as_ref()[a]
    }

    #[inline]
    pub(crate) fn row_mut(&mut self, a: usize) -> &mut R {
        &mut self.rows.as_mut()[a]
    }

    /// Adds `a → b`.
    #[inline]
    pub fn insert(&mut self, a: usize, b: usize) {
        self.rows.as_mut()[a].insert(b);
    }

    /// Whether `a → b`.
    #[inline]
    pub fn contains(&self, a: usize, b: usize) -> bool {
        self.rows.as_ref()[a].contains(b)
    }

    /// Whether `a → b` or `b → a`.
    pub fn either(&self, a: usize, b: usize) -> bool {
        self.contains(a, b) || self.contains(b, a)
    }

    /// Number of pairs.
    pub fn len(&self) -> usize {
        self.used().iter().map(Row::len).sum()
    }

    /// Whether there are no pairs.
    pub fn is_empty(&self) -> bool {
        self.used().iter().all(Row::is_empty)
    }

    /// The pairs in ascending order.
    pub fn iter(&self) -> impl Iterator<Item = (usize, usize)> + '_ {
        self.used().iter().enumerate().flat_map(|(a, row)| row.iter().map(move |b| (a, b)))
    }

    fn used(&self) -> &[R] {
        &self.rows.as_ref()[..self.n]
    }

    fn zip(mut self, other: &Self, f: impl Fn(&mut R, &R)) -> Self {
        let n = self.n;
        self.rows.as_mut()[..n].iter_mut().zip(other.used()).for_each(|(mine, theirs)| f(mine, theirs));
        self
    }

    /// Union.
    pub fn or(self, other: &Self) -> Self {
        self.zip(other, Row::add)
    }

    /// Intersection.
    pub fn and(self, other: &Self) -> Self {
        self.zip(other, Row::keep)
    }

    /// Difference.
    pub fn minus(self, other: &Self) -> Self {
        self.zip(other, Row::drop)
    }

    /// The pairs that start in `set`.
    pub fn from(mut self, set: &R) -> Self {
        for (a, row) in self.rows.as_mut().iter_mut().enumerate().take(self.n) {
            if !set.contains(a) {
                *row = R::default();
            }
        }
        self
    }

    /// The pairs that end in `set`.
    pub fn to(mut self, set: &R) -> Self {
        let n = self.n;
        self.rows.as_mut()[..n].iter_mut().for_each(|row| row.keep(set));
        self
    }

    /// Composition: `a → b` here and `b → c` in `next` give `a → c`.
    pub fn then(&self, next: &Self) -> Self {
        let mut composed = Self::new(self.n);
        for (row, out) in self.used().iter().zip(composed.rows.as_mut()) {
            row.iter().for_each(|b| out.add(next.row(b)));
        }
        composed
    }

    /// Reflexive closure.
    pub fn reflexive(mut self) -> Self {
        (0..self.n).for_each(|a| self.insert(a, a));
        self
    }

    /// The relation without pairs `a → a`.
    pub fn irreflexive(mut self) -> Self {
        for a in 0..self.n {
            let mut own = R::default();
            own.insert(a);
            self.rows.as_mut()[a].drop(&own);
        }
        self
    }

    /// Transitive closure (Warshall).
    pub fn closed(mut self) -> Self {
        for via in 0..self.n {
            let reached = self.row(via).clone();
            if reached.is_empty() {
                continue;
            }
            let n = self.n;
            for row in &mut self.rows.as_mut()[..n] {
                if row.contains(via) {
                    row.add(&reached);
                }
            }
        }
        self
    }

    /// `b → a` for each `a → b`.
    pub fn inverse(&self) -> Self {
        let mut inverse = Self::new(self.n);
        self.iter().for_each(|(a, b)| inverse.insert(b, a));
        inverse
    }

    /// The pairs that are not a composition of two or more pairs: the immediate pairs of an order.
    pub fn immediate(&self) -> Self {
        self.clone().minus(&self.then(&self.clone().closed()))
    }

    /// Whether the relation is acyclic. It must be transitively closed.
    pub fn closed_is_acyclic(&self) -> bool {
        (0..self.n).all(|a| !self.contains(a, a))
    }

    /// Whether the relation is acyclic.
    pub fn is_acyclic(&self) -> bool {
        self.clone().closed().closed_is_acyclic()
    }

    /// Whether it is a subset of `other`.
    pub fn is_within(&self, other: &Self) -> bool {
        self.used().iter().zip(other.used()).all(|(mine, theirs)| {
            let mut rest = mine.clone();
            rest.drop(theirs);
            rest.is_empty()
        })
    }
}
