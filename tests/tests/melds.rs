//! Branches whose sides both call one function, with loops, exits and selections in it: random ones, on every engine,
//! compared with their semantics in Rust. What both sides do alike is executed once (`shaders/src/opt/meld/`).

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::ops::ControlFlow;

use proptest::prelude::*;
use spelter_shaders::abi::MAX_PUSH_BYTES;
use spelter_shaders::compile::{self, Floats, Module};
use spelter_tests::words::{self, Allowed, source};

const WORDS: u32 = 200;
const INVOCATIONS: u32 = 48;

/// A step of a function on its two variables.
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
    /// A loop with iteration count `x % number`.
    Loop(u32, Vec<Step>),
    /// `if y % number == 1 { break; }`, in a loop.
    Break(u32),
    /// `if y % number == 0 { continue; }`, in a loop.
    Continue(u32),
    /// `if x % number == 3 { return y; }`
    Return(u32),
}

/// Why a list of steps ends early.
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
        // A block of its own, to scope the names in it.
        write!(all, "{{ {line} }}").expect("a string");
    }
    all
}

/// Removes exits of loops outside of loops.
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

/// What a side does after its call, on every second total.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Then {
    GoOn,
    Break,
    Continue,
    /// With the total that is stored by then.
    Return,
}

/// The calls of one side.
#[derive(Clone, Debug)]
struct Side {
    /// In its own function.
    steps: Vec<Step>,
    /// Its argument, besides the first word.
    arg: u32,
    /// Whether it stores the total before the call.
    stores: bool,
    then: Then,
}

#[derive(Clone, Debug)]
struct Case {
    steps: Vec<Step>,
    sides: [Side; 2],
    /// Maximal iteration count of the loop around the branch.
    iterations: u32,
    /// Whether the branch is a switch.
    is_switch: bool,
}

impl Case {
    fn text(&self) -> String {
        let [one, two] = [0, 1].map(|side| {
            let Side { steps, arg, .. } = &self.sides[side];
            format!("var x = a; var y = b; {} let c = called(a, b + {arg}u);", text(steps, false, 0))
        });
        let [first, second] = [("one", 0), ("two", 1)].map(|(name, side)| {
            let Side { stores, then, .. } = &self.sides[side];
            let before = if *stores { "result[id.x] = total;" } else { "" };
            let way = match then {
                Then::GoOn => "",
                Then::Break => "if total % 2u == 0u { left = true; break; }",
                Then::Continue => "if total % 2u == 0u { continue; }",
                Then::Return => "if total % 2u == 0u { return; }",
            };
            // Inside a switch, `break` leaves the switch only.
            let way = if self.is_switch { way.replace("break;", "") } else { way.to_owned() };
            format!("{before} total += {name}(a, id.x); {way}")
        });
        let branch = if self.is_switch {
            format!("switch a % 5u {{ case 0u, 1u: {{ {first} }} default: {{ {second} }} }} if left {{ break; }}")
        } else {
            format!("if a % 5u < 2u {{ {first} }} else {{ {second} }}")
        };
        let iterations = self.iterations;
        format!(
            "@group(0) @binding(0) var<storage, read> source: array<u32>;
             @group(0) @binding(1) var<storage, read_write> result: array<u32>;
             fn called(a: u32, b: u32) -> u32 {{ var x = a; var y = b; {} return x ^ y; }}
             fn one(a: u32, b: u32) -> u32 {{ {one} return c + x; }}
             fn two(a: u32, b: u32) -> u32 {{ {two} return c * y; }}
             @compute @workgroup_size(16) fn main(@builtin(global_invocation_id) id: vec3<u32>) {{
                 var a = source[id.x];
                 var total = 0u;
                 var left = false;
                 for (var iteration = 0u; iteration < 1u + a % {iterations}u; iteration++) {{ a ^= total & 7u; {branch} total += a; }}
                 result[id.x] = total;
             }}",
            text(&self.steps, false, 0)
        )
    }

    /// The sum that an invocation adds on a side.
    fn added(&self, side: usize, a: u32, id: u32) -> u32 {
        let Side { steps, arg, .. } = &self.sides[side];
        let (mut x, mut y) = (a, id);
        if let ControlFlow::Break(Way::Return(value)) = run(steps, &mut x, &mut y) {
            return value;
        }
        let (mut p, mut q) = (a, id.wrapping_add(*arg));
        let called = match run(&self.steps, &mut p, &mut q) {
            ControlFlow::Break(Way::Return(value)) => value,
            _ => p ^ q,
        };
        if side == 0 { called.wrapping_add(x) } else { called.wrapping_mul(y) }
    }

    /// The word of an invocation; initially 0.
    fn result(&self, id: u32) -> u32 {
        let (mut a, mut stored, mut total, mut iteration) = (source(id), 0, 0u32, 0);
        while iteration <= a % self.iterations {
            iteration += 1;
            a ^= total & 7;
            let side = usize::from(a % 5 >= 2);
            if self.sides[side].stores {
                stored = total;
            }
            total = total.wrapping_add(self.added(side, a, id));
            match self.sides[side].then {
                Then::Break if total.is_multiple_of(2) => break,
                Then::Continue if total.is_multiple_of(2) => continue,
                Then::Return if total.is_multiple_of(2) => return stored,
                _ => total = total.wrapping_add(a),
            }
        }
        total
    }
}

fn side() -> impl Strategy<Value = Side> {
    let steps = prop_oneof![3 => Just(Vec::new()), 1 => steps()];
    let arg = prop_oneof![7 => Just(0u32), 1 => Just(1)];
    let then =
        prop_oneof![3 => Just(Then::GoOn), 1 => Just(Then::Break), 1 => Just(Then::Continue), 1 => Just(Then::Return)];
    (steps, arg, prop::bool::weighted(0.25), then).prop_map(|(steps, arg, stores, then)| Side {
        steps,
        arg,
        stores,
        then,
    })
}

fn cases() -> impl Strategy<Value = Case> {
    (steps(), [side(), side()], prop_oneof![1 => Just(1), 1 => 2..6u32], any::<bool>())
        .prop_map(|(steps, sides, iterations, is_switch)| Case { steps, sides, iterations, is_switch })
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

/// A loop of a function that both sides call occurs once.
#[test]
fn a_loop_that_both_sides_call_is_there_once() {
    let steps = vec![Step::Loop(6, vec![Step::Mix(77), Step::Shift(3), Step::Break(5)]), Step::Read];
    let side = |steps, arg| Side { steps, arg, stores: false, then: Then::GoOn };
    let sides = [side(Vec::new(), 0), side(vec![Step::Mix(5)], 0)];
    let case = Case { steps, sides, iterations: 1, is_switch: false };
    let loops = |case: &Case| {
        let module = Module::from_wgsl(&case.text()).expect("the text is a module");
        let kernel = module.kernel("main", &BTreeMap::new()).expect("it has the entry point");
        compile::lower(&kernel, Floats::FAST, |_, _| {}).to_string().matches("loop block").count()
    };
    assert_eq!(loops(&case), 1);
    let other = [case.sides[0].clone(), side(vec![Step::Mix(5)], 1)];
    assert_eq!(loops(&Case { sides: other, ..case }), 2);
}
