//! Unroll-and-jam of the subgroup loop by two: each iteration runs two subgroups, with their instructions interleaved,
//! so that one computes while the other waits for its own results.
//!
//! The pass takes a kernel with a single subgroup loop in which masks decide all divergent branches. Values that are
//! invariant in the loop stay single; each variant instruction gets a copy right after it, for the second subgroup.
//! Control goes where an active lane of either subgroup goes: the other subgroup then runs along with an empty mask.
//!
//! `variant` finds the loop-variant values, `profitability` estimates whether the result is faster, this file rewrites
//! the loop.

mod profitability;
mod variant;

use cranelift_entity::SecondaryMap;
use smallvec::{SmallVec, smallvec};

use super::{Block, Inst, InstData, Kernel, SubgroupLoop, Type, Value, ValueDef};
use crate::ir::Op;
use crate::ssa::predecessors;

/// Which loops are rewritten.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Interleave {
    /// Those that become faster, by the estimate.
    WhereProfitable,
    /// All that can be rewritten: for tests.
    WherePossible,
}

/// Blocks of a loop that is rewritten, at most.
const MAX_BLOCKS: usize = 256;

/// Rewrites the kernel's subgroup loop. Returns whether it did.
pub fn unroll_and_jam(kernel: &mut Kernel, interleave: Interleave) -> bool {
    let always = interleave == Interleave::WherePossible;
    let Some(candidate) = CandidateLoop::find(kernel) else { return false };
    if !always && !profitability::is_latency_bound(kernel, &candidate) {
        return false;
    }
    let Some(variant) = variant::find(kernel, &candidate) else { return false };
    if !always && !profitability::fits_registers(kernel, &candidate, &variant) {
        return false;
    }
    Jam { kernel, candidate, variant, second: SecondaryMap::new() }.run();
    true
}

/// A subgroup loop that can be rewritten.
#[derive(Clone, Debug)]
struct CandidateLoop {
    subgroup_loop: SubgroupLoop,
    /// Its blocks in the layout's order, the header first.
    body: Vec<Block>,
}

impl CandidateLoop {
    /// The kernel's only loop over an even number of subgroups, if its iterations are independent: no memory of a
    /// subgroup's own, no loop-carried value but the index, no other exit than the latch, no live-out value. In the
    /// order of a schedule, each subgroup runs alone.
    fn find(kernel: &Kernel) -> Option<Self> {
        let &[subgroup_loop] = &kernel.subgroup_loops[..] else { return None };
        let SubgroupLoop { preheader, header, latch, index, count, .. } = subgroup_loop;
        let independent = kernel.subgroup_order == 0
            && kernel.private_bytes == 0
            && kernel.frame_bytes == 0
            && kernel.layout.first() == Some(&preheader)
            && kernel.blocks[header].params[..] == [index];
        if !independent || !kernel.constant(count)?.is_multiple_of(2) {
            return None;
        }
        let body = kernel.loop_blocks(&predecessors(kernel), &subgroup_loop);
        let inside = |block: Block| body.contains(&block);
        let stays = |block: Block| {
            let targets = kernel.targets(block);
            !targets.is_empty() && targets.iter().all(|call| inside(call.block))
        };
        let single_exit = body.iter().all(|&block| block == latch || stays(block));
        let no_live_out = kernel.targets(latch).iter().all(|call| inside(call.block) || call.args.is_empty());
        (single_exit && no_live_out && body.len() < MAX_BLOCKS).then_some(Self { subgroup_loop, body })
    }
}

struct Jam<'k> {
    kernel: &'k mut Kernel,
    candidate: CandidateLoop,
    variant: SecondaryMap<Value, bool>,
    /// The second subgroup's copy of each variant value.
    second: SecondaryMap<Value, Option<Value>>,
}

