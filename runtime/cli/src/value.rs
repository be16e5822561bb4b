//! Values on the command line: `TYPE:a,b,c`, ranges, random numbers, zeros, files.

use std::path::PathBuf;
use std::str::FromStr;

use crate::random::Random;
use crate::scalar::Scalar;
use crate::slot::Slot;

/// The largest size of a generated list in bytes, so that a typing error does not fill the memory.
const MAX_BYTES: u64 = 1 << 30;

/// The initial contents of a buffer.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Value {
    /// `null`: no buffer, but a null descriptor.
    Null,
    /// `G.B`: the buffer of that binding, once more.
    Same(Slot),
    /// `zeros:BYTES`.
    Zeros(u64),
    /// `TYPE:…`, as bytes.
    Bytes(Vec<u8>),
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
            None if text == "null" => Ok(Self::Null),
            None if text.contains('.') => text.parse().map(Self::Same),
            Some(("zeros", bytes)) => Ok(Self::Zeros(number(bytes, "bytes")?)),
            Some((scalar, list)) => Ok(Self::Bytes(bytes(scalar.parse()?, list)?)),
            None if text.split(',').all(|number| number.parse::<f64>().is_ok()) => {
                Err(format!("{text:?} has no type: use TYPE:a,b,c, such as u32:{text}"))
            }
            None => Err(format!(
                "{text:?} is not a value: use zeros:BYTES, TYPE:a,b,c, TYPE:range:N, TYPE:random:N:SEED, @FILE, null \
                 or a binding"
            )),
        }
    }
}

/// The bytes of a typed list: the text after `TYPE:`.
pub(crate) fn bytes(scalar: Scalar, list: &str) -> Result<Vec<u8>, String> {
    let mut bytes = Vec::new();
    let mut add = |bits: u64| bytes.extend_from_slice(&bits.to_le_bytes()[..scalar.bytes()]);
    if let Some(count) = list.strip_prefix("range:") {
        for number in 0..elements(scalar, count)? {
            add(scalar.number(number)?);
        }
    } else if let Some(rest) = list.strip_prefix("random:") {
        let (count, seed) = rest.split_once(':').ok_or("random needs a number and a seed: random:N:SEED")?;
        let seed = seed.parse().map_err(|_| format!("{seed:?} is not a number (the seed)"))?;
        let mut random = Random::new(seed);
        (0..elements(scalar, count)?).for_each(|_| add(scalar.random(&mut random)));
    } else {
        list.split(',').try_for_each(|text| scalar.parse(text).map(&mut add))?;
    }
    Ok(bytes)
}

fn elements(scalar: Scalar, text: &str) -> Result<u32, String> {
    let (count, max_count) = (number(text, "elements")?, MAX_BYTES / scalar.bytes() as u64);
    match u32::try_from(count) {
        Ok(few) if count <= max_count => Ok(few),
        _ => Err(format!("{count} elements are too many: the most is {max_count}")),
    }
}

fn number(text: &str, what: &str) -> Result<u64, String> {
    count(text).ok_or_else(|| format!("{text:?} is not a number ({what}); 2K is 2048, and M and G are more"))
}

/// A number without sign; K, M and G after it multiply by 2¹⁰, 2²⁰ and 2³⁰.
pub(crate) fn count(text: &str) -> Option<u64> {
    let (digits, shift) = match text.as_bytes().last()? {
        b'K' | b'k' => (&text[..text.len() - 1], 10),
        b'M' => (&text[..text.len() - 1], 20),
        b'G' => (&text[..text.len() - 1], 30),
        _ => (text, 0),
    };
    let number: u64 = if digits.bytes().all(|b| b.is_ascii_digit()) { digits.parse().ok()? } else { return None };
    number.checked_mul(1 << shift)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn given(text: &str) -> Vec<u8> {
        match text.parse() {
            Ok(Value::Bytes(bytes)) => bytes,
            other => panic!("{other:?}"),
        }
    }

    fn words(text: &str) -> Vec<u32> {
        given(text).as_chunks::<4>().0.iter().map(|word| u32::from_le_bytes(*word)).collect()
    }

    #[test]
    fn lists_and_ranges() {
        assert_eq!(words("u32:1, 2,0xff"), [1, 2, 255]);
        assert_eq!(words("i32:-1,3,0x10,0XFFFFFFFF"), [u32::MAX, 3, 16, u32::MAX]);
        assert_eq!(words("f32:1.5,-inf"), [1.5f32.to_bits(), f32::NEG_INFINITY.to_bits()]);
        assert_eq!(words("f32:range:3"), [0.0f32, 1.0, 2.0].map(f32::to_bits));
        assert!(words("u32:range:0").is_empty());
        assert_eq!(given("i8:-1,127,0x80"), [0xff, 0x7f, 0x80]);
        assert_eq!(given("u16:range:3"), [0, 0, 1, 0, 2, 0]);
        assert_eq!(given("f16:1,-2"), [0, 0x3c, 0, 0xc0]);
        assert_eq!(given("f64:0.1"), 0.1f64.to_le_bytes());
        assert_eq!(given("u64:18446744073709551615,0x1"), [u64::MAX.to_le_bytes(), 1u64.to_le_bytes()].concat());
    }

    #[test]
    fn random_is_the_same_for_the_same_seed() {
        assert_eq!(words("f32:random:100:7"), words("f32:random:100:7"));
        assert_ne!(words("f32:random:100:7"), words("f32:random:100:8"));
        assert_eq!(given("u8:random:100:7").len(), 100);
    }

    #[test]
    fn units() {
        assert_eq!("zeros:2K".parse(), Ok(Value::Zeros(2048)));
        assert_eq!("zeros:3M".parse(), Ok(Value::Zeros(3 << 20)));
        assert_eq!("zeros:1G".parse(), Ok(Value::Zeros(1 << 30)));
        assert_eq!(words("u32:range:1K").len(), 1024);
        for text in ["zeros:K", "zeros:2KB", "zeros:+2K", "zeros:1.5K", "zeros:18014398509481984K", "u32:range:-1K"] {
            assert!(text.parse::<Value>().is_err(), "{text}");
        }
    }

    #[test]
    fn refused() {
        let bad =
            ["", "u32", "u9:1", "u32:", "u32:-1", "u32:1,,2", "i32:3000000000", "f32:x", "zeros:", "zeros:-4", "@"];
        let worse = [
            "u32:0x",
            "u32:0x+1",
            "i32:0x100000000",
            "u32:range:",
            "u32:range:99999999999",
            "u64:range:134217729",
            "u8:range:257",
            "i8:range:129",
            "f32:1e39",
            "u32:random:3",
            "u32:random:3:x",
            "u32:random::1",
        ];
        for text in bad.into_iter().chain(worse) {
            assert!(text.parse::<Value>().is_err(), "{text}");
        }
    }
}
