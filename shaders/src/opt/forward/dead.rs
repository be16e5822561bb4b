//! Dead store elimination: stores that another store overwrites before a load, and stores to private variables that are
//! not loaded again before the invocation returns.

use cranelift_entity::EntitySet;

use super::address::{Addresses, Object, WordAddress};
use super::effects::{self, Effect};
use crate::ir::{Access, Block, InstData, Kernel, Variable, Width};

/// Maximum number of overwritten addresses that are tracked.
const MAX_STORES: usize = 32;

/// Removes dead stores, block by block.
pub(super) fn drop_stores(kernel: &mut Kernel, addresses: &mut Addresses) {
    for position in 0..kernel.layout.len() {
        let block = kernel.layout[position];
        let is_store = |&inst: &_| matches!(kernel.insts[inst], InstData::Store { .. });
        if kernel.blocks[block].insts.iter().any(is_store) {
            BackwardScan::new(kernel, block).run(kernel, block, addresses);
        }
    }
}

/// What happens later in the block; it is scanned backwards.
struct BackwardScan {
    /// Words that are stored to before anything loads them.
    replaced: Vec<WordAddress>,
    /// In blocks where the invocation returns: private variables that are loaded later. `None` in other blocks.
    loaded: Option<EntitySet<Variable>>,
}

impl BackwardScan {
    fn new(kernel: &Kernel, block: Block) -> Self {
        let last = kernel.blocks[block].insts.last().map(|&last| &kernel.insts[last]);
        let is_exit = matches!(last, Some(InstData::Return | InstData::Unreachable));
        Self { replaced: Vec::new(), loaded: is_exit.then(EntitySet::new) }
    }

    /// Scans the block from its end.
    fn run(mut self, kernel: &mut Kernel, block: Block, addresses: &mut Addresses) {
        let mut insts = std::mem::take(&mut kernel.blocks[block].insts);
        insts.reverse();
        insts.retain(|&inst| {
            let stays = match &kernel.insts[inst] {
                InstData::Store { width, place, access, .. } => {
                    let Some(address) = addresses.of(kernel, place) else { return true };
                    // A sub-word store overwrites no whole word, and its address covers a whole word, so it is never
                    // removed.
                    *width != Width::Word || self.store(address, *access)
                }
                InstData::Load { place, .. } => {
                    if let Some(address) = addresses.of(kernel, place) {
                        self.load(address);
                    }
                    true
                }
                InstData::Atomic { place, .. } => {
                    if let Some(address) = addresses.of(kernel, place) {
                        self.load(address);
                    }
                    true
                }
                _ => true,
            };
            let effect = effects::of(kernel, inst, addresses);
            // Other invocations may read the earlier store from here on.
            if matches!(effect, Effect::Order | Effect::Store { orders: true, .. }) {
                self.replaced.retain(|address| !address.shared);
            }
            stays
        });
        insts.reverse();
        kernel.blocks[block].insts = insts;
    }

    /// Whether a store is needed. Records that earlier stores to the same word are overwritten.
    fn store(&mut self, address: WordAddress, access: Access) -> bool {
        let is_plain = access == Access::default();
        let is_unread = match (address.object, &self.loaded) {
            (Object::Variable(variable), Some(loaded)) => !address.shared && !loaded.contains(variable),
            _ => false,
        };
        if is_plain && (is_unread || self.replaced.contains(&address)) {
            return false;
        }
        if self.replaced.len() < MAX_STORES && !access.volatile {
            self.replaced.push(address);
        }
        true
    }

    fn load(&mut self, address: WordAddress) {
        self.replaced.retain(|later| later.is_disjoint(&address));
        if let (Object::Variable(variable), Some(loaded)) = (address.object, &mut self.loaded) {
            loaded.insert(variable);
        }
    }
}
