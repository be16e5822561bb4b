//! Vectorizer: translates the scalar IR of one invocation to SIMD IR for a workgroup, 16 invocations per subgroup.
//!
//! `prepare` transforms the scalar IR: canonical loops, merged workgroups, wider loads. `plans` decides what can
//! be decided before code is emitted, the patterns of memory accesses above all. `masks` turns control flow into masks
//! and jumps, following [`Linearization`](crate::analysis::Linearization). `subgroup_loop` splits the code at barriers
//! and loops over the subgroups. `values` keeps the SIMD form of each scalar value. `arithmetic`, `access`, `atomic`,
//! `buffer_address`, `subgroup_ops`, `image`, `sample`, `check` and `inline_check` translate instructions; `state` is
//! what they share. `bounded_loops` finds the loops that need no stop-flag poll, `ordered_accesses` the accesses that
//! need no check, `barriers` the barriers that subgroups wait at.

mod access;
mod arithmetic;
mod atomic;
mod barriers;
mod bounded_loops;
mod buffer_address;
mod check;
mod image;
mod inline_check;
mod masks;
mod ordered_accesses;
mod outcome;
mod plans;
mod prepare;
mod sample;
mod state;
mod subgroup_loop;
mod subgroup_ops;
mod translate;
mod values;

use cranelift_entity::SecondaryMap;
use foldhash::HashMap;

pub use self::access::cost::AccessCosts;
use self::masks::control::Control;
pub use self::outcome::{Changes, Unsupported};
use self::plans::Plans;
pub use self::prepare::{PREPARE_PASSES, PreparePass};
use self::prepare::{Prepared, prepare};
use self::state::{BlockCache, Widen};
use self::subgroup_loop::subgroup::Subgroup;
use crate::analysis::Shape;
use crate::ir;
use crate::simd::builder::{ALL, Builder};
use crate::simd::ssa::Unwritten;
use crate::simd::{Kernel, LANES, Type};

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
        let exec = builder.constant(Type::Mask, ALL);
        let subgroup = Subgroup::new(&mut builder, kernel);
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
            control: Control::default(),
            subgroup,
            block: kernel.layout[0],
            exec,
            cache: BlockCache::default(),
            high_words: HashMap::default(),
            pending_barrier: None,
        }
    }
}
