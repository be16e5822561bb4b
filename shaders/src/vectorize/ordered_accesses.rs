//! Checked mode: accesses to workgroup variables that need no check, since in the parallel regions that contain them no
//! invocation writes the memory, or all accesses to it are relaxed atomics.
//!
//! A control barrier of the whole workgroup that releases and acquires workgroup memory in full orders all non-private
//! accesses before it with all after it. The barriers of kernels with machine code are in uniform control flow
//! (`check.rs`), so what may run at the same time is what can be reached from one of them, or from the entry, without
//! another one. Where that has no write of the bytes that a read may access, by the value ranges of offsets, the read
//! races with nothing; where it has only atomics of whole words whose scope includes the workgroup, they are mutually
//! ordered. Relaxed ones order no other access, if no fence and no other atomic of the variable does.

use cranelift_entity::EntitySet;
use smallvec::SmallVec;

use super::inline_check::eligible::has_fences;
use crate::analysis::Ranges;
use crate::check;
use crate::ir::{Block, Inst, InstData as ScalarInst, Kernel, Place, Scope, Site, SiteAction, Variable};

/// Visits of instructions for all regions, at most: in kernels that need more, all accesses are checked.
const MAX_VISITS: usize = 1 << 20;

/// Bytes of a workgroup variable, the last one included.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
struct ByteRange {
    variable: Variable,
    first: u32,
    last: u32,
}

/// Bytes of workgroup variables.
#[derive(Default)]
struct Bytes(Vec<ByteRange>);

/// What a region does to workgroup variables.
#[derive(Default)]
struct Region {
    /// What is written, by an atomic or another store.
    written: Bytes,
    /// What has another access than an atomic as above.
    unequal: Bytes,
    accesses: Vec<WorkgroupAccess>,
}

/// An access to a workgroup variable.
#[derive(Clone, Copy)]
struct WorkgroupAccess {
    inst: Inst,
    site: Site,
    /// What it may access.
    bytes: ByteRange,
}

impl Bytes {
    fn add(&mut self, bytes: ByteRange) {
        self.0.push(bytes);
    }

    /// Joins ranges that meet, and sorts them.
    fn sort(&mut self) {
        self.0.sort_unstable();
        self.0.dedup_by(|next, last| {
            let joins = next.variable == last.variable && next.first <= last.last.saturating_add(1);
            last.last = if joins { last.last.max(next.last) } else { last.last };
            joins
        });
    }

    /// Whether some of them are in a range. They are sorted.
    fn meet(&self, bytes: ByteRange) -> bool {
        let before = self.0.partition_point(|known| (known.variable, known.first) <= (bytes.variable, bytes.last));
        // Ranges are disjoint, so only the last of those that start early enough can reach that far.
        let nearest = before.checked_sub(1).map(|at| self.0[at]);
        nearest.is_some_and(|known| known.variable == bytes.variable && known.last >= bytes.first)
    }
}

/// The checks and syncs of such accesses.
pub(super) fn ordered_accesses(kernel: &Kernel, ranges: Option<&Ranges>) -> EntitySet<Inst> {
    let mut ordered = EntitySet::new();
    let is_private = |action: &SiteAction| match action {
        SiteAction::Read(access) | SiteAction::Write(access) => access.is_private(),
        _ => false,
    };
    let all = kernel.layout.iter().flat_map(|&block| &kernel.blocks[block].insts);
    let accesses: Vec<_> = all.filter_map(|&inst| access(kernel, inst)).collect();
    if accesses.is_empty() || accesses.iter().any(|(site, _)| is_private(&kernel.sites[*site].action)) {
        return ordered;
    }
    // The variables whose atomics may synchronize.
    let mut synchronize: EntitySet<Variable> = EntitySet::new();
    let has_fences = has_fences(kernel);
    for &(site, variable) in &accesses {
        let action = &kernel.sites[site].action;
        if has_fences || matches!(action, SiteAction::Atomic { .. }) && !check::is_relaxed(action) {
            synchronize.insert(variable);
        }
    }
    // A region begins at the entry and after each such barrier: a block, and the first of its instructions.
    let mut starts = vec![(kernel.layout[0], 0)];
    for &block in &kernel.layout {
        let insts = kernel.blocks[block].insts.iter().enumerate();
        starts.extend(insts.filter(|&(_, &inst)| is_full_barrier(kernel, inst)).map(|(at, _)| (block, at + 1)));
    }
    let mut unordered: EntitySet<Inst> = EntitySet::new();
    let mut reached = Vec::new();
    let mut visits = MAX_VISITS;
    for start in starts {
        let Some(region) = region(kernel, ranges, start, &mut visits) else { return ordered };
        for access in &region.accesses {
            let is_read = matches!(kernel.sites[access.site].action, SiteAction::Read(_));
            let only_read = is_read && !region.written.meet(access.bytes);
            let only_atomics = !region.unequal.meet(access.bytes) && !synchronize.contains(access.bytes.variable);
            if !only_read && !only_atomics {
                unordered.insert(access.inst);
            }
            reached.push(access.inst);
        }
    }
    ordered.extend(reached.into_iter().filter(|&inst| !unordered.contains(inst)));
    ordered
}

