//! Plans of a kernel: all that the vectorizer decides before it emits code.

use cranelift_entity::{EntitySet, SecondaryMap};
use foldhash::HashMap;

use super::access::cost::AccessCosts;
use super::access::plan::AccessPlans;
use super::barriers::check_barriers;
use super::inline_check::eligible::{self, CheckedReads};
use super::outcome::Unsupported;
use super::prepare::Prepared;
use super::sample::selection::inline_samples;
use super::{bounded_loops, ordered_accesses};
use crate::analysis::{Ranges, Uniformity};
use crate::check::InlineChecks;
use crate::ir::{self, Binding, Block, Inst, InstData as ScalarInst, Kernel, Place, Value, Width};
use crate::simd::LANES;

/// Scalar instructions of a small kernel, at most: see [`Plans::is_small_kernel`].
const MAX_SMALL_KERNEL: usize = 256;

/// The decisions about a kernel.
pub(super) struct Plans {
    pub(super) accesses: AccessPlans,
    /// Convergent blocks: they run for all of the subgroup's lanes.
    pub(super) convergent: EntitySet<Block>,
    /// Values that are used outside of their defining block.
    pub(super) cross_block: EntitySet<Value>,
    /// Temporal divergence: the values that are live out of a divergent loop, with the outermost such loop that they
    /// leave, as index into `Loops::all`.
    pub(super) live_outs: Vec<(Value, Option<usize>)>,
    /// Results of `element` that are also used as numbers, so that the 32-bit sum has to be computed.
    pub(super) materialized: EntitySet<Value>,
    pub(super) layout: ResourceLayout,
    /// The memory to which machine code checks accesses itself.
    pub(super) inline: InlineChecks,
    /// The memory that other checks and syncs are of that read.
    pub(super) checked_reads: CheckedReads,
    /// The bindings whose atomics are only marked.
    pub(super) mutual_bindings: EntitySet<Binding>,
    /// Checks and syncs of accesses that race with nothing.
    pub(super) ordered_accesses: EntitySet<Inst>,
    /// Value ranges, to prove accesses to variables in bounds; `None` if the kernel has no variables.
    pub(super) ranges: Option<Ranges>,
    /// Upper bound of the trip count of each loop in [`Loops::all`](crate::analysis::Loops::all) that needs no
    /// stop-flag poll; `None`: the loop polls.
    pub(super) trip_counts: Vec<Option<u64>>,
    /// Whether push constants are loaded once before the subgroup loop. In a kernel of few instructions one load per
    /// subgroup costs more than a register that stays occupied in the whole kernel.
    pub(super) is_small_kernel: bool,
    /// Low and high words of the addresses that are looked up. Push constants among them are loaded before the subgroup
    /// loop, so that the look-up is loop-invariant, too.
    pub(super) address_words: EntitySet<Value>,
    /// The image samples and reads that become instructions.
    pub(super) inline_samples: EntitySet<Inst>,
    /// Block arguments with unspecified values: the parameter is not read after such an edge.
    pub(super) fillers: EntitySet<Value>,
}

/// Numbers of descriptors and offsets of variables.
#[derive(Debug, Default)]
pub(super) struct ResourceLayout {
    /// First descriptor of each binding.
    pub(super) descriptors: SecondaryMap<Binding, u32>,
    pub(super) descriptor_count: u32,
    /// Byte offset of each variable in its space.
    pub(super) variable_offsets: SecondaryMap<ir::Variable, u32>,
    /// The words of constant variables.
    pub(super) tables: Vec<u32>,
}

