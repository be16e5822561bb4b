//! Hazard tracking: a barrier is needed between commands of a batch that access the same bytes if one of them writes.
//!
//! A barrier ends a phase of the driver, so it orders everything before it against everything after it: commands are
//! grouped greedily, each group as long as possible, with one barrier between two groups.

use std::collections::HashMap;
use std::ops::Range;
use std::sync::Arc;

use foldhash::fast::FixedState;
use smallvec::SmallVec;

use crate::ids::{Access, ObjectId};
use crate::mappings::UseOrigin;
use crate::object::ResourceObject;
use crate::resource::Resource;
use crate::valid::Ranges;

/// What a command does with an object.
#[derive(Clone, Debug)]
pub(crate) struct Use<'a> {
    pub(crate) object: &'a Arc<ResourceObject>,
    /// The resource that must still own `object` when the use is recorded; `None` for staging buffers and for objects
    /// that are being replaced.
    pub(crate) resource: Option<&'a Resource>,
    /// Bytes of a buffer, or numbers of subresources of an image.
    pub(crate) range: Range<u64>,
    pub(crate) access: Access,
    /// The origin of the use, which decides the mappings that it must not overlap.
    pub(crate) origin: UseOrigin,
}

impl<'a> Use<'a> {
    /// A command's use of the current object of a resource.
    pub(crate) fn of(
        resource: &'a Resource,
        object: &'a Arc<ResourceObject>,
        range: Range<u64>,
        access: Access,
    ) -> Self {
        Self { object, resource: Some(resource), range, access, origin: UseOrigin::Command }
    }

    /// A use of an object that only the caller knows, or whose resource the caller has locked.
    pub(crate) fn own(object: &'a Arc<ResourceObject>, range: Range<u64>, access: Access) -> Self {
        Self { object, resource: None, range, access, origin: UseOrigin::Command }
    }

    /// The access to the object, for hazard tracking.
    pub(crate) fn touch(self) -> Touch {
        Touch { object: self.object.id(), range: self.range, access: self.access }
    }
}

/// The uses of a command that write only bytes that were never valid, by index. Those bytes were never written and
/// reads of them are undefined, so they may be overwritten at any time. Uses after the 64th are never in the set.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Fresh(u64);

impl Fresh {
    /// Adds the use with that index.
    pub(crate) fn note(&mut self, number: usize) {
        self.0 |= 1u64.checked_shl(number as u32).unwrap_or(0);
    }

    /// Whether the use with that index is in the set.
    pub(crate) fn has(self, number: usize) -> bool {
        number < 64 && self.0 >> number & 1 == 1
    }
}

/// An access of a command to one object.
#[derive(Clone, Debug)]
pub(crate) struct Touch {
    pub(crate) object: ObjectId,
    /// Bytes of a buffer, or numbers of subresources of an image.
    pub(crate) range: Range<u64>,
    pub(crate) access: Access,
}

impl Touch {
    /// Whether the two must be ordered: they have bytes in common, and one of them writes.
    fn conflicts(&self, other: &Self) -> bool {
        self.object == other.object
            && (self.access.writes() || other.access.writes())
            && self.range.start.max(other.range.start) < self.range.end.min(other.range.end)
    }
}

/// Touches that are searched linearly; when there are more they are moved to a map by object.
const RECENT: usize = 24;

/// The accesses of commands since the last barrier.
#[derive(Debug, Default)]
pub(crate) struct Hazards {
    /// The latest, in order: with frequent barriers there are never many.
    recent: SmallVec<[Touch; RECENT]>,
    /// The earlier ones.
    objects: HashMap<ObjectId, Touched, FixedState>,
}

#[derive(Debug, Default)]
struct Touched {
    read: Ranges,
    written: Ranges,
}

impl Touched {
    fn add(&mut self, range: Range<u64>, access: Access) {
        let ranges = if access.writes() { &mut self.written } else { &mut self.read };
        ranges.add(range);
    }

    fn conflicts(&self, range: &Range<u64>, access: Access) -> bool {
        self.written.intersects(range) || (access.writes() && self.read.intersects(range))
    }
}

impl Hazards {
    /// Adds the accesses of the next command. If a barrier must come before it, returns the number of the first access
    /// that needs it.
    #[must_use = "the command needs a barrier before it"]
    pub(crate) fn next(&mut self, uses: impl Iterator<Item = Touch> + Clone, fresh: Fresh) -> Option<usize> {
        let conflict = self.conflict(uses.clone(), fresh);
        if conflict.is_some() {
            self.clear();
        }
        self.add(uses);
        conflict
    }

    /// The number of the first access of the next command that needs a barrier before it.
    pub(crate) fn conflict(&self, uses: impl Iterator<Item = Touch>, fresh: Fresh) -> Option<usize> {
        uses.enumerate().position(|(number, touch)| !fresh.has(number) && self.conflicts(&touch))
    }

