//! Runs a workgroup subgroup by subgroup, and stops each at barriers until all are there.
//!
//! Without barriers that is a loop. With barriers, the code falls into parts: each begins where subgroups begin or go on
//! after a barrier, and ends where they stop at one, or for good. What lives longer than a part is in the subgroup's frame.
//! `turns` makes the loops that run the parts for all subgroups.

use cranelift_entity::EntitySet;

use super::{Part, Turns};
use crate::analysis::{Shape, Uniformity};
use crate::ir::{self, InstData as Scalar, Op, Scope};
use crate::simd::builder::{ALL, Builder};
use crate::simd::ssa::Barrier;
use crate::simd::{BlockCall, Field, Inst, InstData, LANES, WideOp};
use crate::vectorize::{Block, Type, Unsupported, Value, Widen};

/// The subgroup that runs.
#[derive(Debug)]
pub(in crate::vectorize) struct Subgroup {
    /// Its number, `s32`.
    pub(in crate::vectorize) number: Value,
    /// Its lanes that are invocations.
    pub(in crate::vectorize) lanes: Value,
    count: u32,
    /// Where a subgroup begins. With barriers this block is the pattern for the beginning of each part.
    pub(in crate::vectorize) turn: Block,
    /// Where its own instructions begin, once that is known.
    pub(in crate::vectorize) start: Option<Block>,
    barriers: Option<Barriers>,
}

/// What barriers need.
#[derive(Debug)]
struct Barriers {
    /// What subgroups have in common, if they all come to each barrier together.
    common: Option<Common>,
    /// Address of the subgroup's frame.
    frame: Value,
    /// The constant that says how large a frame is.
    frame_bytes: Inst,
    parts: Vec<Part>,
}

/// What all invocations of a workgroup have in common.
#[derive(Debug)]
struct Common {
    uniformity: Uniformity,
    /// Blocks that all of them come to together.
    full: EntitySet<ir::Block>,
}

impl Common {
    /// Unless they may come to different barriers, or come to one after some have returned. Vulkan forbids that, yet
    /// subgroups that return early are seen in practice.
    fn new(kernel: &ir::Kernel) -> Option<Self> {
        let uniformity = Uniformity::of_workgroup(kernel);
        let full = uniformity.full(kernel);
        let together = |&block: &ir::Block| {
            full.contains(block) || !kernel.blocks[block].insts.iter().any(|&inst| waits(&kernel.insts[inst]))
        };
        kernel.layout.iter().all(together).then_some(Self { uniformity, full })
    }

    fn contains(&self, value: ir::Value) -> bool {
        self.uniformity.shape(value) == Shape::Uniform
            && self.uniformity.home(value).is_some_and(|home| self.full.contains(home))
    }
}

/// Whether a barrier makes subgroups wait for each other.
fn waits(data: &Scalar) -> bool {
    matches!(data, Scalar::Barrier { execution, .. } if !matches!(execution, Scope::Subgroup | Scope::Invocation))
}

impl Subgroup {
    pub(in crate::vectorize) fn new(builder: &mut Builder, kernel: &ir::Kernel) -> Self {
        let count = kernel.invocations().div_ceil(LANES);
        let insts = kernel.layout.iter().flat_map(|&block| &kernel.blocks[block].insts);
        let waits = count > 1 && insts.into_iter().any(|&inst| waits(&kernel.insts[inst]));
        let turn = builder.create_block();
        let frame_bytes = waits.then(|| builder.placeholder());
        let common = frame_bytes.and_then(|_| Common::new(kernel));
        let entry = builder.current();
        if kernel.shared_bytes() > 0 {
            let base = builder.emit_one(InstData::Context { field: Field::Shared });
            builder.emit(InstData::Zero { base, bytes: kernel.shared_bytes() });
        }
        if waits && common.is_none() {
            let base = builder.emit_one(InstData::Context { field: Field::Frames });
            builder.emit(InstData::Zero { base, bytes: count * 4 });
        }
        debug_assert_eq!(builder.current(), entry);
        let row = in_row(builder, kernel);
        let number = if count > 1 { builder.param(turn, Type::S32) } else { builder.s32(0) };
        builder.switch_to(turn);
        let params: &[Value] = if count > 1 { &[number] } else { &[] };
        builder.begin_subgroup(params);
        let lanes = row.unwrap_or_else(|| lanes(builder, kernel, number));
        // Here the subgroup begins: the verifier holds all later masks against this one.
        builder.kernel.blocks[turn].exec = Some(lanes);
        builder.kernel.blocks[turn].begins = true;
        let barriers = frame_bytes.map(|frame_bytes| {
            let states = if common.is_some() { 0 } else { state_bytes(count) };
            let frame = frame(builder, number, states, frame_bytes);
            Barriers { common, frame, frame_bytes, parts: Vec::new() }
        });
        Self { number, lanes, count, turn, start: None, barriers }
    }

