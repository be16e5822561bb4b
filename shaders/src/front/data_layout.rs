//! The layout of a shader's data in memory: what a host program needs to fill a buffer or push constants.
//!
//! Offsets, `ArrayStride` and `MatrixStride` are those of the module (Vulkan, "Shader Resource Interface", offset and
//! stride assignment); names are its debug names, which a stripped module does not have.

use std::collections::BTreeMap;
use std::fmt;
use std::ops::ControlFlow;

/// The type of a number in memory.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum ScalarType {
    /// A signed integer of this number of bits.
    Int(u32),
    /// An unsigned integer.
    Uint(u32),
    /// A float.
    Float(u32),
    /// A buffer device address: 64 bits.
    Address,
}

impl ScalarType {
    /// Size in bytes.
    pub fn bytes(self) -> u64 {
        match self {
            Self::Int(bits) | Self::Uint(bits) | Self::Float(bits) => u64::from(bits / 8),
            Self::Address => 8,
        }
    }
}

/// As WGSL and Rust write it: `u32`, `f16`; an address is `address`.
impl fmt::Display for ScalarType {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Int(bits) => write!(f, "i{bits}"),
            Self::Uint(bits) => write!(f, "u{bits}"),
            Self::Float(bits) => write!(f, "f{bits}"),
            Self::Address => f.write_str("address"),
        }
    }
}

/// The layouts of the data that a shader shares with the host.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Blocks {
    /// The storage and uniform buffers, by descriptor set (WGSL: group) and binding. Also those that the entry point
    /// does not use, where the module still has them.
    pub buffers: BTreeMap<(u32, u32), DataLayout>,
    /// The push constants.
    pub push: Option<DataLayout>,
    /// The names of variables by descriptor set and binding, also of images and samplers; of several, the first. A
    /// block without an instance name has that of its type.
    pub names: BTreeMap<(u32, u32), String>,
}

/// A type with its layout in memory.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum DataLayout {
    /// A number.
    Scalar(ScalarType),
    /// A vector; its components are `stride` bytes apart.
    Vector {
        /// The type of a component.
        scalar: ScalarType,
        /// The number of components.
        count: u32,
        /// Bytes from one component to the next.
        stride: u64,
    },
    /// A matrix. Its columns, or its rows if it is row-major, are `stride` bytes apart.
    Matrix {
        /// The type of a component.
        scalar: ScalarType,
        /// The number of columns.
        columns: u32,
        /// The number of rows.
        rows: u32,
        /// `MatrixStride`.
        stride: u64,
        /// `RowMajor`.
        row_major: bool,
    },
    /// An array. `count` is `None` for a runtime-sized one.
    Array {
        /// An element.
        element: Box<Self>,
        /// The number of elements.
        count: Option<u64>,
        /// `ArrayStride`: bytes from one element to the next.
        stride: u64,
    },
    /// A structure.
    Struct {
        /// Its name; empty if the module does not have it.
        name: String,
        /// Its members, in the order of the declaration.
        members: Vec<DataMember>,
    },
}

/// A member of a structure.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct DataMember {
    /// Its name; its number in the structure if the module does not have names.
    pub name: String,
    /// `Offset`: bytes from the start of the structure.
    pub offset: u64,
    /// Its type.
    pub layout: DataLayout,
}

/// A number in a block, as [`DataLayout::visit`] finds it.
#[derive(Clone, Copy, Debug)]
pub struct PlacedScalar<'a> {
    /// Bytes from the start of the block.
    pub offset: u64,
    /// Its type.
    pub scalar: ScalarType,
    /// The number, vector or matrix that it belongs to.
    pub of: &'a DataLayout,
    /// The names on the way to it, `lights[2].color`; empty if the whole is no structure and no array.
    pub path: &'a str,
}

