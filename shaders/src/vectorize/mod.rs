//! Vectorizer: translates the scalar IR of one invocation to SIMD IR for a workgroup, 16 invocations per subgroup.
//!
//! `prepare` transforms the scalar IR: canonical loops, merged workgroups, scalarized loops. `masks` turns control flow
//! into masks and jumps, following [`Linearization`](crate::analysis::Linearization). `subgroup_loop` splits the code at
//! barriers and loops over the subgroups. `values` keeps the SIMD form of each scalar value. `arithmetic`, `access`,
//! `atomic`, `atomic_reduction`, `buffer_address`, `subgroup_ops`, `image` and `sample` translate instructions.
//! `bounded_loops` finds the loops that need no stop-flag poll.

mod access;
mod arithmetic;
mod atomic;
mod atomic_reduction;
mod bounded_loops;
mod buffer_address;
mod image;
mod masks;
mod prepare;
mod sample;
mod subgroup_loop;
mod subgroup_ops;
mod values;

use cranelift_entity::{EntitySet, SecondaryMap};
use foldhash::HashMap;

use self::prepare::{MAX_ITERATIONS, Prepared, Serial, prepare};
use super::simd::builder::Builder;
use super::simd::ssa::Variable;
use super::simd::{Block, Kernel, LANES, Type, Value};
use crate::analysis::{Ranges, Uniformity};
use crate::ir;

/// Scalar instructions of a small kernel, at most: see [`Widen::is_small_kernel`].
const MAX_SMALL_KERNEL: usize = 256;

/// The reason why a kernel cannot be vectorized: the interpreter has to run it.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub struct Unsupported(pub String);

/// Vectorizes a kernel that the verifier accepts and that has basic operations only, after lowering.
///
/// # Errors
///
/// The kernel cannot be expressed in SIMD IR, or needs too much memory or code.
pub fn widen(kernel: &ir::Kernel) -> Result<Kernel, Unsupported> {
    let Prepared { kernel, uniformity, merged_workgroups, serial, fillers } = prepare(kernel)?;
    let mut widen = Widen::new(&kernel, &uniformity, merged_workgroups, serial);
    widen.fillers = fillers;
    widen.check()?;
    widen.subgroups()
}

/// The SIMD form of a scalar value that is used in several blocks.
#[derive(Clone, Copy, Debug)]
enum Form {
    /// A SIMD value that is the same everywhere in a subgroup's run, so it needs no variable.
    Outer(Value),
    /// An SSA variable that is written where the value is defined.
    Variable(Variable),
}

struct Widen<'a> {
    kernel: &'a ir::Kernel,
    uniformity: &'a Uniformity,
    builder: Builder,
    /// SIMD forms of the values of the current block.
    local: HashMap<ir::Value, Value>,
    forms: SecondaryMap<ir::Value, Option<Form>>,
    /// Address computations that the image samples of the block share.
    samples: sample::Known,
    /// Temporal divergence: the variable, one element per lane, of each value that is live out of a divergent loop.
    live_outs: HashMap<ir::Value, Variable>,
    /// High words of the 64-bit results of the block, by the value of the low word.
    high_words: HashMap<ir::Value, Value>,
    /// Byte offset of each looked-up address from the start of its buffer, by the result of `buffer_at`.
    address_offsets: HashMap<ir::Value, Value>,
    /// The outermost divergent loop that each of [`Widen::live_outs`] leaves, as index into `Loops::all`.
    exited_loops: HashMap<ir::Value, usize>,
    /// Values that are used outside of their defining block.
    cross_block: EntitySet<ir::Value>,
    /// Results of `element` that are also used as numbers, so that the 32-bit sum has to be computed.
    numbers: EntitySet<ir::Value>,
    /// The scalar block that is being translated.
    block: ir::Block,
    /// Its execution mask.
    exec: Value,
    control: masks::Control,
    subgroup: subgroup_loop::regions::Subgroup,
    /// Block arguments with unspecified values: the parameter is not read after such an edge.
    fillers: EntitySet<ir::Value>,
    /// First descriptor of each binding.
    descriptors: SecondaryMap<ir::Binding, u32>,
    /// Byte offset of each variable in its space.
    variable_offsets: SecondaryMap<ir::Variable, u32>,
    /// Value ranges, to prove accesses to variables in bounds; `None` if the kernel has no variables.
    ranges: Option<Ranges>,
    /// Atomics that may be executed once, after the last subgroup.
    reducible_atomics: EntitySet<ir::Inst>,
    /// Those of them that are reduced in registers.
    reductions: Vec<atomic_reduction::AtomicReduction>,
    /// Upper bound of the trip count of each loop in [`Loops::all`](crate::analysis::Loops::all) that needs no stop-flag
    /// poll; `None`: the loop polls.
    trip_counts: Vec<Option<u64>>,
    /// Loops that run for one lane at a time.
    serial: Serial,
    /// Whether push constants are loaded once before the subgroup loop. In a kernel of few instructions one load per
    /// subgroup costs more than a register that stays occupied in the whole kernel.
    is_small_kernel: bool,
    /// Low and high words of the addresses that are looked up. Push constants among them are loaded before the subgroup
    /// loop, so that the look-up is loop-invariant, too.
    address_words: EntitySet<ir::Value>,
    /// Known exclusive upper bound of the index of the load that is being translated, from a scalarized loop.
    index_bound: Option<ir::Value>,
}