    /// Whether all subgroups have a value when they are at a barrier where it is alive, and the same one.
    pub(in crate::vectorize) fn is_common(&self, value: ir::Value) -> bool {
        let common = self.barriers.as_ref().and_then(|barriers| barriers.common.as_ref());
        common.is_some_and(|common| common.contains(value))
    }
}

/// Of workgroups that run abreast the lanes of those that there are, the same for all subgroups.
fn in_row(builder: &mut Builder, kernel: &ir::Kernel) -> Option<Value> {
    let abreast = builder.kernel.abreast;
    if abreast == 1 {
        return None;
    }
    let [end, first] =
        [Field::RowEnd, Field::WorkgroupId(0)].map(|field| builder.emit_one(InstData::Context { field }));
    let groups = builder.pure(Op::ISub, &[end, first]);
    let size = builder.s32(kernel.workgroup_size[0] / abreast);
    let count = builder.pure(Op::IMul, &[groups, size]);
    let count = builder.splat(count);
    let ids = builder.emit_one(InstData::Lanes { values: Box::new(std::array::from_fn(|lane| lane as u32)) });
    let lanes = builder.pure(Op::ULt, &[ids, count]);
    builder.make_workgroups(lanes);
    Some(lanes)
}

/// The lanes of a subgroup that are invocations: all but those after the last.
fn lanes(builder: &mut Builder, kernel: &ir::Kernel, number: Value) -> Value {
    let invocations = kernel.invocations();
    if invocations.is_multiple_of(LANES) {
        return builder.constant(Type::Mask, ALL);
    }
    if invocations < LANES {
        return builder.constant(Type::Mask, (1 << invocations) - 1);
    }
    let total = builder.s32(invocations);
    let sixteen = builder.s32(LANES);
    let first = builder.pure(Op::IMul, &[number, sixteen]);
    let rest = builder.pure(Op::ISub, &[total, first]);
    let rest = builder.splat(rest);
    let ids = builder.emit_one(InstData::Lanes { values: Box::new(std::array::from_fn(|lane| lane as u32)) });
    let lanes = builder.pure(Op::ULt, &[ids, rest]);
    builder.make_outer(lanes);
    lanes
}

/// Bytes of the states, before the frames.
fn state_bytes(count: u32) -> u32 {
    (count * 4).next_multiple_of(64)
}

fn frame(builder: &mut Builder, number: Value, before: u32, frame_bytes: Inst) -> Value {
    let frames = builder.emit_one(InstData::Context { field: Field::Frames });
    let skip = builder.s64(u64::from(before));
    let first = builder.wide(WideOp::Add, &[frames, skip]);
    let number = builder.wide(WideOp::Extend, &[number]);
    let bytes = builder.kernel.results[frame_bytes][0];
    let offset = builder.wide(WideOp::Mul, &[number, bytes]);
    builder.wide(WideOp::Add, &[first, offset])
}

