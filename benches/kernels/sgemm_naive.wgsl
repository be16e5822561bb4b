// C = A * B for square matrices stored row by row: one sum for each invocation, all of it from buffers.

var<immediate> size: u32;
@group(0) @binding(0) var<storage, read> a: array<f32>;
@group(0) @binding(1) var<storage, read> b: array<f32>;
@group(0) @binding(2) var<storage, read_write> c: array<f32>;

@compute @workgroup_size(16, 16)
fn main(@builtin(global_invocation_id) at: vec3<u32>) {
    var sum = 0.0;
    for (var k = 0u; k < size; k++) {
        sum += a[at.y * size + k] * b[k * size + at.x];
    }
    c[at.y * size + at.x] = sum;
}
