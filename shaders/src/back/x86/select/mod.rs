//! Instruction selection: each SIMD instruction becomes a few machine instructions.
//!
//! One forward walk over the layout. A pure instruction with a single use in its own block is *deferred*: no code is
//! emitted at its position; its user merges it (a compare into the branch, a load as memory operand) or has it emitted
//! immediately before itself. Constants are always deferred: they become immediates or operands in the pool. Deferred
//! loads are emitted at the latest before an instruction that may change memory.
//!
//! The walk is generic over the vector instruction set: see [`isa`].
//!
//! Invariant: a scalar's register has zeros above the scalar's bits.

mod address_ranges;
mod atomic;
mod avx2;
mod avx512;
mod compare;
mod control;
mod double;
mod elements;
mod frames;
mod gather_elements;
mod image;
mod incoming;
mod isa;
mod lane_address;
mod lane_atomics;
mod memory;
mod moves;
mod nontemporal;
mod prefetch;
mod registers;
mod row;
mod scalar;
mod subword;
mod uniform;
mod value_ranges;
mod value_uses;
mod wide;

use cranelift_entity::SecondaryMap;
use iced_x86::Code;
use regalloc2::{Operand, PReg, RegClass, VReg};

use self::avx2::Avx2;
use self::avx512::Avx512;
use self::isa::VectorIsa;
use self::prefetch::PrefetchStrides;
use self::value_ranges::ValueRanges;
use self::value_uses::ValueUses;
use super::vcode::{Build, InstKind, VCode};
use super::{CompileError, Isa};
use crate::ir::Op;
use crate::simd::{Block, Inst, InstData, Kernel, Routine, Type, Value, ValueDef, WideOp};

/// Selection fails with why the kernel has no machine code.
type Result<T = (), E = CompileError> = std::result::Result<T, E>;

/// Limit of nested deferred instructions: emitting them is recursive.
const MAX_DEFERRED_DEPTH: u8 = 8;

/// The state of instruction selection.
struct Select<'k, V> {
    kernel: &'k Kernel,
    uses: ValueUses,
    ranges: ValueRanges,
    strides: PrefetchStrides,
    code: VCode,
    vectors: V,
    /// The register of a value; of a vector or mask, the one with the lowest lanes.
    regs: SecondaryMap<Value, Option<VReg>>,
    /// Deferred instructions: the nesting depth, from 1 on; 0 for others.
    deferred: SecondaryMap<Inst, u8>,
    /// Deferred loads, oldest first.
    loads: Vec<Inst>,
    /// The address of the [`Context`](super::call::Context).
    context: VReg,
    block: Block,
    edges: control::BlockNumbers,
    doubles: double::AvailableDoubles,
}

/// Selects instructions for a kernel: machine code with virtual registers.
pub(super) fn select(kernel: &Kernel, isa: Isa) -> Result<VCode> {
    match isa {
        Isa::Avx512 => select_for::<Avx512>(kernel),
        Isa::Avx2 => select_for::<Avx2>(kernel),
    }
}

fn select_for<V: VectorIsa>(kernel: &Kernel) -> Result<VCode> {
    let mut code = VCode::new(V::ISA, kernel.insts.len());
    let context = code.vreg(RegClass::Int);
    let mut select = Select {
        kernel,
        uses: ValueUses::new(kernel),
        ranges: ValueRanges::new(kernel),
        strides: PrefetchStrides::new(kernel),
        code,
        vectors: V::new(kernel),
        regs: SecondaryMap::with_capacity(kernel.values.len()),
        deferred: SecondaryMap::with_capacity(kernel.insts.len()),
        loads: Vec::new(),
        context,
        block: kernel.layout[0],
        edges: control::BlockNumbers::default(),
        doubles: double::AvailableDoubles::default(),
    };
    select.code.zero_word = select.code.pool.word(0);
    select.code.nontemporal = select.vectors.has_nontemporal_stores();
    let is_lookup =
        |data: &InstData| matches!(data, InstData::BufferAt { .. } | InstData::Call { routine: Routine::BufferAt, .. });
    select.code.address_ranges = kernel.insts.values().any(is_lookup);
    select.lay_out();
    for &block in &kernel.layout {
        select.block(block)?;
        if !select.code.fits() {
            return Err(CompileError::TooLarge);
        }
    }
    select.link();
    Ok(select.code)
}

