// WGSL's functions as naga writes them. WGSL clamps an integer out of range to the nearest that is a float too.
// bind 0.0: f32 2.5,-3.5,1e10
// bind 0.1: zeros 60
// expect 0.1: i32 2,2,1,5,65535,-3,-4,-1,-5,1,2147483520,2147483520,1,5,65535
@group(0) @binding(0) var<storage, read> input: array<f32>;
@group(0) @binding(1) var<storage, read_write> output: array<i32>;
@compute @workgroup_size(3)
fn main(@builtin(local_invocation_index) i: u32) {
    let a = input[i];
    output[i * 5u] = i32(a);
    output[i * 5u + 1u] = i32(round(a));
    output[i * 5u + 2u] = i32(sign(a));
    output[i * 5u + 3u] = i32(dot(vec2(1.0, 2.0), vec2(1.0, 2.0)) * sign(a));
    output[i * 5u + 4u] = select(1, bitcast<i32>(pack2x16unorm(vec2(1.0, 0.0))), a > 0.0);
}
