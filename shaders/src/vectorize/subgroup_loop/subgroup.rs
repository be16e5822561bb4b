//! The subgroup that runs, and the barriers at which it stops: what a subgroup's code begins with.

use cranelift_entity::EntitySet;

use super::ParallelRegion;
use super::bound::MaskBounds;
use crate::analysis::{Shape, Uniformity};
use crate::ir::{self, Op};
use crate::simd::builder::{ALL, Builder};
use crate::simd::{Address, Block, BoundedIndex, ContextField, Inst, InstData, LANES, Type, Value, WideOp};
use crate::vectorize::barriers::waits;

/// The subgroup that runs.
#[derive(Debug)]
pub(in crate::vectorize) struct Subgroup {
    /// Its number, `s32`.
    pub(in crate::vectorize) number: Value,
    /// The loop's index: the number, or its position in the order of the schedule.
    pub(super) index: Value,
    /// The mask of its lanes that are invocations.
    pub(in crate::vectorize) lanes: Value,
    pub(super) count: u32,
    /// The header of the subgroup loop. With barriers it is the template for the header of each loop.
    pub(in crate::vectorize) header: Block,
    pub(super) barriers: Option<Barriers>,
}

/// A kernel's barriers and the regions between them.
#[derive(Debug)]
pub(super) struct Barriers {
    /// Workgroup uniformity, if barriers are uniform.
    pub(super) common: Option<Common>,
    /// Address of the subgroup's frame.
    pub(super) frame: Value,
    /// The constant with the size of a frame in bytes.
    pub(super) frame_bytes: Inst,
    pub(super) regions: Vec<ParallelRegion>,
    pub(super) mask_bounds: MaskBounds,
}

/// Values and blocks that are uniform in a workgroup.
#[derive(Debug)]
pub(super) struct Common {
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
            let base = builder.emit_one(InstData::Context { field: ContextField::Shared });
            builder.emit(InstData::Zero { base, bytes: kernel.shared_bytes() });
        }
        if waits && common.is_none() {
            let base = builder.emit_one(InstData::Context { field: ContextField::Frames });
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
    let base = builder.emit_one(InstData::Context { field: ContextField::SubgroupOrder });
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
        [ContextField::RowEnd, ContextField::WorkgroupId(0)].map(|field| builder.emit_one(InstData::Context { field }));
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
pub(super) fn state_bytes(count: u32) -> u32 {
    (count * 4).next_multiple_of(64)
}

fn frame(builder: &mut Builder, number: Value, before: u32, frame_bytes: Inst) -> Value {
    let frames = builder.emit_one(InstData::Context { field: ContextField::Frames });
    let skip = builder.s64(u64::from(before));
    let first = builder.wide(WideOp::Add, &[frames, skip]);
    let number = builder.wide(WideOp::Extend, &[number]);
    let bytes = builder.kernel.results[frame_bytes][0];
    let offset = builder.wide(WideOp::Mul, &[number, bytes]);
    builder.wide(WideOp::Add, &[first, offset])
}
