//! Texture filtering: weighted means of texels, in the same operations as [`bytes`] and the linear filter.

use smallvec::{SmallVec, smallvec};

use super::texels::Corners;
use crate::image::bytes;
use crate::ir::Op;
use crate::simd::{Type, Value};
use crate::vectorize::image::{Components, TexelVectors};
use crate::vectorize::state::Widen;

/// The highest bit of each half-word: XOR with it subtracts 2^15 from a weight, and `y - 2^15` is the negated weight of
/// the top row.
const HALVES: u32 = 0x8000_8000;

/// The weights of two adjacent texels, in each lane.
#[derive(Clone, Copy, Debug)]
struct Weights {
    first: Value,
    second: Value,
    /// Whether the second texel has no weight.
    is_zero: Value,
}

impl Widen<'_> {
    /// Components of the weighted mean of encoded texels, from one row or from two. The weights are those of
    /// [`SampleHead`](super::cache::SampleHead).
    pub(super) fn mean_of_codes(
        &mut self,
        top: [Value; 2],
        bottom: Option<[Value; 2]>,
        &[x, y]: &[Value; 2],
        components: &Components,
    ) -> TexelVectors {
        let mut texel: TexelVectors = smallvec![x; components.len()];
        for (parity, op) in [Op::BytesEven, Op::BytesOdd].into_iter().enumerate() {
            let wanted = |component: u8| usize::from(component % 2) == parity;
            if !components.iter().any(|&component| wanted(component)) {
                continue;
            }
            let mut mean = self.mean_of_row(op, top, x);
            if let Some(bottom) = bottom {
                let bottom = self.mean_of_row(op, bottom, x);
                let highest = self.each(HALVES);
                let rest = self.builder.pure(Op::Xor, &[y, highest]);
                let less = self.builder.pure(Op::HalvesScale, &[mean, rest]);
                let more = self.builder.pure(Op::HalvesScale, &[bottom, y]);
                mean = self.builder.pure(Op::HalvesSub, &[more, less]);
            }
            let min = self.each(0x1_0001 * u32::from(bytes::BIAS.cast_unsigned()));
            let mean = self.builder.pure(Op::HalvesAdd, &[mean, min]);
            for (number, &component) in texel.iter_mut().zip(components).filter(|(_, component)| wanted(**component)) {
                let one = self.float(bytes::NUMBER);
                *number = if component < 2 {
                    let half = self.builder.pure(Op::HalfFloat, &[mean]);
                    // Exact: the factor is a power of two.
                    let above = self.float(-8_388_608.0 * bytes::NUMBER);
                    self.builder.pure(Op::Fma, &[half, one, above])
                } else {
                    let bits = self.each(16);
                    let half = self.builder.pure(Op::LShr, &[mean, bits]);
                    let half = self.builder.pure(Op::SIntToFloat, &[half]);
                    self.builder.pure(Op::FMul, &[half, one])
                };
            }
        }
        texel
    }

    /// Two components of the mean of two texels in a row, relative to the middle of the code range.
    fn mean_of_row(&mut self, both: Op, [a, b]: [Value; 2], weights: Value) -> Value {
        let codes = self.builder.pure(both, &[a, b]);
        let middle = self.each(0x8080_8080);
        let codes = self.builder.pure(Op::Xor, &[codes, middle]);
        self.builder.pure(Op::ByteProducts, &[weights, codes])
    }

    pub(super) fn each(&mut self, bits: u32) -> Value {
        self.builder.constant(Type::V32, bits.into())
    }

    /// A UNORM value as the number from 0 to 1 that it stands for.
    pub(super) fn quotient(&mut self, code: Value, reciprocal: [f32; 2]) -> Value {
        let [high, low] = reciprocal.map(|part| self.float(part));
        let rest = self.builder.pure(Op::FMul, &[code, low]);
        self.builder.pure(Op::Fma, &[code, high, rest])
    }

    /// The UNORM value of one component of a texel.
    pub(super) fn unorm_value(&mut self, word: Value, component: u8) -> Value {
        let [shift, mask] = [8 * u32::from(component), 0xff].map(|bits| self.each(bits));
        let low = if component == 0 { word } else { self.builder.pure(Op::LShr, &[word, shift]) };
        if component == 3 { low } else { self.builder.pure(Op::And, &[low, mask]) }
    }

    /// Components of the mean of four texels with one float each.
    pub(super) fn mean_of_floats(
        &mut self,
        corners: &Corners,
        &[x, y]: &[Value; 2],
        components: &Components,
    ) -> TexelVectors {
        let (zero, one) = (self.float(0.0), self.float(1.0));
        let weights = [x, y].map(|weight| {
            let is_zero = self.builder.pure(Op::FOrdEq, &[weight, zero]);
            Weights { first: self.builder.pure(Op::FSub, &[one, weight]), second: weight, is_zero }
        });
        let [c0, c1, c2, c3] = *corners;
        let top = self.mixed(c0, c1, weights[0]);
        let bottom = self.mixed(c2, c3, weights[0]);
        let red = self.mixed(top, bottom, weights[1]);
        let components = components.iter().map(|component| [red, zero, zero, one][usize::from(component % 4)]);
        components.collect::<SmallVec<_>>()
    }

    /// The weighted mean of two texels; the first one, also if the second is infinite, where the second has no weight.
    fn mixed(&mut self, a: Value, b: Value, Weights { first, second, is_zero }: Weights) -> Value {
        let part = self.builder.pure(Op::FMul, &[a, first]);
        let mean = self.builder.pure(Op::Fma, &[b, second, part]);
        self.builder.select(is_zero, a, mean)
    }
}
