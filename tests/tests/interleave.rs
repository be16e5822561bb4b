//! Elements that invocations access contiguously, as a whole or in part, of words, bytes or halves, in workgroups of
//! one or two dimensions, under guards: random ones, compared with their semantics in Rust. Bytes beside the stored
//! ones must not change.

#![expect(clippy::unwrap_used, reason = "the helpers of tests are tests too")]

use std::fmt::Write;
use std::sync::atomic::AtomicU32;

use proptest::prelude::*;
use spelter_shaders::abi::{DispatchArgs, MAX_PUSH_BYTES};
use spelter_shaders::back::Scratch;
use spelter_shaders::ir::{Kernel, verify};
use spelter_tests::engine;
use spelter_tests::words::{contents, memory};

const SIZES: [[u32; 2]; 8] = [[16, 1], [64, 1], [40, 1], [7, 1], [8, 8], [4, 4], [8, 3], [16, 2]];

/// Workgroups in each dimension.
const GROUPS: u32 = 2;

/// Elements, and parts of them.
#[derive(Clone, Debug)]
struct Elements {
    /// Bytes of a part.
    width: u32,
    /// Stride of elements, in parts.
    apart: u32,
    /// Parts that are accessed, in order.
    parts: Vec<u32>,
    /// Whether an index counts parts, as in `a[3 * i + 1]`.
    by_parts: bool,
    /// Bytes before element 0.
    skip: u32,
    /// Added to the index, modulo 2³².
    more: u32,
    /// Elements between rows of invocations, in the push constants.
    pitch: u32,
}

#[derive(Clone, Debug)]
struct Case {
    size: [u32; 2],
    load: Elements,
    store: Elements,
    /// Bytes of the buffers.
    from: u32,
    to: u32,
    /// Only invocations with an index below this are active, or with an odd index.
    below: Option<u32>,
    odd: bool,
}

fn elements() -> impl Strategy<Value = Elements> {
    let width = prop::sample::select(vec![1, 2, 4, 4, 4]);
    let shape = (width, prop_oneof![3 => 1..=4_u32, 1 => 5..=17_u32]).prop_flat_map(|(width, apart)| {
        let parts = prop::sample::subsequence((0..apart).collect::<Vec<_>>(), 1..=apart.min(8) as usize);
        (Just(width), Just(apart), parts.prop_shuffle())
    });
    let more = prop_oneof![4 => Just(0_u32), 2 => 0..40_u32, 1 => Just(u32::MAX), 1 => Just(u32::MAX - 6)];
    (shape, any::<bool>(), 0..20_u32, more, 0..3_u32).prop_map(
        |((width, apart, parts), by_parts, skip, more, pitch)| Elements {
            width,
            apart,
            parts,
            by_parts,
            skip: skip * width,
            more,
            pitch: [64 * GROUPS, 131, 200][pitch as usize],
        },
    )
}

fn cases() -> impl Strategy<Value = Case> {
    let length = || prop_oneof![Just(20_000_u32), 0..3000_u32];
    let below = prop::option::of(prop_oneof![0..140_u32, 120..330_u32]);
    let choices = (prop::sample::select(SIZES.to_vec()), below, prop::bool::weighted(0.2));
    (elements(), elements(), length(), length(), choices).prop_map(|(load, store, from, to, (size, below, odd))| Case {
        size,
        load,
        store,
        from,
        to,
        below,
        odd,
    })
}

impl Elements {
    fn ty(&self) -> &'static str {
        match self.width {
            1 => "u8",
            2 => "u16",
            _ => "i32",
        }
    }

    /// Byte of a part of an invocation's element.
    fn at(&self, [x, y]: [u32; 2], part: u32) -> u64 {
        let index = (y * self.pitch + x).wrapping_add(self.more);
        if self.by_parts {
            let number = index.wrapping_mul(self.apart).wrapping_add(part);
            u64::from(self.skip) + u64::from(number) * u64::from(self.width)
        } else {
            u64::from(self.skip + part * self.width) + u64::from(index) * u64::from(self.apart * self.width)
        }
    }

    /// Lines that define `v{first}` and the next ones as offsets of the parts; the pitch is `v{pitch}`.
    fn offsets(&self, first: usize, pitch: usize) -> String {
        let temp = first + 50;
        let mut text = format!(
            "    v{a} = imul v4, v{pitch}
    v{b} = iadd v{a}, v3
    v{c} = const.i32 {}
    v{temp} = iadd v{b}, v{c}
    v{d} = const.i32 {}
    v{e} = imul v{temp}, v{d}
    v{f} = const.i32 {}\n",
            self.more,
            self.apart,
            self.skip,
            a = temp + 1,
            b = temp + 2,
            c = temp + 3,
            d = temp + 4,
            e = temp + 5,
            f = temp + 6,
        );
        for (number, part) in self.parts.iter().enumerate() {
            let (own, more) = (first + number, temp + 10 + 2 * number);
            if self.by_parts {
                writeln!(text, "    v{more} = const.i32 {part}").unwrap();
                writeln!(text, "    v{} = iadd v{}, v{more}", more + 1, temp + 5).unwrap();
                writeln!(text, "    v{own} = element v{}, v{} * {}", temp + 6, more + 1, self.width).unwrap();
            } else {
                writeln!(text, "    v{more} = const.i32 {}", self.skip + part * self.width).unwrap();
                writeln!(text, "    v{own} = element v{more}, v{temp} * {}", self.apart * self.width).unwrap();
            }
        }
        text
    }
}

