//! Lowering: operations that the machine lacks become operations that it has, still in scalar IR.

pub mod math;
