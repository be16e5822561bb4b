//! Atomics and fences.
//!
//! A workgroup runs on one thread. So atomics on workgroup or private memory, and atomics of a scope up to the
//! workgroup, need no `lock` prefix. The lanes of a subgroup execute an atomic in lane order.

use super::access::bounds::{MaskedLanes, MemoryRegion};
use super::access::plan::AccessPlan;
use super::access::target::AccessTarget;
use super::access::waterfall::{for_each_buffer, for_each_region, prepare_terms};
use super::access::{is_private, subword};
use super::state::Widen;
use crate::analysis::Shape;
use crate::ir::{self, AtomicOp, InstData as ScalarInst, Op, Place, Scope, Semantics, Width};
use crate::simd::{Address, BoundedIndex, InstData, LaneAddress, Type, Value};

/// SPIR-V's `SequentiallyConsistent`.
const SEQUENTIALLY_CONSISTENT: u32 = 0x10;

/// Whether a scope is larger than the workgroup.
pub(super) fn is_wide(scope: Scope) -> bool {
    matches!(scope, Scope::CrossDevice | Scope::Device | Scope::QueueFamily)
}

/// Whether the kernel has a fence, a barrier or an atomic by which other workgroups may observe its writes. The memory
/// order does not matter: another workgroup may wait for a relaxed atomic, too.
pub(super) fn releases(kernel: &ir::Kernel) -> bool {
    kernel.layout.iter().flat_map(|&block| &kernel.blocks[block].insts).any(|&inst| match &kernel.insts[inst] {
        ScalarInst::Fence { scope, .. } | ScalarInst::Barrier { memory: scope, .. } => is_wide(*scope),
        ScalarInst::Atomic { scope, place: Place::Buffer { .. }, .. } => is_wide(*scope),
        _ => false,
    })
}

/// The operation of an atomic read-modify-write on private memory, where it is a load, the operation and a store.
fn plain_operation(op: AtomicOp) -> Option<Op> {
    Some(match op {
        AtomicOp::Add => Op::IAdd,
        AtomicOp::Sub => Op::ISub,
        AtomicOp::SMin => Op::SMin,
        AtomicOp::UMin => Op::UMin,
        AtomicOp::SMax => Op::SMax,
        AtomicOp::UMax => Op::UMax,
        AtomicOp::And => Op::And,
        AtomicOp::Or => Op::Or,
        AtomicOp::Xor => Op::Xor,
        // Loads, stores and exchanges have no operation. Float atomics do not exist on private memory.
        _ => return None,
    })
}

/// An atomic with its operands as vectors. `lock`: other threads may access the memory.
#[derive(Clone, Copy, Debug)]
struct VectorAtomic {
    op: AtomicOp,
    value: Option<Value>,
    comparator: Option<Value>,
    wide: Option<[Option<Value>; 2]>,
    lock: bool,
    sequential: bool,
}

