//! Typed 32-bit words in test files: `u32 1,2 0*8 f32 0.5 nan`.
//!
//! A type applies until the next one. `3*16` is sixteen threes, `zeros 64` is 64 bytes, `_` is a word that is not
//! compared, `f32~1e-6` compares with a relative tolerance, a hexadecimal number gives the bits.

/// How a word is written and compared.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Kind {
    /// `u32`.
    U32,
    /// `i32`.
    I32,
    /// `f32`: the same bits, or both NaN.
    F32,
    /// `f32~T`: differs by at most `T` times the expected magnitude.
    Near(f32),
    /// `_`: anything.
    Any,
}

/// One word of the list.
#[derive(Clone, Copy, Debug)]
pub struct Word {
    /// How it is compared.
    pub kind: Kind,
    /// Its bits.
    pub bits: u32,
}

/// Parses a list.
pub fn parse(text: &str) -> Result<Vec<Word>, String> {
    let mut words = Vec::new();
    let mut kind = None;
    let mut parts = text.split([',', ' ', '\t', ':']).filter(|part| !part.is_empty());
    while let Some(part) = parts.next() {
        if part == "zeros" {
            let bytes: usize = parts.next().and_then(|n| n.parse().ok()).ok_or("`zeros` needs a number of bytes")?;
            words.resize(words.len() + bytes / 4, Word { kind: Kind::U32, bits: 0 });
        } else if let Some(named) = kind_of(part)? {
            kind = Some(named);
        } else {
            let kind = kind.ok_or_else(|| format!("`{part}` has no type before it"))?;
            let (value, count) = part.split_once('*').unwrap_or((part, "1"));
            let count: usize = count.parse().map_err(|_| format!("`{count}` is not a count"))?;
            words.resize(words.len() + count, word(kind, value)?);
        }
    }
    Ok(words)
}

fn kind_of(text: &str) -> Result<Option<Kind>, String> {
    Ok(Some(match text {
        "u32" => Kind::U32,
        "i32" => Kind::I32,
        "f32" => Kind::F32,
        _ => match text.strip_prefix("f32~") {
            Some(tolerance) => Kind::Near(tolerance.parse().map_err(|_| format!("`{text}`: no tolerance"))?),
            None => return Ok(None),
        },
    }))
}

fn word(kind: Kind, text: &str) -> Result<Word, String> {
    if text == "_" {
        return Ok(Word { kind: Kind::Any, bits: 0 });
    }
    let bits = match text.strip_prefix("0x") {
        Some(digits) => u32::from_str_radix(digits, 16).ok(),
        None => match kind {
            Kind::U32 => text.parse().ok(),
            Kind::I32 => text.parse().ok().map(i32::cast_unsigned),
            Kind::F32 | Kind::Near(_) => text.parse().ok().map(f32::to_bits),
            Kind::Any => None,
        },
    };
    bits.map(|bits| Word { kind, bits }).ok_or_else(|| format!("`{text}` is not a {}", kind.name()))
}

impl Kind {
    fn name(self) -> String {
        match self {
            Self::U32 => "u32".into(),
            Self::I32 => "i32".into(),
            Self::F32 => "f32".into(),
            Self::Near(tolerance) => format!("f32~{tolerance:e}"),
            Self::Any => "_".into(),
        }
    }

    /// A word of this kind in the syntax of lists.
    pub fn show(self, bits: u32) -> String {
        match self {
            Self::U32 => bits.to_string(),
            Self::I32 => bits.cast_signed().to_string(),
            Self::F32 | Self::Near(_) => match f32::from_bits(bits) {
                f if f.is_nan() => "nan".into(),
                f if f != 0.0 && !(1e-5..1e9).contains(&f.abs()) => format!("{f:e}"),
                f => f.to_string(),
            },
            Self::Any => "_".into(),
        }
    }
}

impl Word {
    /// Whether `got` satisfies the expectation.
    pub fn accepts(self, got: u32) -> bool {
        let (want, have) = (f32::from_bits(self.bits), f32::from_bits(got));
        match self.kind {
            Kind::Any => true,
            Kind::U32 | Kind::I32 => self.bits == got,
            Kind::F32 => self.bits == got || (want.is_nan() && have.is_nan()),
            Kind::Near(tolerance) => {
                want == have || (want.is_nan() && have.is_nan()) || (want - have).abs() <= tolerance * want.abs()
            }
        }
    }
}

/// Writes a list that [`parse`] reads: the words of `like` with the bits of `bits`.
pub fn print(like: &[Word], bits: &[u32]) -> String {
    let mut text = String::new();
    let mut last = None;
    for (word, bits) in like.iter().zip(bits) {
        if word.kind != Kind::Any && last.replace(word.kind) != Some(word.kind) {
            text += &format!("{}{} ", if text.is_empty() { "" } else { " " }, word.kind.name());
        } else if !text.is_empty() {
            text.push(',');
        }
        text += &word.kind.show(*bits);
    }
    text
}
