// Early returns from three nested loops, called twice; the caller goes on with what was returned.
// bind 0.0: u32 0,0,5,3,63,9,40,9,27,2,99,9,99,1,21,1
// bind 0.1: zeros 32
// expect 0.1: u32 4000,4015,7012,7012,7008,7012,1049,4019
@group(0) @binding(0) var<storage, read> pairs: array<vec2<u32>>;
@group(0) @binding(1) var<storage, read_write> results: array<u32>;
fn search(a: u32, b: u32) -> u32 {
    var s = 0u;
    for (var i = 0u; i < 4u; i++) {
        for (var j = 0u; j < 4u; j++) {
            for (var k = 0u; k < 4u; k++) {
                if i * 16u + j * 4u + k == a { return 1000u + s; }
                if k == b { break; }
                s += 1u;
            }
        }
        if s > 20u + b { return 2000u + i; }
    }
    return s;
}
@compute @workgroup_size(8)
fn main(@builtin(local_invocation_index) i: u32) {
    let pair = pairs[i];
    results[i] = search(pair.x, pair.y) * 3u + search(pair.y, pair.x);
}
