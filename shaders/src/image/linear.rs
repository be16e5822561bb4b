//! Linear samples of one level of a 2D image, vectorized over all lanes: the most frequent case, without branches per
//! lane.
//!
//! The results equal those of [`run`](super::run::run) bit for bit: the same operations in the same order on 16 lanes.
//! Everything is inlined into functions compiled for one instruction set. Rows are filled by plain loops, which are
//! auto-vectorized; closures over arrays would be separate functions, compiled without the instruction set.

use std::sync::atomic::{AtomicU32, Ordering::Relaxed};

use super::address::{PLACES, wrap};
use super::bytes;
use super::descriptor::{Filter, Sampler, Swizzle, TexelView, Wrap};
use super::direct::MAX_DISTANCE;
use super::filter::mixed;
use super::format::{ChannelBits, Format, Numeric};
use super::lanes::LaneWords;
use super::lod;
use super::op::{Dim, ImageOp, Kind, LodOperand, Offsets};

type LaneFloats = [f32; 16];
type LaneInts = [i32; 16];

/// A row: the value of an expression in each lane.
macro_rules! lanes {
    (|$lane:ident| $value:expr) => {{
        let mut row = [Default::default(); 16];
        for $lane in 0..16 {
            row[$lane] = $value;
        }
        row
    }};
}

/// Texel formats that this module samples: whole 32-bit words.
#[derive(Clone, Copy)]
enum Texels {
    /// Four normalised 8-bit channels; the channel of each byte, lowest byte first.
    Bytes([usize; 4]),
    /// 16- or 32-bit floats.
    Floats,
}

fn texels(format: Format) -> Option<Texels> {
    let parts = format.channels();
    let is_float = |part: &ChannelBits| part.channel < 4 && (part.bits == 16 || part.bits == 32);
    if format.numeric() == Numeric::Sfloat && format.bytes().is_multiple_of(4) && parts.iter().all(is_float) {
        return Some(Texels::Floats);
    }
    if format.bytes() != 4 || format.numeric() != Numeric::Unorm || parts.len() != 4 {
        return None;
    }
    let mut channels = [0; 4];
    for (at, part) in parts.iter().enumerate() {
        if part.bits != 8 {
            return None;
        }
        channels[at] = part.channel.into();
    }
    Some(Texels::Bytes(channels))
}

/// Whether any lane is non-zero. Halves are combined with OR: otherwise the compiler would test lanes one by one.
#[inline(always)]
fn any(row: &LaneWords) -> bool {
    let mut eight = [0; 8];
    for (lane, word) in eight.iter_mut().enumerate() {
        *word = row[lane] | row[lane + 8];
    }
    let mut four = [0; 4];
    for (lane, word) in four.iter_mut().enumerate() {
        *word = eight[lane] | eight[lane + 4];
    }
    (four[0] | four[2]) | (four[1] | four[3]) != 0
}

/// Whether all lanes are equal.
#[inline(always)]
fn same(row: &LaneWords) -> bool {
    let differ: LaneWords = lanes!(|lane| row[lane] ^ row[0]);
    !any(&differ)
}

