//! Memory layout of types: the offsets of their scalars.
//!
//! Blocks have an explicit layout: `Offset`, `ArrayStride`, `MatrixStride`, row or column major. Workgroup and private
//! variables have none: there every scalar takes the next word, or two, and a bool is a word of 0 or 1.

use spirv::StorageClass;

use super::decorations::MemoryDecorations;
use super::scalar::Scalar;
use super::types::{Member, SpirvType, Types};
use super::words::{Id, InstResult};

/// The layout rules.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum LayoutRules {
    /// From decorations.
    Explicit,
    /// Packed.
    Natural,
}

/// Decorations of a structure member that apply to the matrices in it, and to its memory.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct MatrixLayout {
    /// `MatrixStride`.
    pub(super) stride: Option<u32>,
    /// `RowMajor`.
    pub(super) row_major: bool,
    /// `NonWritable`, `Coherent` and `Volatile`.
    pub(super) memory: MemoryDecorations,
}

/// A type in memory, to which pointers point: its layout, and the decorations of enclosing members.
#[derive(Clone, Copy, Debug)]
pub(super) struct Pointee {
    /// The type.
    pub(super) ty: Id,
    /// The rules.
    pub(super) layout: LayoutRules,
    /// From the enclosing structure member.
    pub(super) matrix: MatrixLayout,
    /// Stride in bytes of a vector's components if they are not contiguous: in a column of a row-major matrix.
    pub(super) component_stride: Option<u32>,
}

/// Elements of an array, matrix or vector: their type and stride.
#[derive(Clone, Copy, Debug)]
pub(super) struct PointeeElements {
    /// The first element.
    pub(super) place: Pointee,
    /// Stride in bytes.
    pub(super) stride: u32,
    /// Number of elements, if the type has it.
    pub(super) count: Option<u32>,
}

/// A scalar in memory, with its byte offset; a two-word scalar has two.
pub(super) type Spot = (u32, Scalar);

impl Pointee {
    /// The place of a whole variable.
    pub(super) fn new(ty: Id, layout: LayoutRules) -> Self {
        Self { ty, layout, matrix: MatrixLayout::default(), component_stride: None }
    }

    /// Bytes of a scalar.
    fn bytes_of(self, scalar: Scalar) -> u32 {
        if self.layout == LayoutRules::Explicit { scalar.bytes() } else { 4 * scalar.words() }
    }

    /// The elements of an array, matrix or vector.
    pub(super) fn elements(self, types: &Types) -> InstResult<PointeeElements> {
        let info = types.get(self.ty)?;
        let explicit = self.layout == LayoutRules::Explicit;
        match &info.ty {
            SpirvType::Array { element, stride, .. } | SpirvType::RuntimeArray { element, stride } => {
                let stride = match (explicit, stride) {
                    (true, Some(stride)) => aligned("ArrayStride", *stride, types.get(*element)?.align)?,
                    (true, None) => return Err(format!("array %{} has no ArrayStride", self.ty)),
                    (false, _) => natural_bytes(types, *element)?,
                };
                let count = if let SpirvType::Array { count, .. } = info.ty { Some(count) } else { None };
                Ok(PointeeElements { place: Self { ty: *element, ..self }, stride, count })
            }
            SpirvType::Matrix { column, scalar, rows, columns, .. } => {
                let component = self.bytes_of(*scalar);
                let stride = match (explicit, self.matrix.stride) {
                    (true, Some(stride)) => aligned("MatrixStride", stride, info.align)?,
                    (true, None) => return Err(format!("matrix %{} has no MatrixStride", self.ty)),
                    (false, _) => rows * component,
                };
                let row_major = explicit && self.matrix.row_major;
                let (stride, component_stride) = if row_major { (component, Some(stride)) } else { (stride, None) };
                let place = Self { ty: *column, component_stride, ..self };
                Ok(PointeeElements { place, stride, count: Some(*columns) })
            }
            SpirvType::Vector { element, scalar, count, .. } => {
                let stride = self.component_stride.unwrap_or(self.bytes_of(*scalar));
                let place = Self { ty: *element, component_stride: None, ..self };
                Ok(PointeeElements { place, stride, count: Some(*count) })
            }
            _ => Err(format!("%{} has no elements", self.ty)),
        }
    }

    /// A member of a structure and its byte offset.
    pub(super) fn member(self, types: &Types, member: &Member, index: u32) -> InstResult<(Self, u32)> {
        let offset = match self.layout {
            LayoutRules::Natural => member.first.checked_mul(4).ok_or("a variable is too large")?,
            LayoutRules::Explicit => match member.offset {
                Some(offset) => aligned("Offset", offset, types.get(member.ty)?.align)?,
                None => return Err(format!("member {index} of %{} has no Offset", self.ty)),
            },
        };
        Ok((Self { ty: member.ty, matrix: member.matrix, ..self }, offset))
    }

