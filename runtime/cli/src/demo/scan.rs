//! Inclusive prefix sums of a million numbers over several workgroups: scan blocks, scan their totals, add.

use spelter::Context;

use super::check;
use super::stage::{Done, Stage};
use crate::failure::Failure;
use crate::random::Random;

/// The number of elements that a workgroup scans.
const BLOCK: usize = 1024;
/// Not a whole number of blocks, and two levels of them.
const COUNT: usize = BLOCK * BLOCK - 77;

pub(super) fn run(stage: &Stage<'_>) -> Result<Done, Failure> {
    let mut random = Random::new(3);
    let elements: Vec<u32> = (0..COUNT).map(|_| random.word() >> 16).collect();
    let text = include_str!("../../../../shaders/library/scan.wgsl");
    let scan = stage.context.program(text).entry("scan").build()?;
    let add = stage.context.program(text).entry("add").build()?;
    let blocks = COUNT.div_ceil(BLOCK);
    let (input, output) = (stage.buffer(&elements)?, stage.words(COUNT)?);
    let (totals, sums, total) = (stage.words(blocks)?, stage.words(blocks)?, stage.words(1)?);

    let record = |context: &Context| {
        let (count, blocks) = (COUNT as u32, blocks as u32);
        let dispatch = context.dispatch(&scan).bind(0, 0, &input).bind(0, 1, &output).bind(0, 2, &totals);
        dispatch.push(&count).groups([blocks, 1, 1])?;
        let dispatch = context.dispatch(&scan).bind(0, 0, &totals).bind(0, 1, &sums).bind(0, 2, &total);
        dispatch.push(&blocks).groups([1, 1, 1])?;
        let dispatch = context.dispatch(&add).bind(0, 1, &output).bind(0, 2, &sums);
        dispatch.push(&count).groups([blocks, 1, 1])
    };
    stage.run(record)?;

    let mut sum = 0u32;
    let want: Vec<u32> = elements
        .iter()
        .map(|&e| {
            sum = sum.wrapping_add(e);
            sum
        })
        .collect();
    check::equal(&stage.context.read::<u32>(&output)?, &want)?;
    check::equal(&stage.context.read::<u32>(&total)?, &[sum])?;
    Ok(stage.measured(record, COUNT as f64 / 1e6, "M elements/s")?.note("1 M elements"))
}
