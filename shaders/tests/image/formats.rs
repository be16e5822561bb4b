//! Conversions: every code of every channel, against arithmetic in 64 bits.

use spelter_shaders::image::{ChannelBits, Format, Numeric, decode, encode};

/// What a code means (Vulkan, "Fixed-Point Data Conversion", "Floating-Point Format Conversions"), as a number.
fn meaning(numeric: Numeric, part: ChannelBits, code: u64) -> f64 {
    let bits = u32::from(part.bits);
    let most = 2f64.powi(bits as i32) - 1.0;
    let signed = if code >> (bits - 1) == 1 { code as f64 - 2f64.powi(bits as i32) } else { code as f64 };
    match numeric {
        Numeric::Unorm => code as f64 / most,
        Numeric::Snorm => (signed / (2f64.powi(bits as i32 - 1) - 1.0)).max(-1.0),
        Numeric::Uscaled | Numeric::Uint => code as f64,
        Numeric::Sscaled | Numeric::Sint => signed,
        Numeric::Srgb if part.channel == 3 => code as f64 / most,
        Numeric::Srgb => {
            let c = code as f64 / most;
            if c <= 0.04045 { c / 12.92 } else { ((c + 0.055) / 1.055).powf(2.4) }
        }
        Numeric::Sfloat if bits == 32 => f64::from(f32::from_bits(code as u32)),
        Numeric::Sfloat => small_float(code, 10, true),
        Numeric::Ufloat => small_float(code, bits - 5, false),
        Numeric::SharedExponent => unreachable!(),
    }
}

fn small_float(code: u64, mantissa_bits: u32, signed: bool) -> f64 {
    let mantissa = (code & ((1 << mantissa_bits) - 1)) as f64 / 2f64.powi(mantissa_bits as i32);
    let exponent = code >> mantissa_bits & 31;
    let size = match exponent {
        0 => mantissa * 2f64.powi(-14),
        31 if mantissa == 0.0 => f64::INFINITY,
        31 => f64::NAN,
        _ => (1.0 + mantissa) * 2f64.powi(exponent as i32 - 15),
    };
    if signed && code >> (mantissa_bits + 5) == 1 { -size } else { size }
}

/// A texel with that code in one channel.
fn with(part: ChannelBits, code: u64) -> [u32; 4] {
    let mut raw = [0; 4];
    let at = usize::from(part.shift);
    let wide = u128::from(code) << at;
    for (word, to) in raw.iter_mut().enumerate() {
        *to = (wide >> (32 * word)) as u32;
    }
    raw
}

fn as_number(numeric: Numeric, bits: u32) -> f64 {
    match numeric {
        Numeric::Uint => bits.into(),
        Numeric::Sint => bits.cast_signed().into(),
        _ => f32::from_bits(bits).into(),
    }
}

/// Codes of a channel: all where they are few, else the ends and some between.
fn codes(bits: u8) -> Vec<u64> {
    let most = (1u64 << bits) - 1;
    if bits <= 16 {
        return (0..=most).collect();
    }
    let some = (0..5000u64).map(|n| n.wrapping_mul(0x9e37_79b9_7f4a_7c15) >> (64 - bits));
    [0, 1, most / 2, most / 2 + 1, most - 1, most].into_iter().chain(some).collect()
}

#[test]
fn every_code_decodes_to_its_meaning_and_comes_back() {
    for format in Format::all().filter(|format| format.numeric() != Numeric::SharedExponent) {
        let numeric = format.numeric();
        for &part in format.channels().iter().filter(|part| part.channel < 4) {
            for code in codes(part.bits) {
                let raw = with(part, code);
                let texel = decode(format, raw);
                let (got, exact) = (as_number(numeric, texel[usize::from(part.channel)]), meaning(numeric, part, code));
                let expected =
                    if matches!(numeric, Numeric::Uint | Numeric::Sint) { exact } else { f64::from(exact as f32) };
                let place = || format!("{format:?} {numeric:?} {part:?} code {code:#x}: {got} for {exact}");
                assert!(got == expected || got.is_nan() && exact.is_nan(), "{}", place());
                if exact.is_nan() {
                    continue;
                }
                let back = encode(format, texel);
                // The lowest code of signed normalised channels is the second lowest's value.
                let lowest = numeric == Numeric::Snorm && code == 1 << (part.bits - 1);
                let again = if lowest { with(part, code + 1) } else { raw };
                let mask = with(part, (1u64 << part.bits) - 1);
                let seen = [0, 1, 2, 3].map(|word| back[word] & mask[word]);
                assert_eq!(seen, again, "{} came back as another code", place());
            }
        }
    }
}