impl Case {
    fn text(&self) -> String {
        let [x, y] = self.size;
        let mut text = format!(
            "kernel \"elements\" {x}, {y}, 1
push 8
binding0 = storage 0.0[1] 0 read_only
binding1 = storage 0.1[1] 0

block0:
    v0 = const.i32 0
    v1 = buffer binding0[v0]
    v2 = buffer binding1[v0]
    v3 = builtin global_invocation_id.0
    v4 = builtin global_invocation_id.1
    v5 = const.i32 4
    v6 = load.i32 push + v0
    v7 = load.i32 push + v5
    v8 = const.i32 {}
    v9 = ult v3, v8
    v10 = const.i32 1
    v11 = and v3, v10
    v12 = ine v11, v0
    v13 = land v9, {}
    selection block2
    branch v13, block1, block2

block1:
",
            self.below.unwrap_or(u32::MAX),
            if self.odd { "v12" } else { "v9" },
        );
        text += &self.load.offsets(100, 6);
        let (load, store) = (self.load.ty(), self.store.ty());
        for number in 0..self.load.parts.len() {
            writeln!(text, "    v{} = load.{load} storage v1 + v{}", 300 + number, 100 + number).unwrap();
        }
        text += &self.store.offsets(200, 7);
        for number in 0..self.store.parts.len() {
            writeln!(text, "    v{} = const.i32 {}", 400 + number, 0x0101_0101 * (number + 1)).unwrap();
            let loaded = 300 + number % self.load.parts.len();
            writeln!(text, "    v{} = iadd v{loaded}, v{}", 500 + number, 400 + number).unwrap();
        }
        let suffix = if store == "i32" { String::new() } else { format!(".{store}") };
        for number in 0..self.store.parts.len() {
            writeln!(text, "    store{suffix} storage v2 + v{}, v{}", 200 + number, 500 + number).unwrap();
        }
        text + "    jump block2\n\nblock2:\n    return\n"
    }

    /// Contents of the second buffer afterwards.
    fn result(&self, source: &[u8], before: &[u8]) -> Vec<u8> {
        let mut result = before.to_vec();
        let place = |at: u64, width: u32, len: usize| {
            (at + u64::from(width) <= len as u64).then(|| at as usize..(at + u64::from(width)) as usize)
        };
        for y in 0..self.size[1] * GROUPS {
            for x in
                (0..self.size[0] * GROUPS).filter(|&x| x < self.below.unwrap_or(u32::MAX) && (!self.odd || x % 2 == 1))
            {
                for (number, &part) in self.store.parts.iter().enumerate() {
                    let loaded = self.load.parts[number % self.load.parts.len()];
                    let from = place(self.load.at([x, y], loaded), self.load.width, source.len());
                    let mut value = from.map_or(Vec::new(), |from| source[from].to_vec());
                    value.resize(4, 0);
                    let value = u32::from_le_bytes(value.try_into().unwrap());
                    let bytes = value.wrapping_add(0x0101_0101 * (number as u32 + 1)).to_le_bytes();
                    if let Some(to) = place(self.store.at([x, y], part), self.store.width, result.len()) {
                        result[to].copy_from_slice(&bytes[..self.store.width as usize]);
                    }
                }
            }
        }
        result
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 400, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn elements_go_where_they_should(case in cases()) {
        let text = case.text();
        let kernel = Kernel::parse(&text).unwrap_or_else(|error| panic!("{error}\n{text}"));
        verify(&kernel).unwrap_or_else(|error| panic!("{error}\n{text}"));
        let stop = AtomicU32::new(0);
        let mut push = [0; MAX_PUSH_BYTES];
        push[..4].copy_from_slice(&case.load.pitch.to_le_bytes());
        push[4..8].copy_from_slice(&case.store.pitch.to_le_bytes());
        for engine in engine::engines() {
            let (_, from) = memory(case.from, |at| (at * 37 + at / 256 + 11) as u8);
            let (all, to) = memory(case.to, |at| (at * 5 + 100) as u8);
            let before = contents(all);
            let expected = case.result(&contents(from), &before[..case.to as usize]);
            let num_workgroups = [GROUPS, GROUPS, 1];
            let args = DispatchArgs { buffers: &[from, to], images: &[], push: &push, num_workgroups, stop: &stop };
            engine::dispatch(&*(engine.prepare)(&kernel), &args, &mut Scratch::default());
            let after = contents(all);
            let differ = (0..expected.len()).find(|&at| after[at] != expected[at]);
            prop_assert_eq!(differ, None, "{}\n{}", engine.name, &text);
            prop_assert_eq!(&after[case.to as usize..], &before[case.to as usize..], "{}: beyond the end\n{}", engine.name, &text);
        }
    }
}
