//! Image declarations of a shader, which the view bound at run time must match.

use super::format::{Class, Format};
use super::op::Dim;

/// `OpTypeImage`, as far as a view has to match it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct DeclaredImage {
    /// Dimensionality.
    pub dim: Dim,
    /// Whether it is an array.
    pub arrayed: bool,
    /// Type of the texels.
    pub class: Class,
    /// Declared format; `None` for `Unknown`.
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

    /// Parses [`DeclaredImage::name`].
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
