//! Replaces instructions by expansions: new instructions are inserted before the replaced one, constants at the start
//! of the entry block. Rarely needed code can go to a separate block.

use cranelift_entity::SecondaryMap;
use foldhash::{HashMap, HashMapExt};
use smallvec::SmallVec;

use crate::ir::{Block, BlockCall, BlockData, Inst, InstData, Kernel, Merge, Op, ScalarValue, Type, Value, ValueDef};

/// Replaces each operation that `wanted` selects by the instructions that `expansion` emits.
pub(super) fn expand(
    kernel: &mut Kernel,
    wanted: impl Fn(Op) -> bool,
    expansion: fn(&mut Emit<'_>, Op, &[Value]) -> Value,
    exponents: bool,
) {
    let is_wanted = |&inst: &Inst| matches!(kernel.insts[inst], InstData::Pure { op, .. } if wanted(op));
    if !kernel.layout.iter().any(|&block| kernel.blocks[block].insts.iter().any(is_wanted)) {
        return;
    }
    let layout = std::mem::take(&mut kernel.layout);
    let entry = layout[0];
    let mut emit = Emit::new(kernel, entry, exponents);
    for block in layout {
        emit.expand_block(block, &wanted, expansion);
    }
    emit.finish(entry);
}

/// Emits at the position of the instruction that is being replaced.
pub(super) struct Emit<'a> {
    kernel: &'a mut Kernel,
    /// The block that receives instructions, and its instructions so far.
    current: Block,
    insts: Vec<Inst>,
    /// The construct that the terminator of the block being expanded opens, while that block is split.
    merge: Option<Merge>,
    /// New constants, for the start of the entry block.
    prologue: Vec<Inst>,
    constants: HashMap<(Type, u64), Value>,
    replaced: SecondaryMap<Value, Option<Value>>,
    /// New instructions with `NoContraction`.
    rounds: Vec<Inst>,
    /// Reduced angles of the block being expanded: sine and cosine of one angle share them.
    angles: HashMap<Value, [Value; 2]>,
    /// Divisions of the block being expanded: both words of quotient and remainder share one expansion.
    divisions: HashMap<[Value; 4], [[Value; 2]; 2]>,
    origin: u32,
    precise: bool,
    exponents: bool,
}

impl<'a> Emit<'a> {
    fn new(kernel: &'a mut Kernel, current: Block, exponents: bool) -> Self {
        Self {
            kernel,
            current,
            insts: Vec::new(),
            merge: None,
            prologue: Vec::new(),
            constants: HashMap::new(),
            replaced: SecondaryMap::new(),
            rounds: Vec::new(),
            angles: HashMap::new(),
            divisions: HashMap::new(),
            origin: 0,
            precise: false,
            exponents,
        }
    }

    fn expand_block(
        &mut self,
        block: Block,
        wanted: impl Fn(Op) -> bool,
        expansion: fn(&mut Self, Op, &[Value]) -> Value,
    ) {
        let insts = std::mem::take(&mut self.kernel.blocks[block].insts);
        self.current = block;
        self.insts = Vec::with_capacity(insts.len());
        self.merge = self.kernel.blocks[block].merge;
        self.angles.clear();
        self.divisions.clear();
        for inst in insts {
            match &self.kernel.insts[inst] {
                InstData::Pure { op, args } if wanted(*op) => {
                    let (op, mut args) = (*op, args.clone());
                    args.iter_mut().for_each(|arg| *arg = self.resolve(*arg));
                    self.origin = self.kernel.origins[inst];
                    self.precise = self.kernel.no_contraction.contains(inst);
                    let result = expansion(self, op, &args);
                    self.replace(inst, result);
                }
                _ => self.insts.push(inst),
            }
        }
        self.end_block(block);
    }

    /// Replaces uses of the instruction's result by `by`.
    fn replace(&mut self, inst: Inst, by: Value) {
        let Some(value) = self.kernel.results[inst].take() else { return };
        // A value that would replace itself belongs to a cycle of definitions in unreachable code.
        let by = if self.resolve(by) == value { self.constant(0, self.kernel.ty(value)) } else { by };
        self.replaced[value] = Some(by);
    }

