//! The semantics of image instructions, which interpreter and machine code share, compared with a model that was
//! written from the specification alone.

mod format;
mod model;

use proptest::prelude::*;
use spelter_shaders::image::{
    self, Class, Descriptor, Dim, Extent, Filter, ImageOp, Kind, LodOperand, Offsets, Sampler, Swizzle, TexelView, Wrap,
};
use spelter_tests::images::ImageDecl;
use spelter_tests::mutate::Rng;

use crate::texels::format::Format;
use crate::texels::model::{Answer, Image};

/// A format with its name in Vulkan's header.
fn named(format: image::Format) -> (String, Format) {
    let name = format!("{:?}", ash::vk::Format::from_raw(format.vk()));
    let model = Format::new(&name).unwrap_or_else(|| panic!("{name} has another shape"));
    (name, model)
}

fn formats() -> Vec<image::Format> {
    image::Format::all().collect()
}

/// Texels that are numbers, small enough that no weighted mean overflows.
fn texels(rng: &mut Rng, format: &Format, count: usize) -> Vec<u8> {
    let mut bytes = Vec::new();
    while bytes.len() < count * format.bytes {
        let texel: Vec<u8> = (0..format.bytes).map(|_| rng.bits() as u8).collect();
        if format.decode(&texel).iter().all(|number| number.abs() < 1e30) {
            bytes.extend(texel);
        }
    }
    bytes
}

const SWIZZLES: [Swizzle; 6] = [Swizzle::R, Swizzle::G, Swizzle::B, Swizzle::A, Swizzle::Zero, Swizzle::One];

struct Case {
    name: String,
    format: image::Format,
    image: Image,
    declared: ImageDecl,
    dim: Dim,
    arrayed: bool,
    view: TexelView,
}

impl Case {
    /// A random image of a format.
    fn new(rng: &mut Rng, format: image::Format) -> Self {
        let (name, model) = named(format);
        let dim = rng.pick(&[Dim::D1, Dim::D2, Dim::D2, Dim::D3]);
        let arrayed = dim != Dim::D3 && rng.below(3) == 0;
        let mut size = [1; 3];
        size.iter_mut().take(dim.coordinates()).for_each(|size| *size = 1 + rng.below(9) as u32);
        let layers = if arrayed { 1 + rng.below(3) as u32 } else { 1 };
        let mut extent = Extent { size, levels: 1, layers };
        extent.levels = 1 + rng.below(extent.max_levels() as usize) as u32;
        let mut swizzle = Swizzle::IDENTITY;
        if rng.below(3) == 0 {
            swizzle = swizzle.map(|_| rng.pick(&SWIZZLES));
        }
        let all = |level: u32| size.iter().map(|&size| (size >> level).max(1) as usize).product::<usize>();
        let count = (0..extent.levels).map(|level| all(level) * layers as usize).sum();
        let bytes = texels(rng, &model, count);
        let declared = ImageDecl { format, extent, volume: dim == Dim::D3, swizzle };
        let view = declared.fill(&bytes).expect("the image is small");
        let dims = dim.coordinates();
        let image = Image { format: model, size, levels: extent.levels, layers, bytes, swizzle, dims };
        Self { name, format, image, declared, dim, arrayed, view }
    }

    /// The result of an instruction.
    fn run(&self, op: &ImageOp, sampler: Sampler, operands: &[u32]) -> [f64; 4] {
        op.check().expect("the instruction makes sense");
        assert_eq!(op.params().len(), operands.len());
        let image = Descriptor { view: self.view, sampler };
        image::run(op, &image, &image, operands).map(|bits| match self.format.class() {
            Class::Float => f32::from_bits(bits).into(),
            Class::Sint => bits.cast_signed().into(),
            Class::Uint => bits.into(),
        })
    }

    fn op(&self, kind: Kind) -> ImageOp {
        ImageOp::new(kind, self.dim, self.arrayed, self.format.class())
    }

    fn compare(&self, answer: Answer, got: [f64; 4], what: &dyn std::fmt::Debug) -> Result<(), TestCaseError> {
        for ((number, off), got) in answer.into_iter().zip(got) {
            let is_right = number == got || number.is_nan() && got.is_nan() || (number - got).abs() <= off;
            let Image { size, levels, layers, swizzle, .. } = &self.image;
            prop_assert!(
                is_right,
                "{} {:?} {size:?} {levels} levels {layers} layers {swizzle:?}: {answer:?}, got {got}\n{what:?}",
                self.name,
                self.dim
            );
        }
        Ok(())
    }
}

