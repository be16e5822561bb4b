//! Builds a [`Kernel`] block by block, with constant folding.

use std::collections::HashMap;

use cranelift_entity::EntitySet;
use smallvec::SmallVec;

use super::order::reverse_postorder;
use super::{
    Access, Block, BlockData, BufferSpace, BuiltIn, CallData, CallPath, Inst, InstData, Kernel, Merge, Op, Place,
    ScalarValue, SubgroupOp, Type, Value, ValueDef, Width,
};

/// Appends instructions to the current block of a kernel.
///
/// Each constant exists once, in the prologue (the start of the entry block), so it dominates every use.
#[derive(Debug)]
pub struct Builder {
    kernel: Kernel,
    current: Block,
    prologue: Vec<Inst>,
    in_prologue: bool,
    constant_values: HashMap<(Type, u64), Value>,
    origin: u32,
    calls: Option<CallPath>,
    no_contraction: bool,
}

impl Builder {
    /// Starts in a new entry block.
    pub fn new(mut kernel: Kernel) -> Self {
        let current = kernel.blocks.push(BlockData::default());
        kernel.layout.push(current);
        Self {
            kernel,
            current,
            prologue: Vec::new(),
            in_prologue: false,
            constant_values: HashMap::new(),
            origin: 0,
            calls: None,
            no_contraction: false,
        }
    }

    /// The kernel so far, to declare bindings and variables and to query types.
    pub fn kernel(&mut self) -> &mut Kernel {
        &mut self.kernel
    }

    /// Sets the SPIR-V word from which the following instructions come.
    pub fn set_origin(&mut self, word: u32) {
        self.origin = word;
    }

    /// The SPIR-V word from which the following instructions come.
    pub fn origin(&self) -> u32 {
        self.origin
    }

    /// The following instructions are inlined through the call at that word, and through those before.
    pub fn enter_call(&mut self, word: u32) {
        self.calls = Some(self.kernel.calls.push(CallData { word, within: self.calls }));
    }

    /// The following instructions come after the innermost inlined call.
    pub fn leave_call(&mut self) {
        self.calls = self.calls.and_then(|path| self.kernel.calls[path].within);
    }

    /// Sets whether the following float operations are marked `NoContraction`.
    pub fn set_no_contraction(&mut self, on: bool) {
        self.no_contraction = on;
    }

    /// A new block; it is not in the layout until [`Builder::switch_to`].
    pub fn create_block(&mut self) -> Block {
        self.kernel.blocks.push(BlockData::default())
    }

    /// The block to which instructions are appended.
    pub fn current(&self) -> Block {
        self.current
    }

    /// Makes `block` the current block.
    pub fn switch_to(&mut self, block: Block) {
        self.current = block;
    }

    /// Sets whether instructions are appended to the prologue instead of the current block, for values that are
    /// invariant in the invocation. Returns the previous setting.
    pub fn set_prologue(&mut self, on: bool) -> bool {
        std::mem::replace(&mut self.in_prologue, on)
    }

    /// Appends what `emit` emits to the prologue.
    pub fn in_prologue<R>(&mut self, emit: impl FnOnce(&mut Self) -> R) -> R {
        let before = self.set_prologue(true);
        let result = emit(self);
        self.set_prologue(before);
        result
    }

    /// Adds a parameter to a block.
    pub fn add_param(&mut self, block: Block, ty: Type) -> Value {
        let index = self.kernel.blocks[block].params.len() as u32;
        let value = self.kernel.values.push(ValueDef::Param { block, index, ty });
        self.kernel.blocks[block].params.push(value);
        value
    }

    /// Annotates the current block's terminator with the construct that it opens.
    pub fn set_merge(&mut self, merge: Merge) {
        self.kernel.blocks[self.current].merge = Some(merge);
    }

    /// Type of a value.
    pub fn ty(&self, value: Value) -> Type {
        self.kernel.ty(value)
    }

    /// Appends an instruction without a result.
    pub fn push(&mut self, data: InstData) -> Inst {
        let is_float = matches!(&data, InstData::Pure { op, .. } if op.result() == Type::F32);
        let inst = self.kernel.insts.push(data);
        self.kernel.origins[inst] = self.origin;
        if self.calls.is_some() {
            self.kernel.inlined_at[inst] = self.calls;
        }
        if self.no_contraction && is_float {
            self.kernel.no_contraction.insert(inst);
        }
        if self.in_prologue {
            self.prologue.push(inst);
        } else {
            self.kernel.blocks[self.current].insts.push(inst);
        }
        inst
    }

    /// Appends an instruction with a result.
    pub fn push_value(&mut self, data: InstData, ty: Type) -> Value {
        let inst = self.push(data);
        self.define(inst, ty)
    }

    fn define(&mut self, inst: Inst, ty: Type) -> Value {
        self.kernel.define(inst, ty)
    }

    /// A constant by its bits.
    pub fn constant_bits(&mut self, ty: Type, bits: u64) -> Value {
        if let Some(&value) = self.constant_values.get(&(ty, bits)) {
            return value;
        }
        let inst = self.kernel.insts.push(InstData::Const { ty, bits });
        self.prologue.push(inst);
        let value = self.define(inst, ty);
        self.constant_values.insert((ty, bits), value);
        value
    }

