//! The work of a dispatch, as the compiler counts it, and the limit that binds it.

use spelter_shaders::analysis::{Counts, Operations};
use spelter_shaders::compile::{Backend, Floats, lower, lower_for};

use super::limits::Limits;
use crate::failure::Failure;
use crate::shader::{self, Shader};
use crate::structured::Spec;
use spelter::{Context, choose_entry};

/// The lowered kernel, whose operations depend on the push constants of a point.
pub(super) struct OperationCounts {
    kernel: spelter_shaders::ir::Kernel,
}

impl OperationCounts {
    /// The kernel that the back end's compiler has after lowering.
    pub(super) fn new(
        shader: &Shader,
        (entry, specs): (Option<&str>, &[Spec]),
        backend: Backend,
    ) -> Result<Self, Failure> {
        let module = shader.module()?;
        let entry = choose_entry(module.entry_points(), entry).map_err(|e| shader.refused(e))?;
        let bits = shader::specialization(&module, specs)?;
        let kernel = shader.kernel(&module, &entry, &bits)?;
        let lowered = match backend {
            Backend::X86(isa) => lower_for(&kernel, isa, |_, _| {}).ok(),
            Backend::Interpreter => None,
        };
        Ok(Self { kernel: lowered.unwrap_or_else(|| lower(&kernel, Floats::FAST, |_, _| {})) })
    }

    /// The operations of an invocation with these push constants.
    pub(super) fn of(&self, push: &[u8]) -> Operations {
        Operations::of(&self.kernel, push)
    }
}

/// What binds a dispatch, and how close it is: 1 is the limit itself.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Position {
    pub(super) limit: &'static str,
    pub(super) share: f64,
    /// The bandwidth for the bytes that are bound, in bytes per second.
    pub(super) bandwidth: f64,
    /// The peak of float operations per second, if the kernel has any.
    pub(super) peak: Option<f64>,
}

/// The position of a dispatch that takes `seconds` and has `bound` bytes bound. Of these, no more than the accesses
/// move count, all of them if there are accesses to images; bytes that are accessed again may come from caches.
pub(super) fn position(
    context: &Context,
    limits: &mut Limits,
    (max, invocations): (Option<Counts>, u64),
    (bound, seconds): (u64, f64),
) -> Result<Position, spelter::Error> {
    let all = |count: u64| count as f64 * invocations as f64;
    let bandwidth = limits.bandwidth(context, bound)?;
    // The bytes of texels are not counted.
    let counted = max.filter(|max| max.images == 0);
    let traffic = counted.map_or(f64::INFINITY, |max| all(max.loaded + max.stored + 4 * max.atomics));
    let mut shares = vec![("memory", traffic.min(bound as f64) / bandwidth)];
    let mut peak = None;
    if let Some(max) = max {
        if max.flops > 0 {
            let flops = limits.flops(context)?;
            shares.push(("multiply-add", all(max.flops) / flops));
            peak = Some(flops);
        }
        if max.atomics > 0 {
            shares.push(("atomics", all(max.atomics) / limits.atomics(context)?));
        }
    }
    let (limit, needs) = shares.into_iter().fold(("memory", 0.0), |a, b| if b.1 > a.1 { b } else { a });
    Ok(Position { limit, share: needs / seconds, bandwidth, peak })
}
