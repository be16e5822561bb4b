// A path tracer for spheres over a chequered floor, lit by the sky and by spheres that glow.
//
// Directions and points on the lens are found by rejection, so the loops of neighbouring invocations end at different
// times. Random numbers come from a hash of pixel and sample: the picture is the same whenever it is computed.

const DIFFUSE: u32 = 0;
const METAL: u32 = 1;
const GLASS: u32 = 2;
const LIGHT: u32 = 3;

const BOUNCES: u32 = 6;
const NEAR: f32 = 0.001;
const FAR: f32 = 1.0e9;

struct Sphere {
    centre: vec3<f32>,
    radius: f32,
    colour: vec3<f32>,
    material: u32,
    // Metal: how rough. Glass: its refractive index.
    quality: f32,
}

struct Camera {
    eye: vec3<f32>,
    lens: f32,
    // From the eye to the lower left corner of the picture, in the plane that is in focus.
    corner: vec3<f32>,
    spheres: u32,
    right: vec3<f32>,
    width: u32,
    up: vec3<f32>,
    height: u32,
}

struct Samples {
    first: u32,
    count: u32,
    // Samples of a pixel lie in strata: this many in each direction.
    strata: u32,
}

struct Ray {
    origin: vec3<f32>,
    direction: vec3<f32>,
}

struct Hit {
    distance: f32,
    point: vec3<f32>,
    // Against the ray.
    normal: vec3<f32>,
    colour: vec3<f32>,
    material: u32,
    quality: f32,
    // The ray comes from inside.
    inside: bool,
}

var<immediate> samples: Samples;
@group(0) @binding(0) var<uniform> camera: Camera;
@group(0) @binding(1) var<storage, read> spheres: array<Sphere>;
// Sums of the samples so far.
@group(0) @binding(2) var<storage, read_write> light: array<vec4<f32>>;

var<private> random_state: u32;

fn hash(value: u32) -> u32 {
    let state = value * 747796405u + 2891336453u;
    let word = ((state >> ((state >> 28u) + 4u)) ^ state) * 277803737u;
    return (word >> 22u) ^ word;
}

// From 0 up to, not including, 1.
fn random() -> f32 {
    random_state = random_state * 747796405u + 2891336453u;
    let word = ((random_state >> ((random_state >> 28u) + 4u)) ^ random_state) * 277803737u;
    return f32(((word >> 22u) ^ word) >> 8u) * (1.0 / 16777216.0);
}

fn random_signed() -> f32 {
    return random() * 2.0 - 1.0;
}

fn random_in_ball() -> vec3<f32> {
    var point = vec3<f32>(random_signed(), random_signed(), random_signed());
    while product(point, point) >= 1.0 || product(point, point) < 0.0001 {
        point = vec3<f32>(random_signed(), random_signed(), random_signed());
    }
    return point;
}

fn random_in_disc() -> vec2<f32> {
    var point = vec2<f32>(random_signed(), random_signed());
    while point.x * point.x + point.y * point.y >= 1.0 {
        point = vec2<f32>(random_signed(), random_signed());
    }
    return point;
}

fn product(a: vec3<f32>, b: vec3<f32>) -> f32 {
    return a.x * b.x + a.y * b.y + a.z * b.z;
}

fn unit(v: vec3<f32>) -> vec3<f32> {
    return v / sqrt(product(v, v));
}

fn sky(direction: vec3<f32>) -> vec3<f32> {
    let height = 0.5 * direction.y + 0.5;
    return (1.0 - height) * vec3<f32>(1.0, 0.93, 0.85) + height * vec3<f32>(0.35, 0.55, 1.0);
}

// Distance to the sphere along the ray, or `FAR`.
fn meet(ray: Ray, centre: vec3<f32>, radius: f32) -> f32 {
    let to = centre - ray.origin;
    let along = product(to, ray.direction);
    let rest = along * along - product(to, to) + radius * radius;
    if rest <= 0.0 {
        return FAR;
    }
    let root = sqrt(rest);
    if along - root > NEAR {
        return along - root;
    }
    if along + root > NEAR {
        return along + root;
    }
    return FAR;
}

fn floor_colour(point: vec3<f32>) -> vec3<f32> {
    let square = i32(floor(point.x)) + i32(floor(point.z));
    if (square & 1) == 0 {
        return vec3<f32>(0.78, 0.76, 0.72);
    }
    return vec3<f32>(0.22, 0.26, 0.30);
}

