//! Branches both sides of which call one function, with loops, ways out and selections in it: random ones, on every engine,
//! against their meaning in Rust. What both sides do alike is done once (`opt/meld`).

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::ops::ControlFlow;

use proptest::prelude::*;
use spelter_shaders::abi::MAX_PUSH_BYTES;
use spelter_shaders::compile::{self, Floats, Module};
use spelter_tests::words::{self, Allowed, source};

const WORDS: u32 = 200;
const INVOCATIONS: u32 = 48;

/// What a function does with its two variables.
#[derive(Clone, Debug)]
enum Step {
    /// `x = x * factor + y`
    Mix(u32),
    /// `y = y ^ (x >> bits)`
    Shift(u32),
    /// `y = y + source[x % WORDS]`
    Read,
    /// `if x % number < 2 { … } else { … }`
    If(u32, Vec<Step>, Vec<Step>),
    /// As many trips as `x % number`.
    Loop(u32, Vec<Step>),
    /// `if y % number == 1 { break; }`, in a loop.
    Break(u32),
    /// `if y % number == 0 { continue; }`, in a loop.
    Continue(u32),
    /// `if x % number == 3 { return y; }`
    Return(u32),
}

/// Why a list of steps ends before its end.
enum Way {
    Break,
    Continue,
    Return(u32),
}

fn run(steps: &[Step], x: &mut u32, y: &mut u32) -> ControlFlow<Way> {
    for step in steps {
        match step {
            Step::Mix(factor) => *x = x.wrapping_mul(*factor).wrapping_add(*y),
            Step::Shift(bits) => *y ^= *x >> bits,
            Step::Read => *y = y.wrapping_add(source(*x % WORDS)),
            Step::If(number, then, otherwise) => run(if *x % number < 2 { then } else { otherwise }, x, y)?,
            Step::Loop(number, body) => {
                for _ in 0..*x % number {
                    match run(body, x, y) {
                        ControlFlow::Break(Way::Break) => break,
                        ControlFlow::Continue(()) | ControlFlow::Break(Way::Continue) => {}
                        out => return out,
                    }
                }
            }
            Step::Break(number) if *y % number == 1 => return ControlFlow::Break(Way::Break),
            Step::Continue(number) if y.is_multiple_of(*number) => return ControlFlow::Break(Way::Continue),
            Step::Return(number) if *x % number == 3 => return ControlFlow::Break(Way::Return(*y)),
            Step::Break(_) | Step::Continue(_) | Step::Return(_) => {}
        }
    }
    ControlFlow::Continue(())
}

fn text(steps: &[Step], in_loop: bool, depth: usize) -> String {
    let mut all = String::new();
    for step in steps {
        let line = match step {
            Step::Mix(factor) => format!("x = x * {factor}u + y;"),
            Step::Shift(bits) => format!("y = y ^ (x >> {bits}u);"),
            Step::Read => format!("y = y + source[x % {WORDS}u];"),
            Step::If(number, then, otherwise) => {
                let [then, otherwise] = [then, otherwise].map(|steps| text(steps, in_loop, depth + 1));
                format!("if x % {number}u < 2u {{ {then} }} else {{ {otherwise} }}")
            }
            Step::Loop(number, body) => {
                let body = text(body, true, depth + 1);
                format!(
                    "let n{depth} = x % {number}u; for (var i{depth} = 0u; i{depth} < n{depth}; i{depth}++) {{ {body} }}"
                )
            }
            Step::Break(number) if in_loop => format!("if y % {number}u == 1u {{ break; }}"),
            Step::Continue(number) if in_loop => format!("if y % {number}u == 0u {{ continue; }}"),
            Step::Return(number) => format!("if x % {number}u == 3u {{ return y; }}"),
            Step::Break(_) | Step::Continue(_) => String::new(),
        };
        // A block of its own, for the names in it.
        write!(all, "{{ {line} }}").expect("a string");
    }
    all
}

/// Leaves out ways out of loops where there is none.
fn tidy(steps: &mut Vec<Step>, in_loop: bool) {
    steps.retain(|step| in_loop || !matches!(step, Step::Break(_) | Step::Continue(_)));
    for step in steps {
        match step {
            Step::If(_, then, otherwise) => [then, otherwise].into_iter().for_each(|steps| tidy(steps, in_loop)),
            Step::Loop(_, body) => tidy(body, true),
            _ => {}
        }
    }
}

