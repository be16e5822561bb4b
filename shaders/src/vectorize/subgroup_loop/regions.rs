//! Splits a kernel at its barriers into parallel regions, which run for one subgroup after another.
//!
//! Without barriers a single loop over the subgroups runs the kernel. With barriers, a parallel region begins at the
//! entry or at a resume point after a barrier, and ends at a barrier or at the kernel's end. Values that live across a
//! barrier are in the subgroup's frame. [`SubgroupLoops`] builds the loops that run the regions for all subgroups.

use cranelift_entity::EntitySet;

use super::barrier_check::BarrierCheck;
use super::bound::{MaskBounds, index_bound};
use super::{ParallelRegion, SubgroupLoops, Template};
use crate::analysis::{Shape, Uniformity};
use crate::ir::{self, InstData as Scalar, Op, Scope};
use crate::simd::builder::{ALL, Builder};
use crate::simd::ssa::Barrier;
use crate::simd::{
    Address, Block, BlockCall, BoundedIndex, Field, Inst, InstData, LANES, SubgroupLoop, Type, Value, WideOp,
};
use crate::vectorize::{Changes, Unsupported, Widen};

/// The subgroup that runs.
#[derive(Debug)]
pub(in crate::vectorize) struct Subgroup {
    /// Its number, `s32`.
    pub(in crate::vectorize) number: Value,
    /// The loop's index: the number, or its position in the order of the schedule.
    index: Value,
    /// The mask of its lanes that are invocations.
    pub(in crate::vectorize) lanes: Value,
    count: u32,
    /// The header of the subgroup loop. With barriers it is the template for the header of each loop.
    pub(in crate::vectorize) header: Block,
    barriers: Option<Barriers>,
}

/// A kernel's barriers and the regions between them.
#[derive(Debug)]
struct Barriers {
    /// Workgroup uniformity, if barriers are uniform.
    common: Option<Common>,
    /// Address of the subgroup's frame.
    frame: Value,
    /// The constant with the size of a frame in bytes.
    frame_bytes: Inst,
    regions: Vec<ParallelRegion>,
    mask_bounds: MaskBounds,
}

/// Values and blocks that are uniform in a workgroup.
#[derive(Debug)]
struct Common {
    uniformity: Uniformity,
    /// Blocks that all invocations of the workgroup reach together.
    convergent: EntitySet<ir::Block>,
}

impl Common {
    /// `None` if invocations may reach different barriers, or reach one after others have returned. Vulkan forbids
    /// that, yet subgroups that return early occur in practice.
    fn new(kernel: &ir::Kernel) -> Option<Self> {
        let uniformity = Uniformity::of_workgroup(kernel);
        // The analysis ended early: the kernel is given up at the next block.
        if kernel.work.is_spent() {
            return None;
        }
        let convergent = uniformity.convergent_blocks(kernel);
        let is_uniform = |&block: &ir::Block| {
            convergent.contains(block) || !kernel.blocks[block].insts.iter().any(|&inst| waits(&kernel.insts[inst]))
        };
        kernel.layout.iter().all(is_uniform).then_some(Self { uniformity, convergent })
    }

    fn contains(&self, value: ir::Value) -> bool {
        self.uniformity.shape(value) == Shape::Uniform
            && self.uniformity.defining_block(value).is_some_and(|block| self.convergent.contains(block))
    }
}

/// Whether a barrier makes subgroups wait for each other.
pub(in crate::vectorize) fn waits(data: &Scalar) -> bool {
    matches!(data, Scalar::Barrier { execution, .. } if !matches!(execution, Scope::Subgroup | Scope::Invocation))
}

impl Subgroup {
    pub(in crate::vectorize) fn new(builder: &mut Builder, kernel: &ir::Kernel) -> Self {
        let count = kernel.invocations().div_ceil(LANES);
        let insts = kernel.layout.iter().flat_map(|&block| &kernel.blocks[block].insts);
        let waits = count > 1 && insts.into_iter().any(|&inst| waits(&kernel.insts[inst]));
        let header = builder.create_block();
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
        let merged = merged_lanes(builder, kernel);
        let index = if count > 1 { builder.param(header, Type::S32) } else { builder.s32(0) };
        builder.switch_to(header);
        let params: &[Value] = if count > 1 { &[index] } else { &[] };
        builder.begin_subgroup(params);
        let number = if kernel.takes_schedule && count > 1 { scheduled(builder, index, count) } else { index };
        let lanes = merged.unwrap_or_else(|| lanes(builder, kernel, number));
        // The subgroup's entry: the verifier checks that later masks are subsets of this one.
        builder.kernel.blocks[header].exec = Some(lanes);
        builder.kernel.blocks[header].is_region_entry = true;
        let barriers = frame_bytes.map(|frame_bytes| {
            let states = if common.is_some() { 0 } else { state_bytes(count) };
            let frame = frame(builder, number, states, frame_bytes);
            Barriers { common, frame, frame_bytes, regions: Vec::new(), mask_bounds: MaskBounds::default() }
        });
        Self { number, index, lanes, count, header, barriers }
    }

