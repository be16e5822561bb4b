//! Compilation of kernels with checks.

use spelter_shaders::compile::{self, Backend, Checks, compile_checked};
use spelter_shaders::ir::{InstData, Kernel};
use spelter_shaders::vectorize;

use crate::{checked, parse};

fn kernel() -> Kernel {
    parse(
        "kernel \"test\" 1, 1, 1\nbinding0 = storage 0.0[1] 0\nblock0:
            v0 = const.i32 0\n v1 = buffer binding0[v0]\n v2 = load.i32 storage v1 + v0
            store storage v1 + v0, v2\n return",
    )
}

#[test]
fn redundant_checks_are_left_out_unless_all_are_wanted() {
    for (checks, expected) in [(Checks::All, 2), (Checks::Needed, 1)] {
        let compiled = compile_checked(&kernel(), Backend::Interpreter, checks);
        assert_eq!((compiled.backend, compiled.fallback), (Backend::Interpreter, None));
        let insts = compiled.kernel.layout.iter().flat_map(|&block| &compiled.kernel.blocks[block].insts);
        let count = insts.filter(|&&inst| matches!(compiled.kernel.insts[inst], InstData::Check { .. })).count();
        assert_eq!(count, expected);
    }
}

/// Machine code would leave the checks out without a word.
#[test]
fn kernels_with_checks_have_no_machine_code() {
    let reason = "a kernel with checks is interpreted";
    assert_eq!(vectorize::widen(&checked(&kernel())).map(|_| ()), Err(vectorize::Unsupported(reason.into())));
    for backend in Backend::available().filter(|&backend| backend != Backend::Interpreter) {
        let compiled = compile_checked(&kernel(), backend, Checks::All);
        assert_eq!((compiled.backend, compiled.fallback.as_deref()), (Backend::Interpreter, Some(reason)));
        let compiled = compile::compile(&checked(&kernel()), backend);
        assert_eq!((compiled.backend, compiled.fallback.as_deref()), (Backend::Interpreter, Some(reason)));
    }
}
