//! Private variables that always hold the same become tables, and no others.

use spelter_shaders::ir::{Kernel, VariableSpace, verify};
use spelter_shaders::opt::CONSTANT_ARRAYS;

/// A kernel with a private variable of two words that is loaded at an unknown offset, with `stores` before.
fn run(blocks: &str) -> Kernel {
    let text = format!(
        "kernel \"k\" 16, 1, 1\nbinding0 = storage 0.0[1] 4\nvar0 = private 8 \"t\"\n\n\
         block0:\n    v0 = const.i32 0\n    v1 = const.i32 4\n    v2 = const.i32 7\n    v3 = const.i32 9\n\
         \x20   v4 = builtin local_invocation_index.0\n    v5 = element v0, v4 * 4\n    v6 = buffer binding0[v0]\n\
         \x20   v7 = const.bool true\n{blocks}"
    );
    let mut kernel = Kernel::parse(&text).expect("the text is a kernel");
    assert_eq!(verify(&kernel), Ok(()), "{kernel}");
    (CONSTANT_ARRAYS.run)(&mut kernel);
    assert_eq!(verify(&kernel), Ok(()), "{kernel}");
    kernel
}

fn words(kernel: &Kernel) -> Option<Vec<u32>> {
    let data = kernel.variables.values().next().expect("the variable stays");
    (data.space == VariableSpace::Constant).then(|| data.words.clone())
}

const LOAD: &str = "    v9 = load.i32 var0 + v5\n    store storage v6 + v5, v9\n    return\n";

#[test]
fn stored_before_each_load() {
    let kernel = run(&format!("    store var0 + v0, v2\n    store var0 + v1, v3\n{LOAD}"));
    assert_eq!(words(&kernel), Some(vec![7, 9]));
    assert!(!kernel.to_string().contains("store var0"), "{kernel}");
}

#[test]
fn words_without_a_store_are_zero() {
    assert_eq!(words(&run(&format!("    store var0 + v1, v3\n{LOAD}"))), Some(vec![0, 9]));
    assert_eq!(words(&run(LOAD)), Some(vec![0, 0]));
}

#[test]
fn stored_again_in_a_block_below() {
    let kernel = run(&format!(
        "    store var0 + v0, v2\n    jump block1\n\nblock1:\n    store var0 + v0, v2\n    jump block2\n\nblock2:\n{LOAD}"
    ));
    assert_eq!(words(&kernel), Some(vec![7, 0]));
}

#[test]
fn what_changes_is_no_table() {
    // Two constants at one place.
    assert_eq!(words(&run(&format!("    store var0 + v0, v2\n    store var0 + v0, v3\n{LOAD}"))), None);
    // Something else than a constant.
    assert_eq!(words(&run(&format!("    store var0 + v0, v4\n{LOAD}"))), None);
    // At an unknown place.
    assert_eq!(words(&run(&format!("    store var0 + v5, v2\n{LOAD}"))), None);
    // After the load.
    let load = "    v8 = load.i32 var0 + v5\n    store storage v6 + v0, v8\n";
    assert_eq!(words(&run(&format!("{load}    store var0 + v0, v2\n{LOAD}"))), None);
    // On one of two ways.
    let kernel = run(&format!(
        "    selection block2\n    branch v7, block1, block2\n\nblock1:\n    store var0 + v0, v2\n    jump block2\n\nblock2:\n{LOAD}"
    ));
    assert_eq!(words(&kernel), None);
}
