//! Compilation of kernels with checks.

use cranelift_entity::EntitySet;
use spelter_shaders::abi::Outcome;
use spelter_shaders::back::Code;
use spelter_shaders::compile::{Backend, Checks, compile_checked, compile_checked_for};
use spelter_shaders::ir::{Binding, Inst, InstData, Kernel};

use crate::check::{DIVERGENT, buffer, checked, machine_code, parse, with_args, words};

fn kernel() -> Kernel {
    parse(
        "kernel \"test\" 1, 1, 1\nbinding0 = storage 0.0[1] 0\nblock0:
            v0 = const.i32 0\n v1 = buffer binding0[v0]\n v2 = load.i32 storage v1 + v0
            store storage v1 + v0, v2\n return",
    )
}

/// The checks of a kernel that is compiled with these.
fn count(kernel: &Kernel, checks: Checks) -> usize {
    let compiled = compile_checked(kernel, Backend::Interpreter, checks);
    assert_eq!((compiled.backend, compiled.fallback), (Backend::Interpreter, None));
    let insts = compiled.kernel.layout.iter().flat_map(|&block| &compiled.kernel.blocks[block].insts);
    insts.filter(|&&inst| matches!(compiled.kernel.insts[inst], InstData::Check { .. })).count()
}

#[test]
fn redundant_checks_are_left_out_unless_all_are_wanted() {
    assert_eq!([Checks::All, Checks::Needed].map(|checks| count(&kernel(), checks)), [2, 1]);
}

/// No other invocation accesses the memory of a workgroup of one, so not even an atomic in a loop makes a call.
#[test]
fn workgroup_memory_of_one_invocation_needs_no_checks() {
    let count = |size: u32, checks| {
        let kernel = parse(&format!(
            "kernel \"test\" {size}, 1, 1\nvar0 = workgroup 4 \"sum\"\nblock0:
                v0 = const.i32 0\n store var0 + v0, v0\n v1 = atomic.iadd var0 + v0, v0 workgroup acq_rel|workgroup
                v2 = load.i32 var0 + v0\n return"
        ));
        let compiled = compile_checked(&kernel, Backend::Interpreter, checks).kernel;
        let insts = compiled.layout.iter().flat_map(|&block| &compiled.blocks[block].insts);
        insts.filter(|&&inst| matches!(compiled.insts[inst], InstData::Check { .. } | InstData::Sync { .. })).count()
    };
    assert_eq!([1, 2].map(|size| count(size, Checks::Needed)), [0, 3]);
    assert_eq!(count(1, Checks::All), 3, "a replay has them");
}

/// `y[i] = y[i]`, as front ends read it: the index comes from a variable, and the offset is computed for each access.
#[test]
fn places_that_are_computed_twice_are_the_same() {
    let kernel = parse(
        "kernel \"test\" 16, 1, 1\nbinding0 = storage 0.0[1] 0\nvar0 = private 4 \"i\"\nblock0:
            v0 = const.i32 0\n v1 = builtin local_invocation_index.0\n store var0 + v0, v1
            v2 = load.i32 var0 + v0\n v3 = element v0, v2 * 4\n v4 = buffer binding0[v0]
            v5 = load.i32 storage v4 + v3\n v6 = load.i32 var0 + v0\n v7 = element v0, v6 * 4
            v8 = buffer binding0[v0]\n store storage v8 + v7, v5\n return",
    );
    assert_eq!([Checks::All, Checks::Needed].map(|checks| count(&kernel, checks)), [2, 1]);
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

/// The checks and syncs of a kernel that is compiled for replays which look at some bindings.
fn kept(kernel: &Kernel, bindings: &[u32]) -> usize {
    let mut set = EntitySet::new();
    set.extend(bindings.iter().map(|&number| Binding::from_u32(number)));
    let compiled = compile_checked_for(kernel, Backend::Interpreter, &set);
    let insts = compiled.kernel.layout.iter().flat_map(|&block| &compiled.kernel.blocks[block].insts);
    let is_check =
        |inst: &&Inst| matches!(compiled.kernel.insts[**inst], InstData::Check { .. } | InstData::Sync { .. });
    insts.filter(is_check).count()
}

#[test]
fn a_replay_has_checks_of_some_bindings_only() {
    let kernel = parse(
        "kernel \"test\" 1, 1, 1\nbinding0 = storage 0.0[1] 0\nbinding1 = storage 0.1[1] 0\nblock0:
            v0 = const.i32 0\n v1 = buffer binding0[v0]\n v2 = load.i32 storage v1 + v0\n v3 = buffer binding1[v0]
            store storage v3 + v0, v2\n barrier workgroup workgroup acq_rel|workgroup\n store storage v3 + v0, v0\n return",
    );
    assert_eq!([&[][..], &[0], &[1], &[0, 1]].map(|bindings| kept(&kernel, bindings)), [0, 1, 2, 3]);
}
