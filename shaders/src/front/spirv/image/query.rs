//! Image queries: sizes, levels and samples.

use super::super::composite::Composite;
use super::super::translate::Translator;
use super::super::words::{Inst, InstResult, operand};
use crate::image::{Dim, Field};
use crate::ir::{InstData, Op, Type, Value};

impl Translator<'_> {
    /// A field of an image description.
    pub(super) fn image_field(&mut self, image: Value, field: Field) -> Value {
        self.builder.push_value(InstData::ImageField { image, field }, Type::I32)
    }

    /// `OpImageQuerySizeLod` and `OpImageQuerySize`. Layers of cube arrays are counted in cubes.
    pub(in crate::front::spirv) fn query_size(
        &mut self,
        inst: &Inst,
        operands: &[u32],
        by_level: bool,
    ) -> InstResult<()> {
        let handle = self.handle(operand(operands, 0)?)?;
        let level = if by_level { Some(self.integers_of(operand(operands, 1)?, 1)?[0]) } else { None };
        let fields: &[Field] = match handle.ty.dim {
            Dim::D1 | Dim::Buffer => &[Field::Width],
            Dim::D2 | Dim::Cube => &[Field::Width, Field::Height],
            Dim::D3 => &[Field::Width, Field::Height, Field::Depth],
        };
        let mut values: Vec<Value> = Vec::new();
        for &field in fields {
            let size = self.image_field(handle.image, field);
            values.push(match level {
                None => size,
                Some(level) => {
                    // At least 1, unless the descriptor is null.
                    let one = self.builder.constant(1u32);
                    let size_there = self.builder.pure(Op::LShr, &[size, level]);
                    let size_there = self.builder.pure(Op::UMax, &[size_there, one]);
                    self.builder.pure(Op::UMin, &[size_there, size])
                }
            });
        }
        if handle.ty.arrayed {
            let layers = self.image_field(handle.image, Field::Layers);
            values.push(if handle.ty.dim == Dim::Cube {
                let six = self.builder.constant(6u32);
                self.builder.pure(Op::UDiv, &[layers, six])
            } else {
                layers
            });
        }
        self.integers_result(inst, values)
    }

    /// `OpImageQueryLevels`.
    pub(in crate::front::spirv) fn query_levels(&mut self, inst: &Inst, operands: &[u32]) -> InstResult<()> {
        let handle = self.handle(operand(operands, 0)?)?;
        let levels = self.image_field(handle.image, Field::Levels);
        self.integers_result(inst, vec![levels])
    }

    /// `OpImageQuerySamples`. All images of the device have one sample, even those declared as multisampled; a null
    /// descriptor has none.
    pub(in crate::front::spirv) fn query_samples(&mut self, inst: &Inst, operands: &[u32]) -> InstResult<()> {
        let handle = self.handle(operand(operands, 0)?)?;
        let levels = self.image_field(handle.image, Field::Levels);
        let one = self.builder.constant(1u32);
        let samples = self.builder.pure(Op::UMin, &[levels, one]);
        self.integers_result(inst, vec![samples])
    }

    fn integers_result(&mut self, inst: &Inst, values: Vec<Value>) -> InstResult<()> {
        let values = self.integer_result(inst.ty, &values)?.into();
        self.bind(inst.id, Composite { ty: inst.ty, values });
        Ok(())
    }
}
