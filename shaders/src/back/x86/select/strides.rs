//! Which rows of a loop lie far from each other. What a subgroup skips there is what its neighbours read in their turns, too
//! late for the processor to see a pattern: such loads fetch the neighbours' words with their own.

use cranelift_entity::EntitySet;

use super::most::{Passed, passed};
use crate::ir::Op;
use crate::simd::{InstData, Kernel, LANES, Row, Value};

/// Bytes from a row to the words that are fetched with it: those of the next subgroup but one.
pub(super) const FETCHED: i32 = 128;

/// Words from trip to trip up to which the processor sees the pattern itself.
const NEAR: u32 = 2 * LANES;

/// Counters of loops that go on in long strides.
#[derive(Debug)]
pub(super) struct Strides(EntitySet<Value>);

impl Strides {
    pub(super) fn new(kernel: &Kernel) -> Self {
        let mut far = EntitySet::new();
        let passed = passed(kernel);
        for &block in &kernel.layout {
            let all = kernel.blocks[block].params.iter().zip(&passed[block]);
            far.extend(all.filter(|&(&param, passed)| strides(kernel, param, passed)).map(|(&param, _)| param));
        }
        Self(far)
    }

    /// Whether the row is in a buffer, and its neighbour of the next trip is far away.
    pub(super) fn is_far(&self, kernel: &Kernel, row: &Row) -> bool {
        matches!(kernel.definition(row.base), Some(InstData::BufferBase { .. }))
            && (self.0.contains(row.index)
                || matches!(kernel.definition(row.index), Some(InstData::Pure { op: Op::IAdd, args })
                    if args.iter().any(|&arg| self.0.contains(arg))))
    }
}

/// Whether the parameter is a counter that goes on by many words.
fn strides(kernel: &Kernel, param: Value, passed: &Passed) -> bool {
    passed.iter().any(|&(value, _)| match kernel.definition(value) {
        Some(InstData::Pure { op: Op::IAdd, args }) if args.contains(&param) => {
            let step = if args[0] == param { args[1] } else { args[0] };
            kernel.constant(step).is_none_or(|step| (step as u32).cast_signed().unsigned_abs() > NEAR)
        }
        _ => false,
    })
}
