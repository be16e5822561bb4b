//! Symmetry reduction: of programs that differ only by names, the least is generated.
//!
//! Threads may be permuted if the layout is preserved, locations of a class may be renamed, and the two storage classes
//! may be exchanged, in accesses and semantics at once. Locations of the changed program are then named in the order of
//! their first use, which is the least naming.

use super::layout::Layout;

/// An operation of a generated program. Its derived order defines "least".
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct GeneratedOperation {
    shape: u16,
    /// Class and number of the location; `None` for barriers.
    location: Option<(u8, u8)>,
}

impl GeneratedOperation {
    pub(super) fn access(shape: u16, class: u8, number: u8) -> Self {
        Self { shape, location: Some((class, number)) }
    }

    pub(super) fn barrier(shape: u16) -> Self {
        Self { shape, location: None }
    }

    /// Its index in the list of shapes.
    pub(super) fn shape(self) -> u16 {
        self.shape
    }

    pub(super) fn location(self) -> Option<(u8, u8)> {
        self.location
    }
}

/// Whether no change of names gives smaller steps. `symmetries`: the permutations of threads that preserve the layout.
/// `classes`: `None` to keep the storage classes, or, to exchange them, the shape that each shape becomes.
pub(super) fn is_least(
    layout: &Layout,
    symmetries: &[Vec<usize>],
    steps: &[GeneratedOperation],
    classes: &[Option<&[u16]>],
) -> bool {
    classes.iter().all(|exchanged| symmetries.iter().all(|order| !is_smaller(layout, steps, order, *exchanged)))
}

/// Whether `steps` become smaller with threads in this order and classes exchanged or not.
fn is_smaller(layout: &Layout, steps: &[GeneratedOperation], order: &[usize], exchanged: Option<&[u16]>) -> bool {
    let mut names: [[Option<u8>; 8]; 2] = [[None; 8]; 2];
    let mut named = [0; 2];
    let changed = order.iter().flat_map(|&thread| {
        let start = layout.start(thread);
        steps[start..start + layout.lengths[thread]].iter()
    });
    for (step, now) in changed.zip(steps) {
        let shape = exchanged.map_or(step.shape, |exchanged| exchanged[usize::from(step.shape)]);
        let location = step.location.map(|(class, number)| {
            let class = if exchanged.is_some() { 1 - class } else { class };
            let name = names[usize::from(class)][usize::from(number)].get_or_insert_with(|| {
                named[usize::from(class)] += 1;
                named[usize::from(class)] - 1
            });
            (class, *name)
        });
        match (GeneratedOperation { shape, location }).cmp(now) {
            std::cmp::Ordering::Less => return true,
            std::cmp::Ordering::Greater => return false,
            std::cmp::Ordering::Equal => {}
        }
    }
    false
}
