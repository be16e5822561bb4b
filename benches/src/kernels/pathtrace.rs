//! A path tracer: every loop and branch is divergent. The scene and the counts are those of the peers' measurements.

use rayon::prelude::*;
use spelter::{Buffer, Context, Program};

use crate::unit::{Limit, Target, Unit, Yardstick};
use crate::work::{Cost, Kernel, Size, Work, bound};
use crate::{Error, check};

pub(super) const PATHTRACE: Kernel = Kernel {
    name: "pathtrace",
    unit: Unit::Things("path"),
    limit: Limit::Unknown,
    target: Target { factor: 5.0, of: Yardstick::Lavapipe(23.0) },
    prepare: |context, size| Ok(Box::new(Pathtrace::new(context, size)?)),
};

/// The kernel's text.
pub(crate) const TEXT: &str = crate::work::shader!("pathtrace");

const SAMPLES: u32 = 8;
/// Pixels per task of plain Rust.
const CHUNK: usize = 512;

type Vec3 = [f32; 3];

/// Centre and radius; colour, and the blur of the reflection, below 0 for none.
type Sphere = [f32; 8];

pub(crate) const SCENE: [Sphere; 8] = [
    [0.0, -8.5, -1.0, 8.0, 0.6, 0.6, 0.5, -1.0],
    [0.0, 0.0, -1.0, 0.5, 0.8, 0.3, 0.2, -1.0],
    [1.1, 0.0, -1.0, 0.5, 0.8, 0.7, 0.3, 0.0],
    [-1.1, 0.0, -1.0, 0.5, 0.8, 0.8, 0.8, 0.3],
    [0.4, -0.35, -0.3, 0.15, 0.2, 0.4, 0.9, -1.0],
    [-0.4, -0.35, -0.3, 0.15, 0.9, 0.9, 0.9, 0.0],
    [0.0, 0.7, -1.4, 0.3, 0.3, 0.8, 0.4, 0.1],
    [1.6, 0.5, -2.0, 0.8, 0.7, 0.4, 0.7, -1.0],
];

struct Pathtrace {
    context: Context,
    program: Program,
    buffers: [Buffer; 2],
    /// Pixels per row.
    size: usize,
    pixels: Vec<[f32; 4]>,
}

impl Pathtrace {
    fn new(context: &Context, size: Size) -> Result<Self, Error> {
        let size = size.pick(24, 256);
        let pixels = vec![[0.0; 4]; size * size];
        let buffers = [context.buffer_from(&SCENE)?, context.buffer_from(&pixels)?];
        let program = context.program_wgsl(TEXT)?;
        Ok(Self { context: context.clone(), program, buffers, size, pixels })
    }
}

impl Work for Pathtrace {
    fn cost(&self) -> Cost {
        let working_set = self.pixels.len() * 16;
        let amount = self.pixels.len() as f64 * f64::from(SAMPLES);
        Cost { amount, bytes: working_set as f64, working_set }
    }

    fn record(&self) -> Result<(), Error> {
        let size = self.size as u32;
        let dispatch = bound(&self.context, &self.program, &self.buffers.each_ref());
        Ok(dispatch.push(&[size, SAMPLES, SCENE.len() as u32]).invocations([size, size, 1])?)
    }

    fn plain(&mut self) {
        let size = self.size;
        let chunks = self.pixels.par_chunks_mut(CHUNK).enumerate();
        chunks.for_each(|(chunk, pixels)| trace_pixels(pixels, chunk * CHUNK, size, &SCENE));
    }

    /// The last bit of a root may redirect a path, but only of a few.
    fn compare(&self) -> Result<(), Error> {
        let same = |got: &[f32; 4], want: &[f32; 4]| got.iter().zip(want).all(|(got, want)| (got - want).abs() <= 2e-3);
        check::mostly(&self.context.read(&self.buffers[1])?, &self.pixels, 0.02, same)
    }
}

