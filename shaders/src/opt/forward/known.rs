//! What is known about memory at one point of the kernel.

use super::address::Address;
use super::effects::Effect;
use crate::ir::Value;

/// The value at a place.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Known {
    pub(super) address: Address,
    pub(super) value: Value,
    /// It was stored, so it is there only if the place is in bounds. Else it is what a load gives, out of bounds too.
    pub(super) stored: bool,
}

/// Places that are remembered; the oldest are forgotten first.
const MAX_KNOWN: usize = 32;

/// All that is known. No address is there twice.
#[derive(Clone, Debug, Default)]
pub(super) struct State {
    known: Vec<Known>,
}

impl State {
    /// What is known about a place.
    pub(super) fn find(&self, address: Address) -> Option<Known> {
        self.known.iter().rev().find(|known| known.address == address).copied()
    }

    /// Remembers.
    pub(super) fn add(&mut self, known: Known) {
        if self.known.len() == MAX_KNOWN {
            self.known.remove(0);
        }
        self.known.push(known);
    }

    /// Forgets one place.
    pub(super) fn forget(&mut self, address: Address) {
        self.known.retain(|known| known.address != address);
    }

    /// Forgets everything.
    pub(super) fn forget_all(&mut self) {
        self.known.clear();
    }

    /// Forgets what an instruction may change.
    pub(super) fn apply(&mut self, effect: &Effect) {
        match effect {
            Effect::Nothing => {}
            Effect::Order => self.known.retain(|known| !known.address.shared),
            Effect::Store { address, orders } => {
                self.known.retain(|known| known.address.is_apart(address) && !(*orders && known.address.shared));
            }
        }
    }

    /// Keeps what another way knows too.
    pub(super) fn meet(&mut self, other: &Self) {
        let mut place = 0;
        self.known.retain_mut(|known| {
            let is = |also: &Known| also.address == known.address && also.value == known.value;
            // Ways that split not long ago know the same in the same order.
            let rest = &other.known[place..];
            let found = rest.iter().position(is).map(|at| at + place).or_else(|| other.known.iter().position(is));
            if let Some(at) = found {
                place = at + 1;
                known.stored |= other.known[at].stored;
            }
            found.is_some()
        });
    }
}
