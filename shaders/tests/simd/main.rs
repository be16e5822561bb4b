//! The SIMD form at its boundaries.

mod ahead;
mod groups;
mod hoist;
mod lanes;
mod pairs;
#[path = "../ir/random.rs"]
mod random;
mod schedule;
mod serial;
mod slots;
mod text;
mod verify;
mod widened;

use spelter_shaders::ir;
use spelter_shaders::simd::{Kernel, widen};

/// The SIMD form of a kernel's text, both verified.
fn widened_text(source: &str) -> Kernel {
    let kernel = ir::Kernel::parse(source).unwrap_or_else(|error| panic!("{error}\n{source}"));
    ir::verify(&kernel).unwrap_or_else(|error| panic!("{error}\n{source}"));
    let widened = widen(&kernel).expect("it has a SIMD form");
    assert_eq!(spelter_shaders::simd::verify(&widened), Ok(()), "{widened}");
    widened
}
