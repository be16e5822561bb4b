//! The reference of the path tracer: the kernel's arithmetic in the same order, on one thread in plain Rust.

use super::scene::{Camera, GLASS, LIGHT, METAL, Sphere, Vec3};

const BOUNCES: u32 = 6;
const NEAR: f32 = 0.001;
const FAR: f32 = 1.0e9;

/// The scene, and the random numbers of the sample being traced.
pub(super) struct Tracer<'a> {
    camera: Camera,
    spheres: &'a [Sphere],
    strata: u32,
    random_state: u32,
}

#[derive(Clone, Copy)]
struct Ray {
    origin: Vec3,
    direction: Vec3,
}

struct Hit {
    point: Vec3,
    normal: Vec3,
    colour: Vec3,
    material: u32,
    quality: f32,
    inside: bool,
}

impl<'a> Tracer<'a> {
    pub(super) fn new(camera: Camera, spheres: &'a [Sphere], strata: u32) -> Self {
        Self { camera, spheres, strata, random_state: 0 }
    }

    /// The sum of all samples of each pixel, and their number.
    pub(super) fn picture(mut self) -> Vec<[f32; 4]> {
        (0..self.camera.width * self.camera.height).map(|pixel| self.pixel(pixel)).collect()
    }

    fn pixel(&mut self, pixel: u32) -> [f32; 4] {
        let samples = self.strata * self.strata;
        let mut sum = [0.0; 3];
        for sample in 0..samples {
            self.random_state = hash(hash(pixel).wrapping_add(sample));
            let ray = self.camera_ray(pixel % self.camera.width, pixel / self.camera.width, sample);
            sum = add(sum, self.traced(ray));
        }
        [sum[0], sum[1], sum[2], samples as f32]
    }

    fn random(&mut self) -> f32 {
        self.random_state = advance(self.random_state);
        (scrambled(self.random_state) >> 8) as f32 * (1.0 / 16_777_216.0)
    }

    fn signed(&mut self) -> f32 {
        self.random() * 2.0 - 1.0
    }

    fn in_ball(&mut self) -> Vec3 {
        loop {
            let point = [self.signed(), self.signed(), self.signed()];
            if (0.0001..1.0).contains(&product(point, point)) {
                return point;
            }
        }
    }

    fn in_disc(&mut self) -> [f32; 2] {
        loop {
            let [x, y] = [self.signed(), self.signed()];
            if x * x + y * y < 1.0 {
                return [x, y];
            }
        }
    }

    fn camera_ray(&mut self, x: u32, y: u32, sample: u32) -> Ray {
        let strata = self.strata as f32;
        let stratum = [(sample % self.strata) as f32, (sample / self.strata % self.strata) as f32];
        let jitter = [self.random(), self.random()];
        let inside: [f32; 2] = std::array::from_fn(|i| (stratum[i] + jitter[i]) / strata);
        let camera = self.camera;
        let across = (x as f32 + inside[0]) / camera.width as f32;
        let down = (y as f32 + inside[1]) / camera.height as f32;
        let lens = self.in_disc().map(|c| c * camera.lens);
        let shift = add(scaled(unit(camera.right), lens[0]), scaled(unit(camera.up), lens[1]));
        let to = add(add(camera.corner, scaled(camera.right, across)), scaled(camera.up, 1.0 - down));
        Ray { origin: add(camera.eye, shift), direction: unit(minus(to, shift)) }
    }

    fn traced(&mut self, mut ray: Ray) -> Vec3 {
        let mut weight = [1.0; 3];
        for _ in 0..BOUNCES {
            let Some(hit) = self.nearest(ray) else { return times(weight, sky(ray.direction)) };
            weight = times(weight, hit.colour);
            if hit.material == LIGHT {
                return weight;
            }
            let direction = self.scattered(ray.direction, &hit);
            if hit.material == METAL && product(direction, hit.normal) <= 0.0 {
                return [0.0; 3];
            }
            ray = Ray { origin: hit.point, direction: unit(direction) };
        }
        [0.0; 3]
    }

    fn nearest(&self, ray: Ray) -> Option<Hit> {
        let mut found = None;
        let mut distance = FAR;
        for sphere in self.spheres {
            let here = meet(ray, sphere);
            if here < distance {
                (found, distance) = (Some(sphere), here);
            }
        }
        if let Some(here) = meet_floor(ray, distance) {
            let point = along(ray, here);
            let (normal, colour) = ([0.0, 1.0, 0.0], floor_colour(point));
            return Some(Hit { point, normal, colour, material: 0, quality: 0.0, inside: false });
        }
        let sphere = found?;
        let point = along(ray, distance);
        let outward = minus(point, sphere.centre).map(|c| c / sphere.radius);
        let inside = product(outward, ray.direction) > 0.0;
        let normal = if inside { outward.map(|c| -c) } else { outward };
        let Sphere { colour, material, quality, .. } = *sphere;
        Some(Hit { point, normal, colour, material, quality, inside })
    }

