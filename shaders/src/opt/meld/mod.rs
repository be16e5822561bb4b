//! Control-flow melding: what both sides of a branch begin with is done once, before the branch.
//!
//! Lanes that take different sides run one side after the other. Where both do the same at first, as sides that call one
//! function with the same arguments, they can do that together: operations of the same values, loads that nothing with an
//! effect stands before, then a loop that is the same (`alike.rs`). Each invocation that comes to the branch takes one of
//! the sides, so nothing is done in vain. What moves neither writes memory nor asks who runs it, and plain loads, which it may
//! pass, have no order among themselves: nobody can tell. (Saumya, Sundararajah, Kulkarni: DARM, 2022.)

mod alike;

use cranelift_entity::EntitySet;
use smallvec::SmallVec;

use super::aliases::Aliases;
use super::cfg::{Edges, lay_out, terminator};
use super::dce::has_effect;
use super::gvn::Key;
use crate::ir::{Block, BlockCall, BlockData, Inst, InstData, Kernel, Merge, Value, ValueDef};
use alike::Alike;

/// Loops that are melded in a kernel, at most: all is looked at again after each.
const MAX_LOOPS: usize = 16;

/// Runs the pass.
pub(super) fn run(kernel: &mut Kernel) {
    let mut differ = EntitySet::new();
    for _ in 0..MAX_LOOPS {
        let mut melder = Melder::new(kernel, differ);
        let blocks = melder.kernel.layout.clone();
        let melded = blocks.into_iter().any(|block| melder.meld(block));
        let Melder { kernel, aliases, differ: tried, .. } = melder;
        differ = tried;
        if melded {
            lay_out(kernel);
        }
        aliases.apply(kernel);
        if !melded {
            return;
        }
    }
}

struct Melder<'k> {
    kernel: &'k mut Kernel,
    edges: Edges,
    aliases: Aliases,
    /// Branches whose sides were compared in vain.
    differ: EntitySet<Block>,
}

impl<'k> Melder<'k> {
    fn new(kernel: &'k mut Kernel, differ: EntitySet<Block>) -> Self {
        let edges = Edges::from(kernel, &kernel.layout);
        Self { kernel, edges, aliases: Aliases::default(), differ }
    }

    /// Whether control flow has changed.
    fn meld(&mut self, block: Block) -> bool {
        if self.differ.contains(block) {
            return false;
        }
        let Some(sides) = self.sides(block) else { return false };
        self.hoist(block, sides);
        let Some(loops) = self.loops(sides) else {
            self.differ.insert(block);
            return false;
        };
        self.move_loop(block, sides, loops);
        true
    }

    /// The two blocks that a branch leads to, if no other does.
    fn sides(&self, block: Block) -> Option<[Block; 2]> {
        let InstData::Branch { then, otherwise, .. } = &self.kernel.insts[terminator(self.kernel, block)?] else {
            return None;
        };
        let sides = [then.block, otherwise.block];
        let own = |&side: &Block| self.edges.is_own(side) && self.kernel.blocks[side].params.is_empty();
        let is_loop = matches!(self.kernel.blocks[block].merge, Some(Merge::Loop { .. }));
        (!is_loop && sides[0] != sides[1] && sides.iter().all(own)).then_some(sides)
    }

    /// Moves what both sides compute of the same values, or load from the same place first, before the branch.
    fn hoist(&mut self, block: Block, [side, other]: [Block; 2]) {
        let mut first = self.keys(side);
        first.sort_unstable();
        let mut both = EntitySet::new();
        let mut gone = EntitySet::new();
        // One by one: what the first has in common with the other, the next may use.
        let mut reads = true;
        for place in 0..self.kernel.blocks[other].insts.len() {
            let inst = self.kernel.blocks[other].insts[place];
            let Some(key) = self.key(inst, &mut reads) else { continue };
            let Ok(same) = first.binary_search_by_key(&key, |&(key, _)| key) else { continue };
            let same = first[same].1;
            both.insert(same);
            if self.stand_for(inst, same) {
                gone.insert(inst);
            }
        }
        self.kernel.blocks[other].insts.retain(|&inst| !gone.contains(inst));
        let insts = std::mem::take(&mut self.kernel.blocks[side].insts);
        let (moved, stay): (Vec<Inst>, Vec<Inst>) = insts.into_iter().partition(|&inst| both.contains(inst));
        self.kernel.blocks[side].insts = stay;
        let insts = &mut self.kernel.blocks[block].insts;
        let end = insts.len().saturating_sub(1);
        insts.splice(end..end, moved);
    }