    /// Whether a value that is live at a barrier is defined in all subgroups and the same in all of them.
    pub(in crate::vectorize) fn is_common(&self, value: ir::Value) -> bool {
        let common = self.barriers.as_ref().and_then(|barriers| barriers.common.as_ref());
        common.is_some_and(|common| common.contains(value))
    }
}

/// The number of the subgroup at a position in the order of the schedule.
fn scheduled(builder: &mut Builder, index: Value, count: u32) -> Value {
    let base = builder.emit_one(InstData::Context { field: Field::SubgroupOrder });
    let limit = builder.s32(count);
    let address = Address { base, index: Some(BoundedIndex { index, limit }), scale: 4, disp: 0 };
    let number = builder.emit_value(InstData::Load { ty: Type::S32, address });
    builder.make_outer(number);
    number
}

/// With merged workgroups, the lanes of those that exist: the last ones in x may be missing. The mask is the same for
/// all subgroups.
fn merged_lanes(builder: &mut Builder, kernel: &ir::Kernel) -> Option<Value> {
    let merged_workgroups = builder.kernel.merged_workgroups;
    if merged_workgroups == 1 {
        return None;
    }
    let [end, first] =
        [Field::RowEnd, Field::WorkgroupId(0)].map(|field| builder.emit_one(InstData::Context { field }));
    let groups = builder.pure(Op::ISub, &[end, first]);
    let size = builder.s32(kernel.workgroup_size[0] / merged_workgroups);
    let count = builder.pure(Op::IMul, &[groups, size]);
    let count = builder.splat(count);
    let ids = builder.lane_ids();
    let lanes = builder.pure(Op::ULt, &[ids, count]);
    builder.make_workgroups(lanes);
    Some(lanes)
}

/// The lanes of a subgroup that are invocations: the last subgroup may have padding lanes.
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
    let ids = builder.lane_ids();
    let lanes = builder.pure(Op::ULt, &[ids, rest]);
    builder.make_outer(lanes);
    lanes
}