/// Samples if it handles the instruction; returns false otherwise. Inactive lanes are computed, too.
#[inline(always)]
pub(super) fn sample(
    op: &ImageOp,
    view: &TexelView,
    sampler: &Sampler,
    args: &[LaneWords],
    results: &mut [LaneWords],
) -> bool {
    let flat = op.kind == Kind::Sample && op.dim == Dim::D2 && op.offsets == Offsets::None;
    if !flat || op.arrayed || op.dref || op.min_lod || op.lod != LodOperand::Lod {
        return false;
    }
    let [s, t, lods] = args else { return false };
    let Ok(results): Result<&mut [LaneWords; 4], _> = results.try_into() else { return false };
    let Some(texels) = texels(view.format) else { return false };
    if view.layers == 0 || view.swizzle != Swizzle::IDENTITY || !same(lods) {
        return false;
    }
    let levels = lod::select(sampler, f32::from_bits(lods[0]), f32::NEG_INFINITY, view.levels);
    if levels.filter != Filter::Linear || levels.second.is_some() || sampler.unnormalized {
        return false;
    }
    let Some(words) = view.memory.aligned_words() else { return false };
    let [width, height, _] = view.level_size(levels.first);
    let middle = if matches!(texels, Texels::Floats) { PLACES / 2.0 } else { bytes::MIDDLE };
    let Some(([left, right], a)) = span(s, width, middle, sampler.wrap[0]) else { return false };
    let Some(([above, below], b)) = span(t, height, middle, sampler.wrap[1]) else { return false };
    let [above, below] = [row_starts(view, levels.first, &above), row_starts(view, levels.first, &below)];
    let size = view.format.bytes() / 4;
    let [left, right] = [times(&left, size), times(&right, size)];
    let places = [sums(&above, &left), sums(&above, &right), sums(&below, &left), sums(&below, &right)];
    match texels {
        Texels::Floats => {
            let a: LaneFloats = lanes!(|lane| a[lane] as f32 * (1.0 / PLACES));
            let b: LaneFloats = lanes!(|lane| b[lane] as f32 * (1.0 / PLACES));
            // The mean of 1 and 1 is 1 for any weight.
            *results = [[0; 16], [0; 16], [0; 16], [1f32.to_bits(); 16]];
            for word in 0..size {
                let corners = corners(words, &places, word);
                for part in view.format.channels().iter().filter(|part| u32::from(part.shift) / 32 == word) {
                    let [c0, c1, c2, c3] = [
                        floats(&corners[0], part),
                        floats(&corners[1], part),
                        floats(&corners[2], part),
                        floats(&corners[3], part),
                    ];
                    let top: LaneFloats = lanes!(|lane| mixed(c0[lane], c1[lane], a[lane]));
                    let bottom: LaneFloats = lanes!(|lane| mixed(c2[lane], c3[lane], a[lane]));
                    results[usize::from(part.channel)] =
                        lanes!(|lane| mixed(top[lane], bottom[lane], b[lane]).to_bits());
                }
            }
        }
        Texels::Bytes(channels) => {
            let [c0, c1, c2, c3] = &corners(words, &places, 0);
            let steps: LaneInts = lanes!(|lane| bytes::step(a[lane] as u16));
            let shares: LaneInts = lanes!(|lane| bytes::share(b[lane] as u16));
            for (byte, channel) in channels.into_iter().enumerate() {
                let shift = 8 * byte as u32;
                let [c0, c1, c2, c3] = [code(c0, shift), code(c1, shift), code(c2, shift), code(c3, shift)];
                let top: LaneInts = lanes!(|lane| bytes::along_row(c0[lane], c1[lane], steps[lane]));
                let bottom: LaneInts = lanes!(|lane| bytes::along_row(c2[lane], c3[lane], steps[lane]));
                let mean: LaneInts = lanes!(|lane| bytes::between(top[lane], bottom[lane], shares[lane]));
                results[channel] = lanes!(|lane| bytes::decode(mean[lane]).to_bits());
            }
        }
    }
    true
}

/// One word of each of the four texels.
#[inline(always)]
fn corners(words: &[AtomicU32], [p0, p1, p2, p3]: &[LaneWords; 4], word: u32) -> [LaneWords; 4] {
    let word = [word; 16];
    [
        load(words, &sums(p0, &word)),
        load(words, &sums(p1, &word)),
        load(words, &sums(p2, &word)),
        load(words, &sums(p3, &word)),
    ]
}

/// The values of a float channel.
#[inline(always)]
fn floats(row: &LaneWords, part: &ChannelBits) -> LaneFloats {
    if part.bits == 32 {
        return lanes!(|lane| f32::from_bits(row[lane]));
    }
    let shift = part.shift % 32;
    lanes!(|lane| half(row[lane] >> shift & 0xffff))
}

