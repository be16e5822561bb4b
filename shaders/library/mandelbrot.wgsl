// The Mandelbrot set with smooth colours: four samples for each pixel, one pixel for each invocation.

struct View {
    // Centre of the picture in the complex plane.
    centre: vec2<f32>,
    // Width of a pixel in the complex plane.
    pixel: f32,
    limit: u32,
    size: vec2<u32>,
}

@group(0) @binding(0) var<uniform> view: View;
// Red, green and blue from the lowest byte up; alpha is 255.
@group(0) @binding(1) var<storage, read_write> picture: array<u32>;

// The colour of one point: black inside the set, else a palette at the smooth count of steps it takes to escape.
fn colour(c: vec2<f32>) -> vec3<f32> {
    var z = vec2<f32>(0.0);
    var square = vec2<f32>(0.0);
    var steps = 0u;
    // The large bailout radius makes the smooth count smoother.
    while steps < view.limit && square.x + square.y < 1024.0 {
        z = vec2<f32>(square.x - square.y + c.x, 2.0 * z.x * z.y + c.y);
        square = z * z;
        steps++;
    }
    if steps == view.limit {
        return vec3<f32>(0.0);
    }
    let smooth_steps = f32(steps) + 1.0 - log2(0.5 * log2(square.x + square.y));
    let turn = log2(max(smooth_steps, 1.0)) * 3.0;
    return 0.5 - 0.5 * cos(turn + vec3<f32>(3.5, 4.1, 5.0));
}

@compute @workgroup_size(8, 8)
fn main(@builtin(global_invocation_id) id: vec3<u32>) {
    if any(id.xy >= view.size) {
        return;
    }
    let corner = view.centre - 0.5 * view.pixel * vec2<f32>(view.size);
    var sum = vec3<f32>(0.0);
    for (var sample = 0u; sample < 4u; sample++) {
        let offset = vec2<f32>(f32(sample & 1u), f32(sample >> 1u)) * 0.5 + 0.25;
        sum += colour(corner + (vec2<f32>(id.xy) + offset) * view.pixel);
    }
    let bytes = vec3<u32>(sum * 0.25 * 255.0 + 0.5);
    picture[id.y * view.size.x + id.x] = bytes.x | (bytes.y << 8u) | (bytes.z << 16u) | 0xff000000u;
}
