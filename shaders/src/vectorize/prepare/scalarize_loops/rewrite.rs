//! Emits the scalar copy of a loop, the loop over the lanes around it, and the choice between both versions.

use foldhash::HashMap;
use smallvec::{SmallVec, smallvec};

use super::{LANE_OVERHEAD, MAX_ITERATIONS, Plan, ScalarizedLoops};
use crate::ir::{
    Block, BlockCall, BlockData, BuiltIn, Inst, InstData, Kernel, Merge, Op, SubgroupOp, Type, Value, ValueDef,
};
use crate::simd::LANES;

type Args = SmallVec<[Value; 4]>;

pub(super) struct Rewrite<'a> {
    kernel: &'a mut Kernel,
    plan: &'a Plan,
    /// Instructions of the block that is being emitted.
    insts: Vec<Inst>,
    /// The copy's values for values of the loop and for varying values from outside.
    copies: HashMap<Value, Value>,
    origin: u32,
}

/// The new blocks, in the layout's order; `vector_entry` leads to the original loop, and both versions join in `after`.
struct Blocks {
    vector_entry: Block,
    lane_entry: Block,
    lane: Block,
    header: Block,
    body: Block,
    latch: Block,
    after: Block,
}

impl<'a> Rewrite<'a> {
    pub(super) fn new(kernel: &'a mut Kernel, plan: &'a Plan) -> Self {
        let origin = kernel.blocks[plan.header].insts.last().map_or(0, |&last| kernel.origins[last]);
        Self { kernel, plan, insts: Vec::new(), copies: HashMap::default(), origin }
    }

    pub(super) fn apply(mut self, scalarized: &mut ScalarizedLoops) {
        let [vector_entry, lane_entry, lane, header, body, latch, after] =
            [(); 7].map(|()| self.kernel.blocks.push(BlockData::default()));
        let blocks = Blocks { vector_entry, lane_entry, lane, header, body, latch, after };
        self.redirect_exit(&blocks);
        let lengths = self.choose(&blocks);
        self.effect(InstData::Jump { to: BlockCall { block: self.plan.header, args: self.plan.first.clone() } });
        self.end(vector_entry);
        self.emit_lane_loop(&blocks, &lengths, scalarized);
        let layout = &mut self.kernel.layout;
        if let Some(at) = layout.iter().position(|&block| block == self.plan.header) {
            layout.insert(at, vector_entry);
        }
        if let Some(at) = layout.iter().position(|&block| block == self.plan.body) {
            layout.splice(at + 1..at + 1, [lane_entry, lane, header, body, latch, after]);
        }
    }

    /// Redirects the loop's exit to a new block whose parameters replace the live-out values.
    fn redirect_exit(&mut self, blocks: &Blocks) {
        let Plan { header, body, exit, live_outs, .. } = self.plan;
        let params: Args = live_outs.iter().map(|&value| self.param(blocks.after, self.kernel.ty(value))).collect();
        let instead: HashMap<Value, Value> = live_outs.iter().copied().zip(params).collect();
        let rename = |value: &mut Value| *value = *instead.get(value).unwrap_or(value);
        for place in 0..self.kernel.layout.len() {
            let block = self.kernel.layout[place];
            if block != *header && block != *body {
                let Kernel { blocks, insts, .. } = &mut *self.kernel;
                blocks[block].insts.iter().for_each(|&inst| insts[inst].for_each_use_mut(rename));
            }
        }
        let mut to = exit.clone();
        to.args.iter_mut().for_each(rename);
        self.effect(InstData::Jump { to });
        self.end(blocks.after);
        if let Some(&last) = self.kernel.blocks[*header].insts.last()
            && let InstData::Branch { otherwise, .. } = &mut self.kernel.insts[last]
        {
            *otherwise = BlockCall { block: blocks.after, args: live_outs.clone() };
        }
        if let Some(Merge::Loop { merge, .. }) = &mut self.kernel.blocks[*header].merge {
            *merge = blocks.after;
        }
    }