    /// The replacement of a value; shortens the chain of replacements (path compression).
    fn resolve(&mut self, mut value: Value) -> Value {
        while let Some(next) = self.replaced[value] {
            if let Some(after) = self.replaced[next] {
                self.replaced[value] = Some(after);
            }
            value = next;
        }
        value
    }

    fn finish(mut self, entry: Block) {
        self.kernel.blocks[entry].insts.splice(0..0, std::mem::take(&mut self.prologue));
        // The last first: the set then grows once, to its final size.
        self.kernel.no_contraction.extend(self.rounds.iter().rev().copied());
        for position in 0..self.kernel.layout.len() {
            let insts = std::mem::take(&mut self.kernel.blocks[self.kernel.layout[position]].insts);
            for &inst in &insts {
                let mut data = std::mem::replace(&mut self.kernel.insts[inst], InstData::Unreachable);
                data.for_each_use_mut(|value| *value = self.resolve(*value));
                self.kernel.insts[inst] = data;
            }
            self.kernel.blocks[self.kernel.layout[position]].insts = insts;
        }
    }

    /// A constant by its bits.
    fn constant(&mut self, bits: u64, ty: Type) -> Value {
        if let Some(&value) = self.constants.get(&(ty, bits)) {
            return value;
        }
        let inst = self.kernel.insts.push(InstData::Const { ty, bits });
        self.prologue.push(inst);
        let value = self.define(inst, ty);
        self.constants.insert((ty, bits), value);
        value
    }

    fn define(&mut self, inst: Inst, ty: Type) -> Value {
        self.kernel.define(inst, ty)
    }

    fn push(&mut self, data: InstData) -> Inst {
        let inst = self.kernel.insts.push(data);
        self.kernel.origins[inst] = self.origin;
        self.insts.push(inst);
        inst
    }

    /// An operation, folded if all operands are constants.
    fn pure<const N: usize>(&mut self, op: Op, args: [Value; N]) -> Value {
        let bits: Option<SmallVec<[u64; 4]>> = args.iter().map(|&arg| self.kernel.constant(arg)).collect();
        if let Some(bits) = bits {
            return self.constant(op.fold(&bits), op.result());
        }
        if let Some(value) = self.neutral(op, &args) {
            return value;
        }
        let inst = self.push(InstData::Pure { op, args: SmallVec::from_slice(&args) });
        if matches!(op, Op::FAdd | Op::FSub | Op::FMul) {
            // Expansions rely on each rounding.
            self.rounds.push(inst);
        }
        self.define(inst, op.result())
    }

    /// The value's number if it is a constant.
    pub(super) fn known(&self, value: Value) -> Option<f32> {
        self.kernel.constant(value).map(|bits| f32::from_bits(bits as u32))
    }

    /// Whether `significand`, `exponent` and `scale` are kept.
    pub(super) fn has_exponents(&self) -> bool {
        self.exponents
    }

    /// Whether the operation being expanded must round exactly as defined (`NoContraction`).
    pub(super) fn is_precise(&self) -> bool {
        self.precise
    }

    /// The reduced angle of `angle`: that of an earlier expansion in the block, or a new one from `reduce`.
    pub(super) fn angle(&mut self, angle: Value, reduce: impl FnOnce(&mut Self, Value) -> [Value; 2]) -> [Value; 2] {
        if let Some(&reduced) = self.angles.get(&angle) {
            return reduced;
        }
        let reduced = reduce(self, angle);
        self.angles.insert(angle, reduced);
        reduced
    }

    /// Quotient and remainder of these words: those of an earlier expansion in the block, or new ones from `divide`.
    pub(super) fn division(
        &mut self,
        args: [Value; 4],
        divide: impl FnOnce(&mut Self, [Value; 4]) -> [[Value; 2]; 2],
    ) -> [[Value; 2]; 2] {
        if let Some(&known) = self.divisions.get(&args) {
            return known;
        }
        let results = divide(self, args);
        self.divisions.insert(args, results);
        results
    }

