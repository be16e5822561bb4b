//! Values on the command line: `TYPE:a,b,c`, ranges, random numbers, zeros, files.

use std::fmt;
use std::path::PathBuf;
use std::str::FromStr;

use crate::random::Random;

/// A made-up list is at most this long, so that a typing error does not fill the memory.
const MOST_ELEMENTS: u64 = 1 << 28;

/// Type of a 32-bit element.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Scalar {
    U32,
    I32,
    F32,
}

impl FromStr for Scalar {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        match text {
            "u32" => Ok(Self::U32),
            "i32" => Ok(Self::I32),
            "f32" => Ok(Self::F32),
            _ => Err(format!("{text:?} is no type: use u32, i32 or f32")),
        }
    }
}

impl fmt::Display for Scalar {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::U32 => "u32",
            Self::I32 => "i32",
            Self::F32 => "f32",
        })
    }
}

impl Scalar {
    /// The 32 bits of one value.
    pub(crate) fn parse(self, text: &str) -> Result<u32, String> {
        let text = text.trim();
        let bits = match self {
            Self::U32 => hexadecimal(text).or_else(|| text.parse().ok()),
            Self::I32 => hexadecimal(text).or_else(|| text.parse().ok().map(i32::cast_unsigned)),
            Self::F32 => text.parse::<f32>().ok().map(f32::to_bits),
        };
        bits.ok_or_else(|| format!("{text:?} is not {}", self.described()))
    }

    /// The type with its article and what it holds, for messages.
    fn described(self) -> String {
        match self {
            Self::U32 => format!("a u32, a whole number from 0 to {}", u32::MAX),
            Self::I32 => format!("an i32, a whole number from {} to {}", i32::MIN, i32::MAX),
            Self::F32 => "an f32, a number such as 1.5, -2e3, inf or nan".into(),
        }
    }

    /// The value of 32 bits as text that reads back as the same value.
    pub(crate) fn show(self, bits: u32) -> String {
        match self {
            Self::U32 => bits.to_string(),
            Self::I32 => bits.cast_signed().to_string(),
            Self::F32 => show_float(f32::from_bits(bits)),
        }
    }

    /// The value of 32 bits in JSON, which has no infinity and no NaN: those are strings.
    pub(crate) fn json(self, bits: u32) -> serde_json::Value {
        match self {
            Self::U32 => bits.into(),
            Self::I32 => bits.cast_signed().into(),
            // Through the shortest text: 0.1 and not 0.10000000149011612.
            Self::F32 => {
                let text = self.show(bits);
                let number = text.parse().ok().and_then(serde_json::Number::from_f64);
                number.map_or(serde_json::Value::String(text), serde_json::Value::Number)
            }
        }
    }

    fn range(self, index: u32) -> u32 {
        match self {
            Self::U32 | Self::I32 => index,
            Self::F32 => (index as f32).to_bits(),
        }
    }

    fn random(self, random: &mut Random) -> u32 {
        match self {
            Self::U32 | Self::I32 => random.word(),
            Self::F32 => random.fraction().to_bits(),
        }
    }
}

/// Very large and very small numbers with an exponent, others without.
fn show_float(value: f32) -> String {
    let size = value.abs();
    let plain = size == 0.0 || (1e-4..1e9).contains(&size) || !size.is_finite();
    if plain { value.to_string() } else { format!("{value:e}") }
}

/// The 32 bits after `0x`.
fn hexadecimal(text: &str) -> Option<u32> {
    let digits = text.strip_prefix("0x").or_else(|| text.strip_prefix("0X"))?;
    // `from_str_radix` takes a sign as well.
    if digits.starts_with('+') { None } else { u32::from_str_radix(digits, 16).ok() }
}

/// What a buffer holds at first.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Value {
    /// `zeros:BYTES`.
    Zeros(u64),
    /// `TYPE:…`, as 32-bit words.
    Words(Vec<u32>),
    /// `@FILE`.
    File(PathBuf),
}

impl FromStr for Value {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        if let Some(path) = text.strip_prefix('@') {
            return if path.is_empty() { Err("no file name after @".into()) } else { Ok(Self::File(path.into())) };
        }
        match text.split_once(':') {
            Some(("zeros", bytes)) => Ok(Self::Zeros(number(bytes, "bytes")?)),
            Some((scalar, list)) => Ok(Self::Words(words(scalar.parse()?, list)?)),
            None => Err(format!(
                "{text:?} is no value: use zeros:BYTES, TYPE:a,b,c, TYPE:range:N, TYPE:random:N:SEED or @FILE"
            )),
        }
    }
}