    fn scattered(&mut self, direction: Vec3, hit: &Hit) -> Vec3 {
        match hit.material {
            METAL => add(mirrored(direction, hit.normal), scaled(self.in_ball(), hit.quality)),
            GLASS => self.through_glass(direction, hit),
            _ => add(hit.normal, scaled(unit(self.in_ball()), 0.999)),
        }
    }

    fn through_glass(&mut self, direction: Vec3, hit: &Hit) -> Vec3 {
        let ratio = if hit.inside { hit.quality } else { 1.0 / hit.quality };
        let cosine = (-product(direction, hit.normal)).min(1.0);
        let sine_square = ratio * ratio * (1.0 - cosine * cosine);
        if sine_square >= 1.0 {
            return mirrored(direction, hit.normal);
        }
        let base = (1.0 - ratio) / (1.0 + ratio);
        let away = 1.0 - cosine;
        let twice = away * away;
        let reflectance = base * base + (1.0 - base * base) * (twice * twice * away);
        if self.random() < reflectance {
            return mirrored(direction, hit.normal);
        }
        add(scaled(direction, ratio), scaled(hit.normal, ratio * cosine - (1.0 - sine_square).sqrt()))
    }
}

/// One step of a linear congruential generator.
fn advance(state: u32) -> u32 {
    state.wrapping_mul(747_796_405).wrapping_add(2_891_336_453)
}

/// The output function of PCG, "RXS M XS" of 32 bits.
fn scrambled(state: u32) -> u32 {
    let word = ((state >> ((state >> 28) + 4)) ^ state).wrapping_mul(277_803_737);
    (word >> 22) ^ word
}

fn hash(value: u32) -> u32 {
    scrambled(advance(value))
}

fn meet(ray: Ray, sphere: &Sphere) -> f32 {
    let to = minus(sphere.centre, ray.origin);
    let middle = product(to, ray.direction);
    let rest = middle * middle - product(to, to) + sphere.radius * sphere.radius;
    if rest <= 0.0 {
        return FAR;
    }
    let root = rest.sqrt();
    [middle - root, middle + root].into_iter().find(|&distance| distance > NEAR).unwrap_or(FAR)
}

/// The distance to the floor, if it is nearer than `limit` and than the haze.
fn meet_floor(ray: Ray, limit: f32) -> Option<f32> {
    let distance = -ray.origin[1] / ray.direction[1];
    (ray.direction[1] < 0.0 && distance > NEAR && distance < limit && distance < 60.0).then_some(distance)
}

fn floor_colour(point: Vec3) -> Vec3 {
    let square = point[0].floor() as i32 + point[2].floor() as i32;
    if square & 1 == 0 { [0.78, 0.76, 0.72] } else { [0.22, 0.26, 0.30] }
}

fn sky(direction: Vec3) -> Vec3 {
    let height = 0.5 * direction[1] + 0.5;
    add(scaled([1.0, 0.93, 0.85], 1.0 - height), scaled([0.35, 0.55, 1.0], height))
}

fn mirrored(direction: Vec3, normal: Vec3) -> Vec3 {
    minus(direction, scaled(normal, 2.0 * product(direction, normal)))
}

fn along(ray: Ray, distance: f32) -> Vec3 {
    add(ray.origin, scaled(ray.direction, distance))
}

fn unit(v: Vec3) -> Vec3 {
    let length = product(v, v).sqrt();
    v.map(|c| c / length)
}

fn product(a: Vec3, b: Vec3) -> f32 {
    a[0] * b[0] + a[1] * b[1] + a[2] * b[2]
}

fn add(a: Vec3, b: Vec3) -> Vec3 {
    std::array::from_fn(|i| a[i] + b[i])
}

fn minus(a: Vec3, b: Vec3) -> Vec3 {
    std::array::from_fn(|i| a[i] - b[i])
}

fn times(a: Vec3, b: Vec3) -> Vec3 {
    std::array::from_fn(|i| a[i] * b[i])
}

fn scaled(v: Vec3, by: f32) -> Vec3 {
    v.map(|c| c * by)
}