/// The region that begins there; `None` after too many visits.
fn region(kernel: &Kernel, ranges: Option<&Ranges>, start: (Block, usize), visits: &mut usize) -> Option<Region> {
    let mut region = Region::default();
    let mut known: EntitySet<Block> = EntitySet::new();
    let mut pending: SmallVec<[(Block, usize); 8]> = SmallVec::from_slice(&[start]);
    while let Some((block, first)) = pending.pop() {
        let insts = &kernel.blocks[block].insts[first..];
        let end = insts.iter().position(|&inst| is_full_barrier(kernel, inst));
        *visits = visits.checked_sub(1 + end.unwrap_or(insts.len()))?;
        for &inst in &insts[..end.unwrap_or(insts.len())] {
            let Some((site, variable)) = access(kernel, inst) else { continue };
            let (first, last) = ranges.map_or((0, u32::MAX), |ranges| bytes_of(kernel, ranges, block, inst));
            let bytes = ByteRange { variable, first, last };
            region.accesses.push(WorkgroupAccess { inst, site, bytes });
            if !matches!(kernel.sites[site].action, SiteAction::Read(_)) {
                region.written.add(bytes);
            }
            if !is_mutual(kernel, inst) {
                region.unequal.add(bytes);
            }
        }
        if end.is_none() {
            let targets = kernel.targets(block).into_iter().map(|call| call.block);
            pending.extend(targets.filter(|&target| known.insert(target)).map(|target| (target, 0)));
        }
    }
    region.written.sort();
    region.unequal.sort();
    Some(region)
}

/// The first and the last byte that an access in a block may have.
fn bytes_of(kernel: &Kernel, ranges: &Ranges, block: Block, inst: Inst) -> (u32, u32) {
    let (place, bytes) = match kernel.insts[inst] {
        ScalarInst::Check { ref place, width, .. } => (place, width.bytes()),
        ScalarInst::Sync { place: Some(ref place), bytes, .. } => (place, bytes),
        _ => return (0, u32::MAX),
    };
    let offsets = ranges.at(block, place.offset());
    (offsets.low, offsets.high.saturating_add(bytes.max(1) - 1))
}

/// Whether it is the sync of an atomic of a whole word whose scope includes the workgroup.
fn is_mutual(kernel: &Kernel, inst: Inst) -> bool {
    let ScalarInst::Sync { site, bytes: 4, .. } = kernel.insts[inst] else { return false };
    check::is_atomic_of(&kernel.sites[site].action, Scope::Workgroup)
}

/// The access to a variable that a check or the sync of an atomic is of.
fn access(kernel: &Kernel, inst: Inst) -> Option<(Site, Variable)> {
    match kernel.insts[inst] {
        ScalarInst::Check { site, place: Place::Variable { variable, .. }, .. }
        | ScalarInst::Sync { site, place: Some(Place::Variable { variable, .. }), .. } => Some((site, variable)),
        _ => None,
    }
}

