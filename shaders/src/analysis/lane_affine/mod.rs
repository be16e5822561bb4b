//! Lane-affine decomposition of indices: the one form from which every memory access pattern is recognised.
//!
//! [`Shape`] is the abstract domain of the uniformity solver: a uniform base plus a constant per lane. [`LaneAffine`]
//! extends it, on demand, to sums that the solver calls varying: constants per lane times uniform values (a row pitch).

mod offsets;
pub(super) mod trailing_zeros;
mod transfer;

use smallvec::SmallVec;

pub use self::offsets::{LaneOffsetTable, LaneOffsets, Shape};
pub(super) use self::transfer::OperandShape;
use super::uniformity::Uniformity;
use crate::abi::SUBGROUP_SIZE;
use crate::ir::{Block, InstData, Kernel, Op, Value, ValueDef};

/// Lanes of a subgroup.
const LANES: usize = SUBGROUP_SIZE as usize;

/// Operations that a decomposition follows from a value to the leaves, at most.
const MAX_DEPTH: usize = 4;

/// A constant for each lane.
pub type LaneConstants = [u32; LANES];

/// A uniform summand.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum UniformTerm {
    /// A uniform value, or the base of a lane-affine one.
    Base(Value),
    /// The base of the first value times the second, which is uniform.
    Product(Value, Value),
}

/// The `i32` of each lane: uniform terms plus a constant per lane plus constants per lane times uniform values, modulo
/// 2³².
///
/// `image[y * pitch + x]` in tiles of 8 x 8 has, for `y * pitch`, the term `base(y) * pitch` and the symbolic part
/// `pitch * [0; 8], [1; 8]`.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct LaneAffine {
    /// The uniform terms.
    pub uniform: SmallVec<[UniformTerm; 3]>,
    /// The constant of each lane.
    pub lanes: LaneConstants,
    /// Uniform factors that only the running kernel knows, with the coefficient of each lane.
    pub symbolic: SmallVec<[(Value, LaneConstants); 1]>,
}

impl LaneAffine {
    /// A constant, the same in all lanes.
    pub fn constant(bits: u32) -> Self {
        Self { lanes: [bits; LANES], ..Self::default() }
    }

    /// The base of a value plus constants.
    pub fn of_base(value: Value, lanes: LaneConstants) -> Self {
        Self { uniform: SmallVec::from_slice(&[UniformTerm::Base(value)]), lanes, ..Self::default() }
    }

    /// The sum.
    #[must_use]
    pub fn plus(mut self, other: Self) -> Self {
        self.uniform.extend(other.uniform);
        self.lanes = std::array::from_fn(|lane| self.lanes[lane].wrapping_add(other.lanes[lane]));
        self.symbolic.extend(other.symbolic);
        self
    }

    /// The product with a uniform value; `None` if it has products of three.
    pub fn times(self, factor: Value) -> Option<Self> {
        if !self.symbolic.is_empty() {
            return None;
        }
        let product = |term: &UniformTerm| match *term {
            UniformTerm::Base(value) => Some(UniformTerm::Product(value, factor)),
            UniformTerm::Product(..) => None,
        };
        let uniform = self.uniform.iter().map(product).collect::<Option<_>>()?;
        Some(Self { uniform, symbolic: SmallVec::from_iter([(factor, self.lanes)]), ..Self::default() })
    }

    /// The only term, if the sum is a base plus constants.
    pub fn base(&self) -> Option<Value> {
        match self.uniform[..] {
            [UniformTerm::Base(base)] if self.symbolic.is_empty() => Some(base),
            _ => None,
        }
    }

    /// The difference between neighbouring lanes, if it is one constant: 0 for uniform values.
    pub fn stride(&self) -> Option<u32> {
        let stride = self.lanes[1].wrapping_sub(self.lanes[0]);
        let is_even =
            (0..).zip(&self.lanes).all(|(lane, &at)| at == self.lanes[0].wrapping_add(stride.wrapping_mul(lane)));
        (is_even && self.base().is_some()).then_some(stride)
    }

    /// Whether two lanes have the same symbolic part.
    pub fn same_symbolic(&self, a: usize, b: usize) -> bool {
        self.symbolic.iter().all(|(_, lanes)| lanes[a] == lanes[b])
    }

    /// The values from which it is computed.
    pub fn operands(&self) -> impl Iterator<Item = Value> {
        let uniform = self.uniform.iter().flat_map(|term| match *term {
            UniformTerm::Base(value) => [Some(value), None],
            UniformTerm::Product(a, b) => [Some(a), Some(b)],
        });
        let symbolic = self.symbolic.iter().map(|&(factor, _)| factor);
        uniform.flatten().chain(symbolic)
    }
}

