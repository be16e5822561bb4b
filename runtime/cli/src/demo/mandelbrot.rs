//! The Mandelbrot set with smooth colours, four samples for each pixel.

use spelter::Context;

use super::check;
use super::stage::{Done, Stage};
use crate::failure::Failure;
use crate::rgb_picture::RgbPicture;

/// The kernel's uniform block.
#[repr(C)]
#[derive(Clone, Copy, bytemuck::NoUninit)]
struct View {
    centre: [f32; 2],
    pixel: f32,
    limit: u32,
    size: [u32; 2],
}

/// A part of the seahorse valley.
const VIEW: View = View { centre: [-0.7478, 0.1075], pixel: 0.0115 / 432.0, limit: 300, size: [432, 288] };

pub(super) fn run(stage: &Stage<'_>) -> Result<Done, Failure> {
    let [width, height] = VIEW.size;
    let pixels = (width * height) as usize;
    let program = stage.context.program_wgsl(include_str!("../../../../shaders/library/mandelbrot.wgsl"))?;
    let (view, picture) = (stage.buffer(&[VIEW])?, stage.words(pixels)?);

    let record = |context: &Context| {
        let dispatch = context.dispatch(&program).bind(0, 0, &view).bind(0, 1, &picture);
        dispatch.invocations([width, height, 1])
    };
    stage.run(record)?;

    let got: Vec<u32> = stage.context.read(&picture)?;
    let bytes: Vec<u8> = got.iter().flat_map(|pixel| pixel.to_le_bytes().into_iter().take(3)).collect();
    // The reference runs the same operations in the same order; logarithms and cosines may differ in their last bits.
    // WGSL allows products and sums to be fused: points near the edge then escape at other steps.
    let (want, steps) = reference(|a, b, c| a * b + c);
    let differ = match check::pictures(&bytes, &want, 2, pixels / 200) {
        Ok(differ) => differ,
        Err(_) => check::pictures(&bytes, &reference(f32::mul_add).0, 2, pixels / 200)?,
    };
    let note = format!("{width} x {height}, 4 samples; {differ} pixels differ in rounding");
    Ok(stage.measured(record, steps as f64 / 1e6, "M steps/s")?.note(note).picture(RgbPicture { width, height, bytes }))
}

/// The picture, and the number of steps of all points; `fma` multiplies and adds, fused or not.
fn reference(fma: impl Fn(f32, f32, f32) -> f32) -> (Vec<u8>, u64) {
    let [width, height] = VIEW.size;
    let corner: [f32; 2] = std::array::from_fn(|i| fma(-(VIEW.size[i] as f32), 0.5 * VIEW.pixel, VIEW.centre[i]));
    let mut all = 0;
    let mut bytes = Vec::new();
    for (y, x) in (0..height).flat_map(|y| (0..width).map(move |x| (y, x))) {
        let mut sum = [0.0f32; 3];
        for offset in [[0.25f32, 0.25], [0.75, 0.25], [0.25, 0.75], [0.75, 0.75]] {
            let at = [x as f32 + offset[0], y as f32 + offset[1]];
            let (steps, square) = escape(std::array::from_fn(|i| fma(at[i], VIEW.pixel, corner[i])), &fma);
            all += u64::from(steps);
            let colour = if steps == VIEW.limit { [0.0; 3] } else { palette(steps, square) };
            sum = std::array::from_fn(|i| sum[i] + colour[i]);
        }
        bytes.extend(sum.map(|s| (s * 0.25 * 255.0 + 0.5) as u8));
    }
    (bytes, all)
}

/// The number of steps until a point escapes, and the square of its distance then.
fn escape(c: [f32; 2], fma: impl Fn(f32, f32, f32) -> f32) -> (u32, f32) {
    let (mut x, mut y) = (0.0f32, 0.0f32);
    let (mut xx, mut yy) = (0.0f32, 0.0f32);
    let mut steps = 0;
    while steps < VIEW.limit && xx + yy < 1024.0 {
        (x, y) = (xx - yy + c[0], fma(2.0 * x, y, c[1]));
        (xx, yy) = (x * x, y * y);
        steps += 1;
    }
    (steps, xx + yy)
}

fn palette(steps: u32, square: f32) -> [f32; 3] {
    let smooth = steps as f32 + 1.0 - (0.5 * square.log2()).log2();
    let turn = smooth.max(1.0).log2() * 3.0;
    [3.5f32, 4.1, 5.0].map(|phase| 0.5 - 0.5 * (turn + phase).cos())
}
