//! Loads and stores by buffer device addresses, at random places in and around random buffers: engines compared with
//! their semantics in Rust.
//!
//! Uniform addresses and varying ones; elements of several sizes, signed indices; buffers of any length, so that rows
//! and elements straddle their ends, and gaps between them.
#![allow(clippy::unwrap_used)]

use std::collections::BTreeMap;
use std::sync::atomic::AtomicU32;

use proptest::prelude::*;
use spelter_shaders::abi::{DispatchArgs, MAX_PUSH_BYTES, Outcome, address_ranges};
use spelter_shaders::back::{Code, Scratch, Workgroups};
use spelter_shaders::compile::{Backend, Module, compile};
use spelter_shaders::front::spvasm::assemble;
use spelter_shaders::guest::GuestSlice;

/// Invocations.
const COUNT: usize = 48;

/// Results per invocation.
const RESULTS: usize = 18;

/// Bytes that are read, followed by as many that are written by a uniform address, by elements, and by varying
/// addresses.
const PART: u64 = 4096;

/// Range of addresses for reads: what is read by indices from there is in the first part, too.
const FROM: (u64, u64) = (0, PART / 4);

/// The address ranges of memory, and the effect of an access by address.
struct Model {
    /// Start of the arena.
    base: u64,
    bytes: Vec<u8>,
    /// Starts and ends in the arena.
    ranges: Vec<(u64, u64)>,
}

impl Model {
    /// The address range that contains an address.
    fn range(&self, address: u64) -> Option<(u64, u64)> {
        let at = address.checked_sub(self.base)?;
        self.ranges.iter().copied().find(|&(start, end)| (start..end).contains(&at))
    }

    /// The place in the arena of some bytes at offset `delta` from an access's address, whose range applies.
    fn place(&self, address: u64, delta: u64, bytes: u64) -> Option<usize> {
        let (_, end) = self.range(address)?;
        // Words are aligned.
        let at = (address - self.base) / bytes * bytes + delta;
        (at + bytes <= end).then_some(at as usize)
    }

    fn load(&self, address: u64, delta: u64, bytes: u64) -> u32 {
        let at = self.place(address, delta, bytes);
        at.map_or(0, |at| (0..bytes as usize).rev().fold(0, |word, byte| word << 8 | u32::from(self.bytes[at + byte])))
    }

    fn store(&mut self, address: u64, delta: u64, bytes: u64, value: u32) {
        if let Some(at) = self.place(address, delta, bytes) {
            self.bytes[at..at + bytes as usize].copy_from_slice(&value.to_le_bytes()[..bytes as usize]);
        }
    }
}

/// The input of the invocations.
#[derive(Clone, Debug)]
struct Input {
    count: u32,
    from: u64,
    to: u64,
    elements: u64,
    each: Vec<u64>,
    put: Vec<u64>,
    index: Vec<i32>,
}

/// Results of the kernel, and the arena afterwards.
fn expected(model: &mut Model, input: &Input) -> Vec<u32> {
    let mut results = vec![0; COUNT * RESULTS];
    for i in 0..input.count as usize {
        let (k, n) = (i64::from(input.index[i]), i as u64);
        let offset = |address: u64, by: i64| address.wrapping_add_signed(by);
        let word = |address: u64, delta: u64| model.load(address, delta, 4);
        let element = offset(input.from, 24 * n as i64);
        let mut row = vec![word(offset(input.from, 4 * n as i64), 0), word(offset(input.from, 4 * k), 0)];
        row.extend((0..4).map(|part| word(offset(input.from, 16 * n as i64), 4 * part)));
        row.extend([0, 12, 16].map(|at| word(offset(element, at), 0)));
        row.extend([word(input.each[i], 0), word(offset(input.each[i], 4 * k), 0)]);
        row.extend((0..4).map(|part| word(input.each[i], 4 * part)));
        row.push(model.load(offset(input.from, k), 0, 1));
        row.push(model.load(offset(input.each[i], 2), 0, 2));
        let sum = |sum: u32, j: i64| sum.wrapping_mul(3).wrapping_add(word(offset(input.from, 4 * (k + 7 * j)), 0));
        row.push((0..5).fold(0, sum));
        for (number, word) in row.into_iter().enumerate() {
            results[number * COUNT + i] = word;
        }
    }
    for i in 0..input.count {
        let n = u64::from(i);
        model.store(input.to.wrapping_add(4 * n), 0, 4, i + 1);
        let element = input.elements.wrapping_add(24 * n);
        model.store(element.wrapping_add(8), 0, 4, i + 1000);
        model.store(element.wrapping_add(8), 4, 4, i + 2000);
        model.store(element.wrapping_add(20), 0, 4, i + 3000);
        model.store(input.put[i as usize].wrapping_add(4), 0, 4, i + 4000);
        model.store(input.put[i as usize].wrapping_add(9), 0, 1, i + 1);
    }
    results
}

