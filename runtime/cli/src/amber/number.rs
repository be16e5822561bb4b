//! Number literals of scripts, and their conversion to scalars of buffers.

use half::f16;

/// A literal.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) enum Number {
    /// Without a decimal point: an integer with sufficient range.
    Int(i128),
    /// With a decimal point or an exponent, NaN or infinite.
    Real(f64),
}

impl Number {
    /// Reads a literal: decimal, hexadecimal after `0x`, or real.
    pub(crate) fn parse(text: &str) -> Option<Self> {
        if let Some(digits) = text.strip_prefix("0x") {
            return u64::from_str_radix(digits, 16).ok().map(|bits| Self::Int(bits.into()));
        }
        if let Ok(number) = text.parse::<i128>() {
            let fits = (i64::MIN.into()..=u64::MAX.into()).contains(&number);
            return fits.then_some(Self::Int(number));
        }
        text.parse().ok().map(Self::Real)
    }

    /// The nearest `f64`.
    pub(crate) fn real(self) -> f64 {
        match self {
            Self::Int(number) => number as f64,
            Self::Real(number) => number,
        }
    }

    /// The sum, in integers if both are.
    pub(crate) fn plus(self, other: Self) -> Self {
        match (self, other) {
            (Self::Int(a), Self::Int(b)) => Self::Int(a + b),
            (a, b) => Self::Real(a.real() + b.real()),
        }
    }
}

/// The encoding of a scalar.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Kind {
    /// Two's complement.
    Int,
    /// Unsigned.
    Uint,
    /// IEEE 754.
    Float,
}

/// A scalar of a buffer: 8, 16, 32 or 64 bits, floats from 16 on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct AmberScalar {
    /// Its encoding.
    pub(crate) kind: Kind,
    /// Its number of bits.
    pub(crate) bits: u32,
}

impl AmberScalar {
    /// A scalar type by its name in scripts.
    pub(crate) fn named(name: &str) -> Option<Self> {
        let (kind, bits) = match name {
            "int8" => (Kind::Int, 8),
            "int16" => (Kind::Int, 16),
            "int32" => (Kind::Int, 32),
            "int64" => (Kind::Int, 64),
            "uint8" => (Kind::Uint, 8),
            "uint16" => (Kind::Uint, 16),
            "uint32" => (Kind::Uint, 32),
            "uint64" => (Kind::Uint, 64),
            "float16" => (Kind::Float, 16),
            "float" => (Kind::Float, 32),
            "double" => (Kind::Float, 64),
            _ => return None,
        };
        Some(Self { kind, bits })
    }

    /// Size in bytes.
    pub(crate) fn bytes(self) -> u32 {
        self.bits / 8
    }

    /// The bits of a number in this type. For integers, signed and unsigned values of the width are accepted; others
    /// are an error.
    pub(crate) fn encode(self, number: Number) -> Result<u64, String> {
        if self.kind == Kind::Float {
            let real = number.real();
            return Ok(match self.bits {
                16 => f16::from_f64(real).to_bits().into(),
                32 => (real as f32).to_bits().into(),
                _ => real.to_bits(),
            });
        }
        let int = match number {
            Number::Int(int) => int,
            Number::Real(real) if real.fract() == 0.0 && real.abs() < 2f64.powi(64) => real as i128,
            Number::Real(real) => return Err(format!("{real} is not an integer")),
        };
        let (min, max) = (-(1i128 << (self.bits - 1)), (1i128 << self.bits) - 1);
        if !(min..=max).contains(&int) {
            return Err(format!("{int} does not fit {} bits", self.bits));
        }
        Ok(int as u64 & (u64::MAX >> (64 - self.bits)))
    }

    /// The number with these bits.
    pub(crate) fn decode(self, bits: u64) -> Number {
        match (self.kind, self.bits) {
            (Kind::Float, 16) => Number::Real(f16::from_bits(bits as u16).to_f64()),
            (Kind::Float, 32) => Number::Real(f32::from_bits(bits as u32).into()),
            (Kind::Float, _) => Number::Real(f64::from_bits(bits)),
            (Kind::Uint, _) => Number::Int(bits.into()),
            (Kind::Int, width) => Number::Int((((bits << (64 - width)) as i64) >> (64 - width)).into()),
        }
    }

