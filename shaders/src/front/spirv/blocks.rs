//! The layouts of the blocks of a module: of its buffers and of its push constants.
//!
//! A few types with names can describe far more members than the module has words: a structure of two of a structure
//! of two, in a thousand variables. What is said of all blocks has a limit.

use spirv::{Op, StorageClass};

use super::layout::{LayoutRules, Pointee};
use super::module::Sections;
use super::scalar::Scalar;
use super::types::{SpirvType, Types};
use super::variables::block_of;
use super::words::{Id, Inst, InstResult};
use crate::front::{Blocks, DataLayout, DataMember, Error, ScalarType};

/// The size of a listing of all blocks, at most: [`PART_BYTES`] for each type in them, the types as text, and the names
/// of their members.
const MAX_BYTES: usize = 4 << 20;

/// What a type in a block costs besides its text.
const PART_BYTES: usize = 64;

/// The blocks among the variables of the module, without those whose type has no layout in memory: such a variable is
/// an error where it is used. With several variables at one binding, the block of the first. An error if the blocks are
/// too large to list.
pub(super) fn of_module(sections: &Sections, types: &Types) -> Result<Blocks, Error> {
    let mut blocks = Blocks::default();
    let mut reader = LayoutReader { types, sections, left: Some(MAX_BYTES) };
    for inst in sections.declarations.iter().filter(|inst| inst.op == Op::Variable) {
        let Ok(info) = types.get(inst.ty) else { continue };
        let SpirvType::Pointer { class, pointee } = info.ty else { continue };
        match class {
            StorageClass::PushConstant if blocks.push.is_none() => blocks.push = reader.block(inst, pointee)?,
            StorageClass::StorageBuffer | StorageClass::Uniform => {
                let decorations = sections.annotations.of(inst.id);
                if let Some(place) = decorations.and_then(|of| Some((of.set?, of.binding?)))
                    && !blocks.buffers.contains_key(&place)
                    && let Some(layout) = reader.block(inst, pointee)?
                {
                    blocks.buffers.insert(place, layout);
                }
            }
            _ => {}
        }
    }
    Ok(blocks)
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
    sections: &'a Sections,
    /// What is left of [`MAX_BYTES`]; `None` after a block that is larger than that.
    left: Option<usize>,
}

impl LayoutReader<'_> {
    /// The layout of a variable's block; `None` if its type has none.
    fn block(&mut self, variable: &Inst, pointee: Id) -> Result<Option<DataLayout>, Error> {
        let block = block_of(self.types, pointee);
        let layout = block.and_then(|block| self.layout(Pointee::new(block, LayoutRules::Explicit)));
        if self.left.is_none() {
            let message = format!("a list of the members of all blocks would be larger than {} MiB", MAX_BYTES >> 20);
            return Err(self.sections.error(variable.word, message));
        }
        Ok(layout.ok().map(without_wrapper))
    }

    fn layout(&mut self, place: Pointee) -> InstResult<DataLayout> {
        let layout = self.parts(place)?;
        // A structure without a name lists its members in its text.
        self.take(PART_BYTES + layout.to_string().len())?;
        Ok(layout)
    }

    /// Takes bytes from what is left.
    fn take(&mut self, bytes: usize) -> InstResult<()> {
        self.left = self.left.and_then(|left| left.checked_sub(bytes));
        self.left.map(|_| ()).ok_or_else(|| "a block is too large".to_owned())
    }

    fn parts(&mut self, place: Pointee) -> InstResult<DataLayout> {
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
                    let name = match self.sections.annotations.member_name(place.ty, number) {
                        "" => number.to_string(),
                        name => name.to_owned(),
                    };
                    self.take(name.len())?;
                    all.push(DataMember { name, offset: offset.into(), layout: self.layout(inside)? });
                }
                DataLayout::Struct { name: self.sections.annotations.name(place.ty).to_owned(), members: all }
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

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use super::*;
    use crate::front::spirv::SpirvModule;
    use crate::front::spvasm::assemble;

    /// The blocks of a module with this many variables of a structure that nests `depth` deep, each time twice. Its
    /// members have this name.
    fn blocks(variables: u32, depth: u32, name: &str) -> Result<Blocks, Error> {
        let each = |numbers: std::ops::RangeInclusive<u32>, line: &dyn Fn(u32) -> String| -> String {
            numbers.map(|number| line(number) + "\n").collect()
        };
        let text = format!(
            "OpCapability Shader
             OpMemoryModel Logical GLSL450
             OpEntryPoint GLCompute %main \"main\"
             OpExecutionMode %main LocalSize 1 1 1
             {}
             OpDecorate %s{depth} Block
             {}{}
             %void = OpTypeVoid
             %fn = OpTypeFunction %void
             %s0 = OpTypeInt 32 0
             {}
             %ptr = OpTypePointer StorageBuffer %s{depth}
             {}
             %main = OpFunction %void None %fn
             %entry = OpLabel
             OpReturn
             OpFunctionEnd",
            each(1..=depth, &|n| format!("OpMemberName %s{n} 0 \"{name}\"\nOpMemberName %s{n} 1 \"{name}\"")),
            each(1..=depth, &|n| format!(
                "OpMemberDecorate %s{n} 0 Offset 0\nOpMemberDecorate %s{n} 1 Offset {}",
                4 << (n - 1)
            )),
            each(1..=variables, &|n| format!("OpDecorate %v{n} DescriptorSet 0\nOpDecorate %v{n} Binding {n}")),
            each(1..=depth, &|n| format!("%s{n} = OpTypeStruct %s{0} %s{0}", n - 1)),
            each(1..=variables, &|n| format!("%v{n} = OpVariable %ptr StorageBuffer")),
        );
        SpirvModule::parse(&assemble(&text).unwrap()).unwrap().blocks(&BTreeMap::new())
    }

    #[test]
    fn blocks_that_a_small_module_repeats_without_end_are_an_error() {
        let long = "x".repeat(100_000);
        // Too many members, too many variables, names that are too long.
        for (variables, depth, name) in [(1, 15, "a"), (600, 12, "a"), (600, 6, long.as_str()), (100, 14, "")] {
            let error = blocks(variables, depth, name).unwrap_err();
            let message = "a list of the members of all blocks would be larger than 4 MiB";
            assert_eq!((error.message.as_str(), error.word.is_some()), (message, true));
        }
    }

    #[test]
    fn many_variables_and_deep_types_have_layouts() {
        for (variables, depth, name) in [(1, 10, "value"), (1_000, 3, "value"), (500, 1, &*"x".repeat(1_500))] {
            let blocks = blocks(variables, depth, name).unwrap();
            assert_eq!(blocks.buffers.len(), variables as usize);
            for layout in blocks.buffers.values() {
                let DataLayout::Struct { members, .. } = layout else { panic!("{layout}") };
                assert_eq!((layout.bytes(), &*members[1].name), (4 << depth, &name[..name.len().min(1024)]));
            }
        }
    }
}
