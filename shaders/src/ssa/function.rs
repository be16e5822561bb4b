//! [`Function`]: the interface of both kernels that this folder uses, and the methods that both have.

use std::fmt::Display;

use cranelift_entity::{EntityRef, PrimaryMap};
use smallvec::SmallVec;

use super::BlockCall;

/// Cases of a switch: literals with their targets.
pub type Cases<Block, Value> = [(u32, BlockCall<Block, Value>)];

/// An instruction of either IR.
pub trait Instruction: Display {
    /// Ids of blocks.
    type Block;
    /// Ids of values.
    type Value;

    /// Whether it ends its block.
    fn is_terminator(&self) -> bool;

    /// Targets of a terminator, in the order they are printed; empty for other instructions.
    fn targets(&self) -> SmallVec<[&BlockCall<Self::Block, Self::Value>; 2]>;

    /// Cases of a switch; empty for other instructions.
    fn cases(&self) -> &Cases<Self::Block, Self::Value>;

    /// Calls `visit` with every value used, block arguments included, in the order they are printed.
    fn for_each_use(&self, visit: impl FnMut(Self::Value));
}

/// The definition of a value.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ValueDef<Block, Inst, Type> {
    /// Result of an instruction.
    Result {
        /// The instruction.
        inst: Inst,
        /// Its index in the results.
        index: u32,
        /// Its type.
        ty: Type,
    },
    /// Parameter of a block.
    Param {
        /// The block.
        block: Block,
        /// Its index in the parameters.
        index: u32,
        /// Its type.
        ty: Type,
    },
}

impl<Block, Inst, Type: Copy> ValueDef<Block, Inst, Type> {
    /// The value's type.
    pub fn ty(self) -> Type {
        match self {
            Self::Result { ty, .. } | Self::Param { ty, .. } => ty,
        }
    }
}

/// The results of an instruction: at most one in the scalar IR, any number in the SIMD IR.
pub trait ValueList<Value> {
    /// The results in order.
    fn as_values(&self) -> &[Value];

    /// Appends a result.
    fn add(&mut self, value: Value);
}

impl<Value> ValueList<Value> for Option<Value> {
    fn as_values(&self) -> &[Value] {
        self.as_slice()
    }

    fn add(&mut self, value: Value) {
        *self = Some(value);
    }
}

impl<Value> ValueList<Value> for SmallVec<[Value; 4]> {
    fn as_values(&self) -> &[Value] {
        self
    }

    fn add(&mut self, value: Value) {
        self.push(value);
    }
}

/// Parameters and instructions of a block.
pub type BlockParts<'a, K> = (&'a [<K as Function>::Value], &'a [<K as Function>::Inst]);

/// The definition of a value of a kernel.
pub type Definition<K> = ValueDef<<K as Function>::Block, <K as Function>::Inst, <K as Function>::Type>;

/// A kernel of either IR: its tables of blocks, instructions and values.
pub trait Function: Sized {
    /// Ids of blocks.
    type Block: EntityRef + Display;
    /// Ids of instructions.
    type Inst: EntityRef + Display;
    /// Ids of values.
    type Value: EntityRef + Display;
    /// Types of values.
    type Type: Copy + PartialEq + Display;
    /// Blocks.
    type BlockData: Default;
    /// Instructions.
    type InstData: Instruction<Block = Self::Block, Value = Self::Value>;

    /// Blocks in order, entry first.
    fn layout(&self) -> &[Self::Block];

    /// Parameters and instructions of a block; `None` if it is not in the kernel.
    fn block(&self, block: Self::Block) -> Option<BlockParts<'_, Self>>;

    /// An instruction; `None` if it is not in the kernel.
    fn inst(&self, inst: Self::Inst) -> Option<&Self::InstData>;

    /// Results of an instruction.
    fn results(&self, inst: Self::Inst) -> &[Self::Value];

    /// The definition of a value; `None` if it is not in the kernel.
    fn value(&self, value: Self::Value) -> Option<Definition<Self>>;

    /// The table of blocks.
    fn blocks_mut(&mut self) -> &mut PrimaryMap<Self::Block, Self::BlockData>;

    /// The table of values.
    fn values_mut(&mut self) -> &mut PrimaryMap<Self::Value, Definition<Self>>;

    /// Appends a block to the layout.
    fn append_block(&mut self, block: Self::Block);

    /// Appends a parameter to a block.
    fn append_param(&mut self, block: Self::Block, param: Self::Value);

    /// Appends an instruction to a block.
    fn append_inst(&mut self, block: Self::Block, data: Self::InstData) -> Self::Inst;

