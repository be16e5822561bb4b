//! Where the scalars of a type lie in memory.
//!
//! Blocks have an explicit layout: `Offset`, `ArrayStride`, `MatrixStride`, row or column major. Variables of a workgroup
//! or invocation have none: there every scalar takes the next word, or two, and a bool is a word of 0 or 1.

use spirv::StorageClass;

use super::decorations::MemoryDecorations;
use super::scalar::Scalar;
use super::types::{Member, Type, Types};
use super::words::{Checked, Id};

/// Which rules hold.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Layout {
    /// Decorations say.
    Explicit,
    /// Packed.
    Natural,
}

/// What a structure's member says about the matrices in it, and about its memory.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct MatrixLayout {
    /// `MatrixStride`.
    pub(super) stride: Option<u32>,
    /// `RowMajor`.
    pub(super) row_major: bool,
    /// `NonWritable`, `Coherent` and `Volatile`.
    pub(super) memory: MemoryDecorations,
}

/// How the parts of a type lie: type and layout, and what outer types said about vectors and matrices.
#[derive(Clone, Copy, Debug)]
pub(super) struct Place {
    /// The type.
    pub(super) ty: Id,
    /// The rules.
    pub(super) layout: Layout,
    /// From the structure's member around it.
    pub(super) matrix: MatrixLayout,
    /// Bytes from one component of a vector to the next, where they are not next to each other: in a column of a row-major
    /// matrix.
    pub(super) component_stride: Option<u32>,
}

/// Parts of an array, matrix or vector: what they are and how far apart.
#[derive(Clone, Copy, Debug)]
pub(super) struct Parts {
    /// Place of the first part.
    pub(super) place: Place,
    /// Bytes from one to the next.
    pub(super) stride: u32,
    /// How many there are, where the type says so.
    pub(super) count: Option<u32>,
}

/// A scalar in memory, by its byte offset; of one of two words there are two.
pub(super) type Spot = (u32, Scalar);

impl Place {
    /// A whole variable.
    pub(super) fn new(ty: Id, layout: Layout) -> Self {
        Self { ty, layout, matrix: MatrixLayout::default(), component_stride: None }
    }

    /// Bytes of a scalar.
    fn bytes_of(self, scalar: Scalar) -> u32 {
        if self.layout == Layout::Explicit { scalar.bytes() } else { 4 * scalar.words() }
    }

    /// The parts of an array, matrix or vector.
    pub(super) fn parts(self, types: &Types) -> Checked<Parts> {
        let info = types.get(self.ty)?;
        let explicit = self.layout == Layout::Explicit;
        match &info.ty {
            Type::Array { element, stride, .. } | Type::RuntimeArray { element, stride } => {
                let stride = match (explicit, stride) {
                    (true, Some(stride)) => aligned("ArrayStride", *stride, types.get(*element)?.align)?,
                    (true, None) => return Err(format!("array %{} has no ArrayStride", self.ty)),
                    (false, _) => natural_bytes(types, *element)?,
                };
                let count = if let Type::Array { count, .. } = info.ty { Some(count) } else { None };
                Ok(Parts { place: Self { ty: *element, ..self }, stride, count })
            }
            Type::Matrix { column, scalar, rows, columns, .. } => {
                let component = self.bytes_of(*scalar);
                let stride = match (explicit, self.matrix.stride) {
                    (true, Some(stride)) => aligned("MatrixStride", stride, info.align)?,
                    (true, None) => return Err(format!("matrix %{} has no MatrixStride", self.ty)),
                    (false, _) => rows * component,
                };
                let row_major = explicit && self.matrix.row_major;
                let (stride, component_stride) = if row_major { (component, Some(stride)) } else { (stride, None) };
                let place = Self { ty: *column, component_stride, ..self };
                Ok(Parts { place, stride, count: Some(*columns) })
            }
            Type::Vector { element, scalar, count, .. } => {
                let stride = self.component_stride.unwrap_or(self.bytes_of(*scalar));
                let place = Self { ty: *element, component_stride: None, ..self };
                Ok(Parts { place, stride, count: Some(*count) })
            }
            _ => Err(format!("%{} has no elements", self.ty)),
        }
    }

    /// A member of a structure and its byte offset.
    pub(super) fn member(self, types: &Types, member: &Member, index: u32) -> Checked<(Self, u32)> {
        let offset = match self.layout {
            Layout::Natural => member.first.checked_mul(4).ok_or("a variable is too large")?,
            Layout::Explicit => match member.offset {
                Some(offset) => aligned("Offset", offset, types.get(member.ty)?.align)?,
                None => return Err(format!("member {index} of %{} has no Offset", self.ty)),
            },
        };
        Ok((Self { ty: member.ty, matrix: member.matrix, ..self }, offset))
    }