    /// Adds the accesses of the next command.
    pub(crate) fn add(&mut self, uses: impl Iterator<Item = Touch>) {
        for touch in uses {
            if self.recent.len() == RECENT {
                for Touch { object, range, access } in self.recent.drain(..) {
                    self.objects.entry(object).or_default().add(range, access);
                }
            }
            self.recent.push(touch);
        }
    }

    fn conflicts(&self, touch: &Touch) -> bool {
        let Touch { object, range, access } = touch;
        self.recent.iter().any(|recent| recent.conflicts(touch))
            || (!self.objects.is_empty()
                && self.objects.get(object).is_some_and(|touched| touched.conflicts(range, *access)))
    }

    /// Forgets all accesses so far: they are ordered before everything that comes.
    pub(crate) fn clear(&mut self) {
        self.recent.clear();
        self.objects.clear();
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::Access::{Read, Write};
    use super::*;

    type Command = Vec<(u64, Range<u64>, Access)>;

    /// For each command, whether it gets a barrier before it.
    fn barriers(commands: &[Command]) -> Vec<bool> {
        let mut hazards = Hazards::default();
        let touches = |command: &Command| -> Vec<Touch> {
            command.iter().map(|(id, range, access)| touch(*id, range.clone(), *access)).collect()
        };
        commands.iter().map(|command| hazards.next(touches(command).into_iter(), Fresh::default()).is_some()).collect()
    }

    fn touch(id: u64, range: Range<u64>, access: Access) -> Touch {
        Touch { object: ObjectId(id), range, access }
    }

    #[test]
    fn reads_overlap() {
        let commands = [vec![(1, 0..8, Read)], vec![(1, 0..8, Read)], vec![(1, 4..8, Read), (2, 0..8, Write)]];
        assert_eq!(barriers(&commands), [false, false, false]);
    }

    #[test]
    fn a_write_is_seen_and_waits() {
        assert_eq!(barriers(&[vec![(1, 0..8, Write)], vec![(1, 7..9, Read)]]), [false, true]);
        assert_eq!(barriers(&[vec![(1, 0..8, Read)], vec![(1, 7..9, Write)]]), [false, true]);
        assert_eq!(barriers(&[vec![(1, 0..8, Write)], vec![(1, 7..9, Write)]]), [false, true]);
    }

    #[test]
    fn other_bytes_and_other_objects_overlap() {
        assert_eq!(barriers(&[vec![(1, 0..8, Write)], vec![(1, 8..16, Write)], vec![(2, 0..8, Read)]]), [false; 3]);
    }

    #[test]
    fn a_barrier_covers_all_before_it() {
        let commands = [vec![(1, 0..8, Write)], vec![(2, 0..8, Write)], vec![(1, 0..8, Read)], vec![(2, 0..8, Read)]];
        assert_eq!(barriers(&commands), [false, false, true, false]);
    }

    #[test]
    fn what_was_never_valid_is_written_at_once_and_read_after() {
        let (mut hazards, mut fresh) = (Hazards::default(), Fresh::default());
        fresh.note(1);
        fresh.note(64);
        let one = |range, access| [touch(1, range, access)].into_iter();
        assert_eq!(hazards.next(one(0..64, Read), Fresh::default()), None);
        let two = [touch(2, 0..8, Read), touch(1, 16..32, Write)].into_iter();
        assert_eq!(hazards.next(two, fresh), None, "the first command reads what is not defined");
        assert_eq!(hazards.next(one(32..64, Read), Fresh::default()), None, "other bytes");
        assert_eq!(hazards.next(one(0..64, Read), Fresh::default()), Some(0), "it is defined now");
        assert_eq!(hazards.next(one(0..8, Write), fresh), Some(0), "the first use is not the one");
    }

    fn commands() -> impl Strategy<Value = Vec<Command>> {
        // Few writes, so that some groups are long.
        let access = prop_oneof![6 => Just(Read), 1 => Just(Write)];
        let one = (0..3u64, 0..40u64, 1..6u64, access).prop_map(|(id, at, len, access)| (id, at..at + len, access));
        proptest::collection::vec(proptest::collection::vec(one, 1..4), 1..80)
    }

    proptest! {
        /// Every conflicting pair has a barrier between its commands, and every barrier has a pair that needs it.
        #[test]
        fn barriers_are_enough_and_none_is_too_many(commands in commands()) {
            let conflict = |a: &Command, b: &Command| a.iter().any(|(id, range, access)| b.iter().any(|(other, bytes, how)| {
                id == other && range.start < bytes.end && bytes.start < range.end && (access.writes() || how.writes())
            }));
            let mut group = 0;
            for (at, barrier) in barriers(&commands).into_iter().enumerate() {
                prop_assert_eq!(barrier, commands[group..at].iter().any(|before| conflict(before, &commands[at])));
                group = if barrier { at } else { group };
            }
        }
    }
}
