//! Random kernels of masks: whatever the search proves holds in every execution.

use proptest::prelude::*;

use super::*;
use crate::simd::{BlockCall, BlockData};

/// A stream of numbers from which kernels are built and run.
struct Tape<'a>(std::slice::Iter<'a, u32>);

impl Tape<'_> {
    fn below(&mut self, end: usize) -> usize {
        self.0.next().map_or(0, |&number| number as usize % end)
    }
}

fn push(kernel: &mut Kernel, block: Block, data: InstData, ty: Type) {
    let inst = kernel.insts.push(data);
    let value = kernel.values.push(ValueDef::Result { inst, index: 0, ty });
    kernel.results[inst].push(value);
    kernel.blocks[block].insts.push(inst);
}

/// Masks that are available at the end of a block.
fn visible(kernel: &Kernel, dominators: &Dominators<Block>, block: Block) -> Vec<Value> {
    let above = kernel.layout.iter().filter(|&&above| above == block || dominators.dominates(above, block));
    let values = above.flat_map(|&above| {
        let data = &kernel.blocks[above];
        data.params.iter().copied().chain(data.insts.iter().flat_map(|&inst| kernel.results[inst].to_vec()))
    });
    values.filter(|&value| kernel.ty(value) == Type::Mask).collect()
}

/// A kernel with random branches, parameters and masks.
fn kernel(tape: &mut Tape<'_>) -> Kernel {
    let mut kernel = Kernel::new("k");
    let count = 2 + tape.below(6);
    let mut ends = Vec::new();
    for number in 0..count {
        let block = kernel.blocks.push(BlockData::default());
        for index in 0..tape.below(3).min(number) as u32 {
            let param = kernel.values.push(ValueDef::Param { block, index, ty: Type::Mask });
            kernel.blocks[block].params.push(param);
        }
        let [to, then, otherwise] =
            std::array::from_fn(|_| BlockCall::new(Block::from_u32(1 + tape.below(count - 1) as u32)));
        let data = InstData::Branch { condition: Value::from_u32(0), then, otherwise };
        let end = if tape.below(4) == 0 { InstData::Jump { to } } else { data };
        ends.push(kernel.insts.push(end));
        kernel.blocks[block].insts.push(ends[number]);
    }
    kernel.layout = kernel.blocks.keys().collect();
    let dominators = Dominators::new(&kernel);
    kernel.layout.retain(|&block| dominators.is_reachable(block));
    let depth = |&block: &Block| std::iter::successors(Some(block), |&block| dominators.idom(block)).count();
    kernel.layout.sort_by_key(depth);
    for block in kernel.layout.clone() {
        kernel.blocks[block].insts.clear();
        for _ in 0..1 + tape.below(4) {
            let masks = visible(&kernel, &dominators, block);
            let data = mask(tape, &masks);
            push(&mut kernel, block, data, Type::Mask);
        }
        kernel.blocks[block].insts.push(ends[block.as_u32() as usize]);
    }
    for block in kernel.layout.clone() {
        let masks = visible(&kernel, &dominators, block);
        let Kernel { insts, blocks, .. } = &mut kernel;
        for call in insts[ends[block.as_u32() as usize]].targets_mut() {
            call.args = blocks[call.block].params.iter().map(|_| masks[tape.below(masks.len())]).collect();
        }
    }
    kernel
}

fn mask(tape: &mut Tape<'_>, masks: &[Value]) -> InstData {
    let choice = if masks.is_empty() { tape.below(2) } else { tape.below(10) };
    let mut any = || masks[tape.below(masks.len())];
    match choice {
        0 => InstData::Undef { ty: Type::Mask },
        1 => InstData::Const { ty: Type::Mask, bits: [0, 3, 7, 0xffff][tape.below(4)] },
        2..=4 => InstData::Pure { op: Op::LAnd, args: [any(), any()].into_iter().collect() },
        5 | 6 => InstData::Pure { op: Op::LOr, args: [any(), any()].into_iter().collect() },
        7 => InstData::Pure { op: Op::LXor, args: [any(), any()].into_iter().collect() },
        8 => InstData::Pure { op: Op::LNot, args: [any()].into_iter().collect() },
        _ => InstData::Select { condition: any(), then: any(), otherwise: any() },
    }
}

/// The mask that an instruction computes; undefined masks are random each time.
fn fold(data: &InstData, masks: &[u16], tape: &mut Tape<'_>) -> u16 {
    let of = |value: Value| masks[value.as_u32() as usize];
    match data {
        InstData::Const { bits, .. } => *bits as u16,
        InstData::Pure { op: Op::LAnd, args } => of(args[0]) & of(args[1]),
        InstData::Pure { op: Op::LOr, args } => of(args[0]) | of(args[1]),
        InstData::Pure { op: Op::LXor, args } => of(args[0]) ^ of(args[1]),
        InstData::Pure { op: Op::LNot, args } => !of(args[0]),
        InstData::Select { condition, then, otherwise } => {
            of(*condition) & of(*then) | !of(*condition) & of(*otherwise)
        }
        _ => tape.below(1 << 16) as u16,
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(1000))]
    #[test]
    fn what_is_proven_holds(
        build in proptest::collection::vec(any::<u32>(), 150),
        run in proptest::collection::vec(any::<u32>(), 300),
    ) {
        let kernel = kernel(&mut Tape(build.iter()));
        let dominators = Dominators::new(&kernel);
        let mut subsets = Subsets::new(&kernel, &dominators, EntitySet::new());
        let mut tape = Tape(run.iter());
        let mut masks = vec![0u16; kernel.values.len()];
        let mut block = kernel.layout[0];
        for _ in 0..40 {
            for &inst in &kernel.blocks[block].insts {
                if let Some(value) = kernel.results[inst].first() {
                    masks[value.as_u32() as usize] = fold(&kernel.insts[inst], &masks, &mut tape);
                }
            }
            let visible = visible(&kernel, &dominators, block);
            for &mask in &visible {
                for &of in &visible {
                    let [m, o] = [mask, of].map(|value| masks[value.as_u32() as usize]);
                    prop_assert!(m & !o == 0 || !subsets.contains(of, mask), "{mask} {of} in {block}\n{kernel}");
                }
            }
            let end = kernel.terminator(block);
            let targets = end.map(InstData::targets).unwrap_or_default();
            let call = targets[tape.below(targets.len())];
            let args: Vec<u16> = call.args.iter().map(|arg| masks[arg.as_u32() as usize]).collect();
            for (param, arg) in kernel.blocks[call.block].params.iter().zip(args) {
                masks[param.as_u32() as usize] = arg;
            }
            block = call.block;
        }
    }
}
