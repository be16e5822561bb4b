//! Instruction selection: each SIMD instruction becomes a few machine instructions.
//!
//! One walk over the layout. Pure instructions with a single use in their own block are *put off*: no code is written
//! where they stand, their user takes them in (a compare into the branch, a load as memory operand) or else has them written
//! in front of it. Constants are put off always: as immediates, as operands in the pool. Loads that were put off
//! are written at the latest before anything that may change memory.
//!
//! A register of a scalar has zeros above the scalar's bits.

mod address_ranges;
mod avx2;
mod avx512;
mod compare;
mod control;
mod double;
mod elements;
mod image;
mod lane_atomics;
mod memory;
mod moves;
mod nontemporal;
mod prefetch;
mod scalar;
mod subword;
mod upper_bounds;
mod value_uses;
mod wide;

use cranelift_entity::SecondaryMap;
use iced_x86::{Code, OpKind};
use regalloc2::{Operand, OperandConstraint, OperandKind, OperandPos, PReg, RegClass, VReg};

use self::avx2::Halves;
use self::nontemporal::Streams;
use self::prefetch::Strides;
use self::upper_bounds::Most;
use self::value_uses::Facts;
use super::vcode::{Build, Kind, VCode, View};
use super::{CompileError, Isa};
use crate::ir::Op;
use crate::simd::{Block, Inst, InstData, Kernel, Routine, Type, Value, ValueDef, WideOp};

/// Most instructions that wait for one another: writing them is recursive.
const MAX_DEFERRED_DEPTH: u8 = 8;

/// The state of the walk.
pub(super) struct Select<'k> {
    kernel: &'k Kernel,
    facts: Facts,
    most: Most,
    strides: Strides,
    streams: Streams,
    code: VCode,
    isa: Isa,
    /// Where a value is; of a vector on AVX2, its lower half.
    regs: SecondaryMap<Value, Option<VReg>>,
    /// The upper halves, if they are not the same as the lower ones.
    highs: SecondaryMap<Value, Option<VReg>>,
    /// Instructions that are put off: how deep they are nested in those that would take them in, from 1 on.
    put_off: SecondaryMap<Inst, u8>,
    /// Loads among them, oldest first.
    loads: Vec<Inst>,
    /// The address of the [`Context`](super::call::Context).
    context: VReg,
    block: Block,
    edges: control::Edges,
    doubles: double::Known,
}

