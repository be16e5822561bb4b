//! Contraction.

use proptest::prelude::*;
use spelter_shaders::ir::{Op, verify};
use spelter_shaders::opt::CONTRACT;

use crate::opt::expression;
use crate::opt::peephole::stored;

/// Holds what becomes of expressions against the expected ones.
#[track_caller]
fn become_these(pairs: &[(&str, &str)]) {
    for (before, after) in pairs {
        let mut kernel = expression::parse(before);
        (CONTRACT.run)(&mut kernel);
        assert_eq!(verify(&kernel), Ok(()), "{kernel}");
        assert_eq!(&expression::print(&kernel), after, "{before}\n{kernel}");
    }
}

#[test]
fn products_go_into_sums_and_differences() {
    become_these(&[
        ("fadd(fmul(x, y), z)", "fma(x, y, z)"),
        ("fadd(z, fmul(x, y))", "fma(x, y, z)"),
        ("fsub(fmul(x, y), z)", "fma(x, y, fneg(z))"),
        ("fsub(z, fmul(x, y))", "fma(fneg(x), y, z)"),
        ("fsub(z, fmul(2.0, y))", "fma(-2.0, y, z)"),
        ("fadd(fneg(fmul(x, y)), z)", "fma(fneg(x), y, z)"),
        ("fsub(z, fneg(fmul(x, y)))", "fma(x, y, z)"),
        ("fadd(fadd(fmul(x, x), fmul(y, y)), fmul(z, z))", "fma(z, z, fma(x, x, fmul(y, y)))"),
        ("fadd(fadd(x, y), z)", "fadd(fadd(x, y), z)"),
    ]);
}

proptest! {
    /// Where nothing needs rounding, it does not matter how often it is done.
    #[test]
    fn exact_sums_stay_the_same(
        steps in proptest::collection::vec((0usize..4, any::<prop::sample::Index>(), any::<prop::sample::Index>()), 0..12),
        inputs in proptest::collection::vec(-2i32..=2, expression::UNKNOWN.len()),
    ) {
        let kernel = expression::kernel(|builder, unknown| {
            let mut values = unknown[4..7].to_vec();
            for (which, a, b) in &steps {
                let (a, b) = (values[a.index(values.len())], values[b.index(values.len())]);
                let value = match which {
                    0 => builder.pure(Op::FNeg, &[a]),
                    1 => builder.pure(Op::FAdd, &[a, b]),
                    2 => builder.pure(Op::FSub, &[a, b]),
                    _ => builder.pure(Op::FMul, &[a, unknown[4 + values.len() % 3]]),
                };
                values.push(value);
            }
            // Not all, so that some products are used by sums only.
            values.split_off(values.len() / 2)
        });
        let mut contracted = kernel.clone();
        (CONTRACT.run)(&mut contracted);
        prop_assert_eq!(verify(&contracted), Ok(()));
        let inputs: Vec<u32> = inputs.iter().map(|&number| (number as f32).to_bits()).collect();
        prop_assert_eq!(stored(&contracted, &inputs), stored(&kernel, &inputs), "{}\n{}", kernel, contracted);
    }
}
