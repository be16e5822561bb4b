//! Memory layout of data types: std140 and std430 (OpenGL 4.6, section 7.6.2.2), and explicit offsets of structures.

use super::number::{AmberScalar, Kind};
use super::types::{Struct, Type};

/// The largest number of scalars of one element, since arrays could have any number.
const MAX_SLOTS: usize = 1 << 16;

/// The rules of a block.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Rules {
    /// Arrays, columns and structures are aligned to 16 bytes.
    Std140,
    /// They are aligned as their elements.
    Std430,
}

/// A scalar of an element.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct ScalarSlot {
    /// Bytes from the start of the element.
    pub(crate) offset: u32,
    /// Its type.
    pub(crate) scalar: AmberScalar,
}

/// The layout of an element of a buffer.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Layout {
    /// Bytes from one element to the next.
    pub(crate) stride: u32,
    /// The scalars, in the order in which scripts name their values.
    pub(crate) slots: Vec<ScalarSlot>,
}

impl Layout {
    /// The layout of the elements of a buffer of this type.
    pub(crate) fn new(ty: &Type, rules: Rules) -> Result<Self, String> {
        // A buffer is an array of its type anyway; `[]` only means that its stride is that of an array in std140.
        let (element, array) = match ty {
            Type::Array(element, _) => (&**element, true),
            other => (other, false),
        };
        let mut walk = LayoutWalk { rules, slots: Vec::new() };
        let placed = walk.place(element, 0, None)?;
        let align = if array { walk.aggregate(placed.align) } else { placed.align };
        Ok(Self { stride: round_up(placed.size, align)?, slots: walk.slots })
    }

    /// The offset and type of the scalar number `index` of a buffer.
    pub(crate) fn slot(&self, index: usize) -> Option<(usize, AmberScalar)> {
        let (element, slot) = (index.checked_div(self.slots.len())?, self.slots[index % self.slots.len()]);
        Some((element.checked_mul(self.stride as usize)? + slot.offset as usize, slot.scalar))
    }
}

/// Size and alignment of a placed type.
#[derive(Clone, Copy)]
struct Placed {
    size: u32,
    align: u32,
}

/// Explicit strides of a member.
#[derive(Clone, Copy)]
struct Strides {
    array: Option<u32>,
    matrix: Option<u32>,
}

struct LayoutWalk {
    rules: Rules,
    slots: Vec<ScalarSlot>,
}

impl LayoutWalk {
    /// The alignment of an array, a column or a structure.
    fn aggregate(&self, align: u32) -> u32 {
        if self.rules == Rules::Std140 { align.max(16) } else { align }
    }

    fn scalar(&mut self, scalar: AmberScalar, offset: u32) -> Result<(), String> {
        if self.slots.len() >= MAX_SLOTS {
            return Err(format!("an element has more than {MAX_SLOTS} scalars"));
        }
        self.slots.push(ScalarSlot { offset, scalar });
        Ok(())
    }

    fn vector(&mut self, scalar: AmberScalar, count: u32, at: u32) -> Result<Placed, String> {
        (0..count).try_for_each(|i| self.scalar(scalar, add(at, i * scalar.bytes())?))?;
        // Three components are aligned as four.
        let align = count.next_power_of_two() * scalar.bytes();
        Ok(Placed { size: count * scalar.bytes(), align })
    }

    fn place(&mut self, ty: &Type, at: u32, strides: Option<Strides>) -> Result<Placed, String> {
        match ty {
            Type::Scalar(scalar) => self.vector(*scalar, 1, at),
            Type::Vector(scalar, count) => self.vector(*scalar, *count, at),
            Type::Matrix { scalar, columns, rows } => self.matrix(*scalar, *columns, *rows, at, strides),
            Type::Array(element, Some(count)) => self.array(element, *count, at, strides),
            Type::Array(_, None) => Err("only a whole buffer may be an array without a size".into()),
            Type::Struct(of) => self.structure(of, at),
            Type::Texel(texel) => {
                let slots = texel.slots();
                slots.iter().try_for_each(|slot| self.scalar(slot.scalar, add(at, slot.offset)?))?;
                let align = slots.first().map_or(1, |slot| slot.scalar.bytes());
                Ok(Placed { size: texel.bytes(), align })
            }
        }
    }

