//! Ids of the SIMD IR's tables.

crate::ssa::entities! {
    /// An SSA value: a uniform scalar, or a vector with one value for each lane.
    Value "v"
    /// An instruction.
    Inst "inst"
    /// A basic block.
    Block "block"
}
