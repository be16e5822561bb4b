//! How many registers a scheduled block needs. Orders themselves are in `tests/passes/schedule`.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write as _;

use spelter_shaders::compile::{self, Floats, Module};
use spelter_shaders::simd::{Inst, InstData, Kernel, Scheduled, Type, Value, schedule, verify};
use spelter_shaders::vectorize::{AccessCosts, widen};

const HEAD: &str = "@group(0) @binding(0) var<storage, read_write> data: array<f32>;
    @compute @workgroup_size(16) fn main(@builtin(global_invocation_id) id: vec3<u32>) {";

fn widened(body: &str) -> Kernel {
    let module = Module::from_wgsl(&format!("{HEAD}{body}}}")).expect("the text is a module");
    let kernel = module.kernel("main", &BTreeMap::new()).expect("it has the entry point");
    widen(&compile::lower(&kernel, Floats::FAST, |_, _| {}), &AccessCosts::AVX512).expect("it can be widened")
}

/// The instructions of the block that stores, before and after it is scheduled.
fn orders(body: &str) -> (Kernel, Vec<Inst>, Vec<Inst>) {
    let mut kernel = widened(body);
    let stores = |inst: &Inst| matches!(kernel.insts[*inst], InstData::StoreRow { .. });
    let block = kernel.layout.iter().copied().find(|&block| kernel.blocks[block].insts.iter().any(stores));
    let block = block.expect("the kernel stores");
    let before = kernel.blocks[block].insts.clone();
    schedule(&mut kernel, Scheduled::WhereProfitable);
    assert_eq!(verify(&kernel), Ok(()), "{kernel}");
    let after = kernel.blocks[block].insts.clone();
    let set = |insts: &[Inst]| insts.iter().copied().collect::<BTreeSet<_>>();
    assert_eq!((set(&before), before.len()), (set(&after), after.len()));
    (kernel, before, after)
}

fn uses(kernel: &Kernel, inst: Inst) -> BTreeSet<Value> {
    let mut all = BTreeSet::new();
    kernel.insts[inst].for_each_use(|value| {
        all.insert(value);
    });
    all
}

/// Instructions that use what the one before them makes.
fn waiting(kernel: &Kernel, insts: &[Inst]) -> usize {
    insts
        .windows(2)
        .filter(|pair| kernel.results[pair[0]].iter().any(|made| uses(kernel, pair[1]).contains(made)))
        .count()
}

/// The most vectors that are alive at once, but constants.
fn most_alive(kernel: &Kernel, insts: &[Inst]) -> usize {
    let mut alive = BTreeSet::new();
    let mut most = 0;
    for &inst in insts.iter().rev() {
        kernel.results[inst].iter().for_each(|made| _ = alive.remove(made));
        let vectors = uses(kernel, inst).into_iter().filter(|&value| {
            let constant = matches!(kernel.definition(value), Some(InstData::Const { .. } | InstData::Lanes { .. }));
            kernel.ty(value) == Type::V32 && !constant
        });
        alive.extend(vectors);
        most = most.max(alive.len());
    }
    most
}

#[test]
fn chains_start_while_registers_last() {
    let mut body = "let x = data[id.x]; var sum = 0.0;".to_owned();
    for chain in 0..100 {
        write!(body, "let c{chain} = (x * {chain}.5 + 1.0) * x + 3.0; sum = fma(c{chain}, c{chain} - 2.0, sum);")
            .expect("a string");
    }
    body += "data[id.x] = sum;";
    let (kernel, before, after) = orders(&body);
    assert!(waiting(&kernel, &after) < waiting(&kernel, &before) / 2, "{kernel}");
    assert!((10..=30).contains(&most_alive(&kernel, &after)), "{} alive\n{kernel}", most_alive(&kernel, &after));
}
