//! Where operands come from: special values, any bits, and numbers from the range that matters.

use spelter_shaders::ir::Type;

/// Deterministic numbers (splitmix64).
pub(crate) struct Random(pub(crate) u64);

impl Random {
    fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ (z >> 31)
    }

    pub(crate) fn below(&mut self, limit: usize) -> usize {
        (self.next() % limit as u64) as usize
    }

    fn bits(&mut self) -> u32 {
        (self.next() >> 32) as u32
    }

    /// From `low` to `high`.
    fn between(&mut self, low: f64, high: f64) -> u32 {
        ((low + (high - low) * (self.next() >> 11) as f64 / (1u64 << 53) as f64) as f32).to_bits()
    }

    /// An operand of that type.
    pub(crate) fn operand(&mut self, ty: Type) -> u32 {
        match ty {
            Type::F32 => self.float(),
            _ => self.int(),
        }
    }

    fn int(&mut self) -> u32 {
        match self.below(6) {
            0 => INTS[self.below(INTS.len())],
            1 => self.below(66) as u32,
            2 => self.bits() >> self.below(32),
            3 => (self.bits().cast_signed() >> self.below(32)).cast_unsigned(),
            _ => self.bits(),
        }
    }

    fn float(&mut self) -> u32 {
        match self.below(8) {
            0 => FLOATS[self.below(FLOATS.len())].to_bits(),
            1 => self.bits(),
            2 => f32::from_bits(self.between(-40.0, 40.0)).round().to_bits(),
            3 => self.between(-110.0, 110.0),
            4 => self.between(-1.0, 1.0),
            5 => self.between(0.0, 3.0),
            // Any exponent from 2^-13 to 2^13, any sign.
            _ => (self.bits() & 0x807f_ffff) | ((self.below(27) as u32 + 114) << 23),
        }
    }
}

pub(crate) const INTS: &[u32] = &[
    0,
    1,
    2,
    3,
    7,
    10,
    31,
    32,
    33,
    0xffff,
    0x1_0000,
    0x00ff_ffff,
    0x0100_0000,
    0x0100_0001,
    0x7fff_ffff,
    0x8000_0000,
    0x8000_0001,
    0xfffe_ffff,
    0xffff_0000,
    0xffff_ff80,
    0xffff_fffe,
    u32::MAX,
];

pub(crate) const FLOATS: &[f32] = &[
    0.0,
    -0.0,
    1.0,
    -1.0,
    0.5,
    -0.5,
    1.5,
    2.0,
    -2.0,
    2.5,
    -2.5,
    3.0,
    -3.0,
    0.499_999_97,
    0.500_000_06,
    0.999_999_94,
    -0.999_999_94,
    1.000_000_1,
    -1.000_000_1,
    1e-4,
    6.1e-5,
    65504.0,
    65520.0,
    8_388_609.0,
    16_777_215.0,
    16_777_216.0,
    -16_777_217.0,
    4_294_967_300.0,
    f32::MIN_POSITIVE,
    1.175_494_2e-38,
    -f32::MIN_POSITIVE,
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
    88.722_85,
    -87.336_55,
    -103.972_08,
    -103.972_09,
    89.415_985,
    127.0,
    128.0,
    127.999_99,
    -126.0,
    -149.0,
    -150.0,
];