impl Plans {
    /// Decides about a prepared kernel.
    ///
    /// # Errors
    ///
    /// The kernel has no SIMD form.
    pub(super) fn new(prepared: &Prepared, costs: &AccessCosts) -> Result<Self, Unsupported> {
        let Prepared { kernel, uniformity, merged_workgroups, fillers, .. } = prepared;
        let convergent = uniformity.convergent_blocks(kernel);
        // The last subgroup may have padding lanes, and so has one with merged workgroups.
        let full = kernel.invocations().is_multiple_of(LANES) && *merged_workgroups == 1;
        let all_active = if full { convergent.clone() } else { EntitySet::new() };
        let accesses = AccessPlans::new(kernel, uniformity, &all_active, costs);
        check(kernel, uniformity, &accesses)?;
        check_barriers(kernel)?;
        let (cross_block, live_outs) = cross_block(kernel, uniformity, &accesses);
        let insts: usize = kernel.layout.iter().map(|&block| kernel.blocks[block].insts.len()).sum();
        let layout = ResourceLayout::new(kernel);
        let ranges = (!kernel.variables.is_empty()).then(|| Ranges::new(kernel));
        let ordered_accesses = match kernel.inline_checks {
            true => ordered_accesses::ordered_accesses(kernel, ranges.as_ref()),
            false => EntitySet::new(),
        };
        let mutual_bindings = if kernel.inline_checks { eligible::mutual_bindings(kernel) } else { EntitySet::new() };
        let checked_reads = CheckedReads::new(kernel, &ordered_accesses);
        let inline =
            eligible::inline_checks(kernel, &ordered_accesses, (&mutual_bindings, &checked_reads), &|binding| {
                layout.descriptors[binding]
            });
        Ok(Self {
            convergent,
            cross_block,
            live_outs,
            materialized: materialized(kernel, uniformity),
            inline,
            checked_reads,
            ordered_accesses,
            mutual_bindings,
            layout,
            ranges,
            trip_counts: bounded_loops::bounded_trip_counts(kernel, &uniformity.loops, &uniformity.dominators),
            is_small_kernel: insts <= MAX_SMALL_KERNEL,
            address_words: address_words(kernel),
            inline_samples: inline_samples(kernel, uniformity),
            fillers: fillers.clone(),
            accesses,
        })
    }
}

impl ResourceLayout {
    fn new(kernel: &Kernel) -> Self {
        let mut layout = Self::default();
        for (binding, data) in &kernel.bindings {
            layout.descriptors[binding] = layout.descriptor_count;
            layout.descriptor_count += data.count;
        }
        let mut next = [0; 2];
        for (variable, data) in &kernel.variables {
            if data.space == ir::VariableSpace::Constant {
                layout.variable_offsets[variable] = layout.tables.len() as u32 * 4;
                layout.tables.extend(&data.words);
                layout.tables.resize(layout.tables.len().next_multiple_of(4), 0);
                continue;
            }
            let next = &mut next[usize::from(data.space == ir::VariableSpace::Private)];
            layout.variable_offsets[variable] = *next;
            *next += data.bytes.next_multiple_of(16);
        }
        layout
    }
}

/// Rejects kernels that have no SIMD form.
fn check(kernel: &Kernel, uniformity: &Uniformity, accesses: &AccessPlans) -> Result<(), Unsupported> {
    let subgroups = u64::from(kernel.invocations().div_ceil(LANES));
    let private = u64::from(kernel.private_bytes()) * u64::from(LANES) * subgroups;
    if private > u64::from(u32::MAX / 2) {
        return Err(Unsupported(format!("{private} bytes of private memory for a workgroup")));
    }
    for &block in &kernel.layout {
        for &inst in &kernel.blocks[block].insts {
            if let ScalarInst::HighWord { of } = kernel.insts[inst]
                && uniformity.defining_block(of) != Some(block)
            {
                return Err(Unsupported("a 64-bit atomic and its high word are in different blocks".into()));
            }
            let (place, is_word) = match &kernel.insts[inst] {
                ScalarInst::Load { place, width, .. } | ScalarInst::Store { place, width, .. } => {
                    (place, *width == Width::Word)
                }
                ScalarInst::Atomic { place, op, wide, .. } => (place, !op.is_half() && wide.is_none()),
                _ => continue,
            };
            // Sub-word (8- and 16-bit) values and pairs of words: the words of private memory are interleaved by lane.
            if let Place::Variable { variable, .. } = *place
                && kernel.variables[variable].space == ir::VariableSpace::Private
                && !is_word
                && !accesses.at(inst).offset.is_aligned()
            {
                return Err(Unsupported(format!(
                    "parts of {variable} are accessed at offsets that are not multiples of 4"
                )));
            }
        }
    }
    Ok(())
}