    /// Reads the scalar at an offset; `None` beyond the end.
    pub(crate) fn read(self, bytes: &[u8], at: usize) -> Option<u64> {
        let found = bytes.get(at..at.checked_add(self.bytes() as usize)?)?;
        Some(found.iter().rev().fold(0, |bits, byte| bits << 8 | u64::from(*byte)))
    }

    /// Writes the scalar at an offset; does nothing beyond the end.
    pub(crate) fn write(self, bytes: &mut [u8], at: usize, bits: u64) {
        if let Some(to) = bytes.get_mut(at..at + self.bytes() as usize) {
            to.copy_from_slice(&bits.to_le_bytes()[..self.bytes() as usize]);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn scalar(name: &str) -> AmberScalar {
        AmberScalar::named(name).unwrap_or_else(|| panic!("{name}"))
    }

    #[test]
    fn literals() {
        assert_eq!(Number::parse("-3"), Some(Number::Int(-3)));
        assert_eq!(Number::parse("0xffffffffffffffff"), Some(Number::Int(u64::MAX.into())));
        assert_eq!(Number::parse("-9223372036854775808"), Some(Number::Int(i64::MIN.into())));
        assert_eq!(Number::parse("1e-2"), Some(Number::Real(0.01)));
        assert!(matches!(Number::parse("nan"), Some(Number::Real(x)) if x.is_nan()));
        for wrong in ["", "x", "0xg", "1.2.3", "18446744073709551616"] {
            let real = Number::parse(wrong);
            assert!(!matches!(real, Some(Number::Int(_))), "{wrong}: {real:?}");
        }
    }

    #[test]
    fn integers_fit_as_signed_or_as_unsigned() {
        assert_eq!(scalar("int8").encode(Number::Int(-128)), Ok(0x80));
        assert_eq!(scalar("int8").encode(Number::Int(255)), Ok(0xff));
        assert_eq!(scalar("uint64").encode(Number::Int(-1)), Ok(u64::MAX));
        assert_eq!(scalar("uint16").encode(Number::Real(7.0)), Ok(7));
        assert_eq!(scalar("uint8").encode(Number::Int(256)), Err("256 does not fit 8 bits".into()));
        assert_eq!(scalar("int8").encode(Number::Int(-129)), Err("-129 does not fit 8 bits".into()));
        assert_eq!(scalar("int32").encode(Number::Real(0.5)), Err("0.5 is not an integer".into()));
    }

    #[test]
    fn bits_mean_what_they_were_made_of() {
        for (name, number) in
            [("int8", -5), ("int64", i64::MIN.into()), ("uint16", 65_535), ("uint64", u64::MAX.into())]
        {
            let bits = scalar(name).encode(Number::Int(number)).unwrap_or_default();
            assert_eq!(scalar(name).decode(bits), Number::Int(number), "{name}");
        }
        // 1.5 in each format: sign 0, exponent at its bias, half of the significand set.
        for (name, bits) in [("float16", 0x3e00), ("float", 0x3fc0_0000), ("double", 0x3ff8_0000_0000_0000)] {
            assert_eq!(scalar(name).encode(Number::Real(1.5)), Ok(bits), "{name}");
            assert_eq!(scalar(name).decode(bits), Number::Real(1.5), "{name}");
        }
    }

    #[test]
    fn scalars_stay_inside() {
        let mut bytes = [0; 5];
        scalar("uint32").write(&mut bytes, 1, 0x0403_0201);
        assert_eq!(bytes, [0, 1, 2, 3, 4]);
        scalar("uint32").write(&mut bytes, 2, u64::MAX);
        assert_eq!(bytes, [0, 1, 2, 3, 4]);
        assert_eq!(scalar("uint16").read(&bytes, 3), Some(0x0403));
        assert_eq!(scalar("uint16").read(&bytes, 4), None);
    }
}
