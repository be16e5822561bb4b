//! Segments: lanes whose words are contiguous, or one word, within a segment, at a step between segments that only the
//! running kernel knows. So are the 8 x 2 invocations of a subgroup of 8 x 8 that access `image[y * width + x]`.
//!
//! Each segment is a row of its own, of which its lanes count.

use smallvec::SmallVec;

use super::constant_offsets::{CoveringRows, covering_rows};
use super::offset::Offset;
use crate::analysis::{BlockShapes, LaneAffine, LaneConstants};
use crate::ir;
use crate::simd::LANES;

/// Segments of an access.
const MAX_SEGMENTS: usize = 4;

/// Rows of one segment.
const MAX_ROWS: usize = 2;

/// Indices in segments of equal length, at one step from segment to segment.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct EqualSegments {
    pub(super) index: LaneAffine,
    pub(super) lanes: usize,
}

/// An access in segments.
#[derive(Clone, Debug)]
pub(in crate::vectorize) struct SegmentedAccess {
    /// The terms of the offset that lanes differ in, with their strides; all but one are the same within a segment.
    pub(super) indices: SmallVec<[(LaneAffine, u32); 2]>,
    /// The one that counts words.
    pub(super) row: usize,
    pub(super) segments: SmallVec<[Segment; MAX_SEGMENTS]>,
    /// Lanes whose words are contiguous, by the first of them, in order, for stores; none if they are many.
    pub(super) runs: SmallVec<[(usize, u64); MAX_SEGMENTS]>,
}

/// Lanes with the same symbolic part.
#[derive(Clone, Debug)]
pub(super) struct Segment {
    pub(super) mask: u64,
    /// The lowest lane.
    pub(super) first: usize,
    pub(super) form: SegmentForm,
}

/// Which words the lanes of a segment have, from the word of the first lane on.
#[derive(Clone, Debug)]
pub(super) enum SegmentForm {
    /// Contiguous ones.
    Row,
    /// All the same.
    Broadcast,
    /// Those of some rows, the first of which begins `least` words after the first lane's word, modulo 2³².
    Picked { min: u32, rows: CoveringRows, places: LaneConstants },
}

impl EqualSegments {
    /// The segments of a value's lanes, if all have 8 or 4 lanes.
    pub(super) fn new(shapes: BlockShapes, value: ir::Value) -> Option<Self> {
        let index = shapes.lane_affine(value)?;
        // Whether a lane's index is one more than that of the lane before.
        let follows = |lane: usize| {
            index.same_symbolic(lane - 1, lane) && index.lanes[lane].wrapping_sub(index.lanes[lane - 1]) == 1
        };
        let lanes = (1..LANES as usize).find(|&lane| !follows(lane))?;
        let same_step =
            |of: &LaneConstants, lane: usize| of[lane].wrapping_sub(of[lane - lanes]) == of[lanes].wrapping_sub(of[0]);
        let is_even = |lane: usize| match lane % lanes {
            0 => same_step(&index.lanes, lane) && index.symbolic.iter().all(|(_, of)| same_step(of, lane)),
            _ => follows(lane),
        };
        let even = matches!(lanes, 4 | 8) && (1..LANES as usize).all(is_even);
        even.then_some(Self { index, lanes })
    }

    pub(super) fn operands(&self) -> impl Iterator<Item = ir::Value> {
        self.index.operands()
    }

    pub(super) fn lanes(&self) -> u8 {
        self.lanes as u8
    }

    /// Whether only the running kernel knows the step between segments.
    pub(super) fn has_symbolic_step(&self) -> bool {
        !self.index.symbolic.is_empty()
    }

    /// How much more the first lane of a segment has than that of the segment before, as lane 0 of the result.
    pub(super) fn step(&self) -> LaneAffine {
        let step = |of: &LaneConstants| {
            let mut lanes = [0; LANES as usize];
            lanes[0] = of[self.lanes].wrapping_sub(of[0]);
            lanes
        };
        let symbolic = self.index.symbolic.iter().map(|(factor, of)| (*factor, step(of))).collect();
        LaneAffine { lanes: step(&self.index.lanes), symbolic, ..LaneAffine::default() }
    }
}

