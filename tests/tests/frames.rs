//! Values that live across barriers, in loops that swap and replace them: random programs on every engine, compared
//! with their semantics in Rust. Their context slots are coalesced
//! (`shaders/src/vectorize/subgroup_loop/context_slots.rs`).

use std::fmt::Write as _;

use proptest::prelude::*;
use spelter_shaders::abi::MAX_PUSH_BYTES;
use spelter_tests::words::{self, Allowed};

/// Invocations of a workgroup, whose last subgroup is only partly full.
const SIZE: u32 = 40;
const VALUES: usize = 4;

/// A step of all invocations.
#[derive(Clone, Debug)]
enum Step {
    /// `x[to] = x[from] * factor + own`
    Renew { to: usize, from: usize, factor: u32 },
    /// Swaps the two.
    Swap(usize, usize),
    /// Rotates all values.
    Turn,
    /// A barrier; then `x[to] = x[to] ^` the `x[from]` of another invocation.
    Share { to: usize, from: usize, whose: Whose },
    /// A loop with this trip count.
    Loop(u32, Vec<Step>),
    /// In every other iteration of the enclosing loop.
    Odd(Vec<Step>),
}

/// The invocation whose value is read.
#[derive(Clone, Copy, Debug)]
enum Whose {
    /// The one at this distance.
    Further(u32),
    /// The same row for all subgroups: the one at this index plus the lane's number.
    Row(u32),
    /// The same one for all.
    Of(u32),
}

impl Whose {
    fn text(self) -> String {
        match self {
            Self::Further(distance) => format!("(id + {distance}u) % {SIZE}u"),
            Self::Row(first) => format!("(id & 15u) + {first}u"),
            Self::Of(id) => format!("{id}u"),
        }
    }

    fn of(self, id: u32) -> u32 {
        match self {
            Self::Further(distance) => (id + distance) % SIZE,
            Self::Row(first) => id % 16 + first,
            Self::Of(id) => id,
        }
    }
}

#[derive(Clone, Debug)]
struct Case {
    steps: Vec<Step>,
    /// Invocations whose number plus one is a multiple of this return first.
    returns: u32,
}

/// Writes the text of steps in nested loops.
fn write(text: &mut String, steps: &[Step], depth: usize) {
    for step in steps {
        let written = match step {
            Step::Renew { to, from, factor } => write!(text, "x{to} = x{from} * {factor}u + own;"),
            Step::Swap(a, b) => write!(text, "{{ let old = x{a}; x{a} = x{b}; x{b} = old; }}"),
            Step::Turn => write!(text, "{{ let old = x0; x0 = x1; x1 = x2; x2 = x3; x3 = old; }}"),
            Step::Share { to, from, whose } => {
                let (wait, whose) = ("workgroupBarrier();", whose.text());
                write!(text, "tile[id] = x{from}; {wait} x{to} = x{to} ^ tile[{whose}]; {wait}")
            }
            Step::Loop(iterations, body) => {
                let inner = depth + 1;
                write!(text, "for (var iteration{inner} = 0u; iteration{inner} < {iterations}u; iteration{inner}++) {{")
                    .map(|()| {
                        write(text, body, inner);
                        text.push('}');
                    })
            }
            Step::Odd(body) => write!(text, "if (iteration{depth} & 1u) == 1u {{").map(|()| {
                write(text, body, depth);
                text.push('}');
            }),
        };
        written.expect("a string");
        text.push('\n');
    }
}

