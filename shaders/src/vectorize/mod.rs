//! Widening: the scalar IR of one invocation becomes code for a workgroup, 16 invocations at a time.
//!
//! `control` turns branches into masks and jumps, as [`Flow`](crate::analysis::Flow) says; `subgroups` runs that for each subgroup and splits
//! it at barriers; `prepare` has made loops ready; `values` knows in which form a value is; `pure`, `address`, `access` and `atomic` translate
//! instructions.

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

/// Most instructions of a kernel in which a load more for each subgroup counts.
const SHORT: usize = 256;

/// Why a kernel cannot be widened: the interpreter has to run it.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub struct Unsupported(pub String);

/// Widens a kernel that the verifier accepts and in which lowering has left basic operations only.
///
/// # Errors
///
/// What the SIMD form cannot express, or not in reasonable space.
pub fn widen(kernel: &ir::Kernel) -> Result<Kernel, Unsupported> {
    let Prepared { kernel, uniformity, abreast, serial, fillers } = prepare(kernel)?;
    let mut widen = Widen::new(&kernel, &uniformity, abreast, serial);
    widen.fillers = fillers;
    widen.check()?;
    widen.subgroups()
}

/// What a scalar value became.
#[derive(Clone, Copy, Debug)]
enum Form {
    /// A value that can be used everywhere.
    Outer(Value),
    /// Written to this variable where it is defined.
    Variable(Variable),
}

struct Widen<'a> {
    kernel: &'a ir::Kernel,
    uniformity: &'a Uniformity,
    builder: Builder,
    /// Values of the block that is translated now.
    local: HashMap<ir::Value, Value>,
    forms: SecondaryMap<ir::Value, Option<Form>>,
    /// What samples of the block have in common.
    samples: sample::Known,
    /// What lanes that left a loop took with them.
    frozen: HashMap<ir::Value, Variable>,
    /// High words of what 64-bit atomics of the block gave.
    highs: HashMap<ir::Value, Value>,
    /// How far behind the beginnings of the buffers that the block looked up their addresses lie.
    behind: HashMap<ir::Value, Value>,
    /// The outermost divergent loop that lanes leave with each of them.
    left: HashMap<ir::Value, usize>,
    /// Values that other blocks use.
    shared: EntitySet<ir::Value>,
    /// Offsets of elements that are used as numbers, too.
    numbers: EntitySet<ir::Value>,
    /// The scalar block that is translated now.
    block: ir::Block,
    /// Its lanes.
    exec: Value,
    control: masks::Control,
    subgroup: subgroup_loop::regions::Subgroup,
    /// Arguments that stand for nothing.
    fillers: EntitySet<ir::Value>,
    /// First descriptor of each binding.
    descriptors: SecondaryMap<ir::Binding, u32>,
    /// Byte offset of each variable in its space.
    places: SecondaryMap<ir::Variable, u32>,
    /// How large offsets can be, where there is memory of a known size.
    ranges: Option<Ranges>,
    /// Atomics that may be done behind the last subgroup.
    tallied: EntitySet<ir::Inst>,
    /// Those that are.
    tallies: Vec<atomic_reduction::Tally>,
    /// By place in [`Loops::all`](crate::analysis::Loops::all): trips of loops that need not ask whether to stop.
    short: Vec<Option<u64>>,
    /// Loops for one lane after another.
    serial: Serial,
    /// Whether the kernel is so short that a load more for each subgroup counts, and a register for all of it does not.
    is_short: bool,
    /// Words of addresses, which are looked up as seldom as can be.
    looked_up: EntitySet<ir::Value>,
    /// What the index of the load that is translated now is below, if the loop around it asked for that.
    below: Option<ir::Value>,
}

impl<'a> Widen<'a> {
    fn new(kernel: &'a ir::Kernel, uniformity: &'a Uniformity, abreast: u32, serial: Serial) -> Self {
        let mut simd = Kernel::new(kernel.name.clone());
        simd.abreast = abreast;
        let [x, y, z] = kernel.workgroup_size;
        simd.workgroup_size = [x / abreast.max(1), y, z];
        simd.work = kernel.work.clone();
        simd.shared_bytes = kernel.shared_bytes();
        simd.publishes = atomic::publishes(kernel);
        let mut short = bounded_loops::short_loops(kernel, &uniformity.loops, &uniformity.dominators);
        for (found, short) in uniformity.loops.all.iter().zip(&mut short) {
            if serial.headers.contains(found.header) {
                *short = Some(u64::from(MAX_ITERATIONS) + 2);
            }
        }
        simd.most_steps = bounded_loops::most_steps(kernel, &uniformity.loops, &short);
        let mut descriptors = SecondaryMap::new();
        for (binding, data) in &kernel.bindings {
            descriptors[binding] = simd.descriptors;
            simd.descriptors += data.count;
        }
        let mut places = SecondaryMap::new();
        let mut next = [0; 2];
        for (variable, data) in &kernel.variables {
            if data.space == ir::VariableSpace::Constant {
                places[variable] = simd.tables.len() as u32 * 4;
                simd.tables.extend(&data.words);
                simd.tables.resize(simd.tables.len().next_multiple_of(4), 0);
                continue;
            }
            let next = &mut next[usize::from(data.space == ir::VariableSpace::Private)];
            places[variable] = *next;
            *next += data.bytes.next_multiple_of(16);
        }
        let mut builder = Builder::new(simd);
        let exec = builder.constant(Type::Mask, super::simd::builder::ALL);
        let subgroup = subgroup_loop::regions::Subgroup::new(&mut builder, kernel);
        let mut widen = Self {
            kernel,
            uniformity,
            builder,
            local: HashMap::default(),
            samples: sample::Known::default(),
            forms: SecondaryMap::new(),
            frozen: HashMap::default(),
            highs: HashMap::default(),
            behind: HashMap::default(),
            left: HashMap::default(),
            shared: EntitySet::new(),
            numbers: EntitySet::new(),
            block: kernel.layout[0],
            exec,
            control: masks::Control::default(),
            subgroup,
            fillers: EntitySet::new(),
            descriptors,
            places,
            ranges: (!kernel.variables.is_empty()).then(|| Ranges::new(kernel)),
            tallied: EntitySet::new(),
            tallies: Vec::new(),
            short,
            serial,
            is_short: kernel.layout.iter().map(|&block| kernel.blocks[block].insts.len()).sum::<usize>() <= SHORT,
            looked_up: buffer_address::looked_up(kernel),
            below: None,
        };
        widen.find_shared();
        widen.find_numbers();
        widen.find_tallied();
        widen
    }

    /// Refuses what has no SIMD form.
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
                    && self.uniformity.home(of) != Some(block)
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

    /// Finds offsets that are used for something else than to address memory, or after a loop that lanes left at
    /// different times.
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
                let mut left = offset;
                data.for_each_use(|value| {
                    let addresses = left == Some(value) && !self.uniformity.is_frozen(value, block);
                    if addresses {
                        left = None;
                    } else {
                        self.numbers.insert(value);
                    }
                });
            }
        }
        // What a number is made of is needed as a number.
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