impl SegmentedAccess {
    /// The segments of an offset's words, if they are few.
    pub(super) fn new(shapes: BlockShapes, offset: &Offset) -> Option<Self> {
        let row = offset.lanes.iter().rposition(|term| term.stride == 4).filter(|_| offset.lanes.len() <= 2)?;
        if offset.lanes.len() == 1 && shapes.is_contiguous(offset.lanes[row].value) {
            return None;
        }
        let indices = offset.lanes.iter().map(|term| Some((shapes.lane_affine(term.value)?, term.stride)));
        let indices: SmallVec<[(LaneAffine, u32); 2]> = indices.collect::<Option<_>>()?;
        let together = |a: usize, b: usize| {
            let mut indices = indices.iter().enumerate();
            indices.all(|(number, (index, _))| {
                index.same_symbolic(a, b) && (number == row || index.lanes[a] == index.lanes[b])
            })
        };
        let mut masks: SmallVec<[(usize, u64); MAX_SEGMENTS]> = SmallVec::new();
        for lane in 0..LANES as usize {
            match masks.iter().position(|&(first, _)| together(first, lane)) {
                Some(segment) => masks[segment].1 |= 1 << lane,
                None if masks.len() == MAX_SEGMENTS => return None,
                None => masks.push((lane, 1 << lane)),
            }
        }
        let words = indices[row].0.lanes;
        let segment = |(first, mask)| Some(Segment { mask, first, form: form(&words, first, mask)? });
        let segments: SmallVec<[Segment; MAX_SEGMENTS]> = masks.into_iter().map(segment).collect::<Option<_>>()?;
        let runs = runs(&words, &segments);
        Some(Self { indices, row, segments, runs })
    }

    pub(super) fn operands(&self) -> impl Iterator<Item = ir::Value> {
        self.indices.iter().flat_map(|(index, _)| index.operands())
    }

    /// Rows that a load reads; one word for all lanes of a segment counts as one.
    pub(super) fn rows(&self) -> u32 {
        let rows = |segment: &Segment| match &segment.form {
            SegmentForm::Picked { rows, .. } => rows.len() as u32,
            SegmentForm::Row | SegmentForm::Broadcast => 1,
        };
        self.segments.iter().map(rows).sum()
    }

    /// Shuffles of a load. Merging segments is a blend by a constant mask, which costs nothing beside them.
    pub(super) fn shuffles(&self) -> u32 {
        self.rows() - self.segments.len() as u32
    }
}

/// Lanes whose words are contiguous; none if they are many.
fn runs(words: &LaneConstants, segments: &[Segment]) -> SmallVec<[(usize, u64); MAX_SEGMENTS]> {
    let mut runs: SmallVec<[(usize, u64); MAX_SEGMENTS]> = SmallVec::new();
    for lane in 0..LANES as usize {
        let segment = segments.iter().find(|segment| segment.mask >> lane & 1 != 0).map_or(0, |segment| segment.mask);
        let full = runs.len() == MAX_SEGMENTS;
        match runs.last_mut() {
            Some((first, mask))
                if segment >> *first & 1 != 0 && words[lane].wrapping_sub(words[*first]) == (lane - *first) as u32 =>
            {
                *mask |= 1 << lane;
            }
            _ if full => return SmallVec::new(),
            _ => runs.push((lane, 1 << lane)),
        }
    }
    runs
}

/// How the lanes of a segment have their words; `None` if those are too far from each other.
fn form(words: &LaneConstants, first: usize, mask: u64) -> Option<SegmentForm> {
    let lanes = || (0..LANES as usize).filter(|lane| mask >> lane & 1 != 0);
    let from_first = |lane: usize| words[lane].wrapping_sub(words[first]);
    if lanes().all(|lane| from_first(lane) == (lane - first) as u32) {
        return Some(SegmentForm::Row);
    }
    if lanes().all(|lane| from_first(lane) == 0) {
        return Some(SegmentForm::Broadcast);
    }
    let min = lanes().map(|lane| from_first(lane).cast_signed()).min()?.cast_unsigned();
    let mut places = [0; LANES as usize];
    for lane in lanes() {
        places[lane] = from_first(lane).wrapping_sub(min);
    }
    let rows = covering_rows(lanes().map(|lane| places[lane]));
    (rows.len() <= MAX_ROWS).then_some(SegmentForm::Picked { min, rows, places })
}
