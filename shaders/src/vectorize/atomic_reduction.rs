//! Atomics that nobody asks for the old value of, at one place for the whole workgroup: each lane keeps a tally of its own
//! from subgroup to subgroup, and what all of them make is done at the end, once. `atomicAdd(sum, x)` is the pattern.
//!
//! Nobody can tell: invocations of a workgroup run in any order, and a relaxed atomic may come at any time between what orders
//! it. So the kernel has nothing that orders: no barrier, no fence, no other access to memory that other workgroups write. Of
//! several such atomics all are done at the end or none is, and none is in a loop: what each invocation does in order, all
//! of them may do together in order.

use cranelift_entity::EntitySet;

use super::access::target::Target;
use super::atomic::is_wide;
use super::{LANES, Type, Value, Widen};
use crate::analysis::Shape;
use crate::ir::{self, AtomicOp, BindingKind, InstData as Scalar, Op, Place, Semantics, ValueDef};
use crate::simd::builder::ALL;
use crate::simd::ssa::{Unwritten, Variable};
use crate::simd::{Address, InstData};

/// Bits of SPIR-V's memory semantics that say which memory, and ask for nothing.
const STORAGE_CLASSES: Semantics = Semantics(0xfc0);

/// A tally that lanes keep.
#[derive(Clone, Copy, Debug)]
pub(super) struct Tally {
    op: AtomicOp,
    /// What it is before the first subgroup, in each lane.
    first: u32,
    address: Address,
    lock: bool,
    lanes: Variable,
}

/// What lanes do to their tally, and what it is at first.
fn operation(op: AtomicOp) -> Option<(Op, u32)> {
    Some(match op {
        // What is taken away is added up.
        AtomicOp::Add | AtomicOp::Sub => (Op::IAdd, 0),
        AtomicOp::SMin => (Op::SMin, i32::MAX.cast_unsigned()),
        AtomicOp::UMin => (Op::UMin, u32::MAX),
        AtomicOp::SMax => (Op::SMax, i32::MIN.cast_unsigned()),
        AtomicOp::UMax => (Op::UMax, 0),
        AtomicOp::And => (Op::And, u32::MAX),
        AtomicOp::Or => (Op::Or, 0),
        AtomicOp::Xor => (Op::Xor, 0),
        _ => return None,
    })
}