    /// An operation without a method below.
    pub(super) fn operation<const N: usize>(&mut self, op: Op, args: [Value; N]) -> Value {
        self.pure(op, args)
    }

    /// A word.
    pub(super) fn word(&mut self, word: u32) -> Value {
        self.constant(u64::from(word), Type::I32)
    }

    /// Simplifies logical operations with one constant operand: special cases of constant arguments disappear.
    fn neutral(&self, op: Op, args: &[Value]) -> Option<Value> {
        let absorbing = match op {
            Op::LAnd => 0,
            Op::LOr => 1,
            _ => return None,
        };
        let (known, other) = match self.kernel.constant(args[0]) {
            Some(_) => (args[0], args[1]),
            None => (args[1], args[0]),
        };
        self.kernel.constant(known).map(|bits| if bits == absorbing { known } else { other })
    }

    /// `condition ? then : otherwise`.
    pub(super) fn select(&mut self, condition: Value, then: impl IntoValue, otherwise: impl IntoValue) -> Value {
        let (then, otherwise) = (then.value(self), otherwise.value(self));
        match self.kernel.constant(condition) {
            Some(0) => otherwise,
            Some(_) => then,
            None => {
                let ty = self.kernel.ty(then);
                let inst = self.push(InstData::Select { condition, then, otherwise });
                self.define(inst, ty)
            }
        }
    }

    /// `common` where `condition` is false, else the result of `emit`, in a block that is entered only then.
    pub(super) fn rarely<const N: usize>(
        &mut self,
        condition: Value,
        common: [Value; N],
        emit: impl FnOnce(&mut Self) -> [Value; N],
    ) -> [Value; N] {
        self.leave_loop_header();
        let [rare, merge] = std::array::from_fn(|_| self.kernel.blocks.push(BlockData::default()));
        let params = common.map(|value| self.add_param(merge, value));
        let call = |args: [Value; N]| BlockCall { block: merge, args: SmallVec::from_slice(&args) };
        let (then, otherwise) = (BlockCall::new(rare), call(common));
        self.push(InstData::Branch { condition, then, otherwise });
        self.start(rare, Some(Merge::Selection { merge }));
        let results = emit(self);
        self.push(InstData::Jump { to: call(results) });
        self.start(merge, None);
        params
    }

    fn add_param(&mut self, block: Block, like: Value) -> Value {
        let index = self.kernel.blocks[block].params.len() as u32;
        let ty = self.kernel.ty(like);
        let value = self.kernel.values.push(ValueDef::Param { block, index, ty });
        self.kernel.blocks[block].params.push(value);
        value
    }

    /// A loop header keeps its annotation; expansion continues in a block that can have its own.
    fn leave_loop_header(&mut self) {
        let Some(Merge::Loop { .. }) = self.kernel.blocks[self.current].merge else { return };
        let next = self.kernel.blocks.push(BlockData::default());
        self.push(InstData::Jump { to: BlockCall::new(next) });
        self.start(next, self.merge);
    }

    /// Ends the current block, which opens `merge`, and continues in `next`.
    fn start(&mut self, next: Block, merge: Option<Merge>) {
        self.kernel.blocks[self.current].merge = merge;
        self.append_block();
        self.current = next;
    }

    /// Adds the current block to the layout.
    fn append_block(&mut self) {
        self.kernel.blocks[self.current].insts = std::mem::take(&mut self.insts);
        self.kernel.layout.push(self.current);
    }

    /// Ends the expansion of `block`: the last of its parts gets the terminator and the construct that this opens.
    fn end_block(&mut self, block: Block) {
        if self.current != block {
            match self.merge {
                Some(Merge::Loop { merge, continuing }) => self.end_loop_header(block, merge, continuing),
                selection => self.kernel.blocks[self.current].merge = selection,
            }
        }
        self.append_block();
    }

    /// The header's terminator has moved to the current block.
    fn end_loop_header(&mut self, header: Block, merge: Block, continuing: Block) {
        if continuing == header {
            // A single-block loop: the terminator alone becomes the continue target.
            let last = self.insts.pop();
            let next = self.kernel.blocks.push(BlockData::default());
            self.push(InstData::Jump { to: BlockCall::new(next) });
            self.start(next, None);
            self.insts.extend(last);
            self.kernel.blocks[header].merge = Some(Merge::Loop { merge, continuing: next });
        }
    }
}

