//! SSA form, as the scalar and the SIMD IR share it: tables of blocks with parameters, instructions and values in SSA
//! form; the text form, the verifier of their structure, and the dominator tree.
//!
//! [`Function`] is what this code sees of a kernel; the macros of `entities`, `function` and `branches` give each IR
//! its ids, the methods of its kernel and those of its terminators.

mod aliases;
mod branches;
mod dominators;
mod entities;
mod function;
mod inst_parse;
mod loops;
mod parse;
mod print;
mod verify;

pub(crate) use aliases::AliasMap;
pub(crate) use branches::branches;
pub use branches::{BlockCall, Terminator};
pub use dominators::{Dominators, FlowGraph};
pub(crate) use entities::entities;
pub(crate) use function::kernel_methods;
pub use function::{BlockParts, Cases, Definition, Function, Instruction, ValueDef, ValueList};
pub(crate) use inst_parse::{
    address_pair, atomic_operands, control, float, number_or_bits, operand, value_pair, values, word,
};
pub(crate) use loops::natural_loop;
pub use loops::{Predecessors, predecessors};
pub(crate) use parse::{Parser, ResultTypes, Syntax, parse};
pub(crate) use print::{InstText, LineOf, print_atomic_operands, print_blocks};
pub use verify::VerifyError;
pub(crate) use verify::{Operands, Rules, Verifier, broken, general};
