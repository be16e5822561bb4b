//! Inline image samples: coordinates, texel addresses and filters as instructions, for descriptors that [`direct`]
//! describes.
//!
//! Scalars that depend on descriptors only are hoisted to the entry, so each sample tests one boolean. Texels that are
//! contiguous across lanes, as they mostly are for neighbouring invocations, are loaded as rows; others are gathered.
//! The operations are those of [`filter`](crate::image), in the same order.
//!
//! ```text
//! here ──▶ direct ─▶ row ──▶ line ──▶ codes of one row ───────────▶ end
//!  │        │        └────▶ square ────────▶ texels ──▶ codes ───▶  ▲
//!  │        └─────▶ odd ──▶ wrapped ───────▶  ▲   └──▶ floats ──▶   │
//!  └─────────────────┴────────────────▶ call ───────────────────────┘
//! ```
//!
//! 8-bit channels are filtered two or four at a time, as in [`bytes`](crate::image). If no lane has a weight between
//! rows, one row is loaded.
//!
//! Texel addresses of the next samples are computed before the branches of the first: otherwise the loads of each
//! sample would wait for the sample before, since no processor looks two samples ahead.

mod blend;
pub(super) mod cache;
mod descriptors;
mod hoisted_addresses;
mod read;
pub(super) mod selection;
mod texels;

use smallvec::SmallVec;

use self::cache::{DescriptorKey, InlineSample, Layer};
use self::texels::Corners;
use super::image::{Components, ShapedOperands, TexelVectors};
use super::state::Widen;
use crate::analysis::Shape;
use crate::image::direct;
use crate::ir;
use crate::simd::{Block, BlockCall, InstData, Type, Value};

impl Widen<'_> {
    /// Number of inlined samples and reads of the kernel so far.
    pub(super) fn inlined_samples(&self) -> u64 {
        self.cache.samples.emitted as u64
    }

    /// Some components of a sample, with a call for other descriptors; `None` if the sample always needs the call.
    pub(super) fn sample(
        &mut self,
        inst: ir::Inst,
        operands: &ShapedOperands,
        is_base_level: bool,
        components: &Components,
    ) -> Option<TexelVectors> {
        let ir::InstData::Image { op, .. } = &self.kernel.insts[inst] else { return None };
        let sample = self.inline_sample(inst, operands, is_base_level)?;
        self.cache.samples.emitted += 1;
        let pair = self.pair(sample.key);
        let head = self.head(&sample);
        self.look_ahead(inst);
        let here = self.builder.current();
        let [direct, row, square, line, odd, texels, call, end] = std::array::from_fn(|_| self.builder.create_block());
        self.builder.branch(pair.is_direct, direct, call);
        self.begin(direct);
        self.builder.branch(head.is_odd, odd, row);
        self.begin(row);
        self.builder.branch(head.is_sloped, square, line);
        self.begin(square);
        self.texels_in_row(&pair, &head, texels);
        self.begin(line);
        self.line_of_texels(&pair, &head, components, texels, end);
        self.begin(odd);
        self.texels_anywhere(&pair, &sample, texels, call);
        let corners: Corners = std::array::from_fn(|_| self.builder.param(texels, Type::V32));
        self.begin(texels);
        let [unorm, float] = std::array::from_fn(|_| self.builder.create_block());
        self.builder.branch(pair.source.is_float, float, unorm);
        self.begin(unorm);
        let [c0, c1, c2, c3] = corners;
        let mean = self.mean_of_codes([c0, c1], Some([c2, c3]), &head.weights, components);
        self.jump_with(end, mean);
        self.begin(float);
        let weights = [0, 1].map(|dim| self.weight(&pair, sample.coordinates[dim], dim));
        let mean = self.mean_of_floats(&corners, &weights, components);
        self.jump_with(end, mean);
        self.begin(call);
        let texel = self.image_call(op, operands, components);
        self.jump_with(end, texel);
        Some(self.join(here, end, components))
    }

    /// Continues at the join of the paths from `here`, with one component value per path.
    fn join(&mut self, here: Block, end: Block, components: &Components) -> TexelVectors {
        let texel = components.iter().map(|_| self.builder.param(end, Type::V32)).collect();
        self.builder.switch_to(end);
        self.builder.seal_join(end, here);
        self.record_exec();
        texel
    }

    /// The operands of a sample that can be inlined.
    fn inline_sample(
        &mut self,
        inst: ir::Inst,
        operands: &ShapedOperands,
        is_base_level: bool,
    ) -> Option<InlineSample> {
        let ir::InstData::Image { op, .. } = &self.kernel.insts[inst] else { return None };
        if !direct::is_direct(op) || !self.plans.inline_samples.contains(inst) {
            return None;
        }
        let [(image, Shape::Uniform), (sampler, Shape::Uniform), (s, _), (t, rows), ref rest @ ..] = operands[..]
        else {
            return None;
        };
        let [image, sampler] = [image, sampler].map(|number| self.of_all_lanes(number));
        if [image, sampler].into_iter().any(|number| self.is_no_descriptor(number)) {
            return None;
        }
        let layer = |&(coordinate, shape): &(Value, Shape)| Layer { coordinate, is_uniform: shape == Shape::Uniform };
        let layer = if op.arrayed { Some(rest.first().map(layer)?) } else { None };
        let is_level = rows == Shape::Uniform;
        let key = DescriptorKey { image, sampler, arrayed: op.arrayed, is_base_level };
        Some(InlineSample { key, coordinates: [s, t], is_level, layer })
    }

    /// Whether a descriptor's number is a constant beyond the kernel's descriptors.
    fn is_no_descriptor(&self, number: Value) -> bool {
        let kernel = &self.builder.kernel;
        kernel.constant(number).is_some_and(|number| number >= u64::from(kernel.descriptors))
    }

    fn begin(&mut self, block: Block) {
        self.builder.switch_to(block);
        self.builder.seal(block);
        self.record_exec();
    }

    fn jump_with(&mut self, block: Block, args: SmallVec<[Value; 4]>) {
        self.builder.terminate(InstData::Jump { to: BlockCall { block, args } });
    }

    pub(super) fn float(&mut self, number: f32) -> Value {
        self.builder.constant(Type::V32, number.to_bits().into())
    }
}
