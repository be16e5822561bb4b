//! Builds a SIMD [`Kernel`]: appends instructions, folds constants and masks, and keeps what is the same for the whole
//! workgroup in the entry block.

use cranelift_entity::{EntitySet, SecondaryMap};
use foldhash::{HashMap, HashMapExt};
use smallvec::SmallVec;

use super::ssa::Variables;
use super::{Block, BlockCall, BlockData, Inst, InstData, Kernel, LANES, Type, Value, ValueDef, WideOp};
use crate::ir::Op;

/// All lanes.
pub(super) const ALL: u64 = (1 << LANES) - 1;

/// Operations that a vector in the entry is made of, at most.
const LIFTED: usize = 4;

/// Different values that most kernels do not have more of.
const VALUES: usize = 96;

/// Appends instructions to the current block of a kernel.
///
/// Scalars that depend on nothing but the workgroup go to the entry, each once: they are the same for all subgroups.
/// Those that depend on nothing but the subgroup go to the block where each subgroup begins, or goes on: they need not
/// be kept over barriers. Within a block, computing the same again gives the same value.
#[derive(Debug)]
pub(super) struct Builder {
    pub(super) kernel: Kernel,
    pub(super) variables: Variables,
    current: Block,
    /// The blocks that scalars are moved up to: the entry, and where subgroups begin, once it is known.
    levels: SmallVec<[Block; 2]>,
    /// For values of these blocks, the place of the block in `levels` from the end on: 2 for the entry, 1 for a subgroup's.
    level: SecondaryMap<Value, u8>,
    outer: HashMap<InstData, Value>,
    locals: HashMap<InstData, Value>,
    /// The blocks of instructions whose results are not used everywhere.
    homes: SecondaryMap<Inst, Block>,
    /// Loads at the head of resume blocks.
    heads: HashMap<Block, Vec<Inst>>,
}

impl Builder {
    /// Starts in the entry block.
    pub(super) fn new(mut kernel: Kernel) -> Self {
        let entry = kernel.blocks.push(BlockData::default());
        kernel.layout.push(entry);
        Self {
            kernel,
            variables: Variables::default(),
            current: entry,
            levels: SmallVec::from_slice(&[entry]),
            level: SecondaryMap::new(),
            outer: HashMap::with_capacity(VALUES),
            locals: HashMap::with_capacity(VALUES),
            homes: SecondaryMap::with_default(entry),
            heads: HashMap::default(),
        }
    }

    /// A new block; it has no place in the order until [`Builder::switch_to`].
    pub(super) fn create_block(&mut self) -> Block {
        self.kernel.blocks.push(BlockData::default())
    }

    /// The block that instructions go to.
    pub(super) fn current(&self) -> Block {
        self.current
    }

    /// Instructions that follow go to `block`, which comes next in the order.
    pub(super) fn switch_to(&mut self, block: Block) {
        self.current = block;
        self.kernel.layout.push(block);
        self.locals.clear();
    }

    /// Type of a value.
    pub(super) fn ty(&self, value: Value) -> Type {
        self.kernel.ty(value)
    }

    /// Makes the current block the one where subgroups begin; the values it has so far are the subgroup's.
    pub(super) fn begin_subgroup(&mut self, params: &[Value]) {
        self.levels.push(self.current);
        params.iter().for_each(|&value| self.level[value] = 1);
    }

    /// Says that a value of the subgroup's block stays good everywhere after it.
    pub(super) fn make_outer(&mut self, value: Value) {
        self.level[value] = 1;
    }

    /// Says that a value of the entry block stays good everywhere.
    pub(super) fn make_workgroups(&mut self, value: Value) {
        self.level[value] = 2;
    }

    /// A 64-bit constant in the entry block whose bits are not known yet.
    pub(super) fn placeholder(&mut self) -> Inst {
        let inst = self.add(InstData::Const { ty: Type::S64, bits: 0 });
        let entry = self.levels[0];
        self.kernel.blocks[entry].insts.push(inst);
        // As if it were no constant: nothing may be folded with it.
        self.level[self.kernel.results[inst][0]] = 2;
        inst
    }

    /// Ends a block that is not the current one, and whose targets do not look at their predecessors.
    pub(super) fn terminate_at(&mut self, block: Block, data: InstData) {
        let inst = self.add(data);
        self.kernel.blocks[block].insts.push(inst);
    }