    fn matrix(
        &mut self,
        scalar: AmberScalar,
        columns: u32,
        rows: u32,
        at: u32,
        strides: Option<Strides>,
    ) -> Result<Placed, String> {
        let align = self.aggregate(rows.next_power_of_two() * scalar.bytes());
        let stride = strides.and_then(|strides| strides.matrix).unwrap_or(align);
        if stride < rows * scalar.bytes() {
            return Err(format!("a MATRIX_STRIDE of {stride} is less than a column"));
        }
        for column in 0..columns {
            self.vector(scalar, rows, add(at, mul(column, stride)?)?)?;
        }
        Ok(Placed { size: mul(columns, stride)?, align })
    }

    fn array(&mut self, element: &Type, count: u32, at: u32, strides: Option<Strides>) -> Result<Placed, String> {
        let inner = strides.map(|strides| Strides { array: None, ..strides });
        let first = self.place(element, at, inner)?;
        let align = self.aggregate(first.align);
        let stride = strides.and_then(|strides| strides.array).unwrap_or(round_up(first.size, align)?);
        if stride < first.size {
            return Err(format!("an ARRAY_STRIDE of {stride} is less than an element"));
        }
        for index in 1..count {
            self.place(element, add(at, mul(index, stride)?)?, inner)?;
        }
        Ok(Placed { size: mul(count, stride)?, align })
    }

    fn structure(&mut self, of: &Struct, at: u32) -> Result<Placed, String> {
        let (mut end, mut align) = (0, self.aggregate(1));
        for member in &of.members {
            let strides = Strides { array: member.array_stride, matrix: member.matrix_stride };
            // The alignment is known only after a member has been placed, so it is placed twice.
            let mark = self.slots.len();
            let placed = self.place(&member.ty, at, Some(strides))?;
            self.slots.truncate(mark);
            let offset = match member.offset {
                Some(offset) if offset < end => {
                    return Err(format!("`{}` at OFFSET {offset} overlaps the member before it", member.name));
                }
                Some(offset) => offset,
                None => round_up(end, placed.align)?,
            };
            self.place(&member.ty, add(at, offset)?, Some(strides))?;
            end = add(offset, placed.size)?;
            align = align.max(placed.align);
        }
        let size = match of.stride {
            Some(stride) if stride < end => {
                return Err(format!("a STRIDE of {stride} is less than {end} bytes of members"));
            }
            Some(stride) => stride,
            None => round_up(end, align)?,
        };
        // An explicit stride determines the distance of elements, so the alignment does not matter.
        Ok(Placed { size, align: if of.stride.is_some() { 1 } else { align } })
    }
}

const TOO_LARGE: &str = "an element of 4 GiB or more";

fn add(a: u32, b: u32) -> Result<u32, String> {
    a.checked_add(b).ok_or_else(|| TOO_LARGE.to_owned())
}

fn mul(a: u32, b: u32) -> Result<u32, String> {
    a.checked_mul(b).ok_or_else(|| TOO_LARGE.to_owned())
}

fn round_up(size: u32, align: u32) -> Result<u32, String> {
    size.checked_next_multiple_of(align).ok_or_else(|| TOO_LARGE.to_owned())
}

/// An unsigned scalar of that many bits.
pub(super) fn unsigned(bits: u32) -> AmberScalar {
    AmberScalar { kind: Kind::Uint, bits }
}

#[cfg(test)]
mod tests {
    use std::collections::HashMap;
    use std::rc::Rc;

    use super::*;
    use crate::amber::types::Member;

    fn layout(ty: &str, rules: Rules) -> (u32, Vec<u32>) {
        let ty = Type::parse(ty, &HashMap::new()).unwrap_or_else(|| panic!("{ty}"));
        let layout = Layout::new(&ty, rules).unwrap_or_else(|problem| panic!("{problem}"));
        (layout.stride, layout.slots.iter().map(|slot| slot.offset).collect())
    }

