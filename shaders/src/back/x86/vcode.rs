//! Machine code with virtual registers (VCode): selection writes it, `regalloc2` assigns registers, `encode` emits
//! bytes.
//!
//! An instruction is a template whose operands are numbered slots. `regalloc2` sees only the slots; the encoder
//! substitutes the registers. A sequence with internal branches is one instruction: see [`Expand`].

use std::collections::{BTreeSet, HashMap};
use std::fmt::Debug;

use foldhash::fast::FixedState;
use iced_x86::{Code, ConditionCode, OpKind};
use regalloc2::{self as ra, Operand, PReg, PRegSet, RegClass, VReg};
use smallvec::SmallVec;

use super::Isa;
use super::encode::{Assembler, Regs};
use super::pool::{Pool, PooledConstant};
use super::regalloc::not_saved;
use crate::simd::Routine;

/// Size in bytes of the scratch area on the stack for sequences: seven 64-byte vectors.
pub(super) const SCRATCH_BYTES: i32 = 448;

/// Width at which an instruction accesses an operand's register.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum View {
    Byte,
    Dword,
    Qword,
    Xmm,
    Ymm,
    Zmm,
    Mask,
}

/// An operand of the machine instruction, in encoding order.
#[derive(Clone, Copy, Debug)]
pub(super) enum Arg {
    None,
    Slot(u8, View),
    Memory,
    Immediate(OpKind),
}

/// The base of a memory operand.
#[derive(Clone, Copy, Debug)]
pub(super) enum Base {
    Slot(u8),
    /// The constant pool; the displacement is relative to its beginning.
    Pool,
}

/// A memory operand.
#[derive(Clone, Copy, Debug)]
pub(super) struct AddressingMode {
    pub base: Base,
    pub index: Option<u8>,
    pub scale: u8,
    pub disp: i32,
    /// Whether one word is broadcast to all lanes (embedded broadcast).
    pub broadcast: bool,
}

/// A machine-instruction template with at most one memory operand and one immediate.
#[derive(Clone, Copy, Debug)]
pub(super) struct Asm {
    pub code: Code,
    pub args: [Arg; 4],
    pub memory: AddressingMode,
    pub immediate: i64,
    pub mask: Option<u8>,
    pub zeroing: bool,
    /// Whether results are rounded towards negative infinity instead of to nearest.
    pub rounds_down: bool,
}

/// In-bounds condition of an access: `index < limit`, unsigned.
#[derive(Clone, Copy, Debug)]
pub(super) struct Check {
    pub index: CheckBound,
    pub limit: CheckBound,
    /// [`View::Dword`] or [`View::Qword`].
    pub view: View,
}

/// One side of a [`Check`].
#[derive(Clone, Copy, Debug)]
pub(super) enum CheckBound {
    Slot(u8),
    Constant(i32),
}

/// A pseudo-instruction that expands to a sequence with internal branches once registers are assigned.
pub(super) trait Expand: Debug + Send + Sync {
    /// Emits the hot path in place.
    fn hot(&self, regs: Regs<'_>, asm: &mut Assembler<'_>);

    /// Emits the out-of-line slow path at [`Assembler::cold`]'s label; the encoder adds the jump back.
    fn cold(&self, _regs: Regs<'_>, _asm: &mut Assembler<'_>) {}
}

/// The operation of one instruction. Branch targets are the block's successors, in order.
#[derive(Debug)]
pub(super) enum InstKind {
    /// Defines operands without code: arguments, and values whose contents are unspecified.
    Define,
    Asm(Asm),
    /// The instruction if in bounds; otherwise the same instruction on a word of zeros.
    Checked(Asm, Check),
    Sequence(Box<dyn Expand>),
    /// Calls the context's function for routine `routine`. Operand 0 is the context, in the first argument register;
    /// operand 1 is the address of the rows, in the second. Clobbers the caller-saved registers, or none if
    /// `preserves_all`.
    Call {
        routine: u32,
        preserves_all: bool,
    },
    Jump,
    /// To the first successor if the condition holds, else to the second.
    Branch(ConditionCode),
    /// On operand 0: the default is the first successor, the sorted cases are the others.
    Switch(Box<[(u32, u32)]>),
    /// Ends the kernel as stopped if the flags say so and reports the position: the loop at word `at` of the module,
    /// the subgroup's number, the mask of active lanes. A `None` is an operand instead, in this order, in a register or
    /// on the stack.
    Poll {
        at: u32,
        number: Option<u16>,
        mask: Option<u16>,
    },
    /// Ends the kernel as done.
    Return,
}

#[derive(Debug)]
struct MachineInst {
    kind: InstKind,
    operands: u32,
    /// The SPIR-V word that it comes from; 0 if unknown.
    origin: u32,
}

/// A basic block: instructions `first .. end`.
#[derive(Debug, Default)]
pub(super) struct BlockCode {
    pub first: u32,
    pub end: u32,
    pub params: SmallVec<[VReg; 4]>,
    pub succs: SmallVec<[ra::Block; 2]>,
    pub preds: SmallVec<[ra::Block; 2]>,
    /// Arguments of the jump that ends the block, if it has a single successor.
    pub args: SmallVec<[VReg; 4]>,
}

