//! What a shader declares of the images at a binding: what a view has to be so that the shader sees its texels.

use super::format::{Class, Format};
use super::op::Dim;

/// `OpTypeImage`, as far as a view has to match it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct DeclaredImage {
    /// Dimensions.
    pub dim: Dim,
    /// Whether it has layers.
    pub arrayed: bool,
    /// What texels are made of.
    pub class: Class,
    /// The format that the shader states; `None` for `Unknown`.
    pub format: Option<Format>,
}

impl DeclaredImage {
    /// The name in the text form: `image.2d_array.uint.R32_UINT`, or without a format `image.cube.float`.
    pub fn name(&self) -> String {
        let array = if self.arrayed { "_array" } else { "" };
        let format = Format::NAMED.iter().find(|(_, format)| Some(*format) == self.format);
        let format = format.map(|(name, _)| format!(".{name}")).unwrap_or_default();
        format!("image.{}{array}.{}{format}", self.dim.name(), self.class.name())
    }

    /// What has that name in the text form.
    pub fn from_name(name: &str) -> Option<Self> {
        let mut parts = name.strip_prefix("image.")?.split('.');
        let dim = parts.next()?;
        let (dim, arrayed) = dim.strip_suffix("_array").map_or((dim, false), |dim| (dim, true));
        let (dim, class) = (Dim::from_name(dim)?, Class::from_name(parts.next()?)?);
        let format = match parts.next() {
            Some(name) => Some(Format::NAMED.iter().find(|(other, _)| *other == name)?.1),
            None => None,
        };
        parts.next().is_none().then_some(Self { dim, arrayed, class, format })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_read_back() {
        for dim in Dim::ALL {
            for class in Class::ALL {
                for arrayed in [false, true] {
                    let formats = Format::NAMED.iter().map(|(_, format)| Some(*format)).chain([None]);
                    for format in formats {
                        let image = DeclaredImage { dim, arrayed, class, format };
                        assert_eq!(DeclaredImage::from_name(&image.name()), Some(image));
                    }
                }
            }
        }
        for bad in ["2d.float", "image.2d", "image.4d.float", "image.2d.float.R9", "image.2d.float.R32_UINT.1"] {
            assert_eq!(DeclaredImage::from_name(bad), None, "{bad}");
        }
    }
}
