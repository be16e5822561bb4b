//! Sweeps: lists of numbers, the points that they span, and push constants that follow a point.

use std::str::FromStr;

use crate::scalar::Scalar;
use crate::structured::Push;

/// Values of one sweep, at most.
const MAX_VALUES: usize = 256;

/// The numbers of a sweep, in the order given.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Sweep(pub(crate) Vec<u64>);

impl Sweep {
    /// `--bytes`: sizes of at least a byte.
    pub(crate) fn bytes(text: &str) -> Result<Self, String> {
        sweep(text, 4, size)
    }

    /// `--workers`.
    pub(crate) fn workers(text: &str) -> Result<Self, String> {
        let sweep = sweep(text, 2, size)?;
        match sweep.0.iter().find(|workers| !(1..=1024).contains(*workers)) {
            Some(workers) => Err(format!("{workers} is not a number of workers from 1 to 1024")),
            None => Ok(sweep),
        }
    }
}

/// A list, or a geometric sequence whose factor is `factor` unless it is given.
fn sweep(text: &str, factor: u64, number: fn(&str) -> Result<u64, String>) -> Result<Sweep, String> {
    let Some((first, rest)) = text.split_once("..") else {
        let values: Vec<u64> = text.split(',').map(number).collect::<Result<_, _>>()?;
        return if values.len() <= MAX_VALUES { Ok(Sweep(values)) } else { Err(too_many()) };
    };
    let (last, factor) = match rest.split_once('*') {
        Some((last, factor)) => (last, number(factor)?),
        None => (rest, factor),
    };
    let (first, last) = (number(first)?, number(last)?);
    if factor < 2 {
        return Err(format!("the factor is {factor}: at least 2"));
    }
    if first > last {
        return Err(format!("{text:?} ends before it starts"));
    }
    let mut values: Vec<u64> = std::iter::successors(Some(first), |value| value.checked_mul(factor))
        .take_while(|value| *value < last)
        .collect();
    values.push(last);
    if values.len() <= MAX_VALUES { Ok(Sweep(values)) } else { Err(too_many()) }
}

fn too_many() -> String {
    format!("more than {MAX_VALUES} values")
}

/// A positive number, which may end in K, M or G.
fn size(text: &str) -> Result<u64, String> {
    let wrong = || format!("{text:?} is not a positive number: use 4096 or 4K");
    let text = text.trim();
    let (digits, shift) = match text.char_indices().next_back() {
        Some((at, 'K' | 'k')) => (&text[..at], 10),
        Some((at, 'M' | 'm')) => (&text[..at], 20),
        Some((at, 'G' | 'g')) => (&text[..at], 30),
        _ => (text, 0),
    };
    let is_number = !digits.is_empty() && digits.bytes().all(|byte| byte.is_ascii_digit());
    let number: u64 = if is_number { digits.parse().map_err(|_| wrong())? } else { return Err(wrong()) };
    number.checked_mul(1 << shift).filter(|number| *number > 0).ok_or_else(wrong)
}

/// `--groups`: workgroups in each direction, with a sweep in X.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct GroupSweep(pub(crate) Vec<[u32; 3]>);

impl FromStr for GroupSweep {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let (x, rest) = text.split_once(',').map_or((text, None), |(x, rest)| (x, Some(rest)));
        let mut others = [1u32; 2];
        for (at, part) in rest.into_iter().flat_map(|rest| rest.split(',')).enumerate() {
            *others.get_mut(at).ok_or("more than three numbers")? = groups(size(part)?)?;
        }
        let [y, z] = others;
        let all: Result<_, String> = sweep(x, 4, size)?.0.into_iter().map(|x| Ok([groups(x)?, y, z])).collect();
        all.map(Self)
    }
}

fn groups(number: u64) -> Result<u32, String> {
    u32::try_from(number).map_err(|_| format!("{number} is not a number of workgroups"))
}

/// `--push`: bytes, or a number that depends on the point.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum PushPart {
    /// `TYPE:a,b,c`.
    Bytes(Vec<u8>),
    /// `u32:invocations`.
    Invocations(Scalar),
    /// `u32:width`.
    Width(Scalar),
}

