//! Control barriers of a kernel: which of them subgroups wait at, and whether its checks allow machine code.

use super::outcome::Unsupported;
use crate::analysis::Uniformity;
use crate::ir::{Block, InstData, Kernel, Scope, SiteAction};

/// Whether a barrier makes subgroups wait for each other.
pub(super) fn waits(data: &InstData) -> bool {
    matches!(data, InstData::Barrier { execution, .. } if !matches!(execution, Scope::Subgroup | Scope::Invocation))
}

/// Rejects kernels with checks in which invocations may reach a control barrier without others of its scope, if only
/// because of a race. Machine code runs the branches of a subgroup one after the other, so it would let those in the
/// first branch go on before the others have arrived: other tangles than those of the interpreter.
pub(super) fn check_barriers(kernel: &Kernel) -> Result<(), Unsupported> {
    let barriers: Vec<(Block, bool)> = kernel.layout.iter().flat_map(|&block| barriers_of(kernel, block)).collect();
    if barriers.is_empty() {
        return Ok(());
    }
    let [subgroup, workgroup] = Uniformity::with_races(kernel).map(|uniformity| uniformity.convergent_blocks(kernel));
    kernel.work.check().map_err(|spent| Unsupported(spent.to_string()))?;
    let is_uniform = |&(block, of_subgroup): &(Block, bool)| {
        let convergent = if of_subgroup { &subgroup } else { &workgroup };
        convergent.contains(block)
    };
    if !kernel.layout.iter().all(|&block| are_before_barriers(kernel, block)) {
        return Err(Unsupported("a check of a control barrier is apart from it".into()));
    }
    if barriers.iter().all(is_uniform) {
        return Ok(());
    }
    Err(Unsupported("a kernel with checks has a control barrier that may be in divergent control flow".into()))
}

/// Whether each check of a barrier of the workgroup in a block comes just before its barrier.
fn are_before_barriers(kernel: &Kernel, block: Block) -> bool {
    let mut checked = false;
    for &inst in &kernel.blocks[block].insts {
        match &kernel.insts[inst] {
            InstData::Sync { site, .. } => match kernel.sites[*site].action {
                SiteAction::Barrier { execution: Scope::Subgroup, .. } => {}
                SiteAction::Barrier { .. } if checked => return false,
                SiteAction::Barrier { .. } => checked = true,
                _ if checked => return false,
                _ => {}
            },
            data if waits(data) && !checked => return false,
            data if waits(data) => checked = false,
            data if checked && data.has_effect() => return false,
            _ => {}
        }
    }
    !checked
}

/// For each control barrier that a block checks, whether it is of the subgroup.
fn barriers_of(kernel: &Kernel, block: Block) -> impl Iterator<Item = (Block, bool)> {
    kernel.blocks[block].insts.iter().filter_map(move |&inst| match kernel.insts[inst] {
        InstData::Sync { site, .. } => match kernel.sites[site].action {
            SiteAction::Barrier { execution, .. } => Some((block, execution == Scope::Subgroup)),
            _ => None,
        },
        _ => None,
    })
}
