//! Samples at random places of random images, against the reference.

use proptest::prelude::*;
use proptest::test_runner::{Config, TestRunner};
use spelter_shaders::image::{
    Class, Descriptor, Dim, Filter, Format, ImageOp, Kind, LodOperand, Offsets, Sampler, Wrap, run,
};

use super::picture::{Picture, dims, samplers, swizzles, wraps};
use super::reference::{Question, tolerance};

fn numbers(op: &ImageOp, class: Class, texel: [u32; 4]) -> [f64; 4] {
    texel.map(|bits| match class {
        _ if op.dref => f64::from(f32::from_bits(bits)),
        Class::Float => f64::from(f32::from_bits(bits)),
        Class::Sint => f64::from(bits.cast_signed()),
        Class::Uint => f64::from(bits),
    })
}

/// Asks both; whether the reference knew an answer.
fn same(op: &ImageOp, question: &Question<'_>, operands: &[u32]) -> Result<bool, TestCaseError> {
    let descriptor = question.picture.descriptor(question.sampler);
    let texel = run(op, &descriptor, &descriptor, operands);
    let Some(expected) = question.answer() else { return Ok(false) };
    let got = numbers(op, question.picture.view.format.class(), texel);
    let components = if op.dref { 1 } else { 4 };
    let tolerance = tolerance(question.picture.view.format);
    for k in 0..components {
        let near = (got[k] - expected[k]).abs() <= tolerance * expected[k].abs().max(1.0);
        prop_assert!(near, "component {k}: {got:?} for {expected:?}\n{op:?}\n{question:?}");
    }
    Ok(true)
}

/// Runs `cases` random cases and checks that the reference knew most answers.
fn check<S: Strategy>(cases: u32, strategy: S, test: impl Fn(S::Value) -> Result<bool, TestCaseError>) {
    let known = std::cell::Cell::new(0);
    let config = Config { cases, failure_persistence: None, ..Config::default() };
    let result = TestRunner::new(config).run(&strategy, |value| {
        known.set(known.get() + u32::from(test(value)?));
        Ok(())
    });
    result.unwrap_or_else(|error| panic!("{error}"));
    assert!(known.get() * 2 > cases, "the reference knew {} of {cases}", known.get());
}

fn places() -> impl Strategy<Value = [f32; 4]> {
    [-2.0f32..3.0, -2.0f32..3.0, -2.0f32..3.0, -1.0f32..4.0]
}

/// Coordinates as operands: those of the dimensions, then the layer.
fn coordinates(picture: &Picture, [x, y, z, layer]: [f32; 4]) -> Vec<f32> {
    let mut at: Vec<f32> = [x, y, z].into_iter().take(picture.dim.coordinates()).collect();
    if picture.dim == Dim::Cube {
        // From the middle of the cube, not from its corner.
        at.iter_mut().for_each(|c| *c -= 0.5);
    }
    if picture.arrayed {
        at.push(layer);
    }
    at
}

fn question<'a>(picture: &'a Picture, sampler: &'a Sampler, at: &[f32], lod: f64) -> Question<'a> {
    let at = at.iter().map(|&c| f64::from(c)).collect();
    Question { picture, sampler, at, lod, min_lod: f64::NEG_INFINITY, offset: [0; 3], reference: None }
}

fn bits(floats: &[f32]) -> Vec<u32> {
    floats.iter().map(|float| float.to_bits()).collect()
}

const FLOAT: Format = Format::R32G32B32A32_SFLOAT;

#[test]
fn levels_of_detail_filters_and_address_modes() {
    let strategy = (dims(), 1u32..17, 1u32..6, any::<u64>(), samplers(), places(), -2.0f32..6.0, swizzles());
    check(20_000, strategy, |((dim, arrayed), side, levels, seed, sampler, place, lod, swizzle)| {
        let mut picture = Picture::new(dim, arrayed, FLOAT, side, levels, seed);
        picture.view.swizzle = swizzle;
        let at = coordinates(&picture, place);
        let op = ImageOp { lod: LodOperand::Lod, ..ImageOp::new(Kind::Sample, dim, arrayed, Class::Float) };
        let operands = [bits(&at), bits(&[lod])].concat();
        same(&op, &question(&picture, &sampler, &at, lod.into()), &operands)
    });
}

