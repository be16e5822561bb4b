//! The SIMD form at its boundaries.

mod text;
