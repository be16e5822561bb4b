//! Scalar types on the command line: parsing, printing and generation of values.

use std::fmt;
use std::str::FromStr;

use half::f16;

use crate::random::Random;

/// A type of elements. The bits of an element are the low bits of a `u64`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Scalar {
    kind: ScalarKind,
    bits: u32,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum ScalarKind {
    Uint,
    Int,
    Float,
}

impl FromStr for Scalar {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let all = Self::ALL.into_iter();
        all.clone().find(|scalar| scalar.to_string() == text).ok_or_else(|| {
            let list: Vec<_> = all.map(|scalar| scalar.to_string()).collect();
            format!("{text:?} is not a type: use one of {}", list.join(", "))
        })
    }
}

impl fmt::Display for Scalar {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let letter = match self.kind {
            ScalarKind::Uint => 'u',
            ScalarKind::Int => 'i',
            ScalarKind::Float => 'f',
        };
        write!(f, "{letter}{}", self.bits)
    }
}

const fn of(kind: ScalarKind, bits: u32) -> Scalar {
    Scalar { kind, bits }
}

impl Scalar {
    pub(crate) const U32: Self = of(ScalarKind::Uint, 32);
    pub(crate) const I32: Self = of(ScalarKind::Int, 32);
    pub(crate) const F32: Self = of(ScalarKind::Float, 32);
    pub(crate) const U64: Self = of(ScalarKind::Uint, 64);
    pub(crate) const I64: Self = of(ScalarKind::Int, 64);
    pub(crate) const F64: Self = of(ScalarKind::Float, 64);

    const ALL: [Self; 11] = [
        of(ScalarKind::Uint, 8),
        of(ScalarKind::Int, 8),
        of(ScalarKind::Uint, 16),
        of(ScalarKind::Int, 16),
        of(ScalarKind::Float, 16),
        Self::U32,
        Self::I32,
        Self::F32,
        Self::U64,
        Self::I64,
        Self::F64,
    ];

    /// Bytes of an element.
    pub(crate) fn bytes(self) -> usize {
        self.bits as usize / 8
    }

    /// The bits of one value.
    pub(crate) fn parse(self, text: &str) -> Result<u64, String> {
        let text = text.trim();
        let bits = match self.kind {
            ScalarKind::Uint => {
                hexadecimal(text).or_else(|| text.parse().ok()).filter(|value| value & !self.mask() == 0)
            }
            ScalarKind::Int => {
                let bits = hexadecimal(text).filter(|bits| bits & !self.mask() == 0);
                bits.or_else(|| self.of_integer(text.parse().ok()?))
            }
            ScalarKind::Float => self.of_float(text),
        };
        bits.ok_or_else(|| format!("{text:?} is not {}", self.described()))
    }

    fn mask(self) -> u64 {
        u64::MAX >> (64 - self.bits)
    }

    /// The bits of a signed integer, if the type has it.
    fn of_integer(self, value: i64) -> Option<u64> {
        let bits = value.cast_unsigned() & self.mask();
        (self.integer(bits) == value).then_some(bits)
    }

    /// The signed integer of the bits.
    fn integer(self, bits: u64) -> i64 {
        let unused = 64 - self.bits;
        (bits << unused).cast_signed() >> unused
    }

    /// The bits of the nearest float. A number that is too large is an error; only `inf` is infinite.
    fn of_float(self, text: &str) -> Option<u64> {
        let (bits, value) = match self.bits {
            16 => {
                let value = f16::from_f64(text.parse().ok()?);
                (u64::from(value.to_bits()), value.to_f64())
            }
            32 => {
                let value: f32 = text.parse().ok()?;
                (u64::from(value.to_bits()), f64::from(value))
            }
            _ => {
                let value: f64 = text.parse().ok()?;
                (value.to_bits(), value)
            }
        };
        let says_so = text.trim_start_matches(['+', '-']).starts_with(['i', 'I']);
        (!value.is_infinite() || says_so).then_some(bits)
    }