impl<'k, V: VectorIsa> Select<'k, V> {
    fn block(&mut self, block: Block) -> Result {
        self.block = block;
        let at = self.edges.number(block);
        self.code.begin(at);
        if at == 0 {
            // The first argument register of the calling convention.
            const ARGUMENT: PReg = PReg::new(7, RegClass::Int);
            self.code.push(InstKind::Define, &[Operand::reg_fixed_def(self.context, ARGUMENT)]);
        }
        for &inst in &self.kernel.blocks[block].insts {
            self.set_origin(inst);
            if !self.uses.live(inst) || self.is_written(inst) {
                continue;
            }
            if self.leaves_word(inst)? {
                self.deferred[inst] = 1;
                continue;
            }
            if self.is_deferrable(inst)
                && let depth = self.depth(inst)
                && depth <= MAX_DEFERRED_DEPTH
            {
                self.deferred[inst] = depth;
                if matches!(self.kernel.insts[inst], InstData::Load { .. }) {
                    self.loads.push(inst);
                }
                continue;
            }
            self.write(inst)?;
        }
        Ok(())
    }

    /// Whether code for the instruction was emitted already, with an earlier instruction.
    fn is_written(&self, inst: Inst) -> bool {
        self.kernel.results[inst].first().is_some_and(|&result| self.regs[result].is_some())
    }

    fn depth(&self, inst: Inst) -> u8 {
        let args: &[Value] = match &self.kernel.insts[inst] {
            InstData::Pure { args, .. } => args,
            InstData::Wide { args, .. } => args,
            InstData::Any { mask } => std::slice::from_ref(mask),
            InstData::Splat { value } => std::slice::from_ref(value),
            // The operands of a load's address are not deferred.
            _ => &[],
        };
        let depth = |&arg: &Value| self.deferred_def(arg).map_or(0, |(inst, _)| self.deferred[inst]);
        args.iter().map(depth).max().unwrap_or(0) + 1
    }

    /// Whether the operation is no shift, or a shift by a constant.
    fn shifts_by_constant(&self, op: Op, args: &[Value]) -> bool {
        !matches!(op, Op::Shl | Op::LShr) || self.constant(args[1]).is_some()
    }

    /// Whether an instruction may be deferred to its only user.
    fn is_deferrable(&self, inst: Inst) -> bool {
        let single = |inst: Inst| self.uses.single_use(self.kernel.results[inst][0], self.block);
        match &self.kernel.insts[inst] {
            InstData::Const { .. } | InstData::Lanes { .. } | InstData::Undef { .. } => true,
            InstData::Any { .. } | InstData::Load { .. } | InstData::Splat { .. } => single(inst),
            InstData::Wide { op: WideOp::Add, .. } => self.offset(inst).is_some(),
            InstData::Wide { op, .. } => op.result() == Type::S1 && single(inst),
            InstData::Pure { op, args } => {
                let lanes = self.kernel.ty(args[0]) == Type::V32;
                let either = *op == Op::LOr && self.kernel.ty(args[0]) == Type::Mask;
                (is_mergeable(*op)
                    || either
                    || lanes && is_mergeable_on_lanes(*op) && self.shifts_by_constant(*op, args))
                    && single(inst)
            }
            _ => false,
        }
    }

    /// Emits an instruction at the current position. Its code has the instruction's origin, but for the code of
    /// operands that were deferred.
    fn write(&mut self, inst: Inst) -> Result {
        let outer = self.code.origin;
        self.set_origin(inst);
        let written = self.write_inst(inst);
        self.code.origin = outer;
        written
    }

    /// Sets the origin of the code that follows. Instructions without one, such as those that end a loop over
    /// subgroups, belong to the code before them.
    fn set_origin(&mut self, inst: Inst) {
        let origin = self.kernel.origins[inst];
        if origin != 0 {
            self.code.origin = origin;
        }
    }

