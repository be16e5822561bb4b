//! Types of elements in `--out`: scalars, vectors, arrays and structs, laid out as in a storage buffer.
//!
//! Offsets follow WGSL's rules for the storage address space, which are those of std430: a vector of three has the
//! alignment of one of four, a struct that of its largest member.

use std::fmt;

use serde_json::{Map, Value as Json};

use crate::scalar::Scalar;

/// The deepest nesting, and the largest number of scalars of one element.
const MAX_DEPTH: usize = 8;
const MAX_SCALARS: u64 = 1 << 12;

/// A type.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Element {
    /// `u32`.
    Scalar(Scalar),
    /// `vec3f`, `vec3<f32>`: 2 to 4 components.
    Vector(Scalar, u32),
    /// `u32[4]`.
    Array(Box<Element>, u32),
    /// `{position: vec3f, id: u32}`; names may be left out.
    Struct(Vec<(Option<String>, Element)>),
}

impl Element {
    /// Parses the type at the start of a text; the rest follows.
    pub(crate) fn parse(text: &str) -> Result<(Self, &str), String> {
        let (element, rest) = parse(text, 0)?;
        if element.scalars() > MAX_SCALARS {
            return Err(format!("an element has more than {MAX_SCALARS} scalars"));
        }
        Ok((element, rest))
    }

    /// Bytes from one element of an array to the next.
    pub(crate) fn stride(&self) -> u64 {
        self.bytes().next_multiple_of(self.alignment())
    }

    /// The number of scalars in it.
    pub(crate) fn scalars(&self) -> u64 {
        match self {
            Self::Scalar(_) => 1,
            Self::Vector(_, count) => u64::from(*count),
            Self::Array(of, count) => of.scalars().saturating_mul(u64::from(*count)),
            Self::Struct(members) => members.iter().map(|(_, of)| of.scalars()).fold(0, u64::saturating_add),
        }
    }

    fn bytes(&self) -> u64 {
        match self {
            Self::Scalar(scalar) => scalar.bytes() as u64,
            Self::Vector(scalar, count) => scalar.bytes() as u64 * u64::from(*count),
            Self::Array(of, count) => of.stride().saturating_mul(u64::from(*count)),
            Self::Struct(members) => {
                let end = self.offsets().zip(members).map(|(at, (_, of))| at + of.bytes()).last().unwrap_or(0);
                end.next_multiple_of(self.alignment())
            }
        }
    }

    fn alignment(&self) -> u64 {
        match self {
            Self::Scalar(scalar) => scalar.bytes() as u64,
            Self::Vector(scalar, count) => scalar.bytes() as u64 * if *count == 2 { 2 } else { 4 },
            Self::Array(of, _) => of.alignment(),
            Self::Struct(members) => members.iter().map(|(_, of)| of.alignment()).max().unwrap_or(1),
        }
    }

    /// The offsets of a struct's members.
    fn offsets(&self) -> impl Iterator<Item = u64> {
        let members = if let Self::Struct(members) = self { &members[..] } else { &[] };
        members.iter().scan(0u64, |end, (_, of)| {
            let at = end.next_multiple_of(of.alignment());
            *end = at + of.bytes();
            Some(at)
        })
    }

    /// The value as text; `bytes` are at least those of the type.
    pub(crate) fn show(&self, bytes: &[u8], hex: bool) -> String {
        let list = |parts: Vec<String>, [open, close]: [&str; 2]| format!("{open}{}{close}", parts.join(", "));
        match self {
            Self::Scalar(scalar) => {
                let bits = bits(*scalar, bytes, 0);
                if hex { scalar.show_hex(bits) } else { scalar.show(bits) }
            }
            Self::Vector(scalar, count) => {
                let each = Self::Scalar(*scalar);
                let at = |i: u32| each.show(&bytes[i as usize * scalar.bytes()..], hex);
                list((0..*count).map(at).collect(), ["(", ")"])
            }
            Self::Array(of, count) => {
                let stride = of.stride() as usize;
                list((0..*count as usize).map(|i| of.show(&bytes[i * stride..], hex)).collect(), ["[", "]"])
            }
            Self::Struct(members) => {
                let member = |(at, (name, of)): (u64, &(Option<String>, Self))| {
                    let value = of.show(&bytes[at as usize..], hex);
                    name.as_ref().map_or_else(|| value.clone(), |name| format!("{name}: {value}"))
                };
                list(self.offsets().zip(members).map(member).collect(), ["{", "}"])
            }
        }
    }

