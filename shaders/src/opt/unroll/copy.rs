//! Full unrolling: one copy of the loop's blocks for each iteration, with the header's parameters replaced by the
//! values that the previous iteration passes. Operations on constants are folded at once, and blocks that an iteration
//! does not reach are not copied.

use cranelift_entity::packed_option::PackedOption;
use cranelift_entity::{EntitySet, SecondaryMap};
use foldhash::HashMap;
use smallvec::SmallVec;

use super::{Nest, UnrollPlan};
use crate::ir::{Block, BlockCall, BlockData, Inst, InstData, Kernel, Merge, Type, Value, ValueDef, element};
use crate::opt::aliases::Aliases;
use crate::opt::cfg;

type Args = SmallVec<[Value; 4]>;

/// Unrolls loops of one kernel.
pub(super) struct Copier<'a> {
    kernel: &'a mut Kernel,
    constants: HashMap<(Type, u64), Value>,
    /// Replacement constants, to be inserted at the start of the entry block.
    prologue: Vec<Inst>,
    aliases: Aliases,
    /// The first copy of each header.
    first_copies: SecondaryMap<Block, PackedOption<Block>>,
    /// Of values of the current loop: the value in the current copy.
    values: SecondaryMap<Value, PackedOption<Value>>,
    /// The blocks of the current loop.
    inside: EntitySet<Block>,
    /// The current copies of the loop's blocks; only of reached ones.
    copies: SecondaryMap<Block, PackedOption<Block>>,
    /// Whether the kernel has subgroup operations. Folding a branch may then move one out of its enclosing loops, so it
    /// is left to [`cfg`], which checks this.
    has_subgroups: bool,
}

/// The loop being unrolled.
struct UnrolledLoop<'a> {
    plan: &'a UnrollPlan,
    blocks: &'a [Block],
    /// For each exit block, the values that the loop passes to it through new parameters.
    live_outs: Vec<(Block, Args)>,
}

/// The iteration being copied.
struct Iteration {
    number: usize,
    /// The next iteration's header, and its arguments.
    next: Option<(Block, Args)>,
}

impl<'a> Copier<'a> {
    pub(super) fn new(kernel: &'a mut Kernel) -> Self {
        let mut constants = HashMap::default();
        for &inst in &kernel.blocks[kernel.layout[0]].insts {
            if let (&InstData::Const { ty, bits }, Some(value)) = (&kernel.insts[inst], kernel.results[inst]) {
                constants.insert((ty, bits), value);
            }
        }
        let mut insts = kernel.layout.iter().flat_map(|&block| &kernel.blocks[block].insts);
        let has_subgroups = insts.any(|&inst| matches!(kernel.insts[inst], InstData::Subgroup { .. }));
        Self {
            kernel,
            constants,
            prologue: Vec::new(),
            aliases: Aliases::default(),
            first_copies: SecondaryMap::new(),
            values: SecondaryMap::new(),
            inside: EntitySet::new(),
            copies: SecondaryMap::new(),
            has_subgroups,
        }
    }

    /// Unrolls one loop. Its original blocks are unreachable afterwards.
    pub(super) fn unroll(&mut self, nest: &Nest, plan: &UnrollPlan) {
        let found = &nest.loops.all[plan.number];
        let mut unrolled = UnrolledLoop { plan, blocks: &found.blocks, live_outs: Vec::new() };
        self.inside.extend(found.blocks.iter().copied());
        for &(value, exit) in &plan.escaping {
            self.add_live_out(&mut unrolled, value, exit);
        }
        let header_copy = self.kernel.blocks.push(BlockData::default());
        self.first_copies[found.header] = header_copy.into();
        let mut next = Some((header_copy, self.enter(plan.entering, found.header, header_copy)));
        let mut number = 0;
        while let Some((header_copy, args)) = next {
            for index in 0..args.len() {
                let param = self.kernel.blocks[found.header].params[index];
                self.values[param] = args[index].into();
            }
            next = self.iteration(&unrolled, number, header_copy);
            number += 1;
        }
        // Copies of other loops that use a value of this loop must use the live-out parameter instead.
        for &block in unrolled.blocks {
            let data = &self.kernel.blocks[block];
            let results = data.insts.iter().filter_map(|&inst| self.kernel.results[inst]);
            data.params.iter().copied().chain(results).for_each(|value| self.values[value] = None.into());
            self.inside.remove(block);
        }
    }

