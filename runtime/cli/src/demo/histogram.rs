//! Histogram of the bytes of four megabytes, with atomics in shared memory.

use spelter::Context;

use super::check;
use super::stage::{Done, Stage};
use crate::failure::Failure;
use crate::random::Random;

const WORDS: usize = 1 << 20;
/// Words that a workgroup counts.
const BLOCK: usize = 4096;

pub(super) fn run(stage: &Stage<'_>) -> Result<Done, Failure> {
    let mut random = Random::new(4);
    // Small values are common, so many invocations update the same bins.
    let bytes: Vec<u8> = (0..WORDS * 4).map(|_| (random.fraction() * random.fraction() * 256.0) as u8).collect();
    let program = stage.context.program_wgsl(include_str!("../../../../shaders/library/histogram.wgsl"))?;
    let (input, bins) = (stage.buffer(&bytes)?, stage.words(256)?);

    let record = |context: &Context| {
        let dispatch = context.dispatch(&program).bind(0, 0, &input).bind(0, 1, &bins);
        dispatch.push(&(WORDS as u32)).groups([(WORDS / BLOCK) as u32, 1, 1])
    };
    stage.run(record)?;

    let mut want = [0u32; 256];
    for &byte in &bytes {
        want[usize::from(byte)] += 1;
    }
    check::equal(&stage.context.read::<u32>(&bins)?, &want)?;
    Ok(stage.measured(record, (WORDS * 4) as f64 / 1e6, "MB/s")?.note("4 MB, 256 bins"))
}
