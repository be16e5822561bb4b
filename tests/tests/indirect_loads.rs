//! Loops in which invocations load words at loaded indices, with a trip count per invocation: random ones, on every
//! engine, compared with their semantics in Rust. Lanes leave such a loop one by one, and loads of words that only the
//! other lanes may read are masked off.

use std::fmt::Write as _;

use proptest::prelude::*;
use spelter_shaders::abi::MAX_PUSH_BYTES;
use spelter_tests::words::{self, Allowed, source};

const WORDS: u32 = 400;

/// Invocations of a workgroup, whose second subgroup is only partly full, and of two of them.
const SIZE: u32 = 24;
const INVOCATIONS: u32 = 48;
const SUBGROUP: u32 = 16;

/// A step of an iteration on its variables and the word `c` that it loads.
#[derive(Clone, Debug)]
enum Step {
    /// `x = x * factor + source[c / divisor + added]`
    LookUp { factor: u32, divisor: u32, added: u32 },
    /// `y = y ^ source[c % number]`
    Remainder(u32),
    /// `f = f * 0.75 + f32(source[c & mask] & 255)`
    Float(u32),
    /// `x = x + (y >> 3)`
    Mix,
    /// `y = y + source[k + added]`
    Walk(u32),
    /// `x = x ^ own`, with a value per invocation.
    Own,
}

impl Step {
    fn text(&self) -> String {
        match self {
            Self::LookUp { factor, divisor, added } => {
                format!("x = x * {factor}u + source[c / {divisor}u + {added}u];")
            }
            Self::Remainder(number) => format!("y = y ^ source[c % {number}u];"),
            Self::Float(mask) => format!("f = f * 0.75 + f32(source[c & {mask}u] & 255u);"),
            Self::Mix => "x = x + (y >> 3u);".into(),
            Self::Walk(added) => format!("y = y + source[k + {added}u];"),
            Self::Own => "x = x ^ own;".into(),
        }
    }
}

#[derive(Clone, Debug)]
struct Case {
    steps: Vec<Step>,
    /// Start of the loop: `id * stride + begin`.
    stride: u32,
    begin: u32,
    /// Trip count: `id * factor % modulus`, and more for one of several invocations.
    factor: u32,
    modulus: u32,
    every: u32,
    more: u32,
    /// Invocations whose number is a multiple of this return before.
    returns: u32,
    /// How often all of it is repeated.
    rounds: u32,
    /// Whether a subgroup operation of the results follows the loop.
    together: bool,
}

/// Variables of an invocation.
struct State {
    x: u32,
    y: u32,
    f: f32,
    k: u32,
}

impl Case {
    fn length(&self, id: u32) -> u32 {
        id * self.factor % self.modulus + if id.is_multiple_of(self.every) { self.more } else { 0 }
    }

    fn is_here(&self, id: u32) -> bool {
        !(id + 1).is_multiple_of(self.returns)
    }

    fn text(&self) -> String {
        let Self { stride, begin, factor, modulus, every, more, returns, rounds, .. } = self;
        let mut body = String::new();
        self.steps.iter().for_each(|step| write!(body, "{} ", step.text()).expect("a string"));
        let together = if self.together { "x = x + subgroupAdd(y + k);" } else { "" };
        format!(
            "@group(0) @binding(0) var<storage, read> source: array<u32>;
             @group(0) @binding(1) var<storage, read_write> result: array<u32>;
             @compute @workgroup_size({SIZE}) fn main(@builtin(global_invocation_id) all: vec3<u32>) {{
                 let id = all.x;
                 if (id + 1u) % {returns}u == 0u {{ return; }}
                 let own = id * 77u;
                 var x = id; var y = 1u; var f = 0.5; var end = 0u;
                 for (var round = 0u; round < {rounds}u; round++) {{
                     let first = id * {stride}u + {begin}u + round;
                     let last = first + id * {factor}u % {modulus}u + select(0u, {more}u, id % {every}u == 0u);
                     var k = first;
                     for (; k < last; k++) {{ let c = source[k]; {body} }}
                     {together}
                     end = end + k;
                 }}
                 result[id] = x ^ y ^ bitcast<u32>(f) ^ end;
             }}"
        )
    }