/// The function.
#[derive(Debug, Default)]
pub(super) struct VCode {
    insts: Vec<MachineInst>,
    /// The origin of the instructions that are pushed.
    pub origin: u32,
    operands: Vec<Operand>,
    pub blocks: Vec<BlockCode>,
    vregs: usize,
    /// Whether an instruction uses the scratch area.
    pub scratch: bool,
    /// Whether an instruction rounds or is sensitive to denormals.
    pub floats: bool,
    /// Whether an instruction calls a function.
    pub calls: bool,
    /// Whether image descriptors are read.
    pub images: bool,
    /// Whether it accesses address ranges of device memory; their slices follow the descriptors.
    pub address_ranges: bool,
    /// Whether the code contains the workgroup loop.
    pub workgroup_loop: bool,
    /// The routines that are called, by number.
    pub routines: Vec<Routine>,
    /// The number of each: a checked kernel calls one for each of its instructions.
    routine_numbers: HashMap<Routine, u32, FixedState>,
    /// Whether it contains non-temporal stores.
    pub nontemporal: bool,
    /// Names of the special forms of operations that selection chose, for tools.
    pub forms: BTreeSet<&'static str>,
    /// Size of a spilled vector in 8-byte words: 8 or 4.
    pub vector_words: usize,
    /// The registers that a call clobbers.
    clobbered: PRegSet,
    pub pool: Pool,
    /// A word of zeros in the pool; set if an instruction is [`InstKind::Checked`].
    pub zero_word: PooledConstant,
}

impl VCode {
    /// An empty function with capacity for `room` instructions.
    pub(super) fn new(isa: Isa, room: usize) -> Self {
        let (insts, operands) = (Vec::with_capacity(room), Vec::with_capacity(3 * room));
        let (vector_words, clobbered) = (isa.vector_words(), not_saved(isa));
        Self { vector_words, clobbered, insts, operands, ..Self::default() }
    }

    pub(super) fn vreg(&mut self, class: RegClass) -> VReg {
        // Past the limit numbers repeat; selection rejects the kernel before anything reads them.
        let reg = VReg::new(self.vregs.min(VReg::MAX), class);
        self.vregs += 1;
        reg
    }

    /// The number of a routine, which it gets if it has none.
    pub(super) fn routine(&mut self, routine: &Routine) -> u32 {
        let Self { routines, routine_numbers, .. } = self;
        *routine_numbers.entry(*routine).or_insert_with(|| {
            routines.push(*routine);
            routines.len() as u32 - 1
        })
    }

    pub(super) fn push(&mut self, kind: InstKind, operands: &[Operand]) {
        self.operands.extend_from_slice(operands);
        self.insts.push(MachineInst { kind, operands: self.operands.len() as u32, origin: self.origin });
    }

    pub(super) fn len(&self) -> usize {
        self.insts.len()
    }

    /// Whether all numbers fit into the bit fields in which the allocator packs them.
    pub(super) fn fits(&self) -> bool {
        const MAX_OPERANDS: usize = 1 << 18;
        self.insts.len() <= MAX_OPERANDS && self.vregs <= MAX_OPERANDS && self.blocks.len() <= MAX_OPERANDS
    }

    pub(super) fn kind(&self, inst: usize) -> &InstKind {
        &self.insts[inst].kind
    }

    /// The SPIR-V word that an instruction comes from; 0 if unknown.
    pub(super) fn origin(&self, inst: usize) -> u32 {
        self.insts[inst].origin
    }

    pub(super) fn begin(&mut self, block: usize) {
        self.blocks[block].first = self.insts.len() as u32;
    }

    pub(super) fn end(&mut self, block: usize) {
        self.blocks[block].end = self.insts.len() as u32;
    }
}

impl ra::Function for VCode {
    fn num_insts(&self) -> usize {
        self.insts.len()
    }

    fn num_blocks(&self) -> usize {
        self.blocks.len()
    }

    fn entry_block(&self) -> ra::Block {
        ra::Block::new(0)
    }

    fn block_insns(&self, block: ra::Block) -> ra::InstRange {
        let block = &self.blocks[block.index()];
        ra::InstRange::new(ra::Inst::new(block.first as usize), ra::Inst::new(block.end as usize))
    }

    fn block_succs(&self, block: ra::Block) -> &[ra::Block] {
        &self.blocks[block.index()].succs
    }

    fn block_preds(&self, block: ra::Block) -> &[ra::Block] {
        &self.blocks[block.index()].preds
    }

    fn block_params(&self, block: ra::Block) -> &[VReg] {
        &self.blocks[block.index()].params
    }

    fn is_ret(&self, inst: ra::Inst) -> bool {
        matches!(self.insts[inst.index()].kind, InstKind::Return)
    }

    fn is_branch(&self, inst: ra::Inst) -> bool {
        matches!(self.insts[inst.index()].kind, InstKind::Jump | InstKind::Branch(_) | InstKind::Switch(_))
    }