    /// Whether no member of a structure begins behind that one.
    pub(super) fn is_last_member(self, types: &Types, number: u32) -> Checked<bool> {
        let Type::Struct { members } = &types.get(self.ty)?.ty else { return Ok(false) };
        let Some((last, before)) = members.split_last().filter(|(_, before)| before.len() == number as usize) else {
            return Ok(false);
        };
        Ok(self.layout == Layout::Natural || before.iter().all(|member| member.offset <= last.offset))
    }

    /// Every scalar of a value, in the value's order. The caller has checked that there are not too many.
    pub(super) fn spots(self, types: &Types, from: u32, into: &mut Vec<Spot>) -> Checked<()> {
        let info = types.get(self.ty)?;
        match &info.ty {
            Type::Scalar(scalar) => {
                into.push((from, *scalar));
                if scalar.words() == 2 {
                    into.push((add(from, 4)?, *scalar));
                }
            }
            Type::Struct { members } => {
                for (index, member) in (0..).zip(members) {
                    let (place, offset) = self.member(types, member, index)?;
                    place.spots(types, add(from, offset)?, into)?;
                }
            }
            Type::Vector { count, .. } | Type::Array { count, .. } => self.repeat(types, *count, from, into)?,
            Type::Matrix { columns, .. } => self.repeat(types, *columns, from, into)?,
            Type::Pointer { class, .. } => match (class, self.layout) {
                (StorageClass::PhysicalStorageBuffer, _) => {
                    into.extend([(from, Scalar::I64), (add(from, 4)?, Scalar::I64)])
                }
                (_, Layout::Explicit) => return Err(only_variables(*class)),
                (StorageClass::StorageBuffer, _) => into.extend([(from, Scalar::Buffer), (add(from, 4)?, Scalar::I32)]),
                (StorageClass::Workgroup, _) => into.push((from, Scalar::I32)),
                _ => return Err(only_variables(*class)),
            },
            _ => return Err(format!("%{} has no size", self.ty)),
        }
        Ok(())
    }

    fn repeat(self, types: &Types, count: u32, from: u32, into: &mut Vec<Spot>) -> Checked<()> {
        let parts = self.parts(types)?;
        if types.get(parts.place.ty)?.scalars == 0 {
            return Ok(());
        }
        for index in 0..count {
            let offset = index.checked_mul(parts.stride).ok_or_else(overflow)?;
            parts.place.spots(types, add(from, offset)?, into)?;
        }
        Ok(())
    }

    /// Bytes from the start to the end of the fixed part: a runtime array at the end counts nothing.
    pub(super) fn bytes(self, types: &Types) -> Checked<u32> {
        let info = types.get(self.ty)?;
        match &info.ty {
            Type::Scalar(scalar) => Ok(self.bytes_of(*scalar)),
            Type::Struct { members } => {
                let mut end = 0;
                for (index, member) in (0..).zip(members) {
                    let (place, offset) = self.member(types, member, index)?;
                    end = end.max(add(offset, place.bytes(types)?)?);
                }
                Ok(end)
            }
            Type::Pointer { class: StorageClass::PhysicalStorageBuffer, .. } => Ok(8),
            Type::Pointer { class, .. } => Err(only_variables(*class)),
            Type::RuntimeArray { .. } => self.parts(types).map(|_| 0),
            Type::Vector { count, .. } | Type::Array { count, .. } => self.repeated_bytes(types, *count),
            Type::Matrix { columns, .. } => self.repeated_bytes(types, *columns),
            _ => Err(format!("%{} has no size", self.ty)),
        }
    }

    /// Bytes from one element to the next of the array without a size that ends a block; 0 for a block without one.
    pub(super) fn element_bytes(self, types: &Types) -> Checked<u32> {
        match &types.get(self.ty)?.ty {
            Type::Struct { members } => {
                let last = (0..).zip(members).last();
                last.map_or(Ok(0), |(index, member)| self.member(types, member, index)?.0.element_bytes(types))
            }
            Type::RuntimeArray { .. } => self.parts(types).map(|parts| parts.stride),
            _ => Ok(0),
        }
    }

    fn repeated_bytes(self, types: &Types, count: u32) -> Checked<u32> {
        let parts = self.parts(types)?;
        let last = (count - 1).checked_mul(parts.stride).ok_or_else(overflow)?;
        add(last, parts.place.bytes(types)?)
    }
}

fn only_variables(class: StorageClass) -> String {
    format!("pointers to storage class {class:?} can be stored in Function and Private variables only")
}

pub(super) fn natural_bytes(types: &Types, ty: Id) -> Checked<u32> {
    types.get(ty)?.scalars.checked_mul(4).ok_or_else(overflow)
}

fn add(a: u32, b: u32) -> Checked<u32> {
    a.checked_add(b).ok_or_else(overflow)
}

fn overflow() -> String {
    "a memory layout overflows 32 bits".into()
}

fn aligned(what: &str, bytes: u32, align: u32) -> Checked<u32> {
    if bytes.is_multiple_of(align) { Ok(bytes) } else { Err(format!("{what} {bytes} is not a multiple of {align}")) }
}
