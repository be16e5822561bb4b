// A matrix in a uniform buffer, with padded columns; columns and components chosen at run time.
// push: u32 1
// bind 0.0: f32 1,2,3,0,4,5,6,0,7,8,9,0
// bind 0.1: zeros 64
// expect 0.1: f32 30,36,42,0,4,5,6,0,5,1,5,9
@group(0) @binding(0) var<uniform> m: mat3x3<f32>;
@group(0) @binding(1) var<storage, read_write> result: array<f32>;
struct Push { column: u32 }
var<immediate> push: Push;
@compute @workgroup_size(1)
fn main() {
    let product = m * vec3<f32>(1.0, 2.0, 3.0);
    let column = m[push.column];
    for (var i = 0u; i < 3u; i++) {
        result[i] = product[i];
        result[4u + i] = column[i];
        result[9u + i] = m[i][i];
    }
    result[8] = m[push.column][push.column];
}