    fn write_inst(&mut self, inst: Inst) -> Result {
        let kernel = self.kernel;
        let data = &kernel.insts[inst];
        self.deferred[inst] = 0;
        if touches_memory(data) {
            for load in std::mem::take(&mut self.loads) {
                if self.deferred[load] != 0 {
                    self.write(load)?;
                }
            }
        }
        let vector = |value: Value| kernel.ty(value).is_vector();
        match data {
            InstData::Const { .. } | InstData::Lanes { .. } | InstData::Undef { .. } => {}
            InstData::Pure { op, args } if !args.iter().any(|&arg| vector(arg)) => self.scalar(inst, *op, args)?,
            InstData::Wide { op, args } => self.wide(inst, *op, args)?,
            InstData::Select { condition, then, otherwise } if !vector(*then) => {
                self.scalar_select(inst, *condition, *then, *otherwise)?;
            }
            InstData::Context { field } => self.context_field(inst, *field),
            InstData::BufferBase { buffer } => self.buffer_base(inst, *buffer)?,
            InstData::BufferLen { buffer } => self.buffer_len(inst, *buffer)?,
            InstData::BufferAt { low, high } => self.buffer_at(inst, *low, *high)?,
            InstData::ImageField { image, field } => self.image_field(inst, *image, *field)?,
            InstData::Call { routine, area, .. } => self.call(routine, *area)?,
            InstData::Fence => Build::new(Code::Mfence).push(&mut self.code),
            InstData::FrameLoad { ty, frame, at } if !ty.is_vector() => self.frame_load(inst, *ty, *frame, *at)?,
            InstData::FrameStore { frame, at, value } if !vector(*value) => self.frame_store(*frame, *at, *value)?,
            InstData::Load { ty: Type::S32, address } => self.load(inst, address)?,
            InstData::Poll { at, lanes } => self.poll(*at, lanes.as_ref())?,
            InstData::NextWorkgroup => self.next_workgroup(),
            InstData::Jump { .. } | InstData::Branch { .. } | InstData::Switch { .. } | InstData::Return => {
                self.terminator(data)?;
            }
            _ => self.vector_inst(inst, data)?,
        }
        Ok(())
    }

    /// Whether all lanes are provably below 32: the range of valid shift amounts.
    fn is_shift_amount(&self, value: Value) -> bool {
        self.ranges.upper(value) < 32
    }

    /// The operand of a deferred negation of floats and true; any other value and false.
    fn without_sign(&mut self, value: Value) -> (Value, bool) {
        match self.deferred_def(value) {
            Some((inst, InstData::Pure { op: Op::FNeg, args })) => {
                self.deferred[inst] = 0;
                (args[0], true)
            }
            _ => (value, false),
        }
    }

    /// Whether the use by the current instruction is the value's last, so that its register may be reused.
    fn ends_here(&self, value: Value) -> bool {
        self.uses.lives_within(self.kernel, self.uses.canonical(value), self.block)
    }

    /// The deferred instruction that defines a value, if any.
    fn deferred_def(&self, value: Value) -> Option<(Inst, &'k InstData)> {
        let ValueDef::Result { inst, .. } = self.kernel.values[self.uses.canonical(value)] else { return None };
        (self.deferred[inst] != 0).then(|| (inst, &self.kernel.insts[inst]))
    }
}

/// Operations on lanes that users can merge: negated factors, operands of rotations and of ternary logic, stored
/// halves.
fn is_mergeable_on_lanes(op: Op) -> bool {
    matches!(op, Op::FNeg | Op::And | Op::Or | Op::Xor | Op::Shl | Op::LShr | Op::HalfBits)
}

/// Operations that users can merge: comparisons and negations.
fn is_mergeable(op: Op) -> bool {
    matches!(
        op,
        Op::IEq
            | Op::INe
            | Op::ULt
            | Op::ULe
            | Op::SLt
            | Op::SLe
            | Op::LNot
            | Op::FOrdEq
            | Op::FOrdNe
            | Op::FOrdLt
            | Op::FOrdLe
            | Op::FUnordEq
            | Op::FUnordNe
            | Op::FUnordLt
            | Op::FUnordLe
            | Op::IsNan
    )
}

/// Whether loads must not be moved past the instruction.
fn touches_memory(data: &InstData) -> bool {
    data.is_terminator() || data.changes_memory()
}

fn class_of(ty: Type) -> RegClass {
    match ty {
        Type::S1 | Type::S32 | Type::S64 => RegClass::Int,
        Type::V32 => RegClass::Float,
        Type::Mask => RegClass::Vector,
    }
}