/// The words of a typed list: what stands after `TYPE:`.
pub(crate) fn words(scalar: Scalar, list: &str) -> Result<Vec<u32>, String> {
    if let Some(count) = list.strip_prefix("range:") {
        return Ok((0..elements(count)?).map(|i| scalar.range(i)).collect());
    }
    if let Some(rest) = list.strip_prefix("random:") {
        let (count, seed) = rest.split_once(':').ok_or("random needs a number and a seed: random:N:SEED")?;
        let mut random = Random::new(number(seed, "the seed")?);
        return Ok((0..elements(count)?).map(|_| scalar.random(&mut random)).collect());
    }
    list.split(',').map(|text| scalar.parse(text)).collect()
}

fn elements(text: &str) -> Result<u32, String> {
    let count = number(text, "elements")?;
    match u32::try_from(count) {
        Ok(count) if u64::from(count) <= MOST_ELEMENTS => Ok(count),
        _ => Err(format!("{count} elements are too many: the most is {MOST_ELEMENTS}")),
    }
}

fn number(text: &str, what: &str) -> Result<u64, String> {
    text.parse().map_err(|_| format!("{text:?} is no number ({what})"))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn bits(text: &str) -> Vec<u32> {
        match text.parse() {
            Ok(Value::Words(words)) => words,
            other => panic!("{other:?}"),
        }
    }

    #[test]
    fn lists_and_ranges() {
        assert_eq!(bits("u32:1, 2,0xff"), [1, 2, 255]);
        assert_eq!(bits("i32:-1,3,0x10,0XFFFFFFFF"), [u32::MAX, 3, 16, u32::MAX]);
        assert_eq!(bits("f32:1.5,-inf"), [1.5f32.to_bits(), f32::NEG_INFINITY.to_bits()]);
        assert_eq!(bits("f32:range:3"), [0.0f32, 1.0, 2.0].map(f32::to_bits));
        assert!(bits("u32:range:0").is_empty());
    }

    #[test]
    fn random_is_the_same_for_the_same_seed() {
        assert_eq!(bits("f32:random:100:7"), bits("f32:random:100:7"));
        assert_ne!(bits("f32:random:100:7"), bits("f32:random:100:8"));
        assert!(bits("f32:random:1000:1").iter().all(|&b| (0.0..1.0).contains(&f32::from_bits(b))));
    }

    #[test]
    fn refused() {
        let bad =
            ["", "u32", "u8:1", "u32:", "u32:-1", "u32:1,,2", "i32:3000000000", "f32:x", "zeros:", "zeros:-4", "@"];
        let worse = [
            "u32:0x",
            "u32:0x+1",
            "i32:0x100000000",
            "u32:range:",
            "u32:range:99999999999",
            "u32:random:3",
            "u32:random:3:x",
            "u32:random::1",
        ];
        for text in bad.into_iter().chain(worse) {
            assert!(text.parse::<Value>().is_err(), "{text}");
        }
    }

    #[test]
    fn what_is_expected_is_said() {
        for (scalar, text, message) in [
            (Scalar::U32, "99999999999", "\"99999999999\" is not a u32, a whole number from 0 to 4294967295"),
            (Scalar::U32, "-1", "\"-1\" is not a u32, a whole number from 0 to 4294967295"),
            (Scalar::I32, "1.5", "\"1.5\" is not an i32, a whole number from -2147483648 to 2147483647"),
            (Scalar::F32, "x", "\"x\" is not an f32, a number such as 1.5, -2e3, inf or nan"),
        ] {
            assert_eq!(scalar.parse(text), Err(message.to_owned()));
        }
    }

    #[test]
    fn shown_values_read_back() {
        for bits in [0, 1, 0x3dcc_cccd, 0x7f80_0000, 0xff7f_ffff, 0x8000_0000, u32::MAX - 5] {
            for scalar in [Scalar::U32, Scalar::I32] {
                assert_eq!(scalar.parse(&scalar.show(bits)), Ok(bits));
            }
        }
        for (value, shown) in
            [(0.1f32, "0.1"), (-0.0, "-0"), (123_456.7, "123456.7"), (1e-30, "1e-30"), (-2.5e9, "-2.5e9")]
        {
            assert_eq!(Scalar::F32.show(value.to_bits()), shown);
            assert_eq!(Scalar::F32.parse(shown), Ok(value.to_bits()));
            assert!(Scalar::F32.json(value.to_bits()).is_number());
        }
        assert_eq!(Scalar::F32.json(0x3dcc_cccd).to_string(), "0.1");
        assert_eq!(Scalar::F32.json(f32::NAN.to_bits()).to_string(), "\"NaN\"");
    }
}
