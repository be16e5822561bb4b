//! Loops with many exits to many blocks, which pass words on: random programs on every engine, compared with their
//! semantics in Rust. Such loops have one exit in the SIMD form (`shaders/src/vectorize/prepare/unify_exits/`).

use std::fmt::Write as _;

use proptest::prelude::*;
use spelter_shaders::abi::MAX_PUSH_BYTES;
use spelter_tests::words::{self, Allowed};

/// Invocations of a workgroup, whose last subgroup is only partly full.
const SIZE: u32 = 40;
const RESULTS: u32 = 8;

/// What an invocation does on an exit.
#[derive(Clone, Copy, Debug)]
enum Leave {
    Break,
    /// Mixes a word, then leaves.
    Mix,
    /// Stores, then leaves.
    Store(u32),
    /// Stores and returns.
    Return(u32),
    /// Stores a sum of many words that the loop computed before, and a word under a condition that it computed; then
    /// leaves, or returns.
    Take {
        to: u32,
        first: u32,
        count: u32,
        returns: bool,
    },
    /// Stores and continues after the enclosing loop, if there is one.
    Outer(u32),
    /// Continues with the next iteration instead of leaving.
    Continue,
}

/// One place of the loop: `x = x * factor + id`, then `leave` if a part of `x` is 0.
#[derive(Clone, Copy, Debug)]
struct Place {
    factor: u32,
    shift: u32,
    modulo: u32,
    leave: Leave,
}

#[derive(Clone, Debug)]
struct Case {
    places: Vec<Place>,
    /// Maximal trip counts of the loop and of the one around it; 0 for none.
    most: u32,
    around: u32,
    /// Words that the loop computes before its first place, for [`Leave::Take`].
    words: u32,
}

/// The variables of an invocation.
struct State {
    x: u32,
    y: u32,
    base: u32,
    results: [u32; RESULTS as usize],
}

/// The next place.
enum Next {
    After,
    AfterOuter,
    Ended,
}

impl Case {
    fn text(&self) -> String {
        let mut body = String::new();
        for Place { factor, shift, modulo, leave } in &self.places {
            let store = |to: u32| format!("result[id * {RESULTS}u + {to}u] += x ^ base;");
            let leave = match *leave {
                Leave::Break => "break;".to_owned(),
                Leave::Mix => "y = (y ^ x) * 3u + base; break;".to_owned(),
                Leave::Store(to) => format!("{} break;", store(to)),
                Leave::Return(to) => format!("{} return;", store(to)),
                Leave::Outer(to) => format!("{} out = true; break;", store(to)),
                Leave::Continue => "y += 1u; continue;".to_owned(),
                Leave::Take { to, first, count, returns } => {
                    let words = self.taken(first, count);
                    let sum: String = words.clone().map(|word| format!(" + w{word}")).collect();
                    let odd: String = words.map(|word| format!("if odd{word} {{ result[at] += {word}u; }} ")).collect();
                    let leave = if returns { "return;" } else { "break;" };
                    format!("{{ let at = id * {RESULTS}u + {to}u; result[at] += x{sum}; {odd} }} {leave}")
                }
            };
            let _ = writeln!(body, "x = x * {factor}u + id; if ((x >> {shift}u) % {modulo}u == 0u) {{ {leave} }}");
        }
        let words: String = (0..self.words)
            .map(|word| format!("let w{word} = (x ^ {word}u) * (n + {word}u); let odd{word} = (w{word} & 8u) != 0u;\n"))
            .collect();
        let inner = format!(
            "var n = 0u;
             loop {{
                 n += 1u; base = x * 5u + n;
                 if n > {}u {{ break; }}
                 {words}
                 {body}
             }}
             y = y * 7u + x + base;",
            self.most
        );
        let whole = match self.around {
            0 => inner,
            most => format!(
                "for (var i = 0u; i < {most}u; i++) {{ {inner} if out {{ break; }} x += source[i]; }}
                 y += 5u;"
            ),
        };
        format!(
            "@group(0) @binding(0) var<storage, read> source: array<u32>;
             @group(0) @binding(1) var<storage, read_write> result: array<u32>;
             @compute @workgroup_size({SIZE}) fn main(@builtin(local_invocation_index) id: u32) {{
                 var x = source[id]; var y = 1u; var base = 0u; var out = false;
                 {whole}
                 result[id * {RESULTS}u] += y;
                 result[id * {RESULTS}u + 1u] += x;
             }}"
        )
    }