impl FromStr for PushPart {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let (scalar, what) = text.split_once(':').unwrap_or((text, ""));
        match what {
            "invocations" => Ok(Self::Invocations(scalar.parse()?)),
            "width" => Ok(Self::Width(scalar.parse()?)),
            _ => Ok(Self::Bytes(text.parse::<Push>()?.0)),
        }
    }
}

/// The push constants of a point with these invocations in each direction.
pub(crate) fn push_bytes(parts: &[PushPart], invocations: [u64; 3]) -> Result<Vec<u8>, String> {
    let mut bytes = Vec::new();
    for part in parts {
        let (scalar, number) = match part {
            PushPart::Bytes(own) => {
                bytes.extend_from_slice(own);
                continue;
            }
            PushPart::Invocations(scalar) => (*scalar, invocations.iter().product()),
            PushPart::Width(scalar) => (*scalar, invocations[0]),
        };
        let number = u32::try_from(number).map_err(|_| format!("{number} invocations are too many for --push"))?;
        bytes.extend_from_slice(&scalar.number(number)?.to_le_bytes()[..scalar.bytes()]);
    }
    Ok(bytes)
}

/// `--baseline`: a name that is a file name everywhere.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct BaselineName(pub(crate) String);

impl FromStr for BaselineName {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let good = |c: char| c.is_ascii_alphanumeric() || "-_.".contains(c);
        if text.is_empty() || text.starts_with('.') || text.len() > 100 || !text.chars().all(good) {
            return Err("a name has letters, digits, -, _ and ., and does not begin with .".to_owned());
        }
        Ok(Self(text.to_owned()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sweeps_are_lists_or_geometric() {
        let of = |text| Sweep::bytes(text).map(|sweep| sweep.0);
        assert_eq!(of("1,2,8"), Ok(vec![1, 2, 8]));
        assert_eq!(of("1..64"), Ok(vec![1, 4, 16, 64]));
        assert_eq!(of("1..10*3"), Ok(vec![1, 3, 9, 10]));
        assert_eq!(of("4K..1M*16"), Ok(vec![4096, 65536, 1 << 20]));
        assert_eq!(of("7"), Ok(vec![7]));
        for text in
            ["", "0", "1,", "-1", "1..", "..4", "8..4", "1..8*1", "1..8*", "1K1", "K", "99999999999999999999", "+1"]
        {
            assert!(of(text).is_err(), "{text}");
        }
        assert_eq!(Sweep::workers("1..8").map(|sweep| sweep.0), Ok(vec![1, 2, 4, 8]));
        assert!(Sweep::workers("1,2000").is_err());
    }

    #[test]
    fn groups_sweep_in_x() {
        let of = |text: &str| text.parse::<GroupSweep>().map(|sweep| sweep.0);
        assert_eq!(of("1..16"), Ok(vec![[1, 1, 1], [4, 1, 1], [16, 1, 1]]));
        assert_eq!(of("2..8*2,3"), Ok(vec![[2, 3, 1], [4, 3, 1], [8, 3, 1]]));
        assert_eq!(of("5,6,7"), Ok(vec![[5, 6, 7]]));
        for text in ["", "1,2,3,4", "1,0", "1,2..4", "5000000000", "x"] {
            assert!(of(text).is_err(), "{text}");
        }
    }

    #[test]
    fn push_constants_follow_the_point() {
        let parts: Vec<PushPart> = ["f32:1.5", "u32:invocations", "u32:width"].map(|text| text.parse().unwrap()).into();
        let words = [1.5f32.to_bits(), 96, 32].map(u32::to_le_bytes).concat();
        assert_eq!(push_bytes(&parts, [32, 3, 1]), Ok(words));
        assert!(push_bytes(&parts, [1 << 32, 1, 1]).unwrap_err().contains("too many"));
        assert!("u32".parse::<PushPart>().is_err() && "x:invocations".parse::<PushPart>().is_err());
    }

    #[test]
    fn names_are_file_names() {
        for name in ["before", "v1.2-x_y"] {
            assert!(name.parse::<BaselineName>().is_ok());
        }
        for name in ["", "../x", "a/b", ".hidden", "a b", "é"] {
            assert!(name.parse::<BaselineName>().is_err(), "{name}");
        }
    }
}