fn sampler(rng: &mut Rng, class: Class, is_flat: bool) -> Sampler {
    const WRAPS: [Wrap; 5] =
        [Wrap::Repeat, Wrap::MirroredRepeat, Wrap::ClampToEdge, Wrap::ClampToBorder, Wrap::MirrorClampToEdge];
    let filters = if class == Class::Float { &[Filter::Nearest, Filter::Linear][..] } else { &[Filter::Nearest] };
    let mut filter = || rng.pick(filters);
    let [mag, min, mip] = [filter(), filter(), filter()];
    let one = if class == Class::Float { 1f32.to_bits() } else { 1 };
    let mut sampler = Sampler {
        mag,
        min,
        mip,
        wrap: [0; 3].map(|_| rng.pick(&WRAPS)),
        lod_bias: rng.pick(&[0.0, 0.0, 0.75, -1.5]),
        min_lod: rng.pick(&[0.0, 0.0, 0.6]),
        max_lod: rng.pick(&[16.0, 1.25]),
        border: rng.pick(&[[0; 4], [0, 0, 0, one], [one; 4]]),
        ..Sampler::DEFAULT
    };
    if is_flat && rng.below(6) == 0 {
        // The specification's requirements for unnormalized coordinates.
        let wrap = rng.pick(&[Wrap::ClampToEdge, Wrap::ClampToBorder]);
        let plain =
            Sampler { unnormalized: true, wrap: [wrap; 3], lod_bias: 0.0, min_lod: 0.0, max_lod: 0.0, ..sampler };
        sampler = Sampler { min: mag, mip: Filter::Nearest, ..plain };
    }
    sampler
}

/// A coordinate in or around an image of `size` texels, somewhere in a texel.
fn coordinate(rng: &mut Rng, size: u32, unnormalized: bool) -> f32 {
    let texel = rng.below(5 * size as usize) as f32 - 2.0 * size as f32;
    let at = texel + 0.05 + 0.9 * (rng.below(1000) as f32 / 1000.0);
    if unnormalized { at } else { at / size as f32 }
}

