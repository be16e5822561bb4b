// Every construct within every other, taken differently by each invocation: return, break and continue cross them all.
// bind 0.0: u32 0,1,2,3,4,5,6,7,8,9,10,11
// expect 0.0: u32 127,327,454,248,1350,2230,4642,2008,1668,2440,3068,2886
@group(0) @binding(0) var<storage, read_write> data: array<u32>;
fn nest(x: u32) -> u32 {
    var r = 0u;
    var i = 0u;
    for (; i < 6u; i++) {
        if i == x % 5u { continue; }
        let k = (x + i) % 4u;
        switch k {
            case 0u: { r += 1u; }
            case 1u: {
                var j = 0u;
                loop {
                    if j > x { break; }
                    if (j + i) % 3u == 2u { r += 10u; j += 1u; continue; }
                    r += 100u;
                    if r > 2000u { j += 1u; break; }
                    continuing { j += 1u; }
                }
            }
            case 2u: {
                if x > 3u { r += 1000u; break; }
                r += 7u;
            }
            default: {
                if i > 3u { return r * 2u; }
                r += 3u;
            }
        }
        if r > 3000u { break; }
    }
    return r + i;
}
@compute @workgroup_size(12)
fn main(@builtin(global_invocation_id) id: vec3<u32>) {
    data[id.x] = nest(data[id.x]);
}
