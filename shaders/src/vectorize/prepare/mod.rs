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

use super::outcome::Unsupported;
use crate::analysis::Uniformity;
use crate::ir::{self, Kernel, VERIFIES, Value};

/// Blocks of a kernel that is vectorized, at most.
const MAX_BLOCKS: usize = 1 << 16;

/// SPIR-V's structured control flow forbids it, but the front end does not check.
const IRREDUCIBLE: &str = "a loop has more than one entry block";

/// A pass that prepares a kernel for vectorization.
#[derive(Clone, Copy, Debug)]
pub struct PreparePass {
    /// Name in statistics, messages and tests.
    pub name: &'static str,
    /// Changes the kernel in place, where that is profitable or necessary. Returns whether it did.
    run: fn(&mut Kernel, &mut PassState) -> Result<bool, Unsupported>,
}

impl PreparePass {
    /// Runs the pass on its own, for tests and tools. Returns whether it changed the kernel.
    ///
    /// # Errors
    ///
    /// The kernel cannot be vectorized.
    pub fn run_alone(&self, kernel: &mut Kernel) -> Result<bool, Unsupported> {
        self.apply(kernel, &mut PassState::new())
    }

    /// Runs the pass. The result is verified (`VERIFIES`), so that a pass that breaks a rule is named.
    fn apply(&self, kernel: &mut Kernel, state: &mut PassState) -> Result<bool, Unsupported> {
        let is_changed = (self.run)(kernel, state)?;
        if is_changed {
            state.uniformity = None;
        }
        check_budget(kernel)?;
        if VERIFIES && let Err(error) = ir::verify(kernel) {
            panic!("after {}: {error}\n{kernel}", self.name);
        }
        Ok(is_changed)
    }
}

/// What is known about a kernel between two passes.
struct PassState {
    /// The analysis of the kernel as it is, once a pass has needed it.
    uniformity: Option<Uniformity>,
    /// Number of workgroups that share the lanes of a subgroup.
    merged_workgroups: u32,
    /// Block arguments with unspecified values.
    fillers: EntitySet<Value>,
}

impl PassState {
    fn new() -> Self {
        Self { uniformity: None, merged_workgroups: 1, fillers: EntitySet::new() }
    }

    /// The analysis of the kernel as it is.
    fn uniformity(&mut self, kernel: &Kernel) -> Result<&Uniformity, Unsupported> {
        let uniformity = self.uniformity.get_or_insert_with(|| Uniformity::new(kernel));
        // With a spent budget the analysis has ended early: nothing may use it.
        check_budget(kernel)?;
        Ok(uniformity)
    }
}

/// All passes that prepare a kernel, in order.
pub const PREPARE_PASSES: &[PreparePass] = &[
    // One preheader and one latch for each loop.
    PreparePass {
        name: "canonicalize_loops",
        run: |kernel, _| {
            let is_changed = canonicalize_loops::canonicalize(kernel);
            if kernel.layout.len() > MAX_BLOCKS {
                return Err(Unsupported(format!("{} blocks are more than {MAX_BLOCKS}", kernel.layout.len())));
            }
            if !canonicalize_loops::is_reducible(kernel) {
                return Err(Unsupported(IRREDUCIBLE.into()));
            }
            Ok(is_changed)
        },
    },
    // One exit for loops with many divergent ones.
    PreparePass {
        name: "unify_exits",
        run: |kernel, state| {
            let uniformity = state.uniformity(kernel)?;
            let Some(fillers) = unify_exits::unify(kernel, uniformity) else { return Ok(false) };
            state.fillers = fillers;
            canonicalize_loops::canonicalize(kernel);
            Ok(true)
        },
    },
    // Small workgroups that are neighbours run as one.
    PreparePass {
        name: "merge_workgroups",
        run: |kernel, state| {
            let uniformity = state.uniformity(kernel)?;
            state.merged_workgroups = merge_workgroups::merge(kernel, uniformity);
            Ok(state.merged_workgroups > 1)
        },
    },
    // Loads of four words every fourth iteration.
    PreparePass {
        name: "widen_loop_loads",
        run: |kernel, state| {
            let uniformity = state.uniformity(kernel)?;
            Ok(widen_loop_loads::widen_loads(kernel, uniformity))
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
    let (mut kernel, mut state) = (kernel.clone(), PassState::new());
    let mut changes = Vec::with_capacity(PREPARE_PASSES.len());
    for pass in PREPARE_PASSES {
        let is_changed = pass.apply(&mut kernel, &mut state)?;
        changes.push((pass.name, is_changed.into()));
    }
    let PassState { uniformity, merged_workgroups, fillers } = state;
    let uniformity = uniformity.unwrap_or_else(|| Uniformity::new(&kernel));
    check_budget(&kernel)?;
    Ok(Prepared { kernel, changes, uniformity, merged_workgroups, fillers })
}

fn check_budget(kernel: &Kernel) -> Result<(), Unsupported> {
    kernel.work.check().map_err(|spent| Unsupported(spent.to_string()))
}
