//! Transforms the scalar IR before vectorization: loops get one preheader, one latch and few exits, small workgroups
//! are merged, and loops in which each lane reads its own words get wider loads.
//!
//! The passes here do not depend on the vectorizer. Each change of control flow invalidates [`Uniformity`], which is
//! then computed again.

mod canonicalize_loops;
mod merge_workgroups;
mod unify_exits;
mod widen_loop_loads;

use cranelift_entity::EntitySet;

use super::Unsupported;
use crate::analysis::Uniformity;
use crate::ir::{self, Kernel, VERIFIES, Value};

/// Blocks of a kernel that is vectorized, at most.
const MAX_BLOCKS: usize = 1 << 16;

/// SPIR-V's structured control flow forbids it, but the front end does not check.
const IRREDUCIBLE: &str = "a loop has more than one entry block";

/// A pass that prepares a kernel for vectorization, on its own: for tests and tools.
#[derive(Clone, Copy, Debug)]
pub struct PreparePass {
    /// Name in timings and tests.
    pub name: &'static str,
    /// Changes the kernel in place, where that is profitable or necessary.
    pub run: fn(&mut Kernel),
}

/// All passes that prepare a kernel, in order. [`widen`](super::widen) runs them with analyses that they share.
pub const PREPARE_PASSES: &[PreparePass] = &[
    // One preheader and one latch for each loop.
    PreparePass { name: "canonicalize_loops", run: |kernel| *kernel = canonicalize_loops::canonicalize(kernel) },
    // One exit for loops with many divergent ones.
    PreparePass {
        name: "unify_exits",
        run: |kernel| {
            let uniformity = Uniformity::new(kernel);
            if unify_exits::unify(kernel, &uniformity).is_some() {
                *kernel = canonicalize_loops::canonicalize(kernel);
            }
        },
    },
    // Small workgroups that are neighbours run as one.
    PreparePass {
        name: "merge_workgroups",
        run: |kernel| {
            let uniformity = Uniformity::new(kernel);
            merge_workgroups::merge(kernel, &uniformity);
        },
    },
    // Loads of four words every fourth iteration.
    PreparePass {
        name: "widen_loop_loads",
        run: |kernel| {
            let uniformity = Uniformity::new(kernel);
            widen_loop_loads::widen_loads(kernel, &uniformity);
        },
    },
];

/// A kernel that can be vectorized, with its analyses.
pub(super) struct Prepared {
    pub(super) kernel: Kernel,
    /// How often each pass changed the kernel.
    pub(super) changes: Vec<(&'static str, u64)>,
    pub(super) uniformity: Uniformity,
    /// Number of workgroups that share the lanes of a subgroup.
    pub(super) merged_workgroups: u32,
    /// Block arguments with unspecified values: lanes that pass one never read the parameter.
    pub(super) fillers: EntitySet<Value>,
}

/// Runs the passes in order.
///
/// # Errors
///
/// The SIMD form cannot express the kernel, or not in reasonable size.
pub(super) fn prepare(kernel: &Kernel) -> Result<Prepared, Unsupported> {
    let mut kernel = canonicalize_loops::canonicalize(kernel);
    if kernel.layout.len() > MAX_BLOCKS {
        return Err(Unsupported(format!("{} blocks are more than {MAX_BLOCKS}", kernel.layout.len())));
    }
    if !canonicalize_loops::is_reducible(&kernel) {
        return Err(Unsupported(IRREDUCIBLE.into()));
    }
    let check_budget = |kernel: &Kernel| kernel.work.check().map_err(|spent| Unsupported(spent.to_string()));
    // With a spent budget the analysis has ended early: nothing may use it.
    let analyse = |kernel: &Kernel| {
        let uniformity = Uniformity::new(kernel);
        check_budget(kernel).map(|()| uniformity)
    };
    let mut uniformity = analyse(&kernel)?;
    let fillers = unify_exits::unify(&mut kernel, &uniformity);
    if fillers.is_some() {
        kernel = canonicalize_loops::canonicalize(&kernel);
        uniformity = analyse(&kernel)?;
    }
    check_budget(&kernel)?;
    let merged_workgroups = merge_workgroups::merge(&mut kernel, &uniformity);
    if merged_workgroups > 1 {
        uniformity = analyse(&kernel)?;
    }
    let widened = widen_loop_loads::widen_loads(&mut kernel, &uniformity);
    if widened {
        uniformity = analyse(&kernel)?;
    }
    check_budget(&kernel)?;
    if VERIFIES && let Err(error) = ir::verify(&kernel) {
        panic!("preparation for vectorization makes an invalid kernel: {error}\n{kernel}");
    }
    let changes = vec![
        ("unify_exits", fillers.is_some().into()),
        ("merge_workgroups", u64::from(merged_workgroups > 1)),
        ("widen_loop_loads", widened.into()),
    ];
    Ok(Prepared { kernel, changes, uniformity, merged_workgroups, fillers: fillers.unwrap_or_default() })
}