    /// The type with its article and its values, for messages.
    fn described(self) -> String {
        let (unsigned, signed) = (self.mask(), self.mask().cast_signed() >> 1 & i64::MAX);
        match self.kind {
            ScalarKind::Uint => format!("a {self}, a whole number from 0 to {unsigned}"),
            ScalarKind::Int => format!("an {self}, a whole number from {} to {signed}", -signed - 1),
            ScalarKind::Float if self.bits == 16 => {
                format!("an {self}, a number such as 1.5, -2e3, inf or nan, up to 65504")
            }
            ScalarKind::Float => format!("an {self}, a number such as 1.5, -2e3, inf or nan"),
        }
    }

    /// The value as text that parses to the same value.
    pub(crate) fn show(self, bits: u64) -> String {
        match (self.kind, self.bits) {
            (ScalarKind::Uint, _) => bits.to_string(),
            (ScalarKind::Int, _) => self.integer(bits).to_string(),
            (ScalarKind::Float, 16) => show_float(f16::from_bits(bits as u16).to_f32()),
            (ScalarKind::Float, 32) => show_float(f32::from_bits(bits as u32)),
            (ScalarKind::Float, _) => show_float(f64::from_bits(bits)),
        }
    }

    /// The bits as text with all digits: `0x0000000a`. For integers it parses to the same value.
    pub(crate) fn show_hex(self, bits: u64) -> String {
        format!("0x{bits:0digits$x}", digits = self.bytes() * 2)
    }

    /// The value in JSON. Infinities and NaN, which JSON lacks, are strings.
    pub(crate) fn json(self, bits: u64) -> serde_json::Value {
        match self.kind {
            ScalarKind::Uint => bits.into(),
            ScalarKind::Int => self.integer(bits).into(),
            // By way of the shortest text: 0.1, not 0.10000000149011612.
            ScalarKind::Float => {
                let text = self.show(bits);
                let number = text.parse().ok().and_then(serde_json::Number::from_f64);
                number.map_or(serde_json::Value::String(text), serde_json::Value::Number)
            }
        }
    }

    /// The bits of an integer, or of the float nearest to it; an error if it is out of range.
    pub(crate) fn number(self, number: u32) -> Result<u64, String> {
        let bits = match (self.kind, self.bits) {
            (ScalarKind::Uint, _) => Some(u64::from(number)).filter(|value| value & !self.mask() == 0),
            (ScalarKind::Int, _) => self.of_integer(number.into()),
            (ScalarKind::Float, 16) => {
                Some(f16::from_f64(number.into())).filter(|value| value.is_finite()).map(|v| v.to_bits().into())
            }
            (ScalarKind::Float, 32) => Some((number as f32).to_bits().into()),
            (ScalarKind::Float, _) => Some(f64::from(number).to_bits()),
        };
        bits.ok_or_else(|| format!("{number} is not {}", self.described()))
    }

    /// A random value: any integer, or a float from 0 up to but not including 1.
    pub(crate) fn random(self, random: &mut Random) -> u64 {
        let mut word = || u64::from(random.word());
        match (self.kind, self.bits) {
            (ScalarKind::Uint | ScalarKind::Int, 64) => word() << 32 | word(),
            (ScalarKind::Uint | ScalarKind::Int, _) => word() & self.mask(),
            (ScalarKind::Float, 16) => f16::from_f64((word() >> 21) as f64 / 2048.0).to_bits().into(),
            (ScalarKind::Float, 32) => random.fraction().to_bits().into(),
            (ScalarKind::Float, _) => (((word() << 32 | word()) >> 11) as f64 / (1u64 << 53) as f64).to_bits(),
        }
    }
}

/// Floats that Rust can print with and without exponent.
trait Float: Copy + fmt::Display + fmt::LowerExp + Into<f64> {}

impl Float for f32 {}
impl Float for f64 {}

/// Very large and very small numbers with an exponent, others without.
fn show_float(value: impl Float) -> String {
    let size = value.into().abs();
    let plain = size == 0.0 || (1e-4..1e9).contains(&size) || !size.is_finite();
    if plain { value.to_string() } else { format!("{value:e}") }
}

