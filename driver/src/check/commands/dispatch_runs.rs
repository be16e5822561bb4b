//! The runs of bytes that a dispatch accessed, in little memory.
//!
//! A kernel that accesses each second word has a run for each: a list of them takes three times the kernel's memory. So
//! the first ones are kept, and others are read from the marks again each time that they are needed.

use std::collections::HashMap;
use std::ops::Range;

use foldhash::fast::FixedState;

use super::marks::Touch;
use super::race::AnswerCache;
use super::runs::MarkReader;
use super::touched::Touched;

/// Runs that are kept, with those of the part of the marks that has the last one.
const MAX_KEPT: usize = 1 << 16;

/// A range of bytes, and the number of what touched it.
pub(super) type NumberedRange = (Range<u64>, u32);

/// What a dispatch touched. The marks in planes that other dispatches share go with it.
#[derive(Debug)]
pub(super) struct DispatchRuns<'a> {
    touched: &'a Touched,
    /// The different instructions that touched bytes, by number.
    touches: Vec<Touch>,
    /// The runs of the first parts of the marks, whose marks are gone.
    kept: Vec<NumberedRange>,
    kept_parts: usize,
    /// A range that contains all runs.
    extent: Option<Range<u64>>,
}

impl<'a> DispatchRuns<'a> {
    pub(super) fn new(touched: &'a Touched) -> Self {
        Self::keeping(touched, MAX_KEPT)
    }

    fn keeping(touched: &'a Touched, max: usize) -> Self {
        let mut all = Self { touched, touches: Vec::new(), kept: Vec::new(), kept_parts: 0, extent: None };
        let (mut reader, mut numbers) = (MarkReader::default(), AnswerCache::default());
        for (part, marks) in touched.parts().enumerate() {
            let runs = reader.runs(&marks);
            let is_kept = part == all.kept_parts && all.kept.len() < max;
            for (range, touch) in runs {
                let number = numbers.of(*touch, || {
                    all.touches.push(*touch);
                    all.touches.len() as u32 - 1
                });
                let known = all.extent.get_or_insert_with(|| range.clone());
                *known = known.start.min(range.start)..known.end.max(range.end);
                match all.kept.last_mut() {
                    _ if !is_kept => {}
                    // A run may go on in the next part.
                    Some((last, same)) if *same == number && last.end == range.start => last.end = range.end,
                    _ => all.kept.push((range.clone(), number)),
                }
            }
            if is_kept {
                marks.clear(Some(runs));
                all.kept_parts += 1;
            }
        }
        all
    }

    pub(super) fn touches(&self) -> &[Touch] {
        &self.touches
    }

    /// A range that contains all of them; empty if there is none.
    pub(super) fn extent(&self) -> Range<u64> {
        self.extent.clone().unwrap_or_default()
    }

    /// Passes all runs, in ascending order for each kind of marks, some at a time.
    pub(super) fn each(&self, mut each: impl FnMut(&[NumberedRange])) {
        each(&self.kept);
        let all: HashMap<Touch, u32, FixedState> = self.touches.iter().copied().zip(0..).collect();
        let (mut reader, mut numbers, mut some) = (MarkReader::default(), AnswerCache::default(), Vec::new());
        for marks in self.touched.parts().skip(self.kept_parts) {
            let runs = reader.runs(&marks).iter();
            some.extend(runs.map(|(range, touch)| (range.clone(), numbers.of(*touch, || all[touch]))));
            each(&some);
            some.clear();
        }
    }
}