/// The float of a half's bits: the exponent is rebiased by 112; infinities and NaN get the largest exponent.
#[inline(always)]
fn half(bits: u32) -> f32 {
    const GROWTH: f32 = f32::from_bits((127 + 112) << 23);
    let size = (bits & 0x7fff) << 13;
    let finite = (f32::from_bits(size) * GROWTH).to_bits();
    let size = if bits & 0x7c00 == 0x7c00 { size | f32::INFINITY.to_bits() } else { finite };
    f32::from_bits(size | (bits & 0x8000) << 16)
}

#[inline(always)]
fn times(row: &LaneWords, by: u32) -> LaneWords {
    lanes!(|lane| row[lane].wrapping_mul(by))
}

#[inline(always)]
fn sums(a: &LaneWords, b: &LaneWords) -> LaneWords {
    lanes!(|lane| a[lane].wrapping_add(b[lane]))
}

/// The two texels around each lane's coordinate, and the distance from the first, in [`PLACES`]; `None` if any lane
/// needs the border or a far coordinate.
#[inline(always)]
fn span(coordinates: &LaneWords, size: u32, middle: f32, mode: Wrap) -> Option<([LaneWords; 2], LaneWords)> {
    let (last, scale) = (size.cast_signed() - 1, size as f32 * PLACES);
    let at: LaneFloats = lanes!(|lane| f32::from_bits(coordinates[lane]).mul_add(scale, -middle).floor());
    // Lanes with far or NaN coordinates need the scalar code.
    let far: LaneWords =
        lanes!(|lane| u32::from(at[lane].abs() >= MAX_DISTANCE as f32 * PLACES) | u32::from(at[lane].is_nan()));
    if any(&far) {
        return None;
    }
    let at: LaneInts = lanes!(|lane| at[lane] as i32);
    let part: LaneWords = lanes!(|lane| at[lane].cast_unsigned() & 0xffff);
    let first: LaneInts = lanes!(|lane| at[lane] >> 16);
    let outside: LaneWords = lanes!(|lane| u32::from(first[lane] < 0) | u32::from(first[lane] >= last));
    if !any(&outside) {
        let texels = [lanes!(|lane| first[lane].cast_unsigned()), lanes!(|lane| (first[lane] + 1).cast_unsigned())];
        return Some((texels, part));
    }
    if mode == Wrap::ClampToEdge {
        let texels = [
            lanes!(|lane| first[lane].clamp(0, last).cast_unsigned()),
            lanes!(|lane| (first[lane] + 1).clamp(0, last).cast_unsigned()),
        ];
        return Some((texels, part));
    }
    let mut texels = [[0; 16]; 2];
    for lane in 0..16 {
        texels[0][lane] = wrap(mode, first[lane], size)?;
        texels[1][lane] = wrap(mode, first[lane] + 1, size)?;
    }
    Some((texels, part))
}

/// Word index of the start of each row.
#[inline(always)]
fn row_starts(view: &TexelView, level: u32, rows: &LaneWords) -> LaneWords {
    let at = view.level[level as usize];
    let (first, pitch) = (at.offset / 4, at.row_pitch / 4);
    lanes!(|lane| first.wrapping_add(rows[lane].wrapping_mul(pitch)))
}

/// Lane numbers.
const LANES: LaneWords = [0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15];

/// Loads a word for each lane; 0 outside the memory.
#[inline(always)]
fn load(words: &[AtomicU32], at: &LaneWords) -> LaneWords {
    let mut row = [0; 16];
    let scattered: LaneWords = lanes!(|lane| at[lane] ^ at[0].wrapping_add(LANES[lane]));
    let start = at[0] as usize;
    // Lanes mostly read consecutive texels.
    if let (false, Some(run)) = (any(&scattered), words.get(start..start + 16)) {
        for (word, from) in row.iter_mut().zip(run) {
            *word = u32::from_le(from.load(Relaxed));
        }
        return row;
    }
    for (word, &at) in row.iter_mut().zip(at) {
        if let Some(from) = words.get(at as usize) {
            *word = u32::from_le(from.load(Relaxed));
        }
    }
    row
}

/// Eight bits of a word.
#[inline(always)]
fn code(words: &LaneWords, shift: u32) -> LaneInts {
    lanes!(|lane| (words[lane] >> shift & 0xff).cast_signed())
}
