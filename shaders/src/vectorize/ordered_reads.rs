//! Checked mode: reads of workgroup variables that need no check, since in the parallel regions that contain them no
//! invocation writes the variable.
//!
//! A control barrier of the whole workgroup that releases and acquires workgroup memory in full orders all non-private
//! accesses before it with all after it. The barriers of kernels with machine code are in uniform control flow
//! (`check.rs`), so what may run at the same time is what can be reached from one of them, or from the entry, without
//! another one. Where that has no write of a variable, its reads race with nothing.

use cranelift_entity::EntitySet;
use smallvec::SmallVec;

use crate::check;
use crate::ir::{Block, Inst, InstData as Scalar, Kernel, Place, Site, SiteAction, Variable};

/// Visits of instructions for all regions, at most: in kernels that need more, all reads are checked.
const MAX_VISITS: usize = 1 << 20;

/// What a region does to workgroup variables.
#[derive(Default)]
struct Region {
    written: EntitySet<Variable>,
    reads: Vec<(Variable, Inst)>,
}

/// The checks of such reads.
pub(super) fn ordered_reads(kernel: &Kernel) -> EntitySet<Inst> {
    let mut ordered = EntitySet::new();
    let is_private = |action: &SiteAction| match action {
        SiteAction::Read(access) | SiteAction::Write(access) => !access.non_private && access.scope.is_none(),
        _ => false,
    };
    let all = kernel.layout.iter().flat_map(|&block| &kernel.blocks[block].insts);
    let accesses = all.filter_map(|&inst| access(kernel, inst));
    if kernel.variables.is_empty() || accesses.clone().any(|(site, _)| is_private(&kernel.sites[site].action)) {
        return ordered;
    }
    // A region begins at the entry and after each such barrier: a block, and the first of its instructions.
    let mut starts = vec![(kernel.layout[0], 0)];
    for &block in &kernel.layout {
        let insts = kernel.blocks[block].insts.iter().enumerate();
        starts.extend(insts.filter(|&(_, &inst)| is_full_barrier(kernel, inst)).map(|(at, _)| (block, at + 1)));
    }
    let mut unordered: EntitySet<Inst> = EntitySet::new();
    let mut reads = Vec::new();
    let mut visits = MAX_VISITS;
    for start in starts {
        let Some(region) = region(kernel, start, &mut visits) else { return ordered };
        for (variable, inst) in region.reads {
            if region.written.contains(variable) {
                unordered.insert(inst);
            }
            reads.push(inst);
        }
    }
    ordered.extend(reads.into_iter().filter(|&inst| !unordered.contains(inst)));
    ordered
}

/// The region that begins there; `None` after too many visits.
fn region(kernel: &Kernel, start: (Block, usize), visits: &mut usize) -> Option<Region> {
    let mut region = Region::default();
    let mut known: EntitySet<Block> = EntitySet::new();
    let mut pending: SmallVec<[(Block, usize); 8]> = SmallVec::from_slice(&[start]);
    while let Some((block, first)) = pending.pop() {
        let insts = &kernel.blocks[block].insts[first..];
        let end = insts.iter().position(|&inst| is_full_barrier(kernel, inst));
        *visits = visits.checked_sub(1 + end.unwrap_or(insts.len()))?;
        for &inst in &insts[..end.unwrap_or(insts.len())] {
            let Some((site, Place::Variable { variable, .. })) = access(kernel, inst) else { continue };
            match kernel.sites[site].action {
                SiteAction::Read(_) => region.reads.push((variable, inst)),
                _ => _ = region.written.insert(variable),
            }
        }
        if end.is_none() {
            let targets = kernel.targets(block).into_iter().map(|call| call.block);
            pending.extend(targets.filter(|&target| known.insert(target)).map(|target| (target, 0)));
        }
    }
    Some(region)
}

/// The access to a variable that a check or the sync of an atomic is of.
fn access(kernel: &Kernel, inst: Inst) -> Option<(Site, Place)> {
    match kernel.insts[inst] {
        Scalar::Check { site, place, .. } | Scalar::Sync { site, place: Some(place), .. } => {
            matches!(place, Place::Variable { .. }).then_some((site, place))
        }
        _ => None,
    }
}

/// Whether an instruction is a barrier that ends a region.
fn is_full_barrier(kernel: &Kernel, inst: Inst) -> bool {
    match kernel.insts[inst] {
        Scalar::Sync { site, .. } => check::orders_workgroup_memory(&kernel.sites[site].action),
        _ => false,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::check::insert;
    use crate::compile::Module;

    /// The lines of the checks of reads that need none.
    fn ordered_lines(body: &str) -> Vec<u32> {
        let text = format!(
            "@group(0) @binding(0) var<storage, read_write> o: array<u32>;
            var<workgroup> a: array<u32, 64>; var<workgroup> b: array<u32, 64>;
            @compute @workgroup_size(64) fn main(@builtin(local_invocation_index) i: u32) {{ {body} }}"
        );
        let mut kernel = Module::from_wgsl(&text).unwrap().kernel("main", &Default::default()).unwrap();
        insert(&mut kernel);
        let ordered = ordered_reads(&kernel);
        let mut variables: Vec<u32> = (kernel.layout.iter().flat_map(|&block| &kernel.blocks[block].insts))
            .filter(|&&inst| ordered.contains(inst))
            .filter_map(|&inst| match access(&kernel, inst) {
                Some((_, Place::Variable { variable, .. })) => Some(variable.as_u32()),
                _ => None,
            })
            .collect();
        let first = kernel.variables.iter().find(|(_, data)| data.space == crate::ir::VariableSpace::Workgroup);
        let first = first.map_or(0, |(variable, _)| variable.as_u32());
        variables.iter_mut().for_each(|variable| *variable -= first);
        variables
    }

    #[test]
    fn reads_between_barriers_without_writes_are_ordered() {
        let barrier = "workgroupBarrier();";
        let of = |body: String| ordered_lines(&body);
        assert_eq!(of(format!("a[i] = 1u; {barrier} o[i] = a[63u - i];")), [0]);
        assert_eq!(of("a[i] = 1u; storageBarrier(); o[i] = a[63u - i];".into()), [0; 0], "another class");
        assert_eq!(of(format!("a[i] = 1u; {barrier} o[i] = a[63u - i]; b[i] = 2u; o[i] += b[i];")), [0]);
        assert_eq!(of(format!("a[i] = 1u; {barrier} o[i] = a[0]; if i == 0u {{ a[1] = 2u; }}")), [0; 0]);
        // A loop comes back to the write, unless a barrier is between.
        let tiles =
            |last: &str| format!("for (var k = 0u; k < 4u; k++) {{ a[i] = k; {barrier} o[i] += a[63u - i]; {last} }}");
        assert_eq!(of(tiles(barrier)), [0]);
        assert_eq!(of(tiles("")), [0; 0]);
        assert_eq!(of(format!("o[i] = a[i]; {barrier} a[i] = 1u;")), [0], "before the first write");
    }
}
