//! The scoped modification orders of a trace: every way to orient the pairs of mutually ordered atomic writes.
//!
//! The union of the orders must be transitive. Mutual order is not transitive, so a pair that transitivity requires may
//! not be mutually ordered: then the orientation is invalid. Both violations show as soon as the third side of a
//! triangle is known, and stay.

use std::cell::Cell;
use std::ops::ControlFlow;

use crate::relation::Relation;
use crate::relations::Frame;
use crate::row::Row;

/// The pairs to orient.
pub(super) struct Orders<R: Row> {
    mutual: Relation<R>,
    /// Pairs of mutually ordered writes, the lower event first.
    pairs: Vec<(usize, usize)>,
    /// Location order that holds for every choice, if the axioms forbid to contradict it.
    forced: Option<Relation<R>>,
    /// Number of steps left.
    left: Cell<u64>,
}

impl<R: Row> Orders<R> {
    pub(super) fn new(frame: &Frame<R>, forced: Option<Relation<R>>, steps: u64) -> Self {
        let writes = &frame.sets.writes;
        let mutual = frame.mutual.clone().from(writes).to(writes);
        // Sorted by the higher event, so that triangles close early.
        let mut pairs: Vec<_> = mutual.iter().filter(|(a, b)| a < b).collect();
        pairs.sort_by_key(|&(a, b)| (b, a));
        Self { mutual: frame.mutual.clone(), pairs, forced, left: Cell::new(steps) }
    }

    /// Calls `visit` with each order, until it breaks.
    pub(super) fn each(&self, visit: &mut dyn FnMut(&Relation<R>) -> ControlFlow<()>) {
        let _ = self.orient(0, &mut Relation::new(self.mutual.events()), visit);
    }

    /// Whether `each` ended after too many steps.
    pub(super) fn is_exhausted(&self) -> bool {
        self.left.get() == 0
    }

    fn orient(
        &self,
        at: usize,
        order: &mut Relation<R>,
        visit: &mut dyn FnMut(&Relation<R>) -> ControlFlow<()>,
    ) -> ControlFlow<()> {
        let Some(&(low, high)) = self.pairs.get(at) else { return visit(order) };
        for (first, second) in [(low, high), (high, low)] {
            if self.forced.as_ref().is_some_and(|forced| forced.contains(second, first)) {
                continue;
            }
            self.left.set(self.left.get().saturating_sub(1));
            if self.is_exhausted() {
                return ControlFlow::Break(());
            }
            if self.fits(order, first, second) {
                let mut next = order.clone();
                next.insert(first, second);
                self.orient(at + 1, &mut next, visit)?;
            }
        }
        ControlFlow::Continue(())
    }

    /// Whether `first → second` is consistent with all oriented pairs, by triangles.
    fn fits(&self, order: &Relation<R>, first: usize, second: usize) -> bool {
        let mutual = &self.mutual;
        (0..mutual.events()).all(|third| {
            let to = !order.contains(second, third) || mutual.contains(first, third) && !order.contains(third, first);
            let from =
                !order.contains(third, first) || mutual.contains(third, second) && !order.contains(second, third);
            to && from
        })
    }
}