#[test]
fn every_format_has_a_model() {
    for format in formats() {
        let (name, model) = named(format);
        assert_eq!(model.bytes, format.bytes() as usize, "{name}");
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(2000))]

    #[test]
    fn texels_are_what_formats_say(seed: u64) {
        let mut rng = Rng::new(seed);
        let format = rng.pick(&formats());
        let case = Case::new(&mut rng, format);
        let mut op = case.op(Kind::Read);
        op.lod = LodOperand::Lod;
        for _ in 0..8 {
            let size = case.image.size.map(|size| size as usize);
            let mut at = [0; 3];
            (0..case.dim.coordinates()).for_each(|dim| at[dim] = rng.below(size[dim] + 3) as i32 - 1);
            let layer = if case.arrayed { rng.below(case.image.layers as usize + 1) as i32 } else { 0 };
            let level = rng.below(case.image.levels as usize + 1) as i32;
            let mut operands: Vec<u32> = at[..case.dim.coordinates()].iter().map(|at| at.cast_unsigned()).collect();
            operands.extend(case.arrayed.then_some(layer.cast_unsigned()));
            operands.push(level.cast_unsigned());
            let got = case.run(&op, Sampler::DEFAULT, &operands);
            case.compare(case.image.read(level, layer, at), got, &(at, layer, level))?;
        }
    }

    #[test]
    fn samples_are_what_the_specification_says(seed: u64) {
        let mut rng = Rng::new(seed);
        let format = rng.pick(&formats());
        let case = Case::new(&mut rng, format);
        let is_flat = case.image.levels == 1 && case.dim != Dim::D3 && !case.arrayed;
        let sampler = sampler(&mut rng, format.class(), is_flat);
        let mut op = case.op(Kind::Sample);
        op.lod = LodOperand::Lod;
        if !sampler.unnormalized && rng.below(4) == 0 {
            op.offsets = Offsets::One;
        }
        for _ in 0..8 {
            let mut at = [0.0f32; 3];
            for (at, &size) in at.iter_mut().zip(&case.image.size).take(case.dim.coordinates()) {
                *at = coordinate(&mut rng, size, sampler.unnormalized);
            }
            let layer = rng.below(40) as f32 / 10.0 - 0.55;
            let lod = if sampler.unnormalized { 0.0 } else { rng.below(80) as f32 / 16.0 - 1.0 };
            let mut offset = [0; 3];
            let mut operands: Vec<u32> = at[..case.dim.coordinates()].iter().map(|at| at.to_bits()).collect();
            operands.extend(case.arrayed.then_some(layer.to_bits()));
            operands.push(lod.to_bits());
            if op.offsets == Offsets::One {
                (0..case.dim.coordinates()).for_each(|dim| offset[dim] = rng.below(16) as i32 - 8);
                operands.extend(offset[..case.dim.coordinates()].iter().map(|offset| offset.cast_unsigned()));
            }
            let layer = if case.arrayed { layer } else { 0.0 };
            let model = case.image.sample(&sampler, at.map(f64::from), layer.into(), lod.into(), offset);
            if let Some(model) = model {
                let got = case.run(&op, sampler, &operands);
                case.compare(model, got, &(sampler, at, layer, lod, offset))?;
            }
        }
    }

    #[test]
    fn gathers_give_the_four_texels_around(seed: u64) {
        let mut rng = Rng::new(seed);
        let format = rng.pick(&formats());
        let case = Case::new(&mut rng, format);
        if case.dim != Dim::D2 {
            return Ok(());
        }
        let sampler = Sampler { unnormalized: false, ..sampler(&mut rng, format.class(), false) };
        let at = [0, 1].map(|dim| coordinate(&mut rng, case.image.size[dim], false));
        let (layer, component) = (rng.below(3) as f32, rng.below(4));
        let mut operands: Vec<u32> = at.iter().map(|at| at.to_bits()).collect();
        operands.extend(case.arrayed.then_some(layer.to_bits()));
        operands.push(component as u32);
        let layer = if case.arrayed { layer } else { 0.0 };
        let place = [at[0].into(), at[1].into(), 0.0];
        if let Some(model) = case.image.gather(&sampler, place, layer.into(), component) {
            let got = case.run(&case.op(Kind::Gather), sampler, &operands);
            case.compare(model, got, &(sampler, at, layer, component))?;
        }
    }

    /// A texel that is written to a view of one level is the nearest that the format has, or the one beside it; texels
    /// beside it, also those of other levels, do not change.
    #[test]
    fn what_is_written_is_read(seed: u64) {
        let mut rng = Rng::new(seed);
        let format = rng.pick(&formats());
        let mut case = Case::new(&mut rng, format);
        let level = rng.below(case.image.levels as usize) as u32;
        let size = case.image.extent(level);
        let wanted = texels(&mut rng, &case.image.format, 1);
        let numbers = case.image.format.decode(&wanted);
        let words = numbers.map(|number| match format.class() {
            Class::Float => (number as f32).to_bits(),
            Class::Sint => (number as i32).cast_unsigned(),
            Class::Uint => number as u32,
        });
        let mut at = [0; 3];
        (0..case.dim.coordinates()).for_each(|dim| at[dim] = rng.below(size[dim] as usize + 1) as i32);
        let layer = if case.arrayed { rng.below(case.image.layers as usize) as i32 } else { 0 };
        let mut operands: Vec<u32> = at[..case.dim.coordinates()].iter().map(|at| at.cast_unsigned()).collect();
        operands.extend(case.arrayed.then_some(layer.cast_unsigned()));
        let mut place = operands.clone();
        place.push(level);
        operands.extend(words);
        let before = case.declared.read(case.view.memory).expect("the image is small");
        let view = case.declared.level(&case.view, level).expect("the image is small");
        let image = Descriptor { view, sampler: Sampler::DEFAULT };
        image::run(&case.op(Kind::Write), &image, &image, &operands);
        let is_inside = at.iter().zip(size).all(|(&at, size)| at < size.cast_signed());
        let after = case.declared.read(case.view.memory).expect("the image is small");
        let bytes = case.image.format.bytes;
        let changed = before.chunks(bytes).zip(after.chunks(bytes)).filter(|(before, after)| before != after).count();
        prop_assert!(changed <= usize::from(is_inside), "{} texels changed", changed);
        case.image.swizzle = Swizzle::IDENTITY;
        case.view.swizzle = Swizzle::IDENTITY;
        let mut op = case.op(Kind::Read);
        op.lod = LodOperand::Lod;
        let got = case.run(&op, Sampler::DEFAULT, &place);
        let mut answer = case.image.read(level.cast_signed(), layer, at);
        if is_inside {
            answer = [0, 1, 2, 3].map(|channel| {
                let step = match case.image.format.bits(channel) {
                    bits @ 1..=24 => 1e-5 + numbers[channel].abs() * 1e-5 + f64::from(bits).exp2().recip() * 0.01,
                    _ => numbers[channel].abs() * 1e-6,
                };
                (numbers[channel], step)
            });
        }
        case.compare(answer, got, &(level, at, layer, numbers))?;
    }
}