    /// Whether a value is the same wherever it is used within a subgroup's run, so that no variable is needed for it.
    pub(super) fn is_outer(&self, value: Value) -> bool {
        self.level[value] > 0
    }

    /// Whether a value is the same for all subgroups, and there before them.
    pub(super) fn is_workgroups(&self, value: Value) -> bool {
        self.level[value] == 2
    }

    /// A parameter that a block has from the beginning.
    pub(super) fn param(&mut self, block: Block, ty: Type) -> Value {
        let value = self.param_later(block, ty);
        self.place_param(block, value);
        value
    }

    pub(super) fn param_later(&mut self, block: Block, ty: Type) -> Value {
        self.kernel.values.push(ValueDef::Param { block, index: 0, ty })
    }

    pub(super) fn place_param(&mut self, block: Block, value: Value) {
        let params = &mut self.kernel.blocks[block].params;
        let index = params.len() as u32;
        params.push(value);
        if let ValueDef::Param { index: at, .. } = &mut self.kernel.values[value] {
            *at = index;
        }
    }

    /// Makes a value that has no definition yet a parameter of a block.
    pub(super) fn adopt_param(&mut self, block: Block, value: Value) {
        if let ValueDef::Param { block: of, .. } = &mut self.kernel.values[value] {
            *of = block;
        }
        self.place_param(block, value);
    }

    /// Adds an argument to the branch from one block to another.
    pub(super) fn pass(&mut self, from: Block, to: Block, value: Value) {
        if let Some(&last) = self.kernel.blocks[from].insts.last() {
            for call in self.kernel.insts[last].targets_mut() {
                if call.block == to {
                    call.args.push(value);
                }
            }
        }
    }

    fn add(&mut self, data: InstData) -> Inst {
        let types = {
            let values = &self.kernel.values;
            data.result_types(|value| values[value].ty())
        };
        let inst = self.kernel.insts.push(data);
        for (index, ty) in types.into_iter().enumerate() {
            let value = self.kernel.values.push(ValueDef::Result { inst, index: index as u32, ty });
            self.kernel.results[inst].push(value);
        }
        inst
    }

    /// Appends an instruction that does something, or that must stay where it is.
    pub(super) fn emit(&mut self, data: InstData) -> Inst {
        let inst = self.add(data);
        let block = self.current;
        self.homes[inst] = block;
        self.kernel.blocks[block].insts.push(inst);
        inst
    }

    /// As [`Builder::emit`], for an instruction with one result.
    pub(super) fn emit_value(&mut self, data: InstData) -> Value {
        let inst = self.emit(data);
        self.kernel.results[inst][0]
    }

    /// Appends an instruction without effects, or finds the same one.
    pub(super) fn emit_one(&mut self, data: InstData) -> Value {
        let level = self.level_of(&data);
        if level > 0 {
            if let Some(&value) = self.outer.get(&data) {
                return value;
            }
            let inst = self.add(data.clone());
            let block = self.levels[2 - usize::from(level)];
            self.kernel.blocks[block].insts.push(inst);
            let value = self.kernel.results[inst][0];
            self.level[value] = level;
            self.outer.insert(data, value);
            return value;
        }
        if let Some(&value) = self.locals.get(&data) {
            return value;
        }
        let value = self.emit_value(data.clone());
        self.locals.insert(data, value);
        value
    }

    /// How far up an instruction without effects can go and is cheap enough to be kept: 2 for the entry, 1 for where
    /// subgroups begin, 0 for nowhere.
    fn level_of(&self, data: &InstData) -> u8 {
        let most = match data {
            InstData::Const { .. } | InstData::Lanes { .. } | InstData::Undef { .. } | InstData::Context { .. } => 2,
            InstData::BufferBase { .. } | InstData::BufferLen { .. } | InstData::Wide { .. } => 2,
            InstData::BufferAt { .. } | InstData::ImageField { .. } => 2,
            InstData::Pure { args, .. } if args.iter().all(|&arg| !self.ty(arg).is_vector()) => 2,
            InstData::Select { then, .. } if !self.ty(*then).is_vector() => 2,
            InstData::Load { ty, .. } if !ty.is_vector() => 2,
            _ => 0,
        };
        let mut level = most;
        if level > 0 {
            data.for_each_use(|value| level = level.min(self.level[value]));
        }
        // A load is moved for the workgroup, not to be done again for each subgroup.
        if level == 1 && matches!(data, InstData::Load { .. }) { 0 } else { level }
    }