native! {
    fn trace_pixels(pixels: &mut [[f32; 4]], first: usize, size: usize, scene: &[Sphere]) {
        for (offset, pixel) in pixels.iter_mut().enumerate() {
            *pixel = traced_pixel(first + offset, size, scene);
        }
    }
}

#[inline(always)]
fn traced_pixel(index: usize, size: usize, scene: &[Sphere]) -> [f32; 4] {
    let mut random = Random((index as u32).wrapping_mul(9781));
    let mut sum = [0.0; 3];
    for _ in 0..SAMPLES {
        let [x, y] = [index % size, index / size].map(|at| 2.0 * (at as f32 + random.next()) / size as f32 - 1.0);
        let light = traced(scene, [0.0, 0.0, 2.0], unit([x, -y, -1.5]), &mut random);
        sum = along(sum, 1.0, light);
    }
    let [red, green, blue] = sum.map(|sum| sum / SAMPLES as f32);
    [red, green, blue, 1.0]
}

struct Random(u32);

impl Random {
    #[inline(always)]
    fn next(&mut self) -> f32 {
        self.0 = self.0.wrapping_mul(747_796_405).wrapping_add(2_891_336_453);
        let word = ((self.0 >> ((self.0 >> 28) + 4)) ^ self.0).wrapping_mul(277_803_737);
        (((word >> 22) ^ word) >> 8) as f32 / 16_777_216.0
    }

    #[inline(always)]
    fn in_ball(&mut self) -> Vec3 {
        loop {
            let point = [(); 3].map(|()| 2.0 * self.next() - 1.0);
            if dot(point, point) < 1.0 {
                return point;
            }
        }
    }
}

#[inline(always)]
fn traced(scene: &[Sphere], mut origin: Vec3, mut way: Vec3, random: &mut Random) -> Vec3 {
    let mut light = [1.0f32; 3];
    for _ in 0..6 {
        let (mut nearest, mut hit) = (1e30, None);
        for sphere in scene {
            let distance = meet(sphere, origin, way);
            if distance > 1e-3 && distance < nearest {
                (nearest, hit) = (distance, Some(sphere));
            }
        }
        let Some(&[x, y, z, radius, red, green, blue, fuzz]) = hit else {
            let up = 0.5 * way[1] + 0.5;
            return std::array::from_fn(|k| light[k] * (1.0 - up + up * [0.5, 0.7, 1.0][k]));
        };
        origin = along(origin, nearest, way);
        let normal = along(origin, -1.0, [x, y, z]).map(|part| part / radius);
        light = std::array::from_fn(|k| light[k] * [red, green, blue][k]);
        if fuzz < 0.0 {
            way = unit(along(normal, 1.0, random.in_ball()));
        } else {
            let mirrored = along(way, -2.0 * dot(normal, way), normal);
            way = unit(along(mirrored, fuzz, random.in_ball()));
            if dot(way, normal) <= 0.0 {
                return [0.0; 3];
            }
        }
    }
    [0.0; 3]
}

/// Distance along the ray to the sphere; negative if it misses.
#[inline(always)]
fn meet(&[x, y, z, radius, ..]: &Sphere, origin: Vec3, way: Vec3) -> f32 {
    let from_centre = along(origin, -1.0, [x, y, z]);
    let middle = dot(from_centre, way);
    let aside = along(from_centre, -middle, way);
    let rest = radius * radius - dot(aside, aside);
    if rest < 0.0 {
        return -1.0;
    }
    let root = rest.sqrt();
    if -middle - root > 1e-3 { -middle - root } else { -middle + root }
}

#[inline(always)]
fn dot(a: Vec3, b: Vec3) -> f32 {
    a[0] * b[0] + a[1] * b[1] + a[2] * b[2]
}

/// `a + scale * b`
#[inline(always)]
fn along(a: Vec3, scale: f32, b: Vec3) -> Vec3 {
    std::array::from_fn(|k| a[k] + scale * b[k])
}

#[inline(always)]
fn unit(a: Vec3) -> Vec3 {
    let length = dot(a, a).sqrt();
    a.map(|part| part / length)
}
