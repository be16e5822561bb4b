//! Linear samples of one level of a 2D image for all lanes at once: the case that counts, without a branch for each lane.
//!
//! The results are those of [`run`](super::run::run), bit for bit: the same operations in the same order, on 16 lanes.
//! Everything here is inlined into functions that are compiled for one instruction set.

use std::sync::atomic::{AtomicU32, Ordering::Relaxed};

use super::address::wrap;
use super::descriptor::{Filter, Sampler, Swizzle, View, Wrap};
use super::format::{Format, Numeric};
use super::lanes::Row;
use super::lod;
use super::op::{Dim, ImageOp, Kind, LodOperand, Offsets};

type Floats = [f32; 16];

/// Texels of 4 bytes that are known here.
#[derive(Clone, Copy)]
enum Texels {
    /// Four channels of 8 bits, normalised; where each is, lowest byte first.
    Bytes([usize; 4]),
    /// One float.
    Float,
}

fn texels(format: Format) -> Option<Texels> {
    if format == Format::R32_SFLOAT || format == Format::D32_SFLOAT {
        return Some(Texels::Float);
    }
    let parts = format.parts();
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

/// Whether all lanes have the same word.
#[inline(always)]
fn same(row: &Row) -> bool {
    row.iter().fold(0, |differ, &word| differ | word ^ row[0]) == 0
}

/// Does the instruction, if it is one of this kind; lanes that are off are done along.
#[inline(always)]
pub(super) fn sample(op: &ImageOp, view: &View, sampler: &Sampler, args: &[Row], results: &mut [Row]) -> bool {
    let flat = op.kind == Kind::Sample && op.dim == Dim::D2 && op.offsets == Offsets::None;
    if !flat || op.arrayed || op.dref || op.min_lod || op.lod != LodOperand::Lod {
        return false;
    }
    let [s, t, lods] = args else { return false };
    let Ok(results): Result<&mut [Row; 4], _> = results.try_into() else { return false };
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
    let Some((x, a)) = span(s, width, sampler.wrap[0]) else { return false };
    let Some((y, b)) = span(t, height, sampler.wrap[1]) else { return false };
    let rows = y.map(|y| row_starts(view, levels.first, &y));
    let corners = [[0, 0], [1, 0], [0, 1], [1, 1]].map(|[right, below]: [usize; 2]| {
        let at: Row = std::array::from_fn(|lane| rows[below][lane].wrapping_add(x[right][lane]));
        load(words, &at)
    });
    let one_minus = |weight: &Floats| -> Floats { std::array::from_fn(|lane| 1.0 - weight[lane]) };
    let (left, above) = (one_minus(&a), one_minus(&b));
    let mix = |corners: [Floats; 4]| -> Row {
        std::array::from_fn(|lane| {
            let top = corners[0][lane] * left[lane] + corners[1][lane] * a[lane];
            let bottom = corners[2][lane] * left[lane] + corners[3][lane] * a[lane];
            (top * above[lane] + bottom * b[lane]).to_bits()
        })
    };
    match texels {
        Texels::Float => {
            results[0] = mix(corners.map(|corner| corner.map(f32::from_bits)));
            results[1] = [0; 16];
            results[2] = [0; 16];
            // Alpha is mixed, too: of 1 and 1.
            results[3] = mix([[1.0; 16]; 4]);
        }
        Texels::Bytes(channels) => {
            for (byte, channel) in channels.into_iter().enumerate() {
                results[channel] = mix(corners.map(|corner| unorm(&corner, 8 * byte as u32)));
            }
        }
    }
    true
}

/// The two texels around each lane's coordinate, and the second one's weight; `None` where one is the border.
#[inline(always)]
fn span(coordinates: &Row, size: u32, mode: Wrap) -> Option<([Row; 2], Floats)> {
    const FAR: f32 = 1_073_741_824.0;
    let last = size.cast_signed() - 1;
    let mut first = [0i32; 16];
    let mut weight = [0f32; 16];
    let mut inside = true;
    for lane in 0..16 {
        let at = f32::from_bits(coordinates[lane]) * size as f32 - 0.5;
        let floor = at.floor();
        let near = floor.abs() < FAR;
        weight[lane] = if near { at - floor } else { 0.0 };
        // NaN is 0, and what is far stays far.
        first[lane] = if near {
            floor as i32
        } else if floor > 0.0 {
            FAR as i32
        } else if floor < 0.0 {
            -FAR as i32
        } else {
            0
        };
        inside &= first[lane] >= 0 && first[lane] < last;
    }
    if inside {
        return Some(([first.map(i32::cast_unsigned), first.map(|i| (i + 1).cast_unsigned())], weight));
    }
    if mode == Wrap::ClampToEdge {
        let held = |i: i32| i.clamp(0, last).cast_unsigned();
        return Some(([first.map(held), first.map(|i| held(i + 1))], weight));
    }
    let mut texels = [[0; 16]; 2];
    for lane in 0..16 {
        texels[0][lane] = wrap(mode, first[lane], size)?;
        texels[1][lane] = wrap(mode, first[lane] + 1, size)?;
    }
    Some((texels, weight))
}

/// The number of each row's first word.
#[inline(always)]
fn row_starts(view: &View, level: u32, rows: &Row) -> Row {
    let at = view.level[level as usize];
    std::array::from_fn(|lane| (at.offset / 4).wrapping_add(rows[lane].wrapping_mul(at.row_pitch / 4)))
}

/// A word for each lane; 0 outside of the memory.
#[inline(always)]
fn load(words: &[AtomicU32], at: &Row) -> Row {
    std::array::from_fn(|lane| words.get(at[lane] as usize).map_or(0, |word| u32::from_le(word.load(Relaxed))))
}

/// Eight bits over 255, rounded once: the quotient's error is found exactly and corrected.
#[inline(always)]
fn unorm(words: &Row, shift: u32) -> Floats {
    const RECIPROCAL: f32 = 1.0 / 255.0;
    std::array::from_fn(|lane| {
        let code = (words[lane] >> shift & 0xff) as i32 as f32;
        let near = code * RECIPROCAL;
        near.mul_add(-255.0, code).mul_add(RECIPROCAL, near)
    })
}
