//! Texels to numbers, derived from the names of Vulkan's formats only: these say each channel's position, width and
//! meaning (Vulkan, "Format Definition" and "Conversion Formulas").

/// A channel's bits in a texel, whose first byte is the lowest.
#[derive(Clone, Copy, Debug)]
struct Channel {
    letter: char,
    bits: u32,
    shift: u32,
}

/// A format.
#[derive(Clone, Debug)]
pub(crate) struct Format {
    channels: Vec<Channel>,
    numeric: String,
    pub(crate) bytes: usize,
}

/// Values of missing channels: green and blue 0, alpha 1.
const MISSING: [f64; 4] = [0.0, 0.0, 0.0, 1.0];

impl Format {
    /// The format of that name without `VK_FORMAT_`; `None` for compressed and multi-planar ones.
    pub(crate) fn new(name: &str) -> Option<Self> {
        let mut parts: Vec<&str> = name.split('_').collect();
        let pack = parts.iter().position(|part| part.contains("PACK")).map(|at| parts.remove(at));
        parts.retain(|part| !matches!(*part, "EXT" | "KHR" | "ARM" | "IMG"));
        let numeric = parts.pop()?.to_owned();
        let mut channels = Vec::new();
        for part in parts {
            let mut rest = part;
            while let Some(letter) = rest.chars().next() {
                let digits = rest[1..].find(|c: char| !c.is_ascii_digit()).map_or(rest.len(), |at| at + 1);
                channels.push(Channel { letter, bits: rest[1..digits].parse().ok()?, shift: 0 });
                rest = &rest[digits..];
            }
        }
        let all: u32 = channels.iter().map(|channel| channel.bits).sum();
        // Packed words have their first channel on top; in arrays the first byte is the first channel's.
        let word = match pack.map(|pack| pack.split_once("PACK")) {
            Some(Some((_, bits))) => Some(bits.parse::<u32>().ok()?),
            _ => None,
        };
        let mut at = 0;
        for channel in &mut channels {
            channel.shift = match word {
                None => at,
                Some(word) => at / word * word + (word - at % word).checked_sub(channel.bits)?,
            };
            at += channel.bits;
        }
        Some(Self { channels, numeric, bytes: all as usize / 8 })
    }

    /// Whether the format has a channel, 0 to 3. Depth is red.
    pub(crate) fn has(&self, number: usize) -> bool {
        self.channels.iter().any(|channel| place(channel.letter) == Some(number))
    }

    /// Bits of a channel, 0 if it has none.
    pub(crate) fn bits(&self, number: usize) -> u32 {
        self.channels.iter().find(|channel| place(channel.letter) == Some(number)).map_or(0, |channel| channel.bits)
    }

    /// The numeric format: `UNORM` and the like.
    pub(crate) fn numeric(&self) -> &str {
        &self.numeric
    }

    /// The numbers of a texel.
    pub(crate) fn decode(&self, bytes: &[u8]) -> [f64; 4] {
        let raw = bytes.iter().rev().fold(0u128, |raw, &byte| raw << 8 | u128::from(byte));
        let field = |channel: &Channel| (raw >> channel.shift) as u64 & ((1 << channel.bits) - 1);
        let shared = self.channels.iter().find(|channel| channel.letter == 'E').map(field);
        let mut texel = MISSING;
        for channel in &self.channels {
            let Some(number) = place(channel.letter) else { continue };
            let value = field(channel);
            texel[number] = match shared {
                Some(exponent) => value as f64 * f64::from(exponent as i32 - 15 - 9).exp2(),
                None => self.number(value, channel.bits, number),
            };
        }
        texel
    }

    fn number(&self, value: u64, bits: u32, number: usize) -> f64 {
        let signed = (value << (64 - bits)).cast_signed() >> (64 - bits);
        let most = ((1u64 << bits) - 1) as f64;
        match &self.numeric[..] {
            "UNORM" => value as f64 / most,
            "SNORM" => (signed as f64 / ((1u64 << (bits - 1)) - 1) as f64).max(-1.0),
            "USCALED" | "UINT" => value as f64,
            "SSCALED" | "SINT" => signed as f64,
            "SRGB" if number < 3 => match value as f64 / most {
                code if code <= 0.04045 => code / 12.92,
                code => ((code + 0.055) / 1.055).powf(2.4),
            },
            "SRGB" => value as f64 / most,
            "UFLOAT" => small_float(value, bits - 5),
            "SFLOAT" if bits == 16 => {
                let number = small_float(value & 0x7fff, 10);
                if value >> 15 == 1 { -number } else { number }
            }
            _ => f64::from(f32::from_bits(value as u32)),
        }
    }
}

/// The index of a channel of that name; X is unused. Depth and stencil are red.
fn place(letter: char) -> Option<usize> {
    "RGBA".find(letter).or(matches!(letter, 'D' | 'S').then_some(0))
}

/// An unsigned float with 5 bits of exponent and `mantissa` bits of mantissa.
fn small_float(value: u64, mantissa: u32) -> f64 {
    let part = (value & ((1 << mantissa) - 1)) as f64 / f64::from(mantissa).exp2();
    match value >> mantissa {
        0 => part * (-14.0f64).exp2(),
        31 if part == 0.0 => f64::INFINITY,
        31 => f64::NAN,
        exponent => (1.0 + part) * (exponent as f64 - 15.0).exp2(),
    }
}

#[test]
fn names_say_where_channels_are() {
    let texel = |name: &str, bytes: &[u8]| Format::new(name).expect("it is one").decode(bytes);
    assert_eq!(texel("R5G6B5_UNORM_PACK16", &[0x1f, 0xf8]), [1.0, 0.0, 1.0, 1.0]);
    assert_eq!(texel("B8G8R8A8_UNORM", &[255, 0, 0, 255]), [0.0, 0.0, 1.0, 1.0]);
    assert_eq!(texel("A2B10G10R10_UINT_PACK32", &[0xff, 0x03, 0, 0x40]), [1023.0, 0.0, 0.0, 1.0]);
    assert_eq!(texel("R16G16_SFLOAT", &[0, 0x3c, 0, 0xc0]), [1.0, -2.0, 0.0, 1.0]);
    assert_eq!(texel("X8_D24_UNORM_PACK32", &[255, 255, 255, 7]), [1.0, 0.0, 0.0, 1.0]);
    assert_eq!(texel("E5B9G9R9_UFLOAT_PACK32", &[1, 0, 0, 0xc0]), [1.0, 0.0, 0.0, 1.0]);
}
