//! Typed ids: each is an index into a table of the [`Kernel`](super::Kernel) and prints as the text form reads it.

use cranelift_entity::entity_impl;

/// One SSA value. Printed as `v7`.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Value(u32);
entity_impl!(Value, "v");

/// One instruction. Never printed alone; instructions are named by their results.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Inst(u32);
entity_impl!(Inst, "inst");

/// One basic block. Printed as `block3`.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Block(u32);
entity_impl!(Block, "block");

/// One descriptor binding of the kernel. Printed as `binding0`.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Binding(u32);
entity_impl!(Binding, "binding");

/// One workgroup, private or function variable. Printed as `var0`.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Variable(u32);
entity_impl!(Variable, "var");