#[test]
fn every_format_with_every_filter_and_address_mode() {
    for format in Format::all() {
        for filter in [Filter::Nearest, Filter::Linear] {
            let sampler = Sampler { mag: filter, min: filter, max_lod: 9.0, ..Sampler::DEFAULT };
            let strategy = (2u32..9, any::<u64>(), [wraps(), wraps(), wraps()], places());
            check(1_000, strategy, |(side, seed, wrap, place)| {
                let picture = Picture::new(Dim::D2, false, format, side, 1, seed);
                let sampler = Sampler { wrap, ..sampler };
                let at = coordinates(&picture, place);
                let op = ImageOp {
                    lod: LodOperand::Lod,
                    ..ImageOp::new(Kind::Sample, Dim::D2, false, picture.view.format.class())
                };
                let operands = [bits(&at), bits(&[0.0])].concat();
                same(&op, &question(&picture, &sampler, &at, 0.0), &operands)
            });
        }
    }
}

#[test]
fn offsets_and_lowest_levels() {
    let flat = dims().prop_filter("cubes have no offsets", |(dim, _)| *dim != Dim::Cube);
    let strategy =
        (flat, 1u32..12, any::<u64>(), samplers(), places(), -1.0f32..5.0, [-8i32..8, -8..8, -8..8], 0.0f32..4.0);
    check(10_000, strategy, |((dim, arrayed), side, seed, sampler, place, lod, offset, min_lod)| {
        let picture = Picture::new(dim, arrayed, FLOAT, side, 5, seed);
        let at = coordinates(&picture, place);
        let op = ImageOp {
            lod: LodOperand::Lod,
            offsets: Offsets::One,
            min_lod: true,
            ..ImageOp::new(Kind::Sample, dim, arrayed, Class::Float)
        };
        let offsets = offset[..dim.coordinates()].iter().map(|o| o.cast_unsigned()).collect();
        let operands = [bits(&at), bits(&[lod]), offsets, bits(&[min_lod])].concat();
        let question = Question {
            offset: offset.map(i64::from),
            min_lod: min_lod.into(),
            ..question(&picture, &sampler, &at, lod.into())
        };
        same(&op, &question, &operands)
    });
}

#[test]
fn derivatives_choose_the_level() {
    let flat = dims().prop_filter("derivatives on cubes are projected", |(dim, _)| *dim != Dim::Cube);
    let changes = [-0.5f32..0.5, -0.5f32..0.5, -0.5f32..0.5, -0.5f32..0.5, -0.5f32..0.5, -0.5f32..0.5];
    let strategy = (flat, 4u32..17, any::<u64>(), samplers(), places(), changes);
    check(10_000, strategy, |((dim, arrayed), side, seed, sampler, place, changes)| {
        let picture = Picture::new(dim, arrayed, FLOAT, side, 5, seed);
        let at = coordinates(&picture, place);
        let dims = dim.coordinates();
        let op = ImageOp { lod: LodOperand::Grad, ..ImageOp::new(Kind::Sample, dim, arrayed, Class::Float) };
        let length = |changes: &[f32]| {
            let parts = (0..dims).map(|k| f64::from(changes[k]) * f64::from(picture.view.size[k]));
            parts.map(|part| part * part).sum::<f64>().sqrt()
        };
        let lod = length(&changes[..3]).max(length(&changes[3..])).log2();
        let operands = [bits(&at), bits(&changes[..dims]), bits(&changes[3..3 + dims])].concat();
        same(&op, &question(&picture, &sampler, &at, lod), &operands)
    });
}

