//! Operations whose expansion rounds: the largest error against double precision, in units in the last place.

use spelter_shaders::ir::{Op, Type};

use crate::math::input::{FLOATS, Random};
use crate::math::{Runner, report};

/// Random inputs for each operation, in a test that runs always.
const INPUTS: usize = 100_000;

/// What is right for an operation, and how far off it may be.
pub(crate) struct Case {
    pub(crate) op: Op,
    /// What Vulkan asks.
    pub(crate) rule: &'static str,
    /// Largest error allowed, in units in the last place.
    pub(crate) bound: f64,
    reference: Reference,
}

#[derive(Clone, Copy)]
enum Reference {
    One(fn(f64) -> f64),
    Two(fn(f64, f64) -> f64),
}
use Reference::{One, Two};

pub(crate) fn cases() -> Vec<Case> {
    let case = |op, rule, bound, reference| Case { op, rule, bound, reference };
    let exponential = "3 + 2 × \\|x\\|";
    let logarithm = "3; absolute error 2^-21 in [0.5, 2]";
    let circle = "absolute error 2^-11 in [-π, π]";
    vec![
        case(Op::InverseSqrt, "2", 1.5, One(|a| a.sqrt().recip())),
        case(Op::Exp, exponential, 0.9, One(f64::exp)),
        case(Op::Exp2, exponential, 1.0, One(f64::exp2)),
        case(Op::Log, logarithm, 0.9, One(f64::ln)),
        case(Op::Log2, logarithm, 1.0, One(f64::log2)),
        case(Op::Pow, "as `exp2(y * log2(x))`", 2.2, Two(f64::powf)),
        case(Op::Sin, circle, 2.5, One(f64::sin)),
        case(Op::Cos, circle, 2.5, One(f64::cos)),
        case(Op::Tan, "as `sin(x) / cos(x)`", 4.0, One(f64::tan)),
        case(Op::Asin, "as `atan2(x, sqrt(1 - x * x))`", 1.7, One(f64::asin)),
        case(Op::Acos, "as `atan2(sqrt(1 - x * x), x)`", 1.2, One(f64::acos)),
        case(Op::Atan, "4096", 1.3, One(f64::atan)),
        case(Op::Atan2, "4096", 1.7, Two(f64::atan2)),
        case(Op::Sinh, "as `(exp(x) - exp(-x)) * 0.5`", 1.7, One(f64::sinh)),
        case(Op::Cosh, "as `(exp(x) + exp(-x)) * 0.5`", 1.4, One(f64::cosh)),
        case(Op::Tanh, "as `sinh(x) / cosh(x)`", 1.5, One(f64::tanh)),
        case(Op::Asinh, "as `log(x + sqrt(x * x + 1))`", 2.2, One(asinh)),
        case(Op::Acosh, "as `log(x + sqrt(x * x - 1))`", 2.6, One(acosh)),
        case(Op::Atanh, "as `log((1 + x) / (1 - x)) * 0.5`", 2.6, One(f64::atanh)),
    ]
}

/// The platform's cancels near 0.
fn asinh(a: f64) -> f64 {
    let size = a.abs();
    if size.is_infinite() {
        return a;
    }
    (size + size * size / (1.0 + (size * size + 1.0).sqrt())).ln_1p().copysign(a)
}

fn acosh(a: f64) -> f64 {
    let above = a - 1.0;
    if a < 1.0 { f64::NAN } else { (above + (above * (above + 2.0)).sqrt()).ln_1p() }
}

/// The error in units of the last place; infinite where no such number says it.
fn error_of(found: u32, value: f64) -> f64 {
    // Where rounding goes to infinity, infinity stands for the first number too large.
    let limit = 2f64.powi(128);
    let found = f64::from(f32::from_bits(found));
    let wrong_unless = |right: bool| if right { 0.0 } else { f64::INFINITY };
    if value.is_nan() {
        return wrong_unless(found.is_nan());
    }
    if value.is_infinite() || value == 0.0 {
        return wrong_unless(found == value && found.is_sign_negative() == value.is_sign_negative());
    }
    let exponent = ((value.to_bits() >> 52) & 0x7ff) as i32 - 1023;
    let unit = 2f64.powi(exponent.clamp(-126, 127) - 23);
    let error = (found.clamp(-limit, limit) - value.clamp(-limit, limit)).abs() / unit;
    // A NaN found is as wrong as can be.
    if error.is_nan() { f64::INFINITY } else { error }
}

/// The largest error over these inputs, and the one that has it; panics on the first that is above the bound.
#[track_caller]
fn largest_error(case: &Case, runner: &Runner, inputs: &[Vec<u32>]) -> (f64, Vec<u32>) {
    let mut largest = (0f64, Vec::new());
    for (input, found) in inputs.iter().zip(runner.apply(inputs)) {
        let number = |place: usize| f64::from(f32::from_bits(input[place]));
        let wanted = match case.reference {
            One(reference) => reference(number(0)),
            Two(reference) => reference(number(0), number(1)),
        };
        let error = error_of(found, wanted);
        let name = case.op.name();
        assert!(
            error <= case.bound,
            "{name} of {input:x?} {:?} gave {found:#x} ({:e}), which is {error} units from {wanted:e}",
            input.iter().map(|&bits| f32::from_bits(bits)).collect::<Vec<_>>(),
            f32::from_bits(found)
        );
        if error > largest.0 {
            largest = (error, input.clone());
        }
    }
    largest
}