    /// Whether no member of the structure has a greater offset than this one.
    pub(super) fn is_last_member(self, types: &Types, number: u32) -> InstResult<bool> {
        let SpirvType::Struct { members } = &types.get(self.ty)?.ty else { return Ok(false) };
        let Some((last, before)) = members.split_last().filter(|(_, before)| before.len() == number as usize) else {
            return Ok(false);
        };
        Ok(self.layout == LayoutRules::Natural || before.iter().all(|member| member.offset <= last.offset))
    }

    /// Appends every scalar of a value, in the value's order. The caller has limited their number.
    pub(super) fn spots(self, types: &Types, from: u32, into: &mut Vec<Spot>) -> InstResult<()> {
        let info = types.get(self.ty)?;
        match &info.ty {
            SpirvType::Scalar(scalar) => {
                into.push((from, *scalar));
                if scalar.words() == 2 {
                    into.push((add(from, 4)?, *scalar));
                }
            }
            SpirvType::Struct { members } => {
                for (index, member) in (0..).zip(members) {
                    let (place, offset) = self.member(types, member, index)?;
                    place.spots(types, add(from, offset)?, into)?;
                }
            }
            SpirvType::Vector { count, .. } | SpirvType::Array { count, .. } => {
                self.repeat(types, *count, from, into)?
            }
            SpirvType::Matrix { columns, .. } => self.repeat(types, *columns, from, into)?,
            SpirvType::Pointer { class, .. } => match (class, self.layout) {
                (StorageClass::PhysicalStorageBuffer, _) => {
                    into.extend([(from, Scalar::I64), (add(from, 4)?, Scalar::I64)])
                }
                (_, LayoutRules::Explicit) => return Err(only_variables(*class)),
                (StorageClass::StorageBuffer, _) => into.extend([(from, Scalar::Buffer), (add(from, 4)?, Scalar::I32)]),
                (StorageClass::Workgroup, _) => into.push((from, Scalar::I32)),
                _ => return Err(only_variables(*class)),
            },
            _ => return Err(format!("%{} has no size", self.ty)),
        }
        Ok(())
    }

    fn repeat(self, types: &Types, count: u32, from: u32, into: &mut Vec<Spot>) -> InstResult<()> {
        let elements = self.elements(types)?;
        if types.get(elements.place.ty)?.scalars == 0 {
            return Ok(());
        }
        for index in 0..count {
            let offset = index.checked_mul(elements.stride).ok_or_else(overflow)?;
            elements.place.spots(types, add(from, offset)?, into)?;
        }
        Ok(())
    }

    /// Size of the fixed part in bytes: a runtime array at the end counts 0.
    pub(super) fn bytes(self, types: &Types) -> InstResult<u32> {
        let info = types.get(self.ty)?;
        match &info.ty {
            SpirvType::Scalar(scalar) => Ok(self.bytes_of(*scalar)),
            SpirvType::Struct { members } => {
                let mut end = 0;
                for (index, member) in (0..).zip(members) {
                    let (place, offset) = self.member(types, member, index)?;
                    end = end.max(add(offset, place.bytes(types)?)?);
                }
                Ok(end)
            }
            SpirvType::Pointer { class: StorageClass::PhysicalStorageBuffer, .. } => Ok(8),
            SpirvType::Pointer { class, .. } => Err(only_variables(*class)),
            SpirvType::RuntimeArray { .. } => self.elements(types).map(|_| 0),
            SpirvType::Vector { count, .. } | SpirvType::Array { count, .. } => self.repeated_bytes(types, *count),
            SpirvType::Matrix { columns, .. } => self.repeated_bytes(types, *columns),
            _ => Err(format!("%{} has no size", self.ty)),
        }
    }

    /// Stride in bytes of the runtime array at a block's end; 0 for a block without one.
    pub(super) fn element_bytes(self, types: &Types) -> InstResult<u32> {
        match &types.get(self.ty)?.ty {
            SpirvType::Struct { members } => {
                let last = (0..).zip(members).last();
                last.map_or(Ok(0), |(index, member)| self.member(types, member, index)?.0.element_bytes(types))
            }
            SpirvType::RuntimeArray { .. } => self.elements(types).map(|elements| elements.stride),
            _ => Ok(0),
        }
    }

    fn repeated_bytes(self, types: &Types, count: u32) -> InstResult<u32> {
        let elements = self.elements(types)?;
        let last = (count - 1).checked_mul(elements.stride).ok_or_else(overflow)?;
        add(last, elements.place.bytes(types)?)
    }
}

fn only_variables(class: StorageClass) -> String {
    format!("pointers to storage class {class:?} can be stored in Function and Private variables only")
}

pub(super) fn natural_bytes(types: &Types, ty: Id) -> InstResult<u32> {
    types.get(ty)?.scalars.checked_mul(4).ok_or_else(overflow)
}

fn add(a: u32, b: u32) -> InstResult<u32> {
    a.checked_add(b).ok_or_else(overflow)
}

fn overflow() -> String {
    "a memory layout overflows 32 bits".into()
}

fn aligned(what: &str, bytes: u32, align: u32) -> InstResult<u32> {
    if bytes.is_multiple_of(align) { Ok(bytes) } else { Err(format!("{what} {bytes} is not a multiple of {align}")) }
}