/// Bytes of the resume indices, which precede the frames.
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
    /// Builds the whole SIMD kernel: the entry, the subgroups' blocks, and the loops around them. Also returns how
    /// often the parts of the vectorizer that only save time or memory changed it.
    ///
    /// # Errors
    ///
    /// The compile-time budget is spent.
    pub(in crate::vectorize) fn subgroups(mut self) -> Result<(crate::simd::Kernel, Changes), Unsupported> {
        let [start, end] = [self.builder.create_block(), self.builder.create_block()];
        self.builder.variables.mark_start(start);
        self.builder.switch_to(start);
        self.zero_private();
        self.region(end)?;
        self.builder.switch_to(end);
        self.builder.seal(end);
        let Subgroup { number, index, count, header, .. } = self.subgroup;
        let copies = if self.subgroup.barriers.is_some() { count } else { 1 };
        self.builder.kernel.private_bytes = self.kernel.private_bytes() * LANES * copies;
        let samples = ("image samples", self.inlined_samples());
        let Some(Barriers { common, frame, frame_bytes, mut regions, mask_bounds }) = self.subgroup.barriers.take()
        else {
            self.next_subgroup();
            self.builder.terminate_at(header, InstData::Jump { to: BlockCall::new(start) });
            let first = (count > 1).then(|| self.builder.s32(0)).into_iter().collect();
            let entry = self.builder.kernel.layout[0];
            self.builder.terminate_at(entry, InstData::Jump { to: BlockCall { block: header, args: first } });
            self.builder.fill_params();
            return Ok((self.builder.finish(), vec![samples]));
        };
        self.builder.emit(InstData::Return);
        self.builder.keep_all();
        self.builder.fill_params();
        let before = self.builder.variables.frame_bytes;
        let uniform = self.builder.variables.uniform_slots().collect();
        let bytes = super::context_slots::share(&mut self.builder.kernel, &regions, frame, before, uniform);
        let coalesced = u64::from(bytes < before);
        let bytes = bytes.next_multiple_of(64);
        let states = if common.is_some() { 0 } else { state_bytes(count) };
        self.builder.kernel.insts[frame_bytes] = InstData::Const { ty: Type::S64, bits: u64::from(bytes) };
        self.builder.kernel.frame_bytes = states + bytes * count;
        if common.is_none() && regions.iter().any(|region| region.check.is_some()) {
            return Err(Unsupported("a kernel with checks has barriers that are not uniform".into()));
        }
        regions.insert(0, ParallelRegion { block: start, stop: None, check: None });
        let template = Template { block: header, index, number };
        let uniform_barriers = common.is_some();
        let loops = SubgroupLoops { regions, end, template, mask_bounds, count, uniform_barriers };
        let bounded = loops.build(&mut self.builder);
        let changes = vec![samples, ("context slots", coalesced), ("trip-count bound", bounded)];
        Ok((self.builder.finish(), changes))
    }

    /// Zeroes the private memory of the subgroup's invocations.
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

    /// A barrier: ends a parallel region and begins the next, if the workgroup has several subgroups.
    pub(in crate::vectorize) fn barrier(&mut self, data: &Scalar) {
        if !waits(data) || self.subgroup.barriers.is_none() {
            return;
        }
        let resume = self.builder.create_block();
        let stop = self.builder.current();
        let check = self.pending_barrier.take().map(|site| BarrierCheck::new(self.kernel, self.plans, site));
        let Some(barriers) = &mut self.subgroup.barriers else { return };
        barriers.regions.push(ParallelRegion { block: resume, stop: Some(stop), check });
        let (frame, lanes) = (barriers.frame, self.subgroup.lanes);
        // A placeholder for the edge to the loop's latch.
        self.builder.terminate(InstData::Return);
        let loops = &self.uniformity.loops;
        let around = std::iter::successors(loops.of(self.block), |&number| loops.all[number].parent).collect();
        self.builder.variables.mark_resume(resume, Barrier { stop, frame, lanes, loops: around });
        self.builder.switch_to(resume);
        self.resume();
    }

    /// Records which invocations may be in the mask of a divergent branch: those of the execution mask for which the
    /// condition is true.
    pub(in crate::vectorize) fn note_mask_bound(&mut self, condition: ir::Value, lanes: Value) {
        let (kernel, exec) = (self.kernel, self.exec);
        if let Some(Barriers { mask_bounds, .. }) = &mut self.subgroup.barriers
            && let Some(bound) = index_bound(kernel, condition).into_iter().chain(mask_bounds.get(&exec).copied()).min()
        {
            mask_bounds.insert(lanes, bound);
        }
    }

    /// Whether barriers end parallel regions: the workgroup has several subgroups.
    pub(in crate::vectorize) fn has_regions(&self) -> bool {
        self.subgroup.barriers.is_some()
    }

    /// Positions of the blocks with a barrier at which subgroups stop.
    pub(in crate::vectorize) fn stops(&self) -> Vec<u32> {
        if self.subgroup.barriers.is_none() {
            return Vec::new();
        }
        let kernel = self.kernel;
        let stops = |block: ir::Block| kernel.blocks[block].insts.iter().any(|&inst| waits(&kernel.insts[inst]));
        (0..).zip(&kernel.layout).filter(|&(_, &block)| stops(block)).map(|(position, _)| position).collect()
    }

    /// The latch of the subgroup loop without barriers: the back edge to the next subgroup, or the return after the
    /// last.
    fn next_subgroup(&mut self) {
        if self.subgroup.count == 1 {
            self.builder.emit(InstData::Return);
            return;
        }
        let (one, count) = (self.builder.s32(1), self.builder.s32(self.subgroup.count));
        let index = self.subgroup.index;
        let next = self.builder.emit_value(InstData::Pure { op: Op::IAdd, args: [index, one].into_iter().collect() });
        let condition =
            self.builder.emit_value(InstData::Pure { op: Op::ULt, args: [next, count].into_iter().collect() });
        let latch = self.builder.current();
        let header = self.subgroup.header;
        let preheader = self.builder.kernel.layout[0];
        let subgroup_loop = SubgroupLoop { preheader, header, latch, index, step: 1, count };
        self.builder.kernel.subgroup_loops.push(subgroup_loop);
        let then = BlockCall { block: header, args: std::iter::once(next).collect() };
        let last = self.builder.create_block();
        self.builder.terminate(InstData::Branch { condition, then, otherwise: BlockCall::new(last) });
        self.builder.switch_to(last);
        self.builder.emit(InstData::Return);
    }
}