/// Buffers in an arena: gaps of up to three times 64 bytes, and lengths.
fn layout() -> impl Strategy<Value = Vec<(u64, u64)>> {
    let length = prop_oneof![1..40u64, 1..400u64, Just(192), Just(1024)];
    proptest::collection::vec((0..4u64, length), 1..80).prop_map(|parts| {
        let mut at = 0;
        let mut ranges = Vec::new();
        for (gap, length) in parts {
            let start: u64 = at + 64 * gap;
            let end = (start + length).min(4 * PART);
            if start >= end {
                break;
            }
            ranges.push((start, end));
            at = (end + 1).next_multiple_of(64);
        }
        ranges
    })
}

/// A place in a part of the arena or around it: near the start or end of a buffer, anywhere, or outside.
fn address(base: u64, ranges: &[(u64, u64)], (kind, which, by): (u8, usize, i64), part: (u64, u64)) -> u64 {
    let inside: Vec<_> = ranges.iter().filter(|(start, end)| *end > part.0 && *start < part.1).collect();
    let at = match (kind, inside.get(which % inside.len().max(1))) {
        (0..4, Some((start, _))) => *start as i64 + 4 * by.abs() % 64,
        (4..6, Some((start, _))) => *start as i64 + 4 * by % 64,
        (6..9, Some((_, end))) => (*end as i64 & !3) + 4 * by % 80,
        (14, _) => return 0,
        (15, _) => return (by as u64).wrapping_mul(0x9e37_79b9_7f4a_7c15),
        _ => part.0 as i64 + by.rem_euclid((part.1 - part.0) as i64),
    };
    base.wrapping_add_signed(at)
}

type Choice = (u8, usize, i64);

/// Random choices of addresses and indices.
fn choices() -> impl Strategy<Value = (u32, [Choice; 3], Vec<Choice>, Vec<i32>, bool)> {
    let choice = || (0..16u8, 0..24usize, -2000..2000i64);
    let index = prop_oneof![0..40i32, -40..300i32, Just(i32::MIN), Just(i32::MAX), any::<i32>()];
    (
        prop_oneof![Just(COUNT as u32), 1..=COUNT as u32],
        [choice(), choice(), choice()],
        proptest::collection::vec(choice(), COUNT),
        proptest::collection::vec(index, COUNT),
        any::<bool>(),
    )
}

