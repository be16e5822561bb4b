//! Atomic reduction: atomics with unused results at one uniform address, as in `atomicAdd(sum, x)`. Each lane
//! accumulates its operands in a register over all subgroups; one atomic per workgroup follows the subgroup loop.
//!
//! This is not observable: invocations of a workgroup run in any order, and a relaxed atomic may take effect at any
//! time between the operations that order it. So the kernel must have none of these: barriers, fences, other accesses
//! to memory that other workgroups write. Several atomics are reduced all or none, and only outside of loops: then the
//! order in which each invocation executes them is also the order of the reduced atomics.

use cranelift_entity::EntitySet;

use super::access::pattern::Offset;
use super::access::plan::AccessPlans;
use super::access::target::Target;
use super::atomic::is_wide;
use super::{LANES, Type, Value, Widen};
use crate::analysis::{Shape, Uniformity};
use crate::ir::{self, AtomicOp, BindingKind, InstData as Scalar, Kernel, Op, Place, Semantics, ValueDef};
use crate::simd::builder::ALL;
use crate::simd::ssa::{Unwritten, Variable};
use crate::simd::{Address, InstData};

/// Bits of SPIR-V's memory semantics that name storage classes: without an order they have no effect.
const STORAGE_CLASSES: Semantics = Semantics(0xfc0);

/// An atomic that is reduced in registers.
#[derive(Clone, Copy, Debug)]
pub(super) struct AtomicReduction {
    op: AtomicOp,
    /// Identity of the operation: the initial value in each lane.
    identity: u32,
    address: Address,
    lock: bool,
    /// The accumulator, one element per lane.
    lanes: Variable,
}

