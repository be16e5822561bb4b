//! Words that lanes have in strips: in each strip next to each other or the same one, and the strips a distance apart that only
//! the running kernel knows. So are the 8 x 2 invocations of a subgroup of 8 x 8, when they take `image[y * width + x]`.
//!
//! Each strip is a row of its own, of which its lanes count. A gather or a scatter takes as long as a dozen rows.

use smallvec::SmallVec;

use super::address::{MemoryRegion, Offset};
use super::coalescing::{CoveringRows, covering_rows};
use crate::analysis::{BlockShapes, LaneAffine, LaneConstants, UniformTerm};
use crate::ir::{self, Op, Width};
use crate::simd::{Address, InstData, LANES, Row, Segments};
use crate::vectorize::{Type, Value, Widen};

/// Strips of an access, and rows that they are loaded with, at most.
const MAX_SEGMENTS: usize = 4;
const MAX_ROWS: usize = 6;

/// Numbers in strips of equal length, equal distances from each other.
pub(in crate::vectorize) struct EqualSegments {
    sum: LaneAffine,
    lanes: usize,
}

impl EqualSegments {
    /// The values that the numbers are found with.
    pub(in crate::vectorize) fn uses(&self) -> impl Iterator<Item = ir::Value> {
        self.sum.operands()
    }

    pub(in crate::vectorize) fn lanes(&self) -> u8 {
        self.lanes as u8
    }

    /// Whether only the running kernel knows how far strips are from each other.
    pub(in crate::vectorize) fn has_symbolic_step(&self) -> bool {
        !self.sum.symbolic.is_empty()
    }
}

/// An access in strips.
pub(in crate::vectorize) struct SegmentedAccess {
    /// The terms of the offset that lanes differ in, with their strides; all but one are the same within a strip.
    sums: SmallVec<[(LaneAffine, u32); 2]>,
    /// The one that counts words.
    row: usize,
    segments: SmallVec<[Segment; MAX_SEGMENTS]>,
}

/// Lanes that are together.
struct Segment {
    mask: u64,
    /// The lowest lane.
    first: usize,
    form: SegmentForm,
}

/// Which words the lanes of a strip have, from the word of the first lane on.
enum SegmentForm {
    /// The lane's number is the word's, but for a constant.
    Row,
    /// All the same.
    Broadcast,
    /// Those of some rows.
    Picked { least: u32, rows: CoveringRows, places: LaneConstants },
}

/// Whether a lane's number is one more than that of the lane before.
fn follows(sum: &LaneAffine, lane: usize) -> bool {
    sum.same_symbolic(lane - 1, lane) && sum.lanes[lane].wrapping_sub(sum.lanes[lane - 1]) == 1
}

/// Whether a segment that begins with a lane is as far from the one before as the second is from the first.
fn starts_equal_segment(sum: &LaneAffine, lane: usize, lanes: usize) -> bool {
    let even = |of: &LaneConstants| of[lane].wrapping_sub(of[lane - lanes]) == of[lanes].wrapping_sub(of[0]);
    even(&sum.lanes) && sum.symbolic.iter().all(|(_, of)| even(of))
}

impl SegmentedAccess {
    /// The values that strips are found with.
    pub(in crate::vectorize) fn uses(&self) -> impl Iterator<Item = ir::Value> {
        self.sums.iter().flat_map(|(sum, _)| sum.operands())
    }

    /// Lanes with words next to each other, by the first of them, in order; none if they are many.
    fn runs(&self) -> Option<SmallVec<[(usize, u64); MAX_SEGMENTS]>> {
        let words = &self.sums[self.row].0.lanes;
        let mut runs: SmallVec<[(usize, u64); MAX_SEGMENTS]> = SmallVec::new();
        for lane in 0..LANES as usize {
            let segment = self.segments.iter().find(|segment| segment.mask >> lane & 1 != 0)?;
            let full = runs.len() == MAX_SEGMENTS;
            match runs.last_mut() {
                Some((first, mask))
                    if segment.mask >> *first & 1 != 0
                        && words[lane].wrapping_sub(words[*first]) == (lane - *first) as u32 =>
                {
                    *mask |= 1 << lane;
                }
                _ if full => return None,
                _ => runs.push((lane, 1 << lane)),
            }
        }
        Some(runs)
    }
}

