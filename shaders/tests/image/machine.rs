//! Samples by compiled kernels: every engine gives the interpreter's bits, and what the reference says.

use std::collections::BTreeMap;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::atomic::AtomicU32;

use proptest::prelude::*;
use proptest::test_runner::{Config, TestRunner};
use spelter_shaders::abi::{DispatchArgs, MAX_PUSH_BYTES};
use spelter_shaders::back::{Code, Scratch};
use spelter_shaders::compile::{Backend, Module, compile};
use spelter_shaders::guest::GuestSlice;
use spelter_shaders::image::{Descriptor, Dim, Filter, Format, Sampler, Swizzle, decode, load_raw};

use super::picture::{Picture, wraps};
use super::reference::{Question, tolerance};

/// Invocations of a dispatch: four subgroups, the last of which has 9 inactive lanes.
const COUNT: usize = 55;

/// A kernel that takes a place for each invocation, on each engine, the interpreter first.
struct Shader {
    bindings: Vec<u32>,
    engines: Vec<(Backend, Box<dyn Code>)>,
    arrayed: bool,
    /// The level of detail, if all samples have this one.
    lod: Option<f32>,
}

impl Shader {
    /// Samples at the first two numbers of a place.
    fn sample(arrayed: bool, lod: Option<f32>) -> Self {
        let (layer, level) =
            (if arrayed { ", i32(at.z)" } else { "" }, lod.map_or("at.w".into(), |lod| format!("{lod:?}")));
        Self::new(&format!("textureSampleLevel(image, how, at.xy{layer}, {level})"), arrayed, lod)
    }

    /// Reads the texel at the first two numbers of a place.
    fn read(arrayed: bool, lod: Option<f32>) -> Self {
        let (layer, level) =
            (if arrayed { ", i32(at.z)" } else { "" }, lod.map_or("i32(at.w)".into(), |lod| format!("{lod}")));
        Self::new(&format!("textureLoad(image, vec2i(at.xy){layer}, {level})"), arrayed, lod)
    }

    /// Samples while some hundred numbers are needed before and after.
    fn with_large_frame() -> Self {
        // Each number goes into the place that is sampled, and once more into what becomes of the sample.
        let numbers = 1..60;
        let each = |with: fn(u32) -> String| numbers.clone().map(with).collect::<String>();
        let source = format!(
            "at; {} var x = 0u; {} let lod = 0.25 * f32(x & 3u);
            var texel = bitcast<vec4u>(textureSampleLevel(image, how, at.xy, lod)); {} out[id] = bitcast<vec4f>(texel)",
            each(|n| format!("let a{n} = bitcast<vec4u>(places[(id + {n}u) % {COUNT}u]);")),
            each(|n| format!("x += a{n}.x * {n}u + (a{n}.y ^ a{n}.z) - a{n}.w;")),
            each(|n| format!("texel = (texel ^ a{0}) * {0}u;", 60 - n)),
        );
        Self::new(&source, false, None)
    }

    fn new(texel: &str, arrayed: bool, lod: Option<f32>) -> Self {
        let ty = if arrayed { "texture_2d_array" } else { "texture_2d" };
        let source = format!(
            "@group(0) @binding(0) var image: {ty}<f32>;
            @group(0) @binding(1) var how: sampler;
            @group(0) @binding(2) var<storage, read> places: array<vec4f>;
            @group(0) @binding(3) var<storage, read_write> out: array<vec4f>;
            @compute @workgroup_size(64) fn main(@builtin(local_invocation_index) id: u32) {{
                if id < {COUNT}u {{
                    let at = places[id];
                    out[id] = {texel};
                }}
            }}"
        );
        let kernel =
            Module::from_wgsl(&source).expect("it is right").kernel("main", &BTreeMap::new()).expect("it is right");
        let bindings = kernel.bindings.values().map(|binding| binding.binding).collect();
        let mut backends: Vec<Backend> = Backend::available().collect();
        backends.reverse();
        let engines = backends.into_iter().map(|backend| {
            let compiled = compile(&kernel, backend);
            assert_eq!(compiled.fallback, None);
            (backend, compiled.code)
        });
        Self { bindings, engines: engines.collect(), arrayed, lod }
    }

