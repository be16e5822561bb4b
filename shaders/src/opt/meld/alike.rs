//! Equal loops: block for block and instruction for instruction, with the same values from outside.

use std::collections::HashMap;

use foldhash::fast::RandomState;

use crate::ir::{Access, Block, BlockCall, Inst, InstData, Kernel, Merge, Value};
use crate::opt::aliases::Aliases;
use crate::opt::cfg::Edges;
use crate::opt::gvn::ExpressionKey;

/// Maximum number of blocks of a compared loop.
const MAX_BLOCKS: usize = 64;

/// A loop, and a second loop that equals it.
pub(super) struct LoopPair {
    /// Header of the first.
    pub header: Block,
    /// Merge blocks of the first and of the second.
    pub merges: [Block; 2],
    /// Blocks of the first.
    pub blocks: Vec<Block>,
    /// Instructions of the second, each with its counterpart in the first.
    pub insts: Vec<(Inst, Inst)>,
    /// Parameters of the second, each with its counterpart in the first.
    pub params: Vec<(Value, Value)>,
}

impl LoopPair {
    /// The loops that two jumps lead to, if they are equal and have no other entry edges and no other exit blocks.
    pub(super) fn find(kernel: &Kernel, aliases: &Aliases, edges: &Edges, jumps: [&BlockCall; 2]) -> Option<Self> {
        let [first, other] = jumps.map(|jump| match kernel.blocks[jump.block].merge {
            Some(Merge::Loop { merge, .. }) => Some(merge),
            _ => None,
        });
        let [header, copy] = jumps.map(|jump| jump.block);
        let merges = [first?, other?];
        let mut walk = Walk {
            kernel,
            aliases,
            merges,
            partners: HashMap::default(),
            pairs: Vec::new(),
            mapped_values: HashMap::default(),
            insts: Vec::new(),
            params: Vec::new(),
        };
        walk.pair(header, copy)?;
        walk.same_args(jumps[0], jumps[1])?;
        let types = |block: Block| kernel.blocks[block].params.iter().map(|&param| kernel.ty(param));
        if !types(merges[0]).eq(types(merges[1])) {
            return None;
        }
        let mut next = 0;
        while let Some(&(block, copy)) = walk.pairs.get(next) {
            walk.same_block(block, copy)?;
            next += 1;
        }
        walk.same_annotations()?;
        let Walk { pairs, insts, params, .. } = walk;
        let (blocks, copies): (Vec<Block>, Vec<Block>) = pairs.into_iter().unzip();
        let closed = is_closed(kernel, edges, &blocks, merges[0]) && is_closed(kernel, edges, &copies, merges[1]);
        closed.then_some(Self { header, merges, blocks, insts, params })
    }
}

/// Whether the loop has one entry edge, its merge block is reached from the loop alone, and no annotation outside names
/// its blocks. `blocks` starts with the header.
fn is_closed(kernel: &Kernel, edges: &Edges, blocks: &[Block], merge: Block) -> bool {
    let own = Edges::from(kernel, blocks);
    let entries = std::iter::once(1).chain(std::iter::repeat(0));
    blocks.iter().chain([&merge]).zip(entries).all(|(&block, entries)| {
        edges.incoming[block] == own.incoming[block] + entries && edges.names[block] == own.names[block]
    })
}

/// A walk over both loops in parallel.
struct Walk<'a> {
    kernel: &'a Kernel,
    aliases: &'a Aliases,
    merges: [Block; 2],
    /// The counterpart in the first loop of each block of the second.
    partners: HashMap<Block, Block, RandomState>,
    /// The same pairs, in the order in which they were found.
    pairs: Vec<(Block, Block)>,
    /// The counterpart in the first loop of each value of the second.
    mapped_values: HashMap<Value, Value, RandomState>,
    insts: Vec<(Inst, Inst)>,
    params: Vec<(Value, Value)>,
}