    fn branch_blockparams(&self, block: ra::Block, _: ra::Inst, _: usize) -> &[VReg] {
        &self.blocks[block.index()].args
    }

    fn inst_operands(&self, inst: ra::Inst) -> &[Operand] {
        let first = inst.index().checked_sub(1).map_or(0, |before| self.insts[before].operands);
        &self.operands[first as usize..self.insts[inst.index()].operands as usize]
    }

    fn inst_clobbers(&self, inst: ra::Inst) -> PRegSet {
        match self.insts[inst.index()].kind {
            InstKind::Call { preserves_all: false, .. } => self.clobbered,
            _ => PRegSet::empty(),
        }
    }

    fn num_vregs(&self) -> usize {
        self.vregs
    }

    fn spillslot_size(&self, class: RegClass) -> usize {
        if class == RegClass::Float { self.vector_words } else { 1 }
    }
}

/// Builder for a template and its operands.
#[derive(Clone, Debug)]
pub(super) struct Build {
    pub asm: Asm,
    pub operands: SmallVec<[Operand; 6]>,
    count: usize,
}

impl Build {
    pub(super) fn new(code: Code) -> Self {
        let memory = AddressingMode { base: Base::Pool, index: None, scale: 1, disp: 0, broadcast: false };
        let asm =
            Asm { code, args: [Arg::None; 4], memory, immediate: 0, mask: None, zeroing: false, rounds_down: false };
        Self { asm, operands: SmallVec::new(), count: 0 }
    }

    fn arg(mut self, arg: Arg) -> Self {
        self.asm.args[self.count] = arg;
        self.count += 1;
        self
    }

    /// Adds an operand that the encoding does not name; returns its slot.
    pub(super) fn slot(&mut self, operand: Operand) -> u8 {
        self.operands.push(operand);
        self.operands.len() as u8 - 1
    }

    pub(super) fn def(mut self, reg: VReg, view: View) -> Self {
        let slot = self.slot(Operand::reg_def(reg));
        self.arg(Arg::Slot(slot, view))
    }

    /// A result that reuses the register of `from`, which the encoding does not name a second time.
    pub(super) fn modify(mut self, reg: VReg, from: VReg, view: View) -> Self {
        let slot = self.operands.len();
        self.slot(Operand::reg_reuse_def(reg, slot + 1));
        self.slot(Operand::reg_use(from));
        self.arg(Arg::Slot(slot as u8, view))
    }

    /// Names an existing slot once more.
    pub(super) fn again(self, slot: u8) -> Self {
        let view = self.asm.args.iter().find_map(|arg| match *arg {
            Arg::Slot(other, view) if other == slot => Some(view),
            _ => None,
        });
        self.arg(Arg::Slot(slot, view.unwrap_or(View::Qword)))
    }

    pub(super) fn reads(mut self, reg: VReg, view: View) -> Self {
        let slot = self.slot(Operand::reg_use(reg));
        self.arg(Arg::Slot(slot, view))
    }

    /// An operand in a register that the encoding implies.
    pub(super) fn fixed(mut self, reg: VReg, at: PReg) -> Self {
        self.slot(Operand::reg_fixed_use(reg, at));
        self
    }

    pub(super) fn memory(mut self, memory: AddressingMode) -> Self {
        self.asm.memory = memory;
        self.arg(Arg::Memory)
    }

    /// Memory at `base + index * scale + disp`.
    pub(super) fn at(mut self, address: &AddressRegisters) -> Self {
        let base = Base::Slot(self.slot(Operand::reg_use(address.base)));
        let index = address.index.map(|index| self.slot(Operand::reg_use(index)));
        self.memory(AddressingMode {
            base,
            index,
            scale: address.scale,
            disp: address.disp,
            broadcast: address.broadcast,
        })
    }

    pub(super) fn imm(mut self, kind: OpKind, value: i64) -> Self {
        self.asm.immediate = value;
        self.arg(Arg::Immediate(kind))
    }

    pub(super) fn imm8(self, value: u8) -> Self {
        self.imm(OpKind::Immediate8, i64::from(value))
    }

    pub(super) fn mask(mut self, mask: VReg) -> Self {
        let slot = self.slot(Operand::reg_use(mask));
        self.asm.mask = Some(slot);
        self
    }

    pub(super) fn zeroing(mut self) -> Self {
        self.asm.zeroing = true;
        self
    }

    /// Embedded rounding: only for instructions without a memory operand.
    pub(super) fn rounds_down(mut self) -> Self {
        self.asm.rounds_down = true;
        self
    }

    pub(super) fn push(self, code: &mut VCode) {
        code.push(InstKind::Asm(self.asm), &self.operands);
    }
}

/// An address in registers.
#[derive(Clone, Copy, Debug)]
pub(super) struct AddressRegisters {
    pub base: VReg,
    pub index: Option<VReg>,
    pub scale: u8,
    pub disp: i32,
    pub broadcast: bool,
}
