//! Scalars of uniform blocks, for tools that fill buffers by themselves.

/// A scalar of a uniform block.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct UniformScalar {
    /// Its offset in the block, in bytes.
    pub offset: u32,
    /// Its size: 1, 2, 4 or 8 bytes.
    pub bytes: u32,
    /// Whether it is a float, else an integer.
    pub is_float: bool,
}
