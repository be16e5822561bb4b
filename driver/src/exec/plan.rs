//! The units of a phase: workgroups of its dispatches, 256 KiB chunks of its transfers.
//!
//! Units are numbered across the commands of the phase, so that one counter shares them out among any number of
//! workers, for any mix of commands.

use std::ops::Range;

use spelter_shaders::abi::MAX_WORKGROUPS;

use super::work::{Groups, Work};

/// Bytes of a copy or fill in one unit: large enough to hide the cost of taking it, small enough to share out.
pub(super) const UNIT_BYTES: u64 = 256 << 10;

/// The units of one command in its phase.
#[derive(Clone, Copy, Debug)]
struct CommandUnits {
    /// One past its last unit.
    end: u64,
    /// Workgroups of a dispatch; an indirect size is read here, once.
    groups: [u32; 3],
}

/// The units of a phase, fixed when it starts.
#[derive(Debug, Default)]
pub(super) struct PhasePlan {
    commands: Vec<CommandUnits>,
}

/// The units of one command within a range of units.
pub(super) struct CommandRange {
    /// Index of the command in its phase.
    pub(super) command: usize,
    /// Its units, numbered from 0.
    pub(super) units: Range<u64>,
    /// Workgroups, if it is a dispatch.
    pub(super) groups: [u32; 3],
}

impl PhasePlan {
    /// Counts the units of `phase`. Reads the sizes of indirect dispatches.
    pub(super) fn count(&mut self, phase: &[Work]) {
        self.commands.clear();
        let mut end = 0u64;
        for work in phase {
            let groups = groups_of(work);
            end = end.saturating_add(units_of(work, groups));
            self.commands.push(CommandUnits { end, groups });
        }
    }

    /// Number of units.
    pub(super) fn units(&self) -> u64 {
        self.commands.last().map_or(0, |entry| entry.end)
    }

    /// Number of units of one command.
    pub(super) fn units_of(&self, command: usize) -> u64 {
        self.commands[command].end - self.start_of(command)
    }

    fn start_of(&self, command: usize) -> u64 {
        command.checked_sub(1).map_or(0, |before| self.commands[before].end)
    }

    /// Splits a range of units at the borders of commands.
    pub(super) fn split(&self, range: Range<u64>) -> impl Iterator<Item = CommandRange> + '_ {
        let first = self.commands.partition_point(|entry| entry.end <= range.start);
        let commands = self.commands.iter().enumerate().skip(first);
        commands.map_while(move |(command, entry)| {
            let start = self.start_of(command);
            let units = range.start.max(start)..range.end.min(entry.end);
            (start < range.end).then(|| CommandRange {
                command,
                units: units.start - start..units.end.max(start) - start,
                groups: entry.groups,
            })
        })
    }
}

/// Workgroups of a dispatch; zeros for other commands and for dispatches whose condition does not hold.
fn groups_of(work: &Work) -> [u32; 3] {
    let Work::Dispatch(dispatch) = work else { return [0; 3] };
    if dispatch.condition.is_some_and(|condition| !condition.holds()) {
        return [0; 3];
    }
    match dispatch.groups {
        Groups::Direct(groups) => groups,
        Groups::Indirect(slice) => [0, 4, 8].map(|at| slice.load_u32(at)),
    }
}

/// Rows of an image per unit of a copy or clear.
pub(super) fn rows_of_unit(row_bytes: u64) -> u64 {
    (UNIT_BYTES / row_bytes.max(1)).max(1)
}

fn units_of(work: &Work, groups: [u32; 3]) -> u64 {
    match work {
        // No overflow: above the limit nothing runs (VUID-VkDispatchIndirectCommand-x-00417).
        Work::Dispatch(_) if groups.iter().any(|&count| count > MAX_WORKGROUPS) => 0,
        Work::Dispatch(_) => u64::from(groups[0]) * u64::from(groups[1]) * u64::from(groups[2]),
        Work::Copy { .. } | Work::Fill { .. } => work.bytes().div_ceil(UNIT_BYTES),
        Work::Event { .. } | Work::Query(_) => 1,
        Work::WaitEvents(_) => 0,
        Work::Update { .. } => work.bytes().min(1),
        Work::Rows(rows) => rows.to.rows.div_ceil(rows_of_unit(rows.row_bytes)),
        Work::Clear(clear) => clear.to.rows.div_ceil(rows_of_unit(clear.row.len() as u64)),
    }
}

#[cfg(test)]
mod tests {
    use spelter_shaders::guest::GuestSlice;

    use super::*;

    fn fill(len: u64) -> Work {
        let heap = crate::memory::Heap::new(4 << 20).unwrap();
        Work::Fill { to: heap.allocate(len).unwrap().slice(), word: 0 }
    }

    #[test]
    fn ranges_split_at_the_borders_of_commands() {
        let phase =
            [fill(3 * UNIT_BYTES), fill(1), Work::Fill { to: GuestSlice::EMPTY, word: 0 }, fill(UNIT_BYTES + 1)];
        let mut plan = PhasePlan::default();
        plan.count(&phase);
        assert_eq!(plan.units(), 6);
        let split = |range| -> Vec<_> {
            plan.split(range).filter(|p| !p.units.is_empty()).map(|p| (p.command, p.units)).collect()
        };
        assert_eq!(split(0..6), [(0, 0..3), (1, 0..1), (3, 0..2)]);
        assert_eq!(split(2..5), [(0, 2..3), (1, 0..1), (3, 0..1)]);
        assert_eq!(split(3..4), [(1, 0..1)]);
        assert_eq!(split(5..6), [(3, 1..2)]);
    }
}
