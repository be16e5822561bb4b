//! Image operands and coordinates.

use smallvec::SmallVec;
use spirv::ImageOperands;

use super::super::translate::Translator;
use super::super::types::{Scalar, Type};
use super::super::words::{Checked, Id};
use crate::ir::{Access, Value};

/// A list of scalars.
pub(super) type Scalars = SmallVec<[Value; 4]>;

/// What follows an instruction's own operands.
#[derive(Default)]
pub(super) struct Extra {
    pub(super) lod: Option<Id>,
    pub(super) grad: Option<[Id; 2]>,
    pub(super) offset: Option<Id>,
    pub(super) four_offsets: Option<Id>,
    pub(super) min_lod: Option<Id>,
    pub(super) access: Access,
}

impl Translator<'_> {
    /// Reads a mask of image operands and what belongs to it.
    pub(super) fn image_operands(&mut self, operands: &[u32]) -> Checked<Extra> {
        let mut extra = Extra::default();
        let Some((&word, rest)) = operands.split_first() else { return Ok(extra) };
        let mask = ImageOperands::from_bits(word).ok_or_else(|| format!("unknown image operands {word:#x}"))?;
        let mut rest = rest.iter().copied();
        let mut next = || rest.next().ok_or("an image operand is missing");
        if mask.contains(ImageOperands::BIAS) {
            return Err("a bias goes with implicit levels of detail, which fragment shaders have only".into());
        }
        if mask.contains(ImageOperands::LOD) {
            extra.lod = Some(next()?);
        }
        if mask.contains(ImageOperands::GRAD) {
            extra.grad = Some([next()?, next()?]);
        }
        for bit in [ImageOperands::CONST_OFFSET, ImageOperands::OFFSET] {
            if mask.contains(bit) {
                extra.offset = Some(next()?);
            }
        }
        if mask.contains(ImageOperands::CONST_OFFSETS) {
            extra.four_offsets = Some(next()?);
        }
        if mask.contains(ImageOperands::SAMPLE) {
            // There is one: another is a mistake, and what it reads is open.
            self.integer(next()?)?;
        }
        if mask.contains(ImageOperands::MIN_LOD) {
            extra.min_lod = Some(next()?);
        }
        for bit in [ImageOperands::MAKE_TEXEL_AVAILABLE, ImageOperands::MAKE_TEXEL_VISIBLE] {
            if mask.contains(bit) {
                extra.access.available_visible = Some(self.scope(next()?)?);
            }
        }
        extra.access.non_private = mask.contains(ImageOperands::NON_PRIVATE_TEXEL);
        extra.access.volatile = mask.contains(ImageOperands::VOLATILE_TEXEL);
        if mask.contains(ImageOperands::OFFSETS) {
            extra.four_offsets = Some(next()?);
        }
        // Sign and zero extension do nothing to 32-bit components, and how soon a texel is read again is a hint.
        Ok(extra)
    }

    /// The first `count` scalars of a value that must be of that type: coordinates may come in longer vectors.
    pub(super) fn scalars_of(&mut self, id: Id, wanted: Scalar, count: usize) -> Checked<Scalars> {
        let value = self.value(id)?;
        let scalar = match self.types.get(value.ty)?.ty {
            Type::Scalar(scalar) | Type::Vector { scalar, .. } => Some(scalar),
            Type::Array { element, .. } => match self.types.get(element)?.ty {
                Type::Vector { scalar, .. } => Some(scalar),
                _ => None,
            },
            _ => None,
        };
        if scalar != Some(wanted) || value.values.len() < count {
            let name = self.sections.describe(id);
            return Err(format!("{name} is not {count} scalars of type {}", wanted));
        }
        Ok(value.values[..count].into())
    }
}
