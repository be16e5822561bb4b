//! Checks that a view matches what a shader declares at its binding: a dispatch's rules for images and texel buffers.
//!
//! If they are broken, the shader still accesses only the view's texels, but their values are undefined: Vulkan calls
//! it invalid (dimensions, `-viewType-07752`, and numeric types, `-format-07753`) or undefined (a format other than the
//! shader's, "Texel Format Validation").

use ash::vk;
use spelter_shaders::image::{Class, DeclaredImage, Dim};
use spelter_shaders::ir::BindingData;

use super::set::{Contents, Written};
use crate::resource::format_of;

/// The shader's declaration of a binding of images or texel buffers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ImageDeclaration {
    /// Type of the view; `None` for texel buffers.
    pub view: Option<vk::ImageViewType>,
    /// Numeric class of the texels.
    pub class: Class,
    /// Their format, if the shader states one.
    pub format: Option<vk::Format>,
}

/// A rule that a view breaks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ViewRule {
    /// The view has the type that the shader declares.
    Type,
    /// Its texels are floats, signed or unsigned integers, as the shader declares.
    Numeric,
    /// Its format is the one that the shader states.
    Format,
}

impl ViewRule {
    /// The VUID for `vkCmdDispatch`. A different format makes texels undefined and has no VUID: the name is the one
    /// that the validation layer reports.
    pub fn id(self) -> &'static str {
        match self {
            Self::Type => "VUID-vkCmdDispatch-viewType-07752",
            Self::Numeric => "VUID-vkCmdDispatch-format-07753",
            Self::Format => FORMAT,
        }
    }
}

pub(crate) const FORMAT: &str = "Undefined-Value-StorageImage-FormatMismatch-ImageView";

impl ImageDeclaration {
    /// The declaration of a kernel's binding; `None` for buffers and samplers, and if several variables that share the
    /// binding declare different images.
    pub fn of(binding: &BindingData) -> Option<Self> {
        let DeclaredImage { dim, arrayed, class, format } = binding.image?;
        let view = match (dim, arrayed) {
            (Dim::D1, false) => Some(vk::ImageViewType::TYPE_1D),
            (Dim::D1, true) => Some(vk::ImageViewType::TYPE_1D_ARRAY),
            (Dim::D2, false) => Some(vk::ImageViewType::TYPE_2D),
            (Dim::D2, true) => Some(vk::ImageViewType::TYPE_2D_ARRAY),
            (Dim::D3, _) => Some(vk::ImageViewType::TYPE_3D),
            (Dim::Cube, false) => Some(vk::ImageViewType::CUBE),
            (Dim::Cube, true) => Some(vk::ImageViewType::CUBE_ARRAY),
            (Dim::Buffer, _) => None,
        };
        Some(Self { view, class, format: format.map(|format| vk::Format::from_raw(format.vk())) })
    }

    /// Checks a view of that type (`None` for a texel buffer) and format. The error has the broken rule and the
    /// difference.
    pub fn check(&self, view: Option<vk::ImageViewType>, format: vk::Format) -> Result<(), (ViewRule, String)> {
        if let (Some(has), Some(takes)) = (view, self.view)
            && has != takes
        {
            return Err((ViewRule::Type, format!("the view is {has:?}, the shader takes {takes:?}")));
        }
        let class = format_of(format).map(|format| format.class());
        if let Some(has) = class.filter(|class| *class != self.class) {
            let problem = format!("texels of format {format:?} are {has}, the shader takes {}", self.class);
            return Err((ViewRule::Numeric, problem));
        }
        match self.format {
            Some(takes) if takes != format => {
                Err((ViewRule::Format, format!("the format is {format:?}, the shader states {takes:?}")))
            }
            _ => Ok(()),
        }
    }
}

impl Contents {
    /// Checks the view in a slot against the shader's declaration. A slot that was never written passes.
    pub(crate) fn check_view(&self, slot: usize, declared: &ImageDeclaration) -> Result<(), (ViewRule, String)> {
        match self.slots.get(slot) {
            Some(Some(Written::Image(written))) if !written.descriptor.view.memory.is_empty() => {
                let format = vk::Format::from_raw(written.descriptor.view.format.vk());
                declared.check(written.ty, format)
            }
            _ => Ok(()),
        }
    }
}
