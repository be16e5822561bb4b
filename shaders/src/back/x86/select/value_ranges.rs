//! Ranges of 32-bit scalars and of the lanes of vectors, from constants, operations and subgroup-loop counters:
//! accesses that are provably in bounds need no check, and shifts by small amounts no mask.
//!
//! The transfer functions are those of the value-range analysis of the scalar IR, whose operations have the same
//! meaning here.

use cranelift_entity::SecondaryMap;
use smallvec::SmallVec;

use super::incoming::incoming_arguments;
use crate::analysis::{Range, Ranges};
use crate::ir::Op;
use crate::simd::{InstData, Kernel, Type, Value};

/// The range of each value: of a vector, in any of its lanes.
#[derive(Debug)]
pub(super) struct ValueRanges(SecondaryMap<Value, Range>);

impl ValueRanges {
    pub(super) fn new(kernel: &Kernel) -> Self {
        let mut ranges = Self(SecondaryMap::with_default(Range::ANY));
        let incoming = incoming_arguments(kernel);
        for &block in &kernel.layout {
            for (position, &param) in kernel.blocks[block].params.iter().enumerate() {
                if is_word(kernel, param) {
                    let all = incoming[block].get(position).into_iter().flatten();
                    let joined = all.map(|&argument| ranges.of_argument(kernel, argument)).reduce(Range::join);
                    ranges.0[param] = joined.unwrap_or(Range::ANY);
                }
            }
            for &inst in &kernel.blocks[block].insts {
                if let [result] = *kernel.results[inst].as_slice()
                    && is_word(kernel, result)
                {
                    ranges.0[result] = ranges.of_inst(&kernel.insts[inst]);
                }
            }
        }
        ranges
    }

    /// The upper bound of an `s32`, or of the words of a `v32`.
    pub(super) fn upper(&self, value: Value) -> u32 {
        self.0[value].high
    }

    /// The range of a back edge's argument is not known yet, unless the loop condition `argument < limit` gives it.
    fn of_argument(&self, kernel: &Kernel, (value, condition): (Value, Option<Value>)) -> Range {
        let range = self.0[value];
        match condition.and_then(|condition| kernel.definition(condition)) {
            Some(InstData::Pure { op: Op::ULt, args }) if args[0] == value => {
                let max = kernel.constant(args[1]).and_then(|limit| (limit as u32).checked_sub(1));
                max.map_or(range, |max| range.meet(Range::up_to(max)))
            }
            _ => range,
        }
    }

    fn of_inst(&self, data: &InstData) -> Range {
        match data {
            InstData::Const { bits, .. } => Range::exact(*bits as u32),
            InstData::Splat { value } => self.0[*value],
            InstData::Select { then, otherwise, .. } => self.0[*then].join(self.0[*otherwise]),
            InstData::Pure { op, args } => {
                let args: SmallVec<[Range; 4]> = args.iter().map(|&arg| self.0[arg]).collect();
                Ranges::evaluate(*op, &args)
            }
            _ => Range::ANY,
        }
    }
}

fn is_word(kernel: &Kernel, value: Value) -> bool {
    matches!(kernel.ty(value), Type::S32 | Type::V32)
}
