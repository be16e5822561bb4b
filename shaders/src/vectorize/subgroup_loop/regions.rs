//! Splits a kernel at its barriers into parallel regions, which run for one subgroup after another.
//!
//! Without barriers a single loop over the subgroups runs the kernel. With barriers, a parallel region begins at the
//! entry or at a resume point after a barrier, and ends at a barrier or at the kernel's end. Values that live across a
//! barrier are in the subgroup's frame. [`SubgroupLoops`] builds the loops that run the regions for all subgroups.

use super::barrier_check::BarrierCheck;
use super::bound::index_bound;
use super::subgroup::{Barriers, Subgroup, state_bytes};
use super::{ParallelRegion, SubgroupLoops, Template};
use crate::ir::{self, InstData as ScalarInst, Op};
use crate::simd::ssa::Barrier;
use crate::simd::{BlockCall, ContextField, InstData, Kernel, LANES, SubgroupLoop, Type, Value, WideOp};
use crate::vectorize::barriers::waits;
use crate::vectorize::outcome::{Changes, Unsupported};
use crate::vectorize::state::Widen;

impl Widen<'_> {
    /// Builds the whole SIMD kernel: the entry, the subgroups' blocks, and the loops around them. Also returns how
    /// often the parts of the vectorizer that only save time or memory changed it.
    ///
    /// # Errors
    ///
    /// The compile-time budget is spent.
    pub(in crate::vectorize) fn subgroups(mut self) -> Result<(Kernel, Changes), Unsupported> {
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
        let base = self.builder.emit_one(InstData::Context { field: ContextField::Private });
        if self.subgroup.barriers.is_none() {
            return base;
        }
        let bytes = self.builder.s64(u64::from(self.kernel.private_bytes() * LANES));
        let number = self.builder.wide(WideOp::Extend, &[self.subgroup.number]);
        let offset = self.builder.wide(WideOp::Mul, &[number, bytes]);
        self.builder.wide(WideOp::Add, &[base, offset])
    }

    /// A barrier: ends a parallel region and begins the next, if the workgroup has several subgroups.
    pub(in crate::vectorize) fn barrier(&mut self, data: &ScalarInst) {
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
