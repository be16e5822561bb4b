//! Loads and stores of bytes and halves: random offsets, lengths and lanes, compared with their semantics in Rust.
//! Memory beside a part must not change, and memory beyond the end must not be read.

#![expect(clippy::unwrap_used, reason = "the helpers of tests are tests too")]

use std::sync::atomic::AtomicU32;

use proptest::prelude::*;
use spelter_shaders::abi::{DispatchArgs, MAX_PUSH_BYTES};
use spelter_shaders::back::Scratch;
use spelter_shaders::ir::{Kernel, verify};
use spelter_tests::engine;
use spelter_tests::words::{contents, memory};

/// The index of an invocation's part.
#[derive(Clone, Copy, Debug)]
struct Place {
    base: u32,
    stride: u32,
    /// Applied to the invocation's index before.
    xor: u32,
    uniform: bool,
}

#[derive(Clone, Debug)]
struct Case {
    bytes: u32,
    load: Place,
    store: Place,
    from: u32,
    to: u32,
    /// Invocations that store.
    below: u32,
    odd: bool,
    shared: bool,
}

const INVOCATIONS: u32 = 40;

fn place(bytes: u32) -> impl Strategy<Value = Place> {
    let strides =
        prop_oneof![3 => Just(bytes), 1 => Just(2 * bytes), 1 => Just(4u32), 1 => Just(6u32), 1 => Just(34u32)];
    (0u32..20, strides, prop_oneof![3 => Just(0u32), 1 => 0u32..16], prop::bool::weighted(0.2))
        .prop_map(move |(base, stride, xor, uniform)| Place { base: base / bytes * bytes, stride, xor, uniform })
}

fn cases() -> impl Strategy<Value = Case> {
    prop_oneof![Just(1u32), Just(2u32)].prop_flat_map(|bytes| {
        let below = prop_oneof![Just(INVOCATIONS), 0..INVOCATIONS];
        let places = (place(bytes), place(bytes));
        (places, 0u32..200, 0u32..200, below, any::<bool>(), prop::bool::weighted(0.3)).prop_map(
            move |((load, store), from, to, below, odd, shared)| Case {
                bytes,
                load,
                store,
                from,
                to,
                below,
                odd,
                shared,
            },
        )
    })
}

impl Place {
    fn text(self, result: u32) -> String {
        let Self { base, stride, xor, uniform } = self;
        let index = if uniform { "v4" } else { "v3" };
        format!(
            "    v{a} = const.i32 {xor}\n    v{b} = xor {index}, v{a}\n    v{c} = const.i32 {base}\n    v{result} = element v{c}, v{b} * {stride}\n",
            a = result + 1,
            b = result + 2,
            c = result + 3,
        )
    }

    fn at(self, invocation: u32) -> u32 {
        let index = if self.uniform { 3 } else { invocation };
        self.base + (index ^ self.xor) * self.stride
    }
}

impl Case {
    fn text(&self) -> String {
        let ty = if self.bytes == 1 { "u8" } else { "u16" };
        // Through workgroup memory, or directly.
        let (first, then) = if self.shared {
            let own = format!("    v60 = element v0, v3 * {}\n", self.bytes);
            (format!("{own}    store.{ty} var0 + v60, v30\n    v31 = load.{ty} var0 + v60\n"), "workgroup 128 \"tile\"")
        } else {
            ("    v31 = or v30, v0\n".into(), "workgroup 4 \"nothing\"")
        };
        let odd = if self.odd {
            "    v70 = const.i32 1\n    v71 = and v3, v70\n    v72 = ine v71, v0\n"
        } else {
            "    v72 = const.bool true\n"
        };
        format!(
            "kernel \"parts\" {INVOCATIONS}, 1, 1
push 4
binding0 = storage 0.0[1] 0 read_only
binding1 = storage 0.1[1] 0
var0 = {then}

block0:
    v0 = const.i32 0
    v1 = buffer binding0[v0]
    v2 = buffer binding1[v0]
    v3 = builtin local_invocation_index.0
    v4 = load.i32 push + v0
{}    v30 = load.{ty} storage v1 + v10
{first}    v50 = const.i32 0x7fff0001
    v51 = iadd v31, v50
    v52 = const.i32 {}
    v53 = ult v3, v52
{odd}    v73 = land v53, v72
    selection block2
    branch v73, block1, block2

block1:
{}    store.{ty} storage v2 + v20, v51
    jump block2

block2:
    return
",
            self.load.text(10),
            self.below,
            self.store.text(20)
        )
    }

    /// Allowed bytes of the second buffer: for parts that several invocations store, any of their values.
    fn allows(&self, source: &[u8], before: &[u8], after: &[u8]) -> Result<(), String> {
        let bytes = self.bytes as usize;
        let part = |buffer: &[u8], at: usize| buffer.get(at..at + bytes).map(<[u8]>::to_vec);
        let mut allowed: Vec<Vec<u8>> = before.iter().map(|&byte| vec![byte]).collect();
        let mut written = vec![false; before.len()];
        for invocation in (0..self.below).filter(|invocation| !self.odd || invocation % 2 == 1) {
            let mut value = part(source, self.load.at(invocation) as usize).unwrap_or(vec![0; bytes]);
            value.resize(4, 0);
            let sum = u32::from_le_bytes(value.try_into().unwrap()).wrapping_add(1).to_le_bytes();
            let at = self.store.at(invocation) as usize;
            if at + bytes <= before.len() {
                for byte in 0..bytes {
                    if !std::mem::replace(&mut written[at + byte], true) {
                        allowed[at + byte].clear();
                    }
                    allowed[at + byte].push(sum[byte]);
                }
            }
        }
        match (0..after.len()).find(|&at| !allowed[at].contains(&after[at])) {
            Some(at) => Err(format!("byte {at} is {}, not one of {:?}", after[at], allowed[at])),
            None => Ok(()),
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn parts_go_where_they_should(case in cases()) {
        let text = case.text();
        let kernel = Kernel::parse(&text).unwrap_or_else(|error| panic!("{error}\n{text}"));
        verify(&kernel).unwrap_or_else(|error| panic!("{error}\n{text}"));
        let stop = AtomicU32::new(0);
        let mut push = [0; MAX_PUSH_BYTES];
        push[0] = 3;
        for engine in engine::engines() {
            let (_, from) = memory(case.from, |at| (at * 37 + 11) as u8);
            let (all, to) = memory(case.to, |at| (at * 5 + 100) as u8);
            let (source, before) = (contents(from), contents(all));
            let args =
                DispatchArgs { buffers: &[from, to], images: &[], push: &push, num_workgroups: [1, 1, 1], stop: &stop };
            engine::dispatch(&*(engine.prepare)(&kernel), &args, &mut Scratch::default());
            let after = contents(all);
            let (own, guard) = after.split_at(case.to as usize);
            prop_assert_eq!(guard, &before[case.to as usize..], "{}: beyond the end\n{}", engine.name, &text);
            let allowed = case.allows(&source, &before[..case.to as usize], own);
            prop_assert_eq!(allowed, Ok(()), "{}: {}", engine.name, text);
        }
    }
}