    /// The samples of each engine.
    fn run(&self, image: &Picture, sampler: &Sampler, places: &[[f32; 4]]) -> Vec<(Backend, Vec<[f32; 4]>)> {
        self.run_in(&mut Scratch::default(), image, sampler, places)
    }

    fn run_in(
        &self,
        scratch: &mut Scratch,
        image: &Picture,
        sampler: &Sampler,
        places: &[[f32; 4]],
    ) -> Vec<(Backend, Vec<[f32; 4]>)> {
        let input = GuestSlice::leak(16 * COUNT);
        let words = places.iter().flatten().flat_map(|float| float.to_bits().to_le_bytes());
        input.write(0, &words.collect::<Vec<u8>>());
        let mut sample = |(backend, code): &(Backend, Box<dyn Code>)| {
            let output = GuestSlice::leak(16 * COUNT);
            let buffer = |binding: &u32| match binding {
                0 => image.view.memory,
                2 => input,
                3 => output,
                _ => GuestSlice::EMPTY,
            };
            let buffers: Vec<GuestSlice> = self.bindings.iter().map(buffer).collect();
            let descriptor = |binding: &u32| match binding {
                0 => Descriptor { view: image.view, ..Descriptor::NULL },
                1 => Descriptor { sampler: *sampler, ..Descriptor::NULL },
                _ => Descriptor::NULL,
            };
            let images: Vec<Descriptor> = self.bindings.iter().map(descriptor).collect();
            let (push, stop) = ([0; MAX_PUSH_BYTES], AtomicU32::new(0));
            let args =
                DispatchArgs { buffers: &buffers, images: &images, push: &push, num_workgroups: [1; 3], stop: &stop };
            code.run(&args, [0; 3], scratch);
            let float = |at: usize| f32::from_bits(output.load_u32(at as u64 * 4));
            let texels = (0..COUNT).map(|number| std::array::from_fn(|channel| float(4 * number + channel)));
            (*backend, texels.collect())
        };
        self.engines.iter().map(&mut sample).collect()
    }
}

/// Coordinates of an image's size: of neighbours, or anywhere, some of them no numbers of use.
fn places() -> impl Strategy<Value = (bool, [f32; 4], Vec<[f32; 4]>)> {
    let odd = prop::sample::select(vec![f32::NAN, f32::INFINITY, f32::NEG_INFINITY, 1e9, -3e6, 5e6, f32::MAX, -0.0]);
    let wide = prop_oneof![20 => -3.0f32..4.0, 1 => odd];
    let anywhere = [wide.clone().boxed(), wide.boxed(), (-1.0f32..4.0).boxed(), (-1.0f32..4.0).boxed()];
    let start = [-0.2f32..1.0, -0.2f32..1.0, 0.0f32..3.0, 0.0f32..3.0];
    (any::<bool>(), start, prop::collection::vec(anywhere, COUNT))
}

/// Samplers of one level or more, with and without a part in the level of detail.
fn samplers() -> impl Strategy<Value = Sampler> {
    let filters = || prop_oneof![3 => Just(Filter::Linear), 2 => Just(Filter::Nearest)];
    let lods = prop_oneof![3 => Just((0.0f32, 0.0f32)), 1 => (-1.0f32..1.0, -1.0f32..2.0)];
    (filters(), filters(), filters(), any::<bool>(), [wraps(), wraps(), wraps()], lods, any::<bool>()).prop_map(
        |(mag, other, mip, same, wrap, (lod_bias, min_lod), white)| Sampler {
            mag,
            min: if same { mag } else { other },
            mip,
            wrap,
            lod_bias,
            min_lod,
            max_lod: min_lod.max(0.0) + 2.0,
            border: [if white { 1f32.to_bits() } else { 0 }; 4],
            ..Sampler::DEFAULT
        },
    )
}

