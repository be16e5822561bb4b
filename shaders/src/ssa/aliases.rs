//! Which value replaces which, with path compression: for passes and for SSA construction.

use cranelift_entity::packed_option::{PackedOption, ReservedValue};
use cranelift_entity::{EntityRef, SecondaryMap};

/// Aliases: values that another value replaces, which may be an alias too.
#[derive(Debug)]
pub(crate) struct AliasMap<V: EntityRef + ReservedValue>(SecondaryMap<V, PackedOption<V>>);

impl<V: EntityRef + ReservedValue> Default for AliasMap<V> {
    fn default() -> Self {
        Self(SecondaryMap::new())
    }
}

impl<V: EntityRef + ReservedValue> AliasMap<V> {
    /// `new`, which does not end at `old`, replaces `old`.
    pub(crate) fn set(&mut self, old: V, new: V) {
        self.0[old] = new.into();
    }

    /// Whether another value replaces this one.
    pub(crate) fn has(&self, value: V) -> bool {
        self.0[value].is_some()
    }

    /// The value that finally replaces `value`: the end of its chain of aliases.
    pub(crate) fn resolve(&self, mut value: V) -> V {
        while let Some(instead) = self.0[value].expand() {
            value = instead;
        }
        value
    }

    /// As [`AliasMap::resolve`], with path compression: later calls find the end in one step.
    pub(crate) fn shorten(&mut self, value: V) -> V {
        let end = self.resolve(value);
        let mut at = value;
        while let Some(next) = self.0[at].expand() {
            self.0[at] = end.into();
            at = next;
        }
        end
    }
}
