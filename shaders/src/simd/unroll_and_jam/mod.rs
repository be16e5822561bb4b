//! Two subgroups at once: where one alone would wait for its own results most of the time, the next one's instructions
//! stand between them.
//!
//! That is done to whole bodies of the loop over subgroups, when nothing but lanes decides where control goes. What does not depend
//! on the subgroup stays single; everything else gets a copy right behind it. Control goes where a lane of either subgroup
//! goes: a subgroup that has no lanes there runs along with an empty mask, as lanes that are off do.
//!
//! `differs` finds what depends on the subgroup, `worth` whether the pair is faster, this file makes it.

mod profitability;
mod variant;

use cranelift_entity::SecondaryMap;
use smallvec::{SmallVec, smallvec};

use super::{Block, BlockCall, Inst, InstData, Kernel, Type, Value, ValueDef};
use crate::ir::Op;
use crate::ssa::{natural_loop, predecessors};

/// When subgroups run in pairs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Interleave {
    /// Where that is faster, as far as can be estimated.
    WhereProfitable,
    /// Wherever it can be done: for tests.
    WherePossible,
}

/// Lets pairs of subgroups run together. Whether that was done.
pub fn unroll_and_jam(kernel: &mut Kernel, pairs: Interleave) -> bool {
    let always = pairs == Interleave::WherePossible;
    let Some(turns) = Turns::find(kernel) else { return false };
    if !always && !profitability::is_latency_bound(kernel, &turns) {
        return false;
    }
    let Some(differs) = variant::find(kernel, &turns) else { return false };
    if !always && !profitability::fits(kernel, &turns, &differs) {
        return false;
    }
    Pairing { kernel, turns, differs, second: SecondaryMap::new() }.run();
    true
}

/// The loop over subgroups.
#[derive(Clone, Debug)]
struct Turns {
    /// Its header, with the subgroup's number as the only parameter.
    header: Block,
    number: Value,
    /// The block that goes back.
    latch: Block,
    /// How many subgroups there are, a constant.
    count: Value,
    /// Its blocks in the layout's order, the header first.
    body: Vec<Block>,
}

impl Turns {
    /// Finds a loop over an even number of subgroups that leave nothing to each other.
    fn find(kernel: &Kernel) -> Option<Self> {
        if kernel.private_bytes > 0 || kernel.frame_bytes > 0 {
            return None;
        }
        let last = |block: Block| kernel.terminator(block);
        let (&entry, body) = kernel.layout.split_first()?;
        let InstData::Jump { to: BlockCall { block: header, args } } = last(entry)? else { return None };
        let (&[first], &[number]) = (&args[..], &kernel.blocks[*header].params[..]) else { return None };
        if kernel.constant(first) != Some(0) || kernel.ty(number) != Type::S32 {
            return None;
        }
        let goes_back =
            |block: &Block| last(*block).is_some_and(|last| last.targets().iter().any(|to| to.block == *header));
        let mut latches = body.iter().copied().filter(goes_back);
        let (latch, None) = (latches.next()?, latches.next()) else { return None };
        let InstData::Branch { condition, then, .. } = last(latch)? else { return None };
        let InstData::Pure { op: Op::ULt, args } = kernel.definition(*condition)? else { return None };
        let (next, count) = (args[0], args[1]);
        let InstData::Pure { op: Op::IAdd, args } = kernel.definition(next)? else { return None };
        let steps = args[0] == number && kernel.constant(args[1]) == Some(1);
        let even = kernel.constant(count)?.is_multiple_of(2);
        let found = steps && even && then.block == *header && then.args[..] == [next];
        if !found {
            return None;
        }
        let body = Self::body(kernel, *header, latch);
        // The latch is the only way out, and nothing of a subgroup's own leaves through it.
        let inside = |call: &&BlockCall| body.contains(&call.block);
        let leaves = |block: Block| last(block).is_none_or(|last| !last.targets().iter().all(inside));
        let alone = body.iter().all(|&block| block == latch || !leaves(block));
        let ends = last(latch)?.targets().iter().all(|call| inside(call) || call.args.is_empty());
        (alone && ends && body.len() < MAX_BLOCKS).then_some(Self { header: *header, number, latch, count, body })
    }

    /// All blocks on ways from the header to the latch.
    fn body(kernel: &Kernel, header: Block, latch: Block) -> Vec<Block> {
        let (_, inside) = natural_loop(header, &[latch], &predecessors(kernel), |_| true);
        kernel.layout.iter().copied().filter(|&block| inside.contains(block)).collect()
    }
}

/// Blocks of a body that runs in pairs, at most.
const MAX_BLOCKS: usize = 256;

struct Pairing<'k> {
    kernel: &'k mut Kernel,
    turns: Turns,
    differs: SecondaryMap<Value, bool>,
    /// The second subgroup's value, for those that differ.
    second: SecondaryMap<Value, Option<Value>>,
}

