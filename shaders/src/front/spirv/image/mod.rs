//! Images, samplers and texel buffers: types, handles, and the choice of translation.
//!
//! If the module declares a format, reads, writes and texel pointers become arithmetic on bytes with plain loads and
//! stores (`texel`, `convert`), which all passes can optimize. Everything else stays an image instruction.

mod convert;
mod operands;
mod query;
mod sample;
mod texel;

use std::rc::Rc;

use spirv::ImageFormat;

use super::composite::{Composite, expect_type};
use super::decorations::MemoryDecorations;
use super::pointer::{Pointer, Root};
use super::scalar::Scalar;
use super::translate::Translator;
use super::types::{SpirvType, Types};
use super::words::{Id, Inst, InstResult, operand};
use crate::image::{Class, DeclaredImage, Dim, Format};
use crate::ir::{BindingKind, BufferSpace, Value};

/// `OpTypeImage`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct ImageType {
    /// Dimensions.
    pub(super) dim: Dim,
    /// Whether it is arrayed.
    pub(super) arrayed: bool,
    /// Component type of texels.
    pub(super) class: Class,
    /// Whether it is a storage image: used without a sampler, and written.
    pub(super) storage: bool,
    /// The declared format.
    pub(super) format: Option<Format>,
    /// Signedness of integers, which only matters for matching views.
    signed: bool,
}

impl ImageType {
    /// Parses the operands.
    pub(super) fn parse(types: &Types, operands: &[u32]) -> InstResult<Self> {
        let at = |index| operand(operands, index);
        let class = match types.get(at(0)?)?.ty {
            SpirvType::Scalar(Scalar::F32) => Class::Float,
            SpirvType::Scalar(Scalar::I32) => Class::Uint,
            SpirvType::Void => return Err("images without a sampled type are OpenCL's".into()),
            _ => return Err(format!("an image of %{}, which is neither a 32-bit integer nor a float", at(0)?)),
        };
        let dim = match spirv::Dim::from_u32(at(1)?) {
            Some(spirv::Dim::Dim1D) => Dim::D1,
            Some(spirv::Dim::Dim2D) => Dim::D2,
            Some(spirv::Dim::Dim3D) => Dim::D3,
            Some(spirv::Dim::DimCube) => Dim::Cube,
            Some(spirv::Dim::DimBuffer) => Dim::Buffer,
            // For other stages only: no compute entry point reaches one.
            Some(spirv::Dim::DimSubpassData) => Dim::D2,
            Some(other) => return Err(format!("images of dimension {other:?} are not supported")),
            None => return Err("unknown dimension".into()),
        };
        let storage = match at(5)? {
            1 => false,
            2 => true,
            _ => return Err("an image must say whether it is used with a sampler".into()),
        };
        if at(4)? != 0 && (storage || dim != Dim::D2) {
            return Err("multisampled images are supported only where they are 2D and sampled".into());
        }
        let arrayed = at(3)? != 0;
        if arrayed && matches!(dim, Dim::D3 | Dim::Buffer) {
            return Err("images of that dimension have no layers".into());
        }
        let signed = !types.is_unsigned(at(0)?);
        Ok(Self { dim, arrayed, class, storage, format: format(at(6)?)?, signed })
    }

    /// The declaration that views must match.
    fn declared(self) -> DeclaredImage {
        let class = if self.class == Class::Uint && self.signed { Class::Sint } else { self.class };
        DeclaredImage { dim: self.dim, arrayed: self.arrayed, class, format: self.format }
    }

    /// Number of coordinates of a texel, layer or face included.
    fn texel_coordinates(self) -> usize {
        match self.dim {
            Dim::Cube => 3,
            dim => dim.coordinates() + usize::from(self.arrayed),
        }
    }

    /// The type as reads and writes see it: cube faces are layers.
    fn by_texel(self) -> Self {
        if self.dim == Dim::Cube { Self { dim: Dim::D2, arrayed: true, ..self } } else { self }
    }
}