#[test]
fn derivatives_on_cubes_are_those_of_the_face() {
    let strategy = (4u32..17, any::<u64>(), samplers(), places(), [-0.4f32..0.4, -0.4..0.4, -0.4..0.4]);
    check(5_000, strategy, |(side, seed, sampler, place, change)| {
        let picture = Picture::new(Dim::Cube, false, FLOAT, side, 5, seed);
        let at = coordinates(&picture, place);
        let op = ImageOp { lod: LodOperand::Grad, ..ImageOp::new(Kind::Sample, Dim::Cube, false, Class::Float) };
        // The change of the place on the face, by a small step.
        let on_face = |step: f64| {
            let p: Vec<f64> = at.iter().zip(change).map(|(&c, d)| f64::from(c) + step * f64::from(d)).collect();
            let major = (0..3).max_by(|&a, &b| f64::from(at[a].abs()).total_cmp(&f64::from(at[b].abs()))).unwrap_or(0);
            let others: Vec<f64> = (0..3).filter(|&k| k != major).map(|k| 0.5 * p[k] / p[major].abs()).collect();
            [others[0], others[1]]
        };
        let (here, there) = (on_face(-1e-5), on_face(1e-5));
        let length = (0..2).map(|k| ((there[k] - here[k]) / 2e-5 * f64::from(side)).powi(2)).sum::<f64>().sqrt();
        let operands = [bits(&at), bits(&change), bits(&[0.0; 3])].concat();
        same(&op, &question(&picture, &sampler, &at, length.log2()), &operands)
    });
}

#[test]
fn comparisons_come_before_filters() {
    let flat = dims().prop_filter("3D images have no depth", |(dim, _)| *dim != Dim::D3);
    let strategy = (flat, 1u32..9, any::<u64>(), samplers(), places(), -0.5f32..1.5, any::<bool>());
    check(10_000, strategy, |((dim, arrayed), side, seed, sampler, place, reference, small)| {
        let format = if small { Format::D16_UNORM } else { Format::D32_SFLOAT };
        let picture = Picture::new(dim, arrayed, format, side, 3, seed);
        let at = coordinates(&picture, place);
        let op = ImageOp { lod: LodOperand::Lod, dref: true, ..ImageOp::new(Kind::Sample, dim, arrayed, Class::Float) };
        let operands = [bits(&at), bits(&[reference, 0.0])].concat();
        let question = Question { reference: Some(reference.into()), ..question(&picture, &sampler, &at, 0.0) };
        same(&op, &question, &operands)
    });
}

#[test]
fn coordinates_may_count_texels() {
    let strategy = (1u32..9, any::<u64>(), samplers(), [-4.0f32..12.0, -4.0f32..12.0], any::<bool>());
    check(5_000, strategy, |(side, seed, sampler, at, border)| {
        let wrap = [if border { Wrap::ClampToBorder } else { Wrap::ClampToEdge }; 3];
        let sampler = Sampler { unnormalized: true, wrap, ..sampler };
        let picture = Picture::new(Dim::D2, false, FLOAT, side, 1, seed);
        let op = ImageOp { lod: LodOperand::Lod, ..ImageOp::new(Kind::Sample, Dim::D2, false, Class::Float) };
        let operands = [bits(&at), bits(&[0.0])].concat();
        same(&op, &question(&picture, &sampler, &at, 0.0), &operands)
    });
}

/// Each texel of a gather is the nearest one at the footprint's corner.
#[test]
fn gathers_are_the_texels_that_a_linear_filter_mixes() {
    let strategy = (2u32..9, any::<u64>(), samplers(), places(), 0u32..4, [-3i32..3, -3..3], any::<bool>());
    check(10_000, strategy, |(side, seed, sampler, place, component, offset, arrayed)| {
        let picture = Picture::new(Dim::D2, arrayed, FLOAT, side, 1, seed);
        let at = coordinates(&picture, place);
        let op = ImageOp { offsets: Offsets::One, ..ImageOp::new(Kind::Gather, Dim::D2, arrayed, Class::Float) };
        let operands = [bits(&at), vec![component], offset.iter().map(|o| o.cast_unsigned()).collect()].concat();
        let descriptor = picture.descriptor(&sampler);
        let got = run(&op, &descriptor, &descriptor, &operands).map(|bits| f64::from(f32::from_bits(bits)));
        let near = Sampler { mag: Filter::Nearest, min: Filter::Nearest, min_lod: 0.0, max_lod: 0.0, ..sampler };
        for (corner, (right, below)) in [(0.0, 1.0), (1.0, 1.0), (1.0, 0.0), (0.0, 0.0)].into_iter().enumerate() {
            let mut question = question(&picture, &near, &at, 0.0);
            let places = [(question.at[0], right), (question.at[1], below)];
            for (dim, (c, second)) in places.into_iter().enumerate() {
                let size = f64::from(picture.view.size[dim]);
                let first = (c * size - 0.5).floor();
                if (c * size - 0.5 - first).min(first + 1.5 - c * size) < 1e-3 {
                    return Ok(false);
                }
                question.at[dim] = (first + second + f64::from(offset[dim]) + 0.5) / size;
            }
            let Some(expected) = question.answer() else { return Ok(false) };
            prop_assert_eq!(got[corner], expected[component as usize], "corner {} of {:?}", corner, question);
        }
        Ok(true)
    });
}

