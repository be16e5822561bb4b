//! Structured arguments: `G.B=VALUE`, `ID=VALUE`, `X,Y,Z` and others.

use std::fmt;
use std::path::PathBuf;
use std::str::FromStr;

use spelter::Constant;
use spelter_shaders::image::Format;

use crate::element::Element;
use crate::image::{self, SamplerOptions, Source};
use crate::scalar::Scalar;
use crate::slot::{Slot, digits};
use crate::value::{Value, bytes, count};

/// Splits `G.B=REST`, or `NAME=REST`: then the slot has only the element, until the name is looked up in the shader
/// (`run/names.rs`).
fn at_slot(text: &str) -> Result<(Slot, Option<String>, &str), String> {
    let (place, rest) = text.split_once('=').ok_or_else(|| format!("{text:?} has no =: use G.B=…"))?;
    if !place.starts_with(|c: char| c.is_alphabetic() || c == '_') {
        return Ok((place.parse()?, None, rest));
    }
    let (name, element) = match place.strip_suffix(']').and_then(|place| place.split_once('[')) {
        Some((name, element)) => (name, digits(element)),
        None => (place, Some(0)),
    };
    let is_name = name.chars().all(|c| c.is_alphanumeric() || c == '_');
    let element = element.filter(|_| is_name).ok_or_else(|| {
        format!("{place:?} is neither a binding nor the name of a variable: use G.B, such as 0.1, or NAME")
    })?;
    Ok((Slot { element, ..Slot::default() }, Some(name.to_owned()), rest))
}

/// `--bind G.B=VALUE`.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Bind {
    pub(crate) slot: Slot,
    /// The name of the variable that gives the slot, until it is looked up.
    pub(crate) name: Option<String>,
    pub(crate) value: Value,
}

impl FromStr for Bind {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let (slot, name, value) = at_slot(text)?;
        Ok(Self { slot, name, value: value.parse()? })
    }
}

/// `--save G.B=FILE`.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Save {
    pub(crate) slot: Slot,
    /// As in [`Bind`].
    pub(crate) name: Option<String>,
    pub(crate) path: PathBuf,
}

impl FromStr for Save {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let (slot, name, path) = at_slot(text)?;
        match path {
            "" => Err("no file name after =".into()),
            "-" => Err("`-` is no file to write to: /dev/stdout is standard output".into()),
            path => Ok(Self { slot, name, path: path.into() }),
        }
    }
}

/// `--texels G.B=FORMAT:VALUE`, or `G.B=null`.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct TexelsOption {
    pub(crate) slot: Slot,
    /// As in [`Bind`].
    pub(crate) name: Option<String>,
    /// `None` is a null descriptor.
    pub(crate) contents: Option<(Format, Value)>,
}

impl FromStr for TexelsOption {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let (slot, name, rest) = at_slot(text)?;
        if rest == "null" {
            return Ok(Self { slot, name, contents: None });
        }
        let wrong = || format!("{rest:?} is not a texel buffer: use FORMAT:VALUE, such as r32uint:u32:1,2, or null");
        let (format, value) = rest.split_once(':').ok_or_else(wrong)?;
        let (format, value) = (image::format(format)?, value.parse()?);
        if value == Value::Null { Err(wrong()) } else { Ok(Self { slot, name, contents: Some((format, value)) }) }
    }
}

/// `--image G.B=SOURCE`.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct ImageOption {
    pub(crate) slot: Slot,
    /// As in [`Bind`].
    pub(crate) name: Option<String>,
    pub(crate) source: Source,
}

impl FromStr for ImageOption {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let (slot, name, source) = at_slot(text)?;
        Ok(Self { slot, name, source: source.parse()? })
    }
}

/// `--sampler G.B=WORD,…`.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct SamplerOption {
    pub(crate) slot: Slot,
    /// As in [`Bind`].
    pub(crate) name: Option<String>,
    pub(crate) options: SamplerOptions,
}

impl FromStr for SamplerOption {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        // The words have = as well.
        let (slot, name, options) = at_slot(text)?;
        Ok(Self { slot, name, options: options.parse()? })
    }
}

/// `--out G.B=TYPE[:hex][:FIRST..LAST]`.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Print {
    pub(crate) slot: Slot,
    /// As in [`Bind`].
    pub(crate) name: Option<String>,
    pub(crate) element: Element,
    /// Whether bits are shown, in hexadecimal.
    pub(crate) hex: bool,
    /// Elements; `None` is all of them.
    pub(crate) range: Option<(u64, u64)>,
}

