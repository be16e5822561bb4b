// An index beyond an array is that of its last element where the next member of the structure, or the next row, follows.
// bind 0.0: u32 0
// bind 0.1: zeros 336
// bind 0.2: u32 1,2,3,4,5,6
// bind 0.3: u32 1,0,0,0,2,0,0,0,3,0,0,0
// expect 0.1: u32 1,99,99,99,99,99,99,99,3,4
// expect 0.1@40: u32 1,99,99,99,99,99,99,99,3,4
// expect 0.1@80: u32 1,99,99,99,99,99,99,99,3,4
// expect 0.1@120: u32 1,99,99,99,99,99,99,99,3,4
// expect 0.1@160: u32 1,2,2,2,2,2,2,2,3,0
// expect 0.1@200: u32 11,99,99,99,99,99,99,99,11,99
// expect 0.1@240: u32 21,22,99,99,99,99,99,99,24,25
// expect 0.1@280: u32 1,99,99,99,99,99,99,99,3,9
// expect 0.2: u32 1,99,3,9,5,6
struct S { a: array<u32, 2>, b: u32, c: array<u32, 3> }
struct U { a: array<vec4<u32>, 2>, b: vec4<u32> }
@group(0) @binding(0) var<storage, read> zero: array<u32>;
@group(0) @binding(1) var<storage, read_write> out: array<u32>;
@group(0) @binding(2) var<storage, read_write> stored: S;
@group(0) @binding(3) var<uniform> uniforms: U;
var<private> own: S;
var<workgroup> shared_one: S;
var<workgroup> rows: array<array<u32, 2>, 2>;

@compute @workgroup_size(1)
fn main() {
    let z = zero[0];
    var local: S;
    for (var i = 0u; i < 2u; i++) {
        local.a[i + z] = i + 1u;
        own.a[i + z] = i + 1u;
        shared_one.a[i + z] = i + 1u;
        rows[0][i + z] = i + 11u;
        rows[1][i + z] = i + 11u;
    }
    local.b = 3u; own.b = 3u; shared_one.b = 3u;
    local.c[0] = 4u; own.c[0] = 4u; shared_one.c[0] = 4u;
    // Beyond the end, by one and by far.
    local.a[2u + z] = 99u; own.a[2u + z] = 99u; shared_one.a[2u + z] = 99u; stored.a[2u + z] = 99u; rows[0][2u + z] = 99u;
    local.a[z - 1u] = 99u; own.a[z - 1u] = 99u; shared_one.a[z - 1u] = 99u; stored.a[z - 1u] = 99u; rows[1][z - 1u] = 99u;
    for (var i = 0u; i < 8u; i++) {
        out[i] = local.a[i + z];
        out[10u + i] = own.a[i + z];
        out[20u + i] = shared_one.a[i + z];
        out[30u + i] = stored.a[i + z];
        out[40u + i] = uniforms.a[i + z].x;
        out[50u + i] = rows[z][i + z];
    }
    out[8] = local.b; out[9] = local.c[0];
    out[18] = own.b; out[19] = own.c[0];
    out[28] = shared_one.b; out[29] = shared_one.c[0];
    out[38] = stored.b; out[39] = stored.c[0];
    out[48] = uniforms.b.x;
    out[58] = rows[1][z]; out[59] = rows[1][1];
    // Components of vectors, and columns of matrices.
    var vectors = array<vec3<u32>, 2>(vec3<u32>(21u, 22u, 23u), vec3<u32>(24u, 25u, 26u));
    vectors[0][3u + z] = 99u;
    for (var i = 0u; i < 8u; i++) { out[60u + i] = vectors[z][i + z]; }
    out[68] = vectors[1].x; out[69] = vectors[1].y;
    // Indices that are known when the kernel is compiled.
    for (var i = 0u; i < 8u; i++) { out[70u + i] = stored.a[i]; }
    after_all(z);
    out[78] = stored.b; out[79] = stored.c[0];
}

// After the last member is the end of the buffer.
fn after_all(z: u32) {
    stored.c[3u + z] = 99u;
    stored.c[z] = 9u;
}
