//! Checks of a whole sweep before its first point is measured, since a sweep may take hours.

use spelter_driver::CommandBuffer;

use super::{Bench, buffers, failure, invocations};
use crate::args::push_bytes;
use crate::failure::Failure;

/// Checks the options, and all points: numbers of workgroups, push constants, and the sizes of buffers.
pub(super) fn all(bench: &Bench<'_>, groups: &[[u32; 3]], sizes: &[Option<u64>]) -> Result<(), Failure> {
    let Bench { shader, args, inputs, context, program, .. } = bench;
    let failed = |error| failure(shader, error);
    inputs.check(super::declared(program, &format!("{:?}", program.entry())))?;
    for &point in groups {
        CommandBuffer::check_groups(point).map_err(|misuse| failed(spelter::Error::Misuse(misuse)))?;
        let (invocations_per_dimension, invocations) = invocations(point, program.workgroup_size())?;
        let push = push_bytes(&args.push, invocations_per_dimension).map_err(Failure::misuse)?;
        // A dispatch that runs nothing is checked all the same. Nothing is bound yet, which is a later error.
        let dispatch = push.iter().fold(context.dispatch(program), |dispatch, byte| dispatch.push(byte));
        let errors = match dispatch.groups([0; 3]) {
            Err(spelter::Error::Several(all)) => all,
            result => result.err().into_iter().collect(),
        };
        if let Some(error) = errors.into_iter().find(|error| matches!(error, spelter::Error::Push(_))) {
            return Err(failed(error));
        }
        sizes
            .iter()
            .try_for_each(|bytes| buffers::check_sizes(context, program.bindings(), inputs, (*bytes, invocations)))?;
    }
    Ok(())
}
