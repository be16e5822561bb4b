//! Ids of the SIMD form's tables.

crate::ssa::entities! {
    /// An SSA value: a scalar that all lanes share, or one value in each lane.
    Value "v"
    /// An instruction.
    Inst "inst"
    /// A basic block.
    Block "block"
}