impl Widen<'_> {
    /// Builds everything: what comes before the subgroups, their blocks, and what comes after.
    ///
    /// # Errors
    ///
    /// That takes too long.
    pub(in crate::vectorize) fn subgroups(mut self) -> Result<crate::simd::Kernel, Unsupported> {
        let [start, end] = [self.builder.create_block(), self.builder.create_block()];
        self.builder.variables.mark_start(start);
        self.builder.switch_to(start);
        self.subgroup.start = Some(start);
        self.zero_private();
        self.region(end)?;
        self.builder.switch_to(end);
        self.builder.seal(end);
        let Subgroup { number, count, turn, .. } = self.subgroup;
        let copies = if self.subgroup.barriers.is_some() { count } else { 1 };
        self.builder.kernel.private_bytes = self.kernel.private_bytes() * LANES * copies;
        let Some(Barriers { common, frame, frame_bytes, mut parts }) = self.subgroup.barriers.take() else {
            self.next_subgroup();
            self.builder.terminate_at(turn, InstData::Jump { to: BlockCall::new(start) });
            let number = (count > 1).then(|| self.builder.s32(0));
            let first = number.into_iter().chain(self.first_tallies()).collect();
            let entry = self.builder.kernel.layout[0];
            self.builder.terminate_at(entry, InstData::Jump { to: BlockCall { block: turn, args: first } });
            self.builder.fill_params();
            return Ok(self.builder.finish());
        };
        self.builder.emit(InstData::Return);
        self.builder.keep_all();
        self.builder.fill_params();
        let bytes = self.builder.variables.frame_bytes;
        let bytes = super::context_slots::share(&mut self.builder.kernel, &parts, frame, bytes).next_multiple_of(64);
        let states = if common.is_some() { 0 } else { state_bytes(count) };
        self.builder.kernel.insts[frame_bytes] = InstData::Const { ty: Type::S64, bits: u64::from(bytes) };
        self.builder.kernel.frame_bytes = states + bytes * count;
        parts.insert(0, Part { block: start, stop: None });
        Turns { parts, end, pattern: turn, number, count, together: common.is_some() }.build(&mut self.builder);
        Ok(self.builder.finish())
    }

    /// Each invocation's private memory begins with zeros.
    fn zero_private(&mut self) {
        let bytes = self.kernel.private_bytes() * LANES;
        if bytes > 0 {
            let base = self.private_base();
            self.builder.emit(InstData::Zero { base, bytes });
        }
    }

    /// Address of the subgroup's private memory.
    pub(in crate::vectorize) fn private_base(&mut self) -> Value {
        let base = self.builder.emit_one(InstData::Context { field: Field::Private });
        if self.subgroup.barriers.is_none() {
            return base;
        }
        let bytes = self.builder.s64(u64::from(self.kernel.private_bytes() * LANES));
        let number = self.builder.wide(WideOp::Extend, &[self.subgroup.number]);
        let offset = self.builder.wide(WideOp::Mul, &[number, bytes]);
        self.builder.wide(WideOp::Add, &[base, offset])
    }

    /// A barrier: the subgroup waits, if it is not the only one.
    pub(in crate::vectorize) fn barrier(&mut self, data: &Scalar) {
        if !waits(data) || self.subgroup.barriers.is_none() {
            return;
        }
        let resume = self.builder.create_block();
        let stop = self.builder.current();
        let Some(barriers) = &mut self.subgroup.barriers else { return };
        barriers.parts.push(Part { block: resume, stop: Some(stop) });
        let (frame, lanes) = (barriers.frame, self.subgroup.lanes);
        // Stands for the way to the next subgroup.
        self.builder.terminate(InstData::Return);
        let loops = &self.uniformity.loops;
        let around = std::iter::successors(loops.of(self.block), |&number| loops.all[number].parent).collect();
        self.builder.variables.mark_resume(resume, Barrier { stop, frame, lanes, loops: around });
        self.builder.switch_to(resume);
        self.resume();
    }

    /// Positions of the blocks in which subgroups stop.
    pub(in crate::vectorize) fn stops(&self) -> Vec<u32> {
        if self.subgroup.barriers.is_none() {
            return Vec::new();
        }
        let kernel = self.kernel;
        let stops = |block: ir::Block| kernel.blocks[block].insts.iter().any(|&inst| waits(&kernel.insts[inst]));
        (0..).zip(&kernel.layout).filter(|&(_, &block)| stops(block)).map(|(place, _)| place).collect()
    }

    /// Goes on with the next subgroup, or returns after the last one.
    fn next_subgroup(&mut self) {
        if self.subgroup.count == 1 {
            self.builder.emit(InstData::Return);
            return;
        }
        let (one, count) = (self.builder.s32(1), self.builder.s32(self.subgroup.count));
        let number = self.subgroup.number;
        let next = self.builder.emit_value(InstData::Pure { op: Op::IAdd, args: [number, one].into_iter().collect() });
        let condition =
            self.builder.emit_value(InstData::Pure { op: Op::ULt, args: [next, count].into_iter().collect() });
        let totals = self.read_tallies();
        let args = std::iter::once(next).chain(totals.iter().copied()).collect();
        let then = BlockCall { block: self.subgroup.turn, args };
        let last = self.builder.create_block();
        self.builder.terminate(InstData::Branch { condition, then, otherwise: BlockCall::new(last) });
        self.builder.switch_to(last);
        self.settle_tallies(&totals);
        self.builder.emit(InstData::Return);
    }
}