/// The same number, or both none.
fn agree(a: f32, b: f32) -> bool {
    a.to_bits() == b.to_bits() || a.is_nan() && b.is_nan()
}

fn check(cases: u32, format: Format, shaders: &[Shader]) {
    let strategy = (
        0..shaders.len(),
        [1u32..40, 1u32..40],
        1u32..3,
        any::<u64>(),
        samplers(),
        places(),
        prop_oneof![6 => Just(false), 1 => Just(true)],
        prop_oneof![6 => Just(Swizzle::IDENTITY), 1 => Just([Swizzle::B, Swizzle::One, Swizzle::R, Swizzle::Zero])],
    );
    let mut runner = TestRunner::new(Config { cases, failure_persistence: None, ..Config::default() });
    let (known, all) = (std::cell::Cell::new(0), std::cell::Cell::new(0));
    let result = runner.run(&strategy, |(which, [side, _], levels, seed, sampler, place, counts, swizzle)| {
        let shader = &shaders[which];
        let mut picture = Picture::new(Dim::D2, shader.arrayed, format, side, levels, seed);
        picture.view.swizzle = swizzle;
        let [width, height, _] = picture.view.size.map(|size| size as f32);
        let sampler = Sampler { unnormalized: counts, ..sampler };
        let (near, [x, y, layer, lod], mut places) = place;
        if near {
            // Lanes next to each other, a whole number of texels apart, as in a filter over an image.
            for (lane, at) in places.iter_mut().enumerate() {
                *at = [x + (lane % 16) as f32 / width, y + (lane / 16) as f32 / height, layer, lod];
            }
        }
        if counts {
            places.iter_mut().for_each(|at| (at[0], at[1]) = (at[0] * width, at[1] * height));
        }
        let answers = shader.run(&picture, &sampler, &places);
        for (number, at) in places.iter().enumerate() {
            let first = answers[0].1[number];
            for (backend, texels) in &answers[1..] {
                let found = texels[number];
                let same = (0..4).all(|channel| agree(found[channel], first[channel]));
                prop_assert!(
                    same,
                    "{backend} has {found:?} for {first:?} at {at:?}, lane {number}, {sampler:?} {:?}",
                    picture.view
                );
            }
            if !at[..2].iter().all(|c| c.abs() < 1e3) {
                continue;
            }
            // The layer is an integer here, cut off.
            let mut place: Vec<f64> = at[..2].iter().map(|&c| f64::from(c)).collect();
            if shader.arrayed {
                place.push(f64::from(at[2].trunc()));
            }
            let lod = f64::from(shader.lod.unwrap_or(at[3]));
            let question = Question {
                picture: &picture,
                sampler: &sampler,
                at: place,
                lod,
                min_lod: f64::NEG_INFINITY,
                offset: [0; 3],
                reference: None,
            };
            all.set(all.get() + 1);
            let Some(expected) = question.answer() else { continue };
            known.set(known.get() + 1);
            for channel in 0..4 {
                let near = (f64::from(first[channel]) - expected[channel]).abs() <= tolerance(format);
                prop_assert!(near, "{first:?} is not {expected:?}\n{question:?}");
            }
        }
        Ok(())
    });
    result.unwrap_or_else(|error| panic!("{format:?}: {error}"));
    assert!(known.get() * 3 > all.get(), "the reference knew {} of {}", known.get(), all.get());
}

/// Whether all engines gave the same texels as the first.
fn all_agree(answers: &[(Backend, Vec<[f32; 4]>)], sampler: &Sampler) -> Result<(), TestCaseError> {
    for (backend, texels) in &answers[1..] {
        for (found, first) in texels.iter().zip(&answers[0].1) {
            let same = (0..4).all(|channel| agree(found[channel], first[channel]));
            prop_assert!(same, "{backend} has {found:?} for {first:?} with {sampler:?}");
        }
    }
    Ok(())
}

