//! What widening makes of random kernels keeps the verifier's rules and comes back from its text.

use proptest::prelude::*;
use spelter_shaders::lower::math::{self, MathOptions};
use spelter_shaders::simd::{Kernel, verify, widen};
use spelter_shaders::{ir, opt};

use crate::random;

fn widened(kernel: &ir::Kernel) -> Result<(), TestCaseError> {
    let Ok(widened) = widen(kernel) else { return Ok(()) };
    let text = widened.to_string();
    prop_assert_eq!(verify(&widened), Ok(()), "{}\n{}", kernel, text);
    let parsed = Kernel::parse(&text).map_err(|error| TestCaseError::fail(format!("{error}\n{text}")))?;
    prop_assert_eq!(parsed.to_string(), text);
    Ok(())
}

proptest! {
    #[test]
    fn widened_kernels_are_right_and_come_back(
        tape in proptest::collection::vec(any::<u32>(), 0..300),
        size in 0usize..3,
        barriers: bool,
    ) {
        let mut kernel = random::kernel(&tape, barriers);
        kernel.workgroup_size = [[5, 1, 1], [16, 3, 1], [7, 5, 1]][size];
        math::run(&mut kernel, MathOptions { fast_inverse_sqrt: true });
        widened(&kernel)?;
        opt::optimize(&mut kernel, |_, _| {});
        widened(&kernel)?;
    }
}
