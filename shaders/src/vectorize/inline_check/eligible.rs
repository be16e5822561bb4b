//! Which checks machine code may settle, and the memory that they concern.

use cranelift_entity::EntitySet;

use super::privacy::{Privacies, Privacy};
use crate::check::{self, InlineChecks, MAX_SITES, Plane, PlaneSet};
use crate::ir::{
    Binding, Inst, InstData as ScalarInst, Kernel, ObservedVariable, Place, Scope, Site, SiteAction, StorageClass,
    Variable, VariableSpace, Width,
};

/// The largest workgroup whose groups fit the bits of a cell.
const MAX_INVOCATIONS: u32 = 1 << 16;

/// What an access does.
#[derive(Clone, Copy, Debug)]
pub(super) struct CheckedAccess {
    pub(super) site: Site,
    pub(super) width: Width,
    pub(super) writes: bool,
    pub(super) private: bool,
    /// Whether the memory is that of the workgroup.
    pub(super) shared: bool,
    /// Whether no check of the kernel reads this memory: then its cells of reads need no test.
    pub(super) unread: bool,
    /// Whether the kernel only reads through the binding: what wrote the memory has another reference, so that no order
    /// of accesses in the dispatch settles it.
    pub(super) only_reads: bool,
}

/// Whether checks of a kernel may be settled by its machine code.
fn is_inline(kernel: &Kernel) -> bool {
    let looks_up = |inst: &ScalarInst| matches!(inst, ScalarInst::BufferAt { .. } | ScalarInst::BufferNear { .. });
    kernel.inline_checks
        && kernel.sites.len() <= MAX_SITES
        && kernel.invocations() <= MAX_INVOCATIONS
        && !kernel.insts.values().any(looks_up)
        && !has_fences(kernel)
}

/// Whether a kernel reports memory barriers: it does unless control barriers stand for all of them.
pub(in crate::vectorize) fn has_fences(kernel: &Kernel) -> bool {
    let mut insts = kernel.layout.iter().flat_map(|&block| &kernel.blocks[block].insts);
    insts.any(|&inst| match kernel.insts[inst] {
        ScalarInst::Sync { site, .. } => matches!(kernel.sites[site].action, SiteAction::Fence { .. }),
        _ => false,
    })
}

/// Index of the first of a descriptor's slices of planes, which follow the kernel's descriptors.
pub(in crate::vectorize) fn first_slice(checks: &InlineChecks, descriptors: u32, descriptor: u32) -> Option<u32> {
    let at = checks.descriptors.iter().position(|&known| known == descriptor)?;
    Some(descriptors + 4 * at as u32)
}

/// The memory that the checks of a kernel concern.
pub(in crate::vectorize) fn inline_checks(
    kernel: &Kernel,
    dropped: &EntitySet<Inst>,
    (mutual, reads): (&EntitySet<Binding>, &CheckedReads),
    descriptors: &impl Fn(Binding) -> u32,
) -> InlineChecks {
    let mut checks = InlineChecks::default();
    if !is_inline(kernel) {
        return checks;
    }
    let mut shared = 0;
    let mut firsts = Vec::new();
    for data in kernel.variables.values() {
        firsts.push(shared);
        if data.space == VariableSpace::Workgroup {
            shared += data.bytes.next_multiple_of(16);
        }
    }
    let written = check::written_bindings(kernel);
    let mut privacies = Privacies::new();
    let insts = || kernel.layout.iter().flat_map(|&block| &kernel.blocks[block].insts);
    for &inst in insts().filter(|&&inst| !dropped.contains(inst)) {
        let (site, place, width) = match kernel.insts[inst] {
            ScalarInst::Check { site, ref place, width } => (site, place, width),
            ScalarInst::Sync { site, place: Some(ref place), .. } if is_marked_atomic(kernel, mutual, place) => {
                (site, place, Width::Word)
            }
            _ => continue,
        };
        let grain = width.bytes();
        let privacy = Privacy::of(&kernel.sites[site].action);
        match (place, descriptor_of(kernel, place, descriptors)) {
            (_, Some(number)) => {
                let at = checks.descriptors.iter().position(|&known| known == number).unwrap_or_else(|| {
                    checks.descriptors.push(number);
                    checks.planes.push(PlaneSet::NONE);
                    checks.grains.push(grain);
                    checks.only_read.push(binding_of(kernel, place).is_some_and(|binding| !written.contains(binding)));
                    privacies.descriptors.push(Privacy::NoAccess);
                    checks.planes.len() - 1
                });
                checks.only_read[at] &= matches!(kernel.sites[site].action, SiteAction::Read(_));
                privacies.descriptors[at] = privacies.descriptors[at].and(privacy);
                checks.grains[at] = grain_of_both(checks.grains[at], grain);
                checks.planes[at] = checks.planes[at].or(planes(kernel, &kernel.sites[site].action, place, reads));
                if !checks.sites.contains(&(site, number)) {
                    checks.sites.push((site, number));
                }
            }
            (&Place::Variable { variable, .. }, None) => {
                let variable = ObservedVariable::new(kernel, variable, firsts[variable.as_u32() as usize]);
                let at = checks.variables.iter().position(|known| *known == variable).unwrap_or_else(|| {
                    checks.variables.push(variable);
                    checks.variable_grains.push(grain);
                    privacies.variables.push(Privacy::NoAccess);
                    checks.variables.len() - 1
                });
                privacies.variables[at] = privacies.variables[at].and(privacy);
                checks.variable_grains[at] = grain_of_both(checks.variable_grains[at], grain);
            }
            (&Place::Buffer { .. }, None) if !is_input(kernel, place) => {
                privacies.anywhere = privacies.anywhere.and(privacy);
            }
            _ => {}
        }
    }
    checks.private = privacies.of_descriptors();
    checks.variable_private = privacies.of_variables();
    // Atomics access words, and a buffer that is only known when the kernel runs may be any.
    let has_words = |&inst: &Inst| match kernel.insts[inst] {
        ScalarInst::Sync { place: Some(_), .. } => true,
        ScalarInst::Check { ref place, .. } => {
            matches!(place, Place::Buffer { .. }) && descriptor_of(kernel, place, descriptors).is_none()
        }
        _ => false,
    };
    if insts().any(has_words) {
        checks.grains.iter_mut().chain(&mut checks.variable_grains).for_each(|grain| *grain = WORD);
    }
    checks
}