#[test]
fn samples_that_follow_each_other_do_not_mix() {
    // One waits for another's result, the others do not.
    let first = "textureSampleLevel(image, how, at.xy, 0.0)";
    let source = format!(
        "max(max({first}, textureSampleLevel(image, how, at.yx, 0.0)),
            max(textureSampleLevel(image, how, at.xy + vec2f(0.25, 0.0), 0.0),
                max(textureSampleLevel(image, how, at.zw + {first}.xy, 0.0), textureSampleLevel(image, how, at.wx, 0.0))))"
    );
    let shader = Shader::new(&source, false, Some(0.0));
    let format = prop::sample::select(vec![Format::R8G8B8A8_UNORM, Format::R32_SFLOAT, Format::B8G8R8A8_UNORM]);
    let strategy = (2u32..40, any::<u64>(), format, samplers(), places());
    let mut runner = TestRunner::new(Config { cases: 500, failure_persistence: None, ..Config::default() });
    let result = runner.run(&strategy, |(side, seed, format, sampler, (near, [x, y, ..], mut places))| {
        let picture = Picture::new(Dim::D2, false, format, side, 1, seed);
        if near {
            let [width, height, _] = picture.view.size.map(|size| size as f32);
            for (lane, at) in places.iter_mut().enumerate() {
                let (right, below) = (x + (lane % 16) as f32 / width, y + (lane / 16) as f32 / height);
                *at = [right, below, 0.5 * right, below];
            }
        }
        let answers = shader.run(&picture, &sampler, &places);
        all_agree(&answers, &sampler)
    });
    result.unwrap_or_else(|error| panic!("{error}"));
}

#[test]
fn samples_that_are_calls_keep_large_frames() {
    let shader = Shader::with_large_frame();
    let format = prop::sample::select(vec![Format::R8G8B8A8_UNORM, Format::B8G8R8A8_UNORM]);
    let strategy = (2u32..40, any::<u64>(), format, samplers(), places());
    let mut runner = TestRunner::new(Config { cases: 50, failure_persistence: None, ..Config::default() });
    let result = runner.run(&strategy, |(side, seed, format, sampler, (_, _, places))| {
        let picture = Picture::new(Dim::D2, false, format, side, 2, seed);
        let mut scratch = Scratch::default();
        let answers = shader.run_in(&mut scratch, &picture, &sampler, &places);
        prop_assert!(answers.len() == 1 || scratch.stack.bytes() > 0, "all is in registers");
        all_agree(&answers, &sampler)
    });
    result.unwrap_or_else(|error| panic!("{error}"));
}

#[test]
fn a_panic_in_a_sample_comes_out_of_the_kernel() {
    // No image is like this: it has no texel that could be the nearest.
    let mut picture = Picture::new(Dim::D2, false, Format::B8G8R8A8_UNORM, 4, 1, 1);
    picture.view.size[0] = 0;
    for shader in [Shader::sample(false, None), Shader::with_large_frame()] {
        for engine in shader.engines {
            let backend = engine.0;
            let one = Shader { bindings: shader.bindings.clone(), engines: vec![engine], arrayed: false, lod: None };
            let run = || one.run(&picture, &Sampler::DEFAULT, &[[0.5; 4]; COUNT]);
            assert!(catch_unwind(AssertUnwindSafe(run)).is_err(), "{backend}");
        }
    }
}