impl Jam<'_> {
    fn run(&mut self) {
        let SubgroupLoop { header, index, .. } = self.candidate.subgroup_loop;
        for at in 0..self.candidate.body.len() {
            let block = self.candidate.body[at];
            if block != header {
                self.params(block);
            }
        }
        for at in 0..self.candidate.body.len() {
            let block = self.candidate.body[at];
            let mut insts = Vec::new();
            if block == header {
                let one = self.constant(1);
                let other = self.emit(&mut insts, add(index, one), Type::S32);
                self.second[index] = Some(other);
            }
            for inst in std::mem::take(&mut self.kernel.blocks[block].insts) {
                self.inst(block, inst, &mut insts);
            }
            self.kernel.blocks[block].insts = insts;
        }
        self.kernel.subgroup_loops[0].step = 2;
    }

    fn params(&mut self, block: Block) {
        for position in 0..self.kernel.blocks[block].params.len() {
            let param = self.kernel.blocks[block].params[position];
            if self.variant[param] {
                let (index, ty) = (self.kernel.blocks[block].params.len() as u32, self.kernel.ty(param));
                let other = self.kernel.values.push(ValueDef::Param { block, index, ty });
                self.kernel.blocks[block].params.push(other);
                self.second[param] = Some(other);
            }
        }
    }

    fn second(&self, value: Value) -> Value {
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
            // An instruction without results changes memory, which each subgroup does for itself.
            _ => !results.is_empty() && !results.iter().any(|&result| self.variant[result]),
        };
        if single {
            return;
        }
        let mut copy = data.clone();
        copy.for_each_use_mut(|value| *value = self.second(*value));
        let copied = self.kernel.insts.push(copy);
        if self.kernel.origins[inst] != 0 {
            self.kernel.origins[copied] = self.kernel.origins[inst];
        }
        for (index, &result) in results.iter().enumerate() {
            let ty = self.kernel.ty(result);
            let other = self.kernel.values.push(ValueDef::Result { inst: copied, index: index as u32, ty });
            self.kernel.results[copied].push(other);
            self.second[result] = Some(other);
        }
        insts.push(copied);
    }

    /// The active lanes of both subgroups: the verifier reads them, the generated code does not.
    fn exec(&mut self, block: Block, insts: &mut Vec<Inst>) {
        if let Some(exec) = self.kernel.blocks[block].exec
            && self.variant[exec]
        {
            let either = self.either(exec, insts);
            self.kernel.blocks[block].exec = Some(either);
        }
    }

    fn either(&mut self, mask: Value, insts: &mut Vec<Inst>) -> Value {
        let args = smallvec![mask, self.second(mask)];
        self.emit(insts, InstData::Pure { op: Op::LOr, args }, Type::Mask)
    }

    fn terminator(&mut self, block: Block, inst: Inst, insts: &mut Vec<Inst>) {
        let SubgroupLoop { header, latch, index, count, .. } = self.candidate.subgroup_loop;
        let mut data = self.kernel.insts[inst].clone();
        if block == latch {
            let two = self.constant(2);
            let next = self.emit(insts, add(index, two), Type::S32);
            let more = InstData::Pure { op: Op::ULt, args: smallvec![next, count] };
            let more = self.emit(insts, more, Type::S1);
            if let InstData::Branch { condition, then, .. } = &mut data {
                *condition = more;
                then.args = smallvec![next];
            }
        } else if let InstData::Branch { condition, .. } = &mut data
            && self.variant[*condition]
            && let Some(&InstData::Any { mask }) = self.kernel.definition(*condition)
        {
            let mask = self.either(mask, insts);
            *condition = self.emit(insts, InstData::Any { mask }, Type::S1);
        }
        for call in data.targets_mut() {
            if call.block != header {
                let params = &self.kernel.blocks[call.block].params;
                let is_variant = |position: &usize| self.variant[params[*position]];
                let others: SmallVec<[Value; 4]> =
                    (0..call.args.len()).filter(is_variant).map(|position| self.second(call.args[position])).collect();
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