impl FromStr for Print {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        if !text.contains('=') {
            return Err(format!("{text:?} has no type: use G.B=TYPE, such as {text}=u32"));
        }
        let (slot, name, rest) = at_slot(text)?;
        let (element, mut rest) = Element::parse(rest)?;
        let (mut hex, mut range) = (false, None);
        while !rest.is_empty() {
            let words = rest.strip_prefix(':').ok_or_else(|| format!("{rest:?} follows the type: use :FIRST..LAST"))?;
            let (word, after) = words.find(':').map_or((words, ""), |at| words.split_at(at));
            match word {
                "hex" => hex = true,
                word => range = Some(element_range(word)?),
            }
            rest = after;
        }
        Ok(Self { slot, name, element, hex, range })
    }
}

fn element_range(text: &str) -> Result<(u64, u64), String> {
    let parse = || {
        let (first, last) = text.split_once("..")?;
        Some((count(first)?, count(last)?))
    };
    match parse() {
        Some((first, last)) if first <= last => Ok((first, last)),
        Some(_) => Err(format!("{text:?} ends before it starts")),
        None => Err(format!("{text:?} is not a range: use FIRST..LAST")),
    }
}

/// `--push TYPE:…`, as bytes.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Push(pub(crate) Vec<u8>);

impl FromStr for Push {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let (scalar, list) = text.split_once(':').ok_or_else(|| format!("{text:?} has no type: use TYPE:a,b,c"))?;
        Ok(Self(bytes(scalar.parse()?, list)?))
    }
}

/// What names a specialization constant.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum SpecName {
    /// `SpecId`, in WGSL that of `@id`.
    Id(u32),
    /// Its name in the shader.
    Name(String),
}

impl fmt::Display for SpecName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Id(id) => write!(f, "{id}"),
            Self::Name(name) => f.write_str(name),
        }
    }
}

/// `--spec ID=VALUE` and `--spec NAME=VALUE`.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Spec {
    pub(crate) name: SpecName,
    pub(crate) value: Constant,
}

impl FromStr for Spec {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let (name, value) = text.split_once('=').ok_or_else(|| format!("{text:?} has no =: use ID=VALUE"))?;
        let is_name = name.starts_with(|c: char| c.is_alphabetic() || c == '_')
            && name.chars().all(|c| c.is_alphanumeric() || c == '_');
        let name = match digits(name) {
            _ if is_name => SpecName::Name(name.to_owned()),
            Some(id) if !name.is_empty() => SpecName::Id(id),
            _ => {
                let hint = "use the number (in WGSL that of @id) or the name of the constant";
                return Err(format!("{name:?} is not a SpecId: {hint}"));
            }
        };
        Ok(Self { name, value: constant(value)? })
    }
}

/// A value whose type follows from its form: `true`, `3`, `-1`, `1.5`. The program checks it against the constant's
/// type.
fn constant(text: &str) -> Result<Constant, String> {
    if let Ok(value) = text.parse::<bool>() {
        return Ok(value.into());
    }
    let looks_integral = text.trim_start_matches('-').bytes().all(|b| b.is_ascii_digit());
    let unsigned = Scalar::U32.parse(text).map(|bits| Constant::U32(bits as u32));
    let signed = || Scalar::I32.parse(text).map(|bits| Constant::I32((bits as u32).cast_signed()));
    let wide = || Scalar::U64.parse(text).map(Constant::U64);
    let wide_signed = || Scalar::I64.parse(text).map(|bits| Constant::I64(bits.cast_signed()));
    match unsigned.or_else(|_| signed()).or_else(|_| wide()).or_else(|_| wide_signed()) {
        Err(_) if looks_integral && !text.is_empty() => {
            Err(format!("{text:?} is out of range: integers are from {} to {}", i64::MIN, u64::MAX))
        }
        Err(_) => match (Scalar::F64.parse(text), text.trim().parse::<f64>()) {
            (Ok(bits), _) => Ok(Constant::F64(f64::from_bits(bits))),
            (_, Ok(_)) => Err(format!("{text:?} is out of range: floats are from {:?} to {:?}", f64::MIN, f64::MAX)),
            _ => Err(format!("{text:?} is not a constant: use 3, -1, 1.5 or true")),
        },
        integer => integer,
    }
}

/// `--groups X[,Y[,Z]]` and `--invocations X[,Y[,Z]]`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Groups(pub(crate) [u32; 3]);

