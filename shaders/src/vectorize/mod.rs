//! Vectorizer: translates the scalar IR of one invocation to SIMD IR for a workgroup, 16 invocations per subgroup.
//!
//! `prepare` transforms the scalar IR: canonical loops, merged workgroups, wider loads. `plans` decides what can
//! be decided before code is emitted, the patterns of memory accesses above all. `masks` turns control flow into masks
//! and jumps, following [`Linearization`](crate::analysis::Linearization). `subgroup_loop` splits the code at barriers
//! and loops over the subgroups. `values` keeps the SIMD form of each scalar value. `arithmetic`, `access`, `atomic`,
//! `buffer_address`, `subgroup_ops`, `image`, `sample`, `check` and `inline_check` translate instructions.
//! `bounded_loops` finds the loops that need no stop-flag poll, `ordered_accesses` the accesses that need no check.

mod access;
mod arithmetic;
mod atomic;
mod bounded_loops;
mod buffer_address;
mod check;
mod image;
mod inline_check;
mod masks;
mod ordered_accesses;
mod plans;
mod prepare;
mod sample;
mod subgroup_loop;
mod subgroup_ops;
mod translate;
mod values;

use cranelift_entity::SecondaryMap;
use foldhash::HashMap;

pub use self::access::cost::AccessCosts;
use self::plans::Plans;
pub use self::prepare::{PREPARE_PASSES, PreparePass};
use self::prepare::{Prepared, prepare};
use crate::analysis::{Shape, Uniformity};
use crate::ir;
use crate::simd::builder::Builder;
use crate::simd::ssa::{Unwritten, Variable};
use crate::simd::{Block, Kernel, LANES, Type, Value};

/// The reason why a kernel cannot be vectorized: the interpreter has to run it.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub struct Unsupported(pub String);

/// Vectorizes a kernel that the verifier accepts and that has basic operations only, after lowering. The costs are
/// those of the instruction set that it will run on.
///
/// # Errors
///
/// The kernel cannot be expressed in SIMD IR, or needs too much memory or code.
pub fn widen(kernel: &ir::Kernel, costs: &AccessCosts) -> Result<Kernel, Unsupported> {
    let prepared = prepare(kernel)?;
    let plans = Plans::new(&prepared, costs)?;
    Widen::new(&prepared, &plans).subgroups().map(|(kernel, _)| kernel)
}

/// How often parts of the vectorizer changed a kernel, by name.
pub type Changes = Vec<(&'static str, u64)>;

/// What the vectorizer does to a kernel, for tools: how often each pass of `prepare` changes it, each access pattern is
/// chosen, image samples are inlined, and barriers need less of a frame or of a loop.
///
/// # Errors
///
/// As [`widen`].
pub fn statistics(kernel: &ir::Kernel, costs: &AccessCosts) -> Result<Changes, Unsupported> {
    let prepared = prepare(kernel)?;
    let plans = Plans::new(&prepared, costs)?;
    let (_, mut changes) = Widen::new(&prepared, &plans).subgroups()?;
    changes.extend(plans.accesses.statistics());
    changes.extend(prepared.changes);
    Ok(changes)
}

/// The SIMD form of a scalar value that is used in several blocks.
#[derive(Clone, Copy, Debug)]
enum Form {
    /// A SIMD value that is the same everywhere in a subgroup's run, so it needs no variable.
    Outer(Value),
    /// An SSA variable that is written where the value is defined.
    Variable(Variable),
}

/// SIMD values that the block has computed: other blocks, and the code after a barrier, do not use them.
#[derive(Debug, Default)]
struct BlockCache {
    /// SIMD forms of scalar values.
    local: HashMap<ir::Value, Value>,
    /// Byte offset of each looked-up address from the start of its buffer, by the result of `buffer_at`.
    address_offsets: HashMap<ir::Value, Value>,
    /// Address computations that image samples share.
    samples: sample::SampleCache,
}

impl BlockCache {
    fn clear(&mut self) {
        self.local.clear();
        self.address_offsets.clear();
        self.samples.clear();
    }
}

/// Emits the SIMD form of a kernel as its plans say.
struct Widen<'a> {
    kernel: &'a ir::Kernel,
    uniformity: &'a Uniformity,
    plans: &'a Plans,
    builder: Builder,
    forms: SecondaryMap<ir::Value, Option<Form>>,
    /// Temporal divergence: the variable, one element per lane, of each value in [`Plans::live_outs`].
    live_outs: HashMap<ir::Value, Variable>,
    control: masks::Control,
    subgroup: subgroup_loop::regions::Subgroup,
    /// The scalar block that is being translated.
    block: ir::Block,
    /// Its execution mask.
    exec: Value,
    cache: BlockCache,
    /// High words of the 64-bit results of the block, by the value of the low word.
    high_words: HashMap<ir::Value, Value>,
    /// The check of the barrier that is translated next.
    pending_barrier: Option<ir::Site>,
}

impl<'a> Widen<'a> {
    fn new(prepared: &'a Prepared, plans: &'a Plans) -> Self {
        let Prepared { kernel, uniformity, merged_workgroups, .. } = prepared;
        let mut simd = Kernel::new(kernel.name.clone());
        simd.merged_workgroups = *merged_workgroups;
        let [x, y, z] = kernel.workgroup_size;
        simd.workgroup_size = [x / (*merged_workgroups).max(1), y, z];
        simd.work = kernel.work.clone();
        simd.lines = kernel.lines.clone();
        simd.shared_bytes = kernel.shared_bytes();
        simd.releases = atomic::releases(kernel);
        simd.subgroup_order = if kernel.takes_schedule { kernel.invocations().div_ceil(LANES) } else { 0 };
        simd.max_steps = bounded_loops::max_steps(kernel, &uniformity.loops, &plans.trip_counts);
        simd.descriptors = plans.layout.descriptor_count + plans.inline.slices();
        simd.inline = plans.inline.clone();
        simd.tables.clone_from(&plans.layout.tables);
        let mut builder = Builder::new(simd);
        let exec = builder.constant(Type::Mask, crate::simd::builder::ALL);
        let subgroup = subgroup_loop::regions::Subgroup::new(&mut builder, kernel);
        let mut declare = |value: ir::Value| {
            let ty = values::type_of(kernel.ty(value), Shape::Varying);
            builder.variables.declare(ty, Unwritten::Undef)
        };
        let live_outs = plans.live_outs.iter().map(|&(value, _)| (value, declare(value))).collect();
        Self {
            kernel,
            uniformity,
            plans,
            builder,
            forms: SecondaryMap::new(),
            live_outs,
            control: masks::Control::default(),
            subgroup,
            block: kernel.layout[0],
            exec,
            cache: BlockCache::default(),
            high_words: HashMap::default(),
            pending_barrier: None,
        }
    }
}