    fn results(&self) -> Vec<Option<u32>> {
        let word = |number: u32| if number < WORDS { source(number) } else { 0 };
        let start = |id| self.is_here(id).then_some(State { x: id, y: 1, f: 0.5, k: 0 });
        let mut states: Vec<Option<State>> = (0..INVOCATIONS).map(start).collect();
        let mut ends = vec![0u32; INVOCATIONS as usize];
        for round in 0..self.rounds {
            for (id, state) in (0..).zip(&mut states) {
                let Some(State { x, y, f, k }) = state else { continue };
                let first = id * self.stride + self.begin + round;
                *k = first;
                while *k < first + self.length(id) {
                    let c = word(*k);
                    for step in &self.steps {
                        match *step {
                            Step::LookUp { factor, divisor, added } => {
                                *x = x.wrapping_mul(factor).wrapping_add(word(c / divisor + added));
                            }
                            Step::Remainder(number) => *y ^= word(c % number),
                            Step::Float(mask) => *f = *f * 0.75 + (word(c & mask) & 255) as f32,
                            Step::Mix => *x = x.wrapping_add(*y >> 3),
                            Step::Walk(added) => *y = y.wrapping_add(word(*k + added)),
                            Step::Own => *x ^= id * 77,
                        }
                    }
                    *k += 1;
                }
                ends[id as usize] = ends[id as usize].wrapping_add(*k);
            }
            if self.together {
                let group = |id: u32| (id / SIZE, id % SIZE / SUBGROUP);
                let with = |id: u32| (0..).zip(&states).filter(move |&(other, _)| group(other) == group(id));
                let sum = |id: u32| {
                    let values =
                        with(id).filter_map(|(_, state)| state.as_ref().map(|state| state.y.wrapping_add(state.k)));
                    values.fold(0u32, u32::wrapping_add)
                };
                let sums: Vec<u32> = (0..INVOCATIONS).map(sum).collect();
                for (state, sum) in states.iter_mut().zip(sums) {
                    state.iter_mut().for_each(|state| state.x = state.x.wrapping_add(sum));
                }
            }
        }
        let result = |(State { x, y, f, .. }, end): (&State, u32)| x ^ y ^ f.to_bits() ^ end;
        states.iter().zip(ends).map(|(state, end)| state.as_ref().map(|state| result((state, end)))).collect()
    }

    fn check(&self) -> Result<(), String> {
        let mut allowed = Allowed::default();
        for (id, result) in (0..).zip(self.results()) {
            result.into_iter().for_each(|result| allowed.store(id, result));
        }
        words::run(&self.text(), WORDS, &[0; MAX_PUSH_BYTES], [INVOCATIONS / SIZE, 1, 1], &allowed)
    }
}

fn steps() -> impl Strategy<Value = Vec<Step>> {
    let look_up =
        (1..9u32, 1..12u32, 0..9u32).prop_map(|(factor, divisor, added)| Step::LookUp { factor, divisor, added });
    let step = prop_oneof![
        4 => look_up,
        1 => (1..450u32).prop_map(Step::Remainder),
        1 => prop::sample::select(vec![7, 63, 255, 511]).prop_map(Step::Float),
        1 => Just(Step::Mix),
        1 => (0..3u32).prop_map(Step::Walk),
        1 => Just(Step::Own),
    ];
    prop::collection::vec(step, 1..4)
}

fn cases() -> impl Strategy<Value = Case> {
    let place = (0..9u32, prop_oneof![3 => Just(0), 1 => 300..420u32]);
    let length = (0..50u32, 1..12u32, 1..20u32, prop_oneof![Just(0), 20..90u32]);
    (steps(), place, length, 2..60u32, 1..3u32, any::<bool>()).prop_map(
        |(steps, (stride, begin), (factor, modulus, every, more), returns, rounds, together)| Case {
            steps,
            stride,
            begin,
            factor,
            modulus,
            every,
            more,
            returns,
            rounds,
            together,
        },
    )
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn loops_of_different_lengths_compute_what_they_should(case in cases()) {
        prop_assert_eq!(case.check(), Ok(()));
    }
}

/// Loops that are longer than the limit without a poll of the stop flag, and loops that end at the last words.
#[test]
fn loops_that_are_long_and_such_that_end_where_the_words_do() {
    let look_up = Step::LookUp { factor: 3, divisor: 7, added: 1 };
    let case = Case {
        steps: vec![look_up],
        stride: 0,
        begin: 0,
        factor: 1,
        modulus: 7,
        every: 9,
        more: 0,
        returns: 50,
        rounds: 1,
        together: true,
    };
    for more in [0, WORDS - 40, WORDS, WORDS + 1, 4090, 4096, 4097, 5000] {
        assert_eq!(Case { more, ..case.clone() }.check(), Ok(()));
    }
    // One lane alone continues to the last word, or one further.
    for begin in [WORDS - 101, WORDS - 100, WORDS - 99] {
        assert_eq!(Case { begin, modulus: 1, every: 48, more: 100, ..case.clone() }.check(), Ok(()));
    }
}
