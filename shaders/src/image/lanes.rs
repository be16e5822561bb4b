//! Runs an image instruction for all lanes of a subgroup; machine code calls this.

use super::descriptor::Descriptor;
use super::linear;
use super::op::{ImageOp, Kind};
use super::run::run as one;

/// A word for each lane.
pub(crate) type LaneWords = [u32; 16];

/// Rows before the operands: active lanes, image numbers, sampler numbers.
const HEAD: usize = ImageOp::FIRST_ARG as usize;

/// Number of rows of an instruction, including four result rows.
pub(crate) fn rows(op: &ImageOp) -> usize {
    HEAD + op.operands().len() + 4
}

/// Runs an instruction for the active lanes. Inactive lanes get the result of the first active lane, so that a uniform
/// result has the same value in every lane; without active lanes the results are 0.
#[inline(always)]
pub(crate) fn run(op: &ImageOp, images: &[Descriptor], rows: &mut [LaneWords]) {
    let [_, image, sampler, rest @ ..] = &mut *rows else { return };
    let Some(count) = rest.len().checked_sub(4) else { return };
    let (args, results) = rest.split_at_mut(count);
    let all = |numbers: &LaneWords| numbers.iter().fold(0, |differ, &number| differ | number ^ numbers[0]) == 0;
    if let (Some(image_of), Some(sampler_of)) = (images.get(image[0] as usize), images.get(sampler[0] as usize))
        && op.kind == Kind::Sample
        && all(image)
        && all(sampler)
        && linear::sample(op, &image_of.view, &sampler_of.sampler, args, results)
    {
        return;
    }
    one_by_one(op, images, rows);
}

/// Runs any instruction lane by lane.
fn one_by_one(op: &ImageOp, images: &[Descriptor], rows: &mut [LaneWords]) {
    const NONE: &Descriptor = &Descriptor::NULL;
    let [active, image, sampler, rest @ ..] = rows else { return };
    let Some((args, results)) = rest.split_at_mut_checked(op.operands().len()) else { return };
    let find = |number: u32| images.get(number as usize).unwrap_or(NONE);
    let mut first = None;
    for lane in (0..16).filter(|&lane| active[lane] != 0) {
        let operands: smallvec::SmallVec<[u32; 16]> = args.iter().map(|row| row[lane]).collect();
        let texel = one(op, find(image[lane]), find(sampler[lane]), &operands);
        for (row, word) in results.iter_mut().zip(texel) {
            row[lane] = word;
        }
        first = first.or(Some(texel));
    }
    if op.kind == Kind::Write {
        return;
    }
    let texel = first.unwrap_or_default();
    for lane in (0..16).filter(|&lane| active[lane] == 0) {
        for (row, word) in results.iter_mut().zip(texel) {
            row[lane] = word;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::guest::GuestSlice;
    use crate::image::{
        Class, Dim, Extent, Filter, Format, Layout, LodOperand, Rows, Sampler, TexelView, Wrap, store_raw,
    };

    /// The vectorized and the scalar code give the same bits, whatever the coordinates.
    #[test]
    fn vectorized_samples_match_single_lanes() {
        let extent = Extent { size: [13, 9, 1], levels: 2, layers: 1 };
        let mut state = 7u64;
        let mut next = || {
            state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
            (state >> 33) as u32
        };
        let mut taken = 0;
        let formats = [
            Format::R8G8B8A8_UNORM,
            Format::B8G8R8A8_UNORM,
            Format::R32_SFLOAT,
            Format::R32G32B32A32_SFLOAT,
            Format::R16G16B16A16_SFLOAT,
            Format::R16G16_SFLOAT,
        ];
        for format in formats {
            let Some(layout) = Layout::new(&extent, format.bytes(), Rows::Spread) else { return };
            let memory = GuestSlice::leak(layout.bytes as usize);
            for at in (0..layout.bytes).step_by(4) {
                let word = match format.channels()[0].bits {
                    32 => (next() as f32).to_bits(),
                    // Finite values only.
                    16 => (next() << 1 ^ next()) & 0xbfff_bfff,
                    _ => next() << 1 ^ next(),
                };
                store_raw(memory, at, 4, [word, 0, 0, 0]);
            }
            let view = TexelView::of_image(memory, format, &extent, &layout, [0, 2], [0, 1], false);
            let wraps =
                [Wrap::Repeat, Wrap::MirroredRepeat, Wrap::ClampToEdge, Wrap::ClampToBorder, Wrap::MirrorClampToEdge];
            for (wrap, case) in wraps.into_iter().flat_map(|wrap| (0..200).map(move |case| (wrap, case))) {
                let (mag, min) = (Filter::Linear, Filter::Linear);
                let sampler = Sampler { mag, min, wrap: [wrap; 3], max_lod: 1.0, ..Sampler::DEFAULT };
                let images = [Descriptor { view, sampler }];
                let op = ImageOp { lod: LodOperand::Lod, ..ImageOp::new(Kind::Sample, Dim::D2, false, Class::Float) };
                let mut all = vec![[0; 16]; rows(&op)];
                all[0] = [u32::MAX; 16];
                let reach = [1.0, 0.2, 3.0, f32::INFINITY][case % 4];
                for row in &mut all[3..5] {
                    *row = std::array::from_fn(|_| (0.5 + reach * ((next() % 2001) as f32 / 1000.0 - 1.0)).to_bits());
                }
                all[5] = [(case as f32 / 100.0).to_bits(); 16];
                let mut alone = all.clone();
                one_by_one(&op, &images, &mut alone);
                let (args, results) = all[3..].split_at_mut(3);
                if linear::sample(&op, &images[0].view, &images[0].sampler, args, results) {
                    taken += 1;
                    assert_eq!(all, alone, "{format:?} {wrap:?} case {case}");
                }
            }
        }
        assert!(taken > 3000, "only {taken} were done at once");
    }

    /// The corrected product with the reciprocal is the quotient.
    #[test]
    fn corrected_products_are_quotients() {
        for bits in 2..=16u32 {
            let max = ((1u32 << bits) - 1) as f32;
            for code in 0..1u32 << bits {
                let (code, reciprocal) = (code as f32, 1.0 / max);
                let near = code * reciprocal;
                let corrected = near.mul_add(-max, code).mul_add(reciprocal, near);
                assert_eq!(corrected.to_bits(), (code / max).to_bits(), "{code} of {bits} bits");
            }
        }
    }
}
