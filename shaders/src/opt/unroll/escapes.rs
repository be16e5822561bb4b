//! Live-out values of a loop. Each leaves through a parameter of an exit block, so that every iteration's copy of the
//! exit edge can pass its own value.

use cranelift_entity::SecondaryMap;
use smallvec::SmallVec;

use super::Nest;
use crate::ir::{Block, Kernel, Value};

/// For each value, the blocks outside its innermost loop that use it.
pub(super) struct Escapes {
    used_in: SecondaryMap<Value, SmallVec<[Block; 2]>>,
}

impl Escapes {
    /// Collects the uses of all loops.
    pub(super) fn new(kernel: &Kernel, nest: &Nest) -> Self {
        let mut used_in: SecondaryMap<Value, SmallVec<[Block; 2]>> = SecondaryMap::new();
        for &block in &kernel.layout {
            for &inst in &kernel.blocks[block].insts {
                kernel.insts[inst].for_each_use(|value| {
                    let Some(definition) = nest.defining_block(kernel, value) else { return };
                    let Some(number) = nest.loops.of(definition) else { return };
                    let used_in = &mut used_in[value];
                    if used_in.last() != Some(&block) && !nest.loops.contains(number, block) {
                        used_in.push(block);
                    }
                });
            }
        }
        Self { used_in }
    }

    /// The live-out values of one loop, each with the exit block (one of `exits`) that it passes through. `None` if a
    /// value passes through several, or if an exit block has predecessors outside the loop.
    pub(super) fn of_loop(
        &self,
        kernel: &Kernel,
        nest: &Nest,
        number: usize,
        exits: &[Block],
    ) -> Option<Vec<(Value, Block)>> {
        let from_loop = |exit: Block| nest.predecessors[exit].iter().all(|&block| nest.loops.contains(number, block));
        let mut escaping: Vec<(Value, Block)> = Vec::new();
        for &block in &nest.loops.all[number].blocks {
            let data = &kernel.blocks[block];
            let results = data.insts.iter().filter_map(|&inst| kernel.results[inst]);
            for value in data.params.iter().copied().chain(results) {
                for &user in self.used_in[value].iter().filter(|&&user| !nest.loops.contains(number, user)) {
                    // All uses must be dominated by one exit block: its parameter then replaces the value.
                    let exit = exits.iter().copied().find(|&exit| nest.dominators.dominates(exit, user))?;
                    match escaping.last() {
                        Some(&(last, through)) if last == value && through == exit => {}
                        Some(&(last, _)) if last == value => return None,
                        _ if from_loop(exit) => escaping.push((value, exit)),
                        _ => return None,
                    }
                }
            }
        }
        Some(escaping)
    }
}
