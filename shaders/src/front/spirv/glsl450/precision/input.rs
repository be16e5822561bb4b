//! Test inputs: special values, random bits, and numbers of the relevant range.

use super::ArithmeticType;

/// Deterministic numbers (splitmix64).
pub(super) struct Random(u64);

impl Random {
    pub(super) fn new(seed: u64) -> Self {
        Self(seed)
    }

    fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ (z >> 31)
    }

    fn below(&mut self, limit: u64) -> u64 {
        self.next() % limit
    }

    fn bits(&mut self) -> u32 {
        (self.next() >> 32) as u32
    }

    /// From `low` to `high`.
    fn between(&mut self, low: f64, high: f64) -> f32 {
        (low + (high - low) * (self.next() >> 11) as f64 / (1u64 << 53) as f64) as f32
    }

    fn pick<T: Copy>(&mut self, from: &[T]) -> T {
        from[self.below(from.len() as u64) as usize]
    }
}

/// A set of 32-bit inputs.
#[derive(Clone, Copy)]
pub(super) enum InputSet {
    /// Any float: special values, any bits, small integers, numbers of moderate size.
    Float,
    /// Signed, magnitude from 2^-10 to less than 2^11.
    Moderate,
    /// From the first to the second number.
    Between(f64, f64),
    /// Any integer, edges often.
    Int,
    /// Integers from -320 to 320.
    Exponent,
    /// Columns of a matrix whose diagonal outweighs the rest; the number is its size.
    Dominant(usize),
}

const FLOATS: &[f32] = &[
    0.0,
    -0.0,
    1.0,
    -1.0,
    0.5,
    -0.5,
    1.5,
    2.5,
    -2.5,
    0.499_999_97,
    8_388_609.0,
    f32::MIN_POSITIVE,
    f32::MAX,
    f32::MIN,
    f32::INFINITY,
    f32::NEG_INFINITY,
    f32::NAN,
    1e-45,
    -1e-45,
    std::f32::consts::PI,
    std::f32::consts::FRAC_PI_2,
    88.722_84,
    -87.336_55,
    -103.972_08,
    127.0,
    128.0,
    -149.0,
];
const INTS: &[u32] = &[0, 1, 2, 31, 32, 33, 0x7fff_ffff, 0x8000_0000, 0x8000_0001, 0xffff_fffe, u32::MAX];

/// The scalars of operands, one after the other.
pub(super) fn operands(operands: &[(ArithmeticType, InputSet)], random: &mut Random) -> Vec<u32> {
    let scalars = operands.iter().flat_map(|&(shape, input)| (0..shape.len()).map(move |number| (input, number)));
    scalars.map(|(input, number)| scalar(input, number, random)).collect()
}

fn scalar(input: InputSet, number: usize, random: &mut Random) -> u32 {
    match input {
        InputSet::Float => float(random),
        InputSet::Moderate => moderate(random, 10).to_bits(),
        InputSet::Between(low, high) => random.between(low, high).to_bits(),
        InputSet::Int => match random.below(4) {
            0 => random.pick(INTS),
            1 => random.bits() >> random.below(32),
            _ => random.bits(),
        },
        InputSet::Exponent => (random.below(641) as i32 - 320).cast_unsigned(),
        InputSet::Dominant(size) => {
            let extra = if number.is_multiple_of(size + 1) { 2.0 * size as f32 } else { 0.0 };
            (random.between(-1.0, 1.0) + extra).to_bits()
        }
    }
}

fn float(random: &mut Random) -> u32 {
    match random.below(8) {
        0 => random.pick(FLOATS).to_bits(),
        1 | 2 => random.bits(),
        3 => random.between(-40.0, 40.0).round().to_bits(),
        4 => random.between(-100.0, 100.0).to_bits(),
        5 => random.between(-1.0, 1.0).to_bits(),
        _ => moderate(random, 12).to_bits(),
    }
}

fn moderate(random: &mut Random, exponent: i32) -> f32 {
    let power = random.below(2 * exponent as u64 + 1) as i32 - exponent;
    let sign = if random.below(2) == 0 { 1.0 } else { -1.0 };
    sign * random.between(1.0, 2.0) * 2f32.powi(power)
}