/// The operation on the accumulator, and its identity.
fn operation(op: AtomicOp) -> Option<(Op, u32)> {
    Some(match op {
        // Subtrahends are added up; the final atomic subtracts the sum.
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

/// Finds the atomics of the kernel that may be executed after the last subgroup: all or none.
pub(super) fn reducible_atomics(
    kernel: &Kernel,
    uniformity: &Uniformity,
    accesses: &AccessPlans,
) -> EntitySet<ir::Inst> {
    let invocations = kernel.invocations();
    if invocations <= LANES || !invocations.is_multiple_of(LANES) {
        return EntitySet::new();
    }
    let (mut found, mut in_loop, mut constant) = (EntitySet::new(), false, true);
    let mut unused = EntitySet::new();
    for &block in &kernel.layout {
        for &inst in &kernel.blocks[block].insts {
            match &kernel.insts[inst] {
                data @ Scalar::Atomic { .. } if is_reducible(data) => {
                    found.insert(inst);
                    kernel.results[inst].into_iter().for_each(|result| _ = unused.insert(result));
                    in_loop |= uniformity.loops.of(block).is_some();
                    constant &= has_constant_address(kernel, data, &accesses.at(inst).offset);
                }
                Scalar::Load { place, .. } if is_constant(kernel, place) => {}
                Scalar::Load { place: Place::Variable { .. }, .. }
                | Scalar::Store { place: Place::Variable { .. }, .. } => {}
                Scalar::Load { .. }
                | Scalar::Store { .. }
                | Scalar::Atomic { .. }
                | Scalar::Image { .. }
                | Scalar::Barrier { .. }
                | Scalar::Fence { .. }
                | Scalar::Print { .. } => return EntitySet::new(),
                _ => {}
            }
        }
    }
    let atomics = found.keys().count();
    if atomics == 0 || atomics > 1 && (in_loop || !constant) {
        return EntitySet::new();
    }
    let mut used = false;
    for &block in &kernel.layout {
        for &inst in &kernel.blocks[block].insts {
            kernel.insts[inst].for_each_use(|value| used |= unused.contains(value));
        }
    }
    if used { EntitySet::new() } else { found }
}

fn is_reducible(data: &Scalar) -> bool {
    let Scalar::Atomic { op, place, wide: None, semantics, .. } = data else { return false };
    matches!(place, Place::Buffer { .. }) && semantics.0 & !STORAGE_CLASSES.0 == 0 && operation(*op).is_some()
}

/// Whether an atomic has a constant address: then [`Widen::reduce_atomic`] succeeds.
fn has_constant_address(kernel: &Kernel, data: &Scalar, offset: &Offset) -> bool {
    let Scalar::Atomic { place: Place::Buffer { buffer, .. }, .. } = *data else { return false };
    let ValueDef::Result { inst, .. } = kernel.values[buffer] else { return false };
    let Scalar::Buffer { index, .. } = kernel.insts[inst] else { return false };
    kernel.constant(index).is_some() && offset.uniform.is_empty() && offset.lanes.is_empty() && offset.is_aligned()
}

/// Whether a place is declared read-only, so that no shader writes it while the kernel runs.
fn is_constant(kernel: &Kernel, place: &Place) -> bool {
    let Place::Buffer { buffer, .. } = *place else { return matches!(place, Place::Push { .. }) };
    let ValueDef::Result { inst, .. } = kernel.values[buffer] else { return false };
    let Scalar::Buffer { binding, .. } = kernel.insts[inst] else { return false };
    let data = &kernel.bindings[binding];
    data.read_only || data.kind == BindingKind::UniformBuffer
}

impl Widen<'_> {
    /// Accumulates the operands of an atomic in registers if it is reducible and its address is the same for the whole
    /// workgroup.
    pub(super) fn reduce_atomic(&mut self, inst: ir::Inst) -> bool {
        let Scalar::Atomic { op, ref place, value: Some(value), scope, .. } = self.kernel.insts[inst] else {
            return false;
        };
        let (Some(start), Some((step, identity)), true) =
            (self.subgroup.start, operation(op), self.plans.reducible_atomics.contains(inst))
        else {
            return false;
        };
        if matches!(*place, Place::Buffer { buffer, .. } if self.shape(buffer) != Shape::Uniform) {
            return false;
        }
        let region = self.region_of_place(place);
        let plan = self.plans.accesses.at(inst);
        if !plan.offset.lanes.is_empty() || !plan.offset.is_aligned() {
            return false;
        }
        let Target::Word(address) = self.target(region, plan) else { return false };
        let mut operands = [address.base].into_iter().chain(address.index.into_iter().flat_map(|(at, end)| [at, end]));
        if !operands.all(|operand| self.builder.is_workgroups(operand)) {
            return false;
        }
        let lanes = self.builder.variables.declare(Type::V32, Unwritten::Undef);
        let param = self.builder.param(self.subgroup.header, Type::V32);
        self.builder.variables.write(start, lanes, param);
        self.reductions.push(AtomicReduction { op, identity, address, lock: is_wide(scope), lanes });
        let block = self.builder.current();
        let before = self.builder.read(lanes, block);
        let value = self.vector(value);
        let after = self.builder.pure(step, &[before, value]);
        let after = self.builder.select(self.exec, after, before);
        self.builder.variables.write(block, lanes, after);
        true
    }

    /// The initial accumulators, one vector per reduction.
    pub(super) fn reduction_identities(&mut self) -> Vec<Value> {
        self.reductions.iter().map(|found| self.builder.constant(Type::V32, found.identity.into())).collect()
    }

    /// The accumulators at the end of a subgroup.
    pub(super) fn read_reductions(&mut self) -> Vec<Value> {
        let block = self.builder.current();
        self.reductions.iter().map(|found| self.builder.read(found.lanes, block)).collect()
    }

    /// Emits the reduced atomics after the last subgroup. Lanes with the identity are masked off: they have no effect,
    /// and the atomic may never have been reached.
    pub(super) fn emit_reduced_atomics(&mut self, totals: &[Value]) {
        if totals.is_empty() {
            return;
        }
        self.exec = self.builder.constant(Type::Mask, ALL);
        self.note_exec();
        for (reduction, &value) in self.reductions.clone().into_iter().zip(totals) {
            let identity = self.builder.constant(Type::V32, reduction.identity.into());
            let (lanes, inside) = self.lanes_of_target(Target::Word(reduction.address));
            let changed = self.builder.pure(Op::INe, &[value, identity]);
            let mask = self.builder.and(inside, changed);
            self.builder.emit(InstData::Atomic {
                op: reduction.op,
                lanes,
                value: Some(value),
                comparator: None,
                wide: None,
                lock: reduction.lock,
                sequential: false,
                mask,
            });
        }
    }
}
