//! Texel access to storage images: by address if the format is known, else by image instruction.
//!
//! Out-of-bounds reads give 0, out-of-bounds writes are dropped. Reads load unconditionally and select afterwards: the
//! load is checked against the image's size anyway, and stays contiguous if the lanes' texels are.

use spirv::StorageClass;

use super::super::decorations::MemoryDecorations;
use super::super::layout::{LayoutRules, Pointee};
use super::super::pointer::{Pointer, Root};
use super::super::scalar::Scalar;
use super::super::translate::Translator;
use super::super::types::SpirvType;
use super::super::words::{Inst, InstResult, operand};
use super::convert;
use super::operands::Scalars;
use super::{Handle, ImageType};
use crate::image::{Class, Dim, Field, Format, ImageOp, Kind, LodOperand};
use crate::ir::{self, Access, BlockCall, BufferSpace, InstData, Merge, Op, Place, Value, Width};

/// Location of a texel: whether it is in the image, and its byte offset if so.
struct TexelLocation {
    inside: Value,
    offset: Value,
}

impl Translator<'_> {
    /// `OpImageRead`.
    pub(in crate::front::spirv) fn image_read(&mut self, inst: &Inst, operands: &[u32]) -> InstResult<()> {
        let mut handle = self.handle(operand(operands, 0)?)?;
        if !handle.ty.storage {
            return Err("only storage images can be read".into());
        }
        let extra = self.image_operands(operands.get(2..).unwrap_or_default())?;
        if extra.lod.is_some() {
            return Err("storage images have no level of detail".into());
        }
        let access = self.texel_access(handle.image, extra.access);
        let at = self.integers_of(operand(operands, 1)?, handle.ty.texel_coordinates())?;
        handle.ty = handle.ty.by_texel();
        if let Some(format) = handle.ty.format.filter(|&format| convert::reads(format)) {
            return self.read_words(inst, handle, format, &at, access);
        }
        let op = ImageOp::new(Kind::Read, handle.ty.dim, handle.ty.arrayed, handle.ty.class);
        self.texel_result(inst, op, handle, at, access)
    }

    fn read_words(
        &mut self,
        inst: &Inst,
        handle: Handle,
        format: Format,
        at: &Scalars,
        access: Access,
    ) -> InstResult<()> {
        let scalars = self.types.scalars(inst.ty)?;
        let location = self.location(handle.ty, handle.image, at, format.bytes());
        let (kind, width) = (convert::word_type(format), convert::width(format));
        let zero = self.builder.constant_bits(kind, 0);
        let mut words = [zero; 4];
        for (number, word) in (0..format.bytes().div_ceil(4)).zip(&mut words) {
            let place = self.word_place(handle.image, location.offset, number);
            let loaded = match width {
                Width::Word => self.builder.load(kind, place, access),
                width => self.builder.load_bytes(width, place, access),
            };
            let choice = InstData::Select { condition: location.inside, then: loaded, otherwise: zero };
            *word = self.builder.push_value(choice, kind);
        }
        let texel = convert::decode(&mut self.builder, format, words);
        let value = self.typed(inst.ty, &texel[..scalars.len().min(4)])?;
        self.bind(inst.id, value);
        Ok(())
    }

    /// `OpImageWrite`.
    pub(in crate::front::spirv) fn image_write(&mut self, operands: &[u32]) -> InstResult<()> {
        let mut handle = self.handle(operand(operands, 0)?)?;
        if !handle.ty.storage {
            return Err("only storage images can be written".into());
        }
        if self.image_memory(handle.image).non_writable {
            return Err("writes an image that is NonWritable".into());
        }
        let extra = self.image_operands(operands.get(3..).unwrap_or_default())?;
        let access = self.texel_access(handle.image, extra.access);
        let at = self.integers_of(operand(operands, 1)?, handle.ty.texel_coordinates())?;
        let texel = self.texel_of(operand(operands, 2)?, handle.ty.class)?;
        handle.ty = handle.ty.by_texel();
        if let Some(format) = handle.ty.format.filter(|&format| convert::writes(format)) {
            let location = self.location(handle.ty, handle.image, &at, format.bytes());
            let words = convert::encode(&mut self.builder, format, texel);
            self.write_words(handle.image, &location, convert::width(format), &words, access);
            return Ok(());
        }
        let op = ImageOp {
            lod: LodOperand::None,
            ..ImageOp::new(Kind::Write, handle.ty.dim, handle.ty.arrayed, handle.ty.class)
        };
        let mut args = at;
        args.extend(texel);
        op.check()?;
        self.builder.push(InstData::Image { op, image: handle.image, sampler: None, args, access });
        Ok(())
    }

    /// Stores in a branch: out-of-bounds lanes are inactive.
    fn write_words(&mut self, image: Value, location: &TexelLocation, width: Width, words: &[Value], access: Access) {
        let (inner, merge) = (self.builder.create_block(), self.builder.create_block());
        self.builder.set_merge(Merge::Selection { merge });
        let (then, otherwise) = (BlockCall::new(inner), BlockCall::new(merge));
        self.builder.push(InstData::Branch { condition: location.inside, then, otherwise });
        self.builder.switch_to(inner);
        for (number, &word) in (0..).zip(words) {
            let place = self.word_place(image, location.offset, number);
            match width {
                Width::Word => self.builder.store(place, word, access),
                width => self.builder.store_bytes(width, place, word, access),
            }
        }
        self.builder.push(InstData::Jump { to: BlockCall::new(merge) });
        self.builder.switch_to(merge);
    }

    /// `OpImageTexelPointer`: a pointer that is out of bounds of every image if the texel is.
    pub(in crate::front::spirv) fn texel_pointer(&mut self, inst: &Inst, operands: &[u32]) -> InstResult<()> {
        let image = self.pointer(operand(operands, 0)?)?;
        let SpirvType::Image(ty) = self.types.get(image.pointee())?.ty else {
            return Err("the pointer does not point to an image".into());
        };
        let Some(handle) = self.load_handle(&image)? else {
            return Err("the pointer does not point to an image".into());
        };
        let format = ty.format.filter(|format| format.bytes() == 4 && format.channels().len() == 1);
        let Some(format) = format.filter(|_| ty.storage) else {
            return Err("texel pointers need a storage image of format R32f, R32i or R32ui".into());
        };
        let SpirvType::Pointer { class: StorageClass::Image, pointee } = self.types.get(inst.ty)?.ty else {
            return Err(format!("%{} is not a pointer type of storage class Image", inst.ty));
        };
        let at = self.integers_of(operand(operands, 1)?, ty.texel_coordinates())?;
        let buffer = handle.values[0];
        let location = self.location(ty.by_texel(), buffer, &at, format.bytes());
        let nowhere = self.builder.constant(u32::MAX);
        let choice = InstData::Select { condition: location.inside, then: location.offset, otherwise: nowhere };
        let offset = self.builder.push_value(choice, ir::Type::I32);
        let root = Root::Buffer { space: BufferSpace::Storage, buffer };
        let memory = image.memory;
        let place = Pointee::new(pointee, LayoutRules::Natural);
        self.bind_pointer(inst.id, Pointer::at(StorageClass::Image, place, root, offset, memory));
        Ok(())
    }

    /// A texel to store; missing components are 0.
    fn texel_of(&mut self, id: super::super::words::Id, class: Class) -> InstResult<[Value; 4]> {
        let wanted = if class == Class::Float { Scalar::F32 } else { Scalar::I32 };
        let given = self.scalars_of(id, wanted, 1)?.len();
        let all = self.value(id)?;
        debug_assert!(given == 1);
        let zero = self.builder.constant_bits(wanted.ty(), 0);
        Ok(std::array::from_fn(|component| all.values.get(component).copied().unwrap_or(zero)))
    }

    fn word_place(&mut self, buffer: Value, offset: Value, number: u32) -> Place {
        let offset = if number == 0 {
            offset
        } else {
            let step = self.builder.constant(number * 4);
            self.builder.element(offset, step, 1)
        };
        Place::Buffer { space: BufferSpace::Storage, buffer, offset }
    }

    /// Access of an image: the instruction's operands combined with the variable's decorations.
    fn texel_access(&self, image: Value, access: Access) -> Access {
        let MemoryDecorations { coherent, volatile, .. } = self.image_memory(image);
        Access {
            volatile: access.volatile || volatile,
            non_private: access.non_private || coherent && !self.sections.is_vulkan_memory_model(),
            ..access
        }
    }

    /// Location of a texel of this size.
    fn location(&mut self, ty: ImageType, image: Value, at: &Scalars, bytes: u32) -> TexelLocation {
        let (outer, fields): (Option<Value>, &[Field]) = match (ty.dim, ty.arrayed) {
            (Dim::D1 | Dim::Buffer, false) => (None, &[Field::Width]),
            (Dim::D1 | Dim::Buffer, true) => (Some(at[1]), &[Field::Width, Field::Layers]),
            (Dim::D2 | Dim::Cube, false) => (None, &[Field::Width, Field::Height]),
            (Dim::D2 | Dim::Cube, true) => (Some(at[2]), &[Field::Width, Field::Height, Field::Layers]),
            (Dim::D3, _) => (Some(at[2]), &[Field::Width, Field::Height, Field::Depth]),
        };
        let mut inside = None;
        for (&coordinate, &field) in at.iter().zip(fields).rev() {
            let limit = self.image_field(image, field);
            let below = self.builder.pure(Op::ULt, &[coordinate, limit]);
            inside = Some(match inside {
                None => below,
                Some(others) => self.builder.pure(Op::LAnd, &[others, below]),
            });
        }
        let mut base = None;
        if let Some(outer) = outer {
            let pitch = self.image_field(image, Field::OuterPitch);
            base = Some(self.builder.pure(Op::IMul, &[outer, pitch]));
        }
        if matches!(ty.dim, Dim::D2 | Dim::D3 | Dim::Cube) {
            let pitch = self.image_field(image, Field::RowPitch);
            let row = self.builder.pure(Op::IMul, &[at[1], pitch]);
            base = Some(match base {
                None => row,
                Some(base) => self.builder.pure(Op::IAdd, &[base, row]),
            });
        }
        let base = base.unwrap_or_else(|| self.builder.constant(0u32));
        let offset = self.builder.element(base, at[0], bytes);
        let inside = inside.unwrap_or_else(|| self.builder.constant(true));
        TexelLocation { inside, offset }
    }
}