    /// The value in JSON: vectors, arrays and structs without names as arrays, structs with names as objects.
    pub(crate) fn json(&self, bytes: &[u8], hex: bool) -> Json {
        match self {
            Self::Scalar(scalar) => {
                let bits = bits(*scalar, bytes, 0);
                if hex { scalar.show_hex(bits).into() } else { scalar.json(bits) }
            }
            Self::Vector(scalar, count) => {
                let each = Self::Scalar(*scalar);
                (0..*count as usize).map(|i| each.json(&bytes[i * scalar.bytes()..], hex)).collect()
            }
            Self::Array(of, count) => {
                let stride = of.stride() as usize;
                (0..*count as usize).map(|i| of.json(&bytes[i * stride..], hex)).collect()
            }
            Self::Struct(members) => {
                let values = self.offsets().zip(members).map(|(at, (_, of))| of.json(&bytes[at as usize..], hex));
                let names: Option<Vec<_>> = members.iter().map(|(name, _)| name.clone()).collect();
                match names {
                    Some(names) => Json::Object(names.into_iter().zip(values).collect::<Map<_, _>>()),
                    None => values.collect(),
                }
            }
        }
    }
}

fn bits(scalar: Scalar, bytes: &[u8], at: usize) -> u64 {
    bytes[at..at + scalar.bytes()].iter().rev().fold(0, |bits, byte| bits << 8 | u64::from(*byte))
}

/// The type as it is written.
impl fmt::Display for Element {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Scalar(scalar) => write!(f, "{scalar}"),
            Self::Vector(scalar, count) => write!(f, "vec{count}<{scalar}>"),
            Self::Array(of, count) => write!(f, "{of}[{count}]"),
            Self::Struct(members) => {
                f.write_str("{")?;
                for (number, (name, of)) in members.iter().enumerate() {
                    f.write_str(if number > 0 { ", " } else { "" })?;
                    match name {
                        Some(name) => write!(f, "{name}: {of}")?,
                        None => write!(f, "{of}")?,
                    }
                }
                f.write_str("}")
            }
        }
    }
}

fn parse(text: &str, depth: usize) -> Result<(Element, &str), String> {
    if depth > MAX_DEPTH {
        return Err(format!("types nest deeper than {MAX_DEPTH}"));
    }
    let text = text.trim_start();
    let (mut element, mut rest) = match text.strip_prefix('{') {
        Some(members) => members_of(members, depth)?,
        None => {
            let end = text.find(|c: char| !c.is_ascii_alphanumeric() && c != '<' && c != '>').unwrap_or(text.len());
            (named(&text[..end])?, &text[end..])
        }
    };
    while let Some(after) = rest.strip_prefix('[') {
        let (count, after) = after.split_once(']').ok_or_else(|| format!("{rest:?} has no ]"))?;
        let count = count.parse().ok().filter(|count| (1..=MAX_SCALARS as u32).contains(count));
        let count = count.ok_or_else(|| format!("an array has from 1 to {MAX_SCALARS} elements"))?;
        (element, rest) = (Element::Array(Box::new(element), count), after);
    }
    Ok((element, rest))
}

/// The members of a struct, after its `{`.
fn members_of(text: &str, depth: usize) -> Result<(Element, &str), String> {
    let mut members = Vec::new();
    let mut rest = text;
    loop {
        let (name, after) = match rest.split_once(':') {
            Some((name, after)) if is_name(name.trim()) => (Some(name.trim().to_owned()), after),
            _ => (None, rest),
        };
        let (member, after) = parse(after, depth + 1)?;
        if name.is_some() && members.iter().any(|(known, _)| *known == name) {
            return Err(format!("two members are called {:?}", name.unwrap_or_default()));
        }
        members.push((name, member));
        let after = after.trim_start();
        if let Some(after) = after.strip_prefix('}') {
            return Ok((Element::Struct(members), after));
        }
        rest = after.strip_prefix(',').ok_or("a struct has members between commas and ends with }: {vec3f, u32}")?;
    }
}

fn is_name(text: &str) -> bool {
    text.starts_with(|c: char| c.is_ascii_alphabetic() || c == '_')
        && text.bytes().all(|b| b.is_ascii_alphanumeric() || b == b'_')
}