/// The bytes that a cell stands for of memory with accesses of these two sizes: an access has one cell, or
/// its word has a history.
fn grain_of_both(one: u32, other: u32) -> u32 {
    if one == other { one } else { WORD }
}

/// The bytes of a word.
const WORD: u32 = 4;

/// The planes that machine code may write at an access to a buffer: see `cells.rs`.
fn planes(kernel: &Kernel, action: &SiteAction, place: &Place, reads: &CheckedReads) -> PlaneSet {
    let (wrote, has_read) = (PlaneSet::of(Plane::Wrote), PlaneSet::of(Plane::HasRead));
    match action {
        // What nothing writes has no cells.
        SiteAction::Read(_) if is_input(kernel, place) => has_read,
        SiteAction::Read(_) => has_read.and(Plane::Read),
        // A write ends the reads before it.
        SiteAction::Write(_) if reads.have(kernel, place) => wrote.and(Plane::Written).and(Plane::Read),
        SiteAction::Write(_) => wrote.and(Plane::Written),
        // Those that are in machine code are marked only.
        _ => wrote.or(has_read),
    }
}

/// The descriptor of a place, if it is a buffer whose number is known.
pub(super) fn descriptor_of(kernel: &Kernel, place: &Place, first: &impl Fn(Binding) -> u32) -> Option<u32> {
    let Place::Buffer { buffer, .. } = *place else { return None };
    let Some(&ScalarInst::Buffer { binding, index }) = kernel.definition(buffer) else { return None };
    let data = &kernel.bindings[binding];
    let index = kernel.constant(index).filter(|&index| index < u64::from(data.count))?;
    (!data.kind.is_image()).then(|| first(binding) + index as u32)
}

/// Whether no binding that the kernel writes has a part of the place's memory.
pub(super) fn is_input(kernel: &Kernel, place: &Place) -> bool {
    binding_of(kernel, place).is_some_and(|binding| kernel.inputs_apart.contains(binding))
}

/// The binding of a place, if it is a buffer of a known one.
fn binding_of(kernel: &Kernel, place: &Place) -> Option<Binding> {
    let Place::Buffer { buffer, .. } = *place else { return None };
    match kernel.definition(buffer) {
        Some(&ScalarInst::Buffer { binding, .. }) => Some(binding),
        _ => None,
    }
}

/// Whether the kernel only reads through the binding of a descriptor.
pub(super) fn is_only_read(checks: &InlineChecks, descriptor: Option<u32>) -> bool {
    checks
        .descriptors
        .iter()
        .zip(&checks.only_read)
        .any(|(&number, &only_read)| only_read && Some(number) == descriptor)
}