#[test]
fn missing_channels_are_zero_and_one() {
    for format in Format::all() {
        let texel = decode(format, [0; 4]);
        let has = |channel| format.channels().iter().any(|part| part.channel == channel);
        let one = if matches!(format.numeric(), Numeric::Uint | Numeric::Sint) { 1 } else { 1f32.to_bits() };
        for channel in 0..4u8 {
            let expected = if channel == 3 && !has(3) { one } else { 0 };
            assert_eq!(texel[usize::from(channel)], expected, "{format:?} channel {channel}");
        }
    }
}

#[test]
fn encoding_takes_the_nearest_code() {
    let numerics = [Numeric::Unorm, Numeric::Snorm, Numeric::Uscaled, Numeric::Sscaled, Numeric::Ufloat];
    for format in Format::all().filter(|format| numerics.contains(&format.numeric())) {
        let numeric = format.numeric();
        for &part in format.channels().iter().filter(|part| part.channel < 4 && part.bits <= 11) {
            let meanings: Vec<f64> = codes(part.bits)
                .into_iter()
                .map(|code| meaning(numeric, part, code))
                .filter(|m| m.is_finite())
                .collect();
            let top = meanings.iter().copied().fold(f64::MIN, f64::max);
            let bottom = meanings.iter().copied().fold(f64::MAX, f64::min);
            for step in 0..2000u32 {
                let value = (bottom - 0.1 + (top - bottom + 0.2) * f64::from(step) / 1999.0) as f32;
                let raw = encode(format, [value.to_bits(); 4]);
                let got = as_number(numeric, decode(format, raw)[usize::from(part.channel)]);
                let held = f64::from(value).clamp(bottom, top);
                let nearest = meanings.iter().map(|m| (m - held).abs()).fold(f64::MAX, f64::min);
                let error = (got - held).abs();
                assert!(error <= nearest + 1e-7 * got.abs().max(1e-9), "{format:?} {part:?}: {value} became {got}");
            }
        }
    }
}

#[test]
fn channels_do_not_touch_each_other() {
    for format in Format::all().filter(|format| format.numeric() == Numeric::Uint && format.vk() != 125) {
        let mut texel: [u32; 4] = [0x0f1e_2d3c, 0x4b5a_6978, 0x8796_a5b4, 0xc3d2_e1f0];
        for part in format.channels() {
            texel[usize::from(part.channel)] &= ((1u64 << part.bits) - 1) as u32;
        }
        let back = decode(format, encode(format, texel));
        for part in format.channels() {
            let channel = usize::from(part.channel);
            assert_eq!(back[channel], texel[channel], "{format:?} {part:?}");
        }
    }
}

/// WGSL, "Texel Formats"; Vulkan leaves them undefined.
#[test]
fn integers_out_of_range_are_clamped() {
    for format in Format::all().filter(|format| matches!(format.numeric(), Numeric::Uint | Numeric::Sint)) {
        for &part in format.channels().iter().filter(|part| part.channel < 4 && part.bits <= 32) {
            let (least, most) = match format.numeric() {
                Numeric::Uint => (0, (1i64 << part.bits) - 1),
                _ => (-1i64 << (part.bits - 1), (1i64 << (part.bits - 1)) - 1),
            };
            for beyond in [least - 1, least, most, most + 1] {
                // What a register of 32 bits can hold.
                let bits = beyond as u32;
                let held = as_number(format.numeric(), bits) as i64;
                let back = decode(format, encode(format, [bits; 4]))[usize::from(part.channel)];
                let expected = held.clamp(least, most) as f64;
                assert_eq!(as_number(format.numeric(), back), expected, "{format:?} {part:?}: {held}");
            }
        }
    }
}

#[test]
fn shared_exponents_are_exact() {
    let format = Format::E5B9G9R9_UFLOAT_PACK32;
    for exponent in 0..32u32 {
        for mantissa in 0..512u32 {
            let raw = mantissa | (511 - mantissa) << 9 | 256 << 18 | exponent << 27;
            let texel = decode(format, [raw, 0, 0, 0]).map(|bits| f64::from(f32::from_bits(bits)));
            let scale = 2f64.powi(exponent as i32 - 24);
            assert_eq!(texel, [f64::from(mantissa) * scale, f64::from(511 - mantissa) * scale, 256.0 * scale, 1.0]);
            let again = decode(format, encode(format, decode(format, [raw, 0, 0, 0])));
            assert_eq!(again.map(|bits| f64::from(f32::from_bits(bits))), texel, "{raw:#x}");
        }
    }
    let odd = [f32::NAN, -1.0, f32::INFINITY, 0.0].map(f32::to_bits);
    let got = decode(format, encode(format, odd)).map(f32::from_bits);
    assert_eq!(got, [0.0, 0.0, 65408.0, 1.0]);
}
