//! What the ranges of integers decide or make cheaper: comparisons, divisions, offsets; then sums of offsets in an order
//! that leaves little to do inside loops.
//!
//! `decide` finds operations whose result is known or is an operand, and signed operations that may be unsigned. `division`
//! takes care of constant divisors. `address` moves constants and factors of indices into the offset, where nothing wraps
//! around. `reassociate` adds up first what does not change in a loop.

mod address;
mod decide;
mod division;
mod reassociate;

use super::editor::{Editor, New, Rules, edit};
use crate::analysis::{Range, Ranges};
use crate::ir::{InstData, Kernel, Op, Type, Value};

/// Runs the pass.
pub(super) fn run(kernel: &mut Kernel) {
    let ranges = Ranges::new(kernel);
    edit(kernel, &mut ByRange { ranges });
    reassociate::sums(kernel);
}

/// The rules of this pass.
struct ByRange {
    ranges: Ranges,
}

impl ByRange {
    /// What is known about a value at the place that is being rewritten.
    fn range(&self, editor: &Editor<'_>, value: Value) -> Range {
        editor.block().map_or(Range::ANY, |block| self.ranges.at(block, value))
    }
}

impl Rules for ByRange {
    fn rewrite(&mut self, editor: &mut Editor<'_>, data: &InstData) -> Option<New> {
        match data {
            InstData::Pure { op, args } => {
                if let Some(known) = self.known(editor) {
                    return editor.known(known);
                }
                match args[..] {
                    [a] => decide::unary(editor, *op, a, self.range(editor, a)),
                    [a, b] => self.binary(editor, *op, [a, b]),
                    [a, low, high] => {
                        let ranges = [a, low, high].map(|value| self.range(editor, value));
                        decide::clamp(*op, a, ranges)
                    }
                    _ => None,
                }
            }
            InstData::Element { base, index, stride } => address::rewrite(self, editor, *base, *index, *stride),
            _ => None,
        }
    }
}

impl ByRange {
    /// The only value that the result can have.
    fn known(&self, editor: &Editor<'_>) -> Option<u32> {
        let result = editor.result().filter(|&result| editor.ty(result) == Type::I32)?;
        self.ranges.range(result).value()
    }

    fn binary(&self, editor: &mut Editor<'_>, op: Op, [a, b]: [Value; 2]) -> Option<New> {
        if editor.ty(a) != Type::I32 || editor.ty(b) != Type::I32 {
            return None;
        }
        let ranges = [a, b].map(|value| self.range(editor, value));
        decide::binary(editor, op, [a, b], ranges).or_else(|| division::rewrite(editor, op, [a, b], ranges[0]))
    }
}
