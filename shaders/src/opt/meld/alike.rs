//! Two loops that are the same: block for block and instruction for instruction, with the same values from outside.

use std::collections::HashMap;

use foldhash::fast::RandomState;

use crate::ir::{Access, Block, BlockCall, Inst, InstData, Kernel, Merge, Value};
use crate::opt::aliases::Aliases;
use crate::opt::cfg::Edges;
use crate::opt::gvn::Key;

/// Blocks of a loop that is compared, at most.
const MAX_BLOCKS: usize = 64;

/// A loop, and another that is the same.
pub(super) struct Alike {
    /// The first's header.
    pub header: Block,
    /// Where the first goes on, and where the other does.
    pub merges: [Block; 2],
    /// The first's blocks.
    pub blocks: Vec<Block>,
    /// Instructions of the other, each with that of the first.
    pub insts: Vec<(Inst, Inst)>,
    /// Parameters of the other, each with that of the first.
    pub params: Vec<(Value, Value)>,
}

impl Alike {
    /// Whether two jumps lead to loops that are the same, to which and from which no other way leads.
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
            instead: HashMap::default(),
            insts: Vec::new(),
            params: Vec::new(),
        };
        walk.pair(header, copy)?;
        walk.same_args(jumps[0], jumps[1])?;
        let types = |block: Block| kernel.blocks[block].params.iter().map(|&param| kernel.ty(param));
        if !types(merges[0]).eq(types(merges[1])) {
            return None;
        }
        let mut at = 0;
        while let Some(&(block, copy)) = walk.pairs.get(at) {
            walk.same_block(block, copy)?;
            at += 1;
        }
        walk.same_annotations()?;
        let Walk { pairs, insts, params, .. } = walk;
        let (blocks, copies): (Vec<Block>, Vec<Block>) = pairs.into_iter().unzip();
        let closed = is_closed(kernel, edges, &blocks, merges[0]) && is_closed(kernel, edges, &copies, merges[1]);
        closed.then_some(Self { header, merges, blocks, insts, params })
    }
}

/// Whether control comes into a loop, whose header is the first of these blocks, in one way from outside, and to what is
/// behind it from the loop alone; and nobody outside names its blocks.
fn is_closed(kernel: &Kernel, edges: &Edges, blocks: &[Block], merge: Block) -> bool {
    let own = Edges::from(kernel, blocks);
    let entries = std::iter::once(1).chain(std::iter::repeat(0));
    blocks.iter().chain([&merge]).zip(entries).all(|(&block, entries)| {
        edges.ways[block] == own.ways[block] + entries && edges.names[block] == own.names[block]
    })
}

/// A walk through both loops at once.
struct Walk<'a> {
    kernel: &'a Kernel,
    aliases: &'a Aliases,
    merges: [Block; 2],
    /// Of each block of the other loop, that of the first; and both, in the order in which they were found.
    partners: HashMap<Block, Block, RandomState>,
    pairs: Vec<(Block, Block)>,
    /// Of each value of the other loop, that of the first.
    instead: HashMap<Value, Value, RandomState>,
    insts: Vec<(Inst, Inst)>,
    params: Vec<(Value, Value)>,
}

impl Walk<'_> {
    /// The first loop's value for one of the other's.
    fn map(&self, value: Value) -> Value {
        let value = self.aliases.resolve(value);
        self.instead.get(&value).copied().unwrap_or(value)
    }

    /// Takes two blocks as one.
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
            self.instead.insert(other, param);
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
        if std::mem::discriminant(data) != std::mem::discriminant(other) || !is_plain(data) {
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
            self.instead.insert(copied, result);
            self.insts.push((copy, inst));
        }
        Some(())
    }

    /// Whether all annotations name the same blocks, which both walks have come to.
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

/// What two sides may do together although they would do it one after the other: it writes no memory, and does not ask who runs it.
fn is_plain(data: &InstData) -> bool {
    match data {
        InstData::Load { access, .. } => *access == Access::default(),
        InstData::Jump { .. } | InstData::Branch { .. } | InstData::Switch { .. } | InstData::Unreachable => true,
        data => Key::of(data).is_some(),
    }
}
