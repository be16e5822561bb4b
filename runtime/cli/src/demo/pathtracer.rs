//! A path tracer: loops with different numbers of iterations in neighbouring invocations, and many divergent branches.

use spelter::Context;

use super::check;
use super::scene::{camera, spheres};
use super::stage::{Done, Stage};
use super::trace::Tracer;
use crate::failure::Failure;
use crate::rgb_picture::RgbPicture;

const WIDTH: u32 = 384;
const HEIGHT: u32 = 216;
/// Samples of a pixel in each direction.
const STRATA: u32 = 4;
/// Samples of a pixel in one dispatch.
const SAMPLES: u32 = 2;

/// The kernel's push constants.
#[repr(C)]
#[derive(Clone, Copy, bytemuck::NoUninit)]
struct PushConstants {
    first: u32,
    count: u32,
    strata: u32,
}

pub(super) fn run(stage: &Stage<'_>) -> Result<Done, Failure> {
    let spheres = spheres();
    let camera = camera(WIDTH, HEIGHT, spheres.len() as u32);
    let pixels = (WIDTH * HEIGHT) as usize;
    let program = stage.context.program_wgsl(include_str!("../../../../shaders/library/pathtracer.wgsl"))?;
    let (camera_buffer, sphere_buffer) = (stage.buffer(&[camera])?, stage.buffer(&spheres)?);
    let light = stage.words(pixels * 4)?;

    let samples = STRATA * STRATA;
    // The light of each pixel is a sum, to which later runs add.
    let record = |context: &Context| {
        (0..samples).step_by(SAMPLES as usize).try_for_each(|first| {
            let dispatch = context.dispatch(&program).bind(0, 0, &camera_buffer).bind(0, 1, &sphere_buffer);
            let push = PushConstants { first, count: SAMPLES, strata: STRATA };
            dispatch.bind(0, 2, &light).push(&push).invocations([WIDTH, HEIGHT, 1])
        })
    };
    stage.run(record)?;

    let got: Vec<[f32; 4]> = stage.context.read(&light)?;
    let bytes = developed(&got);
    let want = developed(&Tracer::new(camera, &spheres, STRATA).picture());
    // The reference runs the same operations in the same order. If a device rounds one of them differently, a path may
    // take another direction and change its pixel; that must be rare.
    let differ = check::pictures(&bytes, &want, 2, pixels / 50)?;
    let note = format!("{WIDTH} x {HEIGHT}, {samples} samples; {differ} pixels differ in rounding");
    let paths = pixels as f64 * f64::from(samples) / 1e6;
    let picture = RgbPicture { width: WIDTH, height: HEIGHT, bytes };
    Ok(stage.measured(record, paths, "M paths/s")?.note(note).picture(picture))
}

/// The mean light of each pixel as bytes of red, green and blue.
fn developed(light: &[[f32; 4]]) -> Vec<u8> {
    light.iter().flat_map(|sum| [0, 1, 2].map(|i| tone(sum[i] / sum[3]))).collect()
}

/// Tone mapping, then the gamma curve of displays.
fn tone(light: f32) -> u8 {
    let exposed = light * 0.85;
    let mapped = exposed * (1.0 + exposed / 9.0) / (1.0 + exposed * 0.45);
    (mapped.clamp(0.0, 1.0).powf(1.0 / 2.2) * 255.0 + 0.5) as u8
}
