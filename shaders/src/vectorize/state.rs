//! The state of the translation: what the files of this folder emit with.

use cranelift_entity::SecondaryMap;
use foldhash::HashMap;

use super::masks::control::Control;
use super::plans::Plans;
use super::sample::cache::SampleCache;
use super::subgroup_loop::subgroup::Subgroup;
use crate::analysis::Uniformity;
use crate::ir;
use crate::simd::Value;
use crate::simd::builder::Builder;
use crate::simd::ssa::Variable;

/// The SIMD form of a scalar value that is used in several blocks.
#[derive(Clone, Copy, Debug)]
pub(super) enum Form {
    /// A SIMD value that is the same everywhere in a subgroup's run, so it needs no variable.
    Outer(Value),
    /// An SSA variable that is written where the value is defined.
    Variable(Variable),
}

/// SIMD values that the block has computed: other blocks, and the code after a barrier, do not use them.
#[derive(Debug, Default)]
pub(super) struct BlockCache {
    /// SIMD forms of scalar values.
    pub(super) local: HashMap<ir::Value, Value>,
    /// Byte offset of each looked-up address from the start of its buffer, by the result of `buffer_at`.
    pub(super) address_offsets: HashMap<ir::Value, Value>,
    /// Address computations that image samples share.
    pub(super) samples: SampleCache,
}

impl BlockCache {
    pub(super) fn clear(&mut self) {
        self.local.clear();
        self.address_offsets.clear();
        self.samples.clear();
    }
}

/// Emits the SIMD form of a kernel as its plans say.
pub(super) struct Widen<'a> {
    pub(super) kernel: &'a ir::Kernel,
    pub(super) uniformity: &'a Uniformity,
    pub(super) plans: &'a Plans,
    pub(super) builder: Builder,
    pub(super) forms: SecondaryMap<ir::Value, Option<Form>>,
    /// Temporal divergence: the variable, one element per lane, of each value in [`Plans::live_outs`].
    pub(super) live_outs: HashMap<ir::Value, Variable>,
    pub(super) control: Control,
    pub(super) subgroup: Subgroup,
    /// The scalar block that is being translated.
    pub(super) block: ir::Block,
    /// Its execution mask.
    pub(super) exec: Value,
    pub(super) cache: BlockCache,
    /// High words of the 64-bit results of the block, by the value of the low word.
    pub(super) high_words: HashMap<ir::Value, Value>,
    /// The check of the barrier that is translated next.
    pub(super) pending_barrier: Option<ir::Site>,
}
