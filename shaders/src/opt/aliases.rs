//! Value aliases: a pass records which value replaces which, and rewrites all uses once, at its end.

use crate::ir::{Kernel, Value};
use crate::ssa::AliasMap;

/// Replaced values.
#[derive(Debug, Default)]
pub(super) struct Aliases {
    map: AliasMap<Value>,
    any: bool,
}

impl Aliases {
    /// Uses of `old` become uses of `new`. `false` if both are the same value after resolution: a value defined by
    /// itself, as can occur in unreachable code.
    pub(super) fn replace(&mut self, old: Value, new: Value) -> bool {
        let new = self.resolve(new);
        if old == new {
            return false;
        }
        self.map.set(old, new);
        self.any = true;
        true
    }

    /// The value that finally replaces `value`: the end of its chain of aliases.
    pub(super) fn resolve(&self, value: Value) -> Value {
        self.map.resolve(value)
    }

    /// As [`Aliases::resolve`], with path compression: later calls find the end in one step.
    pub(super) fn shorten(&mut self, value: Value) -> Value {
        self.map.shorten(value)
    }

    /// Rewrites every use in the layout.
    pub(super) fn apply(mut self, kernel: &mut Kernel) {
        if !self.any {
            return;
        }
        for &block in &kernel.layout {
            for &inst in &kernel.blocks[block].insts {
                kernel.insts[inst].for_each_use_mut(|value| *value = self.shorten(*value));
            }
        }
    }
}
