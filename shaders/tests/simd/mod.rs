//! The SIMD form at its boundaries.

mod active_lanes;
mod context_slots;
mod inline_samples;
mod schedule;
mod subgroup_loops;
mod text;
mod unroll_and_jam;
mod vectorized;
mod verify;
mod widen_loop_loads;
mod workgroup_loop;

use spelter_shaders::ir;
use spelter_shaders::simd::Kernel;
use spelter_shaders::vectorize::{AccessCosts, widen};

/// The SIMD form of a kernel's text, both verified.
fn widened_text(source: &str) -> Kernel {
    let kernel = ir::Kernel::parse(source).unwrap_or_else(|error| panic!("{error}\n{source}"));
    ir::verify(&kernel).unwrap_or_else(|error| panic!("{error}\n{source}"));
    let widened = widen(&kernel, &AccessCosts::AVX512).expect("it has a SIMD form");
    assert_eq!(spelter_shaders::simd::verify(&widened), Ok(()), "{widened}");
    widened
}