    /// Adds a parameter for a live-out value to an exit block.
    fn add_live_out(&mut self, unrolled: &mut UnrolledLoop<'_>, value: Value, exit: Block) {
        let (index, ty) = (self.kernel.blocks[exit].params.len() as u32, self.kernel.ty(value));
        let param = self.kernel.values.push(ValueDef::Param { block: exit, index, ty });
        self.kernel.blocks[exit].params.push(param);
        self.aliases.replace(value, param);
        match unrolled.live_outs.iter_mut().find(|(block, _)| *block == exit) {
            Some((_, values)) => values.push(value),
            None => unrolled.live_outs.push((exit, smallvec::smallvec![value])),
        }
    }

    /// Redirects the entry edge to the first copy. Returns the edge's arguments.
    fn enter(&mut self, entering: Block, header: Block, header_copy: Block) -> Args {
        let last = self.kernel.last_inst(entering);
        let calls = last.map(|last| self.kernel.insts[last].targets_mut()).into_iter().flatten();
        let mut args = Args::new();
        for call in calls.filter(|call| call.block == header) {
            call.block = header_copy;
            args = std::mem::take(&mut call.args);
        }
        args
    }

    /// Copies the loop body once.
    fn iteration(&mut self, unrolled: &UnrolledLoop<'_>, number: usize, header_copy: Block) -> Option<(Block, Args)> {
        let header = unrolled.blocks[0];
        let mut iteration = Iteration { number, next: None };
        unrolled.blocks.iter().for_each(|&block| self.copies[block] = None.into());
        self.copies[header] = header_copy.into();
        for &block in unrolled.blocks {
            let Some(copy) = self.copies[block].expand() else { continue };
            if block != header {
                self.params(block, copy);
            }
            let insts = std::mem::take(&mut self.kernel.blocks[block].insts);
            let mut copied = Vec::with_capacity(insts.len());
            for &inst in &insts {
                self.inst(unrolled, &mut iteration, block, inst, &mut copied);
            }
            self.kernel.blocks[block].insts = insts;
            self.kernel.blocks[copy].insts = copied;
        }
        for &block in unrolled.blocks.iter().skip(1) {
            if let Some(copy) = self.copies[block].expand() {
                self.kernel.blocks[copy].merge = self.merge(self.kernel.blocks[block].merge);
            }
        }
        iteration.next
    }

    fn params(&mut self, block: Block, copy: Block) {
        for index in 0..self.kernel.blocks[block].params.len() {
            let param = self.kernel.blocks[block].params[index];
            let ty = self.kernel.ty(param);
            let copied = self.kernel.values.push(ValueDef::Param { block: copy, index: index as u32, ty });
            self.kernel.blocks[copy].params.push(copied);
            self.values[param] = copied.into();
        }
    }

    fn value(&self, value: Value) -> Value {
        self.values[value].expand().unwrap_or(value)
    }

    fn inst(
        &mut self,
        unrolled: &UnrolledLoop<'_>,
        iteration: &mut Iteration,
        block: Block,
        inst: Inst,
        copied: &mut Vec<Inst>,
    ) {
        let mut data = self.kernel.insts[inst].clone();
        data.for_each_use_mut(|value| *value = self.value(*value));
        if data.is_terminator() {
            let mut data = self.fold_terminator(unrolled, iteration, block, data);
            for call in data.targets_mut() {
                self.retarget(unrolled, iteration, call);
            }
            copied.push(self.push(data, inst));
            return;
        }
        let Some(result) = self.kernel.results[inst] else {
            copied.push(self.push(data, inst));
            return;
        };
        let folded = self.fold(&data).unwrap_or_else(|| {
            let ty = self.kernel.ty(result);
            let copy = self.push(data, inst);
            copied.push(copy);
            self.kernel.define(copy, ty)
        });
        self.values[result] = folded.into();
    }

    /// Adds an instruction to the kernel's tables, with the source position and flags of `like`.
    fn push(&mut self, data: InstData, like: Inst) -> Inst {
        let inst = self.kernel.insts.push(data);
        self.kernel.origins[inst] = self.kernel.origins[like];
        if self.kernel.no_contraction.contains(like) {
            self.kernel.no_contraction.insert(inst);
        }
        inst
    }