    fn member(ty: &str) -> Member {
        let ty = Type::parse(ty, &HashMap::new()).unwrap_or_else(|| panic!("{ty}"));
        Member { name: "m".into(), ty, offset: None, array_stride: None, matrix_stride: None }
    }

    fn of(members: Vec<Member>, stride: Option<u32>, rules: Rules) -> Result<Layout, String> {
        Layout::new(&Type::Struct(Rc::new(Struct { stride, members })), rules)
    }

    #[test]
    fn vectors_of_three_take_four() {
        for rules in [Rules::Std140, Rules::Std430] {
            assert_eq!(layout("vec3<float>", rules), (16, vec![0, 4, 8]));
            assert_eq!(layout("vec3<int8>", rules), (4, vec![0, 1, 2]));
            assert_eq!(layout("vec2<double>", rules), (16, vec![0, 8]));
            assert_eq!(layout("int16", rules), (2, vec![0]));
        }
    }

    #[test]
    fn std140_spreads_arrays_and_columns() {
        assert_eq!(layout("int8[]", Rules::Std140), (16, vec![0]));
        assert_eq!(layout("int8[]", Rules::Std430), (1, vec![0]));
        assert_eq!(layout("mat2x2<float>", Rules::Std140), (32, vec![0, 4, 16, 20]));
        assert_eq!(layout("mat2x2<float>", Rules::Std430), (16, vec![0, 4, 8, 12]));
        assert_eq!(layout("mat2x3<float16>", Rules::Std430), (16, vec![0, 2, 4, 8, 10, 12]));
        assert_eq!(layout("mat3x3<double>", Rules::Std430), (96, vec![0, 8, 16, 32, 40, 48, 64, 72, 80]));
    }

    #[test]
    fn structures_follow_the_rules_of_blocks() {
        let members =
            || vec![member("float"), member("vec3<float>"), member("float"), member("float[2]"), member("int8")];
        let offsets =
            |layout: Result<Layout, String>| layout.map(|l| (l.stride, l.slots.iter().map(|s| s.offset).collect()));
        let std430: (u32, Vec<u32>) = (48, vec![0, 16, 20, 24, 28, 32, 36, 40]);
        assert_eq!(offsets(of(members(), None, Rules::Std430)), Ok(std430));
        let std140: (u32, Vec<u32>) = (80, vec![0, 16, 20, 24, 28, 32, 48, 64]);
        assert_eq!(offsets(of(members(), None, Rules::Std140)), Ok(std140));
    }

    #[test]
    fn a_structure_may_say_where_its_members_are() {
        let members = vec![
            Member { offset: Some(8), ..member("float") },
            Member { offset: Some(16), array_stride: Some(12), ..member("float[2]") },
            Member { offset: Some(64), matrix_stride: Some(24), ..member("mat2x2<float>") },
        ];
        let layout = of(members, Some(200), Rules::Std430).unwrap_or_else(|problem| panic!("{problem}"));
        assert_eq!(layout.stride, 200);
        let offsets: Vec<_> = layout.slots.iter().map(|slot| slot.offset).collect();
        assert_eq!(offsets, [8, 16, 28, 64, 68, 88, 92]);
        assert_eq!(layout.slot(8).map(|(at, _)| at), Some(216));
    }

    #[test]
    fn what_does_not_fit_is_refused() {
        let overlap = vec![member("vec4<float>"), Member { offset: Some(8), ..member("float") }];
        assert!(of(overlap, None, Rules::Std430).is_err_and(|problem| problem.contains("overlaps")));
        assert!(
            of(vec![member("vec4<float>")], Some(8), Rules::Std430).is_err_and(|problem| problem.contains("STRIDE"))
        );
        assert!(of(vec![member("float[4000000000]")], None, Rules::Std430).is_err());
        assert!(
            of(vec![member("float[100000]")], None, Rules::Std430).is_err_and(|problem| problem.contains("scalars"))
        );
    }
}
