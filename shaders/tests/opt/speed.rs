//! How long passes take: printed by `cargo test --release -p spelter-shaders --test compiler opt::speed -- --ignored
//! --nocapture`.

use std::fmt::Write;
use std::time::{Duration, Instant};

use spelter_shaders::ir::Kernel;
use spelter_shaders::opt::{CONTRACT, Pass, optimize};

use crate::opt::parse;

/// Loops one after the other, each with loads, a selection, address arithmetic and a store: about 30 instructions.
fn kernel(loops: usize) -> Kernel {
    let mut text = String::from(
        "block0:\n v0 = const.i32 0\n v1 = const.i32 1\n v2 = const.i32 3\n v3 = builtin global_invocation_id.0\n \
         v4 = buffer binding0[v0]\n v5 = buffer binding1[v0]\n v6 = const.f32 2.0\n v7 = load.i32 push + v0\n jump block1(v0)\n",
    );
    for number in 0..loops {
        let (b, v) = (number * 4 + 1, number * 30 + 10);
        let [header, body, side, join, next] = std::array::from_fn(|place| b + place);
        let values: [usize; 26] = std::array::from_fn(|place| v + place);
        let [i, c, s, t, u, o, x, p, q, y, z, d, k, w, m, r, n, e, f, g, h, a, l, j, aa, ab] = values;
        write!(
            text,
            "block{header}(v{i}: i32):
                v{c} = ult v{i}, v7\n loop block{next}, block{join}\n branch v{c}, block{body}, block{next}(v0)
            block{body}:
                v{s} = imul v{i}, v2\n v{t} = iadd v{s}, v3\n v{u} = iadd v{t}, v1\n v{o} = element v0, v{u} * 4
                v{x} = load.f32 storage v4 + v{o}\n v{p} = imul v7, v2\n v{q} = element v0, v{p} * 4
                v{y} = load.f32 storage v4 + v{q}\n v{z} = fmul v{x}, v{y}\n v{d} = fadd v{z}, v6\n v{k} = ford_lt v{d}, v6
                v{w} = umod v3, v2\n v{m} = iadd v{i}, v1\n v{r} = fmul v{d}, v6
                selection block{join}\n branch v{k}, block{side}, block{join}(v{r})
            block{side}:
                v{n} = fadd v{r}, v6\n v{e} = fneg v{n}\n jump block{join}(v{e})
            block{join}(v{f}: f32):
                v{g} = iadd v{i}, v3\n v{h} = iadd v{g}, v{w}\n v{a} = element v0, v{h} * 4\n v{l} = float_bits v{f}
                v{j} = xor v{l}, v{p}\n v{aa} = shl v{j}, v1\n v{ab} = or v{aa}, v{w}
                store storage v5 + v{a}, v{ab}\n jump block{header}(v{m})\n",
        )
        .expect("a string takes text");
    }
    write!(text, "block{}(v9: i32):\n return\n", loops * 4 + 1).expect("a string takes text");
    parse(&text)
}

#[test]
#[ignore = "prints how long passes take"]
fn speed() {
    for loops in [35, 3_500] {
        let kernel = kernel(loops);
        let size: usize = kernel.layout.iter().map(|&block| kernel.blocks[block].insts.len()).sum();
        let mut best: Vec<(&str, Duration)> = Vec::new();
        for _ in 0..if loops < 100 { 50 } else { 3 } {
            let mut kernel = kernel.clone();
            let (mut times, mut start) = (Vec::new(), Instant::now());
            let mut note = |pass: &Pass| {
                times.push((pass.name, start.elapsed()));
                start = Instant::now();
            };
            optimize(&mut kernel, |pass, _| note(pass));
            (CONTRACT.run)(&mut kernel);
            note(&CONTRACT);
            best.resize(times.len(), ("", Duration::MAX));
            best = best.iter().zip(times).map(|(best, time)| if best.1 < time.1 { *best } else { time }).collect();
        }
        println!("{size} instructions: {:?} in all", best.iter().map(|pass| pass.1).sum::<Duration>());
        best.iter().for_each(|(name, time)| println!("    {name:10} {time:?}"));
    }
}
