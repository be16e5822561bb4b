//! Which commands of a batch need a barrier between them: those that touch an object that one of them writes.

use std::collections::HashSet;

use crate::object::Access;

/// The objects that commands have used since the last barrier.
#[derive(Debug, Default)]
pub(crate) struct Hazards {
    read: HashSet<u64>,
    written: HashSet<u64>,
}

impl Hazards {
    /// Takes in the next command, which uses these objects. `true` if a barrier must come before it.
    #[must_use = "the command needs a barrier before it"]
    pub(crate) fn next(&mut self, uses: &[(u64, Access)]) -> bool {
        let barrier = uses.iter().any(|&(id, access)| self.conflicts(id, access));
        if barrier {
            self.read.clear();
            self.written.clear();
        }
        for &(id, access) in uses {
            let set = if access.writes() { &mut self.written } else { &mut self.read };
            set.insert(id);
        }
        barrier
    }

    fn conflicts(&self, id: u64, access: Access) -> bool {
        self.written.contains(&id) || (access.writes() && self.read.contains(&id))
    }
}

#[cfg(test)]
mod tests {
    use super::Access::{Read, Write};
    use super::*;

    /// Which of the commands get a barrier before them.
    fn barriers(commands: &[&[(u64, Access)]]) -> Vec<bool> {
        let mut hazards = Hazards::default();
        commands.iter().map(|uses| hazards.next(uses)).collect()
    }

    #[test]
    fn reads_overlap() {
        assert_eq!(barriers(&[&[(1, Read)], &[(1, Read)], &[(1, Read), (2, Write)]]), [false, false, false]);
    }

    #[test]
    fn a_write_is_seen_and_waits() {
        assert_eq!(barriers(&[&[(1, Write)], &[(1, Read)]]), [false, true]);
        assert_eq!(barriers(&[&[(1, Read)], &[(1, Write)]]), [false, true]);
        assert_eq!(barriers(&[&[(1, Write)], &[(1, Write)]]), [false, true]);
    }

    #[test]
    fn other_objects_overlap() {
        assert_eq!(barriers(&[&[(1, Write)], &[(2, Write)], &[(3, Read)]]), [false, false, false]);
    }

    #[test]
    fn a_barrier_covers_all_before_it() {
        let commands: [&[_]; 4] = [&[(1, Write)], &[(2, Write)], &[(1, Read)], &[(2, Read)]];
        assert_eq!(barriers(&commands), [false, false, true, false]);
    }
}