impl DataLayout {
    /// Bytes from the start to the end of the last number; a runtime-sized array counts 0.
    pub fn bytes(&self) -> u64 {
        let repeated = |count: u64, stride: u64, last: u64| count.saturating_sub(1).saturating_mul(stride) + last;
        match self {
            Self::Scalar(scalar) => scalar.bytes(),
            Self::Vector { scalar, count, stride } => repeated(u64::from(*count), *stride, scalar.bytes()),
            Self::Matrix { scalar, columns, rows, stride, row_major } => {
                let (outer, inner) = if *row_major { (rows, columns) } else { (columns, rows) };
                repeated(u64::from(*outer), *stride, u64::from(*inner) * scalar.bytes())
            }
            Self::Array { element, count, stride } => match count {
                Some(count @ 1..) => repeated(*count, *stride, element.bytes()),
                _ => 0,
            },
            Self::Struct { members, .. } => {
                members.iter().map(|member| member.offset + member.layout.bytes()).max().unwrap_or(0)
            }
        }
    }

    /// The runtime-sized array at the end, with its offset.
    pub fn tail(&self) -> Option<(u64, &Self)> {
        match self {
            Self::Array { count: None, .. } => Some((0, self)),
            Self::Struct { members, .. } => {
                let last = members.last()?;
                let (offset, tail) = last.layout.tail()?;
                Some((last.offset + offset, tail))
            }
            _ => None,
        }
    }