fn steps() -> impl Strategy<Value = Vec<Step>> {
    let number = || 2..7u32;
    let leaf = prop_oneof![
        (1..1000u32).prop_map(Step::Mix),
        (1..20u32).prop_map(Step::Shift),
        Just(Step::Read),
        number().prop_map(Step::Break),
        number().prop_map(Step::Continue),
        (4..9u32).prop_map(Step::Return),
    ];
    let step = leaf.prop_recursive(3, 20, 4, move |inner| {
        let list = || prop::collection::vec(inner.clone(), 0..4);
        prop_oneof![
            (number(), list(), list()).prop_map(|(number, then, otherwise)| Step::If(number, then, otherwise)),
            (number(), list()).prop_map(|(number, body)| Step::Loop(number, body)),
        ]
    });
    prop::collection::vec(step, 1..5).prop_map(|mut steps| {
        tidy(&mut steps, false);
        steps
    })
}

#[derive(Clone, Debug)]
struct Case {
    steps: Vec<Step>,
    /// Before the calls.
    sides: [Vec<Step>; 2],
    /// What the sides call with, besides the first word.
    args: [u32; 2],
}

impl Case {
    fn text(&self) -> String {
        let [then, otherwise] = [&self.sides[0], &self.sides[1]].map(|steps| text(steps, false, 0));
        let [first, second] = self.args;
        format!(
            "@group(0) @binding(0) var<storage, read> source: array<u32>;
             @group(0) @binding(1) var<storage, read_write> result: array<u32>;
             fn called(a: u32, b: u32) -> u32 {{ var x = a; var y = b; {} return x ^ y; }}
             fn one(a: u32, b: u32) -> u32 {{ var x = a; var y = b; {then} return called(a, b + {first}u) + x; }}
             fn two(a: u32, b: u32) -> u32 {{ var x = a; var y = b; {otherwise} return called(a, b + {second}u) * y; }}
             @compute @workgroup_size(16) fn main(@builtin(global_invocation_id) id: vec3<u32>) {{
                 let a = source[id.x];
                 if a % 5u < 2u {{ result[id.x] = one(a, id.x); }} else {{ result[id.x] = two(a, id.x); }}
             }}",
            text(&self.steps, false, 0)
        )
    }

    fn result(&self, id: u32) -> u32 {
        let call = |steps: &[Step], a: u32, b: u32| {
            let (mut x, mut y) = (a, b);
            let out = run(steps, &mut x, &mut y);
            (out, x, y)
        };
        let called = |arg: u32| match call(&self.steps, source(id), id + arg) {
            (ControlFlow::Break(Way::Return(value)), _, _) => value,
            (_, x, y) => x ^ y,
        };
        let side = usize::from(source(id) % 5 >= 2);
        match (call(&self.sides[side], source(id), id), side) {
            ((ControlFlow::Break(Way::Return(value)), _, _), _) => value,
            ((_, x, _), 0) => called(self.args[0]).wrapping_add(x),
            ((_, _, y), _) => called(self.args[1]).wrapping_mul(y),
        }
    }
}

fn cases() -> impl Strategy<Value = Case> {
    let side = || prop_oneof![3 => Just(Vec::new()), 1 => steps()];
    let args = prop_oneof![4 => Just([0, 0]), 1 => Just([0, 1])];
    (steps(), [side(), side()], args).prop_map(|(steps, sides, args)| Case { steps, sides, args })
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn sides_that_call_one_function_compute_what_they_should(case in cases()) {
        let mut allowed = Allowed::default();
        (0..INVOCATIONS).for_each(|id| allowed.store(id, case.result(id)));
        let push = [0; MAX_PUSH_BYTES];
        prop_assert_eq!(words::run(&case.text(), WORDS, &push, [INVOCATIONS / 16, 1, 1], &allowed), Ok(()));
    }
}

/// That a loop of a function that both sides call is there once.
#[test]
fn a_loop_that_both_sides_call_is_there_once() {
    let steps = vec![Step::Loop(6, vec![Step::Mix(77), Step::Shift(3), Step::Break(5)]), Step::Read];
    let case = Case { steps, sides: [Vec::new(), vec![Step::Mix(5)]], args: [0, 0] };
    let loops = |case: &Case| {
        let module = Module::from_wgsl(&case.text()).expect("the text is a module");
        let kernel = module.kernel("main", &BTreeMap::new()).expect("it has the entry point");
        compile::lower(&kernel, Floats::FAST, |_, _| {}).to_string().matches("loop block").count()
    };
    assert_eq!(loops(&case), 1);
    assert_eq!(loops(&Case { args: [0, 1], ..case }), 2);
}
