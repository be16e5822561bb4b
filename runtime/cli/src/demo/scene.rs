//! The scene of the path tracer: a camera and spheres, in the layout of the kernel's blocks.

use crate::random::Random;

pub(super) const DIFFUSE: u32 = 0;
pub(super) const METAL: u32 = 1;
pub(super) const GLASS: u32 = 2;
pub(super) const LIGHT: u32 = 3;

pub(super) type Vec3 = [f32; 3];

/// A sphere.
#[repr(C)]
#[derive(Clone, Copy, bytemuck::NoUninit)]
pub(super) struct Sphere {
    pub(super) centre: Vec3,
    pub(super) radius: f32,
    pub(super) colour: Vec3,
    pub(super) material: u32,
    pub(super) quality: f32,
    padding: [f32; 3],
}

/// The camera's uniform block.
#[repr(C)]
#[derive(Clone, Copy, bytemuck::NoUninit)]
pub(super) struct Camera {
    pub(super) eye: Vec3,
    pub(super) lens: f32,
    pub(super) corner: Vec3,
    pub(super) spheres: u32,
    pub(super) right: Vec3,
    pub(super) width: u32,
    pub(super) up: Vec3,
    pub(super) height: u32,
}

fn sphere(centre: Vec3, radius: f32, material: u32, colour: Vec3, quality: f32) -> Sphere {
    Sphere { centre, radius, colour, material, quality, padding: [0.0; 3] }
}

/// Three large spheres, a lamp, and small spheres around them.
pub(super) fn spheres() -> Vec<Sphere> {
    let mut all = vec![
        sphere([0.0, 1.0, 0.0], 1.0, GLASS, [0.97, 0.99, 0.98], 1.5),
        sphere([-2.1, 1.0, -0.7], 1.0, DIFFUSE, [0.75, 0.22, 0.16], 0.0),
        sphere([2.1, 1.0, -0.5], 1.0, METAL, [0.93, 0.80, 0.52], 0.03),
        sphere([0.4, 2.7, -2.6], 0.55, LIGHT, [7.0, 6.2, 5.0], 0.0),
    ];
    let mut random = Random::new(34);
    while all.len() < 16 {
        let radius = 0.2 + 0.16 * random.fraction();
        let centre = [random.signed() * 3.6, radius, 0.4 + random.signed() * 2.2];
        let colour = std::array::from_fn(|_| 0.2 + 0.7 * random.fraction());
        let apart = all.iter().all(|other| distance(other.centre, centre) > other.radius + radius + 0.08);
        let made = match all.len() % 3 {
            0 => sphere(centre, radius, DIFFUSE, colour, 0.0),
            1 => sphere(centre, radius, METAL, colour.map(|c| 0.4 + 0.6 * c), 0.3 * random.fraction()),
            _ => sphere(centre, radius, GLASS, [0.95, 0.97, 1.0], 1.5),
        };
        if apart {
            all.push(made);
        }
    }
    all
}

/// A camera at `EYE` that looks at and is focused on `TARGET`.
pub(super) fn camera(width: u32, height: u32, spheres: u32) -> Camera {
    const EYE: Vec3 = [0.9, 1.9, 6.4];
    const TARGET: Vec3 = [0.0, 0.85, 0.0];
    const HALF_HEIGHT: f32 = 0.36;
    let back = scaled(minus(EYE, TARGET), 1.0);
    let focus = distance(EYE, TARGET);
    let back = scaled(back, 1.0 / focus);
    let side = cross([0.0, 1.0, 0.0], back);
    let side = scaled(side, 1.0 / distance(side, [0.0; 3]));
    let half = HALF_HEIGHT * focus;
    let right = scaled(side, 2.0 * half * width as f32 / height as f32);
    let up = scaled(cross(back, side), 2.0 * half);
    let corner = std::array::from_fn(|i| -back[i] * focus - 0.5 * right[i] - 0.5 * up[i]);
    Camera { eye: EYE, lens: 0.05, corner, spheres, right, width, up, height }
}

fn minus(a: Vec3, b: Vec3) -> Vec3 {
    std::array::from_fn(|i| a[i] - b[i])
}

fn scaled(v: Vec3, by: f32) -> Vec3 {
    v.map(|c| c * by)
}

fn cross(a: Vec3, b: Vec3) -> Vec3 {
    [a[1] * b[2] - a[2] * b[1], a[2] * b[0] - a[0] * b[2], a[0] * b[1] - a[1] * b[0]]
}

fn distance(a: Vec3, b: Vec3) -> f32 {
    minus(a, b).iter().map(|c| c * c).sum::<f32>().sqrt()
}
