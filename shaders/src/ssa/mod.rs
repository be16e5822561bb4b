//! Shared by the scalar and the SIMD IR: both are tables of blocks with parameters, instructions and values in SSA
//! form, with one text form, one structural verifier and one dominator tree.
//!
//! [`Function`] is the interface of a kernel that this code uses; the macros of `entities`, `function` and `branches`
//! generate each IR's ids, and the methods of its kernel and terminators.

mod branches;
mod dominators;
mod entities;
mod function;
mod inst_parse;
mod loops;
mod parse;
mod print;
mod verify;

pub(crate) use branches::branches;
pub use branches::{BlockCall, Terminator};
pub use dominators::{Dominators, FlowGraph};
pub(crate) use entities::entities;
pub(crate) use function::kernel_methods;
pub use function::{Function, Instruction, ValueDef, ValueList};
pub(crate) use inst_parse::{
    address_pair, atomic_operands, control, float, number_or_bits, operand, value_pair, values, word,
};
pub(crate) use loops::natural_loop;
pub use loops::{Predecessors, predecessors};
pub(crate) use parse::{Parser, Syntax, Types, parse};
pub(crate) use print::{InstText, print_atomic_operands, print_blocks};
pub use verify::VerifyError;
pub(crate) use verify::{Operands, Rules, Verifier, broken, general};