    /// Visits the numbers in it, in the order of declaration: of each array at most the first `max` elements and the
    /// last one, of a runtime-sized one none. Stops when `visit` breaks.
    pub fn visit<B>(&self, max: u64, visit: &mut impl FnMut(PlacedScalar<'_>) -> ControlFlow<B>) -> ControlFlow<B> {
        self.visit_at(0, &mut String::new(), max, visit)
    }

    fn visit_at<B>(
        &self,
        start: u64,
        path: &mut String,
        max: u64,
        visit: &mut impl FnMut(PlacedScalar<'_>) -> ControlFlow<B>,
    ) -> ControlFlow<B> {
        match self {
            Self::Scalar(scalar) => visit(PlacedScalar { offset: start, scalar: *scalar, of: self, path }),
            Self::Vector { scalar, count, stride } => (0..u64::from(*count)).try_for_each(|at| {
                visit(PlacedScalar { offset: start + at * stride, scalar: *scalar, of: self, path })
            }),
            Self::Matrix { scalar, columns, rows, stride, row_major } => {
                let (outer, inner) = if *row_major { (*rows, *columns) } else { (*columns, *rows) };
                (0..u64::from(outer)).try_for_each(|line| {
                    (0..u64::from(inner)).try_for_each(|at| {
                        let offset = start + line * stride + at * scalar.bytes();
                        visit(PlacedScalar { offset, scalar: *scalar, of: self, path })
                    })
                })
            }
            Self::Array { element, count, stride } => {
                let count = count.unwrap_or(0);
                let last = (count > max).then(|| count - 1);
                (0..count.min(max)).chain(last).try_for_each(|at| {
                    let len = path.len();
                    path.push_str(&format!("[{at}]"));
                    let flow = element.visit_at(start.saturating_add(at.saturating_mul(*stride)), path, max, visit);
                    path.truncate(len);
                    flow
                })
            }
            Self::Struct { members, .. } => members.iter().try_for_each(|member| {
                let len = path.len();
                if len > 0 {
                    path.push('.');
                }
                path.push_str(&member.name);
                let flow = member.layout.visit_at(start + member.offset, path, max, visit);
                path.truncate(len);
                flow
            }),
        }
    }

    /// The number that begins at a byte, if there is one there.
    pub fn at(&self, offset: u64) -> Option<ScalarType> {
        let inside = |stride: u64, count: u64| {
            let at = offset.checked_div(stride).map_or(0, |at| at.min(count.saturating_sub(1)));
            (count > 0).then(|| offset - at * stride)
        };
        match self {
            Self::Scalar(scalar) => (offset == 0).then_some(*scalar),
            Self::Vector { scalar, count, stride } => (inside(*stride, u64::from(*count))? == 0).then_some(*scalar),
            Self::Matrix { scalar, columns, rows, stride, row_major } => {
                let (outer, inner) = if *row_major { (*rows, *columns) } else { (*columns, *rows) };
                let rest = inside(*stride, u64::from(outer))?;
                let fits = rest < u64::from(inner) * scalar.bytes() && rest.is_multiple_of(scalar.bytes());
                fits.then_some(*scalar)
            }
            Self::Array { element, count, stride } => element.at(inside(*stride, count.unwrap_or(u64::MAX))?),
            Self::Struct { members, .. } => members.iter().find_map(|member| {
                let inside = offset.checked_sub(member.offset)?;
                member.layout.at(inside)
            }),
        }
    }
}

/// As WGSL writes it, except that a structure without a name is written with its members.
impl fmt::Display for DataLayout {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Scalar(scalar) => write!(f, "{scalar}"),
            Self::Vector { scalar, count, .. } => write!(f, "vec{count}<{scalar}>"),
            Self::Matrix { scalar, columns, rows, .. } => write!(f, "mat{columns}x{rows}<{scalar}>"),
            Self::Array { element, count: Some(count), .. } => write!(f, "array<{element}, {count}>"),
            Self::Array { element, count: None, .. } => write!(f, "array<{element}>"),
            Self::Struct { name, members } if name.is_empty() => {
                f.write_str("{")?;
                for (at, DataMember { name, layout, .. }) in members.iter().enumerate() {
                    write!(f, "{}{name}: {layout}", if at == 0 { "" } else { ", " })?;
                }
                f.write_str("}")
            }
            Self::Struct { name, .. } => f.write_str(name),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const F32: ScalarType = ScalarType::Float(32);

    fn lights() -> DataLayout {
        let color = DataLayout::Vector { scalar: F32, count: 3, stride: 4 };
        let member = |name: &str, offset, layout| DataMember { name: name.into(), offset, layout };
        let light = DataLayout::Struct {
            name: "Light".into(),
            members: vec![member("color", 0, color), member("kind", 12, DataLayout::Scalar(ScalarType::Uint(32)))],
        };
        let list = DataLayout::Array { element: Box::new(light), count: Some(2), stride: 16 };
        DataLayout::Struct {
            name: String::new(),
            members: vec![member("count", 0, DataLayout::Scalar(ScalarType::Int(32))), member("lights", 16, list)],
        }
    }

    #[test]
    fn each_number_has_its_place() {
        let mut found = Vec::new();
        let flow = lights().visit(u64::MAX, &mut |number| {
            found.push(format!("{} {} {}", number.offset, number.path, number.scalar));
            if found.len() == 9 { ControlFlow::Break(()) } else { ControlFlow::Continue(()) }
        });
        assert!(flow.is_break());
        assert_eq!(found[..3], ["0 count i32", "16 lights[0].color f32", "20 lights[0].color f32"]);
        assert_eq!(found[8], "44 lights[1].kind u32");
        assert_eq!(lights().to_string(), "{count: i32, lights: array<Light, 2>}");
        assert_eq!(lights().bytes(), 48);
    }

    #[test]
    fn a_byte_has_the_number_that_begins_there() {
        let layout = lights();
        let at = |byte| layout.at(byte).map(|scalar| scalar.to_string());
        assert_eq!([at(0), at(4), at(16), at(18)], [Some("i32".into()), None, Some("f32".into()), None]);
        assert_eq!([at(44), at(48)], [Some("u32".into()), None]);
        let matrix = DataLayout::Matrix { scalar: F32, columns: 2, rows: 3, stride: 16, row_major: false };
        let starts: Vec<u64> = (0..32).filter(|byte| matrix.at(*byte).is_some()).collect();
        assert_eq!(starts, [0, 4, 8, 16, 20, 24]);
    }

    #[test]
    fn a_runtime_sized_array_has_no_end() {
        let element = Box::new(DataLayout::Vector { scalar: F32, count: 3, stride: 4 });
        let tail = DataLayout::Array { element, count: None, stride: 16 };
        assert_eq!((tail.bytes(), tail.at(16 * 1000 + 8), tail.at(12)), (0, Some(F32), None));
        let members = vec![DataMember { name: "all".into(), offset: 16, layout: tail.clone() }];
        assert_eq!(DataLayout::Struct { name: String::new(), members }.tail(), Some((16, &tail)));
        assert_eq!(lights().tail(), None);
    }
}
