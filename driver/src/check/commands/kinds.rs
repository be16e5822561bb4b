//! Kinds of accesses that later commands tell apart: a dependency may make a value visible to one type of access and
//! not to another one, and atomics race with plain accesses only. Where a dispatch has several kinds of accesses to one
//! byte, the last of each kind counts.

use cranelift_entity::EntitySet;
use spelter_shaders::guest::GuestSlice;
use spelter_shaders::ir::{Binding, BindingKind, InstData, Kernel, Place, Site, SiteAction};

use crate::check::names::KernelNames;

/// The kind of an access.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Kind {
    /// Plain, of storage memory; and all others, where no memory has several kinds.
    Storage,
    Uniform,
    Sampled,
    /// Atomics whose scope includes other commands.
    Atomic,
}

impl Kind {
    pub(super) const ALL: [Self; 4] = [Self::Storage, Self::Uniform, Self::Sampled, Self::Atomic];

    /// Of what a descriptor of this kind reads.
    fn of_reads(kind: BindingKind) -> Self {
        use BindingKind::{CombinedImageSampler, SampledImage, UniformBuffer, UniformTexelBuffer};
        match kind {
            UniformBuffer => Self::Uniform,
            SampledImage | CombinedImageSampler | UniformTexelBuffer => Self::Sampled,
            _ => Self::Storage,
        }
    }
}

/// A set of kinds.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct KindSet(u8);

impl KindSet {
    fn with(self, kind: Kind) -> Self {
        Self(self.0 | 1 << kind as u8)
    }

    fn or(self, other: Self) -> Self {
        Self(self.0 | other.0)
    }

    fn are_several(self) -> bool {
        self.0.count_ones() > 1
    }
}

/// The kinds of accesses of a kernel.
#[derive(Debug)]
pub(in crate::check) struct Kinds {
    /// Of what each descriptor reads, by its index in a dispatch.
    reads: Vec<Kind>,
    atomics: EntitySet<Site>,
    /// Of the accesses through each descriptor.
    all: Vec<KindSet>,
    /// Of those at device addresses.
    addresses: KindSet,
}

impl Kinds {
    pub(in crate::check) fn new(names: &KernelNames) -> Self {
        let kernel = &names.kernel;
        let mut atomics = EntitySet::new();
        atomics.extend(kernel.sites.keys().filter(|&site| names.is_atomic(site)));
        let (of_bindings, elsewhere) = accesses(kernel, &atomics);
        let (mut reads, mut all) = (Vec::new(), Vec::new());
        for (binding, data) in &kernel.bindings {
            let kind = Kind::of_reads(data.kind);
            // A pointer that is a value is one to storage buffers.
            let more = if kind == Kind::Storage { elsewhere } else { KindSet::default() };
            let own = of_bindings.get(binding.as_u32() as usize).copied().unwrap_or_default();
            reads.extend(std::iter::repeat_n(kind, data.count as usize));
            all.extend(std::iter::repeat_n(own.or(more), data.count as usize));
        }
        Self { reads, atomics, all, addresses: elsewhere }
    }

    /// Whether some memory of a dispatch may have accesses of several kinds.
    pub(in crate::check) fn meet(&self, buffers: &[GuestSlice]) -> bool {
        let every = self.all.iter().fold(self.addresses, |all, kinds| all.or(*kinds));
        if !every.are_several() {
            return false;
        }
        let kinds = self.all.iter().copied().chain(std::iter::repeat(self.addresses));
        let mut ranges: Vec<(u64, u64, KindSet)> = buffers
            .iter()
            .zip(kinds)
            .filter(|(slice, _)| !slice.is_empty())
            .map(|(slice, kinds)| (slice.address() as u64, slice.address() as u64 + slice.len(), kinds))
            .collect();
        ranges.sort_unstable_by_key(|(start, end, _)| (*start, *end));
        // The end and the kinds of those ranges so far that overlap directly or through others.
        let (mut last, mut met) = (0, KindSet::default());
        ranges.into_iter().any(|(start, end, kinds)| {
            (last, met) = if start < last { (last.max(end), met.or(kinds)) } else { (end, kinds) };
            met.are_several()
        })
    }

    /// The kind of an access by an instruction through a descriptor.
    #[inline]
    pub(super) fn of(&self, site: Site, reference: u32) -> Kind {
        if self.atomics.contains(site) { Kind::Atomic } else { self.of_descriptor(reference) }
    }

    /// The kind of what a descriptor reads.
    pub(super) fn of_descriptor(&self, reference: u32) -> Kind {
        self.reads.get(reference as usize).copied().unwrap_or(Kind::Storage)
    }
}

/// The kinds of the accesses through each binding, and through pointers that are values.
fn accesses(kernel: &Kernel, atomics: &EntitySet<Site>) -> (Vec<KindSet>, KindSet) {
    let mut of_bindings = vec![KindSet::default(); kernel.bindings.len()];
    let mut elsewhere = KindSet::default();
    for &inst in kernel.layout.iter().flat_map(|&block| &kernel.blocks[block].insts) {
        let (site, memory) = match kernel.insts[inst] {
            InstData::Check { site, place: Place::Buffer { buffer, .. }, .. }
            | InstData::Sync { site, place: Some(Place::Buffer { buffer, .. }), .. } => (site, buffer),
            InstData::CheckImage { site, image, .. } => (site, image),
            _ => continue,
        };
        let plain = |binding: Option<Binding>| match kernel.sites[site].action {
            SiteAction::Read(_) => {
                binding.map_or(Kind::Storage, |binding| Kind::of_reads(kernel.bindings[binding].kind))
            }
            _ => Kind::Storage,
        };
        let kind = |binding| if atomics.contains(site) { Kind::Atomic } else { plain(binding) };
        match kernel.definition(memory) {
            Some(&InstData::Buffer { binding, .. }) => {
                let kinds = &mut of_bindings[binding.as_u32() as usize];
                *kinds = kinds.with(kind(Some(binding)));
            }
            _ => elsewhere = elsewhere.with(kind(None)),
        }
    }
    (of_bindings, elsewhere)
}