/// The format of an `OpTypeImage` operand; `None` for `Unknown`.
pub fn format(word: u32) -> Result<Option<Format>, String> {
    use ImageFormat as I;
    let format = ImageFormat::from_u32(word).ok_or("unknown image format")?;
    Ok(Some(match format {
        I::Unknown => return Ok(None),
        I::Rgba32f => Format::R32G32B32A32_SFLOAT,
        I::Rgba16f => Format::R16G16B16A16_SFLOAT,
        I::R32f => Format::R32_SFLOAT,
        I::Rgba8 => Format::R8G8B8A8_UNORM,
        I::Rgba8Snorm => Format::R8G8B8A8_SNORM,
        I::Rg32f => Format::R32G32_SFLOAT,
        I::Rg16f => Format::R16G16_SFLOAT,
        I::R11fG11fB10f => Format::B10G11R11_UFLOAT_PACK32,
        I::R16f => Format::R16_SFLOAT,
        I::Rgba16 => Format::R16G16B16A16_UNORM,
        I::Rgb10A2 => Format::A2B10G10R10_UNORM_PACK32,
        I::Rg16 => Format::R16G16_UNORM,
        I::Rg8 => Format::R8G8_UNORM,
        I::R16 => Format::R16_UNORM,
        I::R8 => Format::R8_UNORM,
        I::Rgba16Snorm => Format::R16G16B16A16_SNORM,
        I::Rg16Snorm => Format::R16G16_SNORM,
        I::Rg8Snorm => Format::R8G8_SNORM,
        I::R16Snorm => Format::R16_SNORM,
        I::R8Snorm => Format::R8_SNORM,
        I::Rgba32i => Format::R32G32B32A32_SINT,
        I::Rgba16i => Format::R16G16B16A16_SINT,
        I::Rgba8i => Format::R8G8B8A8_SINT,
        I::R32i => Format::R32_SINT,
        I::Rg32i => Format::R32G32_SINT,
        I::Rg16i => Format::R16G16_SINT,
        I::Rg8i => Format::R8G8_SINT,
        I::R16i => Format::R16_SINT,
        I::R8i => Format::R8_SINT,
        I::Rgba32ui => Format::R32G32B32A32_UINT,
        I::Rgba16ui => Format::R16G16B16A16_UINT,
        I::Rgba8ui => Format::R8G8B8A8_UINT,
        I::R32ui => Format::R32_UINT,
        I::Rgb10a2ui => Format::A2B10G10R10_UINT_PACK32,
        I::Rg32ui => Format::R32G32_UINT,
        I::Rg16ui => Format::R16G16_UINT,
        I::Rg8ui => Format::R8G8_UINT,
        I::R16ui => Format::R16_UINT,
        I::R8ui => Format::R8_UINT,
        other => return Err(format!("image format {other:?} is not supported")),
    }))
}

/// The binding kind of a variable of an image or sampler type; `None` for other types.
pub(super) fn binding_kind(types: &Types, ty: Id) -> InstResult<Option<(BindingKind, BufferSpace)>> {
    Ok(Some(match types.get(ty)?.ty {
        SpirvType::Image(ImageType { dim: Dim::Buffer, storage, .. }) => match storage {
            true => (BindingKind::StorageTexelBuffer, BufferSpace::Storage),
            false => (BindingKind::UniformTexelBuffer, BufferSpace::Uniform),
        },
        SpirvType::Image(ImageType { storage: true, .. }) => (BindingKind::StorageImage, BufferSpace::Storage),
        SpirvType::Image(_) => (BindingKind::SampledImage, BufferSpace::Uniform),
        SpirvType::Sampler => (BindingKind::Sampler, BufferSpace::Uniform),
        SpirvType::SampledImage { image } => match types.get(image)?.ty {
            SpirvType::Image(ImageType { dim: Dim::Buffer, .. }) => {
                (BindingKind::UniformTexelBuffer, BufferSpace::Uniform)
            }
            _ => (BindingKind::CombinedImageSampler, BufferSpace::Uniform),
        },
        _ => return Ok(None),
    }))
}