/// Executes steps for all invocations that are here, in one iteration of the enclosing loop.
fn run(steps: &[Step], all: &mut [Option<[u32; VALUES]>], tile: &mut [u32], iteration: u32) {
    for step in steps {
        match *step {
            Step::Share { to, from, whose } => {
                for (id, values) in all.iter().enumerate() {
                    values.iter().for_each(|values| tile[id] = values[from]);
                }
                for (id, values) in (0..).zip(all.iter_mut()) {
                    let other = tile[whose.of(id) as usize];
                    values.iter_mut().for_each(|values| values[to] ^= other);
                }
            }
            Step::Loop(iterations, ref body) => (0..iterations).for_each(|iteration| run(body, all, tile, iteration)),
            Step::Odd(ref body) => {
                if iteration & 1 == 1 {
                    run(body, all, tile, iteration);
                }
            }
            Step::Renew { .. } | Step::Swap(..) | Step::Turn => {
                for (id, values) in (0..).zip(all.iter_mut()) {
                    let Some(x) = values else { continue };
                    match *step {
                        Step::Renew { to, from, factor } => {
                            x[to] = x[from].wrapping_mul(factor).wrapping_add(own(id));
                        }
                        Step::Swap(a, b) => x.swap(a, b),
                        _ => x.rotate_left(1),
                    }
                }
            }
        }
    }
}

fn own(id: u32) -> u32 {
    id * 2_654_435
}

impl Case {
    fn text(&self) -> String {
        let mut body = String::new();
        write(&mut body, &self.steps, 0);
        format!(
            "var<workgroup> tile: array<u32, {SIZE}>;
             @group(0) @binding(0) var<storage, read> source: array<u32>;
             @group(0) @binding(1) var<storage, read_write> result: array<u32>;
             @compute @workgroup_size({SIZE}) fn main(@builtin(local_invocation_index) id: u32) {{
                 if (id + 1u) % {}u == 0u {{ return; }}
                 let own = id * 2654435u;
                 let iteration0 = 1u;
                 var x0 = id; var x1 = source[id]; var x2 = own; var x3 = 3u;
                 {body}
                 result[id * 4u] = x0; result[id * 4u + 1u] = x1; result[id * 4u + 2u] = x2; result[id * 4u + 3u] = x3;
             }}",
            self.returns
        )
    }

    fn check(&self) -> Result<(), String> {
        let is_here = |id: u32| !(id + 1).is_multiple_of(self.returns);
        let mut all: Vec<_> = (0..SIZE).map(|id| is_here(id).then_some([id, words::source(id), own(id), 3])).collect();
        run(&self.steps, &mut all, &mut [0; SIZE as usize], 1);
        let mut allowed = Allowed::default();
        for (id, values) in (0..).zip(all) {
            for (place, value) in (0..).zip(values.into_iter().flatten()) {
                allowed.store(id * VALUES as u32 + place, value);
            }
        }
        words::run(&self.text(), SIZE * VALUES as u32, &[0; MAX_PUSH_BYTES], [1, 1, 1], &allowed)
    }
}

fn steps() -> impl Strategy<Value = Vec<Step>> {
    let value = || 0..VALUES;
    let whose = prop_oneof![
        (1..SIZE).prop_map(Whose::Further),
        (0..SIZE - 16).prop_map(Whose::Row),
        (0..SIZE).prop_map(Whose::Of),
    ];
    let leaf = prop_oneof![
        3 => (value(), value(), 1..9u32).prop_map(|(to, from, factor)| Step::Renew { to, from, factor }),
        2 => (value(), value()).prop_map(|(a, b)| Step::Swap(a, b)),
        1 => Just(Step::Turn),
        3 => (value(), value(), whose).prop_map(|(to, from, whose)| Step::Share { to, from, whose }),
    ];
    let step = leaf.prop_recursive(3, 12, 4, |step| {
        let body = || prop::collection::vec(step.clone(), 1..4);
        prop_oneof![
            3 => (prop_oneof![1..4u32, 20..24u32], body()).prop_map(|(iterations, body)| Step::Loop(iterations, body)),
            1 => body().prop_map(Step::Odd),
        ]
    });
    prop::collection::vec(step, 1..6)
}

fn cases() -> impl Strategy<Value = Case> {
    (steps(), prop_oneof![2 => Just(SIZE + 1), 1 => 2..SIZE]).prop_map(|(steps, returns)| Case { steps, returns })
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn values_come_over_barriers_as_they_were(case in cases()) {
        prop_assert_eq!(case.check(), Ok(()));
    }
}
