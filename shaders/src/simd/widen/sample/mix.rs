//! Texels to components, by weight: as [`codes`] and the linear filter do it.

use super::super::image::{Components, Texel};
use super::super::{Type, Value, Widen};
use super::texels::Corners;
use crate::image::codes;
use crate::ir::Op;

impl Widen<'_> {
    /// A component of four texels of codes, mixed.
    pub(super) fn mean_of_codes(&mut self, corners: &Corners, &[x, y]: &[Value; 2], component: u8) -> Value {
        let [c0, c1, c2, c3] = corners.map(|word| self.code(word, component));
        let top = self.mean_of_two(c0, c1, x);
        let bottom = self.mean_of_two(c2, c3, x);
        let step = self.builder.pure(Op::FSub, &[bottom, top]);
        let mean = self.builder.pure(Op::Fma, &[step, y, top]);
        self.quotient(mean, codes::reciprocal(255.0))
    }

    /// A code, or a mean of codes, as the number that it is.
    pub(super) fn quotient(&mut self, code: Value, reciprocal: [f32; 2]) -> Value {
        let [high, low] = reciprocal.map(|part| self.float(part));
        let rest = self.builder.pure(Op::FMul, &[code, low]);
        self.builder.pure(Op::Fma, &[code, high, rest])
    }

    /// Of two codes. Their difference is exact, in integers too, which leaves units for floats to the rest.
    fn mean_of_two(&mut self, a: Value, b: Value, weight: Value) -> Value {
        let step = self.builder.pure(Op::ISub, &[b, a]);
        let [step, a] = [step, a].map(|code| self.builder.pure(Op::SIntToFloat, &[code]));
        self.builder.pure(Op::Fma, &[step, weight, a])
    }

    /// A component's code.
    pub(super) fn code(&mut self, word: Value, component: u8) -> Value {
        let [shift, mask] = [8 * u64::from(component), 0xff].map(|bits| self.builder.constant(Type::V32, bits));
        let low = if component == 0 { word } else { self.builder.pure(Op::LShr, &[word, shift]) };
        if component == 3 { low } else { self.builder.pure(Op::And, &[low, mask]) }
    }

    /// Components of four texels of one float, mixed.
    pub(super) fn mean_of_floats(&mut self, corners: &Corners, &[x, y]: &[Value; 2], components: &Components) -> Texel {
        let (zero, one) = (self.float(0.0), self.float(1.0));
        let weights = [x, y].map(|weight| {
            let none = self.builder.pure(Op::FOrdEq, &[weight, zero]);
            (weight, self.builder.pure(Op::FSub, &[one, weight]), none)
        });
        let [c0, c1, c2, c3] = *corners;
        let top = self.mixed(c0, c1, weights[0]);
        let bottom = self.mixed(c2, c3, weights[0]);
        let red = self.mixed(top, bottom, weights[1]);
        components.iter().map(|component| [red, zero, zero, one][usize::from(component % 4)]).collect()
    }

    fn mixed(&mut self, a: Value, b: Value, (weight, rest, none): (Value, Value, Value)) -> Value {
        let part = self.builder.pure(Op::FMul, &[a, rest]);
        let mean = self.builder.pure(Op::Fma, &[b, weight, part]);
        self.builder.select(none, a, mean)
    }
}