/// Shapes and decompositions of values as one block uses them: a value that is live out of a divergent loop has changed
/// in later iterations, so it is varying and its definition says nothing.
#[derive(Clone, Copy, Debug)]
pub struct BlockShapes<'a> {
    /// The kernel.
    pub kernel: &'a Kernel,
    /// Its shapes.
    pub uniformity: &'a Uniformity,
    /// The block with the uses.
    pub block: Block,
}

impl BlockShapes<'_> {
    /// The shape of a value.
    pub fn shape(&self, value: Value) -> Shape {
        self.uniformity.shape_in(value, self.block)
    }

    /// Whether a value is the same in all active lanes.
    pub fn is_uniform(&self, value: Value) -> bool {
        self.shape(value) == Shape::Uniform
    }

    /// Whether a value counts the lanes: unit stride.
    pub fn is_contiguous(&self, value: Value) -> bool {
        self.shape(value) == Shape::Affine(LaneOffsetTable::CONTIGUOUS)
    }

    /// Whether the value is live out of a divergent loop that does not contain the block.
    pub fn is_temporally_divergent(&self, value: Value) -> bool {
        self.uniformity.is_temporally_divergent(value, self.block)
    }

    /// The instruction that defines a value, if its operands have the same values here.
    pub fn definition(&self, value: Value) -> Option<&InstData> {
        let ValueDef::Result { inst, .. } = self.kernel.values[value] else { return None };
        (!self.is_temporally_divergent(value)).then(|| &self.kernel.insts[inst])
    }

    /// The operation that defines a value, an operand, and another operand that is uniform.
    pub fn operation(&self, value: Value) -> Option<(Op, Value, Value)> {
        let Some(InstData::Pure { op, args }) = self.definition(value) else { return None };
        let &[a, b] = &args[..] else { return None };
        let (lanes, uniform) = if self.is_uniform(b) { (a, b) } else { (b, a) };
        self.is_uniform(uniform).then_some((*op, lanes, uniform))
    }

    /// A value without a constant that is added to it, and that constant.
    pub fn without_constant(&self, value: Value) -> (Value, u32) {
        if let Some(InstData::Pure { op: Op::IAdd, args }) = self.definition(value)
            && let Some(constant) = self.kernel.constant(args[1])
        {
            return (args[0], constant as u32);
        }
        (value, 0)
    }

    /// The lane-affine form of a value, if it has one.
    pub fn lane_affine(&self, value: Value) -> Option<LaneAffine> {
        self.decompose(value, MAX_DEPTH)
    }

    fn decompose(&self, value: Value, depth: usize) -> Option<LaneAffine> {
        if let Some(bits) = self.kernel.constant(value) {
            return Some(LaneAffine::constant(bits as u32));
        }
        if let Some(lanes) = self.uniformity.lane_offsets.offsets(self.shape(value)) {
            return Some(LaneAffine::of_base(value, lanes));
        }
        let depth = depth.checked_sub(1)?;
        let Some(InstData::Pure { op, args }) = self.definition(value) else { return None };
        match (op, self.operation(value)) {
            (Op::IMul, Some((_, lanes, factor))) => self.decompose(lanes, depth)?.times(factor),
            (Op::IAdd, _) => Some(self.decompose(args[0], depth)?.plus(self.decompose(args[1], depth)?)),
            _ => None,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The `i32` of a lane, for values with the numbers `of`.
    fn evaluate(index: &LaneAffine, lane: usize, of: impl Fn(Value) -> u32) -> u32 {
        let uniform = index.uniform.iter().map(|term| match *term {
            UniformTerm::Base(value) => of(value),
            UniformTerm::Product(a, b) => of(a).wrapping_mul(of(b)),
        });
        let symbolic = index.symbolic.iter().map(|(factor, lanes)| of(*factor).wrapping_mul(lanes[lane]));
        uniform.chain(symbolic).fold(index.lanes[lane], u32::wrapping_add)
    }

    fn numbered<const N: usize>() -> [Value; N] {
        std::array::from_fn(|number| Value::from_u32(number as u32))
    }

    #[test]
    fn sums_and_products_are_those_of_the_lanes() {
        let [y, x, pitch] = numbered();
        let of = |value: Value| [7, 100, 0xffff_fff0][value.as_u32() as usize];
        let rows: LaneConstants = std::array::from_fn(|lane| lane as u32 / 8);
        let columns: LaneConstants = std::array::from_fn(|lane| lane as u32 % 8);
        let row = LaneAffine::of_base(y, rows).times(pitch).expect("a product of two");
        let index = row.clone().plus(LaneAffine::of_base(x, columns));
        for lane in 0..LANES {
            let expected = (of(y) + rows[lane]).wrapping_mul(of(pitch)).wrapping_add(of(x) + columns[lane]);
            assert_eq!(evaluate(&index, lane, of), expected, "lane {lane}");
        }
        assert!(row.times(pitch).is_none(), "a product of three");
        assert!(index.stride().is_none() && index.base().is_none());
    }
}
