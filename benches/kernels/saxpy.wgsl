// y = a * x + y, one element for each invocation.

struct Parameters {
    count: u32,
    a: f32,
}

var<immediate> parameters: Parameters;
@group(0) @binding(0) var<storage, read> x: array<f32>;
@group(0) @binding(1) var<storage, read_write> y: array<f32>;

@compute @workgroup_size(256)
fn main(@builtin(global_invocation_id) id: vec3<u32>) {
    if id.x < parameters.count {
        y[id.x] += parameters.a * x[id.x];
    }
}