/// Whether an instruction is a barrier that ends a region.
fn is_full_barrier(kernel: &Kernel, inst: Inst) -> bool {
    match kernel.insts[inst] {
        ScalarInst::Sync { site, .. } => check::orders_workgroup_memory(&kernel.sites[site].action),
        _ => false,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::check::insert;
    use crate::compile::Module;
    use crate::ir::Semantics;

    /// The variables of the accesses that need no check, in the order of the text.
    fn ordered_variables(body: &str) -> Vec<u32> {
        let text = format!(
            "@group(0) @binding(0) var<storage, read_write> o: array<u32>;
            var<workgroup> a: array<u32, 64>; var<workgroup> b: array<u32, 64>;
            var<workgroup> c: array<atomic<u32>, 64>;
            @compute @workgroup_size(64) fn main(@builtin(local_invocation_index) i: u32) {{ {body} }}"
        );
        let mut kernel = Module::from_wgsl(&text).unwrap().kernel("main", &Default::default()).unwrap();
        insert(&mut kernel);
        let ordered = ordered_accesses(&kernel, Some(&Ranges::new(&kernel)));
        let mut variables: Vec<u32> = (kernel.layout.iter().flat_map(|&block| &kernel.blocks[block].insts))
            .filter(|&&inst| ordered.contains(inst))
            .filter_map(|&inst| access(&kernel, inst).map(|(_, variable)| variable.as_u32()))
            .collect();
        let first = kernel.variables.iter().find(|(_, data)| data.space == crate::ir::VariableSpace::Workgroup);
        let first = first.map_or(0, |(variable, _)| variable.as_u32());
        variables.iter_mut().for_each(|variable| *variable -= first);
        variables
    }

    #[test]
    fn reads_between_barriers_without_writes_are_ordered() {
        let barrier = "workgroupBarrier();";
        let of = |body: String| ordered_variables(&body);
        assert_eq!(of(format!("a[i] = 1u; {barrier} o[i] = a[63u - i];")), [0]);
        assert_eq!(of("a[i] = 1u; storageBarrier(); o[i] = a[63u - i];".into()), [0; 0], "another class");
        assert_eq!(of(format!("a[i] = 1u; {barrier} o[i] = a[63u - i]; b[i] = 2u; o[i] += b[i];")), [0]);
        assert_eq!(of(format!("a[i] = 1u; {barrier} o[i] = a[0]; if i == 0u {{ a[i] = 2u; }}")), [0; 0]);
        // A loop comes back to the write, unless a barrier is between.
        let tiles =
            |last: &str| format!("for (var k = 0u; k < 4u; k++) {{ a[i] = k; {barrier} o[i] += a[63u - i]; {last} }}");
        assert_eq!(of(tiles(barrier)), [0]);
        assert_eq!(of(tiles("")), [0; 0]);
        assert_eq!(of(format!("o[i] = a[i]; {barrier} a[i] = 1u;")), [0], "before the first write");
    }

    #[test]
    fn reads_of_other_bytes_than_those_that_are_written_are_ordered() {
        let of = |body: &str| ordered_variables(body);
        assert_eq!(of("a[i & 15u] = 1u; o[i] = a[16u + (i & 15u)];"), [0]);
        assert_eq!(of("a[i & 15u] = 1u; o[i] = a[15u + (i & 15u)];"), [0; 0]);
        assert_eq!(of("a[16u + (i & 15u)] = 1u; o[i] = a[i & 15u]; o[i] += a[i & 31u];"), [0]);
    }

    #[test]
    fn relaxed_atomics_among_themselves_are_ordered() {
        let barrier = "workgroupBarrier();";
        let count = |body: &str| ordered_variables(body).len();
        assert_eq!(count("atomicStore(&c[i], 1u); atomicAdd(&c[i / 2u], 1u); o[i] = atomicLoad(&c[0]);"), 3);
        assert_eq!(count(&format!("atomicAdd(&c[i], 1u); {barrier} o[i] = atomicLoad(&c[0]);")), 2);
        assert_eq!(count("atomicAdd(&c[0], 1u); storageBarrier();"), 1);
    }

    #[test]
    fn atomics_that_order_or_meet_others_are_checked() {
        // An atomic of a word, perhaps with a plain store to it, and with other operands than WGSL has.
        let of = |store: &str, change: &dyn Fn(&mut Scope, &mut Semantics)| {
            let text = format!(
                "var<workgroup> word: atomic<u32>; var<workgroup> other: u32;
                @compute @workgroup_size(64) fn main() {{ atomicAdd(&word, 1u); {store} }}"
            );
            let mut kernel = Module::from_wgsl(&text).unwrap().kernel("main", &Default::default()).unwrap();
            insert(&mut kernel);
            for site in kernel.sites.values_mut() {
                if let SiteAction::Atomic { scope, semantics, .. } = &mut site.action {
                    change(scope, semantics);
                }
            }
            ordered_accesses(&kernel, None).iter().count()
        };
        assert_eq!(of("", &|_, _| {}), 1);
        assert_eq!(of("other = 1u;", &|_, _| {}), 1, "not that of another variable");
        assert_eq!(of("", &|scope, _| *scope = Scope::Invocation), 0, "the scope is too small");
        // Both orders, of workgroup memory.
        assert_eq!(of("", &|_, semantics| *semantics = Semantics(0x8 | 0x100 | 0x6000)), 0);
    }
}
