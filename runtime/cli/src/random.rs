//! Random numbers that depend only on the seed.

use spelter_shaders::front::ScalarType;

/// A stream of random numbers: a counter and a mixing function (SplitMix64).
#[derive(Debug)]
pub(crate) struct Random {
    state: u64,
}

impl Random {
    /// The stream of a seed.
    pub(crate) fn new(seed: u64) -> Self {
        Self { state: seed }
    }

    /// 32 random bits.
    pub(crate) fn word(&mut self) -> u32 {
        self.state = self.state.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut bits = self.state;
        bits = (bits ^ (bits >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        bits = (bits ^ (bits >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        ((bits ^ (bits >> 31)) >> 32) as u32
    }

    /// From 0 up to but not including 1: a multiple of 2⁻²⁴.
    pub(crate) fn fraction(&mut self) -> f32 {
        (self.word() >> 8) as f32 / 16_777_216.0
    }

    /// The bits of a number of a block: a random fraction, or this integer, at most the largest signed one of its size.
    pub(crate) fn scalar(&mut self, scalar: ScalarType, integer: u64) -> u64 {
        match scalar {
            // An eighth, a quarter, a half or three quarters.
            ScalarType::Float(16) => [0x3000, 0x3400, 0x3800, 0x3a00][self.word() as usize % 4],
            ScalarType::Float(32) => self.fraction().to_bits().into(),
            ScalarType::Float(_) => f64::from(self.fraction()).to_bits(),
            // Random bits would be an address of other memory; no buffer is at 0.
            ScalarType::Address => 0,
            ScalarType::Int(bits) | ScalarType::Uint(bits) => integer.min((1 << (bits.min(32) - 1)) - 1),
        }
    }

    /// From -1 up to but not including 1.
    pub(crate) fn signed(&mut self) -> f32 {
        self.fraction() * 2.0 - 1.0
    }
}
