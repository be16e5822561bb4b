//! Control-flow melding: common code at the start of both sides of a branch is executed once, before the branch.
//!
//! A divergent branch executes its sides one after the other. Where both start with the same work, e.g. a call of one
//! function with the same arguments, all lanes can do it together: operations on the same values, loads before any
//! instruction with an effect, then an equal loop (`alike.rs`). Every invocation that reaches the branch executes one
//! of the sides, so no work is speculative. Melded instructions neither write memory nor depend on the set of active
//! invocations, and plain loads that they move across are unordered among themselves, so the change is unobservable.
//! (Saumya, Sundararajah, Kulkarni: DARM, 2022.)

mod alike;

use cranelift_entity::EntitySet;
use smallvec::SmallVec;

use super::aliases::Aliases;
use super::cfg::{Edges, lay_out};
use super::gvn::ExpressionKey;
use crate::ir::{Block, BlockCall, BlockData, Inst, InstData, Kernel, Merge, Value, ValueDef};
use alike::LoopPair;

/// Maximum number of loops melded in a kernel: all blocks are visited again after each.
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
    /// Branches whose sides have no equal loop; not compared again.
    differ: EntitySet<Block>,
}

impl<'k> Melder<'k> {
    fn new(kernel: &'k mut Kernel, differ: EntitySet<Block>) -> Self {
        let edges = Edges::from(kernel, &kernel.layout);
        Self { kernel, edges, aliases: Aliases::default(), differ }
    }

    /// Melds the sides of one branch. Returns whether control flow has changed.
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

    /// The two targets of a branch, if it is their only predecessor.
    fn sides(&self, block: Block) -> Option<[Block; 2]> {
        let InstData::Branch { then, otherwise, .. } = self.kernel.terminator(block)? else {
            return None;
        };
        let sides = [then.block, otherwise.block];
        let own = |&side: &Block| self.edges.is_own(side) && self.kernel.blocks[side].params.is_empty();
        let is_loop = matches!(self.kernel.blocks[block].merge, Some(Merge::Loop { .. }));
        (!is_loop && sides[0] != sides[1] && sides.iter().all(own)).then_some(sides)
    }

    /// Moves computations and loads that both sides have before the branch.
    fn hoist(&mut self, block: Block, [side, other]: [Block; 2]) {
        let mut first = self.keys(side);
        first.sort_unstable();
        let mut both = EntitySet::new();
        let mut replaced = EntitySet::new();
        // One by one: an instruction of the second side may use a value that was replaced before.
        let mut reads = true;
        for position in 0..self.kernel.blocks[other].insts.len() {
            let inst = self.kernel.blocks[other].insts[position];
            let Some(key) = self.key(inst, &mut reads) else { continue };
            let Ok(same) = first.binary_search_by_key(&key, |&(key, _)| key) else { continue };
            let same = first[same].1;
            both.insert(same);
            if self.replace(inst, same) {
                replaced.insert(inst);
            }
        }
        self.kernel.blocks[other].insts.retain(|&inst| !replaced.contains(inst));
        let insts = std::mem::take(&mut self.kernel.blocks[side].insts);
        let (moved, stay): (Vec<Inst>, Vec<Inst>) = insts.into_iter().partition(|&inst| both.contains(inst));
        self.kernel.blocks[side].insts = stay;
        let insts = &mut self.kernel.blocks[block].insts;
        let end = insts.len().saturating_sub(1);
        insts.splice(end..end, moved);
    }

    fn keys(&mut self, side: Block) -> Vec<(ExpressionKey, Inst)> {
        let insts = self.kernel.blocks[side].insts.clone();
        let mut reads = true;
        insts.into_iter().filter_map(|inst| Some((self.key(inst, &mut reads)?, inst))).collect()
    }

    /// What an instruction computes, or what it loads if no instruction with an effect precedes it.
    fn key(&mut self, inst: Inst, reads: &mut bool) -> Option<ExpressionKey> {
        let data = &mut self.kernel.insts[inst];
        data.for_each_use_mut(|value| *value = self.aliases.shorten(*value));
        *reads &= !data.has_effect();
        ExpressionKey::of(data).or_else(|| ExpressionKey::of_load(data).filter(|_| *reads))
    }

    /// Replaces one instruction's result by that of an equal one, which takes over `no_contraction`. Returns whether
    /// the first is dead.
    fn replace(&mut self, inst: Inst, same: Inst) -> bool {
        let (Some(old), Some(new)) = (self.kernel.results[inst], self.kernel.results[same]) else { return false };
        if self.kernel.no_contraction.contains(inst) {
            self.kernel.no_contraction.insert(same);
        }
        self.aliases.replace(old, new)
    }

    /// The loops that the sides jump to, if they are equal and the code before them may be sunk below them.
    fn loops(&self, sides: [Block; 2]) -> Option<LoopPair> {
        let [first, second] = sides.map(|side| {
            let (&last, before) = self.kernel.blocks[side].insts.split_last()?;
            let InstData::Jump { to } = &self.kernel.insts[last] else { return None };
            before.iter().all(|&inst| may_sink(&self.kernel.insts[inst])).then_some(to)
        });
        LoopPair::find(self.kernel, &self.aliases, &self.edges, [first?, second?])
    }

    /// Moves the first of two equal loops before the branch; the second becomes unreachable. The branch moves to a new
    /// block after the loop.
    fn move_loop(&mut self, block: Block, [side, other]: [Block; 2], loops: LoopPair) {
        let kernel = &mut *self.kernel;
        let LoopPair { header, merges, blocks, insts, params: loop_params } = loops;
        // The exit edges lead to the new block, which takes the merge block's parameters.
        let after_loop = kernel.blocks.push(BlockData::default());
        let types: SmallVec<[_; 4]> = kernel.blocks[merges[0]].params.iter().map(|&param| kernel.ty(param)).collect();
        let params: SmallVec<[Value; 4]> = (0u32..)
            .zip(types)
            .map(|(index, ty)| kernel.values.push(ValueDef::Param { block: after_loop, index, ty }))
            .collect();
        for &inside in &blocks {
            let Some(last) = kernel.last_inst(inside) else { continue };
            let leave = kernel.insts[last].targets_mut().into_iter().filter(|call| call.block == merges[0]);
            leave.for_each(|call| call.block = after_loop);
        }
        if let Some(Merge::Loop { merge, .. }) = &mut kernel.blocks[header].merge {
            *merge = after_loop;
        }
        // The first side's jump into the loop replaces the branch, which moves after the loop.
        let [branch, into, _] = [block, side, other].map(|block| kernel.blocks[block].insts.pop());
        kernel.blocks[block].insts.extend(into);
        let merge = kernel.blocks[block].merge.take();
        for (side, merge) in [(side, merges[0]), (other, merges[1])] {
            let jump = kernel.insts.push(InstData::Jump { to: BlockCall { block: merge, args: params.clone() } });
            kernel.origins[jump] = into.map_or(0, |into| kernel.origins[into]);
            kernel.blocks[side].insts.push(jump);
        }
        kernel.blocks[after_loop] = BlockData { params, insts: branch.into_iter().collect(), merge };
        for (inst, same) in insts {
            self.replace(inst, same);
        }
        for (param, same) in loop_params {
            self.aliases.replace(param, same);
        }
    }
}

/// Whether an instruction may move after the loop that follows it: it has no effect, and depends neither on the set of
/// active invocations nor on time.
fn may_sink(data: &InstData) -> bool {
    !data.has_effect() && !matches!(data, InstData::Subgroup { .. } | InstData::Clock { .. })
}