impl Drop for DispatchRuns<'_> {
    fn drop(&mut self) {
        self.touched.parts().skip(self.kept_parts).for_each(|marks| marks.clear(None));
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use spelter_shaders::check::observer::{Invocation, Memory, Target};
    use spelter_shaders::check::{GRANULE, Planes};
    use spelter_shaders::ir::{AccessSite, Site, SiteAction, StorageClass};

    use super::*;

    const BY: Invocation = Invocation { workgroup: 2, local: 5 };

    /// The runs, with the numbers of the instructions that wrote and read.
    fn runs(all: &DispatchRuns<'_>) -> Vec<(Range<u64>, (u32, u32))> {
        let mut list = Vec::new();
        let mut add = |(range, number): &NumberedRange| list.push((range.clone(), all.touches[*number as usize]));
        all.each(|some| some.iter().for_each(&mut add));
        list.into_iter().map(|(range, touch)| (range, touch.numbers())).collect()
    }

    fn sites() -> [SiteAction; 2] {
        let access = AccessSite { class: StorageClass::Uniform, non_private: false, volatile: false, scope: None };
        [SiteAction::Write(access), SiteAction::Read(access)]
    }

    fn touch(touched: &mut Touched, site: u32, address: u64, bytes: u32) {
        let target = Target { memory: Memory::Device(address), bytes, reference: 3 };
        touched.touch(BY, Site::from_u32(site), target, site == 0);
    }

    #[test]
    fn runs_of_words_and_of_sub_word_accesses() {
        let mut touched = Touched::new(sites().iter(), None, u64::MAX);
        (0..1030).for_each(|word| touch(&mut touched, 0, 4088 + 4 * word, 4));
        touch(&mut touched, 1, 4096, 16);
        touch(&mut touched, 1, 9001, 2);
        let all = DispatchRuns::new(&touched);
        let expected = [(4088..4096, (1, 0)), (4096..4112, (1, 2)), (4112..8208, (1, 0)), (9001..9003, (0, 2))];
        assert_eq!(runs(&all), expected);
        assert_eq!(all.extent(), 4088..9003);
        // Of the second page on they are read again.
        let again = DispatchRuns::keeping(&touched, 1);
        assert_eq!((again.kept.len(), runs(&again).len()), (1, 5));
        assert_eq!(touched.reference(Site::from_u32(1)), 3);
        assert_eq!(touched.example(Site::from_u32(1)), Some((4096, BY)));
    }

    #[test]
    fn runs_of_marked_words_cross_granules_and_leave_no_mark() {
        let planes = Planes::new(0..3 * GRANULE).unwrap();
        let (after, beyond) = (GRANULE + 8..GRANULE + 100, 4 * GRANULE..4 * GRANULE + 4);
        let rest = [(GRANULE..GRANULE + 8, (1, 2)), (after, (1, 0)), (beyond, (0, 2))];
        let expected = [&[(16..20, (0, 2)), (GRANULE - 100..GRANULE, (1, 0))][..], &rest].concat();
        for max in [0, 1, MAX_KEPT, 0] {
            let mut touched = Touched::new(sites().iter(), Some(Arc::clone(&planes)), u64::MAX);
            (0..50).for_each(|word| touch(&mut touched, 0, GRANULE - 100 + 4 * word, 4));
            touch(&mut touched, 1, GRANULE, 8);
            touch(&mut touched, 1, 16, 4);
            touch(&mut touched, 1, 4 * GRANULE, 4);
            assert_eq!(runs(&DispatchRuns::keeping(&touched, max)), expected, "{max} kept");
        }
    }

    #[test]
    fn runs_of_each_second_word_take_the_same_memory_for_any_size() {
        for megabytes in [1, 16] {
            let bytes: u64 = megabytes << 20;
            let planes = Planes::new(0..bytes).unwrap();
            let mut touched = Touched::new(sites().iter(), Some(planes), u64::MAX);
            (0..bytes).step_by(8).for_each(|at| touch(&mut touched, 0, at, 4));
            let all = DispatchRuns::new(&touched);
            let (mut next, mut most) = (0, 0);
            for _ in 0..2 {
                next = 0;
                all.each(|some| {
                    most = most.max(some.len());
                    for (range, number) in some {
                        assert_eq!((range.clone(), *number), (next..next + 4, 0));
                        next += 8;
                    }
                });
            }
            assert_eq!((next, all.extent()), (bytes, 0..bytes - 4));
            // All of them would be 3 bytes for each byte of the memory.
            let kept = all.kept.len().max(most) * size_of::<NumberedRange>();
            let limit = (MAX_KEPT + GRANULE as usize / 8) * size_of::<NumberedRange>();
            assert!(kept <= limit && limit < 2 << 20, "{kept} bytes for {megabytes} MiB, at most {limit}");
        }
    }
}