    /// Appends a result to those of an instruction.
    fn append_result(&mut self, inst: Self::Inst, result: Self::Value);
}

/// Implements [`Function`] for the `Kernel` of an IR, and gives it the methods that both kernels have.
macro_rules! kernel_methods {
    () => {
        impl Kernel {
            /// Size of the kernel: number of blocks, instructions, block parameters and block arguments in the layout.
            pub fn size(&self) -> usize {
                let block = |&block: &Block| {
                    let BlockData { params, insts, .. } = &self.blocks[block];
                    let args = self.targets(block).iter().map(|call| call.args.len()).sum::<usize>();
                    1 + params.len() + insts.len() + args
                };
                self.layout.iter().map(block).sum()
            }

            /// Type of a value.
            pub fn ty(&self, value: Value) -> Type {
                self.values[value].ty()
            }

            /// The instruction that defines a value; `None` for parameters.
            pub fn definition(&self, value: Value) -> Option<&InstData> {
                match self.values[value] {
                    ValueDef::Result { inst, .. } => Some(&self.insts[inst]),
                    ValueDef::Param { .. } => None,
                }
            }

            /// The last instruction of a block.
            pub fn last_inst(&self, block: Block) -> Option<Inst> {
                self.blocks[block].insts.last().copied()
            }

            /// The last instruction of a block: its terminator, if the block is complete.
            pub fn terminator(&self, block: Block) -> Option<&InstData> {
                self.last_inst(block).map(|last| &self.insts[last])
            }

            /// Targets of a block's terminator.
            pub fn targets(&self, block: Block) -> SmallVec<[&BlockCall; 2]> {
                self.terminator(block).map(InstData::targets).unwrap_or_default()
            }

            /// Bits of a constant: of a vector those of one lane (all lanes are equal), of a mask those of all lanes.
            pub fn constant(&self, value: Value) -> Option<u64> {
                match self.definition(value)? {
                    InstData::Const { bits, .. } => Some(*bits),
                    _ => None,
                }
            }

            /// Source position of an instruction, if the module has debug lines.
            pub fn line_of(&self, inst: Inst) -> Option<&SourceLine> {
                SourceLine::of_word(&self.lines, self.origins[inst])
            }

            /// The text form with `; file:line` comments where the source line changes, if the module has debug lines.
            /// It parses to the same kernel.
            pub fn with_source_lines(&self) -> impl std::fmt::Display + '_ {
                std::fmt::from_fn(|f| self.print(f, Some(&|inst| self.line_of(inst).map(SourceLine::parts))))
            }

            /// Reads the text form.
            ///
            /// # Errors
            ///
            /// The first syntax error, or use of an undefined value.
            pub fn parse(text: &str) -> Result<Self, $crate::text::ParseError> {
                $crate::ssa::parse(text)
            }
        }

        impl std::fmt::Display for Kernel {
            fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                self.print(f, None)
            }
        }

        impl $crate::ssa::Function for Kernel {
            type Block = Block;
            type Inst = Inst;
            type Value = Value;
            type Type = Type;
            type BlockData = BlockData;
            type InstData = InstData;

            fn layout(&self) -> &[Block] {
                &self.layout
            }

            fn block(&self, block: Block) -> Option<(&[Value], &[Inst])> {
                self.blocks.get(block).map(|data| (&data.params[..], &data.insts[..]))
            }

            fn inst(&self, inst: Inst) -> Option<&InstData> {
                self.insts.get(inst)
            }

            fn results(&self, inst: Inst) -> &[Value] {
                $crate::ssa::ValueList::as_values(&self.results[inst])
            }

            fn value(&self, value: Value) -> Option<ValueDef> {
                self.values.get(value).copied()
            }

            fn blocks_mut(&mut self) -> &mut PrimaryMap<Block, BlockData> {
                &mut self.blocks
            }

            fn values_mut(&mut self) -> &mut PrimaryMap<Value, ValueDef> {
                &mut self.values
            }

            fn append_block(&mut self, block: Block) {
                self.layout.push(block);
            }

            fn append_param(&mut self, block: Block, param: Value) {
                self.blocks[block].params.push(param);
            }

            fn append_inst(&mut self, block: Block, data: InstData) -> Inst {
                let inst = self.insts.push(data);
                self.blocks[block].insts.push(inst);
                inst
            }

            fn append_result(&mut self, inst: Inst, result: Value) {
                $crate::ssa::ValueList::add(&mut self.results[inst], result);
            }
        }
    };
}

pub(crate) use kernel_methods;
