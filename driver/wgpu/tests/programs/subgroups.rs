//! Subgroups of 16 invocations.

use crate::programs::{N, Program, word};

const SIZE: u32 = 16;

pub(crate) fn programs() -> Vec<Program> {
    let words: Vec<u32> = (0..N).map(word).collect();
    let one = |name, expression: &str, expected: &dyn Fn(usize, &[u32]) -> u32| Program {
        name,
        source: format!(
            "
            @group(0) @binding(0) var<storage, read> src: array<u32>;
            @group(0) @binding(1) var<storage, read_write> to: array<u32>;
            @compute @workgroup_size({N})
            fn main(@builtin(local_invocation_index) i: u32, @builtin(subgroup_size) size: u32,
                @builtin(subgroup_invocation_id) lane: u32, @builtin(subgroup_id) group: u32) {{
                let x = src[i]; to[i] = {expression};
            }}"
        ),
        buffers: vec![words.clone(), vec![0; N as usize]],
        groups: [1, 1, 1],
        expected: words
            .chunks(SIZE as usize)
            .flat_map(|lanes| (0..lanes.len()).map(|lane| expected(lane, lanes)).collect::<Vec<_>>())
            .collect(),
    };
    let sum = |words: &[u32]| words.iter().fold(0u32, |sum, x| sum.wrapping_add(*x));
    vec![
        one("size and lane", "size * 100u + lane", &|lane, _| SIZE * 100 + lane as u32),
        one("a sum over lanes", "subgroupAdd(x)", &|_, lanes| sum(lanes)),
        one("sums before a lane", "subgroupExclusiveAdd(x)", &|lane, lanes| sum(&lanes[..lane])),
        one("sums up to a lane", "subgroupInclusiveAdd(x)", &|lane, lanes| sum(&lanes[..=lane])),
        one("the greatest of lanes", "subgroupMax(x)", &|_, lanes| *lanes.iter().max().unwrap()),
        one("a ballot", "subgroupBallot(x % 3u == 0u).x", &|_, lanes| {
            (0..).zip(lanes).map(|(lane, x)| u32::from(x % 3 == 0) << lane).sum()
        }),
        one("all and any", "u32(subgroupAll(x < 99u)) + 2u * u32(subgroupAny(x == 5u))", &|_, lanes| {
            u32::from(lanes.iter().all(|x| *x < 99)) + 2 * u32::from(lanes.contains(&5))
        }),
        one("the value of another lane", "subgroupShuffle(x, 15u - lane)", &|lane, lanes| lanes[15 - lane]),
        one("exchanged values", "subgroupShuffleXor(x, 5u)", &|lane, lanes| lanes[lane ^ 5]),
        one("the value of one lane", "subgroupBroadcast(x, 9u) + subgroupBroadcastFirst(x)", &|_, lanes| {
            lanes[9].wrapping_add(lanes[0])
        }),
    ]
}