#[test]
fn four_offsets_gather_one_texel_each() {
    let picture = Picture::new(Dim::D2, false, FLOAT, 8, 1, 7);
    let sampler = Sampler { wrap: [Wrap::Repeat; 3], ..Sampler::DEFAULT };
    let descriptor = picture.descriptor(&sampler);
    let one = ImageOp { offsets: Offsets::One, ..ImageOp::new(Kind::Gather, Dim::D2, false, Class::Float) };
    let four = ImageOp { offsets: Offsets::Four, ..one };
    let offsets: [[i32; 2]; 4] = [[0, 0], [3, -2], [-7, 5], [31, -32]];
    let at = bits(&[0.3, 0.6]);
    let all: Vec<u32> = offsets.iter().flatten().map(|o| o.cast_unsigned()).collect();
    let got = run(&four, &descriptor, &descriptor, &[at.clone(), vec![2], all].concat());
    for (texel, [x, y]) in got.into_iter().zip(offsets) {
        let operands = [at.clone(), vec![2, x.cast_unsigned(), y.cast_unsigned()]].concat();
        assert_eq!(texel, run(&one, &descriptor, &descriptor, &operands)[3]);
    }
}

#[test]
fn nothing_is_outside_of_anything() {
    let odd = [f32::NAN, f32::INFINITY, f32::NEG_INFINITY, f32::MAX, f32::MIN, -0.0, 1e20].map(f32::to_bits);
    let words = [0, 1, u32::MAX, 1 << 31, i32::MAX as u32].into_iter().chain(odd);
    let strategy =
        (dims(), samplers(), prop::collection::vec(prop::sample::select(words.collect::<Vec<_>>()), 16), any::<bool>());
    check(5_000, strategy, |((dim, arrayed), sampler, operands, null)| {
        let picture = Picture::new(dim, arrayed, Format::R8G8B8A8_UNORM, 5, 3, 1);
        let descriptor = if null { Descriptor::NULL } else { picture.descriptor(&sampler) };
        for lod in [LodOperand::Lod, LodOperand::Grad] {
            let op = ImageOp { lod, ..ImageOp::new(Kind::Sample, dim, arrayed, Class::Float) };
            let texel = run(&op, &descriptor, &descriptor, &operands);
            prop_assert!(!null || texel == [0; 4]);
        }
        if matches!(dim, Dim::D2 | Dim::Cube) {
            run(&ImageOp::new(Kind::Gather, dim, arrayed, Class::Float), &descriptor, &descriptor, &operands);
        }
        if dim != Dim::Cube {
            let read = ImageOp { lod: LodOperand::Lod, ..ImageOp::new(Kind::Read, dim, arrayed, Class::Float) };
            run(&read, &descriptor, &descriptor, &operands);
            run(&ImageOp::new(Kind::Write, dim, arrayed, Class::Float), &descriptor, &descriptor, &operands);
        }
        Ok(true)
    });
}

#[test]
fn names_say_all_of_an_instruction() {
    let op = ImageOp {
        dref: true,
        lod: LodOperand::Grad,
        offsets: Offsets::One,
        min_lod: true,
        ..ImageOp::new(Kind::Sample, Dim::D2, true, Class::Float)
    };
    assert_eq!(op.name(), "sample.2d_array.float.dref.grad.offset.min_lod.0");
    let all = op.name();
    for name in
        [all.as_str(), "read.buffer.uint.3", "write.3d.sint", "gather.cube_array.float.dref.2", "read.1d.float.lod.0"]
    {
        assert_eq!(ImageOp::from_name(name).map(|op| op.name()).as_deref(), Some(name));
    }
    for name in ["sample.2d.float", "sample.4d.float.0", "read.2d.float.0.lod", "fetch.2d.float.0", "read.2d.float.x"] {
        assert_eq!(ImageOp::from_name(name), None, "{name}");
    }
}