    /// Ends the preheader with the choice. Returns the length in words of each buffer that is walked.
    fn choose(&mut self, blocks: &Blocks) -> Args {
        let Plan { before, counter, limit, ref first, ref walks, weight, .. } = *self.plan;
        // Removes the jump into the loop.
        self.kernel.blocks[before].insts.pop();
        self.insts = std::mem::take(&mut self.kernel.blocks[before].insts);
        let zero = self.constant(Type::I32, 0);
        let is_entered = self.pure(Op::ULt, [first[counter], limit]);
        let iterations = self.pure(Op::ISub, [limit, first[counter]]);
        let iterations = self.select(is_entered, iterations, zero);
        let end = self.select(is_entered, limit, zero);
        let max_iterations = self.reduce(Op::UMax, iterations);
        let max_end = self.reduce(Op::UMax, end);
        let most = self.constant(Type::I32, MAX_ITERATIONS);
        // Longer loops are not scalarized; clamping keeps the sum from wrapping.
        let bounded = self.pure(Op::UMin, [iterations, most]);
        let sum = self.reduce(Op::IAdd, bounded);
        let overhead = self.constant(Type::I32, LANES * LANE_OVERHEAD);
        let scalarized_cost = self.pure(Op::IAdd, [sum, overhead]);
        let weight = self.constant(Type::I32, weight);
        let vector_cost = self.pure(Op::IMul, [max_iterations, weight]);
        let is_cheaper = self.pure(Op::ULt, [scalarized_cost, vector_cost]);
        let is_short = self.pure(Op::ULe, [max_iterations, most]);
        let mut chosen = self.pure(Op::LAnd, [is_cheaper, is_short]);
        let two = self.constant(Type::I32, 2);
        let mut buffers: SmallVec<[(Value, Value); 4]> = SmallVec::new();
        for &(_, buffer) in walks {
            if buffers.iter().all(|&(other, _)| other != buffer) {
                let bytes = self.emit(InstData::BufferSize { buffer }, Type::I32);
                let words = self.pure(Op::LShr, [bytes, two]);
                let inside = self.pure(Op::ULe, [max_end, words]);
                chosen = self.pure(Op::LAnd, [chosen, inside]);
                buffers.push((buffer, words));
            }
        }
        let [then, otherwise] = [blocks.lane_entry, blocks.vector_entry].map(BlockCall::new);
        self.effect(InstData::Branch { condition: chosen, then, otherwise });
        self.end(before);
        self.kernel.blocks[before].merge.get_or_insert(Merge::Selection { merge: blocks.after });
        buffers.into_iter().map(|(_, words)| words).collect()
    }

    /// The loop over the lanes, with the scalar copy inside. The values of the next lane are extracted during the
    /// current lane's loop, so that only that loop's exit branch delays the next lane.
    fn emit_lane_loop(&mut self, blocks: &Blocks, lengths: &[Value], scalarized: &mut ScalarizedLoops) {
        let Plan { counter, ref first, ref varying, ref live_outs, ref walks, .. } = *self.plan;
        let yes = self.constant(Type::Bool, 1);
        let here = self.emit(InstData::Subgroup { op: SubgroupOp::Ballot, args: smallvec![yes] }, Type::I32);
        let mut args = self.next_lane(here, lengths);
        for &value in live_outs {
            let ty = self.kernel.ty(value);
            args.push(self.constant(ty, 0));
        }
        let types: SmallVec<[Type; 8]> = args.iter().map(|&arg| self.kernel.ty(arg)).collect();
        self.effect(InstData::Jump { to: BlockCall { block: blocks.lane, args } });
        self.end(blocks.lane_entry);

        let params: Args = types.into_iter().map(|ty| self.param(blocks.lane, ty)).collect();
        let [rest, lowest, lane, below, ref more @ ..] = params[..] else {
            unreachable!("the parameters include those of `next_lane`")
        };
        let (mine, results) = more.split_at(varying.len());
        let left = self.pure(Op::Xor, [rest, lowest]);
        let next = self.next_lane(left, lengths);
        self.copies = varying.iter().copied().zip(mine.iter().copied()).collect();
        let initial: Args = first.iter().map(|&value| self.copy_of(value)).collect();
        self.effect(InstData::Jump { to: BlockCall { block: blocks.header, args: initial } });
        self.end(blocks.lane);

        // The scalar copy.
        for place in 0..self.kernel.blocks[self.plan.header].params.len() {
            let param = self.kernel.blocks[self.plan.header].params[place];
            let copy = self.param(blocks.header, self.kernel.ty(param));
            self.copies.insert(param, copy);
        }
        let number = self.kernel.blocks[blocks.header].params[counter];
        self.copy_insts(self.plan.header);
        let condition = self.pure(Op::ULt, [number, below]);
        let [then, otherwise] = [blocks.body, blocks.latch].map(BlockCall::new);
        self.effect(InstData::Branch { condition, then, otherwise });
        self.end(blocks.header);
        self.kernel.blocks[blocks.header].merge = Some(Merge::Loop { merge: blocks.latch, continuing: blocks.body });
        let copied = self.copy_insts(self.plan.body);
        for (from, to) in copied {
            if walks.iter().any(|&(walk, _)| walk == from) {
                scalarized.below.insert(to, below);
            }
        }
        let jump = self.kernel.blocks[self.plan.body].insts.last().map(|&last| self.kernel.insts[last].clone());
        if let Some(InstData::Jump { to }) = jump {
            let args = to.args.iter().map(|&value| self.copy_of(value)).collect();
            self.effect(InstData::Jump { to: BlockCall { block: blocks.header, args } });
        }
        self.end(blocks.body);
        scalarized.headers.insert(blocks.header);

        // Selects the live-out values into the lane's element.
        let builtin = BuiltIn::SubgroupLocalInvocationId;
        let me = self.emit(InstData::BuiltIn { builtin, component: 0 }, Type::I32);
        let mine = self.pure(Op::IEq, [me, lane]);
        let mut after: Args = SmallVec::new();
        for (&value, &before) in live_outs.iter().zip(results) {
            let copy = self.copy_of(value);
            after.push(self.select(mine, copy, before));
        }
        let zero = self.constant(Type::I32, 0);
        let more = self.pure(Op::INe, [left, zero]);
        let then = BlockCall { block: blocks.lane, args: next.into_iter().chain(after.iter().copied()).collect() };
        let otherwise = BlockCall { block: blocks.after, args: after };
        self.effect(InstData::Branch { condition: more, then, otherwise });
        self.end(blocks.latch);
        self.kernel.blocks[blocks.lane].merge = Some(Merge::Loop { merge: blocks.after, continuing: blocks.latch });
    }