/// The worst known inputs: the sweep below finds those of functions of one float.
const WORST: &[(Op, &[u32])] = &[
    (Op::InverseSqrt, &[0x1f80_cab3]),
    (Op::Exp, &[0x40a6_70be]),
    (Op::Exp2, &[0x4118_0c66]),
    (Op::Log, &[0x3f34_1a5a]),
    (Op::Log2, &[0x3f32_0921]),
    (Op::Pow, &[0x3fb5_99e0, 0x4373_7edb]),
    (Op::Sin, &[0x60a9_9e5b]),
    (Op::Cos, &[0xd479_eb63]),
    (Op::Log2, &[0x3f3e_c34f]),
    (Op::Log, &[0x3f3e_c34f]),
];

fn known(op: Op) -> Vec<Vec<u32>> {
    WORST.iter().filter(|(of, _)| *of == op).map(|(_, input)| input.to_vec()).collect()
}

fn specials(op: Op) -> Vec<Vec<u32>> {
    let bits = FLOATS.iter().map(|float| float.to_bits());
    match op.params().len() {
        1 => bits.map(|a| vec![a]).collect(),
        _ => bits.clone().flat_map(|a| bits.clone().map(move |b| vec![a, b])).collect(),
    }
}

/// Inputs where a function is steep, flat, or large.
fn draws(op: Op, count: usize, seed: u64) -> Vec<Vec<u32>> {
    let mut random = Random(seed);
    (0..count).map(|_| op.params().iter().map(|_| random.operand(Type::F32)).collect()).collect()
}

#[test]
fn precision_of_every_rounded_operation() {
    let measure = |case: &Case| {
        // What is made of operations on exponents may be off a unit more.
        let others = Runner::of_text(&crate::math::text_of(case.op), case.op.params().len(), crate::math::ON_EXPONENTS);
        let wider = Case { bound: case.bound + 1.0, ..*case };
        for inputs in [known(case.op), specials(case.op), draws(case.op, INPUTS, 12)] {
            largest_error(&wider, &others, &inputs);
        }
        let runner = Runner::new(case.op);
        let inputs = [known(case.op), specials(case.op), draws(case.op, INPUTS, 11)].concat();
        largest_error(case, &runner, &inputs).0
    };
    let rows: Vec<String> = cases().iter().map(|case| report::row(case, measure(case))).collect();
    report::check(&rows);
}

#[test]
fn powers_with_constant_exponents() {
    let case = Case { op: Op::Pow, rule: "", bound: 4.0, reference: Two(f64::powf) };
    let others = [0.0, -0.0, -2.0, 0.25, 2.2, 1.0 / 2.4, 6.0, 7.5, 1e10, f32::INFINITY, f32::NEG_INFINITY, f32::NAN];
    for exponent in [-1.0, 0.5, 1.0, 2.0, 3.0, 4.0, 5.0].into_iter().chain(others) {
        let bits = exponent.to_bits();
        let text = crate::math::text_of(Op::Pow).replace("pow v30, v31", "pow v30, v50");
        let text = text.replace("v0 = const.i32 0\n", &format!("v0 = const.i32 0\nv50 = const.f32 {bits:#x}\n"));
        let inputs: Vec<_> = [specials(Op::Pow), draws(Op::Pow, 2000, 5)].concat();
        let inputs: Vec<_> = inputs.into_iter().map(|input| vec![input[0], bits]).collect();
        largest_error(&case, &Runner::of_text(&text, 2, crate::math::EXACT), &inputs);
    }
}

#[test]
fn operations_are_exact_or_measured() {
    let measured: Vec<Op> = cases().iter().map(|case| case.op).collect();
    let elsewhere = [Op::FRem, Op::FMod, Op::FMix, Op::SmoothStep];
    for &op in Op::ALL {
        assert_eq!(
            crate::math::exact::is_rounded(op),
            measured.contains(&op) || elsewhere.contains(&op),
            "{}",
            op.name()
        );
    }
}

#[test]
#[ignore = "long: every 61st float, and as many pairs"]
fn sweep_of_rounded_operations() {
    let mut seed = 0;
    for case in cases() {
        let runner = Runner::new(case.op);
        let mut largest = (0f64, Vec::new());
        let floats: Vec<u32> = (0..=u32::MAX).step_by(61).collect();
        for part in floats.chunks(1 << 16) {
            seed += 1;
            let inputs = match case.reference {
                One(_) => part.iter().map(|&bits| vec![bits]).collect(),
                Two(_) => draws(case.op, part.len(), seed),
            };
            let worst = largest_error(&case, &runner, &inputs);
            largest = if worst.0 > largest.0 { worst } else { largest };
        }
        let (error, input) = largest;
        std::io::Write::write_fmt(
            &mut std::io::stdout(),
            format_args!("{}: {error:.3} at {input:x?}\n", case.op.name()),
        )
        .expect("stdout takes it");
    }
}
