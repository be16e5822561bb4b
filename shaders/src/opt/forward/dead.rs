//! Stores that another store replaces before anybody can look, and stores to private variables right before the end.

use cranelift_entity::EntitySet;

use super::address::{Address, Addresses, Object};
use super::effects::{self, Effect};
use crate::ir::{Access, Block, InstData, Kernel, Variable, Width};

/// Places that are remembered.
const MAX_STORES: usize = 32;

/// Drops such stores, block by block.
pub(super) fn drop_stores(kernel: &mut Kernel, addresses: &mut Addresses) {
    for place in 0..kernel.layout.len() {
        let block = kernel.layout[place];
        let is_store = |&inst: &_| matches!(kernel.insts[inst], InstData::Store { .. });
        if kernel.blocks[block].insts.iter().any(is_store) {
            Scan::new(kernel, block).run(kernel, block, addresses);
        }
    }
}

/// What happens later in the block.
struct Scan {
    /// Places that are stored to before anything loads from them.
    replaced: Vec<Address>,
    /// For blocks where the invocation ends: private variables that are loaded from later.
    loaded: Option<EntitySet<Variable>>,
}

impl Scan {
    fn new(kernel: &Kernel, block: Block) -> Self {
        let last = kernel.blocks[block].insts.last().map(|&last| &kernel.insts[last]);
        let ends = matches!(last, Some(InstData::Return | InstData::Unreachable));
        Self { replaced: Vec::new(), loaded: ends.then(EntitySet::new) }
    }

    /// Goes through the block from its end.
    fn run(mut self, kernel: &mut Kernel, block: Block, addresses: &mut Addresses) {
        let mut insts = std::mem::take(&mut kernel.blocks[block].insts);
        insts.reverse();
        insts.retain(|&inst| {
            let stays = match &kernel.insts[inst] {
                InstData::Store { width, place, access, .. } => {
                    let Some(address) = addresses.of(kernel, place) else { return true };
                    // Part of a word replaces no word, and is not known well enough to be replaced.
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
            if matches!(effect, Effect::Order | Effect::Store { orders: true, .. }) {
                self.replaced.retain(|address| !address.shared);
            }
            stays
        });
        insts.reverse();
        kernel.blocks[block].insts = insts;
    }

    /// Whether a store is needed.
    fn store(&mut self, address: Address, access: Access) -> bool {
        let is_plain = access == Access::default();
        let is_last = match (address.object, &self.loaded) {
            (Object::Variable(variable), Some(loaded)) => !address.shared && !loaded.contains(variable),
            _ => false,
        };
        if is_plain && (is_last || self.replaced.contains(&address)) {
            return false;
        }
        if self.replaced.len() < MAX_STORES && !access.volatile {
            self.replaced.push(address);
        }
        true
    }

    fn load(&mut self, address: Address) {
        self.replaced.retain(|later| later.is_apart(&address));
        if let (Object::Variable(variable), Some(loaded)) = (address.object, &mut self.loaded) {
            loaded.insert(variable);
        }
    }
}
