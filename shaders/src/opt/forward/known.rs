//! Memory contents known at one point of the kernel.

use super::address::WordAddress;
use super::effects::Effect;
use crate::ir::Value;

/// A word of memory and its value.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct KnownWord {
    pub(super) address: WordAddress,
    pub(super) value: Value,
    /// From a store: memory holds the value only if the address is in bounds. Otherwise from a load: the value is the
    /// load's result, in bounds or not.
    pub(super) stored: bool,
}

/// Maximum number of known words; the oldest are dropped first.
const MAX_KNOWN: usize = 32;

/// All known words. Addresses are distinct.
#[derive(Clone, Debug, Default)]
pub(super) struct KnownWords {
    known: Vec<KnownWord>,
}

impl KnownWords {
    /// The known word at an address.
    pub(super) fn find(&self, address: WordAddress) -> Option<KnownWord> {
        self.known.iter().rev().find(|known| known.address == address).copied()
    }

    /// Adds a word.
    pub(super) fn add(&mut self, known: KnownWord) {
        if self.known.len() == MAX_KNOWN {
            self.known.remove(0);
        }
        self.known.push(known);
    }

    /// Drops the word at an address.
    pub(super) fn forget(&mut self, address: WordAddress) {
        self.known.retain(|known| known.address != address);
    }

    /// Drops all words.
    pub(super) fn forget_all(&mut self) {
        self.known.clear();
    }

    /// Drops the words that an instruction may change.
    pub(super) fn apply(&mut self, effect: &Effect) {
        match effect {
            Effect::Nothing => {}
            Effect::Order => self.known.retain(|known| !known.address.shared),
            Effect::Store { address, orders } => {
                self.known.retain(|known| known.address.is_disjoint(address) && !(*orders && known.address.shared));
            }
        }
    }

    /// Keeps the words that the state of another incoming edge has too.
    pub(super) fn meet(&mut self, other: &Self) {
        let mut next = 0;
        self.known.retain_mut(|known| {
            let same = |also: &KnownWord| also.address == known.address && also.value == known.value;
            // States with a recent common ancestor have equal words in equal order: continues after the last match.
            let rest = &other.known[next..];
            let found = rest.iter().position(same).map(|at| at + next).or_else(|| other.known.iter().position(same));
            if let Some(at) = found {
                next = at + 1;
                known.stored |= other.known[at].stored;
            }
            found.is_some()
        });
    }
}
