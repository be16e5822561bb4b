//! Compilation of kernels with checks.

use spelter_shaders::abi::Outcome;
use spelter_shaders::back::Code;
use spelter_shaders::compile::{Backend, Checks, compile_checked};
use spelter_shaders::ir::{InstData, Kernel};

use crate::check::{DIVERGENT, buffer, checked, machine_code, parse, with_args, words};

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

#[test]
fn kernels_with_checks_have_machine_code() {
    for backend in Backend::available() {
        let compiled = compile_checked(&kernel(), backend, Checks::All);
        assert_eq!((compiled.backend, compiled.fallback), (backend, None));
    }
}

/// In a run without an observer, checks do nothing.
#[test]
fn checks_need_no_observer() {
    for (_, program) in machine_code(&checked(&kernel())) {
        let buffer = buffer(&[7]);
        let program = program.expect("it has machine code");
        let outcome = with_args(&[buffer], [1; 3], |args, scratch| program.run(args, [0; 3], scratch));
        assert_eq!((outcome, words(buffer)), (Outcome::Done, vec![7]));
    }
}

#[test]
fn kernels_with_barriers_in_divergent_control_flow_are_interpreted() {
    let text = "kernel \"test\" 32, 1, 1
        block0:
            v0 = const.i32 17
            v1 = builtin local_invocation_index.0
            v2 = ult v1, v0
            selection block2
            branch v2, block1, block2
        block1:
            barrier workgroup workgroup acq_rel|workgroup
            jump block2
        block2:
            return";
    for backend in Backend::available().filter(|&backend| backend != Backend::Interpreter) {
        let compiled = compile_checked(&parse(text), backend, Checks::All);
        assert_eq!((compiled.backend, compiled.fallback.as_deref()), (Backend::Interpreter, Some(DIVERGENT)));
    }
}
