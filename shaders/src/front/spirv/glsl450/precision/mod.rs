//! Tests each float instruction against an independently computed reference, and measures its error in units in the
//! last place.
//!
//! References use double precision and the platform's mathematical functions, which share no code with ours. The
//! largest errors are listed in `docs/precision.md`; the test fails if that table is out of date, and `BLESS=1`
//! rewrites it.

mod core_cases;
mod error;
mod float_cases;
mod geometry_cases;
mod input;
mod integer_cases;
mod report;

use super::super::arithmetic::ArithmeticType;
use super::super::arithmetic::testing::{AnyInst, builder, evaluate};
use error::{CorrectResult, error_of};
use input::{InputSet, Random};

/// Inputs for each instruction.
const INPUTS: usize = 20_000;

/// An instruction with its reference.
struct Case {
    which: AnyInst,
    result: ArithmeticType,
    operands: &'static [(ArithmeticType, InputSet)],
    reference: fn(&[u32]) -> Vec<CorrectResult>,
    /// Largest error allowed, in units in the last place.
    bound: f64,
    /// The requirement of Vulkan.
    rule: &'static str,
}

fn cases() -> Vec<Case> {
    [core_cases::cases(), float_cases::cases(), geometry_cases::cases(), integer_cases::cases()]
        .into_iter()
        .flatten()
        .collect()
}

/// The largest error over all inputs; panics on the first that is above the bound.
fn largest_error(case: &Case) -> f64 {
    let mut random = Random::new(7);
    let shapes: Vec<ArithmeticType> = case.operands.iter().map(|&(shape, _)| shape).collect();
    let mut largest = 0f64;
    let mut current = builder();
    for number in 0..INPUTS {
        if number % 512 == 0 {
            current = builder();
        }
        let bits = input::operands(case.operands, &mut random);
        let found = evaluate(&mut current, case.which, case.result, &shapes, &bits)
            .unwrap_or_else(|problem| panic!("{:?}: {problem}", case.which));
        let wanted = (case.reference)(&bits);
        assert_eq!(found.len(), wanted.len(), "{:?}", case.which);
        for (&found, wanted) in found.iter().zip(&wanted) {
            let error = error_of(found, wanted);
            assert!(
                error <= case.bound,
                "{:?} of {bits:x?} gave {found:#x} ({:e}), which is {error} units from {wanted:x?}",
                case.which,
                f32::from_bits(found)
            );
            largest = largest.max(error);
        }
    }
    largest
}

#[test]
fn every_instruction_keeps_to_its_precision() {
    let cases = cases();
    let rows_of = |cases: &[Case]| cases.iter().map(|case| report::row(case, largest_error(case))).collect::<Vec<_>>();
    let rows = std::thread::scope(|scope| {
        let threads: Vec<_> = cases.chunks(cases.len() / 4).map(|part| scope.spawn(move || rows_of(part))).collect();
        threads.into_iter().flat_map(|thread| thread.join().expect("a case failed; see above")).collect::<Vec<_>>()
    });
    report::check(&rows);
}

#[test]
fn every_extended_instruction_is_measured_or_refused() {
    let measured = cases();
    for number in 1..=81 {
        let instruction = spirv::GlslStd450Op::from_u32(number).expect("GLSL.std.450 has 81 instructions");
        let known = measured.iter().any(|case| matches!(case.which, AnyInst::Glsl(other) if other == instruction));
        let refused = crate::front::spirv::glsl450::extended(
            &mut builder(),
            instruction,
            &super::super::arithmetic::testing::FLOAT,
            &[],
        )
        .expect_err("nothing takes no operands");
        assert!(refused.contains(&format!("{instruction:?}")), "{refused}");
        // Bits that are only moved need no measurement.
        use spirv::GlslStd450Op::{PackDouble2x32, UnpackDouble2x32};
        let known = known || matches!(instruction, PackDouble2x32 | UnpackDouble2x32);
        assert_eq!(refused.contains("is not supported"), !known, "{refused}");
    }
}
