//! The SIMD form at its boundaries.

mod lanes;
mod text;
mod verify;
