//! Lowering: what the machine does not have becomes what it has, still as scalar IR.

pub mod math;
