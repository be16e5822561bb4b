//! The layouts of the blocks of a module: of its buffers and of its push constants.

use spirv::{Op, StorageClass};

use super::decorations::Annotations;
use super::layout::{LayoutRules, Pointee};
use super::module::Sections;
use super::scalar::Scalar;
use super::types::{SpirvType, Types};
use super::variables::block_of;
use super::words::{Id, InstResult};
use crate::front::{Blocks, DataLayout, DataMember, ScalarType};

/// The blocks among the variables of the module, without those whose type has no layout in memory: such a variable is
/// an error where it is used. With several variables at one binding, the block of the first.
pub(super) fn of_module(sections: &Sections, types: &Types) -> Blocks {
    let mut blocks = Blocks::default();
    for inst in sections.declarations.iter().filter(|inst| inst.op == Op::Variable) {
        let read = || -> InstResult<Option<(StorageClass, DataLayout)>> {
            let SpirvType::Pointer { class, pointee } = types.get(inst.ty)?.ty else { return Ok(None) };
            if !matches!(class, StorageClass::StorageBuffer | StorageClass::Uniform | StorageClass::PushConstant) {
                return Ok(None);
            }
            let (reader, block) =
                (LayoutReader { types, annotations: &sections.annotations }, block_of(types, pointee)?);
            Ok(Some((class, without_wrapper(reader.layout(Pointee::new(block, LayoutRules::Explicit))?))))
        };
        let Ok(Some((class, layout))) = read() else { continue };
        if class == StorageClass::PushConstant {
            blocks.push.get_or_insert(layout);
            continue;
        }
        let decorations = sections.annotations.of(inst.id).cloned().unwrap_or_default();
        if let (Some(set), Some(binding)) = (decorations.set, decorations.binding) {
            blocks.buffers.entry((set, binding)).or_insert(layout);
        }
    }
    blocks
}

/// The data of a block: naga wraps what is no structure in one with a single member at 0, without a name.
fn without_wrapper(layout: DataLayout) -> DataLayout {
    match layout {
        DataLayout::Struct { name, mut members } if name.is_empty() && members.len() == 1 => match members.pop() {
            Some(DataMember { name, offset: 0, layout }) if name == "0" => layout,
            member => DataLayout::Struct { name, members: member.into_iter().collect() },
        },
        layout => layout,
    }
}

/// Reads layouts from types and their decorations.
struct LayoutReader<'a> {
    types: &'a Types,
    annotations: &'a Annotations,
}

impl LayoutReader<'_> {
    fn layout(&self, place: Pointee) -> InstResult<DataLayout> {
        let info = self.types.get(place.ty)?;
        let stride = || InstResult::Ok(u64::from(place.elements(self.types)?.stride));
        Ok(match &info.ty {
            SpirvType::Scalar(scalar) => DataLayout::Scalar(self.scalar(*scalar, place.ty)?),
            SpirvType::Vector { element, scalar, count } => {
                DataLayout::Vector { scalar: self.scalar(*scalar, *element)?, count: *count, stride: stride()? }
            }
            SpirvType::Matrix { column, scalar, columns, rows } => {
                let elements = place.elements(self.types)?;
                let row_major = place.matrix.row_major;
                let stride = if row_major { elements.place.component_stride.unwrap_or(0) } else { elements.stride };
                let SpirvType::Vector { element, .. } = self.types.get(*column)?.ty else {
                    return Err(format!("%{column} is not a vector"));
                };
                let scalar = self.scalar(*scalar, element)?;
                DataLayout::Matrix { scalar, columns: *columns, rows: *rows, stride: stride.into(), row_major }
            }
            SpirvType::Array { .. } | SpirvType::RuntimeArray { .. } => {
                let elements = place.elements(self.types)?;
                let (element, count) = (Box::new(self.layout(elements.place)?), elements.count.map(u64::from));
                DataLayout::Array { element, count, stride: elements.stride.into() }
            }
            SpirvType::Struct { members } => {
                let mut all = Vec::with_capacity(members.len());
                for (number, declared) in (0..).zip(members) {
                    let (inside, offset) = place.member(self.types, declared, number)?;
                    let name = match self.annotations.member_name(place.ty, number) {
                        "" => number.to_string(),
                        name => name.to_owned(),
                    };
                    all.push(DataMember { name, offset: offset.into(), layout: self.layout(inside)? });
                }
                DataLayout::Struct { name: self.annotations.name(place.ty).to_owned(), members: all }
            }
            SpirvType::Pointer { class: StorageClass::PhysicalStorageBuffer, .. } => {
                DataLayout::Scalar(ScalarType::Address)
            }
            _ => return Err(format!("%{} has no layout in memory", place.ty)),
        })
    }

    /// The scalar of a type.
    fn scalar(&self, scalar: Scalar, ty: Id) -> InstResult<ScalarType> {
        match scalar {
            Scalar::F16 | Scalar::F32 | Scalar::F64 => Ok(ScalarType::Float(scalar.bits())),
            Scalar::I8 | Scalar::I16 | Scalar::I32 | Scalar::I64 if self.types.is_unsigned(ty) => {
                Ok(ScalarType::Uint(scalar.bits()))
            }
            Scalar::I8 | Scalar::I16 | Scalar::I32 | Scalar::I64 => Ok(ScalarType::Int(scalar.bits())),
            Scalar::Bool | Scalar::Handle | Scalar::Buffer => Err(format!("%{ty} has no layout in memory")),
        }
    }
}
