//! Value aliases: a pass records which value replaces which, and rewrites all uses once, at its end.

use cranelift_entity::SecondaryMap;
use cranelift_entity::packed_option::PackedOption;

use crate::ir::{Kernel, Value};

/// Replaced values.
#[derive(Debug, Default)]
pub(super) struct Aliases {
    instead: SecondaryMap<Value, PackedOption<Value>>,
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
        self.instead[old] = new.into();
        self.any = true;
        true
    }

    /// The value that finally replaces `value`: the end of its chain of aliases.
    pub(super) fn resolve(&self, mut value: Value) -> Value {
        while let Some(instead) = self.instead[value].expand() {
            value = instead;
        }
        value
    }

    /// As [`Aliases::resolve`], with path compression: later calls find the end in one step.
    pub(super) fn shorten(&mut self, value: Value) -> Value {
        let end = self.resolve(value);
        let mut at = value;
        while let Some(next) = self.instead[at].expand() {
            self.instead[at] = end.into();
            at = next;
        }
        end
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