/// A value, or a number to be made a constant.
pub(super) trait IntoValue {
    /// The value.
    fn value(self, e: &mut Emit<'_>) -> Value;
}

impl IntoValue for Value {
    fn value(self, _: &mut Emit<'_>) -> Value {
        self
    }
}

impl<T: ScalarValue> IntoValue for T {
    fn value(self, e: &mut Emit<'_>) -> Value {
        e.constant(self.to_bits(), T::TYPE)
    }
}

macro_rules! define_methods {
    ($($name:ident $op:ident $($arg:ident)+;)*) => {
        /// One method for each basic operation that expansions use.
        impl Emit<'_> {
            $(
                pub(super) fn $name(&mut self, $($arg: impl IntoValue),+) -> Value {
                    let args = [$($arg.value(self)),+];
                    self.pure(Op::$op, args)
                }
            )*
        }
    };
}

define_methods! {
    iadd IAdd a b;
    isub ISub a b;
    imul IMul a b;
    umul_high UMulHigh a b;
    ineg INeg a;
    sabs SAbs a;
    umin UMin a b;
    umax UMax a b;
    smin SMin a b;
    smax SMax a b;
    ieq IEq a b;
    ine INe a b;
    ult ULt a b;
    ule ULe a b;
    slt SLt a b;
    and And a b;
    or Or a b;
    xor Xor a b;
    not Not a;
    shl Shl a b;
    lshr LShr a b;
    ashr AShr a b;
    land LAnd a b;
    lor LOr a b;
    lnot LNot a;
    bool_to_int BoolToInt a;
    find_umsb FindUMsb a;
    fadd FAdd a b;
    fsub FSub a b;
    fmul FMul a b;
    fdiv FDiv a b;
    fneg FNeg a;
    fma Fma a b c;
    fabs FAbs a;
    fmin FMin a b;
    fmax FMax a b;
    sqrt Sqrt a;
    trunc Trunc a;
    floor Floor a;
    ford_eq FOrdEq a b;
    ford_ne FOrdNe a b;
    ford_lt FOrdLt a b;
    is_inf IsInf a;
    float_bits FloatBits a;
    float_from_bits FloatFromBits a;
    float_to_sint FloatToSInt a;
    float_to_uint FloatToUInt a;
    uint_to_float UIntToFloat a;
    sint_to_float SIntToFloat a;
    half_bits HalfBits a;
    half_from_bits HalfFromBits a;
    significand Significand a;
    exponent Exponent a;
    scale Scale a n;
}

/// Idioms shared by several chapters.
impl Emit<'_> {
    /// The sign bit of a float, at its bit position.
    pub(super) fn sign_bit(&mut self, a: impl IntoValue) -> Value {
        let bits = self.float_bits(a);
        self.and(bits, 0x8000_0000u32)
    }

    /// Flips the sign of a float by the sign bit in `sign`, which has no other bits.
    pub(super) fn flip_sign(&mut self, a: Value, sign: Value) -> Value {
        let bits = self.float_bits(a);
        let flipped = self.xor(bits, sign);
        self.float_from_bits(flipped)
    }

    /// The magnitude of `a` with the sign of `sign`.
    pub(super) fn copysign(&mut self, a: impl IntoValue, sign: Value) -> Value {
        let magnitude = self.fabs(a);
        let sign = self.sign_bit(sign);
        let bits = self.float_bits(magnitude);
        let bits = self.or(bits, sign);
        self.float_from_bits(bits)
    }

    /// Evaluates a polynomial by Horner's rule; the highest coefficient first.
    pub(super) fn polynomial(&mut self, a: Value, coefficients: &[f32]) -> Value {
        let mut sum = coefficients[0].value(self);
        for &coefficient in &coefficients[1..] {
            sum = self.fma(sum, a, coefficient);
        }
        sum
    }
}
