//! The peers' path tracer as plain `f32` Rust, one pixel after the other.

use std::ops::{Add, Div, Mul, Sub};

#[derive(Clone, Copy)]
struct V(f32, f32, f32);

impl Add for V {
    type Output = V;
    fn add(self, o: V) -> V {
        V(self.0 + o.0, self.1 + o.1, self.2 + o.2)
    }
}

impl Sub for V {
    type Output = V;
    fn sub(self, o: V) -> V {
        V(self.0 - o.0, self.1 - o.1, self.2 - o.2)
    }
}

impl Mul for V {
    type Output = V;
    fn mul(self, o: V) -> V {
        V(self.0 * o.0, self.1 * o.1, self.2 * o.2)
    }
}

impl Mul<f32> for V {
    type Output = V;
    fn mul(self, o: f32) -> V {
        V(self.0 * o, self.1 * o, self.2 * o)
    }
}

impl Div<f32> for V {
    type Output = V;
    fn div(self, o: f32) -> V {
        V(self.0 / o, self.1 / o, self.2 / o)
    }
}

fn dot(a: V, b: V) -> f32 {
    a.0 * b.0 + a.1 * b.1 + a.2 * b.2
}

fn unit(a: V) -> V {
    a / dot(a, a).sqrt()
}

struct Random(u32);

impl Random {
    fn next(&mut self) -> f32 {
        self.0 = self.0.wrapping_mul(747_796_405).wrapping_add(2_891_336_453);
        let word = ((self.0 >> ((self.0 >> 28) + 4)) ^ self.0).wrapping_mul(277_803_737);
        (((word >> 22) ^ word) >> 8) as f32 * (1.0 / 16_777_216.0)
    }

    fn in_ball(&mut self) -> V {
        loop {
            let (x, y, z) = (self.next(), self.next(), self.next());
            let p = V(2.0 * x - 1.0, 2.0 * y - 1.0, 2.0 * z - 1.0);
            if dot(p, p) < 1.0 {
                return p;
            }
        }
    }
}

fn hit(sphere: &[f32], origin: V, way: V) -> f32 {
    let oc = origin - V(sphere[0], sphere[1], sphere[2]);
    let b = dot(oc, way);
    let aside = oc - way * b;
    let disc = sphere[3] * sphere[3] - dot(aside, aside);
    if disc < 0.0 {
        return -1.0;
    }
    let root = disc.sqrt();
    if -b - root > 1e-3 { -b - root } else { -b + root }
}

fn path(scene: &[f32], random: &mut Random, mut origin: V, mut way: V) -> V {
    let mut light = V(1.0, 1.0, 1.0);
    for _ in 0..6 {
        let mut nearest: Option<(f32, &[f32])> = None;
        for sphere in scene.chunks(8) {
            let t = hit(sphere, origin, way);
            if t > 1e-3 && nearest.is_none_or(|(near, _)| t < near) {
                nearest = Some((t, sphere));
            }
        }
        let Some((near, sphere)) = nearest else {
            let sky = 0.5 * way.1 + 0.5;
            return light * (V(1.0, 1.0, 1.0) * (1.0 - sky) + V(0.5, 0.7, 1.0) * sky);
        };
        origin = origin + way * near;
        let normal = (origin - V(sphere[0], sphere[1], sphere[2])) / sphere[3];
        light = light * V(sphere[4], sphere[5], sphere[6]);
        if sphere[7] < 0.0 {
            way = unit(normal + random.in_ball());
        } else {
            let mirrored = way - normal * (2.0 * dot(normal, way));
            way = unit(mirrored + random.in_ball() * sphere[7]);
            if dot(way, normal) <= 0.0 {
                return V(0.0, 0.0, 0.0);
            }
        }
    }
    V(0.0, 0.0, 0.0)
}

/// `n` × `n` pixels of four components.
pub(crate) fn trace(scene: &[f32], n: u32, samples: u32) -> Vec<f32> {
    let pixel = |i: u32| {
        let (px, py) = (i % n, i / n);
        let mut random = Random(i.wrapping_mul(9781));
        let mut sum = V(0.0, 0.0, 0.0);
        for _ in 0..samples {
            let (dx, dy) = (random.next(), random.next());
            let (x, y) = (2.0 * (px as f32 + dx) / n as f32 - 1.0, 2.0 * (py as f32 + dy) / n as f32 - 1.0);
            sum = sum + path(scene, &mut random, V(0.0, 0.0, 2.0), unit(V(x, -y, -1.5)));
        }
        let V(r, g, b) = sum / samples as f32;
        [r, g, b, 1.0]
    };
    (0..n * n).flat_map(pixel).collect()
}
