//! Each barrier that the tracker records is needed: checked mode reports each one that is left out.

use std::cell::Cell;

use spelter_driver::check::{Finding, Severity};

use crate::{Context, Error};

thread_local! {
    /// The number of barriers until the one that is left out.
    static DROPPED: Cell<Option<u64>> = const { Cell::new(None) };
}

/// Whether the barrier that is recorded now is left out.
pub(super) fn drops_this() -> bool {
    DROPPED.with(|left| {
        let now = left.get();
        left.set(now.and_then(|left| left.checked_sub(1)));
        now == Some(0)
    })
}

const ADD: &str = "
    @group(0) @binding(0) var<storage, read> input: array<u32>;
    @group(0) @binding(1) var<storage, read_write> output: array<u32>;
    @compute @workgroup_size(16) fn main(@builtin(local_invocation_index) i: u32) { output[i] = input[i] + output[i]; }";

/// Runs a random program; the barrier with this number is left out. Returns the errors and the number of barriers.
fn run(seed: u64, dropped: Option<u64>) -> Result<(Vec<Finding>, u64), Error> {
    let context = Context::builder().check(Default::default()).build()?;
    let buffers = (0..4).map(|_| context.buffer_from(&[1u32; 16])).collect::<Result<Vec<_>, _>>()?;
    let add = context.program_wgsl(ADD)?;
    context.finish()?;
    let mut state = seed;
    let mut next = |below: usize| {
        state = state.wrapping_mul(0x5851_f42d_4c95_7f2d).wrapping_add(0x1405_7b7e_f767_814f);
        (state >> 33) as usize % below
    };
    let before = context.stats().barriers;
    DROPPED.set(dropped);
    for _ in 0..12 {
        let (from, to) = (next(4), next(3));
        let to = if to >= from { to + 1 } else { to };
        match next(3) {
            0 => {
                let dispatch = context.dispatch(&add).bind(0, 0, &buffers[from]).bind(0, 1, &buffers[to]);
                dispatch.groups([1, 1, 1])?;
            }
            1 => context.copy(&buffers[from], 0, &buffers[to], 16, 32)?,
            _ => context.fill_range(&buffers[to], 8..32, 7)?,
        }
    }
    let findings = context.findings()?;
    DROPPED.set(None);
    let errors = findings.into_iter().filter(|finding| finding.severity == Severity::Error).collect();
    Ok((errors, context.stats().barriers - before))
}

#[test]
fn each_barrier_that_is_left_out_is_reported_and_with_all_of_them_nothing_is() -> Result<(), Error> {
    let mut dropped = 0;
    for seed in 0..12 {
        let (errors, barriers) = run(seed, None)?;
        assert!(errors.is_empty(), "seed {seed}: {errors:#?}");
        for barrier in 0..barriers {
            let (errors, _) = run(seed, Some(barrier))?;
            assert!(!errors.is_empty(), "seed {seed}: barrier {barrier} of {barriers} is not missed");
            dropped += 1;
        }
    }
    assert!(dropped > 60, "{dropped}");
    Ok(())
}