    fn keys(&mut self, side: Block) -> Vec<(Key, Inst)> {
        let insts = self.kernel.blocks[side].insts.clone();
        let mut reads = true;
        insts.into_iter().filter_map(|inst| Some((self.key(inst, &mut reads)?, inst))).collect()
    }

    /// What an instruction computes, or loads if nothing that has an effect stands before it.
    fn key(&mut self, inst: Inst, reads: &mut bool) -> Option<Key> {
        let data = &mut self.kernel.insts[inst];
        data.for_each_use_mut(|value| *value = self.aliases.shorten(*value));
        *reads &= !has_effect(data);
        Key::of(data).or_else(|| Key::of_load(data).filter(|_| *reads))
    }

    /// Lets one instruction's result stand for another's, with what is asked of either. Whether the other has become dead.
    fn stand_for(&mut self, inst: Inst, same: Inst) -> bool {
        let (Some(old), Some(new)) = (self.kernel.results[inst], self.kernel.results[same]) else { return false };
        if self.kernel.no_contraction.contains(inst) {
            self.kernel.no_contraction.insert(same);
        }
        self.aliases.replace(old, new)
    }

    /// The loops that two sides jump to, if they are the same and nothing has to be done before them.
    fn loops(&self, sides: [Block; 2]) -> Option<Alike> {
        let [first, second] = sides.map(|side| {
            let (&last, before) = self.kernel.blocks[side].insts.split_last()?;
            let InstData::Jump { to } = &self.kernel.insts[last] else { return None };
            before.iter().all(|&inst| may_wait(&self.kernel.insts[inst])).then_some(to)
        });
        Alike::find(self.kernel, &self.aliases, &self.edges, [first?, second?])
    }

    /// Puts the first of two loops that are alike before the branch; nothing leads to the other then. The branch stands in a block of its
    /// own behind the loop then.
    fn move_loop(&mut self, block: Block, [side, other]: [Block; 2], loops: Alike) {
        let kernel = &mut *self.kernel;
        let Alike { header, merges, blocks, insts, params: loop_params } = loops;
        // What leaves the loop goes through the new block.
        let behind = kernel.blocks.push(BlockData::default());
        let types: SmallVec<[_; 4]> = kernel.blocks[merges[0]].params.iter().map(|&param| kernel.ty(param)).collect();
        let params: SmallVec<[Value; 4]> = (0u32..)
            .zip(types)
            .map(|(index, ty)| kernel.values.push(ValueDef::Param { block: behind, index, ty }))
            .collect();
        for &inside in &blocks {
            let Some(last) = terminator(kernel, inside) else { continue };
            let leave = kernel.insts[last].targets_mut().into_iter().filter(|call| call.block == merges[0]);
            leave.for_each(|call| call.block = behind);
        }
        if let Some(Merge::Loop { merge, .. }) = &mut kernel.blocks[header].merge {
            *merge = behind;
        }
        // The side's jump into the loop and the branch change places, as it were: the branch comes behind the loop.
        let [branch, into, _] = [block, side, other].map(|block| kernel.blocks[block].insts.pop());
        kernel.blocks[block].insts.extend(into);
        let merge = kernel.blocks[block].merge.take();
        for (side, merge) in [(side, merges[0]), (other, merges[1])] {
            let jump = kernel.insts.push(InstData::Jump { to: BlockCall { block: merge, args: params.clone() } });
            kernel.origins[jump] = into.map_or(0, |into| kernel.origins[into]);
            kernel.blocks[side].insts.push(jump);
        }
        kernel.blocks[behind] = BlockData { params, insts: branch.into_iter().collect(), merge };
        for (inst, same) in insts {
            self.stand_for(inst, same);
        }
        for (param, same) in loop_params {
            self.aliases.replace(param, same);
        }
    }
}

/// Whether an instruction may come behind a loop that it stands before: it has no effect, and does not ask who runs it, or when.
fn may_wait(data: &InstData) -> bool {
    !has_effect(data) && !matches!(data, InstData::Subgroup { .. } | InstData::Clock { .. })
}
