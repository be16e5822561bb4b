//! Which commands of a batch need a barrier between them: those that touch the same bytes, where one of them writes.
//!
//! A barrier ends a phase of the driver, so it orders everything before it against everything after it: commands are
//! grouped, each group as long as it can be, and there is one barrier between two groups.

use std::collections::HashMap;
use std::ops::Range;
use std::sync::Arc;

use foldhash::fast::FixedState;

use crate::object::{ObjectId, ResourceObject};
use crate::resource::Resource;
use crate::serial::Access;
use crate::valid::Ranges;

/// What a command does with an object.
#[derive(Clone, Debug)]
pub(crate) struct Use<'a> {
    pub(crate) object: &'a Arc<ResourceObject>,
    /// Whose object that must still be when a batch takes note of the use; staging buffers, and what is being replaced,
    /// are nobody's.
    pub(crate) resource: Option<&'a Resource>,
    /// Bytes of a buffer.
    pub(crate) range: Range<u64>,
    pub(crate) access: Access,
}

impl<'a> Use<'a> {
    /// A use of an object that was found behind a resource.
    pub(crate) fn of(
        resource: &'a Resource,
        object: &'a Arc<ResourceObject>,
        range: Range<u64>,
        access: Access,
    ) -> Self {
        Self { object, resource: Some(resource), range, access }
    }

    /// A use of an object that only the caller knows, or whose resource he has locked.
    pub(crate) fn own(object: &'a Arc<ResourceObject>, range: Range<u64>, access: Access) -> Self {
        Self { object, resource: None, range, access }
    }
}

/// What commands have touched since the last barrier.
#[derive(Debug, Default)]
pub(crate) struct Hazards {
    objects: HashMap<ObjectId, Touched, FixedState>,
}

#[derive(Debug, Default)]
struct Touched {
    read: Ranges,
    written: Ranges,
}

impl Touched {
    fn conflicts(&self, range: &Range<u64>, access: Access) -> bool {
        self.written.intersects(range) || (access.writes() && self.read.intersects(range))
    }
}

impl Hazards {
    /// Takes in the next command, which does this. `true` if a barrier must come before it.
    #[must_use = "the command needs a barrier before it"]
    pub(crate) fn next<'a>(&mut self, uses: impl Iterator<Item = (ObjectId, &'a Range<u64>, Access)> + Clone) -> bool {
        let touched = |id| self.objects.get(&id);
        let barrier = uses.clone().any(|(id, range, access)| touched(id).is_some_and(|t| t.conflicts(range, access)));
        if barrier {
            self.clear();
        }
        for (id, range, access) in uses {
            let touched = self.objects.entry(id).or_default();
            let ranges = if access.writes() { &mut touched.written } else { &mut touched.read };
            ranges.add(range.clone());
        }
        barrier
    }

    /// Everything so far is ordered before everything that comes.
    pub(crate) fn clear(&mut self) {
        self.objects.clear();
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::Access::{Read, Write};
    use super::*;

    type Command = Vec<(u64, Range<u64>, Access)>;

    /// Which of the commands get a barrier before them.
    fn barriers(commands: &[Command]) -> Vec<bool> {
        let mut hazards = Hazards::default();
        let uses = |command: &[_]| -> Vec<(ObjectId, Range<u64>, Access)> {
            command
                .iter()
                .map(|(id, range, access): &(u64, Range<u64>, Access)| (ObjectId(*id), range.clone(), *access))
                .collect()
        };
        commands
            .iter()
            .map(|command| {
                let uses = uses(command);
                hazards.next(uses.iter().map(|(id, range, access)| (*id, range, *access)))
            })
            .collect()
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

    fn commands() -> impl Strategy<Value = Vec<Command>> {
        let access = prop_oneof![Just(Read), Just(Write)];
        let one = (0..3u64, 0..12u64, 1..6u64, access).prop_map(|(id, at, len, access)| (id, at..at + len, access));
        proptest::collection::vec(proptest::collection::vec(one, 1..4), 1..24)
    }

    proptest! {
        /// Every pair that conflicts has a barrier between, and every barrier has a pair that needs it.
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
