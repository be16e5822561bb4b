//! What an instruction, or a loop, does to what is known about memory.

use super::address::{Address, Addresses};
use super::known::State;
use crate::analysis::Loops;
use crate::ir::{Access, Inst, InstData, Kernel, Place, Semantics};

/// What one instruction does.
#[derive(Clone, Copy, Debug)]
pub(super) enum Effect {
    /// Nothing.
    Nothing,
    /// Changes a place; `orders` others' stores too.
    Store {
        /// The place.
        address: Address,
        /// Whether stores of others may show from here on.
        orders: bool,
    },
    /// Stores of others may show from here on.
    Order,
}

/// Bits of SPIR-V's `Memory Semantics` that order memory: acquire, release, both, sequentially consistent.
const ORDERS: u32 = 0x2 | 0x4 | 0x8 | 0x10;

/// Whether an atomic with these semantics orders memory.
pub(super) fn orders(semantics: Semantics) -> bool {
    semantics.0 & ORDERS != 0
}

/// What an instruction does.
pub(super) fn of(kernel: &Kernel, inst: Inst, addresses: &mut Addresses) -> Effect {
    let mut change = |place: &Place, orders: bool| match addresses.of(kernel, place) {
        Some(address) => Effect::Store { address, orders },
        None => Effect::Nothing,
    };
    match &kernel.insts[inst] {
        InstData::Load { access, .. } if access.volatile => Effect::Order,
        // Sees others' stores: what is known may be older.
        InstData::Load { place, access, .. } if *access != Access::default() => change(place, false),
        InstData::Store { place, access, .. } => change(place, access.volatile),
        // Of two words: more than a place that is known by its word.
        InstData::Atomic { wide: Some(_), .. } => Effect::Order,
        InstData::Atomic { place, semantics, unequal, .. } => change(place, orders(*semantics) || orders(*unequal)),
        // An image's memory may be that of any buffer.
        InstData::Barrier { .. } | InstData::Fence { .. } | InstData::Image { .. } => Effect::Order,
        _ => Effect::Nothing,
    }
}

/// Stores of a loop that are told apart.
const MAX_STORES: usize = 16;

/// What all blocks of a loop do.
#[derive(Clone, Debug, Default)]
struct Summary {
    orders: bool,
    stores: Vec<Address>,
    /// There are more stores than are told apart.
    many: bool,
}

/// What each loop does.
pub(super) struct Effects {
    loops: Vec<Summary>,
}

impl Effects {
    /// Collects them.
    pub(super) fn of_loops(kernel: &Kernel, loops: &Loops, addresses: &mut Addresses) -> Self {
        let mut effects = Self { loops: vec![Summary::default(); loops.all.len()] };
        for &block in &kernel.layout {
            let Some(innermost) = loops.of(block) else { continue };
            for &inst in &kernel.blocks[block].insts {
                let effect = of(kernel, inst, addresses);
                let around = std::iter::successors(Some(innermost), |&number| loops.all[number].parent);
                if !matches!(effect, Effect::Nothing) {
                    around.for_each(|number| effects.loops[number].add(&effect));
                }
            }
        }
        effects
    }

    /// What is left of a state at the header of a loop.
    pub(super) fn apply(&self, number: usize, state: &mut State) {
        let summary = &self.loops[number];
        if summary.many {
            state.forget_all();
        }
        if summary.orders {
            state.apply(&Effect::Order);
        }
        for &address in &summary.stores {
            state.apply(&Effect::Store { address, orders: false });
        }
    }
}

impl Summary {
    fn add(&mut self, effect: &Effect) {
        match *effect {
            Effect::Nothing => {}
            Effect::Order => self.orders = true,
            Effect::Store { address, orders } => {
                self.orders |= orders;
                if self.many || self.stores.contains(&address) {
                    return;
                }
                self.many = self.stores.len() == MAX_STORES;
                self.stores.push(address);
            }
        }
    }
}
