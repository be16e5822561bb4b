//! Image operands and coordinates.

use smallvec::SmallVec;
use spirv::ImageOperands;

use super::super::scalar::Scalar;
use super::super::translate::Translator;
use super::super::types::SpirvType;
use super::super::words::{Id, InstResult};
use crate::ir::{Access, Op, Value};

/// A list of scalars.
pub(super) type Scalars = SmallVec<[Value; 4]>;

/// Optional image operands of an instruction.
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
    /// Parses an image operand mask and its operands.
    pub(super) fn image_operands(&mut self, operands: &[u32]) -> InstResult<Extra> {
        let mut extra = Extra::default();
        let Some((&word, rest)) = operands.split_first() else { return Ok(extra) };
        let mask = ImageOperands::from_bits(word).ok_or_else(|| format!("unknown image operands {word:#x}"))?;
        let mut rest = rest.iter().copied();
        let mut next = || rest.next().ok_or("an image operand is missing");
        if mask.contains(ImageOperands::BIAS) {
            return Err("a bias needs implicit levels of detail, which only fragment shaders have".into());
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
            // There is one sample: any other index is an error, with an unspecified result.
            self.integers_of(next()?, 1)?;
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
        // Sign and zero extension do not affect 32-bit components, and `Nontemporal` is a hint.
        Ok(extra)
    }

    /// The first `count` scalars of a value of the wanted component type: coordinates may be in longer vectors.
    pub(super) fn scalars_of(&mut self, id: Id, wanted: Scalar, count: usize) -> InstResult<Scalars> {
        let value = self.value(id)?;
        let scalar = match self.types.get(value.ty)?.ty {
            SpirvType::Scalar(scalar) | SpirvType::Vector { scalar, .. } => Some(scalar),
            _ => None,
        };
        if scalar != Some(wanted) || value.values.len() < count {
            let name = self.sections.describe(id);
            return Err(format!("{name} is not {count} scalars of type {}", wanted));
        }
        Ok(value.values[..count].into())
    }

    /// The first `count` integers of a value of any width, as words. Integers that do not fit are out of bounds of
    /// every image.
    pub(super) fn integers_of(&mut self, id: Id, count: usize) -> InstResult<Scalars> {
        let value = self.value(id)?;
        let mut ty = value.ty;
        while let SpirvType::Array { element, .. } | SpirvType::Vector { element, .. } = self.types.get(ty)?.ty {
            ty = element;
        }
        let scalar = match self.types.get(ty)?.ty {
            SpirvType::Scalar(scalar) if scalar.is_int() => scalar,
            _ => return Err(format!("{} is not {count} integers", self.sections.describe(id))),
        };
        let (words, is_signed) = (scalar.words() as usize, !self.types.is_unsigned(ty));
        if value.values.len() < count * words {
            return Err(format!("{} is not {count} integers", self.sections.describe(id)));
        }
        Ok(value.values.chunks(words).take(count).map(|words| self.word_of_integer(words, scalar, is_signed)).collect())
    }

    fn word_of_integer(&mut self, words: &[Value], scalar: Scalar, is_signed: bool) -> Value {
        let low = words[0];
        match scalar {
            Scalar::I8 | Scalar::I16 if is_signed => {
                let above = self.builder.constant(32 - scalar.bits());
                let moved = self.builder.pure(Op::Shl, &[low, above]);
                self.builder.pure(Op::AShr, &[moved, above])
            }
            Scalar::I64 => {
                let (last, zero) = (self.builder.constant(31u32), self.builder.constant(0u32));
                let far = self.builder.constant(i32::MAX.cast_unsigned());
                let above = if is_signed { self.builder.pure(Op::AShr, &[low, last]) } else { zero };
                let fits = self.builder.pure(Op::IEq, &[words[1], above]);
                self.builder.select(fits, low, far)
            }
            _ => low,
        }
    }
}
