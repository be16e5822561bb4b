//! Descriptor fields that inline samples need, loaded before any coordinate is computed.

use super::cache::{Axis, DescriptorKey, SampledImage, WordImage};
use crate::image::address::PLACES;
use crate::image::{Field, Filter, SamplerByte, Swizzle, Wrap, bytes, direct};
use crate::ir::Op;
use crate::simd::{InstData, LANES, Value, WideOp};
use crate::vectorize::access::bounds::{MemoryRegion, element_count, scaled_base};
use crate::vectorize::access::word_array::WordArray;
use crate::vectorize::state::Widen;

/// Factors from fraction bits to weights of encoded texels: those along a row add up to [`bytes::STEPS`], and between
/// rows the upper half of the 16 bits is the weight.
const WEIGHT_FACTORS: [u32; 2] = [bytes::STEPS as u32, 1 << 8];

/// All fraction bits of a coordinate; those that are a weight between rows of encoded texels.
const FRACTION: u32 = PLACES as u32 - 1;
const ENCODED_SLOPE: u32 = 0xff00;

/// The bits of a float but its sign.
const MAGNITUDE: u32 = u32::MAX >> 1;

impl Widen<'_> {
    /// Loads the fields of an image's descriptor.
    pub(super) fn source(&mut self, image: Value, arrayed: bool) -> WordImage {
        if let Some(&known) = self.cache.samples.sources.get(&(image, arrayed)) {
            return known;
        }
        let field = |widen: &mut Self, field| widen.builder.emit_one(InstData::ImageField { image, field });
        let format = field(self, Field::Format);
        let is_code = self.equals(format, direct::CODES.vk().cast_unsigned());
        let floats = direct::FLOATS.map(|float| self.equals(format, float.vk().cast_unsigned()));
        let is_float = self.builder.pure(Op::LOr, &floats);
        let is_known = self.builder.pure(Op::LOr, &[is_code, is_float]);
        let swizzle = field(self, Field::Swizzle);
        let is_plain = self.equals(swizzle, u32::from_le_bytes(Swizzle::IDENTITY.map(|swizzle| swizzle as u8)));
        let levels = field(self, Field::Levels);
        let [width, height] = [Field::Width, Field::Height].map(|size| field(self, size));
        let layers = if arrayed { field(self, Field::Layers) } else { self.builder.s32(1) };
        let sizes = [width, height, layers];
        let lasts = sizes.map(|size| self.minus_one(size));
        let small = lasts.map(|last| {
            let max = self.builder.s32(direct::MAX_TEXELS);
            self.builder.pure(Op::ULt, &[last, max])
        });
        let [row_pitch, outer_pitch] = [Field::RowPitch, Field::OuterPitch].map(|pitch| field(self, pitch));
        // The last texel is in the image's memory, so all texels are.
        let memory = MemoryRegion::of_descriptor(&mut self.builder, image);
        let row = scaled_base(&mut self.builder, width, 4);
        let rows = self.product(lasts[1], row_pitch);
        let outer = self.product(lasts[2], outer_pitch);
        let end = self.builder.wide(WideOp::Add, &[rows, row]);
        let end = self.builder.wide(WideOp::Add, &[end, outer]);
        let lacks = self.builder.wide(WideOp::Lt, &[memory.len, end]);
        let fits = self.builder.pure(Op::LNot, &[lacks]);
        let count = self.builder.s32(self.builder.kernel.descriptors);
        let exists = self.builder.pure(Op::ULt, &[image, count]);
        let all = [is_plain, fits, exists].into_iter().chain(small);
        let is_direct = all.fold(is_known, |all, one| self.builder.pure(Op::LAnd, &[all, one]));
        let below = self.builder.wide(WideOp::Extend, &[row_pitch]);
        let source = WordImage {
            is_direct,
            is_float,
            has_one_level: self.equals(levels, 1),
            sizes,
            lasts,
            pitch: self.words(row_pitch),
            layer_pitch: self.words(outer_pitch),
            rows: [memory, memory.skip(&mut self.builder, below)]
                .map(|MemoryRegion { base, len }| WordArray { base, limit: element_count(&mut self.builder, len, 4) }),
        };
        self.cache.samples.sources.insert((image, arrayed), source);
        source
    }

    /// Loads the fields of an image's and a sampler's descriptor.
    pub(super) fn pair(&mut self, key: DescriptorKey) -> SampledImage {
        if let Some(&known) = self.cache.samples.pairs.get(&key) {
            return known;
        }
        let DescriptorKey { image, sampler, arrayed, is_base_level } = key;
        let source = self.source(image, arrayed);
        let [filters, modes] = [Field::Filters, Field::Modes]
            .map(|field| self.builder.emit_one(InstData::ImageField { image: sampler, field }));
        let byte = |of: SamplerByte| self.byte(if of.field() == Field::Filters { filters } else { modes }, of);
        let [mag, min, x, y, unnormalized] = {
            use SamplerByte::{Mag, Min, Unnormalized, WrapX, WrapY};
            [Mag, Min, WrapX, WrapY, Unnormalized].map(byte)
        };
        let wraps = [x, y];
        let is_unnormalized = self.equals(unnormalized, 1);
        let is_linear = self.equals(mag, Filter::Linear as u32);
        // The level of detail decides nothing if there is one level and one filter. Vulkan demands both where
        // coordinates are unnormalized.
        let one_filter = self.builder.pure(Op::IEq, &[mag, min]);
        let one = self.builder.pure(Op::LAnd, &[source.has_one_level, one_filter]);
        let mut is_level = self.builder.pure(Op::LOr, &[one, is_unnormalized]);
        if is_base_level {
            let base = self.is_base_level(sampler);
            is_level = self.builder.pure(Op::LOr, &[is_level, base]);
        }
        let count = self.builder.s32(self.builder.kernel.descriptors);
        let exists = self.builder.pure(Op::ULt, &[sampler, count]);
        let is_direct = self.builder.pure(Op::LAnd, &[is_level, exists]);
        let [zero, one, bits] = [0, 1, PLACES.log2() as u32].map(|number| self.builder.s32(number));
        let shift = self.builder.select(is_linear, bits, zero);
        let weights = WEIGHT_FACTORS.map(|weight| self.builder.s32(weight));
        let axes: [Axis; 2] = std::array::from_fn(|dim| {
            let scale = self.builder.select(is_unnormalized, one, source.sizes[dim]);
            let scale = self.builder.pure(Op::Shl, &[scale, shift]);
            let scale = self.builder.splat(scale);
            let scale = self.builder.pure(Op::SIntToFloat, &[scale]);
            let scale = self.builder.lift(scale);
            let steps = self.builder.select(is_linear, weights[dim], zero);
            let steps = self.kept_in_lanes(steps);
            let repeats = self.equals(wraps[dim], Wrap::Repeat as u32);
            let last = source.lasts[dim];
            let room = if dim == 0 { self.before_the_last(last) } else { last };
            Axis { scale, steps, size: source.sizes[dim], last, room, repeats }
        });
        let wrapped = [0, 1].map(|dim: usize| {
            let clamps = self.equals(wraps[dim], Wrap::ClampToEdge as u32);
            self.builder.pure(Op::LOr, &[clamps, axes[dim].repeats])
        });
        let [of_floats, of_codes, all] =
            [(-PLACES / 2.0).to_bits(), (-bytes::MIDDLE).to_bits(), FRACTION].map(|bits| self.builder.s32(bits));
        let middle = self.builder.select(source.is_float, of_floats, of_codes);
        let middle = self.builder.select(is_linear, middle, zero);
        let encoded = self.builder.s32(ENCODED_SLOPE);
        let slope = self.builder.select(source.is_float, all, encoded);
        let pair = SampledImage {
            source,
            is_direct: self.builder.pure(Op::LAnd, &[source.is_direct, is_direct]),
            wraps: self.builder.pure(Op::LAnd, &wrapped),
            axes,
            middle: self.kept_in_lanes(middle),
            shift: self.kept_in_lanes(shift),
            fraction: self.builder.select(is_linear, all, zero),
            slope: self.builder.select(is_linear, slope, zero),
        };
        self.cache.samples.pairs.insert(key, pair);
        pair
    }

    /// Whether the sampler makes no more than 0 of the level of detail 0: it has no bias, and no lowest level above 0.
    /// A negative bias would do no more; it is rare, and such samples are calls.
    fn is_base_level(&mut self, sampler: Value) -> Value {
        let [bias, lowest] = [Field::LodBias, Field::MinLod]
            .map(|field| self.builder.emit_one(InstData::ImageField { image: sampler, field }));
        let [magnitude, zero] = [MAGNITUDE, 0].map(|bits| self.builder.s32(bits));
        let bias = self.builder.pure(Op::And, &[bias, magnitude]);
        let no_bias = self.builder.pure(Op::IEq, &[bias, zero]);
        // As a signed integer, the bits of a float have its sign.
        let not_above = self.builder.pure(Op::SLe, &[lowest, zero]);
        self.builder.pure(Op::LAnd, &[no_bias, not_above])
    }

    fn equals(&mut self, value: Value, bits: u32) -> Value {
        let bits = self.builder.s32(bits);
        self.builder.pure(Op::IEq, &[value, bits])
    }

    fn byte(&mut self, word: Value, byte: SamplerByte) -> Value {
        let [shift, mask] = [byte.shift(), 0xff].map(|bits| self.builder.s32(bits));
        let low = self.builder.pure(Op::LShr, &[word, shift]);
        self.builder.pure(Op::And, &[low, mask])
    }

    /// A scalar in each lane, kept in a register for the whole workgroup.
    pub(super) fn kept_in_lanes(&mut self, scalar: Value) -> Value {
        let lanes = self.builder.splat(scalar);
        self.builder.lift(lanes)
    }

    /// The first texel too close to the last one for a row of lanes; 0 if all are.
    fn before_the_last(&mut self, last: Value) -> Value {
        let others = self.builder.s32(LANES - 1);
        let last = self.builder.pure(Op::UMax, &[last, others]);
        self.builder.pure(Op::ISub, &[last, others])
    }

    fn minus_one(&mut self, value: Value) -> Value {
        let less = self.builder.s32(u32::MAX);
        self.builder.pure(Op::IAdd, &[value, less])
    }

    /// A product in 64 bits.
    fn product(&mut self, a: Value, b: Value) -> Value {
        let [a, b] = [a, b].map(|value| self.builder.wide(WideOp::Extend, &[value]));
        self.builder.wide(WideOp::Mul, &[a, b])
    }

    /// Converts a distance from bytes to words.
    fn words(&mut self, bytes: Value) -> Value {
        let two = self.builder.s32(2);
        self.builder.pure(Op::LShr, &[bytes, two])
    }
}