fn check(
    codes: &[(Backend, Box<dyn Code>)],
    ranges_at: &[(u64, u64)],
    made: (u32, [Choice; 3], Vec<Choice>, Vec<i32>, bool),
) {
    let (count, shared, own, index, together) = made;
    let arena = GuestSlice::leak(4 * PART as usize);
    let base = arena.address() as u64;
    let bytes: Vec<u8> = (0..4 * PART).map(|at| (at * 37 / 5 + 1) as u8).collect();
    let part = |number: u64| (number * PART, (number + 1) * PART);
    let [from, to, elements] = std::array::from_fn(|number| {
        address(base, ranges_at, shared[number], if number == 0 { FROM } else { part(number as u64) }) & !3
    });
    // Writes go to memory that is not read: an address elsewhere is replaced by an invalid one.
    let held = |address: u64, number: u64, bytes: u64| {
        let at = address.wrapping_sub(base);
        let (start, end) = part(number);
        if at < start || at.saturating_add(bytes) > end { 0 } else { address }
    };
    let each = own.iter().enumerate().map(|(lane, &choice)| match together {
        true => address(base, ranges_at, (0, shared[0].1, 0), FROM).wrapping_add(4 * (lane as u64 * 5 % 32)),
        false => address(base, ranges_at, choice, FROM),
    });
    let put = (0..COUNT as u64).map(|lane| {
        let at = base + 3 * PART + lane * 31 % COUNT as u64 * 40;
        if own[lane as usize].0 == 14 { 0 } else { at }
    });
    let input = Input {
        count,
        from,
        to: held(to, 1, 4 * COUNT as u64),
        elements: held(elements, 2, 24 * COUNT as u64),
        each: each.map(|address| address & !1).collect(),
        put: put.collect(),
        index,
    };
    let mut model = Model { base, bytes: bytes.clone(), ranges: ranges_at.to_vec() };
    let wanted = expected(&mut model, &input);
    for (backend, code) in codes {
        arena.write(0, &bytes);
        let results = GuestSlice::leak(4 * COUNT * RESULTS);
        results.fill(0, 4 * (COUNT * RESULTS) as u64, 0);
        let mut table: Vec<u8> =
            [input.from, input.to, input.elements, u64::from(count)].map(u64::to_le_bytes).concat();
        table.extend(input.each.iter().chain(&input.put).flat_map(|address| address.to_le_bytes()));
        table.extend(input.index.iter().flat_map(|index| index.to_le_bytes()));
        let table_slice = GuestSlice::leak(table.len());
        table_slice.write(0, &table);
        let mut buffers = vec![table_slice, results];
        buffers.extend(address_ranges(ranges_at.iter().map(|&(start, end)| arena.slice(start, end - start))));
        let (push, stop) = ([0; MAX_PUSH_BYTES], AtomicU32::new(0));
        let args = DispatchArgs { buffers: &buffers, images: &[], push: &push, num_workgroups: [1; 3], stop: &stop };
        let outcome = code.run_all(&args, Workgroups::one([0; 3]), &mut Scratch::default());
        assert_eq!(outcome, Outcome::Done);
        for (at, &word) in wanted.iter().enumerate() {
            let (result, invocation) = (at / COUNT, at % COUNT);
            let got = results.load_u32(4 * at as u64);
            assert_eq!(got, word, "{backend}: result {result} of {invocation}: {input:x?}, {ranges_at:x?} at {base:x}");
        }
        for (at, &byte) in model.bytes.iter().enumerate() {
            assert_eq!(
                arena.load_u8(at as u64),
                byte,
                "{backend}: byte {at:x}: {input:x?}, {ranges_at:x?} at {base:x}"
            );
        }
    }
}

#[test]
fn accesses_go_where_their_addresses_say() {
    let words = assemble(include_str!("addresses.spvasm")).unwrap();
    let kernel = Module::from_spirv(&words).unwrap().kernel("main", &BTreeMap::new()).unwrap();
    let codes: Vec<_> = Backend::available()
        .map(|backend| {
            let compiled = compile(&kernel, backend);
            assert_eq!(compiled.fallback, None);
            (backend, compiled.code)
        })
        .collect();
    let config =
        ProptestConfig { cases: 400, max_shrink_iters: 0, failure_persistence: None, ..ProptestConfig::default() };
    proptest!(config, |(ranges in layout(), made in choices())| check(&codes, &ranges, made));
}