/// The bits after `0x`.
fn hexadecimal(text: &str) -> Option<u64> {
    let digits = text.strip_prefix("0x").or_else(|| text.strip_prefix("0X"))?;
    // `from_str_radix` accepts a sign as well.
    if digits.starts_with('+') { None } else { u64::from_str_radix(digits, 16).ok() }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn messages_name_the_accepted_values() {
        for (scalar, text, message) in [
            ("u32", "99999999999", "\"99999999999\" is not a u32, a whole number from 0 to 4294967295"),
            ("u32", "-1", "\"-1\" is not a u32, a whole number from 0 to 4294967295"),
            ("i32", "1.5", "\"1.5\" is not an i32, a whole number from -2147483648 to 2147483647"),
            ("f32", "x", "\"x\" is not an f32, a number such as 1.5, -2e3, inf or nan"),
            ("f32", "1e40", "\"1e40\" is not an f32, a number such as 1.5, -2e3, inf or nan"),
            ("f16", "70000", "\"70000\" is not an f16, a number such as 1.5, -2e3, inf or nan, up to 65504"),
            ("i8", "128", "\"128\" is not an i8, a whole number from -128 to 127"),
            ("u8", "0x100", "\"0x100\" is not a u8, a whole number from 0 to 255"),
            (
                "i64",
                "9223372036854775808",
                "\"9223372036854775808\" is not an i64, a whole number from -9223372036854775808 to 9223372036854775807",
            ),
        ] {
            assert_eq!(scalar.parse::<Scalar>().unwrap().parse(text), Err(message.to_owned()));
        }
        let error = "u7".parse::<Scalar>().unwrap_err();
        assert_eq!(error, "\"u7\" is not a type: use one of u8, i8, u16, i16, f16, u32, i32, f32, u64, i64, f64");
    }

    #[test]
    fn shown_values_read_back() {
        let random = &mut Random::new(5);
        for scalar in Scalar::ALL {
            let some = (0..2000).map(|_| u64::from(random.word()) << 32 | u64::from(random.word()));
            for bits in some.chain([0, 1, u64::MAX, 1 << 63, 0x7fff_ffff, 0x8000, 0x7c00]) {
                let bits = bits & scalar.mask();
                let shown = scalar.show(bits);
                let back = scalar.parse(&shown).unwrap();
                assert!(back == bits || shown == "NaN", "{scalar} {bits:#x}: {shown}");
                let is_number = scalar.json(bits).is_number();
                assert_eq!(is_number, !["NaN", "inf", "-inf"].contains(&shown.as_str()), "{scalar} {shown}");
            }
        }
        for (value, shown) in
            [(0.1f32, "0.1"), (-0.0, "-0"), (123_456.7, "123456.7"), (1e-30, "1e-30"), (-2.5e9, "-2.5e9")]
        {
            assert_eq!(Scalar::F32.show(value.to_bits().into()), shown);
        }
        assert_eq!(Scalar::F32.json(0x3dcc_cccd).to_string(), "0.1");
        assert_eq!(Scalar::F32.json(f32::NAN.to_bits().into()).to_string(), "\"NaN\"");
    }

    #[test]
    fn whole_numbers_are_those_of_the_type() {
        for scalar in Scalar::ALL {
            for number in [0, 1, 100, 127] {
                assert_eq!(scalar.show(scalar.number(number).unwrap()), number.to_string());
            }
            let few = scalar.bits == 8 || scalar.to_string() == "f16";
            assert_eq!(scalar.number(65_536).is_err(), few || scalar.bits == 16, "{scalar}");
        }
    }

    #[test]
    fn random_floats_are_below_one() {
        let random = &mut Random::new(1);
        for scalar in ["f16", "f32", "f64"].map(|name| name.parse::<Scalar>().unwrap()) {
            let values: Vec<f64> = (0..4000).map(|_| scalar.show(scalar.random(random)).parse().unwrap()).collect();
            assert!(values.iter().all(|value| (0.0..1.0).contains(value)), "{scalar}");
            assert!(values.iter().any(|value| *value > 0.99) && values.iter().any(|value| *value < 0.01), "{scalar}");
        }
    }
}
