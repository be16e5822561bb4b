//! Makes scalar IR out of scalar IR that is easier to widen: loops with one preheader, one latch and few exits, small workgroups merged, loops
//! whose lanes load words of their own done for one lane after another or with wider loads.
//!
//! Nothing here knows of the widener. Whatever changes control flow invalidates [`Uniformity`], which is computed again.

mod canonicalize_loops;
mod merge_workgroups;
mod scalarize_loops;
mod unify_exits;
mod widen_loop_loads;

use cranelift_entity::EntitySet;

use super::Unsupported;
use crate::analysis::Uniformity;
#[cfg(debug_assertions)]
use crate::ir;
use crate::ir::{Kernel, Value};
pub(super) use scalarize_loops::{MAX_ITERATIONS, Serial};

/// Most blocks of a kernel that is widened.
const MAX_BLOCKS: usize = 1 << 16;

/// What SPIR-V's structured control flow rules out, and the reader does not check.
const IRREDUCIBLE: &str = "a loop has more than one way in";

/// A kernel that can be widened, with what is known of it.
pub(super) struct Prepared {
    pub(super) kernel: Kernel,
    /// How often each pass changed the kernel.
    pub(super) changes: Vec<(&'static str, u64)>,
    pub(super) uniformity: Uniformity,
    /// How many workgroups share the lanes of a subgroup.
    pub(super) merged_workgroups: u32,
    pub(super) serial: Serial,
    /// Arguments that stand for nothing: lanes that pass one never read the parameter.
    pub(super) fillers: EntitySet<Value>,
}

/// Runs the passes in order.
///
/// # Errors
///
/// What the SIMD form cannot express, or not in reasonable space.
pub(super) fn prepare(kernel: &Kernel) -> Result<Prepared, Unsupported> {
    let mut kernel = canonicalize_loops::canonicalize(kernel);
    if kernel.layout.len() > MAX_BLOCKS {
        return Err(Unsupported(format!("{} blocks are more than {MAX_BLOCKS}", kernel.layout.len())));
    }
    if !canonicalize_loops::is_reducible(&kernel) {
        return Err(Unsupported(IRREDUCIBLE.into()));
    }
    let enough = |kernel: &Kernel| kernel.work.check().map_err(|spent| Unsupported(spent.to_string()));
    let mut uniformity = Uniformity::new(&kernel);
    let fillers = unify_exits::unify(&mut kernel, &uniformity);
    if fillers.is_some() {
        kernel = canonicalize_loops::canonicalize(&kernel);
        uniformity = Uniformity::new(&kernel);
    }
    enough(&kernel)?;
    let merged_workgroups = merge_workgroups::merge(&mut kernel, &uniformity);
    if merged_workgroups > 1 {
        uniformity = Uniformity::new(&kernel);
    }
    let mut serial = Serial::default();
    let mut scalarized = 0;
    while serial.serialise(&mut kernel, &uniformity) {
        uniformity = Uniformity::new(&kernel);
        scalarized += 1;
    }
    let widened = widen_loop_loads::load_ahead(&mut kernel, &uniformity);
    if widened {
        uniformity = Uniformity::new(&kernel);
    }
    enough(&kernel)?;
    #[cfg(debug_assertions)]
    ir::verify(&kernel).unwrap_or_else(|error| panic!("preparing for widening makes a bad kernel: {error}\n{kernel}"));
    let changes = vec![
        ("unify_exits", fillers.is_some().into()),
        ("merge_workgroups", u64::from(merged_workgroups > 1)),
        ("scalarize_loops", scalarized),
        ("widen_loop_loads", widened.into()),
    ];
    Ok(Prepared { changes, kernel, uniformity, merged_workgroups, serial, fillers: fillers.unwrap_or_default() })
}
