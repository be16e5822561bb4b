//! Random nestings of selections, switches and loops with jumps at every depth, and sums over the invocations of a
//! subgroup that are together, compared with their semantics in Rust.

#![expect(clippy::unwrap_used, reason = "the helpers of tests are tests too")]

use std::collections::BTreeMap;
use std::sync::atomic::AtomicU32;

use proptest::prelude::*;
use spelter_shaders::abi::{DispatchArgs, MAX_PUSH_BYTES};
use spelter_shaders::back::Scratch;
use spelter_shaders::compile::Module;
use spelter_shaders::front::spvasm;
use spelter_shaders::guest::GuestSlice;
use spelter_shaders::ir::verify;
use spelter_tests::engine;
use spelter_tests::program::{self, Block, Gather, Loop, Statement, Switch, Test};

/// Invocations of a workgroup.
const INVOCATIONS: u32 = 24;

fn test() -> impl Strategy<Value = Test> {
    (1..8u32, 2..6u32)
        .prop_flat_map(|(factor, modulus)| (1..modulus).prop_map(move |less| Test { factor, modulus, less }))
}

fn gather() -> impl Strategy<Value = Gather> {
    prop_oneof![4 => Just(Gather::Sum), 1 => Just(Gather::Below), 1 => Just(Gather::Odd)]
}

fn leaf() -> impl Strategy<Value = Statement> {
    prop_oneof![
        4 => (1..20u32).prop_map(Statement::Step),
        2 => (1..20u32).prop_map(Statement::Together),
        3 => (gather(), 1..20u32).prop_map(|(how, n)| Statement::Gather(how, n)),
        1 => Just(Statement::BreakSwitch),
        1 => Just(Statement::BreakLoop),
        1 => Just(Statement::Continue),
        1 => (1..20u32).prop_map(Statement::Return),
    ]
}

fn nested(inner: impl Strategy<Value = Statement> + Clone + 'static) -> impl Strategy<Value = Statement> {
    let block = prop::collection::vec(inner, 0..4);
    let cases = prop::collection::vec((block.clone(), any::<bool>()), 0..5);
    prop_oneof![
        3 => (test(), block.clone(), block.clone()).prop_map(|(test, then, otherwise)| Statement::If(test, then, otherwise)),
        2 => (cases, 0..6usize).prop_map(|(cases, default)| Statement::Switch(Switch { cases, default })),
        2 => (0..4u32, prop_oneof![Just(1), 1..4u32], any::<[bool; 2]>(), block).prop_map(
            |(rounds, spread, [tested_last, known], body)| {
                Statement::Loop(Loop { rounds, spread, tested_last, known, body })
            }
        ),
    ]
}

fn programs() -> impl Strategy<Value = Block> {
    prop::collection::vec(leaf().prop_recursive(5, 48, 6, nested), 1..6)
}

/// The results of all invocations, by engine.
fn results(module: &Module) -> Vec<(&'static str, Vec<u32>)> {
    let kernel = module.kernel("main", &BTreeMap::new()).unwrap();
    verify(&kernel).unwrap();
    let stop = AtomicU32::new(0);
    engine::engines()
        .into_iter()
        .map(|engine| {
            let out = GuestSlice::leak(4 * INVOCATIONS as usize);
            let args = DispatchArgs {
                buffers: &[out],
                push: &[0; MAX_PUSH_BYTES],
                images: &[],
                num_workgroups: [1; 3],
                stop: &stop,
            };
            engine::dispatch(&*(engine.prepare)(&kernel), &args, &mut Scratch::default());
            (engine.name, (0..INVOCATIONS).map(|index| out.load_u32(u64::from(index) * 4)).collect())
        })
        .collect()
}

fn expected(program: &Block) -> Vec<u32> {
    program::run(program, INVOCATIONS)
}

/// A loop around one that is left in its first iteration, with a sum before it returns: the inner loop is no natural
/// loop, and holds no invocation.
fn returns_out_of_one_iteration() -> Block {
    let skip = Switch { cases: vec![(vec![Statement::Continue], false)], default: 1 };
    let body = vec![Statement::Together(1), Statement::Return(1)];
    let inner = Loop { rounds: 1, spread: 1, tested_last: false, known: true, body };
    let body = vec![Statement::Switch(skip), Statement::Loop(inner)];
    vec![Statement::Loop(Loop { rounds: 1, spread: 2, tested_last: false, known: true, body })]
}

#[test]
fn invocations_that_return_out_of_a_loop_of_one_iteration_are_those_of_their_iteration() {
    let program = returns_out_of_one_iteration();
    let wgsl = Module::from_wgsl(&program::wgsl::write(&program)).unwrap();
    let spirv = Module::from_spirv(&spvasm::assemble(&program::spirv::write(&program)).unwrap()).unwrap();
    for module in [wgsl, spirv] {
        for (engine, got) in results(&module) {
            assert_eq!(got, expected(&program), "{engine}");
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig { max_shrink_iters: 4000, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn phis(mut program in programs()) {
        program::prune(&mut program);
        let text = program::spirv::write(&program);
        let module = Module::from_spirv(&spvasm::assemble(&text).unwrap()).unwrap_or_else(|e| panic!("{e}\n{text}"));
        for (engine, got) in results(&module) {
            prop_assert_eq!(got, expected(&program), "{}\n{}", engine, text);
        }
    }

    #[test]
    fn variables(mut program in programs()) {
        program::prune_for_wgsl(&mut program);
        let text = program::wgsl::write(&program);
        let module = Module::from_wgsl(&text).unwrap_or_else(|e| panic!("{e}\n{text}"));
        for (engine, got) in results(&module) {
            prop_assert_eq!(got, expected(&program), "{}\n{}", engine, text);
        }
    }
}