impl Pairing<'_> {
    fn run(&mut self) {
        for at in 0..self.turns.body.len() {
            let block = self.turns.body[at];
            if block != self.turns.header {
                self.params(block);
            }
        }
        for at in 0..self.turns.body.len() {
            let block = self.turns.body[at];
            let mut insts = Vec::new();
            if block == self.turns.header {
                let one = self.constant(1);
                let number = self.turns.number;
                let other = self.emit(&mut insts, add(number, one), Type::S32);
                self.second[number] = Some(other);
            }
            for inst in std::mem::take(&mut self.kernel.blocks[block].insts) {
                self.inst(block, inst, &mut insts);
            }
            self.kernel.blocks[block].insts = insts;
        }
    }

    fn params(&mut self, block: Block) {
        for place in 0..self.kernel.blocks[block].params.len() {
            let param = self.kernel.blocks[block].params[place];
            if self.differs[param] {
                let (index, ty) = (self.kernel.blocks[block].params.len() as u32, self.kernel.ty(param));
                let other = self.kernel.values.push(ValueDef::Param { block, index, ty });
                self.kernel.blocks[block].params.push(other);
                self.second[param] = Some(other);
            }
        }
    }

    fn other(&self, value: Value) -> Value {
        self.second[value].unwrap_or(value)
    }

    fn inst(&mut self, block: Block, inst: Inst, insts: &mut Vec<Inst>) {
        let data = &self.kernel.insts[inst];
        if data.is_terminator() {
            self.exec(block, insts);
            self.terminator(block, inst, insts);
            return;
        }
        insts.push(inst);
        let results: SmallVec<[Value; 4]> = self.kernel.results[inst].clone();
        let single = match data {
            InstData::Poll { .. } | InstData::Fence => true,
            // What changes memory does so for each.
            _ => !results.is_empty() && !results.iter().any(|&result| self.differs[result]),
        };
        if single {
            return;
        }
        let mut copy = data.clone();
        copy.for_each_use_mut(|value| *value = self.other(*value));
        let copied = self.kernel.insts.push(copy);
        for (index, &result) in results.iter().enumerate() {
            let ty = self.kernel.ty(result);
            let other = self.kernel.values.push(ValueDef::Result { inst: copied, index: index as u32, ty });
            self.kernel.results[copied].push(other);
            self.second[result] = Some(other);
        }
        insts.push(copied);
    }

    /// The lanes of both subgroups, for the verifier: code does not need them.
    fn exec(&mut self, block: Block, insts: &mut Vec<Inst>) {
        if let Some(exec) = self.kernel.blocks[block].exec
            && self.differs[exec]
        {
            let either = self.either(exec, insts);
            self.kernel.blocks[block].exec = Some(either);
        }
    }

    fn either(&mut self, mask: Value, insts: &mut Vec<Inst>) -> Value {
        let args = smallvec![mask, self.other(mask)];
        self.emit(insts, InstData::Pure { op: Op::LOr, args }, Type::Mask)
    }

    fn terminator(&mut self, block: Block, inst: Inst, insts: &mut Vec<Inst>) {
        let mut data = self.kernel.insts[inst].clone();
        if block == self.turns.latch {
            let (number, count, two) = (self.turns.number, self.turns.count, self.constant(2));
            let next = self.emit(insts, add(number, two), Type::S32);
            let more = InstData::Pure { op: Op::ULt, args: smallvec![next, count] };
            let more = self.emit(insts, more, Type::S1);
            if let InstData::Branch { condition, then, .. } = &mut data {
                *condition = more;
                then.args = smallvec![next];
            }
        } else if let InstData::Branch { condition, .. } = &mut data
            && self.differs[*condition]
            && let Some(&InstData::Any { mask }) = self.kernel.definition(*condition)
        {
            let mask = self.either(mask, insts);
            *condition = self.emit(insts, InstData::Any { mask }, Type::S1);
        }
        for call in data.targets_mut() {
            if call.block != self.turns.header {
                let params = &self.kernel.blocks[call.block].params;
                let differ = |place: &usize| self.differs[params[*place]];
                let others: SmallVec<[Value; 4]> =
                    (0..call.args.len()).filter(differ).map(|place| self.other(call.args[place])).collect();
                call.args.extend(others);
            }
        }
        self.kernel.insts[inst] = data;
        insts.push(inst);
    }

    fn emit(&mut self, insts: &mut Vec<Inst>, data: InstData, ty: Type) -> Value {
        let inst = self.kernel.insts.push(data);
        let value = self.kernel.values.push(ValueDef::Result { inst, index: 0, ty });
        self.kernel.results[inst].push(value);
        insts.push(inst);
        value
    }

    /// A constant in the entry block.
    fn constant(&mut self, bits: u64) -> Value {
        let entry = self.kernel.layout[0];
        let mut insts = std::mem::take(&mut self.kernel.blocks[entry].insts);
        let last = insts.pop();
        let value = self.emit(&mut insts, InstData::Const { ty: Type::S32, bits }, Type::S32);
        insts.extend(last);
        self.kernel.blocks[entry].insts = insts;
        value
    }
}

fn add(a: Value, b: Value) -> InstData {
    InstData::Pure { op: Op::IAdd, args: smallvec![a, b] }
}
