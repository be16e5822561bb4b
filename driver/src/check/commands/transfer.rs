//! The memory that a command accesses by itself: regions of transfers, results of queries, the counts and the condition
//! of a dispatch. What invocations access is in [`super::touched`].

use std::ops::Range;

use spelter_shaders::guest::GuestSlice;

use super::scope::{Accesses, Stage};
use crate::exec::{Grid, Groups, Work};

/// Accesses of one kind.
pub(super) struct Transfer {
    pub(super) ranges: Vec<Range<u64>>,
    pub(super) stage: Stage,
    pub(super) access: Accesses,
}

/// The accesses of a command, reads before writes. Fills, updates and clears are in stage `CLEAR`, all else is a copy.
pub(super) fn transfers(work: &Work) -> Vec<Transfer> {
    let (read, write) = (Accesses::TRANSFER_READ, Accesses::TRANSFER_WRITE);
    let list = match work {
        Work::Dispatch(dispatch) => {
            let condition = dispatch.condition.iter().map(|condition| {
                (vec![bytes(&condition.word, 4)], Stage::ConditionalRendering, Accesses::CONDITIONAL_READ)
            });
            let counts = match &dispatch.groups {
                // A dispatch that is discarded does not read them.
                Groups::Indirect(slice) if dispatch.condition.is_none_or(|condition| condition.holds()) => {
                    Some((vec![bytes(slice, 12)], Stage::DrawIndirect, Accesses::INDIRECT_READ))
                }
                Groups::Indirect(_) | Groups::Direct(_) => None,
            };
            condition.chain(counts).collect()
        }
        Work::Copy { from, to } => {
            vec![(vec![bytes(from, to.len())], Stage::Copy, read), (vec![bytes(to, from.len())], Stage::Copy, write)]
        }
        Work::Fill { to, .. } => vec![(vec![bytes(to, to.len() & !3)], Stage::Clear, write)],
        Work::Update { to, bytes: new } => vec![(vec![bytes(to, new.len() as u64)], Stage::Clear, write)],
        Work::Rows(work) => vec![
            (rows(&Grid { rows: work.to.rows, ..work.from }, work.row_bytes), Stage::Copy, read),
            (rows(&work.to, work.row_bytes), Stage::Copy, write),
        ],
        Work::Clear(work) => vec![(rows(&work.to, work.row.len() as u64), Stage::Clear, write)],
        Work::Query(query) => vec![(query.written(), Stage::Copy, write)],
        Work::Event { .. } | Work::WaitEvents(_) => Vec::new(),
    };
    let transfer = |(ranges, stage, access): (Vec<Range<u64>>, Stage, Accesses)| {
        let ranges: Vec<_> = ranges.into_iter().filter(|range| !range.is_empty()).collect();
        Transfer { ranges, stage, access }
    };
    list.into_iter().map(transfer).filter(|transfer| !transfer.ranges.is_empty()).collect()
}

/// The first bytes of a slice.
fn bytes(slice: &GuestSlice, len: u64) -> Range<u64> {
    let start = slice.address() as u64;
    start..start.saturating_add(slice.len().min(len))
}

/// The rows of an image or a buffer; rows that follow each other are one range.
fn rows(grid: &Grid, bytes: u64) -> Vec<Range<u64>> {
    let start = grid.slice.address() as u64;
    let mut list: Vec<Range<u64>> = Vec::new();
    for row in 0..grid.rows {
        let at = start.saturating_add(grid.at(row));
        match list.last_mut() {
            Some(last) if last.end == at => last.end = at.saturating_add(bytes),
            _ => list.push(at..at.saturating_add(bytes)),
        }
    }
    list
}
