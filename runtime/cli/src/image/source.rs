//! The value of `--image`: a picture, or a format with a size and contents.

use std::path::PathBuf;
use std::str::FromStr;

use spelter_shaders::image::Format;

use super::format;

/// The largest number of mip levels: those of an image of 16384 texels, the device's limit.
const MAX_LEVELS: u32 = 15;

/// An image on the command line.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Source {
    /// `null`: no image, but a null descriptor.
    Null,
    /// `FILE.png` or `FORMAT@FILE.png`.
    Picture {
        /// The format of the image; `None` is that of the shader.
        format: Option<Format>,
        /// The file.
        path: PathBuf,
    },
    /// `FORMAT:SIZE`, `FORMAT:SIZE:levels=N:CONTENTS`.
    Texels {
        /// The format.
        format: Format,
        /// One to three numbers; the shader's declaration says whether the last one counts layers.
        size: Vec<u32>,
        /// The number of mip levels.
        levels: u32,
        /// The initial texels.
        contents: Contents,
    },
}

/// The initial texels of an image.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Contents {
    /// All bits 0.
    Zeros,
    /// Red, green and blue grow with x, y and z (or the layer): from 0 to 1, or the coordinates in integer formats.
    Gradient,
    /// Squares of 8 texels, 0 and 1 in turn.
    Checker,
    /// The bytes of a file: the texels of level 0, layer by layer.
    File(PathBuf),
}

impl FromStr for Source {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let is_picture = |path: &str| path.len() > 4 && path.to_ascii_lowercase().ends_with(".png");
        if let Some((name, rest)) = text.split_once(':')
            && (format::parse(name).is_ok() || !is_picture(text))
        {
            return of_texels(format::parse(name)?, rest);
        }
        match text.split_once('@') {
            Some((name, path)) if is_picture(path) => {
                Ok(Self::Picture { format: Some(format::parse(name)?), path: path.into() })
            }
            _ if text == "null" => Ok(Self::Null),
            _ if is_picture(text) => Ok(Self::Picture { format: None, path: text.into() }),
            _ => Err(format!(
                "{text:?} is not an image: use FILE.png, FORMAT@FILE.png, FORMAT:WIDTHxHEIGHT[:CONTENTS] or null"
            )),
        }
    }
}

fn of_texels(format: Format, rest: &str) -> Result<Source, String> {
    let (size, words) = rest.split_once(':').unwrap_or((rest, ""));
    let (mut levels, mut contents) = (1, Contents::Zeros);
    let mut words = words;
    while !words.is_empty() {
        // A file name may have colons, so it is the last word.
        let (word, after) = match words.starts_with('@') {
            true => (words, ""),
            false => words.split_once(':').unwrap_or((words, "")),
        };
        if let Some(count) = word.strip_prefix("levels=") {
            let valid = count.parse().ok().filter(|count| (1..=MAX_LEVELS).contains(count));
            levels = valid.ok_or_else(|| format!("{count:?} is not a number of levels, from 1 to {MAX_LEVELS}"))?;
        } else {
            contents = contents_of(word)?;
        }
        words = after;
    }
    Ok(Source::Texels { format, size: size_of(size)?, levels, contents })
}

fn contents_of(word: &str) -> Result<Contents, String> {
    match (word, word.strip_prefix('@')) {
        ("zeros", _) => Ok(Contents::Zeros),
        ("gradient", _) => Ok(Contents::Gradient),
        ("checker", _) => Ok(Contents::Checker),
        (_, Some("")) => Err("no file name after @".to_owned()),
        (_, Some(path)) => Ok(Contents::File(path.into())),
        _ => Err(format!("{word:?} is not the contents of an image: use zeros, gradient, checker, levels=N or @FILE")),
    }
}

fn size_of(text: &str) -> Result<Vec<u32>, String> {
    let number = |part: &str| part.parse::<u32>().ok().filter(|size| *size > 0);
    let size: Option<Vec<u32>> = text.split('x').map(number).collect();
    let size = size.filter(|size| size.len() <= 3);
    size.ok_or_else(|| format!("{text:?} is not the size of an image: use numbers above 0, WIDTHxHEIGHT[xDEPTH]"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pictures_and_sizes() {
        let picture = |format, path: &str| Ok(Source::Picture { format, path: path.into() });
        assert_eq!("null".parse(), Ok(Source::Null));
        assert_eq!("photo.png".parse(), picture(None, "photo.png"));
        assert_eq!("a:b/photo.PNG".parse(), picture(None, "a:b/photo.PNG"));
        assert_eq!("r32float@photo.png".parse(), picture(Some(Format::R32_SFLOAT), "photo.png"));
        let texels = |size: &[u32], levels, contents| {
            Ok(Source::Texels { format: Format::R8G8B8A8_UNORM, size: size.to_vec(), levels, contents })
        };
        assert_eq!("rgba8unorm:4x2".parse(), texels(&[4, 2], 1, Contents::Zeros));
        assert_eq!("rgba8unorm:4x2x3:levels=2:gradient".parse(), texels(&[4, 2, 3], 2, Contents::Gradient));
        assert_eq!("rgba8unorm:4:@a:b.png".parse(), texels(&[4], 1, Contents::File("a:b.png".into())));
    }

    #[test]
    fn refused() {
        for (text, part) in [
            ("", "is not an image"),
            (".png", "is not an image"),
            ("photo.jpg", "is not an image"),
            ("rgba8:4x4", "\"rgba8\" is not a format"),
            ("rgba8@photo.png", "\"rgba8\" is not a format"),
            ("rgba8unorm", "is not an image"),
            ("rgba8unorm:", "is not the size"),
            ("rgba8unorm:4x0", "is not the size"),
            ("rgba8unorm:4x-1", "is not the size"),
            ("rgba8unorm:1x1x1x1", "is not the size"),
            ("rgba8unorm:99999999999x1", "is not the size"),
            ("rgba8unorm:4x4:blue", "is not the contents"),
            ("rgba8unorm:4x4:@", "no file name"),
            ("rgba8unorm:4x4:levels=0", "is not a number of levels"),
        ] {
            let error = text.parse::<Source>().unwrap_err();
            assert!(error.contains(part), "{text}: {error}");
        }
    }
}
