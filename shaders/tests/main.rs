//! Tests of the compiler, in one program.

mod bound;
mod check;
mod checked_aliases;
mod checked_fences;
mod checked_inline;
mod checked_many;
mod float_mode;
mod footprint;
mod image;
mod ir;
mod math;
mod operations;
mod opt;
mod reader;
mod simd;
mod x86;
