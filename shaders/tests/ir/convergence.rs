//! Instructions of a loop's construct on a path out of the loop get a back edge that is never taken.

use spelter_shaders::front::preserve_convergence;
use spelter_shaders::ir::{Kernel, verify};

/// A kernel with a ballot in one of two places.
fn kernel(on_exit_path: &str, after: &str) -> Kernel {
    let text = format!(
        "kernel \"k\" 16, 1, 1
block0:
    v0 = const.bool true
    v1 = const.i32 0
    v2 = builtin local_invocation_index.0
    jump block1(v1)
block1(v3: i32):
    v4 = ult v3, v2
    loop block4, block3
    branch v4, block3, block2
block2:
{on_exit_path}    jump block4
block3:
    v5 = iadd v3, v2
    jump block1(v5)
block4:
{after}    return
"
    );
    Kernel::parse(&text).unwrap_or_else(|error| panic!("{error}"))
}

/// The text of a kernel with the back edges, which is valid.
fn held(mut kernel: Kernel) -> String {
    preserve_convergence(&mut kernel).expect("few loops are not too many");
    verify(&kernel).unwrap_or_else(|error| panic!("{error}\n{kernel}"));
    kernel.to_string()
}

#[test]
fn a_ballot_before_the_merge_block_is_in_the_loop() {
    let text = held(kernel("    v6 = subgroup.ballot v0\n", ""));
    let ballots = text.matches("subgroup.ballot").count();
    assert!(ballots == 2 && text.contains(", block1(v3), "), "{text}");
}

#[test]
fn other_kernels_stay_as_they_are() {
    for kernel in [kernel("", "    v6 = subgroup.ballot v0\n"), kernel("    v6 = iadd v3, v3\n", "")] {
        let before = kernel.to_string();
        assert_eq!(held(kernel), before);
    }
}

/// A loop that is left in its first iteration, by a return, in another loop: the back edge is to the header of the
/// outer one.
#[test]
fn a_ballot_in_a_loop_of_one_iteration_is_in_the_loop_around_it() {
    let text = "kernel \"k\" 16, 1, 1
block0:
    v0 = const.bool true
    v1 = const.i32 0
    v2 = builtin local_invocation_index.0
    jump block1(v1)
block1(v3: i32):
    v4 = ult v3, v2
    loop block6, block5
    branch v4, block2, block6
block2:
    loop block5, block4
    branch v4, block3, block5
block3:
    v5 = subgroup.ballot v0
    return
block4:
    unreachable
block5:
    v6 = iadd v3, v2
    jump block1(v6)
block6:
    return
";
    let text = held(Kernel::parse(text).unwrap_or_else(|error| panic!("{error}")));
    assert!(text.contains(", block1(v3), "), "{text}");
}
