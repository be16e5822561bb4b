//! The sum of four million numbers by a tree in shared memory, dispatched again on its results until one is left.

use spelter::Context;

use super::check;
use super::stage::{Done, Stage};
use crate::failure::Failure;
use crate::random::Random;

const COUNT: usize = 1 << 22;
/// The number of elements that a workgroup sums.
const BLOCK: usize = 2048;

pub(super) fn run(stage: &Stage<'_>) -> Result<Done, Failure> {
    let mut random = Random::new(2);
    let elements: Vec<u32> = (0..COUNT).map(|_| random.word()).collect();
    let program = stage.context.program_wgsl(include_str!("../../../../shaders/library/reduce.wgsl"))?;
    let input = stage.buffer(&elements)?;
    let mut levels = vec![(COUNT, input)];
    while let Some(&(count, _)) = levels.last()
        && count > 1
    {
        let sums = count.div_ceil(BLOCK);
        levels.push((sums, stage.words(sums)?));
    }

    let record = |context: &Context| {
        levels.windows(2).try_for_each(|pair| {
            let [(count, from), (groups, to)] = pair else { return Ok(()) };
            let dispatch = context.dispatch(&program).bind(0, 0, from).bind(0, 1, to);
            dispatch.push(&(*count as u32)).groups([*groups as u32, 1, 1])
        })
    };
    stage.run(record)?;

    let want = elements.iter().fold(0u32, |sum, &e| sum.wrapping_add(e));
    let (_, total) = &levels[levels.len() - 1];
    check::equal(&stage.context.read::<u32>(total)?, &[want])?;
    Ok(stage.measured(record, COUNT as f64 / 1e6, "M elements/s")?.note("4 M elements"))
}
