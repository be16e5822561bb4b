// modf and frexp give structures, here and by way of functions.
// bind 0.0: f32 2.75,-3.5,0.375,100 f32 0*4 i32 0*4
// expect 0.0: f32 0.75,-0.5,0.375,0 f32 2,-3,0,100 i32 2,2,-1,7
struct Data { values: vec4<f32>, whole: vec4<f32>, exponents: vec4<i32> }
@group(0) @binding(0) var<storage, read_write> data: Data;
@compute @workgroup_size(1)
fn main() {
    let split = modf(data.values);
    let parts = frexp(data.values);
    data.values = split.fract;
    data.whole = split.whole;
    data.exponents = parts.exp;
}