    /// Puts an instruction at the head of a resume block.
    pub(super) fn emit_at_head(&mut self, block: Block, data: InstData) -> Value {
        let inst = self.add(data);
        self.homes[inst] = block;
        self.heads.entry(block).or_default().push(inst);
        self.kernel.results[inst][0]
    }

    /// Puts an instruction behind the definition of a value.
    pub(super) fn emit_after(&mut self, value: Value, data: InstData) {
        let inst = self.add(data);
        let (block, at) = match self.kernel.values[value] {
            ValueDef::Param { block, .. } => (block, 0),
            ValueDef::Result { inst: definition, .. } => {
                let block = self.homes[definition];
                let insts = &self.kernel.blocks[block].insts;
                (block, insts.iter().position(|&other| other == definition).map_or(0, |at| at + 1))
            }
        };
        self.kernel.blocks[block].insts.insert(at, inst);
    }

    /// Puts an instruction before the terminator of a block.
    pub(super) fn emit_before_end(&mut self, block: Block, data: InstData) {
        let inst = self.add(data);
        let insts = &mut self.kernel.blocks[block].insts;
        let end = insts.len() - 1;
        insts.insert(end, inst);
    }

    /// Ends the current block with a jump.
    pub(super) fn jump(&mut self, to: Block) {
        self.terminate(InstData::Jump { to: BlockCall::new(to) });
    }

    /// Ends the current block with a branch.
    pub(super) fn branch(&mut self, condition: Value, then: Block, otherwise: Block) {
        let (then, otherwise) = (BlockCall::new(then), BlockCall::new(otherwise));
        self.terminate(InstData::Branch { condition, then, otherwise });
    }

    /// Ends the current block; targets learn of their predecessor.
    pub(super) fn terminate(&mut self, data: InstData) {
        let block = self.current;
        let targets: SmallVec<[Block; 4]> = data.targets().iter().map(|call| call.block).collect();
        for target in targets {
            let predecessors = &mut self.variables.predecessors[target];
            if predecessors.last() != Some(&block) {
                predecessors.push(block);
            }
        }
        self.emit(data);
    }

    /// A constant, the same in all lanes of a vector.
    pub(super) fn constant(&mut self, ty: Type, bits: u64) -> Value {
        self.emit_one(InstData::Const { ty, bits })
    }

    /// A 32-bit constant that all lanes share.
    pub(super) fn s32(&mut self, value: u32) -> Value {
        self.constant(Type::S32, u64::from(value))
    }

    /// A 64-bit constant that all lanes share.
    pub(super) fn s64(&mut self, value: u64) -> Value {
        self.constant(Type::S64, value)
    }

    /// A pure operation, on scalars or on vectors.
    pub(super) fn pure(&mut self, op: Op, args: &[Value]) -> Value {
        let bits: Option<SmallVec<[u64; 4]>> = args.iter().map(|&arg| self.kernel.constant(arg)).collect();
        let vector = args.iter().any(|&arg| self.ty(arg).is_vector());
        if let Some(bits) = bits {
            return self.fold(op, &bits, vector);
        }
        if let (Op::IAdd, &[a, b]) = (op, args)
            && let Some(sum) = [(a, b), (b, a)].into_iter().find(|&(_, b)| self.kernel.constant(b) == Some(0))
        {
            return sum.0;
        }
        // What lanes have in all subgroups: masks are used all the time, and a register costs less than a division for each subgroup.
        let worth = vector && (compares(op) || matches!(op, Op::LAnd | Op::FDiv | Op::Sqrt));
        if let Some(value) = worth.then(|| self.lifted_pure(op, args)).flatten() {
            return value;
        }
        self.emit_one(InstData::Pure { op, args: SmallVec::from_slice(args) })
    }

    /// A vector that all subgroups have, in the entry, if it is made of the workgroup's scalars by few operations; itself otherwise.
    /// It is kept all the time, so it should be worth that.
    pub(super) fn lift(&mut self, vector: Value) -> Value {
        if self.can_be_lifted(vector, LIFTED) { self.lifted(vector) } else { vector }
    }

