//! Lane-affine shapes: a value is uniform, a uniform base plus a constant offset in each of the 16 lanes, or varying.

use std::collections::HashMap;

use crate::abi::SUBGROUP_SIZE;
use crate::ir::BuiltIn;

/// Lanes of a subgroup.
const LANES: usize = SUBGROUP_SIZE as usize;

/// A constant offset for each lane, as an index into a [`LaneOffsetTable`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct LaneOffsets(u32);

/// How a value differs between the active lanes of a subgroup.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Shape {
    /// Equal in all active lanes.
    Uniform,
    /// An `i32`: a uniform base plus the lane's constant offset, modulo 2³².
    Affine(LaneOffsets),
    /// Any value in each lane.
    Varying,
}

/// All lane offsets of a kernel, each once.
#[derive(Clone, Debug)]
pub struct LaneOffsetTable {
    all: Vec<[u32; LANES]>,
    numbers: HashMap<[u32; LANES], u32>,
}

impl Default for LaneOffsetTable {
    fn default() -> Self {
        let mut table = Self { all: Vec::new(), numbers: HashMap::new() };
        // `CONTIGUOUS` is index 0.
        table.shape(std::array::from_fn(|lane| lane as u32));
        table
    }
}

impl LaneOffsetTable {
    /// Unit stride: the offset of a lane is its number.
    pub const CONTIGUOUS: LaneOffsets = LaneOffsets(0);

    /// The constant offsets by lane.
    pub fn lanes(&self, offsets: LaneOffsets) -> &[u32; LANES] {
        &self.all[offsets.0 as usize]
    }

    /// The shape of a uniform base plus these offsets.
    pub fn shape(&mut self, lanes: [u32; LANES]) -> Shape {
        if lanes == [0; LANES] {
            return Shape::Uniform;
        }
        let next = self.all.len() as u32;
        let number = *self.numbers.entry(lanes).or_insert(next);
        if number == next {
            self.all.push(lanes);
        }
        Shape::Affine(LaneOffsets(number))
    }

    /// The offsets that a shape adds to its base; `None` for varying values.
    pub fn offsets(&self, shape: Shape) -> Option<[u32; LANES]> {
        match shape {
            Shape::Uniform => Some([0; LANES]),
            Shape::Affine(offsets) => Some(*self.lanes(offsets)),
            Shape::Varying => None,
        }
    }

    /// The shape of `combine` of the offsets of two shapes, lane by lane; varying if one of the two is.
    pub(super) fn combine(&mut self, a: Shape, b: Shape, combine: impl Fn(u32, u32) -> u32) -> Shape {
        match (self.offsets(a), self.offsets(b)) {
            (Some(a), Some(b)) => self.shape(std::array::from_fn(|lane| combine(a[lane], b[lane]))),
            _ => Shape::Varying,
        }
    }

    /// The shape of a built-in's component. Invocations are assigned to lanes in the order of `LocalInvocationIndex`.
    pub fn builtin(&mut self, builtin: BuiltIn, component: u8, [x, y, z]: [u32; 3]) -> Shape {
        match builtin {
            BuiltIn::NumWorkgroups | BuiltIn::WorkgroupId | BuiltIn::NumSubgroups | BuiltIn::SubgroupId => {
                Shape::Uniform
            }
            BuiltIn::LocalInvocationIndex | BuiltIn::SubgroupLocalInvocationId => Shape::Affine(Self::CONTIGUOUS),
            BuiltIn::LocalInvocationId | BuiltIn::GlobalInvocationId => match component {
                0 => self.digit(1, x, u64::from(y) * u64::from(z)),
                1 => self.digit(x, y, u64::from(z)),
                _ => self.digit(x.saturating_mul(y), z, 1),
            },
        }
    }

    /// The shape of `index / below % size` for the 16 consecutive indices of each subgroup; indices are less than
    /// `below * size * above`.
    fn digit(&mut self, below: u32, size: u32, above: u64) -> Shape {
        let row = SUBGROUP_SIZE;
        let plane = below.saturating_mul(size);
        if size == 1 || below.is_multiple_of(row) {
            // The digit is constant within a subgroup.
            Shape::Uniform
        } else if row.is_multiple_of(below) && (above == 1 || plane.is_multiple_of(row) || row.is_multiple_of(plane)) {
            let wraps = above != 1 && !plane.is_multiple_of(row);
            self.shape(std::array::from_fn(|lane| {
                let step = lane as u32 / below;
                if wraps { step % size } else { step }
            }))
        } else {
            Shape::Varying
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Asserts that the shape of a component agrees with the ids of the invocations; returns the shape.
    fn check(size: [u32; 3], component: u8) -> Shape {
        let mut table = LaneOffsetTable::default();
        let shape = table.builtin(BuiltIn::LocalInvocationId, component, size);
        let id = |index: u32| [index % size[0], index / size[0] % size[1], index / size[0] / size[1]];
        let invocations: u32 = size.iter().product();
        if let Some(offsets) = table.offsets(shape) {
            for subgroup in 0..invocations.div_ceil(16) {
                let base = id(subgroup * 16)[component as usize];
                for index in subgroup * 16..invocations.min(subgroup * 16 + 16) {
                    let expected = base.wrapping_add(offsets[(index % 16) as usize]);
                    assert_eq!(id(index)[component as usize], expected, "{size:?}.{component} at {index}");
                }
            }
        }
        shape
    }

    #[test]
    fn ids_agree_with_their_shapes() {
        let sizes = [1, 2, 3, 4, 5, 8, 16, 17, 20, 32, 48];
        for x in sizes {
            for y in sizes {
                for z in [1, 2, 3, 4, 16] {
                    (0..3).for_each(|component| _ = check([x, y, z], component));
                }
            }
        }
        assert_eq!(check([64, 1, 1], 0), Shape::Affine(LaneOffsetTable::CONTIGUOUS));
        assert_eq!(check([100, 1, 1], 0), Shape::Affine(LaneOffsetTable::CONTIGUOUS));
        assert_eq!(check([16, 16, 1], 1), Shape::Uniform);
        assert!(matches!(check([8, 8, 1], 1), Shape::Affine(_)));
        assert_eq!(check([5, 5, 1], 0), Shape::Varying);
    }
}
