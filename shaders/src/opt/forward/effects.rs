//! Effects of an instruction, or of a loop, on known memory contents.

use super::address::{Addresses, WordAddress};
use super::known::KnownWords;
use crate::analysis::Loops;
use crate::ir::{Access, Inst, InstData, Kernel, Place, Semantics};

/// The effect of one instruction.
#[derive(Clone, Copy, Debug)]
pub(super) enum Effect {
    /// Changes no memory.
    Nothing,
    /// Changes a word; with `orders`, stores of other invocations may become visible too.
    Store {
        /// The word.
        address: WordAddress,
        /// Whether stores of other invocations may become visible here.
        orders: bool,
    },
    /// Stores of other invocations may become visible here.
    Order,
}

/// Bits of SPIR-V's `Memory Semantics` that order memory: acquire, release, acquire-release, sequentially consistent.
const ORDERS: u32 = 0x2 | 0x4 | 0x8 | 0x10;

/// Whether an atomic with these semantics orders memory.
pub(super) fn orders(semantics: Semantics) -> bool {
    semantics.0 & ORDERS != 0
}

/// The effect of an instruction.
pub(super) fn of(kernel: &Kernel, inst: Inst, addresses: &mut Addresses) -> Effect {
    let mut change = |place: &Place, orders: bool| match addresses.of(kernel, place) {
        Some(address) => Effect::Store { address, orders },
        None => Effect::Nothing,
    };
    match &kernel.insts[inst] {
        InstData::Load { access, .. } if access.volatile => Effect::Order,
        // Not a plain load: it may see a newer store than what is known.
        InstData::Load { place, access, .. } if *access != Access::default() => change(place, false),
        InstData::Store { place, access, .. } => change(place, access.volatile),
        // A 64-bit atomic changes two words; an address covers one.
        InstData::Atomic { wide: Some(_), .. } => Effect::Order,
        InstData::Atomic { place, semantics, unequal, .. } => change(place, orders(*semantics) || orders(*unequal)),
        // An image may share memory with any buffer.
        InstData::Barrier { .. } | InstData::Fence { .. } | InstData::Image { .. } => Effect::Order,
        _ => Effect::Nothing,
    }
}

/// Maximum number of distinct stored words of a loop.
const MAX_STORES: usize = 16;

/// The effects of all blocks of a loop.
#[derive(Clone, Debug, Default)]
struct Summary {
    orders: bool,
    stores: Vec<WordAddress>,
    /// There are more stored words than are recorded.
    many: bool,
}

/// The effects of each loop.
pub(super) struct Effects {
    loops: Vec<Summary>,
}

impl Effects {
    /// Summarises each loop, inner loops included.
    pub(super) fn of_loops(kernel: &Kernel, loops: &Loops, addresses: &mut Addresses) -> Self {
        let mut effects = Self { loops: vec![Summary::default(); loops.all.len()] };
        for &block in &kernel.layout {
            let Some(innermost) = loops.of(block) else { continue };
            for &inst in &kernel.blocks[block].insts {
                let effect = of(kernel, inst, addresses);
                let enclosing = std::iter::successors(Some(innermost), |&number| loops.all[number].parent);
                if !matches!(effect, Effect::Nothing) {
                    enclosing.for_each(|number| effects.loops[number].add(&effect));
                }
            }
        }
        effects
    }

    /// Removes from the state at a loop header what the loop may change.
    pub(super) fn apply(&self, number: usize, state: &mut KnownWords) {
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
