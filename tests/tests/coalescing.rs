//! Words at constant offsets per lane, or close to each other: random computations of an index from the invocation's,
//! loads and stores of one to four words there, compared with their semantics in Rust.

#![expect(clippy::unwrap_used, reason = "the helpers of tests are tests too")]

use std::fmt::Write;

use proptest::prelude::*;
use spelter_shaders::abi::MAX_PUSH_BYTES;
use spelter_tests::words::{self, Allowed, source};

/// Words of each buffer.
const WORDS: u32 = 4096;

/// Invocations of a workgroup; two workgroups run.
const SIZES: [u32; 3] = [16, 64, 40];

/// One step of an index.
#[derive(Clone, Copy, Debug)]
enum Step {
    And(u32),
    Or(u32),
    Xor(u32),
    Shl(u32),
    Shr(u32),
    Add(u32),
    Mul(u32),
    /// `xor`ed with its lowest bits and doubled: butterflies.
    Spread(u32),
    /// Sums and differences with a number that only the dispatch knows: the number of workgroups, which is 2.
    AddGroups,
    SubGroups,
    /// Limits, unsigned and signed.
    UMin(u32),
    UMax(u32),
    SMin(u32),
    SMax(u32),
}

impl Step {
    fn apply(self, index: u32) -> u32 {
        match self {
            Self::And(bits) => index & bits,
            Self::Or(bits) => index | bits,
            Self::Xor(bits) => index ^ bits,
            Self::Shl(amount) => index << amount,
            Self::Shr(amount) => index >> amount,
            Self::Add(term) => index.wrapping_add(term),
            Self::Mul(factor) => index.wrapping_mul(factor),
            Self::Spread(bits) => ((index ^ (index & bits)) << 1) | (index & bits),
            Self::AddGroups => index.wrapping_add(2),
            Self::SubGroups => index.wrapping_sub(2),
            Self::UMin(limit) => index.min(limit),
            Self::UMax(limit) => index.max(limit),
            Self::SMin(limit) => index.cast_signed().min(limit.cast_signed()).cast_unsigned(),
            Self::SMax(limit) => index.cast_signed().max(limit.cast_signed()).cast_unsigned(),
        }
    }

    fn text(self, index: &str) -> String {
        match self {
            Self::And(bits) => format!("({index} & {bits}u)"),
            Self::Or(bits) => format!("({index} | {bits}u)"),
            Self::Xor(bits) => format!("({index} ^ {bits}u)"),
            Self::Shl(amount) => format!("({index} << {amount}u)"),
            Self::Shr(amount) => format!("({index} >> {amount}u)"),
            Self::Add(term) => format!("({index} + {term}u)"),
            Self::Mul(factor) => format!("({index} * {factor}u)"),
            Self::Spread(bits) => format!("((({index} ^ ({index} & {bits}u)) << 1u) | ({index} & {bits}u))"),
            Self::AddGroups => format!("({index} + groups.x)"),
            Self::SubGroups => format!("({index} - groups.x)"),
            Self::UMin(limit) => format!("min({index}, {limit}u)"),
            Self::UMax(limit) => format!("max({index}, {limit}u)"),
            Self::SMin(limit) => format!("bitcast<u32>(min(bitcast<i32>({index}), bitcast<i32>({limit}u)))"),
            Self::SMax(limit) => format!("bitcast<u32>(max(bitcast<i32>({index}), bitcast<i32>({limit}u)))"),
        }
    }
}

fn step() -> impl Strategy<Value = Step> {
    let limit = || prop_oneof![0..100u32, Just(u32::MAX), Just(u32::MAX - 7), Just(1 << 31), Just((1 << 31) - 1)];
    prop_oneof![
        Just(Step::AddGroups),
        Just(Step::SubGroups),
        limit().prop_map(Step::UMin),
        limit().prop_map(Step::UMax),
        limit().prop_map(Step::SMin),
        limit().prop_map(Step::SMax),
        prop_oneof![0..32u32, any::<u32>()].prop_map(Step::And),
        (0..40u32).prop_map(Step::Or),
        prop_oneof![0..32u32, any::<u32>()].prop_map(Step::Xor),
        (0..3u32).prop_map(Step::Shl),
        (0..6u32).prop_map(Step::Shr),
        prop_oneof![0..40u32, Just(u32::MAX), Just(u32::MAX - 7)].prop_map(Step::Add),
        (0..5u32).prop_map(Step::Mul),
        (0..5u32).prop_map(|bits| Step::Spread((1 << bits) - 1)),
    ]
}

#[derive(Clone, Debug)]
struct Case {
    size: u32,
    load: Vec<Step>,
    store: Vec<Step>,
    /// Words of an element, and which of them are loaded.
    words: u32,
    odd_lanes_only: bool,
}

fn cases() -> impl Strategy<Value = Case> {
    let steps = || prop::collection::vec(step(), 0..4);
    (0..SIZES.len(), steps(), steps(), 1..5u32, prop::bool::weighted(0.2)).prop_map(
        |(size, load, store, words, odd_lanes_only)| Case { size: SIZES[size], load, store, words, odd_lanes_only },
    )
}

impl Case {
    fn text(&self) -> String {
        let element = ["u32", "vec2<u32>", "array<u32, 3>", "vec4<u32>"][self.words as usize - 1];
        let index = |steps: &[Step]| steps.iter().fold("id.x".to_owned(), |index, step| step.text(&index));
        let (load, store) = (index(&self.load), index(&self.store));
        let mut text = format!(
            "@group(0) @binding(0) var<storage, read> source: array<{element}>;
             @group(0) @binding(1) var<storage, read_write> result: array<{element}>;
             @compute @workgroup_size({}) fn main(
                @builtin(global_invocation_id) id: vec3<u32>, @builtin(num_workgroups) groups: vec3<u32>) {{\n",
            self.size
        );
        if self.odd_lanes_only {
            text += "if (id.x & 1u) == 0u { return; }\n";
        }
        writeln!(text, "let at = {load}; let to = {store};").unwrap();
        for word in 0..self.words {
            let part = if self.words == 1 { String::new() } else { format!("[{word}]") };
            writeln!(text, "let v{word} = source[at]{part};").unwrap();
        }
        for word in 0..self.words {
            let part = if self.words == 1 { String::new() } else { format!("[{word}]") };
            writeln!(text, "result[to]{part} = v{word} + 1u;").unwrap();
        }
        text + "}"
    }

    /// Allowed contents of the second buffer.
    fn allowed(&self) -> Allowed {
        let elements = WORDS / self.words;
        let mut allowed = Allowed::default();
        for id in (0..2 * self.size).filter(|id| !self.odd_lanes_only || id % 2 == 1) {
            let index = |steps: &[Step]| steps.iter().fold(id, |index, step| step.apply(index));
            let (at, to) = (index(&self.load), index(&self.store));
            for word in 0..self.words {
                let loaded = if at < elements { source(at * self.words + word) } else { 0 };
                if to < elements {
                    allowed.store(to * self.words + word, loaded + 1);
                }
            }
        }
        allowed
    }
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn words_go_where_they_should(case in cases()) {
        // A whole number of elements.
        let words = WORDS / case.words * case.words;
        prop_assert_eq!(words::run(&case.text(), words, &[0; MAX_PUSH_BYTES], [2, 1, 1], &case.allowed()), Ok(()));
    }
}