/// A scalar, or a vector or matrix as WGSL writes it. A matrix has the layout of an array of its columns.
fn named(name: &str) -> Result<Element, String> {
    let vector = |text| {
        let (count, rest) = dimension(text)?;
        Some(Element::Vector(component(rest)?, count))
    };
    let matrix = |text| {
        let (columns, rest) = dimension(text)?;
        Some(Element::Array(Box::new(vector(rest.strip_prefix('x')?)?), columns))
    };
    let found = match name.strip_prefix("vec") {
        Some(rest) => vector(rest),
        None => name.strip_prefix("mat").and_then(matrix),
    };
    match found {
        Some(element) => Ok(element),
        None => Ok(Element::Scalar(name.parse().map_err(|problem: String| {
            format!("{problem}, a vector such as vec3f or vec3<f32>, or a struct such as {{vec3f, u32}}")
        })?)),
    }
}

/// 2, 3 or 4 at the start of a text; the rest follows.
fn dimension(text: &str) -> Option<(u32, &str)> {
    let rest = text.strip_prefix(['2', '3', '4'])?;
    Some((text[..1].parse().ok()?, rest))
}

/// The type of the components: `f`, or `<f32>`.
fn component(text: &str) -> Option<Scalar> {
    let name = match text {
        "f" => "f32",
        "i" => "i32",
        "u" => "u32",
        "h" => "f16",
        wide => wide.strip_prefix('<')?.strip_suffix('>')?,
    };
    name.parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(text: &str) -> Element {
        let (element, rest) = Element::parse(text).unwrap();
        assert_eq!(rest, "");
        element
    }

    #[test]
    fn layouts_are_those_of_storage_buffers() {
        for (text, stride) in [
            ("u8", 1),
            ("vec2f", 8),
            ("vec3f", 16),
            ("vec3<f16>", 8),
            ("{f32, vec3f}", 32),
            ("{vec3f, f32}", 16),
            ("{vec3f, f32, u32}", 32),
            ("{u8, u64}", 16),
            ("u32[3]", 12),
            ("vec3f[2]", 32),
            ("mat3x3f", 48),
            ("mat4x2<f16>", 16),
            ("{f32, mat2x3f}", 48),
            ("{u32, {u32, u16}}", 12),
        ] {
            assert_eq!(of(text).stride(), stride, "{text}");
        }
    }

    #[test]
    fn values() {
        let words = |words: &[u32]| words.iter().flat_map(|word| word.to_le_bytes()).collect::<Vec<_>>();
        let bytes = words(&[1, 2, 3, 4, 255]);
        assert_eq!(of("vec3u").show(&bytes, false), "(1, 2, 3)");
        assert_eq!(of("{a: vec3u, b: u32, c: u32[1]}").show(&bytes, false), "{a: (1, 2, 3), b: 4, c: [255]}");
        assert_eq!(of("mat2x2<u32>").show(&bytes, false), "[(1, 2), (3, 4)]");
        assert_eq!(of("{vec3u, u32}").json(&bytes, false).to_string(), "[[1,2,3],4]");
        assert_eq!(of("{a: vec3u, b: u32}").json(&bytes, false).to_string(), r#"{"a":[1,2,3],"b":4}"#);
        assert_eq!(of("vec2<u16>").show(&words(&[0x000a_0001]), true), "(0x0001, 0x000a)");
        assert_eq!(of("{a:u32,b:vec2<i8>[2]}").to_string(), "{a: u32, b: vec2<i8>[2]}");
    }

    #[test]
    fn refused() {
        for (text, part) in [
            ("", "\"\" is not a type"),
            ("vec5f", "\"vec5f\" is not a type"),
            ("vec3<u7>", "is not a type"),
            ("mat5x2f", "\"mat5x2f\" is not a type"),
            ("mat2f", "is not a type"),
            ("{u32", "ends with }"),
            ("{}", "\"\" is not a type"),
            ("{a: u32, a: u32}", "two members are called \"a\""),
            ("u32[0]", "from 1 to 4096"),
            ("u32[4096][2]", "more than 4096 scalars"),
            ("u32[", "has no ]"),
            ("{{{{{{{{{{u32}}}}}}}}}}", "nest deeper"),
        ] {
            let error = Element::parse(text).unwrap_err();
            assert!(error.contains(part), "{text}: {error}");
        }
    }
}