impl FromStr for Groups {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let mut groups = [1; 3];
        for (i, part) in text.split(',').enumerate() {
            let group = groups.get_mut(i).ok_or("more than three numbers")?;
            let number = count(part.trim()).and_then(|number| number.try_into().ok());
            *group =
                number.ok_or_else(|| format!("{part:?} is not a number from 0 to {}: write X[,Y[,Z]]", u32::MAX))?;
        }
        Ok(Self(groups))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn slot(group: u32, binding: u32, element: u32) -> Slot {
        Slot { group, binding, element }
    }

    #[test]
    fn slots() {
        assert_eq!("0.1".parse(), Ok(slot(0, 1, 0)));
        assert_eq!("3.12[4]".parse(), Ok(slot(3, 12, 4)));
        for text in ["", "0", "0.", ".1", "0.1[", "0.1[x]", "-0.1", "0.+1", "0.1.2"] {
            assert!(text.parse::<Slot>().is_err(), "{text}");
        }
    }

    #[test]
    fn texel_buffers() {
        let parse = |text: &str| text.parse::<TexelsOption>().map(|texels| texels.contents);
        let words = Value::Bytes(vec![1, 0, 0, 0]);
        assert_eq!(parse("0.1=r32uint:u32:1"), Ok(Some((Format::R32_UINT, words))));
        assert_eq!(parse("lut[2]=R8G8B8A8_UNORM:zeros:2K"), Ok(Some((Format::R8G8B8A8_UNORM, Value::Zeros(2048)))));
        assert_eq!(parse("0.1=null"), Ok(None));
        for text in ["0.1", "0.1=", "0.1=u32:1", "0.1=r32uint", "0.1=r32uint:", "0.1=r32uint:null", "0.1=r32uint:x"] {
            assert!(parse(text).is_err(), "{text}");
        }
    }

    #[test]
    fn prints() {
        let print = |text: &str| text.parse::<Print>();
        let element = Element::Scalar(Scalar::F32);
        let plain = Print { slot: slot(0, 1, 0), name: None, element, hex: false, range: None };
        assert_eq!(print("0.1=f32"), Ok(plain.clone()));
        assert_eq!(print("0.1=u32:2..5").map(|p| p.range), Ok(Some((2, 5))));
        assert_eq!(print("0.1=f32:hex"), Ok(Print { hex: true, ..plain.clone() }));
        assert_eq!(print("0.1=f32:hex:0..1K"), Ok(Print { hex: true, range: Some((0, 1024)), ..plain.clone() }));
        assert_eq!(print("a_1[2]=f32"), Ok(Print { slot: slot(0, 0, 2), name: Some("a_1".to_owned()), ..plain }));
        for text in [
            "0.1",
            "0.1=f65",
            "0.1=f32:3",
            "0.1=f32:5..2",
            "0.1=f32:..2",
            "0.1=f32:a..b",
            "0.1=f32:",
            "0.1=f32 hex",
            "0.1=f32:hex:",
            "a b=f32",
            "a[=f32",
            "a[x]=f32",
            "a.b=f32",
        ] {
            assert!(print(text).is_err(), "{text}");
        }
    }

    #[test]
    fn constants() {
        let value = |text: &str| text.parse::<Spec>().map(|s| s.value);
        assert_eq!(value("0=3"), Ok(Constant::U32(3)));
        assert_eq!(value("0=-1"), Ok(Constant::I32(-1)));
        assert_eq!(value("0=5000000000"), Ok(Constant::U64(5_000_000_000)));
        assert_eq!(value("0=-3000000000"), Ok(Constant::I64(-3_000_000_000)));
        assert_eq!(value("0=1.5"), Ok(Constant::F64(1.5)));
        assert_eq!(value("0=-1e3"), Ok(Constant::F64(-1000.0)));
        assert_eq!(value("0=true"), Ok(Constant::Bool(true)));
        let name = |text: &str| text.parse::<Spec>().map(|spec| spec.name);
        assert_eq!(name("0=3"), Ok(SpecName::Id(0)));
        assert_eq!(name("tile_size=3"), Ok(SpecName::Name("tile_size".to_owned())));
        for text in [
            "3",
            "=1",
            "x.y=1",
            "1x=1",
            "0=",
            "0=y",
            "0=18446744073709551616",
            "0=-9223372036854775809",
            "0=1e400",
            "-1=1",
        ] {
            assert!(value(text).is_err(), "{text}");
        }
    }

    #[test]
    fn groups() {
        assert_eq!("4".parse(), Ok(Groups([4, 1, 1])));
        assert_eq!("4,5,6".parse(), Ok(Groups([4, 5, 6])));
        for text in ["", "1,", "1,2,3,4", "-1", "99999999999"] {
            assert!(text.parse::<Groups>().is_err(), "{text}");
        }
    }
}