fn nearest(ray: Ray) -> Hit {
    var hit: Hit;
    hit.distance = FAR;
    var found = camera.spheres;
    for (var i = 0u; i < camera.spheres; i++) {
        let distance = meet(ray, spheres[i].centre, spheres[i].radius);
        if distance < hit.distance {
            hit.distance = distance;
            found = i;
        }
    }
    // The floor is the plane y = 0, up to the horizon's haze.
    if ray.direction.y < 0.0 {
        let distance = -ray.origin.y / ray.direction.y;
        if distance > NEAR && distance < hit.distance && distance < 60.0 {
            hit.distance = distance;
            hit.point = ray.origin + distance * ray.direction;
            hit.normal = vec3<f32>(0.0, 1.0, 0.0);
            hit.colour = floor_colour(hit.point);
            hit.material = DIFFUSE;
            return hit;
        }
    }
    if found < camera.spheres {
        let sphere = spheres[found];
        hit.point = ray.origin + hit.distance * ray.direction;
        hit.normal = (hit.point - sphere.centre) / sphere.radius;
        hit.inside = product(hit.normal, ray.direction) > 0.0;
        if hit.inside {
            hit.normal = -hit.normal;
        }
        hit.colour = sphere.colour;
        hit.material = sphere.material;
        hit.quality = sphere.quality;
    }
    return hit;
}

fn mirrored(direction: vec3<f32>, normal: vec3<f32>) -> vec3<f32> {
    return direction - 2.0 * product(direction, normal) * normal;
}

// Through the glass, or back from its surface: by chance, as often as Schlick's formula says.
fn through_glass(direction: vec3<f32>, hit: Hit) -> vec3<f32> {
    var ratio = 1.0 / hit.quality;
    if hit.inside {
        ratio = hit.quality;
    }
    let cosine = min(-product(direction, hit.normal), 1.0);
    let sine_square = ratio * ratio * (1.0 - cosine * cosine);
    if sine_square >= 1.0 {
        return mirrored(direction, hit.normal);
    }
    let base = (1.0 - ratio) / (1.0 + ratio);
    let away = 1.0 - cosine;
    let twice = away * away;
    let reflectance = base * base + (1.0 - base * base) * (twice * twice * away);
    if random() < reflectance {
        return mirrored(direction, hit.normal);
    }
    return ratio * direction + (ratio * cosine - sqrt(1.0 - sine_square)) * hit.normal;
}

fn scattered(direction: vec3<f32>, hit: Hit) -> vec3<f32> {
    switch hit.material {
        case METAL: {
            return mirrored(direction, hit.normal) + hit.quality * random_in_ball();
        }
        case GLASS: {
            return through_glass(direction, hit);
        }
        default: {
            return hit.normal + unit(random_in_ball()) * 0.999;
        }
    }
}

fn traced(first: Ray) -> vec3<f32> {
    var ray = first;
    var weight = vec3<f32>(1.0);
    for (var bounce = 0u; bounce < BOUNCES; bounce++) {
        let hit = nearest(ray);
        if hit.distance == FAR {
            return weight * sky(ray.direction);
        }
        if hit.material == LIGHT {
            return weight * hit.colour;
        }
        weight *= hit.colour;
        let direction = scattered(ray.direction, hit);
        if hit.material == METAL && product(direction, hit.normal) <= 0.0 {
            return vec3<f32>(0.0);
        }
        ray = Ray(hit.point, unit(direction));
    }
    return vec3<f32>(0.0);
}

fn camera_ray(pixel: vec2<u32>, sample: u32) -> Ray {
    let stratum = vec2<f32>(f32(sample % samples.strata), f32(sample / samples.strata % samples.strata));
    let jitter = vec2<f32>(random(), random());
    let inside = (stratum + jitter) / f32(samples.strata);
    let at = (vec2<f32>(pixel) + inside) / vec2<f32>(f32(camera.width), f32(camera.height));
    let lens = random_in_disc() * camera.lens;
    let shift = unit(camera.right) * lens.x + unit(camera.up) * lens.y;
    let direction = camera.corner + at.x * camera.right + (1.0 - at.y) * camera.up - shift;
    return Ray(camera.eye + shift, unit(direction));
}

@compute @workgroup_size(8, 8)
fn main(@builtin(global_invocation_id) id: vec3<u32>) {
    if id.x >= camera.width || id.y >= camera.height {
        return;
    }
    let pixel = id.y * camera.width + id.x;
    var sum = vec3<f32>(0.0);
    for (var i = 0u; i < samples.count; i++) {
        let sample = samples.first + i;
        random_state = hash(hash(pixel) + sample);
        sum += traced(camera_ray(id.xy, sample));
    }
    light[pixel] += vec4<f32>(sum, f32(samples.count));
}