impl SegmentedAccess {
    /// The segments of an offset's words, if they are few.
    pub(in crate::vectorize) fn new(shapes: BlockShapes, offset: &Offset) -> Option<Self> {
        let row = offset.lanes.iter().rposition(|term| term.stride == 4).filter(|_| offset.lanes.len() <= 2)?;
        if offset.lanes.len() == 1 && shapes.is_contiguous(offset.lanes[row].value) {
            return None;
        }
        let sums = offset.lanes.iter().map(|term| Some((sum_of(shapes, term.value)?, term.stride)));
        let sums: SmallVec<[(LaneAffine, u32); 2]> = sums.collect::<Option<_>>()?;
        let together = |a: usize, b: usize| {
            let mut sums = sums.iter().enumerate();
            sums.all(|(number, (sum, _))| sum.same_symbolic(a, b) && (number == row || sum.lanes[a] == sum.lanes[b]))
        };
        let mut masks: SmallVec<[(usize, u64); MAX_SEGMENTS]> = SmallVec::new();
        for lane in 0..LANES as usize {
            match masks.iter().position(|&(first, _)| together(first, lane)) {
                Some(segment) => masks[segment].1 |= 1 << lane,
                None if masks.len() == MAX_SEGMENTS => return None,
                None => masks.push((lane, 1 << lane)),
            }
        }
        let words = sums[row].0.lanes;
        let segment = |(first, mask)| Some(Segment { mask, first, form: form(&words, first, mask)? });
        let segments: SmallVec<[Segment; MAX_SEGMENTS]> = masks.into_iter().map(segment).collect::<Option<_>>()?;
        let rows = segments
            .iter()
            .map(|segment| if let SegmentForm::Picked { rows, .. } = &segment.form { rows.len() } else { 1 });
        (rows.sum::<usize>() <= MAX_ROWS).then_some(Self { sums, row, segments })
    }
}

impl EqualSegments {
    /// The segments of a value's lanes, if those are segments of 8 or 4 lanes, contiguous within a segment, and equally
    /// far from segment to segment.
    pub(in crate::vectorize) fn new(shapes: BlockShapes, value: ir::Value) -> Option<Self> {
        let sum = sum_of(shapes, value)?;
        let lanes = (1..LANES as usize).find(|&lane| !follows(&sum, lane))?;
        let is_even = |lane: usize| match lane % lanes {
            0 => starts_equal_segment(&sum, lane, lanes),
            _ => follows(&sum, lane),
        };
        let even = matches!(lanes, 4 | 8) && (1..LANES as usize).all(is_even);
        even.then_some(Self { sum, lanes })
    }
}