    /// The existing or constant value that replaces an instruction.
    fn fold(&mut self, data: &InstData) -> Option<Value> {
        let kernel = &*self.kernel;
        match *data {
            InstData::Const { ty, bits } => Some(self.constant(ty, bits)),
            InstData::Pure { op, ref args } => {
                let bits: Option<SmallVec<[u64; 4]>> = args.iter().map(|&arg| kernel.constant(arg)).collect();
                Some(self.constant(op.result(), op.fold(&bits?)))
            }
            InstData::Select { condition, then, otherwise } => {
                Some(if kernel.constant(condition)? != 0 { then } else { otherwise })
            }
            InstData::Element { base, index, stride } => match (kernel.constant(base), kernel.constant(index)?) {
                (_, 0) => Some(base),
                (Some(base), index) => {
                    Some(self.constant(Type::I32, u64::from(element(base as u32, index as u32, stride))))
                }
                _ => None,
            },
            _ => None,
        }
    }

    fn constant(&mut self, ty: Type, bits: u64) -> Value {
        let (kernel, prologue) = (&mut *self.kernel, &mut self.prologue);
        *self.constants.entry((ty, bits)).or_insert_with(|| {
            let (inst, value) = cfg::create(kernel, InstData::Const { ty, bits }, ty, 0);
            prologue.push(inst);
            value
        })
    }

    /// The terminator with the targets that the iteration can take.
    fn fold_terminator(
        &self,
        unrolled: &UnrolledLoop<'_>,
        iteration: &Iteration,
        block: Block,
        data: InstData,
    ) -> InstData {
        let trip_count = &unrolled.plan.trip_count;
        match data {
            InstData::Branch { condition, then, otherwise } => {
                let known = if block == trip_count.exit.block {
                    Some((iteration.number == trip_count.back_edges_taken) == trip_count.exit.leaves_if)
                } else {
                    self.kernel.constant(condition).filter(|_| !self.has_subgroups).map(|bits| bits != 0)
                };
                match known {
                    Some(true) => InstData::Jump { to: then },
                    Some(false) => InstData::Jump { to: otherwise },
                    None => InstData::Branch { condition, then, otherwise },
                }
            }
            data => data,
        }
    }

    fn retarget(&mut self, unrolled: &UnrolledLoop<'_>, iteration: &mut Iteration, call: &mut BlockCall) {
        if call.block == unrolled.blocks[0] {
            let (kernel, args) = (&mut *self.kernel, std::mem::take(&mut call.args));
            call.block = iteration.next.get_or_insert_with(|| (kernel.blocks.push(BlockData::default()), args)).0;
        } else if self.inside.contains(call.block) {
            let copy = &mut self.copies[call.block];
            let block = copy.expand().unwrap_or_else(|| self.kernel.blocks.push(BlockData::default()));
            *copy = block.into();
            call.block = block;
        } else if let Some((_, live_outs)) = unrolled.live_outs.iter().find(|(block, _)| *block == call.block) {
            call.args.extend(live_outs.iter().map(|&value| self.value(value)));
        }
    }

    /// The annotation of a copy. A block that it names may be unreachable now and gets a stub.
    fn merge(&mut self, merge: Option<Merge>) -> Option<Merge> {
        let mut name = |block: Block| {
            if !self.inside.contains(block) {
                return block;
            }
            self.copies[block].expand().unwrap_or_else(|| {
                let end = self.kernel.insts.push(InstData::Unreachable);
                self.kernel.blocks.push(BlockData { insts: vec![end], ..BlockData::default() })
            })
        };
        Some(match merge? {
            Merge::Selection { merge } => Merge::Selection { merge: name(merge) },
            Merge::Loop { merge, continuing } => Merge::Loop { merge: name(merge), continuing: name(continuing) },
        })
    }

    /// Updates annotations, constants, layout and uses of the whole kernel.
    pub(super) fn finish(self) {
        let Self { kernel, prologue, aliases, first_copies, .. } = self;
        for data in kernel.blocks.values_mut() {
            match &mut data.merge {
                None => {}
                Some(Merge::Selection { merge }) => *merge = first_copies[*merge].expand().unwrap_or(*merge),
                Some(Merge::Loop { merge, continuing }) => {
                    for name in [merge, continuing] {
                        *name = first_copies[*name].expand().unwrap_or(*name);
                    }
                }
            }
        }
        kernel.blocks[kernel.layout[0]].insts.splice(0..0, prologue);
        cfg::lay_out(kernel);
        aliases.apply(kernel);
    }
}
