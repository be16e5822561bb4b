//! Writes out a loop: a copy of its blocks for each trip, with the header's parameters replaced by what the trip before
//! passes on. Operations on constants are folded on the way, and what a trip does not reach is not copied.

use cranelift_entity::packed_option::PackedOption;
use cranelift_entity::{EntitySet, SecondaryMap};
use foldhash::HashMap;
use smallvec::SmallVec;

use super::{Nest, Plan};
use crate::ir::{Block, BlockCall, BlockData, Inst, InstData, Kernel, Merge, Type, Value, ValueDef, element};
use crate::opt::aliases::Aliases;
use crate::opt::cfg;

type Args = SmallVec<[Value; 4]>;

/// Writes out loops of one kernel.
pub(super) struct Copier<'a> {
    kernel: &'a mut Kernel,
    constants: HashMap<(Type, u64), Value>,
    /// New constants; they will stand at the head of the entry.
    prologue: Vec<Inst>,
    aliases: Aliases,
    /// The first copy of each header.
    heads: SecondaryMap<Block, PackedOption<Block>>,
    /// The value in this trip's copy, for values of the loop at work.
    values: SecondaryMap<Value, PackedOption<Value>>,
    /// The blocks of the loop at work.
    inside: EntitySet<Block>,
    /// This trip's copies of those that are reached.
    copies: SecondaryMap<Block, PackedOption<Block>>,
    /// Whether the kernel has operations of subgroups. What a constant decides may take them out of the loops around them; [`cfg`]
    /// looks at that.
    has_subgroups: bool,
}

/// The loop at work.
struct Job<'a> {
    plan: &'a Plan,
    blocks: &'a [Block],
    /// What leaves through each block behind the loop.
    leaving: Vec<(Block, Args)>,
}

