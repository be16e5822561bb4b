//! A phase as one range of units: workgroups of its dispatches, pieces of its copies and fills.
//!
//! Units are numbered across the commands of the phase, so that one counter shares them out to any number of workers,
//! whatever mix of commands the phase has.

use std::ops::Range;

use super::work::{Groups, MAX_GROUPS, Work};

/// Bytes of a copy or fill in one unit: long enough to forget the cost of taking it, short enough to share out.
pub(super) const PIECE: u64 = 256 << 10;

/// What one command adds to its phase.
#[derive(Clone, Copy, Debug)]
struct Part {
    /// One past its last unit.
    end: u64,
    /// Workgroups of a dispatch: an indirect size is read once, here.
    groups: [u32; 3],
}

/// The units of a phase, fixed when it starts.
#[derive(Debug, Default)]
pub(super) struct Plan {
    parts: Vec<Part>,
}

/// The units of one command out of a range of units.
pub(super) struct Piece {
    /// Index of the command in its phase.
    pub(super) command: usize,
    /// Its units, numbered from 0.
    pub(super) units: Range<u64>,
    /// Workgroups, if it is a dispatch.
    pub(super) groups: [u32; 3],
}

impl Plan {
    /// Counts the units of `phase`, reading the sizes of indirect dispatches.
    pub(super) fn count(&mut self, phase: &[Work]) {
        self.parts.clear();
        let mut end = 0u64;
        for work in phase {
            let groups = groups_of(work);
            end = end.saturating_add(units_of(work, groups));
            self.parts.push(Part { end, groups });
        }
    }

    /// Units in all.
    pub(super) fn units(&self) -> u64 {
        self.parts.last().map_or(0, |part| part.end)
    }

    /// Units of one command.
    pub(super) fn units_of(&self, command: usize) -> u64 {
        self.parts[command].end - self.start_of(command)
    }

    fn start_of(&self, command: usize) -> u64 {
        command.checked_sub(1).map_or(0, |before| self.parts[before].end)
    }

    /// Splits a range of units at the borders of commands.
    pub(super) fn pieces(&self, range: Range<u64>) -> impl Iterator<Item = Piece> + '_ {
        let first = self.parts.partition_point(|part| part.end <= range.start);
        let parts = self.parts.iter().enumerate().skip(first);
        parts.map_while(move |(command, part)| {
            let start = self.start_of(command);
            let units = range.start.max(start)..range.end.min(part.end);
            (start < range.end).then(|| Piece {
                command,
                units: units.start - start..units.end.max(start) - start,
                groups: part.groups,
            })
        })
    }
}

/// Workgroups of a dispatch; nothing of anything else.
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

/// Rows of an image that one unit copies or clears.
pub(super) fn rows_of_unit(row_bytes: u64) -> u64 {
    (PIECE / row_bytes.max(1)).max(1)
}

fn units_of(work: &Work, groups: [u32; 3]) -> u64 {
    match work {
        // Above the limit nothing runs (VUID-VkDispatchIndirectCommand-x-00417): no count of workgroups overflows.
        Work::Dispatch(_) if groups.iter().any(|&count| count > MAX_GROUPS) => 0,
        Work::Dispatch(_) => u64::from(groups[0]) * u64::from(groups[1]) * u64::from(groups[2]),
        Work::Copy { .. } | Work::Fill { .. } => work.bytes().div_ceil(PIECE),
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
        let phase = [fill(3 * PIECE), fill(1), Work::Fill { to: GuestSlice::EMPTY, word: 0 }, fill(PIECE + 1)];
        let mut plan = Plan::default();
        plan.count(&phase);
        assert_eq!(plan.units(), 6);
        let pieces = |range| -> Vec<_> {
            plan.pieces(range).filter(|p| !p.units.is_empty()).map(|p| (p.command, p.units)).collect()
        };
        assert_eq!(pieces(0..6), [(0, 0..3), (1, 0..1), (3, 0..2)]);
        assert_eq!(pieces(2..5), [(0, 2..3), (1, 0..1), (3, 0..1)]);
        assert_eq!(pieces(3..4), [(1, 0..1)]);
        assert_eq!(pieces(5..6), [(3, 1..2)]);
    }
}