    /// State of the loop over lanes for the lowest remaining lane: the mask of remaining lanes, the lane's bit and
    /// index, its exclusive limit, and its varying values.
    fn next_lane(&mut self, rest: Value, lengths: &[Value]) -> Args {
        let Plan { counter, limit, ref first, ref varying, .. } = *self.plan;
        let negative = self.unary(Op::INeg, rest, Type::I32);
        let lowest = self.pure(Op::And, [rest, negative]);
        let lane = self.unary(Op::FindUMsb, lowest, Type::I32);
        for &value in varying {
            let ty = self.kernel.ty(value);
            let op = SubgroupOp::Shuffle(ty);
            let copy = self.emit(InstData::Subgroup { op, args: smallvec![value, lane] }, ty);
            self.copies.insert(value, copy);
        }
        let most = self.constant(Type::I32, MAX_ITERATIONS);
        let ahead = self.pure(Op::IAdd, [self.copy_of(first[counter]), most]);
        let mut below = self.pure(Op::UMin, [self.copy_of(limit), ahead]);
        for &words in lengths {
            below = self.pure(Op::UMin, [below, words]);
        }
        let mine = varying.iter().map(|&value| self.copy_of(value));
        [rest, lowest, lane, below].into_iter().chain(mine).collect()
    }

    /// Copies the instructions of a block except its terminator; returns pairs of original and copy.
    fn copy_insts(&mut self, block: Block) -> Vec<(Inst, Inst)> {
        let insts = self.kernel.blocks[block].insts.clone();
        let mut pairs = Vec::new();
        for inst in insts {
            let mut data = self.kernel.insts[inst].clone();
            if data.is_terminator() {
                break;
            }
            data.for_each_use_mut(|value| *value = self.copy_of(*value));
            let copy = self.effect(data);
            self.kernel.origins[copy] = self.kernel.origins[inst];
            if self.kernel.no_contraction.contains(inst) {
                self.kernel.no_contraction.insert(copy);
            }
            if let Some(result) = self.kernel.results[inst] {
                let value = self.define(copy, self.kernel.ty(result));
                self.copies.insert(result, value);
            }
            pairs.push((inst, copy));
        }
        pairs
    }

    fn copy_of(&self, value: Value) -> Value {
        self.copies.get(&value).copied().unwrap_or(value)
    }

    /// Appends the emitted instructions to a block as its whole contents.
    fn end(&mut self, block: Block) {
        self.kernel.blocks[block].insts = std::mem::take(&mut self.insts);
    }

    fn param(&mut self, block: Block, ty: Type) -> Value {
        let index = self.kernel.blocks[block].params.len() as u32;
        let value = self.kernel.values.push(ValueDef::Param { block, index, ty });
        self.kernel.blocks[block].params.push(value);
        value
    }

    /// A constant at the start of the entry block.
    fn constant(&mut self, ty: Type, word: u32) -> Value {
        let value = self.emit(InstData::Const { ty, bits: word.into() }, ty);
        if let (Some(inst), Some(&entry)) = (self.insts.pop(), self.kernel.layout.first()) {
            // The entry may be the block that is being emitted.
            let insts = if entry == self.plan.before && self.kernel.blocks[entry].insts.is_empty() {
                &mut self.insts
            } else {
                &mut self.kernel.blocks[entry].insts
            };
            insts.insert(0, inst);
        }
        value
    }

    fn reduce(&mut self, op: Op, value: Value) -> Value {
        let op = SubgroupOp::Reduce(op, LANES as u8);
        self.emit(InstData::Subgroup { op, args: smallvec![value] }, Type::I32)
    }

    fn select(&mut self, condition: Value, then: Value, otherwise: Value) -> Value {
        let ty = self.kernel.ty(then);
        self.emit(InstData::Select { condition, then, otherwise }, ty)
    }

    fn unary(&mut self, op: Op, arg: Value, ty: Type) -> Value {
        self.emit(InstData::Pure { op, args: smallvec![arg] }, ty)
    }

    fn pure(&mut self, op: Op, args: [Value; 2]) -> Value {
        self.emit(InstData::Pure { op, args: SmallVec::from_slice(&args) }, op.result())
    }

    fn emit(&mut self, data: InstData, ty: Type) -> Value {
        let inst = self.effect(data);
        self.define(inst, ty)
    }

    fn define(&mut self, inst: Inst, ty: Type) -> Value {
        self.kernel.define(inst, ty)
    }

    fn effect(&mut self, data: InstData) -> Inst {
        let inst = self.kernel.insts.push(data);
        self.kernel.origins[inst] = self.origin;
        self.insts.push(inst);
        inst
    }
}