impl Widen<'_> {
    /// `fence`, or the memory part of a barrier. x86 gives every order except sequential consistency without an
    /// instruction, as long as a kernel that [`releases`] has no non-temporal stores.
    pub(super) fn fence(&mut self, scope: Scope, semantics: Semantics) {
        if is_wide(scope) && semantics.0 & SEQUENTIALLY_CONSISTENT != 0 {
            self.builder.emit(InstData::Fence);
        }
    }

    /// `atomic`.
    pub(super) fn atomic(&mut self, result: Option<ir::Value>, data: &ScalarInst, plan: &AccessPlan) {
        let ScalarInst::Atomic { op, place, value, comparator, wide, scope, semantics, .. } = *data else { return };
        let [value, comparator] = [value, comparator].map(|value| value.map(|value| self.vector(value)));
        let wide = wide.map(|highs| highs.map(|high| high.map(|high| self.vector(high))));
        let lock = is_wide(scope) && matches!(place, Place::Buffer { .. });
        let sequential = lock && semantics.0 & SEQUENTIALLY_CONSISTENT != 0;
        let atomic = VectorAtomic { op, value, comparator, wide, lock, sequential };
        if wide.is_some() {
            return self.wide_atomic(result, &place, plan, atomic);
        }
        let old = match place {
            _ if op.is_half() => self.half_atomic(&place, plan, atomic),
            Place::Push { .. } => self.read_only(&place, plan, op),
            Place::Variable { variable, .. } if is_private(self.kernel, variable) => {
                MemoryRegion::of_place(self, &place);
                let target = AccessTarget::private(self, variable, &plan.offset);
                self.private_atomic(target, atomic)
            }
            _ => {
                let ty = (op != AtomicOp::Store).then_some(Type::V32);
                for_each_region(self, &place, plan, ty, |widen, region| {
                    let target = AccessTarget::new(widen, region, plan);
                    widen.atomic_at(target, atomic, plan.offset.is_aligned())
                })
            }
        };
        if let (Some(result), Some(old)) = (result, old) {
            self.define_as(result, old);
        }
    }

    /// A 64-bit atomic: its result is the low word; the scalar IR reads the high word with `high_word`.
    fn wide_atomic(&mut self, result: Option<ir::Value>, place: &Place, plan: &AccessPlan, atomic: VectorAtomic) {
        use crate::simd::ssa::Unwritten;
        let found = match *place {
            Place::Buffer { buffer, .. } if self.shape(buffer) != Shape::Uniform => {
                prepare_terms(self, &plan.offset);
                let highs = self.builder.variables.declare(Type::V32, Unwritten::Undef);
                let undef = self.builder.emit_one(InstData::Undef { ty: Type::V32 });
                self.builder.variables.write(self.builder.current(), highs, undef);
                let ty = (atomic.op != AtomicOp::Store).then_some(Type::V32);
                let low = for_each_buffer(self, buffer, ty, |widen, number, lanes| {
                    let region = MemoryRegion::of_descriptor(&mut widen.builder, number);
                    let [low, high] = widen.wide_atomic_at(region, plan, atomic)?;
                    let block = widen.builder.current();
                    let before = widen.builder.read(highs, block);
                    let after = widen.builder.select(lanes, high, before);
                    widen.builder.variables.write(block, highs, after);
                    Some(low)
                });
                let high = self.builder.read(highs, self.builder.current());
                low.map(|low| [low, high])
            }
            _ => {
                let region = MemoryRegion::of_place(self, place);
                self.wide_atomic_at(region, plan, atomic)
            }
        };
        if let (Some(result), Some([low, high])) = (result, found) {
            self.high_words.insert(result, high);
            self.define_as(result, low);
        }
    }

    /// A 16-bit atomic.
    fn half_atomic(&mut self, place: &Place, plan: &AccessPlan, atomic: VectorAtomic) -> Option<Value> {
        let ty = (!atomic.op.is_store()).then_some(Type::V32);
        for_each_region(self, place, plan, ty, |widen, region| widen.half_atomic_at(region, plan, atomic))
    }

    fn half_atomic_at(&mut self, region: MemoryRegion, plan: &AccessPlan, atomic: VectorAtomic) -> Option<Value> {
        let MaskedLanes { lanes, mask } = subword::subword_lanes(self, region, &plan.offset, Width::Half);
        let mask = if plan.offset.is_multiple_of(2) { mask } else { self.aligned_lanes(lanes, mask, 2) };
        let VectorAtomic { op, value, comparator, wide, lock, sequential } = atomic;
        let inst = self.builder.emit(InstData::Atomic { op, lanes, value, comparator, wide, lock, sequential, mask });
        self.builder.kernel.results[inst].first().copied()
    }

    /// The low and the high words of the old values. A 64-bit access is in bounds if its second word is.
    fn wide_atomic_at(&mut self, region: MemoryRegion, plan: &AccessPlan, atomic: VectorAtomic) -> Option<[Value; 2]> {
        let four = self.builder.s64(4);
        let len = self.builder.wide(crate::simd::WideOp::SubSat, &[region.len, four]);
        let target = AccessTarget::new(self, MemoryRegion { len, ..region }, plan);
        let MaskedLanes { lanes, mask } = self.lanes_of_target(target);
        let mask = if plan.offset.is_aligned() { mask } else { self.aligned_lanes(lanes, mask, 4) };
        let VectorAtomic { op, value, comparator, wide, lock, sequential } = atomic;
        let inst = self.builder.emit(InstData::Atomic { op, lanes, value, comparator, wide, lock, sequential, mask });
        match self.builder.kernel.results[inst][..] {
            [low, high] => Some([low, high]),
            _ => None,
        }
    }

    /// `high_word`: the high word of an instruction with a 64-bit result.
    pub(super) fn high_word(&mut self, result: ir::Value, of: ir::Value) {
        if let Some(&high) = self.high_words.get(&of) {
            self.define_as(result, high);
        }
    }

    /// An atomic on push constants, which are read-only: can only be a load.
    fn read_only(&mut self, place: &Place, plan: &AccessPlan, op: AtomicOp) -> Option<Value> {
        let region = MemoryRegion::of_place(self, place);
        let target = AccessTarget::new(self, region, plan);
        (op != AtomicOp::Store).then(|| target.load(&mut self.builder, ir::Type::F32))
    }

    /// An atomic on memory that other invocations access.
    fn atomic_at(&mut self, target: AccessTarget, atomic: VectorAtomic, aligned: bool) -> Option<Value> {
        match (atomic.op, &target) {
            // Aligned 32-bit accesses are atomic on x86 and ordered, except for sequentially consistent stores.
            (AtomicOp::Load, AccessTarget::Row(_) | AccessTarget::Lanes(..)) if aligned => {
                return Some(target.load(&mut self.builder, ir::Type::F32));
            }
            (AtomicOp::Store, _) if aligned && !atomic.sequential => {
                if let Some(value) = atomic.value {
                    target.store(&mut self.builder, value, self.exec);
                }
                return None;
            }
            _ => {}
        }
        let MaskedLanes { lanes, mask } = self.lanes_of_target(target);
        let mask = if aligned { mask } else { self.aligned_lanes(lanes, mask, 4) };
        let VectorAtomic { op, value, comparator, wide, lock, sequential } = atomic;
        let data = InstData::Atomic { op, lanes, value, comparator, wide, lock, sequential, mask };
        if op == AtomicOp::Store {
            self.builder.emit(data);
            return None;
        }
        Some(self.builder.emit_value(data))
    }

    /// A target as one address per lane.
    fn lanes_of_target(&mut self, target: AccessTarget) -> MaskedLanes {
        match target {
            AccessTarget::Lanes(lanes) => lanes,
            AccessTarget::Row(row) => {
                let first = self.builder.splat(row.index);
                let ids = self.builder.lane_ids();
                let index = self.builder.pure(Op::IAdd, &[first, ids]);
                let limit = self.builder.splat(row.limit);
                let inside = self.builder.pure(Op::ULt, &[index, limit]);
                let mask = self.builder.and(self.exec, inside);
                MaskedLanes { lanes: LaneAddress { base: row.base, index, scale: 4, disp: 0 }, mask }
            }
            AccessTarget::Word(Address { base, index, scale, disp }) => {
                let Some(BoundedIndex { index, limit }) = index else {
                    let index = self.builder.constant(Type::V32, 0);
                    return MaskedLanes { lanes: LaneAddress { base, index, scale, disp }, mask: self.exec };
                };
                let inside = if self.builder.ty(index) == Type::S64 {
                    self.builder.wide(crate::simd::WideOp::Lt, &[index, limit])
                } else {
                    self.builder.pure(Op::ULt, &[index, limit])
                };
                let inside = self.builder.splat(inside);
                let mask = self.builder.and(self.exec, inside);
                let index = if self.builder.ty(index) == Type::S64 {
                    self.builder.wide(crate::simd::WideOp::Truncate, &[index])
                } else {
                    index
                };
                let index = self.builder.splat(index);
                MaskedLanes { lanes: LaneAddress { base, index, scale, disp }, mask }
            }
        }
    }

    /// The lanes of `mask` for which the address is a multiple of `bytes`, a power of two.
    fn aligned_lanes(&mut self, lanes: LaneAddress, mask: Value, bytes: u32) -> Value {
        let index = self.builder.times(lanes.index, u32::from(lanes.scale));
        let disp = self.builder.constant(Type::V32, u64::from(lanes.disp.cast_unsigned()));
        let offset = self.builder.pure(Op::IAdd, &[index, disp]);
        let base = self.builder.wide(crate::simd::WideOp::Truncate, &[lanes.base]);
        let base = self.builder.splat(base);
        let offset = self.builder.pure(Op::IAdd, &[offset, base]);
        self.aligned_bytes(offset, mask, bytes)
    }

    /// The lanes of `mask` whose offset in bytes is a multiple of `unit`, a power of two.
    pub(super) fn aligned_bytes(&mut self, offset: Value, mask: Value, unit: u32) -> Value {
        let last = self.builder.constant(Type::V32, u64::from(unit - 1));
        let low = self.builder.pure(Op::And, &[offset, last]);
        let zero = self.builder.constant(Type::V32, 0);
        let aligned = self.builder.pure(Op::IEq, &[low, zero]);
        self.builder.and(mask, aligned)
    }

    /// An atomic on private memory: a load, an operation and a store.
    fn private_atomic(&mut self, target: AccessTarget, atomic: VectorAtomic) -> Option<Value> {
        let MaskedLanes { lanes, mask } = self.lanes_of_target(target);
        let old = self.builder.emit_value(InstData::Gather { lanes, mask });
        let new = match (atomic.op, atomic.value, atomic.comparator) {
            (AtomicOp::Store | AtomicOp::Exchange, Some(value), _) => Some(value),
            (AtomicOp::CompareExchange, Some(value), Some(comparator)) => {
                let equal = self.builder.pure(Op::IEq, &[old, comparator]);
                Some(self.builder.select(equal, value, old))
            }
            (op, Some(value), _) => plain_operation(op).map(|op| self.builder.pure(op, &[old, value])),
            _ => None,
        };
        if let Some(value) = new {
            self.builder.emit(InstData::Scatter { width: Width::Word, lanes, value, mask });
        }
        (atomic.op != AtomicOp::Store).then_some(old)
    }
}