    /// An operation in the entry, if its operands can be there.
    fn lifted_pure(&mut self, op: Op, args: &[Value]) -> Option<Value> {
        let all = args.iter().all(|&arg| self.can_be_lifted(arg, LIFTED));
        all.then(|| {
            let args = args.iter().map(|&arg| self.lifted(arg)).collect();
            self.emit_in_entry(InstData::Pure { op, args })
        })
    }

    fn can_be_lifted(&self, value: Value, steps: usize) -> bool {
        if self.is_workgroups(value) {
            return true;
        }
        let Some(data) = self.kernel.definition(value).filter(|_| steps > 0) else { return false };
        let mut can = match data {
            InstData::Splat { .. } => true,
            InstData::Pure { op, .. } => matches!(
                op,
                Op::SIntToFloat
                    | Op::UIntToFloat
                    | Op::FDiv
                    | Op::Sqrt
                    | Op::IAdd
                    | Op::ISub
                    | Op::SMin
                    | Op::SMax
                    | Op::UMin
                    | Op::UMax
            ),
            _ => false,
        };
        if can {
            data.for_each_use(|value| can = can && self.can_be_lifted(value, steps - 1));
        }
        can
    }

    /// A value that can be lifted, in the entry.
    fn lifted(&mut self, value: Value) -> Value {
        let Some(data) = self.kernel.definition(value).filter(|_| !self.is_workgroups(value)) else { return value };
        let mut data = data.clone();
        data.for_each_use_mut(|value| *value = self.lifted(*value));
        self.emit_in_entry(data)
    }

    /// Appends an instruction without effects to the entry, or finds the same one; what it uses is there.
    fn emit_in_entry(&mut self, data: InstData) -> Value {
        if let Some(&value) = self.outer.get(&data) {
            return value;
        }
        let inst = self.add(data.clone());
        let entry = self.levels[0];
        self.kernel.blocks[entry].insts.push(inst);
        let value = self.kernel.results[inst][0];
        self.level[value] = 2;
        self.outer.insert(data, value);
        value
    }

    /// An operation on constants; those of masks have a bit for each lane.
    fn fold(&mut self, op: Op, bits: &[u64], vector: bool) -> Value {
        let ty = super::pure_result(op, vector);
        let result = match (op, bits) {
            (Op::LAnd, [a, b]) => a & b,
            (Op::LOr, [a, b]) => a | b,
            (Op::LXor, [a, b]) => a ^ b,
            (Op::LNot, [a]) => !a & if vector { ALL } else { 1 },
            (Op::BoolToInt, [a]) if vector && *a != 0 && *a != ALL => {
                let values = Box::new(std::array::from_fn(|lane| (*a >> lane & 1) as u32));
                return self.emit_one(InstData::Lanes { values });
            }
            _ => {
                let bits: SmallVec<[u64; 4]> = bits
                    .iter()
                    .zip(op.params())
                    .map(|(&a, &ty)| if ty == crate::ir::Type::Bool { a & 1 } else { a })
                    .collect();
                let result = op.fold(&bits);
                if ty == Type::Mask { result * ALL } else { result }
            }
        };
        self.constant(ty, result)
    }

    /// 64-bit arithmetic.
    pub(super) fn wide(&mut self, op: WideOp, args: &[Value]) -> Value {
        let bits: Option<SmallVec<[u64; 2]>> = args.iter().map(|&arg| self.kernel.constant(arg)).collect();
        if let Some(bits) = bits {
            return self.constant(op.result(), op.fold(&bits));
        }
        let nothing = |value: Value| self.kernel.constant(value) == Some(0);
        match (op, args) {
            // A constant comes second: addresses take it in.
            (WideOp::Add, &[a, b]) if self.kernel.constant(a).is_some() => self.wide(op, &[b, a]),
            (WideOp::Add, &[a, b]) if nothing(b) => a,
            (WideOp::Add, &[a, b]) if nothing(a) => b,
            (WideOp::SubSat, &[a, b]) if nothing(b) => a,
            (WideOp::Shr, &[a, b]) if nothing(b) => a,
            (WideOp::Mul, &[a, b]) if self.kernel.constant(b) == Some(1) => a,
            _ => self.emit_one(InstData::Wide { op, args: SmallVec::from_slice(args) }),
        }
    }