impl Widen<'_> {
    /// The atomics of the kernel that may be done at the end: all or none.
    pub(super) fn find_tallied(&mut self) {
        let kernel = self.kernel;
        let invocations = kernel.invocations();
        if invocations <= LANES || !invocations.is_multiple_of(LANES) {
            return;
        }
        let (mut found, mut loops, mut known) = (EntitySet::new(), false, true);
        let mut unused = EntitySet::new();
        for &block in &kernel.layout {
            for &inst in &kernel.blocks[block].insts {
                match &kernel.insts[inst] {
                    data @ Scalar::Atomic { .. } if self.can_be_late(data) => {
                        found.insert(inst);
                        kernel.results[inst].into_iter().for_each(|result| _ = unused.insert(result));
                        loops |= self.uniformity.loops.of(block).is_some();
                        known &= self.is_known(data);
                    }
                    Scalar::Load { place, .. } if self.is_constant(place) => {}
                    Scalar::Load { place: Place::Variable { .. }, .. }
                    | Scalar::Store { place: Place::Variable { .. }, .. } => {}
                    Scalar::Load { .. }
                    | Scalar::Store { .. }
                    | Scalar::Atomic { .. }
                    | Scalar::Image { .. }
                    | Scalar::Barrier { .. }
                    | Scalar::Fence { .. }
                    | Scalar::Print { .. } => return,
                    _ => {}
                }
            }
        }
        let atomics = found.keys().count();
        if atomics == 0 || atomics > 1 && (loops || !known) {
            return;
        }
        let mut used = false;
        for &block in &kernel.layout {
            for &inst in &kernel.blocks[block].insts {
                kernel.insts[inst].for_each_use(|value| used |= unused.contains(value));
            }
        }
        if !used {
            self.tallied = found;
        }
    }

    fn can_be_late(&self, data: &Scalar) -> bool {
        let Scalar::Atomic { op, place, wide: None, semantics, .. } = data else { return false };
        matches!(place, Place::Buffer { .. }) && semantics.0 & !STORAGE_CLASSES.0 == 0 && operation(*op).is_some()
    }

    /// Whether an atomic's place is a constant one: then it is done at the end for certain.
    fn is_known(&self, data: &Scalar) -> bool {
        let Scalar::Atomic { place: Place::Buffer { buffer, offset, .. }, .. } = *data else { return false };
        let ValueDef::Result { inst, .. } = self.kernel.values[buffer] else { return false };
        let Scalar::Buffer { index, .. } = self.kernel.insts[inst] else { return false };
        let offset = self.offset(offset);
        self.kernel.constant(index).is_some()
            && offset.uniform.is_empty()
            && offset.lanes.is_empty()
            && offset.is_aligned()
    }

    /// Whether no shader writes there while the kernel runs, by its own promise.
    fn is_constant(&self, place: &Place) -> bool {
        let Place::Buffer { buffer, .. } = *place else { return matches!(place, Place::Push { .. }) };
        let ValueDef::Result { inst, .. } = self.kernel.values[buffer] else { return false };
        let Scalar::Buffer { binding, .. } = self.kernel.insts[inst] else { return false };
        let data = &self.kernel.bindings[binding];
        data.read_only || data.kind == BindingKind::UniformBuffer
    }

    /// Adds an atomic to a tally, if it is one that can wait and its place is the workgroup's.
    pub(super) fn tally(&mut self, inst: ir::Inst) -> bool {
        let Scalar::Atomic { op, ref place, value: Some(value), scope, .. } = self.kernel.insts[inst] else {
            return false;
        };
        let (Some(start), Some((step, first)), true) =
            (self.subgroup.start, operation(op), self.tallied.contains(inst))
        else {
            return false;
        };
        if matches!(*place, Place::Buffer { buffer, .. } if self.shape(buffer) != Shape::Uniform) {
            return false;
        }
        let (region, offset) = self.place_of(place);
        if !offset.lanes.is_empty() || !offset.is_aligned() {
            return false;
        }
        let Target::Word(address) = self.target(region, &offset) else { return false };
        let mut parts = [address.base].into_iter().chain(address.index.into_iter().flat_map(|(at, end)| [at, end]));
        if !parts.all(|part| self.builder.is_workgroups(part)) {
            return false;
        }
        let lanes = self.builder.variables.declare(Type::V32, Unwritten::Undef);
        let param = self.builder.param(self.subgroup.turn, Type::V32);
        self.builder.variables.write(start, lanes, param);
        self.tallies.push(Tally { op, first, address, lock: is_wide(scope), lanes });
        let block = self.builder.current();
        let before = self.builder.read(lanes, block);
        let value = self.vector(value);
        let after = self.builder.pure(step, &[before, value]);
        let after = self.builder.select(self.exec, after, before);
        self.builder.variables.write(block, lanes, after);
        true
    }

    /// What tallies are before the first subgroup, one vector each.
    pub(super) fn first_tallies(&mut self) -> Vec<Value> {
        self.tallies.iter().map(|tally| self.builder.constant(Type::V32, tally.first.into())).collect()
    }

    /// What they are at the end of a subgroup.
    pub(super) fn read_tallies(&mut self) -> Vec<Value> {
        let block = self.builder.current();
        self.tallies.iter().map(|tally| self.builder.read(tally.lanes, block)).collect()
    }

    /// Does what was put off, behind the last subgroup; nothing where a tally is as it was.
    pub(super) fn settle_tallies(&mut self, totals: &[Value]) {
        if totals.is_empty() {
            return;
        }
        self.exec = self.builder.constant(Type::Mask, ALL);
        self.note_exec();
        for (tally, &value) in self.tallies.clone().into_iter().zip(totals) {
            let first = self.builder.constant(Type::V32, tally.first.into());
            let (lanes, inside) = self.lanes_of_target(Target::Word(tally.address));
            let changed = self.builder.pure(Op::INe, &[value, first]);
            let mask = self.builder.and(inside, changed);
            self.builder.emit(InstData::Atomic {
                op: tally.op,
                lanes,
                value: Some(value),
                comparator: None,
                wide: None,
                lock: tally.lock,
                sequential: false,
                mask,
            });
        }
    }
}
