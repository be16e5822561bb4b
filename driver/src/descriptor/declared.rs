//! Whether a view is what a shader declares at its binding: a dispatch's rules for images and texel buffers.
//!
//! Where they are broken the shader still touches nothing but the view's texels, and what it finds there means nothing:
//! Vulkan calls it invalid (dimensions, `-viewType-07752`, and numbers, `-format-07753`) or undefined (a format other
//! than that of the shader, "Texel Format Validation").

use ash::vk;
use spelter_shaders::image::{Class, DeclaredImage, Dim};
use spelter_shaders::ir::BindingData;

use super::set::{Contents, Written};
use crate::resource::format_of;

/// What a shader takes at a binding of images or of texel buffers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ImageTaken {
    /// Type of the view; none of texel buffers.
    pub view: Option<vk::ImageViewType>,
    /// What texels are made of.
    pub class: Class,
    /// Their format, where the shader states one.
    pub format: Option<vk::Format>,
}

/// The rule that a view breaks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ViewRule {
    /// The view has the type that the shader takes.
    Type,
    /// Its texels are floats, signed or unsigned integers as in the shader.
    Numeric,
    /// Its format is that of the shader.
    Format,
}

impl ViewRule {
    /// The name of the rule of `vkCmdDispatch`. A format that differs makes texels undefined and has no valid-usage id: the name
    /// is that by which the validation layer reports it.
    pub fn id(self) -> &'static str {
        match self {
            Self::Type => "VUID-vkCmdDispatch-viewType-07752",
            Self::Numeric => "VUID-vkCmdDispatch-format-07753",
            Self::Format => FORMAT,
        }
    }
}

pub(crate) const FORMAT: &str = "Undefined-Value-StorageImage-FormatMismatch-ImageView";

impl ImageTaken {
    /// What a kernel takes at a binding; none of buffers and samplers, and where several variables that share the binding take
    /// different images.
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

    /// Whether a view of that type (none of a texel buffer) and format fits: else the rule that it breaks, and how.
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
    /// Whether the view in a slot is what a shader takes there. Nothing is wrong with a slot that was never written.
    pub(crate) fn check_view(&self, slot: usize, taken: &ImageTaken) -> Result<(), (ViewRule, String)> {
        match self.slots.get(slot) {
            Some(Some(Written::Image(written))) if !written.descriptor.view.memory.is_empty() => {
                let format = vk::Format::from_raw(written.descriptor.view.format.vk());
                taken.check(written.ty, format)
            }
            _ => Ok(()),
        }
    }
}
