//! What the 16 lanes of a subgroup see of a value: all the same, the same plus a constant of their own, or anything.

use std::collections::HashMap;

use crate::abi::SUBGROUP_SIZE;
use crate::ir::BuiltIn;

/// Lanes of a subgroup.
const LANES: usize = SUBGROUP_SIZE as usize;

/// A constant for each lane, by its place in [`Patterns`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Pattern(u32);

/// How a value differs between the lanes that are on together.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Shape {
    /// Not at all.
    Uniform,
    /// An `i32` that is a uniform base plus the lane's constant, modulo 2³².
    Pattern(Pattern),
    /// In any way.
    Varying,
}

/// All patterns of a kernel, each once.
#[derive(Clone, Debug)]
pub struct Patterns {
    all: Vec<[u32; LANES]>,
    numbers: HashMap<[u32; LANES], u32>,
}

impl Default for Patterns {
    fn default() -> Self {
        let mut patterns = Self { all: Vec::new(), numbers: HashMap::new() };
        patterns.shape(std::array::from_fn(|lane| lane as u32));
        patterns
    }
}

impl Patterns {
    /// Consecutive numbers: a base in lane 0, and 1 more in each lane.
    pub const ROW: Pattern = Pattern(0);

    /// The constants of the lanes.
    pub fn lanes(&self, pattern: Pattern) -> &[u32; LANES] {
        &self.all[pattern.0 as usize]
    }

    /// The shape of a uniform base plus these constants.
    pub fn shape(&mut self, lanes: [u32; LANES]) -> Shape {
        if lanes == [0; LANES] {
            return Shape::Uniform;
        }
        let next = self.all.len() as u32;
        let number = *self.numbers.entry(lanes).or_insert(next);
        if number == next {
            self.all.push(lanes);
        }
        Shape::Pattern(Pattern(number))
    }

    /// The constants that a shape adds to its base; `None` for varying values.
    pub fn offsets(&self, shape: Shape) -> Option<[u32; LANES]> {
        match shape {
            Shape::Uniform => Some([0; LANES]),
            Shape::Pattern(pattern) => Some(*self.lanes(pattern)),
            Shape::Varying => None,
        }
    }

    /// The shape of `combine` in each lane; varying if one of the two is.
    pub fn combine(&mut self, a: Shape, b: Shape, combine: impl Fn(u32, u32) -> u32) -> Shape {
        match (self.offsets(a), self.offsets(b)) {
            (Some(a), Some(b)) => self.shape(std::array::from_fn(|lane| combine(a[lane], b[lane]))),
            _ => Shape::Varying,
        }
    }

    /// The shape of a built-in's component: invocations go to lanes in order of their index.
    pub fn builtin(&mut self, builtin: BuiltIn, component: u8, [x, y, z]: [u32; 3]) -> Shape {
        match builtin {
            BuiltIn::NumWorkgroups | BuiltIn::WorkgroupId | BuiltIn::NumSubgroups | BuiltIn::SubgroupId => {
                Shape::Uniform
            }
            BuiltIn::LocalInvocationIndex | BuiltIn::SubgroupLocalInvocationId => Shape::Pattern(Self::ROW),
            BuiltIn::LocalInvocationId | BuiltIn::GlobalInvocationId => match component {
                0 => self.digit(1, x, u64::from(y) * u64::from(z)),
                1 => self.digit(x, y, u64::from(z)),
                _ => self.digit(x.saturating_mul(y), z, 1),
            },
        }
    }

    /// The shape of `index / below % size`, where indices go up to `below * size * above`.
    fn digit(&mut self, below: u32, size: u32, above: u64) -> Shape {
        let row = SUBGROUP_SIZE;
        let plane = below.saturating_mul(size);
        if size == 1 || below.is_multiple_of(row) {
            // A subgroup stays inside one step of the digit.
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

    /// Whether the shape of a component agrees with the ids that invocations have.
    fn check(size: [u32; 3], component: u8) -> Shape {
        let mut patterns = Patterns::default();
        let shape = patterns.builtin(BuiltIn::LocalInvocationId, component, size);
        let id = |index: u32| [index % size[0], index / size[0] % size[1], index / size[0] / size[1]];
        let invocations: u32 = size.iter().product();
        if let Some(offsets) = patterns.offsets(shape) {
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
    fn ids_are_what_their_shapes_say() {
        let sizes = [1, 2, 3, 4, 5, 8, 16, 17, 20, 32, 48];
        for x in sizes {
            for y in sizes {
                for z in [1, 2, 3, 4, 16] {
                    (0..3).for_each(|component| _ = check([x, y, z], component));
                }
            }
        }
        assert_eq!(check([64, 1, 1], 0), Shape::Pattern(Patterns::ROW));
        assert_eq!(check([100, 1, 1], 0), Shape::Pattern(Patterns::ROW));
        assert_eq!(check([16, 16, 1], 1), Shape::Uniform);
        assert!(matches!(check([8, 8, 1], 1), Shape::Pattern(_)));
        assert_eq!(check([5, 5, 1], 0), Shape::Varying);
    }
}