/// The bindings whose memory the kernel accesses by relaxed atomics of whole words at device scope only. In memory that
/// is no other's they are mutually ordered, and order nothing else.
pub(in crate::vectorize) fn mutual_bindings(kernel: &Kernel) -> EntitySet<Binding> {
    let (mut mutual, mut others): (EntitySet<Binding>, EntitySet<Binding>) = Default::default();
    for &inst in kernel.layout.iter().flat_map(|&block| &kernel.blocks[block].insts) {
        let (site, place, bytes) = match kernel.insts[inst] {
            ScalarInst::Check { site, ref place, .. } => (site, place, 0),
            ScalarInst::Sync { site, place: Some(ref place), bytes, .. } => (site, place, bytes),
            _ => continue,
        };
        let Place::Buffer { buffer, .. } = *place else { continue };
        let Some(&ScalarInst::Buffer { binding, .. }) = kernel.definition(buffer) else { return EntitySet::new() };
        let action = &kernel.sites[site].action;
        let fits = bytes == 4 && check::is_relaxed(action) && check::is_atomic_of(action, Scope::Device);
        if fits {
            mutual.insert(binding)
        } else {
            others.insert(binding)
        };
    }
    let is_image = |binding: Binding| kernel.bindings[binding].kind.is_image();
    let mut all = EntitySet::new();
    all.extend(mutual.iter().filter(|&binding| !others.contains(binding) && !is_image(binding)));
    all
}

/// Whether machine code only marks what the atomics of a place access.
pub(super) fn is_marked_atomic(kernel: &Kernel, mutual: &EntitySet<Binding>, place: &Place) -> bool {
    let Place::Buffer { buffer, .. } = *place else { return false };
    matches!(kernel.definition(buffer), Some(ScalarInst::Buffer { binding, .. }) if mutual.contains(*binding))
}

/// A site of plain accesses whose class is that of the place.
pub(super) fn plain(kernel: &Kernel, site: Site, width: Width, shared: bool) -> Option<CheckedAccess> {
    let (access, writes) = match kernel.sites[site].action {
        SiteAction::Read(access) => (access, false),
        SiteAction::Write(access) => (access, true),
        _ => return None,
    };
    let expected = if shared { StorageClass::Workgroup } else { StorageClass::Uniform };
    let private = access.is_private();
    let checked = CheckedAccess { site, width, writes, private, shared, unread: false, only_reads: false };
    (access.class == expected).then_some(checked)
}

/// The memory that a kernel reads as far as that is reported.
#[derive(Debug, Default)]
pub(in crate::vectorize) struct CheckedReads {
    bindings: EntitySet<Binding>,
    variables: EntitySet<Variable>,
    /// Whether it may be that of any binding: through another one that is only read, too.
    anywhere: bool,
}

impl CheckedReads {
    /// Of a kernel without these checks.
    pub(in crate::vectorize) fn new(kernel: &Kernel, dropped: &EntitySet<Inst>) -> Self {
        let mut all = Self::default();
        let insts = kernel.layout.iter().flat_map(|&block| &kernel.blocks[block].insts);
        for &inst in insts.filter(|&&inst| !dropped.contains(inst)) {
            let (site, place) = match kernel.insts[inst] {
                ScalarInst::Check { site, place, .. } | ScalarInst::Sync { site, place: Some(place), .. } => {
                    (site, place)
                }
                _ => continue,
            };
            if matches!(kernel.sites[site].action, SiteAction::Write(_)) {
                continue;
            }
            match place {
                Place::Variable { variable, .. } => _ = all.variables.insert(variable),
                Place::Buffer { buffer, .. } => match kernel.definition(buffer) {
                    Some(&ScalarInst::Buffer { binding, .. }) => _ = all.bindings.insert(binding),
                    _ => all.anywhere = true,
                },
                Place::Push { .. } => {}
            }
        }
        let written = check::written_bindings(kernel);
        let is_only_read = |binding| !written.contains(binding) && !kernel.inputs_apart.contains(binding);
        all.anywhere |= all.bindings.iter().any(is_only_read);
        all
    }

    pub(super) fn have(&self, kernel: &Kernel, place: &Place) -> bool {
        match *place {
            Place::Variable { variable, .. } => self.variables.contains(variable),
            Place::Push { .. } => false,
            Place::Buffer { buffer, .. } => match kernel.definition(buffer) {
                Some(&ScalarInst::Buffer { binding, .. }) => self.anywhere || self.bindings.contains(binding),
                _ => true,
            },
        }
    }
}