/// The image declaration of a variable of such a type; `None` for samplers.
pub(super) fn declared(types: &Types, ty: Id) -> InstResult<Option<DeclaredImage>> {
    match types.get(ty)?.ty {
        SpirvType::Image(image) => Ok(Some(image.declared())),
        SpirvType::SampledImage { image } => declared(types, image),
        _ => Ok(None),
    }
}

/// An image operand, with its sampler if it has one.
#[derive(Clone, Copy)]
struct Handle {
    ty: ImageType,
    image: Value,
    sampler: Option<Value>,
}

impl Translator<'_> {
    /// The value of an image or sampler pointer: its descriptor's index.
    pub(super) fn load_handle(&mut self, pointer: &Pointer) -> InstResult<Option<Composite>> {
        let ty = pointer.pointee();
        let count = match self.types.get(ty)?.ty {
            SpirvType::Image(_) | SpirvType::Sampler => 1,
            SpirvType::SampledImage { .. } => 2,
            _ => return Ok(None),
        };
        let Root::Buffer { buffer, .. } = pointer.root else {
            return Err("an image or sampler that is not a descriptor's".into());
        };
        let memory = self.variables.image_memory.entry(buffer).or_default();
        *memory = memory.or(pointer.memory);
        Ok(Some(Composite { ty, values: Rc::from(vec![buffer; count]) }))
    }

    pub(super) fn sampled_image(&mut self, inst: &Inst, operands: &[u32]) -> InstResult<()> {
        let image = self.value(operand(operands, 0)?)?;
        let sampler = self.value(operand(operands, 1)?)?;
        match (&self.types.get(inst.ty)?.ty, &self.types.get(sampler.ty)?.ty) {
            (SpirvType::SampledImage { image: wanted }, SpirvType::Sampler) => expect_type(*wanted, image.ty)?,
            _ => return Err("the operands are not an image and a sampler".into()),
        }
        let values = Rc::from([image.values[0], sampler.values[0]]);
        self.bind(inst.id, Composite { ty: inst.ty, values });
        Ok(())
    }

    pub(super) fn image_of(&mut self, inst: &Inst, operands: &[u32]) -> InstResult<()> {
        let both = self.value(operand(operands, 0)?)?;
        match self.types.get(both.ty)?.ty {
            SpirvType::SampledImage { image } => expect_type(inst.ty, image)?,
            _ => return Err("the operand is not a sampled image".into()),
        }
        self.bind(inst.id, Composite { ty: inst.ty, values: Rc::from([both.values[0]]) });
        Ok(())
    }

    /// The image of an id, with its sampler if the id is a sampled image.
    fn handle(&mut self, id: Id) -> InstResult<Handle> {
        let value = self.value(id)?;
        let (ty, sampler) = match self.types.get(value.ty)?.ty {
            SpirvType::Image(ty) => (ty, None),
            SpirvType::SampledImage { image } => match self.types.get(image)?.ty {
                SpirvType::Image(ty) => (ty, Some(value.values[1])),
                _ => return Err(format!("{} is not an image", self.sections.describe(id))),
            },
            _ => return Err(format!("{} is not an image", self.sections.describe(id))),
        };
        Ok(Handle { ty, image: value.values[0], sampler })
    }

    /// The image of an id that must have a sampler.
    fn with_sampler(&mut self, id: Id) -> InstResult<(Handle, Value)> {
        let handle = self.handle(id)?;
        let sampler = handle.sampler.ok_or_else(|| format!("{} has no sampler", self.sections.describe(id)))?;
        if handle.ty.dim == Dim::Buffer {
            return Err("texel buffers have no sampler".into());
        }
        Ok((handle, sampler))
    }

    /// The memory decorations of an image.
    fn image_memory(&self, image: Value) -> MemoryDecorations {
        self.variables.image_memory.get(&image).copied().unwrap_or_default()
    }
}
