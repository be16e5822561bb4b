//! Terminators: the instructions that end a block, and their targets.

use smallvec::SmallVec;

/// A branch target with the arguments for its parameters.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct BlockCall<Block, Value> {
    /// Target.
    pub block: Block,
    /// One argument for each parameter of the target.
    pub args: SmallVec<[Value; 4]>,
}

impl<Block, Value> BlockCall<Block, Value> {
    /// A target without arguments.
    pub fn new(block: Block) -> Self {
        Self { block, args: SmallVec::new() }
    }
}

/// A terminator as the text form has it.
#[derive(Clone, Debug)]
pub enum Terminator<Block, Value> {
    /// `jump block1(v0, v1)`
    Jump {
        /// Target.
        to: BlockCall<Block, Value>,
    },
    /// `branch v0, block1, block2(v3)`
    Branch {
        /// A truth value.
        condition: Value,
        /// Taken if true.
        then: BlockCall<Block, Value>,
        /// Taken if false.
        otherwise: BlockCall<Block, Value>,
    },
    /// `switch v0, block9 [1: block2, 5: block3(v1)]`
    Switch {
        /// A 32-bit integer.
        selector: Value,
        /// Taken when no case matches.
        default: BlockCall<Block, Value>,
        /// Literals, all different, with their targets.
        cases: Vec<(u32, BlockCall<Block, Value>)>,
    },
    /// `return`
    Return,
}

/// Gives an `InstData` with the variants of [`Terminator`] the methods of its branch targets, and makes it an
/// [`Instruction`](super::Instruction).
macro_rules! branches {
    () => {
        impl InstData {
            /// Targets of a terminator, in the order they are printed; empty for other instructions.
            pub fn targets(&self) -> SmallVec<[&BlockCall; 2]> {
                match self {
                    Self::Jump { to } => smallvec::smallvec![to],
                    Self::Branch { then, otherwise, .. } => smallvec::smallvec![then, otherwise],
                    Self::Switch { default, cases, .. } => {
                        std::iter::once(default).chain(cases.iter().map(|(_, call)| call)).collect()
                    }
                    _ => SmallVec::new(),
                }
            }

            /// As [`InstData::targets`], mutable.
            pub fn targets_mut(&mut self) -> SmallVec<[&mut BlockCall; 2]> {
                match self {
                    Self::Jump { to } => smallvec::smallvec![to],
                    Self::Branch { then, otherwise, .. } => smallvec::smallvec![then, otherwise],
                    Self::Switch { default, cases, .. } => {
                        std::iter::once(default).chain(cases.iter_mut().map(|(_, call)| call)).collect()
                    }
                    _ => SmallVec::new(),
                }
            }

            /// The target at an index of [`InstData::targets`], in constant time.
            pub fn target(&self, number: usize) -> Option<&BlockCall> {
                match (self, number) {
                    (Self::Jump { to }, 0) => Some(to),
                    (Self::Branch { then, .. }, 0) => Some(then),
                    (Self::Branch { otherwise, .. }, 1) => Some(otherwise),
                    (Self::Switch { default, .. }, 0) => Some(default),
                    (Self::Switch { cases, .. }, _) => cases.get(number.checked_sub(1)?).map(|(_, call)| call),
                    _ => None,
                }
            }
        }

        impl From<$crate::ssa::Terminator<Block, Value>> for InstData {
            fn from(terminator: $crate::ssa::Terminator<Block, Value>) -> Self {
                use $crate::ssa::Terminator;
                match terminator {
                    Terminator::Jump { to } => Self::Jump { to },
                    Terminator::Branch { condition, then, otherwise } => Self::Branch { condition, then, otherwise },
                    Terminator::Switch { selector, default, cases } => Self::Switch { selector, default, cases },
                    Terminator::Return => Self::Return,
                }
            }
        }

        impl $crate::ssa::Instruction for InstData {
            type Block = Block;
            type Value = Value;

            fn is_terminator(&self) -> bool {
                self.is_terminator()
            }

            fn targets(&self) -> SmallVec<[&BlockCall; 2]> {
                self.targets()
            }

            fn cases(&self) -> &[(u32, BlockCall)] {
                match self {
                    Self::Switch { cases, .. } => cases,
                    _ => &[],
                }
            }

            fn for_each_use(&self, visit: impl FnMut(Value)) {
                self.for_each_use(visit);
            }
        }
    };
}

pub(crate) use branches;