    /// An address without the constant that is added to it last, and that.
    pub(super) fn constant_apart(&self, address: Value) -> (Value, u64) {
        match self.kernel.definition(address) {
            Some(InstData::Wide { op: WideOp::Add, args }) if self.kernel.constant(args[1]).is_some() => {
                (args[0], self.kernel.constant(args[1]).unwrap_or_default())
            }
            _ => (address, 0),
        }
    }

    /// A scalar in each lane.
    pub(super) fn splat(&mut self, value: Value) -> Value {
        match (self.ty(value), self.kernel.constant(value)) {
            (Type::S1, Some(bits)) => self.constant(Type::Mask, bits * ALL),
            (_, Some(bits)) => self.constant(Type::V32, bits),
            _ => self.emit_one(InstData::Splat { value }),
        }
    }

    /// Lanes of both masks.
    pub(super) fn and(&mut self, a: Value, b: Value) -> Value {
        match (self.kernel.constant(a), self.kernel.constant(b)) {
            (Some(ALL), _) => b,
            (_, Some(ALL)) => a,
            (Some(0), _) => a,
            (_, Some(0)) => b,
            _ if a == b => a,
            _ => self.pure(Op::LAnd, &[a, b]),
        }
    }

    /// Lanes of the first mask that are not in the second.
    pub(super) fn and_not(&mut self, a: Value, b: Value) -> Value {
        match self.kernel.constant(b) {
            Some(0) => a,
            Some(ALL) => self.constant(Type::Mask, 0),
            _ => {
                let not = self.pure(Op::LNot, &[b]);
                self.and(a, not)
            }
        }
    }

    /// Lanes of either mask.
    pub(super) fn or(&mut self, a: Value, b: Value) -> Value {
        match (self.kernel.constant(a), self.kernel.constant(b)) {
            (Some(0), _) => b,
            (_, Some(0)) => a,
            (Some(ALL), _) => a,
            (_, Some(ALL)) => b,
            _ if a == b => a,
            _ => self.pure(Op::LOr, &[a, b]),
        }
    }

    /// Whether a mask has lanes.
    pub(super) fn any(&mut self, mask: Value) -> Value {
        match self.kernel.constant(mask) {
            Some(bits) => self.constant(Type::S1, u64::from(bits != 0)),
            None => self.emit_one(InstData::Any { mask }),
        }
    }

    /// A bit for each lane.
    pub(super) fn mask_bits(&mut self, mask: Value) -> Value {
        match self.kernel.constant(mask) {
            Some(bits) => self.s32((bits & ALL) as u32),
            None => self.emit_one(InstData::MaskBits { mask }),
        }
    }

    /// `then` where the condition holds, else `otherwise`.
    pub(super) fn select(&mut self, condition: Value, then: Value, otherwise: Value) -> Value {
        let all = if self.ty(condition) == Type::Mask { ALL } else { 1 };
        match self.kernel.constant(condition) {
            Some(0) => otherwise,
            Some(bits) if bits == all => then,
            _ if then == otherwise => then,
            _ if matches!(self.kernel.definition(otherwise), Some(InstData::Undef { .. })) => then,
            _ => self.emit_one(InstData::Select { condition, then, otherwise }),
        }
    }

    /// Gives blocks their parameters and branches their arguments: no variable is read after that.
    pub(super) fn fill_params(&mut self) {
        self.finish_variables();
        for (block, mut head) in std::mem::take(&mut self.heads) {
            head.append(&mut self.kernel.blocks[block].insts);
            self.kernel.blocks[block].insts = head;
        }
    }

    /// Gives the kernel up without blocks that nothing jumps to.
    pub(super) fn finish(mut self) -> Kernel {
        let reached = self.reached();
        self.kernel.layout.retain(|&block| reached.contains(block));
        self.kernel
    }

    fn reached(&self) -> EntitySet<Block> {
        let mut reached = EntitySet::new();
        let mut stack = vec![self.levels[0]];
        while let Some(block) = stack.pop() {
            if reached.insert(block)
                && let Some(&last) = self.kernel.blocks[block].insts.last()
            {
                stack.extend(self.kernel.insts[last].targets().iter().map(|call| call.block));
            }
        }
        reached
    }
}

/// Whether an operation compares integers.
fn compares(op: Op) -> bool {
    matches!(op, Op::IEq | Op::INe | Op::ULt | Op::ULe | Op::SLt | Op::SLe)
}