/// The values that are used outside of their defining block, and those of them with temporally divergent uses, with the
/// outermost divergent loop that contains the definition but not the use.
fn cross_block(
    kernel: &Kernel,
    uniformity: &Uniformity,
    accesses: &AccessPlans,
) -> (EntitySet<Value>, Vec<(Value, Option<usize>)>) {
    let mut values = EntitySet::new();
    let mut live_outs: Vec<(Value, Option<usize>)> = Vec::new();
    let mut numbers: HashMap<Value, usize> = HashMap::default();
    let (loops, linearization) = (&uniformity.loops, &uniformity.linearization);
    for &block in &kernel.layout {
        let mut note = |value: Value| {
            let Some(definition) = uniformity.defining_block(value) else {
                values.insert(value);
                return;
            };
            if definition == block {
                return;
            }
            values.insert(value);
            if !uniformity.is_temporally_divergent(value, block) {
                return;
            }
            let around = std::iter::successors(loops.of(definition), |&number| loops.all[number].parent);
            let exited = around.take_while(|&number| !loops.contains(number, block));
            let outermost = exited.filter(|&number| linearization.is_divergent(number)).last();
            let number = *numbers.entry(value).or_insert(live_outs.len());
            match live_outs.get_mut(number) {
                // Outer loops have smaller numbers.
                Some((_, noted)) => *noted = [*noted, outermost].into_iter().flatten().min(),
                None => live_outs.push((value, outermost)),
            }
        };
        for &inst in &kernel.blocks[block].insts {
            kernel.insts[inst].for_each_use(&mut note);
            // An access is translated from the parts of its index, which other blocks may define.
            accesses.operands(inst).into_iter().for_each(&mut note);
        }
    }
    (values, live_outs)
}

/// The low and high words of the addresses that are looked up.
fn address_words(kernel: &Kernel) -> EntitySet<Value> {
    let mut words = EntitySet::new();
    for &inst in kernel.layout.iter().flat_map(|&block| &kernel.blocks[block].insts) {
        if let ScalarInst::BufferAt { low, high } | ScalarInst::BufferNear { low, high } = kernel.insts[inst] {
            words.extend([low, high]);
        }
    }
    words
}

/// Finds offsets with a use other than addressing, or with a use as temporally divergent value: these are needed as
/// 32-bit numbers.
fn materialized(kernel: &Kernel, uniformity: &Uniformity) -> EntitySet<Value> {
    let mut numbers = EntitySet::new();
    for &block in &kernel.layout {
        for &inst in &kernel.blocks[block].insts {
            let data = &kernel.insts[inst];
            let mut pending = match data {
                ScalarInst::Load { place, .. } | ScalarInst::Store { place, .. } | ScalarInst::Atomic { place, .. } => {
                    Some(place.offset())
                }
                ScalarInst::Reaches { offset, .. } => Some(*offset),
                ScalarInst::Element { base, .. } => Some(*base),
                _ => None,
            };
            data.for_each_use(|value| {
                let addresses = pending == Some(value) && !uniformity.is_temporally_divergent(value, block);
                if addresses {
                    pending = None;
                } else {
                    numbers.insert(value);
                }
            });
        }
    }
    // The sum is computed from the base, so the base of a number is a number, too. Definitions precede uses in the
    // layout, so one backward pass suffices.
    for &block in kernel.layout.iter().rev() {
        for &inst in kernel.blocks[block].insts.iter().rev() {
            if let (ScalarInst::Element { base, .. }, Some(result)) = (&kernel.insts[inst], kernel.results[inst])
                && numbers.contains(result)
            {
                numbers.insert(*base);
            }
        }
    }
    numbers
}
