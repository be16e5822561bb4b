// Loops whose trip count differs for each invocation, with a value used after the divergent exit.
// bind 0.0: u32 1,2,3,6,7,9,27,97
// expect 0.0: u32 0,1,7,8,16,19,111,118
@group(0) @binding(0) var<storage, read_write> data: array<u32>;
@compute @workgroup_size(8)
fn main(@builtin(global_invocation_id) id: vec3<u32>) {
    var n = data[id.x];
    var steps = 0u;
    loop {
        if n <= 1u { break; }
        if n % 2u == 0u { n = n / 2u; } else { n = 3u * n + 1u; }
        steps += 1u;
    }
    data[id.x] = steps;
}