impl<'a> Widen<'a> {
    fn new(kernel: &'a ir::Kernel, uniformity: &'a Uniformity, merged_workgroups: u32, serial: Serial) -> Self {
        let mut simd = Kernel::new(kernel.name.clone());
        simd.merged_workgroups = merged_workgroups;
        let [x, y, z] = kernel.workgroup_size;
        simd.workgroup_size = [x / merged_workgroups.max(1), y, z];
        simd.work = kernel.work.clone();
        simd.shared_bytes = kernel.shared_bytes();
        simd.releases = atomic::releases(kernel);
        let mut trip_counts = bounded_loops::bounded_trip_counts(kernel, &uniformity.loops, &uniformity.dominators);
        for (found, trip_count) in uniformity.loops.all.iter().zip(&mut trip_counts) {
            if serial.headers.contains(found.header) {
                *trip_count = Some(u64::from(MAX_ITERATIONS) + 2);
            }
        }
        simd.max_steps = bounded_loops::max_steps(kernel, &uniformity.loops, &trip_counts);
        let mut descriptors = SecondaryMap::new();
        for (binding, data) in &kernel.bindings {
            descriptors[binding] = simd.descriptors;
            simd.descriptors += data.count;
        }
        let mut variable_offsets = SecondaryMap::new();
        let mut next = [0; 2];
        for (variable, data) in &kernel.variables {
            if data.space == ir::VariableSpace::Constant {
                variable_offsets[variable] = simd.tables.len() as u32 * 4;
                simd.tables.extend(&data.words);
                simd.tables.resize(simd.tables.len().next_multiple_of(4), 0);
                continue;
            }
            let next = &mut next[usize::from(data.space == ir::VariableSpace::Private)];
            variable_offsets[variable] = *next;
            *next += data.bytes.next_multiple_of(16);
        }
        let mut builder = Builder::new(simd);
        let exec = builder.constant(Type::Mask, super::simd::builder::ALL);
        let subgroup = subgroup_loop::regions::Subgroup::new(&mut builder, kernel);
        let insts: usize = kernel.layout.iter().map(|&block| kernel.blocks[block].insts.len()).sum();
        let mut widen = Self {
            kernel,
            uniformity,
            builder,
            local: HashMap::default(),
            samples: sample::Known::default(),
            forms: SecondaryMap::new(),
            live_outs: HashMap::default(),
            high_words: HashMap::default(),
            address_offsets: HashMap::default(),
            exited_loops: HashMap::default(),
            cross_block: EntitySet::new(),
            numbers: EntitySet::new(),
            block: kernel.layout[0],
            exec,
            control: masks::Control::default(),
            subgroup,
            fillers: EntitySet::new(),
            descriptors,
            variable_offsets,
            ranges: (!kernel.variables.is_empty()).then(|| Ranges::new(kernel)),
            reducible_atomics: EntitySet::new(),
            reductions: Vec::new(),
            trip_counts,
            serial,
            is_small_kernel: insts <= MAX_SMALL_KERNEL,
            address_words: buffer_address::address_words(kernel),
            index_bound: None,
        };
        widen.find_cross_block();
        widen.find_numbers();
        widen.find_reducible_atomics();
        widen
    }

    /// Rejects kernels that have no SIMD form.
    fn check(&mut self) -> Result<(), Unsupported> {
        let subgroups = u64::from(self.kernel.invocations().div_ceil(LANES));
        let private = u64::from(self.kernel.private_bytes()) * u64::from(LANES) * subgroups;
        if private > u64::from(u32::MAX / 2) {
            return Err(Unsupported(format!("{private} bytes of private memory for a workgroup")));
        }
        let kernel = self.kernel;
        for &block in &kernel.layout {
            self.block = block;
            for &inst in &kernel.blocks[block].insts {
                if let ir::InstData::HighWord { of } = kernel.insts[inst]
                    && self.uniformity.defining_block(of) != Some(block)
                {
                    return Err(Unsupported("a 64-bit atomic and its high word are in different blocks".into()));
                }
                if let ir::InstData::Load { place, .. }
                | ir::InstData::Store { place, .. }
                | ir::InstData::Atomic { place, .. } = &kernel.insts[inst]
                    && let ir::Place::Variable { variable, offset } = *place
                    && self.is_private(variable)
                    && !self.offset(offset).is_aligned()
                {
                    return Err(Unsupported(format!("{variable} is accessed at offsets that are no multiples of 4")));
                }
            }
        }
        Ok(())
    }

    /// Finds offsets with a use other than addressing, or with a use as temporally divergent value: these are needed as
    /// 32-bit numbers.
    fn find_numbers(&mut self) {
        let kernel = self.kernel;
        for &block in &kernel.layout {
            for &inst in &kernel.blocks[block].insts {
                let data = &kernel.insts[inst];
                let offset = match data {
                    ir::InstData::Load { place, .. }
                    | ir::InstData::Store { place, .. }
                    | ir::InstData::Atomic { place, .. } => Some(place.offset()),
                    ir::InstData::Reaches { offset, .. } => Some(*offset),
                    ir::InstData::Element { base, .. } => Some(*base),
                    _ => None,
                };
                let mut pending = offset;
                data.for_each_use(|value| {
                    let addresses = pending == Some(value) && !self.uniformity.is_temporally_divergent(value, block);
                    if addresses {
                        pending = None;
                    } else {
                        self.numbers.insert(value);
                    }
                });
            }
        }
        // The sum is computed from the base, so the base of a number is a number, too. Definitions precede uses in the
        // layout, so one backward pass suffices.
        for &block in kernel.layout.iter().rev() {
            for &inst in kernel.blocks[block].insts.iter().rev() {
                if let (ir::InstData::Element { base, .. }, Some(result)) = (&kernel.insts[inst], kernel.results[inst])
                    && self.numbers.contains(result)
                {
                    self.numbers.insert(*base);
                }
            }
        }
    }
}
