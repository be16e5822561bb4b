//! Events by storage class: accesses of memory in a class, and operations with a class in their semantics.

use crate::event::{Class, Classes, Trace};
use crate::row::Row;

/// Sets of events for each class.
pub(super) struct ByClass<R> {
    accesses: [R; 4],
    semantics: [R; 4],
}

impl<R: Row> ByClass<R> {
    pub(super) fn new(trace: &Trace) -> Self {
        let operation = |event: usize| trace.operation(event);
        Self {
            accesses: Class::ALL.map(|class| {
                R::of(trace.len(), |event| operation(event).access().is_some_and(|access| access.class == class))
            }),
            semantics: Class::ALL.map(|class| R::of(trace.len(), |event| operation(event).semantics.contains(class))),
        }
    }

    /// The accesses of memory in any of `classes`.
    pub(super) fn accesses_in(&self, classes: Classes) -> R {
        classes.iter().fold(R::default(), |set, class| set.with(&self.accesses[class as usize]))
    }

    /// The operations with `class` in their semantics.
    pub(super) fn semantics(&self, class: Class) -> &R {
        &self.semantics[class as usize]
    }
}