#[test]
fn floats_between_two_rows_are_mixed_by_small_weights_too() {
    let (shader, sampler) = (Shader::sample(false, Some(0.0)), Sampler { mag: Filter::Linear, ..Sampler::DEFAULT });
    let sampler = Sampler { min: Filter::Linear, ..sampler };
    let picture = Picture::new(Dim::D2, false, Format::R32_SFLOAT, 40, 1, 5);
    let [width, height, _] = picture.view.size.map(|size| size as f32);
    // Places from a row, of 65,536 to the next.
    for part in [1u16, 2, 100, 200, 255, 256, 300, 65_535] {
        let y = 3.5 + f32::from(part) / 65_536.0;
        let places: Vec<[f32; 4]> =
            (0..COUNT).map(|lane| [(2.5 + (lane % 16) as f32) / width, y / height, 0.0, 0.0]).collect();
        let answers = shader.run(&picture, &sampler, &places);
        for (backend, texels) in &answers[1..] {
            assert_eq!(texels, &answers[0].1, "{backend}, part {part}");
        }
    }
}

#[test]
fn texels_that_are_read_are_those_of_the_image() {
    let shaders = [(false, Some(0.0)), (true, Some(0.0)), (false, None), (true, None), (false, Some(1.0))]
        .map(|(arrayed, lod)| Shader::read(arrayed, lod));
    let anywhere = [-3i32..40, -3i32..25, -1i32..4, -1i32..3];
    let places = (any::<bool>(), prop::collection::vec(anywhere, COUNT));
    let format = prop::sample::select(vec![Format::R8G8B8A8_UNORM, Format::R32_SFLOAT, Format::R16G16_SFLOAT]);
    let strategy = (0..shaders.len(), 1u32..40, 1u32..3, any::<u64>(), format, places);
    let mut runner = TestRunner::new(Config { cases: 1_000, failure_persistence: None, ..Config::default() });
    let result = runner.run(&strategy, |(which, side, levels, seed, format, (near, places))| {
        let shader = &shaders[which];
        let picture = Picture::new(Dim::D2, shader.arrayed, format, side, levels, seed);
        let mut places = places;
        if near {
            let [x, y, ..] = places[0];
            places
                .iter_mut()
                .enumerate()
                .for_each(|(lane, at)| *at = [x + lane as i32 % 16, y + lane as i32 / 16, 0, 0]);
        }
        let floats: Vec<[f32; 4]> = places.iter().map(|at| at.map(|c| c as f32)).collect();
        for (backend, texels) in shader.run(&picture, &Sampler::DEFAULT, &floats) {
            for (&[x, y, layer, lod], found) in places.iter().zip(texels) {
                let level = shader.lod.map_or(lod, |lod| lod as i32).cast_unsigned();
                let layer = if shader.arrayed { layer } else { 0 };
                let at = [x.cast_unsigned(), y.cast_unsigned(), 0];
                let offset = picture.view.texel(level, at, layer.cast_unsigned());
                let raw = offset.map_or([0; 4], |offset| load_raw(picture.view.memory, offset, format.bytes()));
                let expected = decode(format, raw);
                prop_assert_eq!(
                    found.map(f32::to_bits),
                    expected,
                    "{} at {}, {}, {} of {:?}",
                    backend,
                    x,
                    y,
                    lod,
                    format
                );
            }
        }
        Ok(())
    });
    result.unwrap_or_else(|error| panic!("{error}"));
}

#[test]
fn samples_are_those_of_the_interpreter_and_of_the_reference() {
    let shaders = [(false, Some(0.0)), (false, None), (true, Some(0.0)), (true, None), (false, Some(1.0))]
        .map(|(arrayed, lod)| Shader::sample(arrayed, lod));
    for format in [Format::R8G8B8A8_UNORM, Format::R32_SFLOAT] {
        check(1_500, format, &shaders);
    }
    // Those that are left to calls.
    let formats = [
        Format::B8G8R8A8_UNORM,
        Format::D32_SFLOAT,
        Format::R8G8B8A8_SRGB,
        Format::R16G16_SNORM,
        Format::R16G16B16A16_SFLOAT,
        Format::R32G32B32A32_SFLOAT,
    ];
    for format in formats {
        check(150, format, &shaders);
    }
}