    /// A constant: `builder.constant(7u32)`.
    pub fn constant<T: ScalarValue>(&mut self, value: T) -> Value {
        self.constant_bits(T::TYPE, value.to_bits())
    }

    /// A pure operation, folded if all operands are constants.
    pub fn pure(&mut self, op: Op, args: &[Value]) -> Value {
        debug_assert_eq!(args.len(), op.params().len(), "{}", op.name());
        let bits: Option<SmallVec<[u64; 4]>> = args.iter().map(|&arg| self.kernel.constant(arg)).collect();
        if let Some(bits) = bits {
            return self.constant_bits(op.result(), op.fold(&bits));
        }
        // Copying a half preserves its bits, including those of a signaling NaN, with and without optimisation.
        if let (Op::HalfBits, Some(bits)) = (op, self.bits_of_half(args[0])) {
            let mask = self.constant(0xffff_u32);
            return self.pure(Op::And, &[bits, mask]);
        }
        self.push_value(InstData::Pure { op, args: SmallVec::from_slice(args) }, op.result())
    }

    /// The word from which a half was unpacked.
    fn bits_of_half(&self, half: Value) -> Option<Value> {
        match self.kernel.definition(half)? {
            InstData::Pure { op: Op::HalfFromBits, args } => Some(args[0]),
            _ => None,
        }
    }

    /// `condition ? then : otherwise`, folded if the condition is constant.
    pub fn select(&mut self, condition: Value, then: Value, otherwise: Value) -> Value {
        match self.kernel.constant(condition) {
            Some(0) => otherwise,
            Some(_) => then,
            None if then == otherwise => then,
            None => {
                let ty = self.ty(then);
                self.push_value(InstData::Select { condition, then, otherwise }, ty)
            }
        }
    }

    /// A subgroup operation.
    pub fn subgroup(&mut self, op: SubgroupOp, args: &[Value]) -> Value {
        self.push_value(InstData::Subgroup { op, args: SmallVec::from_slice(args) }, op.result())
    }

    /// A component of a built-in.
    pub fn builtin(&mut self, builtin: BuiltIn, component: u8) -> Value {
        self.push_value(InstData::BuiltIn { builtin, component }, Type::I32)
    }

    /// Byte offset of an array element, clamped to `u32::MAX`; folded if it is constant.
    pub fn element(&mut self, base: Value, index: Value, stride: u32) -> Value {
        match (self.kernel.constant(base), self.kernel.constant(index)) {
            (_, Some(0)) => base,
            (Some(base), Some(index)) => self.constant(element(base as u32, index as u32, stride)),
            _ => self.push_value(InstData::Element { base, index, stride }, Type::I32),
        }
    }

    /// Loads a scalar.
    pub fn load(&mut self, ty: Type, place: Place, access: Access) -> Value {
        self.push_value(InstData::Load { ty, width: Width::Word, place, access }, ty)
    }

    /// Loads an integer of `width`, zero-extended.
    pub fn load_bytes(&mut self, width: Width, place: Place, access: Access) -> Value {
        self.push_value(InstData::Load { ty: Type::I32, width, place, access }, Type::I32)
    }

    /// Stores a scalar.
    pub fn store(&mut self, place: Place, value: Value, access: Access) {
        self.push(InstData::Store { width: Width::Word, place, value, access });
    }

    /// Stores the low bytes of an integer.
    pub fn store_bytes(&mut self, width: Width, place: Place, value: Value, access: Access) {
        self.push(InstData::Store { width, place, value, access });
    }

    /// A place in a buffer.
    pub fn buffer_place(space: BufferSpace, buffer: Value, offset: Value) -> Place {
        Place::Buffer { space, buffer, offset }
    }

    /// Finishes the kernel: drops unreachable blocks, sorts the rest in reverse postorder, and puts the used values of
    /// the prologue at the start of the entry block.
    pub fn finish(mut self) -> Kernel {
        let entry = self.kernel.layout[0];
        self.kernel.layout = reverse_postorder(&self.kernel, entry);
        let prologue = self.used_prologue();
        self.kernel.blocks[entry].insts.splice(0..0, prologue);
        self.kernel
    }

    fn used_prologue(&self) -> Vec<Inst> {
        let kernel = &self.kernel;
        let mut used = EntitySet::with_capacity(kernel.values.len());
        for &block in &kernel.layout {
            for &inst in &kernel.blocks[block].insts {
                kernel.insts[inst].for_each_use(|value| _ = used.insert(value));
            }
        }
        let mut kept: Vec<Inst> = Vec::new();
        for &inst in self.prologue.iter().rev() {
            if kernel.results[inst].is_none_or(|value| used.contains(value)) {
                kernel.insts[inst].for_each_use(|value| _ = used.insert(value));
                kept.push(inst);
            }
        }
        kept.reverse();
        kept
    }
}

/// The semantics of `element`, shared by constant folding and the interpreter.
pub fn element(base: u32, index: u32, stride: u32) -> u32 {
    u32::try_from(u64::from(base) + u64::from(index) * u64::from(stride)).unwrap_or(u32::MAX)
}
