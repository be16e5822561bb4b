//! Simplification by integer ranges (comparisons, divisions, offsets; correlated value propagation), then reassociation
//! of offset sums, so that more of them is loop-invariant.
//!
//! `decide` finds operations whose result is constant or an operand, and signed operations that may be unsigned.
//! `division` handles constant divisors. `address` moves constants and factors of indices into byte offsets where
//! nothing wraps. `reassociate` adds up loop-invariant terms first.

mod address;
mod decide;
mod division;
mod reassociate;

use super::editor::{Editor, Replacement, RewriteRules, edit};
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
    /// The range of a value in the block that is being rewritten.
    fn range(&self, editor: &Editor<'_>, value: Value) -> Range {
        editor.block().map_or(Range::ANY, |block| self.ranges.at(block, value))
    }
}

impl RewriteRules for ByRange {
    fn rewrite(&mut self, editor: &mut Editor<'_>, data: &InstData) -> Option<Replacement> {
        match data {
            InstData::Pure { op, args } => {
                if let Some(constant) = self.constant_result(editor) {
                    return editor.becomes_constant(constant);
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
    /// The result, if its range has one value.
    fn constant_result(&self, editor: &Editor<'_>) -> Option<u32> {
        let result = editor.result().filter(|&result| editor.ty(result) == Type::I32)?;
        self.ranges.range(result).value()
    }

    fn binary(&self, editor: &mut Editor<'_>, op: Op, [a, b]: [Value; 2]) -> Option<Replacement> {
        if editor.ty(a) != Type::I32 || editor.ty(b) != Type::I32 {
            return None;
        }
        let ranges = [a, b].map(|value| self.range(editor, value));
        decide::binary(editor, op, [a, b], ranges).or_else(|| division::rewrite(editor, op, [a, b], ranges[0]))
    }
}