impl Widen<'_> {
    /// The number that lane 0 has, and how much more the first lane of each strip has than that of the strip before.
    pub(in crate::vectorize) fn equal_segments_start(
        &mut self,
        EqualSegments { sum, lanes }: &EqualSegments,
    ) -> (Value, Segments) {
        let first = self.lane_value(sum, 0);
        let between = |of: &LaneConstants| of[*lanes].wrapping_sub(of[0]);
        let steps = sum.symbolic.iter().map(|(value, of)| {
            let mut step = [0; LANES as usize];
            step[0] = between(of);
            (*value, step)
        });
        let mut constants = [0; LANES as usize];
        constants[0] = between(&sum.lanes);
        let step = LaneAffine { lanes: constants, symbolic: steps.collect(), ..LaneAffine::default() };
        (first, Segments { lanes: *lanes as u8, step: self.lane_value(&step, 0) })
    }

    /// Loads the words of an offset strip by strip, if it has few.
    pub(in crate::vectorize) fn load_segments(&mut self, region: MemoryRegion, offset: &Offset) -> Option<Value> {
        let segments = SegmentedAccess::new(self.shapes(), offset)?;
        let skip = self.uniform_part(offset);
        let region = self.skip(region, skip);
        let mut all = None;
        for segment in &segments.segments {
            let (region, index) = self.segment_start(&segments, segment.first, region);
            let limit = self.count(region.len, 4);
            let words = match &segment.form {
                SegmentForm::Broadcast => {
                    let address = Address { base: region.base, index: Some((index, limit)), scale: 4, disp: 0 };
                    self.builder.emit_value(InstData::Load { ty: Type::V32, address })
                }
                SegmentForm::Row => self.load_row(region, index, (segment.first as u32).wrapping_neg(), limit),
                SegmentForm::Picked { least, rows, places } => {
                    let load = |&row: &u32| self.load_row(region, index, least.wrapping_add(row), limit);
                    let loaded: SmallVec<[Value; 4]> = rows.iter().map(load).collect();
                    self.pick_covered(&loaded, rows, places)
                }
            };
            all = Some(match all {
                None => words,
                Some(before) => {
                    let mask = self.builder.constant(Type::Mask, segment.mask);
                    self.builder.select(mask, words, before)
                }
            });
        }
        all
    }

    /// The row of words from the number `index + more` on.
    fn load_row(&mut self, region: MemoryRegion, index: Value, more: u32, limit: Value) -> Value {
        let index = self.plus_scalar(index, more);
        self.builder.emit_value(InstData::LoadRow { row: Row { base: region.base, index, limit, width: Width::Word } })
    }

    /// Stores words by rows of lanes, if those are few; whether that was done.
    pub(in crate::vectorize) fn store_segments(
        &mut self,
        region: MemoryRegion,
        offset: &Offset,
        value: ir::Value,
    ) -> bool {
        let Some(segments) = SegmentedAccess::new(self.shapes(), offset) else { return false };
        let Some(runs) = segments.runs() else { return false };
        let value = self.vector(value);
        let skip = self.uniform_part(offset);
        let region = self.skip(region, skip);
        for (first, lanes) in runs {
            let (region, index) = self.segment_start(&segments, first, region);
            let limit = self.count(region.len, 4);
            let index = self.plus_scalar(index, (first as u32).wrapping_neg());
            let lanes = self.builder.constant(Type::Mask, lanes);
            let mask = self.builder.and(self.exec, lanes);
            let row = Row { base: region.base, index, limit, width: Width::Word };
            self.builder.emit(InstData::StoreRow { row, value, mask });
        }
        true
    }

    /// The region that the numbers of a strip's words count in, and the number of that lane's, its first.
    fn segment_start(
        &mut self,
        segments: &SegmentedAccess,
        first: usize,
        region: MemoryRegion,
    ) -> (MemoryRegion, Value) {
        let mut region = region;
        let mut index = self.builder.s32(0);
        for (number, (sum, stride)) in segments.sums.iter().enumerate() {
            let value = self.lane_value(sum, first);
            if number == segments.row {
                index = value;
            } else {
                let skip = self.scaled_base(value, *stride);
                region = self.skip(region, skip);
            }
        }
        (region, index)
    }

    /// The number that a lane has, as a scalar.
    fn lane_value(&mut self, of: &LaneAffine, lane: usize) -> Value {
        let mut sum = self.builder.s32(0);
        for &part in &of.uniform {
            let value = match part {
                UniformTerm::Base(value) => self.base_of(value),
                UniformTerm::Product(value, factor) => {
                    let (value, factor) = (self.base_of(value), self.scalar(factor));
                    self.builder.pure(Op::IMul, &[value, factor])
                }
            };
            sum = self.add(sum, value);
        }
        for &(factor, lanes) in of.symbolic.iter().filter(|(_, lanes)| lanes[lane] != 0) {
            let factor = self.scalar(factor);
            let step = match lanes[lane] {
                1 => factor,
                steps => {
                    let steps = self.builder.s32(steps);
                    self.builder.pure(Op::IMul, &[factor, steps])
                }
            };
            sum = self.add(sum, step);
        }
        self.plus_scalar(sum, of.lanes[lane])
    }

    /// A sum of two scalars.
    fn add(&mut self, a: Value, b: Value) -> Value {
        match (self.builder.kernel.constant(a), self.builder.kernel.constant(b)) {
            (Some(0), _) => b,
            (_, Some(0)) => a,
            _ => self.builder.pure(Op::IAdd, &[a, b]),
        }
    }

    fn base_of(&mut self, value: ir::Value) -> Value {
        if self.shapes().is_uniform(value) { self.scalar(value) } else { self.get(value) }
    }

    pub(in crate::vectorize) fn plus_scalar(&mut self, value: Value, more: u32) -> Value {
        let more = self.builder.s32(more);
        self.add(value, more)
    }
}

/// The sum that a value is, unless it is clamped.
fn sum_of(shapes: BlockShapes, value: ir::Value) -> Option<LaneAffine> {
    shapes.lane_affine(value).filter(|sum| !sum.is_clamped())
}

/// How the lanes of a strip have their words; none if those are too far from each other.
fn form(words: &LaneConstants, first: usize, mask: u64) -> Option<SegmentForm> {
    let lanes = || (0..LANES as usize).filter(|lane| mask >> lane & 1 != 0);
    let from_first = |lane: usize| words[lane].wrapping_sub(words[first]);
    if lanes().all(|lane| from_first(lane) == (lane - first) as u32) {
        return Some(SegmentForm::Row);
    }
    if lanes().all(|lane| from_first(lane) == 0) {
        return Some(SegmentForm::Broadcast);
    }
    let least = lanes().map(|lane| from_first(lane).cast_signed()).min()?.cast_unsigned();
    let mut places = [0; LANES as usize];
    for lane in lanes() {
        places[lane] = from_first(lane).wrapping_sub(least);
    }
    let rows = covering_rows(lanes().map(|lane| places[lane]));
    (rows.len() <= 2).then_some(SegmentForm::Picked { least, rows, places })
}
