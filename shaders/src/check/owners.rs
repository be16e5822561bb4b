//! Which descriptors have their memory alone, and which share it so that cells of words suffice: machine code knows no
//! reference, and must not take a write through one descriptor for one through another.

use std::collections::{HashMap, HashSet};

use foldhash::fast::FixedState;

use crate::guest::GuestSlice;
use crate::ir::{InlineChecks, PlaneSet};

/// What nothing writes has no cells.
pub(super) fn has_cells(planes: PlaneSet) -> bool {
    planes.both(PlaneSet::CELLS) != PlaneSet::NONE
}

/// Of each descriptor that the checks concern, whether no other one has a part of its memory. `None` if one of them
/// does not begin with a whole word.
pub(super) fn alone(checks: &InlineChecks, buffers: &[GuestSlice]) -> Option<Vec<bool>> {
    let mut ranges: Vec<(u64, u64, u32)> = (0..)
        .zip(buffers)
        .filter(|(_, slice)| !slice.is_empty())
        .map(|(number, slice)| {
            let start = slice.address() as u64;
            // The first byte of the next buffer's word may be in the last word of this one.
            (start / 4 * 4, start + slice.len(), number)
        })
        .collect();
    ranges.sort_unstable();
    let mut shared = HashSet::<u32, FixedState>::default();
    let mut before = 0;
    for (at, &(start, end, number)) in ranges.iter().enumerate() {
        let meets_next = ranges.get(at + 1).is_some_and(|next| next.0 < end);
        if start < before || meets_next {
            shared.insert(number);
        }
        before = before.max(end);
    }
    let aligned = |number: &u32| buffers.get(*number as usize).is_none_or(|slice| slice.address().is_multiple_of(4));
    let all = checks.descriptors.iter();
    all.clone().all(aligned).then(|| all.map(|number| !shared.contains(number)).collect())
}

/// The descriptor through which the kernel writes what it reads through this one, or the other way round: all with a
/// part of that memory have the same range, of whole words, and all other ones only read. Reads count through whichever
/// they are, which is so of private ones only where these count as non-private inside a workgroup (`lenient`).
pub(super) fn owner(checks: &InlineChecks, buffers: &[GuestSlice], number: u32, lenient: bool) -> Option<u32> {
    let range = |slice: &GuestSlice| (slice.address() as u64, slice.address() as u64 + slice.len());
    let own = range(buffers.get(number as usize)?);
    // Many descriptors may have the memory.
    let places: HashMap<u32, usize, FixedState> = checks.descriptors.iter().copied().zip(0..).collect();
    let meet = (0..).zip(buffers).filter(|(_, slice)| {
        let (start, end) = range(slice);
        start / 4 * 4 < own.1 && own.0 / 4 * 4 < end && start < end
    });
    let (mut writer, mut first, mut alike) = (None, None, None);
    for (other, slice) in meet {
        let at = *places.get(&other)?;
        let private = checks.private[at]?;
        let fits = range(slice) == own && checks.grains[at] == 4 && has_cells(checks.planes[at]);
        if !fits || private && !lenient || *alike.get_or_insert(private) != private {
            return None;
        }
        first = first.or(Some(other));
        if !checks.only_read[at] && writer.replace(other).is_some() {
            return None;
        }
    }
    writer.or(first)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ir::Plane;

    #[test]
    fn descriptors_are_alone_unless_another_one_has_a_word_of_theirs() {
        let memory = GuestSlice::leak(1024);
        let of = |ranges: &[(u64, u64)], concerned: &[u32]| {
            let buffers: Vec<_> = ranges.iter().map(|&(start, len)| memory.slice(start, len)).collect();
            alone(&InlineChecks { descriptors: concerned.to_vec(), ..InlineChecks::default() }, &buffers)
        };
        assert_eq!(of(&[(0, 64), (64, 64), (32, 8)], &[0, 1, 2]), Some(vec![false, true, false]));
        assert_eq!(of(&[(0, 256), (8, 8), (128, 8), (256, 8)], &[3, 2, 0]), Some(vec![true, false, false]));
        assert_eq!(of(&[(0, 62), (62, 2)], &[0]), Some(vec![false]), "half a word each");
        assert_eq!(of(&[(0, 64), (0, 0)], &[0, 1]), Some(vec![true, true]));
        assert_eq!(of(&[(0, 64), (66, 8)], &[0, 1]), None);
        assert_eq!(of(&[(0, 64), (66, 8)], &[0]), Some(vec![true]));
    }

    /// The range of a descriptor, whether it is only read, its grain and its privacy.
    type Descriptor = ((u64, u64), bool, u32, Option<bool>);

    #[test]
    fn memory_belongs_to_the_one_descriptor_that_writes_all_of_it() {
        let memory = GuestSlice::leak(1024);
        let cells = PlaneSet::of(Plane::Written).and(Plane::Read);
        let owners = |all: &[Descriptor], lenient: bool| -> Vec<Option<u32>> {
            let buffers: Vec<_> = all.iter().map(|&((start, len), ..)| memory.slice(start, len)).collect();
            let checks = InlineChecks {
                descriptors: (0..all.len() as u32).collect(),
                planes: vec![cells; all.len()],
                only_read: all.iter().map(|of| of.1).collect(),
                grains: all.iter().map(|of| of.2).collect(),
                private: all.iter().map(|of| of.3).collect(),
                ..InlineChecks::default()
            };
            (0..all.len() as u32).map(|number| owner(&checks, &buffers, number, lenient)).collect()
        };
        let (read, write) = (((0, 64), true, 4, Some(false)), ((0, 64), false, 4, Some(false)));
        let none = [None; 2];
        assert_eq!(owners(&[read, write, read], false), [Some(1); 3]);
        assert_eq!(owners(&[read, read], false), [Some(0); 2], "nothing writes it");
        assert_eq!(owners(&[write, write], false), none);
        assert_eq!(owners(&[read, ((0, 60), false, 4, Some(false))], false), none);
        assert_eq!(owners(&[read, write, ((62, 8), true, 4, Some(false))], false), [None; 3], "of the last word");
        assert_eq!(owners(&[read, ((0, 64), false, 2, Some(false))], false), none);
        let private = [((0, 64), true, 4, Some(true)), ((0, 64), false, 4, Some(true))];
        assert_eq!((owners(&private, false), owners(&private, true)), (none.to_vec(), vec![Some(1); 2]));
        for other in [Some(true), None] {
            assert_eq!(owners(&[read, ((0, 64), false, 4, other)], true), none, "{other:?}");
        }
    }
}