    /// Words of the loop from `first` on.
    fn taken(&self, first: u32, count: u32) -> impl Iterator<Item = u32> + Clone {
        let first = first.min(self.words);
        first..(first + count).min(self.words)
    }

    fn inner(&self, id: u32, state: &mut State) -> Next {
        let State { x, y, base, results } = state;
        let mut n = 0;
        let mut next = Next::After;
        'all: loop {
            n += 1;
            *base = x.wrapping_mul(5).wrapping_add(n);
            if n > self.most {
                break;
            }
            let words: Vec<u32> = (0..self.words).map(|word| (*x ^ word).wrapping_mul(n + word)).collect();
            for Place { factor, shift, modulo, leave } in &self.places {
                *x = x.wrapping_mul(*factor).wrapping_add(id);
                if (*x >> shift) % modulo != 0 {
                    continue;
                }
                let mut store = |to: u32| {
                    let word = &mut results[to as usize];
                    *word = word.wrapping_add(*x ^ *base);
                };
                match *leave {
                    Leave::Break => {}
                    Leave::Mix => *y = (*y ^ *x).wrapping_mul(3).wrapping_add(*base),
                    Leave::Store(to) => store(to),
                    Leave::Return(to) => {
                        store(to);
                        return Next::Ended;
                    }
                    Leave::Outer(to) => {
                        store(to);
                        next = Next::AfterOuter;
                    }
                    Leave::Take { to, first, count, returns } => {
                        let result = &mut results[to as usize];
                        *result = result.wrapping_add(*x);
                        for word in self.taken(first, count) {
                            let value = words[word as usize];
                            *result = result.wrapping_add(value).wrapping_add(if value & 8 != 0 { word } else { 0 });
                        }
                        if returns {
                            return Next::Ended;
                        }
                    }
                    Leave::Continue => {
                        *y = y.wrapping_add(1);
                        continue 'all;
                    }
                }
                break 'all;
            }
        }
        *y = y.wrapping_mul(7).wrapping_add(*x).wrapping_add(*base);
        next
    }

    fn results(&self, id: u32) -> [u32; RESULTS as usize] {
        let mut state = State { x: words::source(id), y: 1, base: 0, results: [0; RESULTS as usize] };
        for i in 0..self.around.max(1) {
            match self.inner(id, &mut state) {
                Next::Ended => return state.results,
                Next::AfterOuter => break,
                Next::After if self.around > 0 => state.x = state.x.wrapping_add(words::source(i)),
                Next::After => {}
            }
        }
        if self.around > 0 {
            state.y = state.y.wrapping_add(5);
        }
        state.results[0] = state.results[0].wrapping_add(state.y);
        state.results[1] = state.results[1].wrapping_add(state.x);
        state.results
    }

    fn check(&self) -> Result<(), String> {
        let mut allowed = Allowed::default();
        for id in 0..SIZE {
            for (place, value) in (0..).zip(self.results(id)) {
                allowed.store(id * RESULTS + place, value);
            }
        }
        words::run(&self.text(), SIZE * RESULTS, &[0; MAX_PUSH_BYTES], [1, 1, 1], &allowed)
    }
}

fn places() -> impl Strategy<Value = Vec<Place>> {
    let leave = prop_oneof![
        2 => Just(Leave::Break),
        2 => Just(Leave::Mix),
        4 => (0..RESULTS).prop_map(Leave::Store),
        2 => (0..RESULTS).prop_map(Leave::Return),
        1 => (0..RESULTS).prop_map(Leave::Outer),
        1 => Just(Leave::Continue),
        2 => (0..RESULTS, 0..20u32, 1..20u32, any::<bool>())
            .prop_map(|(to, first, count, returns)| Leave::Take { to, first, count, returns }),
    ];
    let place = (1..40u32, 0..20u32, prop_oneof![5..30u32, 50..400u32], leave)
        .prop_map(|(factor, shift, modulo, leave)| Place { factor: 2 * factor + 1, shift, modulo, leave });
    // Fewer than the limit, or more.
    prop_oneof![1 => prop::collection::vec(place.clone(), 1..30), 3 => prop::collection::vec(place, 40..90)]
}

fn cases() -> impl Strategy<Value = Case> {
    let around = prop_oneof![Just(0), 1..4u32];
    let words = prop_oneof![Just(0), 1..30u32];
    (places(), 1..6u32, around, words).prop_map(|(places, most, around, words)| Case { places, most, around, words })
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::with_cases(32) })]

    #[test]
    fn lanes_leave_where_they_are_to(case in cases()) {
        prop_assert_eq!(case.check(), Ok(()));
    }
}