impl Walk<'_> {
    /// The first loop's value for a value of the second.
    fn map(&self, value: Value) -> Value {
        let value = self.aliases.resolve(value);
        self.mapped_values.get(&value).copied().unwrap_or(value)
    }

    /// Pairs two blocks; `None` if they cannot be equal.
    fn pair(&mut self, block: Block, copy: Block) -> Option<()> {
        if block == self.merges[0] || copy == self.merges[1] {
            return (block == self.merges[0] && copy == self.merges[1]).then_some(());
        }
        if let Some(&partner) = self.partners.get(&copy) {
            return (partner == block).then_some(());
        }
        if self.pairs.len() == MAX_BLOCKS {
            return None;
        }
        let params = [block, copy].map(|block| &self.kernel.blocks[block].params);
        let fits = params[0].len() == params[1].len() && self.pairs.iter().all(|&(known, _)| known != block);
        for (&param, &other) in params[0].iter().zip(params[1]) {
            if self.kernel.ty(param) != self.kernel.ty(other) {
                return None;
            }
            self.mapped_values.insert(other, param);
            self.params.push((other, param));
        }
        self.partners.insert(copy, block);
        self.pairs.push((block, copy));
        fits.then_some(())
    }

    fn same_args(&self, call: &BlockCall, copy: &BlockCall) -> Option<()> {
        let args = call.args.iter().map(|&arg| self.aliases.resolve(arg));
        args.eq(copy.args.iter().map(|&arg| self.map(arg))).then_some(())
    }

    fn same_block(&mut self, block: Block, copy: Block) -> Option<()> {
        let kernel = self.kernel;
        let [insts, copies] = [block, copy].map(|block| &kernel.blocks[block].insts);
        if insts.len() != copies.len() {
            return None;
        }
        insts.iter().zip(copies).try_for_each(|(&inst, &copy)| self.same_inst(inst, copy))
    }

    fn same_inst(&mut self, inst: Inst, copy: Inst) -> Option<()> {
        let (data, other) = (&self.kernel.insts[inst], &self.kernel.insts[copy]);
        if std::mem::discriminant(data) != std::mem::discriminant(other) || !can_meld(data) {
            return None;
        }
        let (mut data, mut other) = (data.clone(), other.clone());
        data.for_each_use_mut(|value| *value = self.aliases.resolve(*value));
        other.for_each_use_mut(|value| *value = self.map(*value));
        let targets = data.targets();
        let mut targets = targets.iter();
        for call in other.targets_mut() {
            let block = targets.next()?.block;
            self.pair(block, call.block)?;
            call.block = block;
        }
        if data != other {
            return None;
        }
        if let (Some(result), Some(copied)) = (self.kernel.results[inst], self.kernel.results[copy]) {
            self.mapped_values.insert(copied, result);
            self.insts.push((copy, inst));
        }
        Some(())
    }

    /// Whether all annotations name paired blocks.
    fn same_annotations(&self) -> Option<()> {
        let partner = |copy: Block| match copy {
            copy if copy == self.merges[1] => Some(self.merges[0]),
            copy => self.partners.get(&copy).copied(),
        };
        self.pairs.iter().try_for_each(|&(block, copy)| {
            let mapped = match self.kernel.blocks[copy].merge {
                None => None,
                Some(Merge::Selection { merge }) => Some(Merge::Selection { merge: partner(merge)? }),
                Some(Merge::Loop { merge, continuing }) => {
                    Some(Merge::Loop { merge: partner(merge)?, continuing: partner(continuing)? })
                }
            };
            (mapped == self.kernel.blocks[block].merge).then_some(())
        })
    }
}

/// Whether both sides may execute an instruction together: it writes no memory, and does not depend on the set of
/// active invocations.
fn can_meld(data: &InstData) -> bool {
    match data {
        InstData::Load { access, .. } => *access == Access::default(),
        InstData::Jump { .. } | InstData::Branch { .. } | InstData::Switch { .. } | InstData::Unreachable => true,
        data => ExpressionKey::of(data).is_some(),
    }
}
