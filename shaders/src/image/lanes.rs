//! An image instruction for all lanes of a subgroup: what machine code calls.

use super::descriptor::Descriptor;
use super::op::{ImageOp, Kind};
use super::run::run as one;

/// Words of a row: one for each lane.
pub(crate) type Row = [u32; 16];

/// Rows before the operands: lanes that are on, numbers of images, numbers of samplers.
const HEAD: usize = ImageOp::FIRST_ARG as usize;

/// Rows of an instruction, its four results included.
pub(crate) fn rows(op: &ImageOp) -> usize {
    HEAD + op.params().len() + 4
}

/// Runs an instruction for the lanes that are on. Lanes that are off get what the first of the others gets, so that what all
/// lanes have in common is in each of them; nothing if no lane is on.
pub(crate) fn run(op: &ImageOp, images: &[Descriptor], rows: &mut [Row]) {
    const NONE: &Descriptor = &Descriptor::NULL;
    let [on, image, sampler, rest @ ..] = rows else { return };
    let Some((args, results)) = rest.split_at_mut_checked(op.params().len()) else { return };
    let find = |number: u32| images.get(number as usize).unwrap_or(NONE);
    let mut first = None;
    for lane in (0..16).filter(|&lane| on[lane] != 0) {
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
    for lane in (0..16).filter(|&lane| on[lane] == 0) {
        for (row, word) in results.iter_mut().zip(texel) {
            row[lane] = word;
        }
    }
}