/// The trip at work.
struct Trip {
    number: usize,
    /// The next trip's header, with what it gets.
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
            heads: SecondaryMap::new(),
            values: SecondaryMap::new(),
            inside: EntitySet::new(),
            copies: SecondaryMap::new(),
            has_subgroups,
        }
    }

    /// Writes out one loop. Its blocks are out of reach afterwards.
    pub(super) fn unroll(&mut self, nest: &Nest, plan: &Plan) {
        let found = &nest.loops.all[plan.number];
        let mut job = Job { plan, blocks: &found.blocks, leaving: Vec::new() };
        self.inside.extend(found.blocks.iter().copied());
        for &(value, exit) in &plan.escaping {
            self.leave_through(&mut job, value, exit);
        }
        let head = self.kernel.blocks.push(BlockData::default());
        self.heads[found.header] = head.into();
        let mut next = Some((head, self.enter(plan.before, found.header, head)));
        let mut number = 0;
        while let Some((head, args)) = next {
            for place in 0..args.len() {
                let param = self.kernel.blocks[found.header].params[place];
                self.values[param] = args[place].into();
            }
            next = self.trip(&job, number, head);
            number += 1;
        }
        // Other loops' copies that use a value of this one get what leaves.
        for &block in job.blocks {
            let data = &self.kernel.blocks[block];
            let results = data.insts.iter().filter_map(|&inst| self.kernel.results[inst]);
            data.params.iter().copied().chain(results).for_each(|value| self.values[value] = None.into());
            self.inside.remove(block);
        }
    }

    /// Gives the block behind the loop a parameter for a value.
    fn leave_through(&mut self, job: &mut Job<'_>, value: Value, exit: Block) {
        let (index, ty) = (self.kernel.blocks[exit].params.len() as u32, self.kernel.ty(value));
        let param = self.kernel.values.push(ValueDef::Param { block: exit, index, ty });
        self.kernel.blocks[exit].params.push(param);
        self.aliases.replace(value, param);
        match job.leaving.iter_mut().find(|(block, _)| *block == exit) {
            Some((_, values)) => values.push(value),
            None => job.leaving.push((exit, smallvec::smallvec![value])),
        }
    }

    /// Leads the way into the loop to the first copy. Gives what was passed.
    fn enter(&mut self, before: Block, header: Block, head: Block) -> Args {
        let last = cfg::terminator(self.kernel, before);
        let calls = last.map(|last| self.kernel.insts[last].targets_mut()).into_iter().flatten();
        let mut args = Args::new();
        for call in calls.filter(|call| call.block == header) {
            call.block = head;
            args = std::mem::take(&mut call.args);
        }
        args
    }

    /// Copies the loop once.
    fn trip(&mut self, job: &Job<'_>, number: usize, head: Block) -> Option<(Block, Args)> {
        let header = job.blocks[0];
        let mut trip = Trip { number, next: None };
        job.blocks.iter().for_each(|&block| self.copies[block] = None.into());
        self.copies[header] = head.into();
        for &block in job.blocks {
            let Some(copy) = self.copies[block].expand() else { continue };
            if block != header {
                self.params(block, copy);
            }
            let insts = std::mem::take(&mut self.kernel.blocks[block].insts);
            let mut copied = Vec::with_capacity(insts.len());
            for &inst in &insts {
                self.inst(job, &mut trip, block, inst, &mut copied);
            }
            self.kernel.blocks[block].insts = insts;
            self.kernel.blocks[copy].insts = copied;
        }
        for &block in job.blocks.iter().skip(1) {
            if let Some(copy) = self.copies[block].expand() {
                self.kernel.blocks[copy].merge = self.merge(self.kernel.blocks[block].merge);
            }
        }
        trip.next
    }

    fn params(&mut self, block: Block, copy: Block) {
        for place in 0..self.kernel.blocks[block].params.len() {
            let param = self.kernel.blocks[block].params[place];
            let ty = self.kernel.ty(param);
            let copied = self.kernel.values.push(ValueDef::Param { block: copy, index: place as u32, ty });
            self.kernel.blocks[copy].params.push(copied);
            self.values[param] = copied.into();
        }
    }

    fn value(&self, value: Value) -> Value {
        self.values[value].expand().unwrap_or(value)
    }

    fn inst(&mut self, job: &Job<'_>, trip: &mut Trip, block: Block, inst: Inst, copied: &mut Vec<Inst>) {
        let mut data = self.kernel.insts[inst].clone();
        data.for_each_use_mut(|value| *value = self.value(*value));
        if data.is_terminator() {
            let mut data = self.decided(job, trip, block, data);
            for call in data.targets_mut() {
                self.retarget(job, trip, call);
            }
            copied.push(self.push(data, inst));
            return;
        }
        let Some(result) = self.kernel.results[inst] else {
            copied.push(self.push(data, inst));
            return;
        };
        let folded = self.folded(&data).unwrap_or_else(|| {
            let ty = self.kernel.ty(result);
            let copy = self.push(data, inst);
            copied.push(copy);
            let value = self.kernel.values.push(ValueDef::Result { inst: copy, ty });
            self.kernel.results[copy] = Some(value);
            value
        });
        self.values[result] = folded.into();
    }

    /// Adds an instruction like another one to the tables.
    fn push(&mut self, data: InstData, like: Inst) -> Inst {
        let inst = self.kernel.insts.push(data);
        self.kernel.origins[inst] = self.kernel.origins[like];
        if self.kernel.no_contraction.contains(like) {
            self.kernel.no_contraction.insert(inst);
        }
        inst
    }

    /// The value that an instruction need not compute.
    fn folded(&mut self, data: &InstData) -> Option<Value> {
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

    /// A terminator without the choices that the trip has not.
    fn decided(&self, job: &Job<'_>, trip: &Trip, block: Block, data: InstData) -> InstData {
        let trips = &job.plan.trips;
        match data {
            InstData::Branch { condition, then, otherwise } => {
                let known = if block == trips.test {
                    Some((trip.number == trips.times) == trips.leaves_if)
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

    fn retarget(&mut self, job: &Job<'_>, trip: &mut Trip, call: &mut BlockCall) {
        if call.block == job.blocks[0] {
            let (kernel, args) = (&mut *self.kernel, std::mem::take(&mut call.args));
            call.block = trip.next.get_or_insert_with(|| (kernel.blocks.push(BlockData::default()), args)).0;
        } else if self.inside.contains(call.block) {
            let copy = &mut self.copies[call.block];
            let block = copy.expand().unwrap_or_else(|| self.kernel.blocks.push(BlockData::default()));
            *copy = block.into();
            call.block = block;
        } else if let Some((_, leaving)) = job.leaving.iter().find(|(block, _)| *block == call.block) {
            call.args.extend(leaving.iter().map(|&value| self.value(value)));
        }
    }

    /// The annotation of a copy. What it names may be out of reach now.
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

    /// Brings the rest of the kernel in line.
    pub(super) fn finish(self) {
        let Self { kernel, prologue, aliases, heads, .. } = self;
        for data in kernel.blocks.values_mut() {
            match &mut data.merge {
                None => {}
                Some(Merge::Selection { merge }) => *merge = heads[*merge].expand().unwrap_or(*merge),
                Some(Merge::Loop { merge, continuing }) => {
                    for name in [merge, continuing] {
                        *name = heads[*name].expand().unwrap_or(*name);
                    }
                }
            }
        }
        kernel.blocks[kernel.layout[0]].insts.splice(0..0, prologue);
        cfg::lay_out(kernel);
        aliases.apply(kernel);
    }
}
