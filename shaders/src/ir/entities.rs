//! Ids of the scalar IR's tables.

crate::ssa::entities! {
    /// One SSA value. Printed as `v7`.
    Value "v"
    /// One instruction. Never printed alone; instructions are named by their results.
    Inst "inst"
    /// One basic block. Printed as `block3`.
    Block "block"
    /// One descriptor binding of the kernel. Printed as `binding0`.
    Binding "binding"
    /// One workgroup, private or function variable. Printed as `var0`.
    Variable "var"
    /// One instruction of the module that checked mode observes. Printed as `site0`.
    Site "site"
    /// One chain of inlined calls. Not in the text form.
    CallPath "path"
}

/// The words of a 64-bit number, the low one first.
pub(crate) type WordPair = [Value; 2];