/// Machine code for a kernel, with virtual registers.
pub(super) fn select(kernel: &Kernel, isa: Isa) -> Result<VCode, CompileError> {
    let mut code = VCode::new(isa.vector_words(), kernel.insts.len());
    let context = code.vreg(RegClass::Int);
    let mut select = Select {
        kernel,
        facts: Facts::new(kernel),
        most: Most::new(kernel),
        strides: Strides::new(kernel),
        streams: if isa == Isa::Avx512 { Streams::new(kernel) } else { Streams::default() },
        code,
        isa,
        regs: SecondaryMap::with_capacity(kernel.values.len()),
        highs: SecondaryMap::new(),
        put_off: SecondaryMap::with_capacity(kernel.insts.len()),
        loads: Vec::new(),
        context,
        block: kernel.layout[0],
        edges: control::Edges::default(),
        doubles: double::Known::default(),
    };
    select.code.zero_word = select.code.pool.word(0);
    select.code.streams = select.streams.any();
    let is_lookup =
        |data: &InstData| matches!(data, InstData::BufferAt { .. } | InstData::Call { routine: Routine::BufferAt, .. });
    select.code.pieces = kernel.insts.values().any(is_lookup);
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

impl<'k> Select<'k> {
    fn block(&mut self, block: Block) -> Result<(), CompileError> {
        self.block = block;
        let at = self.edges.number(block);
        self.code.begin(at);
        if at == 0 {
            // The first argument of a call.
            const ARGUMENT: PReg = PReg::new(7, RegClass::Int);
            self.code.push(Kind::Define, &[Operand::reg_fixed_def(self.context, ARGUMENT)]);
        }
        for &inst in &self.kernel.blocks[block].insts {
            if !self.facts.live(inst) || self.is_written(inst) {
                continue;
            }
            if self.leaves_word(inst)? {
                self.put_off[inst] = 1;
                continue;
            }
            if self.may_wait(inst)
                && let depth = self.depth(inst)
                && depth <= MAX_DEFERRED_DEPTH
            {
                self.put_off[inst] = depth;
                if matches!(self.kernel.insts[inst], InstData::Load { .. }) {
                    self.loads.push(inst);
                }
                continue;
            }
            self.write(inst)?;
        }
        Ok(())
    }

    /// The doubles that an operation gives.
    fn doubles_of(&mut self, double: double::Double, args: &[Value]) -> Result<double::Doubles, CompileError> {
        if self.isa == Isa::Avx2 { Halves(self).half_doubles(double, args) } else { self.wide_doubles(double, args) }
    }

    /// Whether an instruction before this one gave its result.
    fn is_written(&self, inst: Inst) -> bool {
        self.kernel.results[inst].first().is_some_and(|&result| self.regs[result].is_some())
    }

    fn depth(&self, inst: Inst) -> u8 {
        let args: &[Value] = match &self.kernel.insts[inst] {
            InstData::Pure { args, .. } => args,
            InstData::Wide { args, .. } => args,
            InstData::Any { mask } => std::slice::from_ref(mask),
            InstData::Splat { value } => std::slice::from_ref(value),
            // A load's address does not wait.
            _ => &[],
        };
        let depth = |&arg: &Value| self.waiting(arg).map_or(0, |(inst, _)| self.put_off[inst]);
        args.iter().map(depth).max().unwrap_or(0) + 1
    }

    /// Whether it is no shift, or one by a constant.
    fn shifts_by_constant(&self, op: Op, args: &[Value]) -> bool {
        !matches!(op, Op::Shl | Op::LShr) || self.constant(args[1]).is_some()
    }

    /// Whether an instruction is left to its only user.
    fn may_wait(&self, inst: Inst) -> bool {
        let single = |inst: Inst| self.facts.single_use(self.kernel.results[inst][0], self.block);
        match &self.kernel.insts[inst] {
            InstData::Const { .. } | InstData::Lanes { .. } | InstData::Undef { .. } => true,
            InstData::Any { .. } | InstData::Load { .. } | InstData::Splat { .. } => single(inst),
            InstData::Wide { op: WideOp::Add, .. } => self.offset(inst).is_some(),
            InstData::Wide { op, .. } => op.result() == Type::S1 && single(inst),
            InstData::Pure { op, args } => {
                let lanes = self.kernel.ty(args[0]) == Type::V32;
                let either = *op == Op::LOr && self.kernel.ty(args[0]) == Type::Mask;
                (waits(*op) || either || lanes && lanes_wait(*op) && self.shifts_by_constant(*op, args)) && single(inst)
            }
            _ => false,
        }
    }

    /// Writes an instruction where the walk is.
    fn write(&mut self, inst: Inst) -> Result<(), CompileError> {
        let kernel = self.kernel;
        let data = &kernel.insts[inst];
        self.put_off[inst] = 0;
        if touches_memory(data) {
            for load in std::mem::take(&mut self.loads) {
                if self.put_off[load] != 0 {
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
            _ if self.isa == Isa::Avx2 => Halves(self).vector_inst(inst, data)?,
            _ => self.vector_inst(inst, data)?,
        }
        Ok(())
    }

    /// The register of a value, which is written now if it was put off.
    fn reg(&mut self, value: Value) -> Result<VReg, CompileError> {
        let value = self.facts.canonical(value);
        if let Some(reg) = self.regs[value] {
            return Ok(reg);
        }
        if let ValueDef::Result { inst, .. } = self.kernel.values[value] {
            match &self.kernel.insts[inst] {
                InstData::Const { ty, bits } => return Ok(self.constant_reg(*ty, *bits)),
                InstData::Lanes { values } => return Ok(self.constant_lanes(**values)),
                InstData::Undef { ty } if ty.is_vector() => return Ok(self.undefined(*ty)),
                InstData::Undef { ty } => return Ok(self.constant_reg(*ty, 0)),
                _ => {}
            }
            if let Some((base, disp)) = self.offset(inst) {
                let place = Self::at(self.reg(base)?, disp);
                let sum = self.general();
                Build::new(Code::Lea_r64_m).def(sum, View::Qword).at(&place).push(&mut self.code);
                return Ok(sum);
            }
            self.write(inst)?;
        }
        // The verifier saw to it that the definition came first; a kernel that it refused gets a register of its own.
        let class = class_of(self.kernel.ty(value));
        Ok(*self.regs[value].get_or_insert_with(|| self.code.vreg(class)))
    }

    /// The base and the bytes beside it, of an address that is their sum: left to all its users, who take the sum in. Of
    /// sums of sums only every other one is, so that none leads far.
    fn offset(&self, inst: Inst) -> Option<(Value, i32)> {
        let InstData::Wide { op: WideOp::Add, args } = &self.kernel.insts[inst] else { return None };
        let disp = self.immediate(args[1])?;
        let of_a_sum = match self.kernel.values[self.facts.canonical(args[0])] {
            ValueDef::Result { inst, .. } => self.put_off[inst] != 0,
            ValueDef::Param { .. } => false,
        };
        (!of_a_sum || self.put_off[inst] != 0).then_some((args[0], disp))
    }

    /// Whether a value has two registers.
    fn in_halves(&self, value: Value) -> bool {
        self.isa == Isa::Avx2 && self.kernel.ty(value).is_vector()
    }

    /// A value without code: each use has its own, wherever the allocator has room.
    fn undefined(&mut self, ty: Type) -> VReg {
        let reg = self.code.vreg(class_of(ty));
        let anywhere = Operand::new(reg, OperandConstraint::Any, OperandKind::Def, OperandPos::Late);
        self.code.push(Kind::Define, &[anywhere]);
        reg
    }

    /// A constant in a register of its own.
    fn constant_reg(&mut self, ty: Type, bits: u64) -> VReg {
        let reg = self.code.vreg(class_of(ty));
        match ty {
            Type::S1 | Type::S32 | Type::S64 => self.set(reg, bits),
            Type::V32 => self.set_lanes(reg, bits as u32),
            Type::Mask => self.set_mask(reg, bits as u16),
        }
        reg
    }

    /// Puts a number into a general register.
    fn set(&mut self, reg: VReg, bits: u64) {
        let build = match u32::try_from(bits) {
            Ok(bits) => Build::new(Code::Mov_r32_imm32).def(reg, View::Dword).imm(OpKind::Immediate32, i64::from(bits)),
            Err(_) => Build::new(Code::Mov_r64_imm64).def(reg, View::Qword).imm(OpKind::Immediate64, bits as i64),
        };
        build.push(&mut self.code);
    }

    /// A new register for the first result.
    fn define(&mut self, inst: Inst) -> VReg {
        self.define_nth(inst, 0)
    }

    fn define_nth(&mut self, inst: Inst, index: usize) -> VReg {
        let value = self.kernel.results[inst][index];
        let reg = self.code.vreg(class_of(self.kernel.ty(value)));
        self.regs[value] = Some(reg);
        reg
    }

    fn general(&mut self) -> VReg {
        self.code.vreg(RegClass::Int)
    }

    /// Bits of a constant, seen through views of the same bits.
    fn constant(&self, value: Value) -> Option<u64> {
        self.kernel.constant(self.facts.canonical(value))
    }

    /// A constant as an immediate, which the machine extends by its sign.
    fn immediate(&self, value: Value) -> Option<i32> {
        let bits = self.constant(value)?;
        if self.kernel.ty(value) == Type::S64 { i32::try_from(bits as i64).ok() } else { Some(bits as i32) }
    }

    /// Whether lanes are less than 32, as far as few steps tell: what shifts count.
    fn is_shift_amount(&self, value: Value) -> bool {
        self.most(value, 4) < 32
    }

    /// No lane has more.
    fn most(&self, value: Value, steps: u32) -> u64 {
        let anything = u64::from(u32::MAX);
        if let Some(bits) = self.constant(value) {
            return bits;
        }
        let Some(data) = self.kernel.definition(self.facts.canonical(value)) else { return anything };
        if steps == 0 {
            return anything;
        }
        let (op, args) = match data {
            InstData::Pure { op, args } => (op, args),
            InstData::Splat { value } => return self.most(*value, steps - 1),
            InstData::Select { then, otherwise, .. } => {
                return self.most(*then, steps - 1).max(self.most(*otherwise, steps - 1));
            }
            _ => return anything,
        };
        let most = |place: usize| self.most(args[place], steps - 1);
        match (op, args.get(1).and_then(|&amount| self.constant(amount))) {
            (Op::LShr, Some(amount)) => most(0) >> (amount & 31),
            (Op::And, _) | (Op::UMin, _) => most(0).min(most(1)),
            (Op::IAdd, _) => Some(most(0) + most(1)).filter(|&sum| sum <= anything).unwrap_or(anything),
            (Op::BoolToInt, _) => 1,
            _ => anything,
        }
    }

    /// Whether the register of a value is free after its use by the instruction that is written now.
    fn ends_here(&self, value: Value) -> bool {
        self.facts.lives_within(self.kernel, self.facts.canonical(value), self.block)
    }

    /// The instruction behind a value that was put off, and is written by nobody else.
    fn waiting(&self, value: Value) -> Option<(Inst, &'k InstData)> {
        let ValueDef::Result { inst, .. } = self.kernel.values[self.facts.canonical(value)] else { return None };
        (self.put_off[inst] != 0).then(|| (inst, &self.kernel.insts[inst]))
    }
}

/// Operations on lanes that users may take in: signs of factors, parts of rotations and of three-way logic, halves that are stored.
fn lanes_wait(op: Op) -> bool {
    matches!(op, Op::FNeg | Op::And | Op::Or | Op::Xor | Op::Shl | Op::LShr | Op::HalfBits)
}

/// Operations that users may take in.
fn waits(op: Op) -> bool {
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
