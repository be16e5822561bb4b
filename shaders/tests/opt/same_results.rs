//! Random kernels: every pass alone, and all in their order, leave the same words in memory as the kernel did before.

use proptest::prelude::*;
use spelter_shaders::ir::{Kernel, verify};
use spelter_shaders::opt::{PASSES, Pass, optimize};

use crate::ir::random::{self, BUFFER_WORDS};
use crate::opt::run;

fn input() -> Vec<u32> {
    (0..BUFFER_WORDS).map(|i| i.wrapping_mul(0x9e37_79b1) >> (i % 5 * 7)).collect()
}

/// Runs a pass on a kernel and holds the result against the rules, its text, and what it computed before.
fn same_after(pass: &Pass, kernel: &mut Kernel, expected: &[u32]) -> Result<(), TestCaseError> {
    let before = kernel.to_string();
    (pass.run)(kernel);
    if let Err(error) = verify(kernel) {
        return Err(TestCaseError::fail(format!("{}: {error}\n{before}\n{kernel}", pass.name)));
    }
    let read = Kernel::parse(&kernel.to_string()).map(|kernel| kernel.to_string());
    prop_assert_eq!(read.as_deref(), Ok(&*kernel.to_string()));
    let is = run(kernel, &input());
    prop_assert_eq!(is, expected, "{}\n{}\n{}", pass.name, before, kernel);
    Ok(())
}

proptest! {
    #[test]
    fn each_pass_keeps_what_is_computed(tape in proptest::collection::vec(any::<u32>(), 0..400), barriers: bool) {
        let kernel = random::kernel(&tape, barriers);
        let expected = run(&kernel, &input());
        let first = |place: usize| PASSES.iter().position(|pass| pass.name == PASSES[place].name) == Some(place);
        for pass in (0..PASSES.len()).filter(|&place| first(place)).map(|place| &PASSES[place]) {
            same_after(pass, &mut kernel.clone(), &expected)?;
        }
    }

    #[test]
    fn passes_in_any_order_keep_what_is_computed(
        tape in proptest::collection::vec(any::<u32>(), 0..600),
        order in proptest::collection::vec(any::<prop::sample::Index>(), 1..8),
        barriers: bool,
    ) {
        let mut kernel = random::kernel(&tape, barriers);
        let expected = run(&kernel, &input());
        for pass in order {
            same_after(pass.get(PASSES), &mut kernel, &expected)?;
        }
    }

    #[test]
    fn all_passes_keep_what_is_computed(tape in proptest::collection::vec(any::<u32>(), 0..900), barriers: bool) {
        let mut kernel = random::kernel(&tape, barriers);
        let before = kernel.to_string();
        let expected = run(&kernel, &input());
        optimize(&mut kernel, |_, _| {});
        prop_assert_eq!(verify(&kernel), Ok(()));
        prop_assert_eq!(run(&kernel, &input()), expected, "{}\n{}", before, kernel);
    }
}
