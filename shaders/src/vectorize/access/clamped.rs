//! Words at the numbers of a row that are held between limits, as `row[max(x - 1, 0)]`: a row and a permutation.
//!
//! Lane `l` has the number `f(b + l) + k`, where `f` is made of minima and maxima with uniform values and `b`, `k` are uniform.
//! While `b + l` does not wrap, `f(b + l)` is `f(b)` and at most `l` more, so that the row from `f(b) + k` on holds all words.
//! A gather takes as long as a dozen rows.

use smallvec::SmallVec;

use super::address::{MemoryRegion, Offset, Term};
use crate::analysis::{LaneOffsetTable, Ranges, Shape};
use crate::ir::{self, InstData as Scalar, Op, ValueDef, Width};
use crate::simd::{InstData, Row};
use crate::vectorize::{Value, Widen};

/// Most steps that are followed.
const MAX_STEPS: usize = 4;

/// How far operations are followed to find how large a row's numbers are.
pub(in crate::vectorize) const RANGE_DEPTH: usize = 6;

/// Consecutive numbers that are limited, lane by lane.
pub(in crate::vectorize) struct Clamped {
    /// The numbers in the lanes.
    value: ir::Value,
    /// The consecutive ones.
    row: ir::Value,
    /// What is done to them, the last step first; the other operand is uniform.
    steps: SmallVec<[(Op, ir::Value); MAX_STEPS]>,
}

impl Clamped {
    /// The values that the row is found with.
    pub(in crate::vectorize) fn uses(&self) -> impl Iterator<Item = ir::Value> {
        [self.value, self.row].into_iter().chain(self.steps.iter().map(|step| step.1))
    }
}

impl Widen<'_> {
    /// What an offset's words are the limited row of, if they are that of one.
    pub(in crate::vectorize) fn clamped(&self, offset: &Offset) -> Option<Clamped> {
        let [Term { value, stride: 4 }] = offset.lanes[..] else { return None };
        let mut clamped = Clamped { value, row: value, steps: SmallVec::new() };
        let mut signed = None;
        while self.shape(clamped.row) != Shape::Affine(LaneOffsetTable::CONTIGUOUS) {
            let (op, lanes, same) = self.step(clamped.row)?;
            // Behind a limit sums might wrap; before it they belong to the row. Limits agree about what is negative.
            let fits = match op {
                Op::IAdd => signed.is_none(),
                Op::SMax | Op::SMin => *signed.get_or_insert(true),
                Op::UMax | Op::UMin => !*signed.get_or_insert(false),
                _ => false,
            };
            if !fits || clamped.steps.len() == MAX_STEPS {
                return None;
            }
            clamped.steps.push((op, same));
            clamped.row = lanes;
        }
        let usable = self.does_not_wrap(clamped.row, signed?) && !self.is_temporally_divergent(clamped.row);
        usable.then_some(clamped)
    }

    /// The operation behind a value, with an operand that lanes differ in and one that they share.
    fn step(&self, value: ir::Value) -> Option<(Op, ir::Value, ir::Value)> {
        let ValueDef::Result { inst, .. } = self.kernel.values[value] else { return None };
        let Scalar::Pure { op, args } = &self.kernel.insts[inst] else { return None };
        let &[a, b] = &args[..] else { return None };
        let (lanes, same) = if self.shape(b) == Shape::Uniform { (a, b) } else { (b, a) };
        (self.shape(same) == Shape::Uniform && !self.is_temporally_divergent(value)).then_some((*op, lanes, same))
    }

    /// Whether numbers next to each other are so in all lanes, as signed ones or as unsigned ones: a value that is small,
    /// and a constant.
    fn does_not_wrap(&self, row: ir::Value, signed: bool) -> bool {
        let constant = |value| self.kernel.constant(value).map(|bits| bits as u32);
        let (value, more) = match self.step(row) {
            Some((Op::IAdd, lanes, same)) => constant(same).map_or((row, 0), |more| (lanes, more)),
            _ => (row, 0),
        };
        let high = i64::from(Ranges::local(self.kernel, value, RANGE_DEPTH).high);
        let (more, most) = if signed {
            (i64::from(more.cast_signed()), i64::from(i32::MAX))
        } else {
            (i64::from(more), i64::from(u32::MAX))
        };
        // Numbers that wrap from lane to lane have the greatest one among them: less than that, they do not.
        high < most && high + more < most
    }

    /// Loads the words of a limited row.
    pub(in crate::vectorize) fn load_clamped(
        &mut self,
        region: MemoryRegion,
        offset: &Offset,
        clamped: &Clamped,
    ) -> Value {
        let before = self.words_before(offset, clamped.value);
        let region = match before {
            Some(_) => region,
            None => {
                let skip = self.uniform_part(offset);
                self.skip(region, skip)
            }
        };
        let mut first = self.get(clamped.row);
        for &(op, same) in clamped.steps.iter().rev() {
            let same = self.scalar(same);
            first = self.builder.pure(op, &[first, same]);
        }
        let limit = self.count(region.len, 4);
        let index = before.map_or(first, |before| self.builder.pure(Op::IAdd, &[before, first]));
        let row = Row { base: region.base, index, limit, width: Width::Word };
        let vector = self.builder.emit_value(InstData::LoadRow { row });
        let numbers = self.vector(clamped.value);
        let first = self.builder.splat(first);
        let lanes = self.builder.pure(Op::ISub, &[numbers, first]);
        let lanes = self.builder.lift(lanes);
        self.builder.emit_one(InstData::Permute { vector, lanes })
    }
}
