// A path tracer for spheres of two materials under a sky. Points in a ball are found by rejection: every loop and
// branch ends differently in neighbouring invocations.

const BOUNCES: u32 = 6;
const NEAR: f32 = 1e-3;

struct Sphere {
    // Centre and radius.
    place: vec4<f32>,
    // Colour, and how blurred a mirror it is; below 0: not a mirror.
    look: vec4<f32>,
}

struct Picture {
    // Pixels in a row: a multiple of 8.
    size: u32,
    samples: u32,
    spheres: u32,
}

// A different start of the random numbers, and a different pipeline.
@id(0) override salt: u32 = 0;

var<immediate> picture: Picture;
@group(0) @binding(0) var<storage, read> spheres: array<Sphere>;
@group(0) @binding(1) var<storage, read_write> pixels: array<vec4<f32>>;

var<private> state: u32;

// From 0 up to, not including, 1.
fn random() -> f32 {
    state = state * 747796405u + 2891336453u;
    let word = ((state >> ((state >> 28u) + 4u)) ^ state) * 277803737u;
    return f32(((word >> 22u) ^ word) >> 8u) * (1.0 / 16777216.0);
}

fn random_in_cube() -> vec3<f32> {
    let x = random();
    let y = random();
    let z = random();
    return 2.0 * vec3<f32>(x, y, z) - 1.0;
}

fn random_in_ball() -> vec3<f32> {
    var point = random_in_cube();
    while dot(point, point) >= 1.0 {
        point = random_in_cube();
    }
    return point;
}

// Distance along the ray to the sphere; negative if it misses.
fn meet(place: vec4<f32>, origin: vec3<f32>, way: vec3<f32>) -> f32 {
    let from_centre = origin - place.xyz;
    let along = dot(from_centre, way);
    // Loses fewer digits than a difference of squares.
    let aside = from_centre - along * way;
    let rest = place.w * place.w - dot(aside, aside);
    if rest < 0.0 {
        return -1.0;
    }
    let root = sqrt(rest);
    if -along - root > NEAR {
        return -along - root;
    }
    return -along + root;
}

fn traced(eye: vec3<f32>, direction: vec3<f32>) -> vec3<f32> {
    var origin = eye;
    var way = direction;
    var light = vec3<f32>(1.0);
    for (var bounce = 0u; bounce < BOUNCES; bounce++) {
        var nearest = 1e30;
        var which = picture.spheres;
        for (var i = 0u; i < picture.spheres; i++) {
            let distance = meet(spheres[i].place, origin, way);
            if distance > NEAR && distance < nearest {
                nearest = distance;
                which = i;
            }
        }
        if which == picture.spheres {
            return light * mix(vec3<f32>(1.0), vec3<f32>(0.5, 0.7, 1.0), 0.5 * way.y + 0.5);
        }
        origin += nearest * way;
        let place = spheres[which].place;
        let look = spheres[which].look;
        let normal = (origin - place.xyz) / place.w;
        light *= look.xyz;
        if look.w < 0.0 {
            way = normalize(normal + random_in_ball());
        } else {
            way = normalize(reflect(way, normal) + look.w * random_in_ball());
            if dot(way, normal) <= 0.0 {
                return vec3<f32>(0.0);
            }
        }
    }
    return vec3<f32>(0.0);
}

@compute @workgroup_size(8, 8)
fn main(@builtin(global_invocation_id) id: vec3<u32>) {
    let pixel = id.y * picture.size + id.x;
    state = pixel * 9781u + salt;
    var sum = vec3<f32>(0.0);
    for (var i = 0u; i < picture.samples; i++) {
        let dx = random();
        let dy = random();
        let at = 2.0 * (vec2<f32>(id.xy) + vec2<f32>(dx, dy)) / f32(picture.size) - 1.0;
        sum += traced(vec3<f32>(0.0, 0.0, 2.0), normalize(vec3<f32>(at.x, -at.y, -1.5)));
    }
    pixels[pixel] = vec4<f32>(sum / f32(picture.samples), 1.0);
}
